// Lines for the journal.
#include "daemon/service/journal_lines.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace eddy::daemon {

bool stderr_is_journal() noexcept {
    const char* named = std::getenv("JOURNAL_STREAM");
    struct stat there{};
    if (named == nullptr || ::fstat(STDERR_FILENO, &there) != 0) return false;
    return named == fmt::format("{}:{}", there.st_dev, there.st_ino);
}

std::string journal_line(log_level level, std::string_view line) {
    int priority = 6;
    switch (level) {
        case log_level::debug: priority = 7; break;
        case log_level::info: priority = 6; break;
        case log_level::warn: priority = 4; break;
        case log_level::error: priority = 3; break;
    }
    // "2026-11-30T12:00:00.000Z warn  subject  message"
    const std::size_t time = line.find(' ');
    if (time != std::string_view::npos) line.remove_prefix(time + 1);
    return fmt::format("<{}>{}", priority, line);
}

}  // namespace eddy::daemon
