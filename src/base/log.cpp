// Formatting of log records, and the sink that they go to.
#include <eddy/base/log.hpp>

#include "base/log_colour.hpp"
#include "base/text/terminal_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace eddy {
namespace {

constexpr std::array<std::string_view, 4> level_names{"debug", "info", "warn", "error"};
constexpr std::string_view cut_mark = "...\n";

std::atomic<log_level> threshold{log_level::info};

struct sink_slot {
    std::mutex mutex;
    log_sink sink;
};

// Never destroyed: destructors of other statics may still log.
sink_slot& slot() {
    static sink_slot& instance = *new sink_slot;
    return instance;
}

bool stderr_in_colour() {
    static const bool yes = ::isatty(STDERR_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    return yes;
}

std::string_view colour_of(log_level level) {
    switch (level) {
        case log_level::debug: return "\x1b[2m";
        case log_level::info: return "";
        case log_level::warn: return "\x1b[33m";
        case log_level::error: return "\x1b[31m";
    }
    return "";
}

void write_to_stderr(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return;  // nowhere left to report it
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

void default_sink(log_level level, std::string_view line) {
    write_to_stderr(log_line_for_stderr(level, line));
}

void append_number(std::string& out, std::uint64_t value, std::size_t digits) {
    const std::size_t start = out.size();
    out.resize(start + digits);
    for (std::size_t i = digits; i-- > 0; value /= 10) {
        out[start + i] = static_cast<char>('0' + value % 10);
    }
}

void append_time(std::string& out, std::chrono::system_clock::time_point when) {
    using namespace std::chrono;
    const auto ms = floor<milliseconds>(when);
    const auto day = floor<days>(ms);
    const year_month_day date(day);
    const hh_mm_ss time(ms - day);
    const auto number = [&out](auto value, std::size_t digits) {
        append_number(out, static_cast<std::uint64_t>(value), digits);
    };
    number(static_cast<int>(date.year()), 4);
    out += '-';
    number(static_cast<unsigned>(date.month()), 2);
    out += '-';
    number(static_cast<unsigned>(date.day()), 2);
    out += 'T';
    number(time.hours().count(), 2);
    out += ':';
    number(time.minutes().count(), 2);
    out += ':';
    number(time.seconds().count(), 2);
    out += '.';
    number(time.subseconds().count(), 3);
    out += 'Z';
}

// Stops when the line is full: what follows would be cut anyway.
void append_escaped(std::string& out, std::string_view text) {
    while (!text.empty() && out.size() <= log_line_limit) {
        const text_unit unit = first_unit(text);
        const std::string_view bytes = text.substr(0, unit.size);
        if (unit.is_printable) {
            out += bytes;
        } else if (bytes == "\n") {
            out += "\\n";
        } else if (bytes == "\t") {
            out += "\\t";
        } else if (bytes == "\r") {
            out += "\\r";
        } else {
            append_hex_escaped(out, bytes);
        }
        text.remove_prefix(unit.size);
    }
}

void cut(std::string& line) {
    std::size_t keep = log_line_limit - cut_mark.size();
    // Not inside a UTF-8 sequence, whose continuation bytes are 10xxxxxx.
    for (int back = 0; back < 3 && (static_cast<unsigned char>(line[keep]) & 0xc0) == 0x80;
         ++back) {
        --keep;
    }
    line.resize(keep);
    line += cut_mark;
}

}  // namespace

std::string log_line_for_stderr(log_level level, std::string_view line) {
    const std::string_view colour = stderr_in_colour() ? colour_of(level) : "";
    if (colour.empty()) return std::string(line);
    line.remove_suffix(1);
    std::string coloured(colour);
    coloured.append(line).append("\x1b[0m\n");
    return coloured;
}

std::string format_log_line(std::chrono::system_clock::time_point when, log_level level,
                            std::string_view subject, std::string_view message) {
    std::string line;
    line.reserve(std::min(48 + subject.size() + message.size(), log_line_limit + 4));
    append_time(line, when);
    line += ' ';
    line += to_string(level);
    line.append(6 - to_string(level).size(), ' ');
    append_escaped(line, subject);
    line += "  ";
    append_escaped(line, message);
    if (line.size() + 1 > log_line_limit) {
        cut(line);
    } else {
        line += '\n';
    }
    return line;
}

void log(log_level level, std::string_view subject, std::string_view message) noexcept {
    if (!log_enabled(level)) return;
    try {
        const std::string line =
            format_log_line(std::chrono::system_clock::now(), level, subject, message);
        sink_slot& target = slot();
        const std::lock_guard lock(target.mutex);
        if (target.sink) {
            target.sink(level, line);
        } else {
            default_sink(level, line);
        }
    } catch (...) {
        // Out of memory, or a sink that throws: a log line is not worth the process.
    }
}

bool log_enabled(log_level level) noexcept {
    return level >= threshold.load(std::memory_order_relaxed);
}

void set_log_level(log_level level) noexcept { threshold.store(level, std::memory_order_relaxed); }

void set_log_sink(log_sink sink) {
    sink_slot& target = slot();
    const std::lock_guard lock(target.mutex);
    target.sink = std::move(sink);
}

std::string_view to_string(log_level level) noexcept {
    return level_names[static_cast<std::size_t>(level)];
}

std::optional<log_level> parse_log_level(std::string_view name) noexcept {
    for (std::size_t i = 0; i < level_names.size(); ++i) {
        if (level_names[i] == name) return static_cast<log_level>(i);
    }
    return std::nullopt;
}

}  // namespace eddy
