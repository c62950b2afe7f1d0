// Batch planner: facts about a batch's commands before any of them runs.
#pragma once

#include <eddy/wire/resp/command.hpp>

#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/memory/key_hash.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache {

struct planned {
    const command_spec* spec;  ///< null: there is no such command
    std::uint64_t hash;        ///< of the first argument, where that is a key
};

/// Lookup of commands and hashing of keys; remembers the last command, as clients mostly repeat it.
class planner {
public:
    planner(const key_hash& hash, const command_names* renamed, bool is_trusted) noexcept
        : hash_(hash), renamed_(renamed), is_trusted_(is_trusted) {}

    planned plan(const resp::command& what) noexcept {
        if (!what.repeats_name || !has_last_) look_up(what.argv[0]);
        const bool has_key = last_spec_ != nullptr && last_spec_->first_key == 1 && what.argc > 1;
        return {last_spec_, has_key ? hash_(what.argv[1]) : 0};
    }

private:
    void look_up(std::string_view as_sent) noexcept {
        has_last_ = true;
        const command_name name = fold_command_name(as_sent);
        if (name == last_name_) return;
        last_name_ = name;
        last_spec_ = is_trusted_ ? find_trusted(renamed_, name) : find_named(renamed_, name);
    }

    const key_hash& hash_;
    const command_names* renamed_;
    bool is_trusted_;
    bool has_last_ = false;
    command_name last_name_;
    const command_spec* last_spec_ = nullptr;
};

}  // namespace eddy::cache
