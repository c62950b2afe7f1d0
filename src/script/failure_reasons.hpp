// Reasons for which a script's call fails, as metrics name them.
#pragma once

#include <string_view>

namespace eddy::script {

/// It has raised an error, or used up the memory.
inline constexpr std::string_view script_failed = "script_failed";
/// It has computed for longer than host_limits::run.
inline constexpr std::string_view script_too_long = "script_too_long";
/// It was computing when its client went.
inline constexpr std::string_view script_killed = "script_killed";
/// The process has no more memory; such an end has no text.
inline constexpr std::string_view no_memory = "no_memory";

}  // namespace eddy::script
