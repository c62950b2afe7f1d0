// Journal of a runtime: the last lines that it and the daemon wrote, for `eddy logs NAME`. They are
// kept in memory, and by journal_files in a file.
#pragma once

#include <eddy/http/body.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include "serving/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
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

class journal_files;

/// State of a journal's file, for journal_files: its thread's, once the journal is in use.
struct journal_file {
    std::string name;               ///< the runtime's
    std::uint64_t last_number = 0;  ///< the newest line that is in it
    /// Bytes of the file as it was written last; none before that, at the start of a daemon.
    std::optional<std::size_t> size = {};
};

/// A ring of lines. Runtimes write from their loops, the control loop reads and follows. When it is
/// full the oldest lines go.
class runtime_journal final : public serving::journal,
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

    /// Keeps the journal of that runtime in `files`, which must outlive it or be stopped before.
    /// `earlier` lines come before all others and are in the file already. Before the first
    /// write().
    void keep(journal_files& files, std::string name, std::vector<journal_line> earlier);
    /// Removes the file; nothing is kept from then on. Any thread.
    void discard();

    /// For journal_files: null where it is not kept.
    journal_file* file() noexcept { return file_.get(); }
    /// For journal_files: what is written from then on must be added again. True once discarded.
    bool start_writing();

private:
    struct wake_up;
    void add(std::string_view line, std::chrono::system_clock::time_point when);
    bool start_queueing() noexcept;

    loop& control_;
    event news_;           // control loop only
    bool closed_ = false;  // control loop only

    mutable std::mutex mutex_;
    std::deque<journal_line> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_number_ = 0;
    bool followed_ = false;  // a follower waits for the next line
    bool queued_ = false;    // it is in the queue of files_
    bool discarded_ = false;
    journal_files* files_ = nullptr;
    std::unique_ptr<journal_file> file_;
};

/// "2026-11-21T21:22:04.123Z text\n"
std::string format_journal_line(const journal_line& line);
/// The same backwards, without the newline and the number; none for another text.
std::optional<journal_line> parse_journal_line(std::string_view line);

/// A time as journals have it, or as people shorten it: 2026-11-21, 2026-11-21T21:22,
/// 2026-11-21T21:22:04.123Z; a space may stand for the T. UTC. None for another text.
std::optional<std::chrono::system_clock::time_point> parse_journal_time(std::string_view text);

/// Part of the lines so far: of the last `tail` those from `since` on.
struct journal_part {
    std::size_t tail = 0;
    std::chrono::system_clock::time_point since = std::chrono::system_clock::time_point::min();

    bool has(const journal_line& line) const noexcept { return line.when >= since; }
};

/// The body of GET .../logs?follow=true: those lines, then each new one as it comes.
std::unique_ptr<http::body_producer> follow_journal(std::shared_ptr<runtime_journal> from,
                                                    journal_part part);

}  // namespace eddy::daemon
