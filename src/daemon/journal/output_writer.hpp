// Output writer of the daemon, which never waits for its reader: a bounded queue, and a thread that
// writes it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// Writes lines to a descriptor that may be a pipe, a terminal or a socket, each of which blocks
/// once its reader stops. Lines that do not fit the queue are dropped and counted; once there is
/// room a line says how many. A regular file never blocks for a reader and is written at once. Any
/// thread.
class output_writer {
public:
    /// Bytes that may wait. As many again may be with the thread.
    static constexpr std::size_t max_waiting = std::size_t{1} << 20;

    /// `fd` must outlive the process's use of it: a reader that has stopped may keep the thread
    /// within write(2) for ever. `name` is for the line about dropped ones.
    output_writer(int fd, std::string name);
    /// Calls flush(). A thread that is still blocked then stays until the process ends.
    ~output_writer();
    output_writer(const output_writer&) = delete;
    output_writer& operator=(const output_writer&) = delete;

    /// Takes whole lines. Never waits for a reader.
    void write(std::string_view lines);

    /// Waits until all is written, but for a second at most. True when nothing is left.
    bool flush() const;

    /// Lines that were dropped and not reported yet.
    std::size_t dropped() const;

private:
    struct queue;

    bool start_thread();

    std::shared_ptr<queue> queue_;  // shared with the thread, which may outlive this
};

}  // namespace eddy::daemon
