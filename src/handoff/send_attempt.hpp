// Handoff in steps: connect, send the descriptor with the message, send the rest. Between steps its
// driver, a coroutine or a blocking call, waits.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/handoff/sender.hpp>
#include <eddy/io/endpoint.hpp>

#include <string_view>

namespace eddy::handoff {

/// One handoff, without waiting. The arguments must outlive it. Any thread, one at a time.
class send_attempt {
public:
    /// Wait that the next step needs.
    enum class wait {
        none,      ///< none: the message is in the kernel
        writable,  ///< wait until socket() is writable
        pause,     ///< wait a moment: the receiver's queue, or the count of descriptors, is full
    };

    /// `message` is not empty.
    send_attempt(const endpoint& receiver, socket_kind kind, std::string_view message,
                 int client) noexcept
        : receiver_(receiver), kind_(kind), rest_(message), client_(client) {}

    /// Proceeds as far as possible without waiting. Errors as hand_over()'s.
    result<wait> step() noexcept;

    int socket() const noexcept { return socket_.get(); }
    bool is_connected() const noexcept { return is_connected_; }
    /// The type of the socket; `automatic` until it is known.
    socket_kind kind() const noexcept { return kind_; }
    /// Error for which the last step waits: EAGAIN or ETOOMANYREFS.
    int reason() const noexcept { return reason_; }

private:
    result<> connect() noexcept;
    result<> send() noexcept;
    bool enlarge_buffer() noexcept;
    bool is_abstract() const noexcept;

    const endpoint& receiver_;
    socket_kind kind_;
    std::string_view rest_;
    int client_;
    unique_fd socket_;
    int reason_ = 0;
    bool is_connected_ = false;
    bool is_passed_ = false;  // the descriptor
    bool is_enlarged_ = false;
};

/// Growing waits before a step is tried again.
class retry_pause {
public:
    static constexpr duration first = std::chrono::milliseconds(1);
    static constexpr duration longest = std::chrono::milliseconds(50);

    /// The next wait.
    duration next() noexcept {
        const duration now = pause_;
        pause_ = pause_ * 2 < longest ? pause_ * 2 : longest;
        return now;
    }

private:
    duration pause_ = first;
};

/// Performs the wait of the last step, and the further steps, until `deadline`. Yields as
/// hand_over(). The running loop's thread.
task<result<>> finish(send_attempt& sending, send_attempt::wait next, time_point deadline);

}  // namespace eddy::handoff
