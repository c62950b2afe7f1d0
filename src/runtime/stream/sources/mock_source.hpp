// Mock source: sends texts of its own to each client at a fixed pace, to try a web server's
// handoff and to measure.
//
// All streams have one delay, so they are due in the order in which they were sent something last:
// a list in that order is their timer queue, and one timer of the loop serves all of them. A stream
// takes 32 bytes here. Heartbeats, which come at one interval as well, have a second such queue; it
// is empty unless the delay is longer than they are apart.
#pragma once

#include <eddy/io/timer.hpp>

#include "runtime/stream/due_queue.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/source.hpp"
#include "runtime/stream/stream_request.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread.
class mock_source final : public source, timer {
public:
    /// Characters of the prompt that the first message repeats.
    static constexpr std::size_t prompt_characters = 50;
    /// Messages and heartbeats each sent in a row before others on the loop have their turn.
    static constexpr unsigned burst = 64;

    /// A client that was sent nothing for `heartbeat` gets a comment.
    mock_source(sessions& in, observer& owner, duration delay, std::uint32_t messages,
                duration heartbeat);
    ~mock_source() override;

    std::string opening(const stream_request& from) const override;
    std::string first_event(const stream_request& from) const override;
    void begin(std::uint32_t client, stream_request from) override;
    void forget(std::uint32_t client) noexcept override;
    void end_overdue(std::uint32_t client) noexcept override;
    std::uint64_t messages_sent() const noexcept override { return messages_sent_; }

private:
    struct stream : due_entry {
        std::unique_ptr<std::string> second;  // the message that names the user, until it is sent
        std::uint32_t begun_ms = 0;
        std::uint32_t sent = 0;
    };
    static_assert(sizeof(stream) == 32);

    void fire() noexcept override;
    void advance(std::uint32_t client);
    void beat(std::uint32_t client);
    bool is_last(std::uint32_t message) const noexcept { return message == messages_; }
    void end(std::uint32_t client, std::uint32_t begun_ms);
    std::string with_end(std::uint32_t message, std::string event) const;
    void await_next(std::uint32_t client, std::uint32_t due_ms) noexcept;
    void await_beat(std::uint32_t client) noexcept;
    void give_up(std::uint32_t client) noexcept;
    void count_message(std::uint32_t client) noexcept;
    bool has_beats() const noexcept { return heartbeat_ms_ < delay_ms_; }
    void arm() noexcept;
    std::uint32_t clock_ms() const noexcept;

    sessions& sessions_;
    observer& owner_;
    std::uint32_t delay_ms_;
    std::uint32_t messages_;
    std::uint32_t heartbeat_ms_;
    time_point start_;
    std::vector<std::string> texts_;  // of the third message and what follows it
    due_queue<stream> streams_;       // by the client's number
    due_queue<due_entry> beats_;      // the same, of those whose heartbeat comes before a message
    std::uint64_t messages_sent_ = 0;
};

}  // namespace eddy::runtime::stream
