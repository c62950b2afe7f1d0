// Pool of connections to any number of servers: requests by URL, many at a time, with redirects,
// proxies, decoding and cookies.
//
//     http::client_pool web;
//     auto answer = co_await web.get("https://example.org/");
//     if (answer) text = (co_await answer->body().whole(1 << 20)).value_or("");
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/client.hpp>
#include <eddy/http/compression.hpp>
#include <eddy/http/proxy_settings.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/http1.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace eddy::http {

/// Options of a client_pool: limits, times for each phase, and automatic behaviour.
struct client_pool_options {
    /// At most so many connections to a host; those to a proxy of http count for the proxy.
    std::size_t host_connections = 16;
    /// At most so many connections. At the limit an idle one to another host is closed.
    std::size_t connections = 128;
    /// At most so many requests wait for a connection; one more fails with errc::limit_reached.
    std::size_t waiting = 1024;
    /// Longest such wait; errc::timed_out.
    duration waiting_time = std::chrono::seconds(30);

    /// Connecting; its timeout is that of the phase, the name's lookup included.
    tcp::connect_options connect = {};
    /// Limit on TLS's handshake, and on a proxy's connecting.
    duration handshake_time = std::chrono::seconds(10);
    /// Limits on servers: sizes, the times for writing, for the head, for a pause of the body, and
    /// for how long an unused connection is kept.
    client_limits limits = {};
    /// From send() to the end of the body, redirects included; errc::timed_out.
    duration total_time = duration::max();

    /// Files and versions of TLS. Servers' certificates are verified, by the system's authorities
    /// unless `ca` names others. ALPN offers http/1.1, whatever `alpn` says.
    transport::tls_parameters tls = {};
    /// By default those of the environment when the options are made.
    proxy_settings proxies = proxy_settings::from_environment();

    /// At most so many redirects are followed; one more fails with errc::limit_reached. 0: a
    /// redirect is the response.
    std::size_t redirects = 10;
    /// Follow redirects from https to http; otherwise such a redirect is the response.
    bool insecure_redirects = false;
    /// Send Accept-Encoding where the request has none, and decode the content: one coding, or two
    /// that were applied one after the other. More of them are errc::unsupported; content with one
    /// that is unknown is left as it is.
    bool decompress = true;
    /// Limits on what is decoded.
    expansion_limits expansion = {.ratio = 1000};
    /// Keep cookies, and send them; see cookie_jar for what it lacks.
    bool cookies = false;
};

/// A request to send to the server of a URL.
struct pool_request {
    /// A token.
    std::string method = "GET";
    /// A URL of http or https. A name and password in it become Authorization; a fragment is not
    /// sent.
    std::string url;
    /// The fields. Host, Content-Length and Transfer-Encoding are added.
    http1::header_list headers = {};
    /// The content.
    http::body body = {};
    /// Where to connect in place of the URL's host, such as unix:///run/app.sock; tcp or unix, and
    /// without a proxy. TLS goes over it for https. Redirects to other origins leave it.
    std::optional<transport::address> connect_to = std::nullopt;
    /// As client_request::may_repeat.
    bool may_repeat = false;
};

namespace detail {
struct pool_state;
struct pool_exchange;
}  // namespace detail

/// A response whose head has arrived, and the connection that its body is read from: the destructor
/// returns it to the pool if the body has been read, and closes it otherwise. It may outlive the
/// pool. One loop's thread.
class pool_response {
public:
    /// `other` may then only be assigned to or destroyed.
    pool_response(pool_response&& other) noexcept;
    /// The same; the previous connection is returned or closed.
    pool_response& operator=(pool_response&& other) noexcept;
    ~pool_response();

    /// 200 to 999, or 101.
    int status = 0;
    /// The fields; without Content-Encoding and Content-Length where the content is decoded.
    http1::header_list headers;
    /// The URL that answered, after redirects, without a user.
    std::string url;

    /// The body, decoded. Errors beside those of body_reader: errc::timed_out for the total time;
    /// of content that is damaged or expands beyond a limit those of decompress().
    body_reader& body() const noexcept;

private:
    friend struct detail::pool_state;
    pool_response();
    std::unique_ptr<detail::pool_exchange> exchange_;
};

/// Clients of any number of servers, each connection used by one request at a time and kept between
/// them. Requests beyond the limits wait in the order in which they came. One loop's thread, and
/// destroyed while that loop is there.
class client_pool {
public:
    /// Connects to nothing yet.
    explicit client_pool(client_pool_options options = {});
    /// As close().
    ~client_pool();
    client_pool(const client_pool&) = delete;
    client_pool& operator=(const client_pool&) = delete;

    /// Sends a request and awaits the head of its response, after redirects: 301, 302, 303, 307 and
    /// 308 with a Location. 303 makes the method GET, and so do 301 and 302 of POST; the content
    /// and its fields go then. Authorization, Cookie and a user are not sent to another origin. A
    /// redirect that would send a producer's content again is the response. Yields a
    /// result<pool_response>.
    ///
    /// Fails with errc::bad_address for a URL that cannot be read, errc::limit_reached,
    /// errc::timed_out, errc::closed, errc::cancelled, ECONNREFUSED and EACCES from a proxy that
    /// does not connect or wants another user, errc::unsupported for a proxy of an unknown scheme
    /// and for content with too many codings, and as client::send() and tls::connect(). The pool
    /// must live until then.
    task<result<pool_response>> send(pool_request request);
    /// The same for a GET.
    task<result<pool_response>> get(std::string url);

    /// Closes all idle connections. Requests that wait, and later ones, fail with errc::closed;
    /// responses continue.
    void close() noexcept;

    /// Connections that are in use or idle.
    std::size_t connections() const noexcept;
    /// Idle connections.
    std::size_t idle_connections() const noexcept;
    /// Requests that wait for a connection.
    std::size_t waiting() const noexcept;

private:
    std::shared_ptr<detail::pool_state> state_;
};

}  // namespace eddy::http
