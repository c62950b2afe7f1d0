// Prepared messages, and groups of WebSockets that get them.
#include <eddy/http/broadcast.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/io/loop.hpp>

#include "http/websocket/connection.hpp"
#include "http/websocket/message_deflate.hpp"
#include "http/websocket/prepared_frames.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace eddy::http {
namespace detail {
namespace {

using eddy::websocket::opcode;

std::shared_ptr<const byte_buffer> frame_of(opcode kind, std::string_view payload,
                                            bool is_compressed) {
    byte_buffer made;
    made.reserve(payload.size() + eddy::websocket::frame_head::size_limit);
    eddy::websocket::frame head;
    head.kind = kind;
    head.is_compressed = is_compressed;
    eddy::websocket::write_frame(made, head, payload);
    return std::make_shared<const byte_buffer>(std::move(made));
}

}  // namespace

prepared_frames::prepared_frames(opcode kind, std::string_view content)
    : kind_(kind),
      is_valid_(kind != opcode::text || is_utf8(content)),
      size_(content.size()),
      plain_(frame_of(kind, content, false)) {}

/// The plain frame where compression gains nothing.
prepared_frames::shared_frame prepared_frames::compress(unsigned window_bits) const {
    byte_buffer packed;
    const auto done = single_message_compressor(window_bits).add(content(), true, packed);
    if (!done) throw std::bad_alloc();
    if (packed.size() >= size_) return plain_;
    return frame_of(kind_, packed.text(), true);
}

result<prepared_frames::form> prepared_frames::compressed(unsigned window_bits) try {
    EDDY_ASSERT(window_bits < by_window_.size());
    // Another thread that needs the same frame waits for it.
    const std::lock_guard lock(guard_);
    shared_frame& made = by_window_[window_bits];
    if (!made) made = compress(window_bits);
    return form{made, made != plain_};
} catch (const std::bad_alloc&) {
    return fail(errno_code(ENOMEM));
}

}  // namespace detail

using eddy::websocket::opcode;

prepared_message::prepared_message(std::string_view text)
    : frames_(std::make_shared<detail::prepared_frames>(opcode::text, text)) {}

prepared_message::prepared_message(const_bytes binary)
    : frames_(std::make_shared<detail::prepared_frames>(opcode::binary, as_text(binary))) {}

bool prepared_message::is_text() const noexcept { return frames_->kind() == opcode::text; }

std::string_view prepared_message::content() const noexcept { return frames_->content(); }

task<result<>> websocket::send(prepared_message message) {
    if (!connection_) co_return fail(errc::closed);
    co_return co_await connection_->send(message.frames_);
}

result<> websocket::try_send(const prepared_message& message) {
    if (!connection_) return fail(errc::closed);
    return connection_->try_send(*message.frames_);
}

websocket_group::~websocket_group() {
    EDDY_PRECONDITION(members_.empty(), "a websocket_group was destroyed before its members");
}

task<result<std::size_t>> websocket_group::broadcast(prepared_message message) {
    const std::uint64_t last = last_id_;
    const auto order = co_await sending_.lock();
    if (!order) co_return fail(order.error());
    std::size_t reached = 0;
    std::size_t in_a_row = 0;
    // Members may leave while it yields.
    for (std::uint64_t at = 0;;) {
        const auto next = members_.upper_bound(at);
        if (next == members_.end() || next->first > last) break;
        if (in_a_row == peers_in_a_row) {
            in_a_row = 0;
            co_await loop::current().yield();
            continue;
        }
        ++in_a_row;
        at = next->first;
        const result<> sent = next->second->try_send(message);
        if (sent) ++reached;
        if (!sent && sent.error() == errc::malformed) co_return fail(sent.error());
    }
    co_return reached;
}

}  // namespace eddy::http
