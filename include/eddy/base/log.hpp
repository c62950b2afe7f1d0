// Log: one line a record, to standard error or to a sink that replaces it.
//
//     2026-11-21T21:22:04.123Z info  daemon  ready on /run/eddy/control.sock
//
// Callers that need formatting do it before they call, and check log_enabled() first where it is
// expensive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace eddy {

/// Severity of a record, in ascending order.
enum class log_level : std::uint8_t { debug, info, warn, error };

/// The longest line in bytes, its newline included. A longer one is cut and ends in "...".
inline constexpr std::size_t log_line_limit = 4096;

/// Takes one finished line that ends in a newline; the view ends with the call. Calls never
/// overlap, whichever threads they come from. A sink must not log.
using log_sink = std::function<void(log_level level, std::string_view line)>;

/// Writes a record when `level` is at or above the threshold. `subject` names the part that logs
/// ("daemon", a runtime's name). Control characters, those of C1 and of bidirectional text too, and
/// bytes that are no UTF-8 come out escaped (`\n`, `\x1b`): a text from elsewhere can neither forge
/// a record nor drive a terminal. Any thread. Blocks while the sink does; a sink that throws loses
/// that record.
void log(log_level level, std::string_view subject, std::string_view message) noexcept;

/// log() at one level; so are the next three.
inline void log_debug(std::string_view subject, std::string_view message) noexcept {
    log(log_level::debug, subject, message);
}
/// See log().
inline void log_info(std::string_view subject, std::string_view message) noexcept {
    log(log_level::info, subject, message);
}
/// See log().
inline void log_warn(std::string_view subject, std::string_view message) noexcept {
    log(log_level::warn, subject, message);
}
/// See log().
inline void log_error(std::string_view subject, std::string_view message) noexcept {
    log(log_level::error, subject, message);
}

/// True if a record of this level would be written. Any thread; costs one relaxed load.
bool log_enabled(log_level level) noexcept;

/// Sets the threshold for the whole process; it starts at info. Any thread.
void set_log_level(log_level level) noexcept;

/// Sends all later records to `sink`; an empty one restores standard error, which shows levels in
/// colour when it is a terminal and NO_COLOR is unset. When this returns, the old sink is not
/// running and will not be called again. Any thread.
void set_log_sink(log_sink sink);

/// "debug", "info", "warn" or "error".
std::string_view to_string(log_level level) noexcept;

/// The level of that name, exactly as to_string() writes it.
std::optional<log_level> parse_log_level(std::string_view name) noexcept;

/// The line that log() passes to its sink, for the given time.
std::string format_log_line(std::chrono::system_clock::time_point when, log_level level,
                            std::string_view subject, std::string_view message);

}  // namespace eddy
