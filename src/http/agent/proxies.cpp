// Reading of proxy variables, hosts without a proxy, and CONNECT.
#include "http/agent/proxies.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/http1.hpp>

#include "base/text/base64.hpp"
#include "base/text/text.hpp"
#include "wire/http1/text.hpp"

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace eddy::http {
namespace {

/// The first variable of these that is not empty.
std::string first_of(const environment& look_up, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const char* const value = look_up(name);
        if (value != nullptr && *value != '\0') return value;
    }
    return {};
}

bool is_listed(std::string_view list, const url& to) {
    std::string_view item;
    while (http1::next_item(list, item)) {
        if (item == "*") return true;
        std::string_view host = item;
        // One colon alone comes before a port; more of them are of an IPv6 address.
        const std::size_t colon = host.find(':');
        if (host.starts_with('[')) {
            const std::size_t end = std::min(host.find(']'), host.size());
            const std::string_view port = host.substr(std::min(end + 1, host.size()));
            if (!port.empty() && port != ":" + std::to_string(to.port)) continue;
            host = host.substr(1, end - 1);
        } else if (colon != host.npos && host.rfind(':') == colon) {
            if (host.substr(colon + 1) != std::to_string(to.port)) continue;
            host = host.substr(0, colon);
        }
        if (host.starts_with("*.")) host.remove_prefix(1);
        if (host.starts_with('.')) host.remove_prefix(1);
        if (host.empty() || host.size() > to.host.size()) continue;
        const std::size_t before = to.host.size() - host.size();
        if (!equal_in_any_case(std::string_view(to.host).substr(before), host)) continue;
        if (before == 0 || to.host[before - 1] == '.') return true;
    }
    return false;
}

}  // namespace

proxy_settings read_proxies(const environment& look_up) {
    proxy_settings read;
    read.http = first_of(look_up, {"http_proxy", "all_proxy", "ALL_PROXY"});
    read.https = first_of(look_up, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
    read.no_proxy = first_of(look_up, {"no_proxy", "NO_PROXY"});
    return read;
}

proxy_settings proxy_settings::from_environment() {
    return read_proxies([](const char* name) { return std::getenv(name); });
}

result<std::optional<url>> proxy_for(const proxy_settings& from, const url& to) {
    const std::string& text = to.is_secure ? from.https : from.http;
    if (text.empty() || is_listed(from.no_proxy, to)) return std::nullopt;
    const std::size_t scheme = text.find("://");
    if (scheme == std::string::npos) {
        auto read = url::parse("http://" + text);
        if (!read) return fail(read.error());
        return std::move(*read);
    }
    const std::string name = lower(text.substr(0, scheme));
    if (name != "http" && name != "https") return fail(errc::unsupported);
    auto read = url::parse(text);
    if (!read) return fail(read.error());
    return std::move(*read);
}

std::string basic_credentials(std::string_view user) {
    std::string credentials(user);
    if (credentials.find(':') == std::string::npos) credentials += ':';
    return "Basic " + base64(credentials);
}

task<result<>> open_tunnel(stream& through, url to, std::string user) {
    byte_buffer head;
    http1::head_writer writer(head);
    writer.request("CONNECT", to.host_and_port()).field("Host", to.host_and_port());
    if (!user.empty()) writer.field("Proxy-Authorization", basic_credentials(user));
    const auto written = writer.end(http1::body_framing::none());
    if (!written) co_return written;
    const auto sent = co_await through.write_all(head.bytes());
    if (!sent) co_return sent;

    constexpr std::size_t interim_limit = 16;
    http1::response_parser parser;
    parser.expect_response_to("CONNECT");
    byte_buffer input;
    std::size_t interim = 0;
    for (;;) {
        const http1::step step = parser.parse(input.text());
        input.consume(step.consumed);
        if (step.what == http1::event::error) co_return fail(errc::malformed);
        if (step.what == http1::event::head) {
            const int status = parser.head().status;
            if (status == 407) co_return fail(std::errc::permission_denied);
            if (status >= 300) co_return fail(std::errc::connection_refused);
            // The server behind it speaks second, so there is nothing more yet.
            if (status >= 200 && input.empty()) co_return result<>();
            if (status >= 200 || status == 101) co_return fail(errc::malformed);
            if (++interim > interim_limit) co_return fail(errc::limit_reached);
        }
        if (step.what != http1::event::need_more) continue;
        const auto received = co_await through.read();
        if (!received && received.error() == errc::end_of_stream) co_return fail(errc::truncated);
        if (!received) co_return fail(received.error());
        input.append(received->bytes());
    }
}

}  // namespace eddy::http
