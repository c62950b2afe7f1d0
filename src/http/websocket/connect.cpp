// The client's end: URLs and the opening handshake.
#include <eddy/http/websocket.hpp>
#include <eddy/io/timeout.hpp>

#include "http/websocket/connection.hpp"
#include "http/websocket/mask_source.hpp"

#include <utility>

namespace eddy::http {
namespace {

using eddy::websocket::close_code;
using eddy::websocket::role;

/// A URL of WebSocket taken apart.
struct location {
    transport::address server;
    std::string host;  // value of Host
    std::string target;
};

/// Removes the zone from the IPv6 address of a URL and returns it with its '%'; empty for none.
std::string take_zone(std::string& url) {
    const std::size_t colon = url.find("://");
    if (colon == url.npos || url.compare(colon, 4, "://[") != 0) return {};
    const std::size_t close = url.find(']', colon);
    const std::size_t percent = url.find('%', colon);
    if (close == url.npos || percent >= close) return {};
    std::string zone = url.substr(percent, close - percent);
    url.erase(percent, close - percent);
    return zone;
}

result<location> read_url(std::string url, const transport::tls_parameters& tls) {
    // It means something on this machine alone, so the server does not get it.
    const std::string zone = take_zone(url);
    const auto parts = http1::split_target("GET", url);
    if (!parts || parts->form != http1::target_form::absolute || parts->authority.empty())
        return fail(errc::bad_address);
    const bool is_secure = http1::equal_ignoring_case(parts->scheme, "wss");
    if (!is_secure && !http1::equal_ignoring_case(parts->scheme, "ws"))
        return fail(errc::bad_address);
    location read;
    read.host = parts->authority;
    std::string authority(parts->authority);
    const std::size_t bracket = authority.rfind(']');
    const std::size_t colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
    if (colon == std::string::npos) authority += is_secure ? ":443" : ":80";
    if (!zone.empty()) authority.insert(bracket, zone);
    auto server = transport::parse((is_secure ? "tls://" : "tcp://") + authority);
    if (!server) return fail(server.error());
    read.server = std::move(*server);
    read.server.tls = tls;
    read.target = parts->path.empty() ? "/" : std::string(parts->path);
    if (url.find('?') != std::string_view::npos) read.target.append("?").append(parts->query);
    return read;
}

task<result<client_response>> shake_hands(client& by, client_request request) {
    co_return co_await by.send(std::move(request));
}

task<result<websocket>> open(transport::address server, std::string host, std::string target,
                             websocket_client_options options) {
    if (const result<> supplied = check_mask_source(); !supplied) co_return fail(supplied.error());
    eddy::websocket::client_offer offer;
    offer.key = eddy::websocket::make_key(next_handshake_key());
    offer.protocols = options.session.protocols;
    offer.deflate = detail::deflate_policy_of(options.session);
    client_request asking;
    asking.target = std::move(target);
    asking.headers = options.headers;
    if (!host.empty() && !asking.headers.contains("Host")) {
        if (const auto added = asking.headers.add("Host", host); !added)
            co_return fail(errc::bad_address);
    }
    if (const auto added = eddy::websocket::add_request_fields(asking.headers, offer); !added)
        co_return fail(added.error());

    client_options how;
    how.connect = options.connect;
    how.limits.response_time = options.handshake_time;
    how.limits.write_time = options.handshake_time;
    client by(std::move(server), std::move(how));
    auto answered = co_await shake_hands(by, std::move(asking));
    if (!answered) co_return fail(answered.error());
    if (answered->status != 101) co_return fail(errc::malformed);
    http1::response_head head;
    head.status = answered->status;
    head.headers = answered->headers;
    head.upgrade =
        head.headers.contains_token("Connection", "upgrade") && head.headers.contains("Upgrade");
    auto agreed = eddy::websocket::check_response(head, offer);
    if (!agreed) co_return fail(errc::malformed);
    auto switched = answered->take_connection();
    const bool lacks_deflate = options.needs_deflate && !agreed->deflate;
    websocket opened(detail::websocket_connection::make(
        std::move(switched.peer), std::move(switched.received), role::client,
        detail::websocket_terms(std::move(*agreed)),
        std::make_shared<const websocket_options>(std::move(options.session))));
    if (lacks_deflate) {
        static_cast<void>(
            co_await opened.close(close_code::extension_missing, "permessage-deflate is needed"));
        co_return fail(errc::unsupported);
    }
    co_return opened;
}

task<result<websocket>> fail_with(std::error_code why) { co_return fail(why); }

}  // namespace

task<result<websocket>> connect_websocket(std::string url, websocket_client_options options) {
    auto where = read_url(std::move(url), options.tls);
    if (!where) return fail_with(where.error());
    return open(std::move(where->server), std::move(where->host), std::move(where->target),
                std::move(options));
}

task<result<websocket>> connect_websocket(transport::address server, std::string target,
                                          websocket_client_options options) {
    return open(std::move(server), {}, std::move(target), std::move(options));
}

}  // namespace eddy::http
