// Line log: a file to which received messages are appended, without a wait of the loop for the
// disk.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::runtime {

/// Appends whole lines to a file. After a short write, of a disk that is full, the beginning of a
/// line that it left is cut off again; where that is not possible, `torn` becomes true and the next
/// call begins a new line first. So each line stands alone. `kept` becomes the bytes of whole lines
/// that the file has got. Errors are write(2)'s.
result<> append_lines(int file, std::string_view lines, bool& torn, std::size_t& kept) noexcept;

/// Collects appended messages and writes them by a thread of its own, in large pieces. When the
/// disk is slower than the messages, further ones are refused, for the caller to count. Messages
/// that a failed write has lost are counted here. One loop's thread.
class line_log {
public:
    /// Bytes that may wait for the disk.
    static constexpr std::size_t max_waiting = 4 * 1024 * 1024;

    /// Adds the messages that failed writes lose to `dropped`, unless null. Both outlive it.
    explicit line_log(serving::journal& events, serving::tally* dropped = nullptr) noexcept
        : events_(events), dropped_(dropped) {}

    bool is_open() const noexcept { return static_cast<bool>(file_); }

    /// Opens `path`, a regular file or /dev/null, for appending, or creates it; a failure says what
    /// to do.
    outcome<> open(const std::string& path);

    /// Opens the file by its name again, as another program may have renamed it: lines that are not
    /// written yet go to the new one. A failure says what to do, and the old file stays in use.
    outcome<> reopen();

    /// Checks that open() is likely to succeed; makes no file.
    static outcome<> check(const std::string& path);

    /// Takes `count` whole messages; false when there was no room and they were dropped.
    bool append(std::string_view messages, std::uint64_t count);

    /// Writes what is appended; runs until finish() was called and all is written.
    task<void> run();
    /// Ends run() when nothing is left. Does not wait.
    void finish() noexcept;
    /// After run() has ended.
    void close() noexcept;

private:
    void note_failure(std::string_view batch, std::size_t kept, std::uint64_t messages,
                      std::error_code why);

    serving::journal& events_;
    serving::tally* dropped_;
    std::string path_;
    unique_fd file_;
    unique_fd next_file_;  // of reopen(), until the write at hand has ended
    std::unique_ptr<blocking_pool> threads_;
    byte_buffer waiting_;
    std::uint64_t waiting_messages_ = 0;
    std::uint64_t lost_ = 0;  // messages, since the writes began to fail
    event filled_;
    bool finishing_ = false;
    bool said_full_ = false;
    bool said_failed_ = false;
    bool torn_ = false;  // the file ends within a line
};

}  // namespace eddy::runtime
