// Connection of a WebSocket after its opening handshake: the receiving and the sending half, the
// watch over an idle peer, and the end. Handles (http::websocket) and its server's task share it.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/wire/websocket.hpp>

#include "http/websocket/message_deflate.hpp"
#include "http/websocket/prepared_frames.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::http::detail {

/// The policy as both ends of a handshake must state it for these options.
std::optional<eddy::websocket::deflate_policy> deflate_policy_of(const websocket_options& options);

/// Terms of the handshake that a connection keeps.
struct websocket_terms {
    explicit websocket_terms(eddy::websocket::agreement&& agreed);

    std::unique_ptr<const std::string> protocol;  ///< null for none
    std::optional<eddy::websocket::deflate_terms> deflate;
};

/// One loop's thread.
class websocket_connection final : private timer, private posted_work {
public:
    using close_code = eddy::websocket::close_code;
    using opcode = eddy::websocket::opcode;

    /// A connection that frees itself once the last owner has gone and nothing of it runs.
    static std::shared_ptr<websocket_connection> make(
        stream peer, byte_buffer received, eddy::websocket::role own, websocket_terms agreed,
        std::shared_ptr<const websocket_options> options);

    /// As websocket's functions of these names.
    task<result<websocket_message>> receive(bool in_pieces);
    task<result<>> send(opcode kind, std::string_view data);
    result<> try_send(opcode kind, std::string_view data);
    task<result<>> send(std::shared_ptr<prepared_frames> message);
    result<> try_send(prepared_frames& message);
    result<> ping(std::string_view payload);
    task<result<>> close(close_code code, std::string_view reason);

    /// The end of a server's task: the closing handshake unless there was one.
    task<void> finish(close_code code);

    bool is_open() const noexcept { return !error_ && !has_sent_close_; }
    const websocket_close& closed_with() const noexcept;
    std::string_view protocol() const noexcept {
        return protocol_ ? std::string_view(*protocol_) : std::string_view();
    }
    bool is_compressed() const noexcept { return deflate_ != nullptr; }
    const queued_writer& writer() const noexcept { return writer_; }

private:
    websocket_connection(stream peer, byte_buffer received, eddy::websocket::role own,
                         websocket_terms agreed, std::shared_ptr<const websocket_options> options);
    ~websocket_connection() = default;
    static void retire(websocket_connection* unowned) noexcept;

    /// State of permessage-deflate (RFC 7692).
    struct deflating {
        eddy::websocket::deflate_terms terms;
        byte_buffer inflated;  // the inflated part of the current message
        utf8_validator text;   // of inflated pieces
        std::unique_ptr<message_inflater> inflater;
        std::unique_ptr<message_compressor> compressor;  // only where a context is kept
    };

    using found = std::optional<result<websocket_message>>;
    class reception;
    found take_received(bool in_pieces);
    found take(result<lease> got, bool in_pieces);
    found process(std::string_view input, std::size_t& used, bool in_pieces);
    found take_message(bool in_pieces);
    found inflate_next(bool in_pieces);
    found break_off(close_code code, std::error_code error);
    void begin_receiving(bool in_pieces);
    void release_idle_memory() noexcept;
    std::error_code read_error(std::error_code of_stream);
    void note_close(const eddy::websocket::step& step);

    result<> check_sending(opcode kind, std::string_view data) const;
    task<result<>> reserve(std::size_t size);
    bool is_full_for(std::size_t size) const noexcept;
    result<prepared_frames::form> choose(prepared_frames& message) const;
    result<> enqueue(const prepared_frames::form& message);
    result<> enqueue(opcode kind, std::string_view data);
    result<> enqueue_control(opcode kind, std::string_view payload);
    result<> send_close(close_code code, std::string_view reason);
    std::optional<eddy::websocket::mask_key> mask() const noexcept;
    result<std::string_view> compress(std::string_view data, byte_buffer& into);

    task<void> drop_messages(time_point until);
    task<void> end(time_point until);
    void set_error(std::error_code why) noexcept;

    void watch() noexcept;
    void fire() noexcept override;
    void run() noexcept override;  // the last step of retire()

    stream peer_;
    scope tasks_;  // of the writer
    std::shared_ptr<const websocket_options> options_;
    queued_writer writer_;
    eddy::websocket::parser parser_;
    byte_buffer input_;                   // received and not parsed
    byte_buffer message_;                 // the current message, as it was sent
    std::unique_ptr<deflating> deflate_;  // null where that was not agreed on
    std::unique_ptr<const std::string> protocol_;
    std::unique_ptr<websocket_close> closed_with_;  // null until the peer's close frame
    event ended_;                                   // no more is received
    std::error_code error_;
    time_point last_arrival_;
    eddy::websocket::role own_;
    bool is_receiving_ = false;
    bool is_taken_ = false;      // the message is with the caller
    bool is_in_pieces_ = false;  // the caller has a part of the current message
    bool is_complete_ = false;   // the current message has arrived whole, not yet inflated
    bool has_sent_close_ = false;
    bool has_peer_closed_ = false;
    bool awaits_pong_ = false;
    bool is_ending_ = false;
};

}  // namespace eddy::http::detail
