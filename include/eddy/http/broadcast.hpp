// Broadcast: one message to many WebSockets, framed and compressed once for all of them.
//
//     http::websocket_group room;
//
//     task<void> talk(http::websocket peer) {
//         const auto place = room.join(peer);
//         while (auto message = co_await peer.receive()) {
//             const http::prepared_message news(message->data);
//             auto sent = co_await room.broadcast(news);
//             if (!sent) co_return;
//         }
//     }
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

namespace eddy::http {

namespace detail {
class prepared_frames;
}

/// A message for many WebSockets. Its frame is made at most once in each form that peers need:
/// uncompressed, and compressed for each size of window that was agreed on. Server-side peers share
/// these frames, also in their queues; a client's frames are masked, so each client has its own.
/// Copies share the content. Any thread.
class prepared_message {
public:
    /// A text, which is copied. Sending fails with errc::malformed if it is no UTF-8. Throws
    /// std::bad_alloc.
    explicit prepared_message(std::string_view text);
    /// A binary message, which is copied. Throws std::bad_alloc.
    explicit prepared_message(const_bytes binary);

    /// True for a text.
    bool is_text() const noexcept;
    /// The content; valid as long as a copy of this object lives.
    std::string_view content() const noexcept;

private:
    friend class websocket;
    std::shared_ptr<detail::prepared_frames> frames_;
};

/// WebSockets that get the same messages: a chat room, or a topic. It must outlive its members and
/// its broadcasts. One loop's thread; with several loops each has a group of its own, and a
/// prepared_message for all of them.
class websocket_group {
public:
    /// At most so many peers are sent to in one iteration of the loop, so that a large group does
    /// not block it.
    static constexpr std::size_t peers_in_a_row = 64;

    /// Membership of one WebSocket in a group, which its destructor ends.
    class membership {
    public:
        membership(const membership&) = delete;
        membership& operator=(const membership&) = delete;
        /// Leaves the group.
        ~membership() { group_.members_.erase(id_); }

    private:
        friend class websocket_group;
        membership(websocket_group& of, websocket& peer) : group_(of), id_(++of.last_id_) {
            of.members_.emplace(id_, &peer);
        }

        websocket_group& group_;
        std::uint64_t id_;
    };

    websocket_group() noexcept = default;
    /// All members must have left.
    ~websocket_group();
    websocket_group(const websocket_group&) = delete;
    websocket_group& operator=(const websocket_group&) = delete;

    /// Adds `peer`, which must outlive the membership and stay where it is. Throws std::bad_alloc.
    [[nodiscard]] membership join(websocket& peer) { return {*this, peer}; }
    /// Number of members.
    std::size_t size() const noexcept { return members_.size(); }

    /// Sends to all present members, as websocket::try_send() does: it waits for no peer, and a
    /// peer whose queue is full misses the message, or is disconnected, by its policy. Every
    /// peers_in_a_row peers the loop's other work runs. Broadcasts of a group go out one after the
    /// other, in the order of the calls, so every member gets them in this order. Yields a
    /// result<std::size_t>: the number of peers that have taken it. Fails with errc::malformed for
    /// a text that is no UTF-8, and with errc::cancelled while it waits for the broadcast before
    /// it; no member has got it then.
    task<result<std::size_t>> broadcast(prepared_message message);

private:
    std::map<std::uint64_t, websocket*> members_;  // in the order of joining
    std::uint64_t last_id_ = 0;
    async_mutex sending_;
};

}  // namespace eddy::http
