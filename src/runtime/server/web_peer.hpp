// WebSocket's half of a server's client: frames in, messages in the server's framing out; and the
// frames of what it is sent.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/websocket.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Appends messages as frames: each line without its newline, or all as one. Text where that is
/// UTF-8, else binary.
void write_frames(byte_buffer& out, std::string_view messages, bool by_line);

/// State that only some clients have.
class client_extra {
public:
    client_extra() = default;
    client_extra(const client_extra&) = delete;
    client_extra& operator=(const client_extra&) = delete;
    virtual ~client_extra() = default;
};

/// One loop's thread.
class web_peer final : public client_extra {
public:
    enum class state : std::uint8_t {
        open,
        closed,  ///< by the peer; the answer is in replies()
        broken,  ///< the peer broke the protocol; the close frame is in replies()
    };

    /// Counts in `all` as long as it lives. A message has at most `max_message` bytes; beyond them
    /// it is closed with 1009.
    web_peer(std::atomic<std::uint32_t>& all, std::size_t max_message);
    ~web_peer() override;

    /// Appends the messages of `input` to `out`, each with a newline behind it if `by_line` and it
    /// has none; else their sizes go to sizes(). Throws std::bad_alloc.
    void decode(std::string_view input, byte_buffer& out, bool by_line);
    state now() const noexcept { return state_; }
    /// Frames that answer, to be sent and cleared.
    byte_buffer& replies() noexcept { return replies_; }

    /// Without lines: the size of the first message that was decoded and not dropped; 0: none.
    std::size_t first_size() const noexcept { return next_ < sizes_.size() ? sizes_[next_] : 0; }
    void drop_first() noexcept;

    /// Bytes that came behind the request.
    byte_buffer pending;

private:
    std::atomic<std::uint32_t>& all_;
    eddy::websocket::parser parser_;
    byte_buffer message_;  // in part
    byte_buffer replies_;
    std::vector<std::uint32_t> sizes_;
    std::size_t next_ = 0;
    state state_ = state::open;
};

/// The close frame of a server.
byte_buffer close_frame(eddy::websocket::close_code code);

}  // namespace eddy::runtime::server
