// Frames of a server's clients over WebSocket.
#include "runtime/server/web_peer.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>

#include <utility>

namespace eddy::runtime::server {

using eddy::websocket::close_code;
using eddy::websocket::event;
using eddy::websocket::opcode;

void write_frames(byte_buffer& out, std::string_view messages, bool by_line) {
    while (!messages.empty()) {
        std::string_view one = messages;
        if (by_line) {
            const std::size_t end = messages.find('\n');
            if (end != std::string_view::npos) one = messages.substr(0, end);
            messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
        } else {
            messages = {};
        }
        eddy::websocket::frame head;
        head.kind = is_utf8(one) ? opcode::text : opcode::binary;
        eddy::websocket::write_frame(out, head, one);
    }
}

byte_buffer close_frame(close_code code) {
    byte_buffer made;
    const result<> written = eddy::websocket::write_close(made, code);
    EDDY_ASSERT(written.has_value());
    return made;
}

web_peer::web_peer(std::atomic<std::uint32_t>& all, std::size_t max_message)
    : all_(all), parser_(eddy::websocket::role::server, {max_message, max_message}) {
    all_.fetch_add(1, std::memory_order_relaxed);
}

web_peer::~web_peer() { all_.fetch_sub(1, std::memory_order_relaxed); }

void web_peer::decode(std::string_view input, byte_buffer& out, bool by_line) {
    while (state_ == state::open) {
        const auto step = parser_.collect(input, message_);
        if (step.what == event::error) {
            replies_.append(close_frame(parser_.error().code).text());
            state_ = state::broken;
            break;
        }
        input.remove_prefix(step.consumed);
        if (step.what == event::need_more) break;
        switch (step.what) {
            case event::message_end:
                out.append(message_.text());
                if (!by_line && !message_.empty())
                    sizes_.push_back(static_cast<std::uint32_t>(message_.size()));
                if (by_line && !message_.text().ends_with('\n')) out.append('\n');
                message_.clear();
                break;
            case event::ping: {
                const result<> written =
                    eddy::websocket::write_control(replies_, opcode::pong, step.data);
                EDDY_ASSERT(written.has_value());
                break;
            }
            case event::close:
                replies_.append(close_frame(step.code).text());
                state_ = state::closed;
                break;
            default: break;
        }
    }
    message_.release_if_empty();
}

void web_peer::drop_first() noexcept {
    EDDY_ASSERT(next_ < sizes_.size());
    if (++next_ < sizes_.size()) return;
    sizes_ = {};
    next_ = 0;
}

}  // namespace eddy::runtime::server
