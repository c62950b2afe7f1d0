// Mock backend: sends texts of its own to each client at a fixed pace, to try a web server's
// handoff and to measure.
//
// All streams have one delay, so they are due in the order in which they were sent something last:
// a list in that order is their timer queue, and one timer of the loop serves all of them. A stream
// takes 32 bytes here.
#pragma once

#include <eddy/io/timer.hpp>

#include "handoff/client_table.hpp"
#include "runtime/metrics.hpp"
#include "runtime/stream/request.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread.
class mock_backend final : timer {
public:
    /// Characters of the prompt that the first message repeats.
    static constexpr std::size_t prompt_characters = 50;
    /// Messages sent in a row before others on the loop have their turn.
    static constexpr unsigned burst = 1024;

    /// Owner of the streams; it outlives the backend.
    class observer {
    public:
        /// The last message was passed on; the client is finished, and its number free.
        virtual void on_end(std::uint32_t client, duration since_begin) noexcept = 0;
        /// There was no memory for a message: the client was closed.
        virtual void on_shortage(std::uint32_t client) noexcept = 0;

    protected:
        ~observer() = default;
    };

    /// `clients` outlives it.
    mock_backend(handoff::client_table& clients, observer& owner, duration delay,
                 std::uint32_t messages);
    ~mock_backend();

    /// First message of the answer to `from`, and the end of the answer if it is the only one.
    std::string first_message(const request& from) const;
    /// Sends the others to a client that was sent the first one. Throws std::bad_alloc; nothing was
    /// begun then.
    void begin(std::uint32_t client, const request& from);
    /// The client is gone.
    void forget(std::uint32_t client) noexcept;

    std::uint64_t messages_sent() const noexcept { return messages_sent_; }

private:
    static constexpr std::uint32_t none = UINT32_MAX;

    struct stream {
        std::unique_ptr<std::string> second;  // the message that names the user, until it is sent
        std::uint32_t next = none;
        std::uint32_t previous = none;
        std::uint32_t due_ms = 0;  // since start_
        std::uint32_t begun_ms = 0;
        std::uint32_t sent = 0;
        bool is_queued = false;
    };

    void fire() noexcept override;
    void advance(std::uint32_t client);
    bool is_last(std::uint32_t message) const noexcept { return message == messages_; }
    void enqueue(std::uint32_t client) noexcept;
    void dequeue(std::uint32_t client) noexcept;
    void arm() noexcept;
    std::uint32_t clock_ms() const noexcept;

    handoff::client_table& clients_;
    observer& owner_;
    std::uint32_t delay_ms_;
    std::uint32_t messages_;
    time_point start_;
    std::vector<std::string> texts_;  // of the third message and what follows it
    std::deque<stream> streams_;      // by the client's number
    std::uint32_t head_ = none;       // that is due first
    std::uint32_t tail_ = none;
    std::uint64_t messages_sent_ = 0;
};

}  // namespace eddy::runtime::stream
