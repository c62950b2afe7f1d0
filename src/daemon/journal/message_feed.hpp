// Feed of the messages that a runtime receives, for `eddy attach`. They are kept only while there
// are followers, which share one bounded ring: one that reads slowly misses messages, and gets
// their number.
#pragma once

#include <eddy/http/body.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// A ring of messages. Instances write from their loops, the control loop follows. When it is full
/// the oldest messages go.
class message_feed final : public std::enable_shared_from_this<message_feed> {
public:
    static constexpr std::size_t message_limit = 10'000;               ///< messages kept
    static constexpr std::size_t byte_limit = std::size_t{512} << 10;  ///< bytes kept

    /// `control` is the loop of the followers; it outlives the feed.
    explicit message_feed(loop& control) noexcept : control_(control) {}

    /// Any thread.
    bool has_followers() const noexcept { return followers_.load(std::memory_order_relaxed) > 0; }
    /// Adds a message, as followers get it; without followers it is dropped. Any thread.
    void write(std::string_view message);

    /// The body of GET .../messages: each message from now on, as it comes, until the feed is
    /// closed. Where messages are lost a line has their number. Control loop.
    std::unique_ptr<http::body_producer> follow();

    /// The runtime is gone: followers come to their end. Control loop.
    void close();

private:
    class follower;
    struct wake_up;

    /// Messages behind a number.
    struct part {
        std::string text;
        std::uint64_t last = 0;  ///< number of the newest one
    };
    part read(std::uint64_t after) const;
    task<result<>> wait_beyond(std::uint64_t after);
    std::uint64_t begin_following() noexcept;
    void end_following() noexcept;

    loop& control_;
    event changed_;           // control loop only
    bool is_closed_ = false;  // control loop only
    std::atomic<std::size_t> followers_ = 0;

    mutable std::mutex mutex_;
    std::deque<std::string> messages_;
    std::size_t bytes_ = 0;
    std::uint64_t last_number_ = 0;  // of the newest; the first message has 1
    bool is_awaited_ = false;        // a follower waits for the next message
};

}  // namespace eddy::daemon
