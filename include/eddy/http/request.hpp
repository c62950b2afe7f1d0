// Request of a server's handler: head, query, path parameters and the reader of its body.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/cookie.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy {
class stream;
}

namespace eddy::http {

/// Fields of a message.
using http1::header_list;

/// Value of a parameter of a path pattern.
struct path_argument {
    std::string_view name;  ///< the router's
    std::string value;      ///< decoded
};

/// Address of a client, as headers and logs have it.
struct client_address {
    endpoint at;  ///< of the connection's peer, or what a PROXY header says
    std::string
        host;  ///< as text: without the port and a zone, mapped IPv4 as IPv4; empty for Unix
};

/// Session of a request, for handlers that pass requests on to other servers. The request's
/// lifetime and thread.
class request_session {
public:
    /// Sends an interim response (102 to 199, or 100), behind what waits to be sent; a client of
    /// HTTP/1.0 gets none. Not after handle() has returned. Yields a result<>: errc::malformed for
    /// a status or fields that cannot be sent, errc::timed_out, or the stream's error.
    virtual task<result<>> send_interim(int status, http1::header_list fields) = 0;
    /// Leaves "100 Continue" to the handler, which sends it by send_interim() where the client
    /// expects it; reading the body sends none.
    virtual void take_expectation() noexcept = 0;
    /// Tasks that read the request's body beside the response. They are cancelled and awaited once
    /// the response has ended, before anything that belongs to the request is freed.
    virtual scope& background() = 0;
    /// The client's address, which is asked for once a connection. Lives as long as the session.
    /// Throws std::bad_alloc.
    virtual const client_address& client() = 0;

protected:
    ~request_session() = default;
};

/// Server that has answered a request in the place of this one, for logs.
struct upstream_note {
    std::shared_ptr<const std::string> name = nullptr;  ///< null for none
    unsigned tries = 0;                                 ///< requests that were sent for it
    duration time{};                                    ///< until the head of its response came
};

/// A request whose head has arrived. Its views are valid, and its body can be read, until the
/// response has been sent. One loop's thread.
class request {
public:
    /// A request of this head and body, both of which must outlive it. errc::malformed when the
    /// target or its query cannot be decoded.
    [[nodiscard]] static result<request> make(const http1::request_head& head,
                                              body_reader& content);
    /// The same without its query parameters, which stay as they were sent: for handlers that pass
    /// the target on.
    [[nodiscard]] static result<request> make_undecoded(const http1::request_head& head,
                                                        body_reader& content);

    /// "GET" and so on.
    std::string_view method() const noexcept { return head_->method; }
    /// As it was sent.
    std::string_view target() const noexcept { return head_->target; }
    /// The path, still percent-encoded; "/" where the target has none.
    std::string_view path() const noexcept { return path_; }
    /// The minor version of HTTP/1: 0 or 1.
    unsigned minor_version() const noexcept { return head_->minor_version; }
    /// The fields.
    const header_list& headers() const noexcept { return head_->headers; }
    /// The whole head as the codec read it.
    const http1::request_head& head() const noexcept { return *head_; }

    /// The target in parts, of which nothing is decoded.
    const http1::target_parts& parts() const noexcept { return parts_; }

    /// The parameters of the query, decoded, in their order.
    const std::vector<http1::query_parameter>& query() const noexcept { return query_; }
    /// The first value of a query parameter.
    std::optional<std::string_view> query(std::string_view name) const noexcept;

    /// The value of the first cookie of that name, a view of the Cookie fields. They are searched
    /// at each call; nothing is allocated.
    std::optional<std::string_view> cookie(std::string_view name) const noexcept;
    /// All cookies in their order, views of the Cookie fields.
    std::vector<cookie_pair> cookies() const;

    /// Value of a parameter of the route's pattern, decoded. Asserts that the pattern has it.
    std::string_view path_parameter(std::string_view name) const noexcept;
    /// The same of one of the form {name:int}: asserts that it is an integer.
    std::int64_t path_integer(std::string_view name) const noexcept;
    /// For a router: the parameters of the route.
    void set_route(std::vector<path_argument> arguments) noexcept;

    /// The connection that it came over, for the client's address, stream::peer(), and for its
    /// certificate, tls::info(). Null for a request that came over none, as in a test.
    const stream* connection() const noexcept { return connection_; }
    /// For a session: the connection, which must outlive the request.
    void set_connection(const stream& over) noexcept { connection_ = &over; }

    /// The session that it is answered by; null without one, as in a test.
    request_session* session() const noexcept { return session_; }
    /// For a session, which must outlive the request.
    void set_session(request_session& its) noexcept { session_ = &its; }

    /// For logs: the server that has answered it.
    void set_upstream(upstream_note what) noexcept { upstream_ = std::move(what); }
    /// The same; without a name for none.
    const upstream_note& upstream() const noexcept { return upstream_; }

    /// The body, to be read piece by piece.
    body_reader& body() const noexcept { return *body_; }
    /// For middleware: replaces the body's reader by `content`, such as a decoder around body().
    void set_body(std::unique_ptr<body_reader> content) noexcept;

    /// Awaits the whole body, which content() has then; the session's limits bound its size and
    /// its time. Yields a result<>; errors as of body_reader::read(). After one the session answers
    /// by itself, whatever the handler returns.
    task<result<>> collect();
    /// The body, once collect() has succeeded. May be moved from.
    std::string& content() noexcept { return content_; }
    /// The fields behind a body in chunks, once that has been read to its end.
    const header_list& trailers() const noexcept { return body_->trailers(); }

    /// Declares the request to be at fault: the session answers by request_handler::reject() with
    /// this status (400 to 599) and text, whatever the handler returns. read_form() and its like
    /// do this, so a handler only has to stop; one that answers in its own words takes it back by
    /// set_fault({}). The text must always live.
    void set_fault(http1::parse_error fault) noexcept { fault_ = fault; }
    /// The last declared fault; status 0 without one.
    const http1::parse_error& fault() const noexcept { return fault_; }

private:
    request(const http1::request_head& head, body_reader& content) noexcept
        : head_(&head), body_(&content) {}

    const http1::request_head* head_;
    body_reader* body_;
    std::unique_ptr<body_reader> own_body_;
    const stream* connection_ = nullptr;
    request_session* session_ = nullptr;
    upstream_note upstream_;
    http1::target_parts parts_;
    std::string_view path_;
    std::vector<http1::query_parameter> query_;
    std::vector<path_argument> arguments_;
    std::string content_;
    http1::parse_error fault_;
};

}  // namespace eddy::http
