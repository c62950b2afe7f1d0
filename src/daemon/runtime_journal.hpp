// Journal of a runtime: the last lines that it and the daemon wrote, for `eddy logs NAME`.
#pragma once

#include <eddy/http/body.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include "runtime/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// One line of a journal. Numbers begin at 1 and have no gaps.
struct journal_line {
    std::uint64_t number = 0;
    std::chrono::system_clock::time_point when;
    std::string text;
};

/// A ring of lines. Runtimes write from their loops, the control loop reads and follows. When it is
/// full the oldest lines go.
class runtime_journal final : public runtime::journal,
                              public std::enable_shared_from_this<runtime_journal> {
public:
    static constexpr std::size_t line_limit = 1000;        ///< lines kept
    static constexpr std::size_t byte_limit = 256 * 1024;  ///< bytes kept
    static constexpr std::size_t line_bytes_limit = 4096;  ///< a longer line is cut

    /// `control` is the loop of the followers; it outlives the journal.
    explicit runtime_journal(loop& control) noexcept : control_(control) {}

    /// Any thread. Control bytes come out escaped; each newline begins a new line.
    void write(std::string_view line) override;

    /// The lines behind number `after`, in order, at most `most` of them: the newest where there
    /// are more. Any thread.
    std::vector<journal_line> read(std::uint64_t after, std::size_t most) const;

    /// Waits until there is a line behind number `after`, or the journal is closed. Control loop.
    task<result<>> wait_beyond(std::uint64_t after);

    /// The runtime is gone: followers come to their end. Control loop.
    void close();
    bool closed() const noexcept { return closed_; }

private:
    struct wake_up;
    void add(std::string_view line);

    loop& control_;
    event news_;           // control loop only
    bool closed_ = false;  // control loop only

    mutable std::mutex mutex_;
    std::deque<journal_line> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_number_ = 0;
    bool followed_ = false;  // a follower waits for the next line
};

/// "2026-11-21T21:22:04.123Z text\n"
std::string format_journal_line(const journal_line& line);

/// The body of GET .../logs?follow=true: the last `tail` lines, then each new one as it comes.
std::unique_ptr<http::body_producer> follow_journal(std::shared_ptr<runtime_journal> from,
                                                    std::size_t tail);

}  // namespace eddy::daemon
