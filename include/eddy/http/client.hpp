// Client: requests to one server over a connection of any transport, one at a time, kept alive
// between them. Response bodies are streamed.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/http1.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace eddy::http {

/// Limits on the server of a client. duration::max() is none.
struct client_limits {
    std::size_t start_line = 8 * 1024;     ///< bytes of a status line; errc::malformed
    std::size_t header_bytes = 16 * 1024;  ///< bytes of a head's field lines; errc::malformed
    std::size_t header_count = 100;        ///< field lines of a head; errc::malformed
    std::size_t interim_responses = 16;    ///< 1xx before a response; errc::limit_reached

    /// Time for the server to accept 256 KiB of a request, or the piece that a producer writes if
    /// that is smaller.
    duration write_time = std::chrono::seconds(30);
    /// From the end of the request to the end of the response's head.
    duration response_time = std::chrono::seconds(60);
    /// Longest pause of a response's body.
    duration read_time = std::chrono::seconds(60);
    /// A connection idle for longer is not used again.
    duration keep_time = std::chrono::seconds(30);

    /// The same limits.
    friend bool operator==(const client_limits&, const client_limits&) = default;
};

/// Options of a client: connecting, and limits.
struct client_options {
    /// For schemes that TCP carries; its timeout for all.
    tcp::connect_options connect = {};
    /// Limits on the server.
    client_limits limits = {};
    /// Check of each new connection before anything is sent; its error closes the connection and is
    /// returned by send(). Empty: no check.
    std::function<result<>(const stream& connected)> check = nullptr;
    /// Opens each connection in place of transport::connect(), such as through a proxy; its error
    /// is that of send(). It is called while the client lives, and what its task uses must live as
    /// long. Empty: none.
    std::function<task<result<stream>>()> connector = nullptr;
};

/// A request to send.
struct client_request {
    /// A token.
    std::string method = "GET";
    /// Encoded already, see http1::percent_encode().
    std::string target = "/";
    /// The fields. Host is added where it is missing; Content-Length and Transfer-Encoding follow
    /// from the body.
    http1::header_list headers = {};
    /// The content.
    http::body body = {};
    /// Send it once more, as if its method were idempotent, where a kept connection ended before a
    /// byte of the response came. For requests that may be processed twice.
    bool may_repeat = false;
};

class client_connection;
namespace detail {
class client_exchange;
struct client_plan;
}  // namespace detail

/// A response whose head has arrived. Its body is read from the connection: to its end before the
/// next request, or that takes a new connection. One loop's thread.
class client_response {
public:
    /// 200 to 999, or 101.
    int status = 0;
    /// The fields.
    http1::header_list headers;

    /// The body. Not after the client's next request: that is asserted.
    body_reader& body() const noexcept;

    /// A connection that another protocol has from now on.
    struct switched {
        stream peer;           ///< for the other protocol
        byte_buffer received;  ///< bytes of the server after its response
    };
    /// Takes the connection of a response 101 over; anything else is an assertion. Not after the
    /// client's next request.
    switched take_connection();

private:
    friend class detail::client_exchange;
    std::shared_ptr<client_connection> connection_;
    std::uint64_t serial_ = 0;  // of the exchange
};

/// A client of one server. It connects with the first request, and again where the connection has
/// been closed, has idled for too long, or has part of a response unread. One request at a time;
/// one loop's thread.
class client {
public:
    /// Client of the server at this address; connects to nothing yet. Over TLS it offers http/1.1
    /// by ALPN, whatever tls_parameters::alpn says; a server that speaks only others fails send()
    /// with errc::no_common_protocol.
    explicit client(transport::address server, client_options options = {});
    ~client();
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    /// Sends a request and awaits the head of its response. Yields a result<client_response>.
    ///
    /// A refusal (400 and beyond) that comes before the request has been sent whole ends the
    /// sending; another response is yielded when all has been sent. A kept connection on which the
    /// server has sent anything since, or that it has closed, is not used. A request that meets one
    /// which it closes at that moment is sent once more on a new one if it is repeatable: its
    /// method idempotent, or `may_repeat`, and its body a text.
    ///
    /// Fails with errc::malformed for a request that cannot be written and a response that cannot
    /// be read, errc::end_of_stream when the server closes without a response, errc::limit_reached,
    /// errc::timed_out, errc::cancelled, the check's error, the producer's, that of
    /// transport::connect(), or the stream's. The connection is closed then.
    task<result<client_response>> send(client_request request);

    /// True if the next request can use the present connection: false if it was closed, has idled
    /// for too long, or has part of a response that has not arrived yet.
    bool is_reusable();

    /// Closes the connection; the body of a response ends with an error.
    void close() noexcept;

private:
    std::shared_ptr<const detail::client_plan> plan_;
    std::shared_ptr<client_connection> connection_;
    bool busy_ = false;
};

}  // namespace eddy::http
