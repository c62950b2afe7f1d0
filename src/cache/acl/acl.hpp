// Users and their permissions (ACLs).
//
// A user has one or more selectors; a command may run when one of them allows the command, all its
// keys and all its channels. Commands and their forms ("config|set") are numbered; a selector holds
// a bit for each number.
//
// The room acl holds users, permission checks and the ACL file. Files in reading order:
//
//   acl.hpp                users, selectors, rules
//   access.hpp             a session's user, NOPERM refusals
//   access_log.hpp         ACL LOG
//   acl_file.hpp           the users as a file: ACL LOAD and SAVE
//   secret_arguments.hpp   arguments that MONITOR and SLOWLOG leave out
//
// It stands on catalog (command numbers, keys and categories) and types (SHA-256), and on the
// engine's floor for sessions. The command ACL itself is in commands/server/acl.cpp.
#pragma once

#include "cache/catalog/command_table.hpp"
#include "cache/types/sha256.hpp"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache::acl {

/// At most so many users, and so many bytes of one user's rules and passwords; beyond it ACL
/// SETUSER fails with an error.
inline constexpr std::size_t max_users = 10'000;
inline constexpr std::size_t max_user_bytes = std::size_t{1} << 20;

/// Number of a command, or of its form named by args[1]: index of a selector's bit.
using command_number = std::uint32_t;
command_number number_of(const command_spec& spec, std::span<const std::string_view> args) noexcept;
/// "config|set".
std::string full_name(const command_spec& spec, std::span<const std::string_view> args);
/// Names of the commands and forms of a category, which is given without '@'; none for an unknown
/// category.
std::optional<std::vector<std::string>> names_in_category(std::string_view category);

/// Reason of a refusal; of several the last one in this order is reported.
enum class refusal : std::uint8_t { none, command, key, password, channel };
inline constexpr std::size_t refusal_kinds = 5;
struct verdict {
    refusal why = refusal::none;
    std::size_t argument = 0;  ///< the key or the channel
};

struct key_pattern {
    static constexpr std::uint8_t read = 1;
    static constexpr std::uint8_t write = 2;
    std::uint8_t access;
    std::string text;
    /// As it is given: "~text", "%R~text".
    std::string written() const;
};

/// One set of permissions. At first nothing is allowed, except all channels if `all_channels`.
class selector {
public:
    explicit selector(bool all_channels = false);

    /// Applies one rule; fails with the reason.
    std::expected<void, std::string_view> apply(std::string_view rule);

    bool allows_everything() const noexcept { return all_commands_ && all_keys_ && all_channels_; }
    verdict check(const command_spec& spec, std::span<const std::string_view> args) const;
    /// A pattern must be among the selector's own; a channel must match one of them.
    bool allows_channel(std::string_view channel, bool is_pattern) const;
    /// True if every key may be read.
    bool reads_all_keys() const noexcept;
    /// True if the key matches one of the selector's patterns, for read or write.
    bool has_key(std::string_view key) const;

    /// As ACL GETUSER shows them: "~a* %R~b*", "&c*", "-@all +get".
    std::string keys() const;
    std::string channels() const;
    std::string commands() const;
    /// As ACL LIST does.
    std::string written() const;

    std::size_t bytes() const noexcept;

private:
    bool has(command_number number) const noexcept {
        return (bits_[number / 64] >> number % 64 & 1) != 0;
    }
    void set(command_number number, bool allowed);
    void set_with_forms(command_number number, bool allowed);
    void set_all(bool allowed);
    std::expected<void, std::string_view> apply_command(std::string_view rule);
    std::expected<void, std::string_view> apply_category(std::string_view rule);
    std::expected<void, std::string_view> add_key_pattern(std::string_view rule);
    std::expected<void, std::string_view> add_channel(std::string_view pattern);
    void note_rule(std::string_view what, bool allowed);

    bool all_commands_ = false;
    bool all_keys_ = false;
    bool all_channels_ = false;
    bool later_commands_ = false;  // whether the rules begin with +@all
    std::vector<std::uint64_t> bits_;
    /// First arguments with which a command is allowed that is not otherwise: "+select|0".
    std::vector<std::pair<command_number, std::string>> first_arguments_;
    std::vector<key_pattern> keys_;
    std::vector<std::string> channels_;
    std::string rules_;  // in the order in which they count
};

class user {
public:
    /// Disabled, with no password and no permission. `all_channels`: new selectors, and the rule
    /// `reset`, allow all channels, as acl-pubsub-default has it.
    explicit user(std::string_view name, bool all_channels = false)
        : name_(name), all_channels_at_first_(all_channels), selectors_{selector(all_channels)} {}
    /// The same choice for the rules that follow.
    void begin_with_all_channels(bool chosen) noexcept { all_channels_at_first_ = chosen; }

    const std::string& name() const noexcept { return name_; }
    bool enabled() const noexcept { return enabled_; }
    /// Any password will do.
    bool needs_no_password() const noexcept { return no_password_; }
    /// Flag `sanitize-dump-payload clients`. Every payload is checked in any case; the flag only
    /// counts such checks.
    bool sanitizes() const noexcept { return sanitizes_; }

    /// Applies rules in order; a selector in parentheses is one rule. On failure the user is
    /// changed in part and must be discarded; the text is the reply of ACL SETUSER.
    std::expected<void, std::string> apply(std::span<const std::string_view> rules);

    bool accepts(std::string_view password) const;
    bool allows_everything() const noexcept;
    verdict check(const command_spec& spec, std::span<const std::string_view> args) const;
    bool allows_channel(std::string_view channel, bool is_pattern) const;
    /// True if a selector that allows the command may read every key: no check of single keys is
    /// needed.
    bool reads_all_keys(const command_spec& spec, std::span<const std::string_view> args) const;
    /// True if a selector may read or write the key.
    bool has_key(std::string_view key) const;

    std::vector<std::string_view> flags() const;
    const std::vector<sha256_digest>& passwords() const noexcept { return passwords_; }
    const std::vector<selector>& selectors() const noexcept { return selectors_; }
    /// As ACL LIST shows it, without "user " and the name.
    std::string written() const;
    std::size_t bytes() const noexcept;

private:
    std::expected<void, std::string_view> apply_one(std::string_view rule);
    std::expected<void, std::string_view> add_selector(std::string_view inner);

    std::string name_;
    bool enabled_ = false;
    bool no_password_ = false;
    bool sanitizes_ = true;
    bool all_channels_at_first_ = false;
    std::vector<sha256_digest> passwords_;
    std::vector<selector> selectors_;  // the first is the user's own
};

/// All users by name. Their addresses are stable until removal.
class users {
public:
    /// One user, "default", with all permissions; with a password, if it is not empty.
    explicit users(std::string_view password);

    user& default_user() noexcept { return *default_; }
    user* find(std::string_view name) noexcept {
        const auto found = all_.find(name);
        return found == all_.end() ? nullptr : found->second.get();
    }
    std::size_t size() const noexcept { return all_.size(); }
    void add(user made);
    /// The removed user, which authenticates no more sessions; null when there is none.
    std::unique_ptr<user> remove(std::string_view name);
    /// True while a client must authenticate before any other command.
    bool require_password() const noexcept {
        return !default_->needs_no_password() || !default_->enabled();
    }
    /// The password of requirepass.
    void set_default_password(std::string_view password);

    /// Calls f(user&) for each, by name.
    template <class F>
    void for_each(F&& f) const {
        for (const auto& [name, each] : all_) f(*each);
    }

private:
    std::map<std::string, std::unique_ptr<user>, std::less<>> all_;
    user* default_;
};

}  // namespace eddy::cache::acl
