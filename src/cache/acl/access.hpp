// Access control of a session: its user, the checks before a command, and ACL LOG.
#pragma once

#include "cache/acl/acl.hpp"
#include "cache/engine/engine.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace eddy::cache {

struct call;

/// ACL LOG's entries, the latest first. What is much the same as an earlier one within a minute is
/// counted with it.
class access_log {
public:
    /// Of keys and names so much is kept.
    static constexpr std::size_t max_text = 1024;

    /// Where the command came from.
    enum class context : std::uint8_t { toplevel, multi, lua };

    struct entry {
        std::uint64_t id;
        std::uint64_t count;
        acl::refusal why;
        context where;
        std::string object;  ///< the command, the key or the channel
        std::string user;
        std::string client;  ///< as CLIENT LIST shows it
        std::int64_t created_ms;
        std::int64_t updated_ms;
    };

    void add(entry made, std::size_t limit);
    /// How many there were of a kind, also of those that are no longer kept.
    std::uint64_t count(acl::refusal why) const noexcept {
        return counts_[static_cast<std::size_t>(why)];
    }
    void clear() noexcept { entries_.clear(); }
    void reset_counts() noexcept { counts_ = {}; }
    const std::deque<entry>& entries() const noexcept { return entries_; }

private:
    std::deque<entry> entries_;
    std::uint64_t next_id_ = 0;
    std::array<std::uint64_t, acl::refusal_kinds> counts_{};
};

/// Makes a new session, or one that RESET, act for the default user.
void use_default_user(engine::state& s, session& who);
/// Works out anew what the session need not be asked for, after its user has changed.
void note_permissions(engine::state& s, session& who);
/// The same for all sessions.
void note_all_permissions(engine::state& s);

/// Logs the session in; false, with the error replied, where that cannot be.
bool authenticate(call& c, std::string_view user, std::string_view password);

/// Whether the session's user may run the command; if not, that is logged, and the refusal replied.
bool permits(call& c);
/// The same for a command that was queued when it was permitted.
bool still_permits(call& c);
/// Whether SORT may read keys that are known only from values.
bool may_read_all_keys(const call& c);

/// Closes the sessions of a user that is removed.
void close_sessions_of(engine::state& s, const acl::user& gone);
/// Closes the sessions with subscriptions that their user is no longer permitted.
void close_forbidden_subscribers(engine::state& s, const acl::user& changed);

}  // namespace eddy::cache
