// Lines of the log for systemd's journal, which has a time and a priority of its own for each.
#pragma once

#include <eddy/base/log.hpp>

#include <string>
#include <string_view>

namespace eddy::daemon {

/// True if standard error is a stream to the journal: $JOURNAL_STREAM names it, systemd.exec(5).
bool stderr_is_journal() noexcept;

/// A finished line of the log with its level as a priority, sd-daemon(3), in place of the time.
std::string journal_line(log_level level, std::string_view line);

}  // namespace eddy::daemon
