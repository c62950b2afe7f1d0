// rename-command: commands under other names than their own.
#pragma once

#include "cache/catalog/command_table.hpp"

#include <expected>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cache {

/// Map from renamed commands, searched before the command table. Immutable.
class command_names {
public:
    /// Old names and new ones, in this order; an empty new one disables the command. Or the error
    /// in one of them, as a sentence.
    static std::expected<std::unique_ptr<const command_names>, std::string> make(
        std::span<const std::pair<std::string, std::string>> renamed);

    /// The command with this current name, or null.
    const command_spec* find(command_name name) const noexcept {
        const auto found = names_.find(name);
        return found == names_.end() ? find_command(name) : found->second;
    }
    /// True if the command has a name: its own or a new one.
    bool is_callable(const command_spec& spec) const noexcept;

private:
    struct order {
        bool operator()(const command_name& a, const command_name& b) const noexcept {
            if (a.first != b.first) return a.first < b.first;
            return a.second != b.second ? a.second < b.second : a.third < b.third;
        }
    };
    /// Null for the old name of a renamed command.
    std::map<command_name, const command_spec*, order> names_;
};

/// Lookup for a file or a master: by the command's own name, else by the current one.
inline const command_spec* find_trusted(const command_names* renamed, command_name name) noexcept {
    const command_spec* const own = find_command(name);
    return own != nullptr || renamed == nullptr ? own : renamed->find(name);
}

/// Lookup for clients and scripts, by the current name; null for none.
inline const command_spec* find_named(const command_names* renamed, command_name name) noexcept {
    return renamed == nullptr ? find_command(name) : renamed->find(name);
}

}  // namespace eddy::cache
