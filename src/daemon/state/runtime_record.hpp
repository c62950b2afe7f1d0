// Record of a runtime: the part of its desired state that is stored, and its JSON.
#pragma once

#include "base/problem.hpp"
#include "daemon/control/json.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// Version of the JSON that is written. A store sets a record with a higher one aside unchanged: a
/// newer Eddy wrote it, and may have it back.
inline constexpr int state_version = 1;

/// Fate of a runtime when its owner stops.
enum class on_parent_stop : std::uint8_t {
    stop,    ///< it is stopped, too; it is removed with its owner
    remove,  ///< it is removed
    keep,    ///< it runs still, and has no owner once that is removed
};
std::string_view to_string(on_parent_stop policy) noexcept;
/// Refuses (400) another name; empty is `stop`.
outcome<on_parent_stop> parse_on_parent_stop(std::string_view name);

/// A runtime as the user asked for it.
struct runtime_record {
    std::string id;
    std::string name;
    std::string type;
    std::string owner;  ///< the runtime that this one belongs to, or empty
    std::string group;  ///< or empty
    std::string stack;  ///< the stack that declares it, or empty
    on_parent_stop policy = on_parent_stop::stop;
    /// Its name before it was renamed: a record of that name and this id is a remnant.
    std::string former_name;
    std::chrono::system_clock::time_point created;
    bool running = false;  ///< whether it is to run, as far as the user said
    json options = json::object();

    friend bool operator==(const runtime_record&, const runtime_record&) = default;
};

/// The record as it is stored.
json to_json(const runtime_record& record);
/// Checks every member; the message names the one that is wrong.
outcome<runtime_record> record_from_json(const json& value);

}  // namespace eddy::daemon
