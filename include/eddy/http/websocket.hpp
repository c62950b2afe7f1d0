// WebSocket (RFC 6455) over HTTP/1.1, at a server and at a client: whole messages in and out, with
// fragments, pings, compression (RFC 7692) and the closing handshake done here.
//
//     task<http::response> enter(http::request& incoming) {
//         co_return http::upgrade(incoming, options, echo);
//     }
//
//     task<void> echo(http::websocket peer) {
//         while (auto message = co_await peer.receive()) {
//             auto sent = co_await peer.send(*message);
//             if (!sent) co_return;
//         }
//     }
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/client.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/websocket.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {

/// Limits and choices of one end of WebSockets. duration::max() is never.
struct websocket_options {
    /// Subprotocols that a server accepts or a client offers, the preferred one first.
    std::vector<std::string> protocols = {};
    /// Values of Origin that a server takes, such as "https://example.org"; a page of another one
    /// gets 403, a request without Origin comes from no page and passes. Empty: every origin.
    std::vector<std::string> origins = {};
    /// permessage-deflate; none without. Contexts that are kept cost up to 300 KiB a connection,
    /// so both are dropped between messages unless this says otherwise.
    std::optional<eddy::websocket::deflate_policy> deflate = {};
    /// Messages of fewer bytes are sent uncompressed.
    std::size_t compressed_from = 256;
    /// Bytes of a message for receive(), after inflating; beyond them 1009. receive_piece() has no
    /// such limit.
    std::size_t max_message = 1024 * 1024;
    /// Accept binary messages; otherwise they end the connection with 1003.
    bool takes_binary = true;
    /// Time without a byte of the peer after which it gets a ping.
    duration idle_time = std::chrono::seconds(60);
    /// Time for a byte to come then; errc::timed_out.
    duration pong_time = std::chrono::seconds(20);
    /// Limit on a send() that waits for room in the queue (slow_reader_policy::wait);
    /// errc::timed_out.
    duration write_time = std::chrono::seconds(15);
    /// Limit on the closing handshake; then the connection is cut.
    duration close_time = std::chrono::seconds(5);
    /// Queue of bytes that the peer has not taken yet, and the policy for a peer that reads slowly.
    /// A message longer than max_queued_bytes cannot be sent; the head of its frame does not count.
    /// With drop_oldest no compression context is kept.
    queued_writer_options queue = {};
};

/// The policy of websocket_options::deflate that keeps no memory between messages.
inline constexpr eddy::websocket::deflate_policy frugal_deflate{.resets_own_context = true,
                                                                .resets_peer_context = true};

/// A message, or a piece of one.
struct websocket_message {
    /// Text in UTF-8, else binary.
    bool is_text = true;
    /// The message ends with this piece; for receive_piece().
    bool is_last = true;
    /// The content, valid until the next receive() or receive_piece().
    std::string_view data;
};

/// Close code and reason of the peer.
struct websocket_close {
    /// close_code::none: its close frame had none; close_code::abnormal: there was no close frame.
    eddy::websocket::close_code code = eddy::websocket::close_code::abnormal;
    /// UTF-8.
    std::string reason = {};
};

namespace detail {
class websocket_connection;
}

class prepared_message;

/// One end of a WebSocket. Several coroutines of its loop may send; one receives. Pings, pongs and
/// the peer's close are handled inside receive(), so some coroutine should always receive. Move
/// only; operations in progress need the object to stay. One loop's thread.
class websocket {
public:
    /// A closed one.
    websocket() noexcept = default;
    /// For upgrade() and connect_websocket().
    explicit websocket(std::shared_ptr<detail::websocket_connection> of) noexcept
        : connection_(std::move(of)) {}
    /// `other` is a closed one afterwards.
    websocket(websocket&& other) noexcept = default;
    /// The same.
    websocket& operator=(websocket&& other) noexcept = default;
    /// A client's connection is cut if close() was not called, with a close frame of 1001 as far as
    /// it can be sent at once. A server's connection lasts until its task has ended.
    ~websocket() = default;

    /// True while messages can be sent.
    explicit operator bool() const noexcept;

    /// Awaits the next whole message, of at most max_message bytes. Yields a
    /// result<websocket_message>. Fails with
    /// - errc::end_of_stream: the peer has closed, see closed_with(); the answer has been sent;
    /// - errc::closed after close(), or once the connection has ended;
    /// - errc::malformed, errc::limit_reached or errc::unsupported: the peer broke the protocol, a
    ///   message was too big, or binary; a close frame with 1002, 1007, 1009 or 1003 has been sent;
    /// - errc::truncated: the connection ended without a close frame;
    /// - errc::timed_out: the peer did not answer a ping;
    /// - errc::cancelled, after which another call continues; ENOMEM, or the stream's error.
    task<result<websocket_message>> receive();
    /// The same in pieces as they arrive, for large messages: each non-empty, but perhaps the last.
    /// Not in the middle of a message of receive(), and the other way round: that is asserted.
    task<result<websocket_message>> receive_piece();

    /// Sends a text, which must be UTF-8 and must live until completion; messages go out in the
    /// order of the calls. Yields a result<>: once the kernel has it or it is queued. At the
    /// queue's limit it waits, drops or disconnects as the policy says. Fails with errc::malformed
    /// for what is no UTF-8, errc::limit_reached for a message longer than the queue, and at its
    /// limit under `disconnect`, errc::closed after a close frame in either direction,
    /// errc::timed_out when the peer does not read (the connection is cut then), errc::cancelled,
    /// or the stream's error.
    task<result<>> send(std::string_view text);
    /// The same for a binary message.
    task<result<>> send(const_bytes binary);
    /// The same for a message of the same kind as one that was received.
    task<result<>> send(websocket_message message);
    /// The same for a message that is prepared for many peers; see <eddy/http/broadcast.hpp>.
    task<result<>> send(prepared_message message);
    /// As send(), but never waits: errc::limit_reached where that would. Nothing is compressed
    /// then.
    [[nodiscard]] result<> try_send(std::string_view text);
    /// The same for a binary message.
    [[nodiscard]] result<> try_send(const_bytes binary);
    /// The same for a prepared message. A peer that keeps its compression context gets one that is
    /// compressed without it, after which the context begins anew.
    [[nodiscard]] result<> try_send(const prepared_message& message);
    /// Sends a ping, whose pong receive() passes over; errors as of try_send(), and
    /// errc::limit_reached for more than 125 bytes.
    [[nodiscard]] result<> ping(std::string_view payload = {});

    /// Closes: sends what is queued and a close frame, awaits the peer's, and ends the connection;
    /// messages that still come are dropped unless a coroutine receives them. At most close_time
    /// passes. `reason` must live until completion. Yields a result<>: errc::malformed for a code
    /// that may not be sent or a reason that is no UTF-8, errc::timed_out, errc::cancelled, or the
    /// error that had ended the connection.
    task<result<>> close(eddy::websocket::close_code code = eddy::websocket::close_code::normal,
                         std::string_view reason = {});

    /// The peer's close code and reason, once receive() has failed with errc::end_of_stream or
    /// close() has succeeded. Valid as long as this object.
    const websocket_close& closed_with() const noexcept;
    /// The subprotocol that was agreed on; empty for none.
    std::string_view protocol() const noexcept;
    /// True if permessage-deflate was agreed on.
    bool is_compressed() const noexcept;
    /// Bytes that wait for the peer to read.
    std::size_t queued_bytes() const noexcept;
    /// Messages that drop_oldest has dropped.
    std::uint64_t dropped() const noexcept;

private:
    std::shared_ptr<detail::websocket_connection> connection_;
};

/// Service of one WebSocket at a server. Once it returns, the connection is closed with 1000, or
/// with 1011 if it throws; when the session is cancelled, receive() fails with errc::cancelled, and
/// the connection is closed with 1001. The callable lives until the task has ended.
using websocket_service = std::function<task<void>(websocket peer)>;

/// The response to a request for a WebSocket: 101, behind which `service` has the connection, or
/// 400, 403 or 426 with what such a response needs. For handlers of GET. `options` are shared by
/// all connections.
response upgrade(const request& incoming, std::shared_ptr<const websocket_options> options,
                 websocket_service service);
/// The same with a copy of the options.
response upgrade(const request& incoming, websocket_options options, websocket_service service);

/// Options of a client's WebSocket.
struct websocket_client_options {
    /// Options of the WebSocket, and the offered protocols and compression.
    websocket_options session = {};
    /// Further fields of the request, such as Origin, Authorization or Cookie.
    http1::header_list headers = {};
    /// Closes the connection with 1010 when the server does not agree on compression;
    /// errc::unsupported.
    bool needs_deflate = false;
    /// For the connection, and TLS's parameters of wss.
    tcp::connect_options connect = {};
    /// Authority, certificates and versions for wss.
    transport::tls_parameters tls = {};
    /// From the connection to the end of the server's answer; errc::timed_out.
    duration handshake_time = std::chrono::seconds(15);
};

/// Connects to ws://host[:port][/path][?query] or wss://…, and makes the opening handshake. Yields
/// a result<websocket>. Fails with errc::bad_address for another URL, errc::malformed when the
/// server's answer is none to the request or its status is not 101, errc::unsupported as
/// needs_deflate says, errc::timed_out, errc::cancelled, or as transport::connect() does.
task<result<websocket>> connect_websocket(std::string url, websocket_client_options options = {});
/// The same over any transport; `target` is the path and the query.
task<result<websocket>> connect_websocket(transport::address server, std::string target,
                                          websocket_client_options options = {});

}  // namespace eddy::http
