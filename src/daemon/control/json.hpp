// JSON of the control plane: a parser for untrusted input, and a writer whose output is always
// valid.
#pragma once

#include "base/problem.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::daemon {

using nlohmann::json;

/// Greatest depth of nested arrays and objects.
inline constexpr std::size_t json_depth_limit = 32;

/// Parses a text; refuses (400) what is no JSON or nests too deep. `what` names the text in the
/// message ("the request's body"). Never throws.
outcome<json> parse_json(std::string_view text, std::string_view what);

/// Writes a value. Bytes that are no UTF-8 become U+FFFD. `indent` as in json::dump().
std::string dump_json(const json& value, int indent = -1);

/// A member of an object as text; refuses (400) another kind. Absent or null is "".
outcome<std::string> text_member(const json& object, std::string_view name);
/// A member of an object as a boolean; refuses (400) another kind. Absent or null is `otherwise`.
outcome<bool> flag_member(const json& object, std::string_view name, bool otherwise);

/// "2026-11-21T21:22:04Z"
std::string format_time(std::chrono::system_clock::time_point when);
/// The inverse; refuses (400) any other form.
outcome<std::chrono::system_clock::time_point> parse_time(const std::string& text);

}  // namespace eddy::daemon
