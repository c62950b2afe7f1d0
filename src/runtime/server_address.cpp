// Reading of --target.
#include "runtime/server_address.hpp"

#include <eddy/wire/http1/target.hpp>

#include "base/text/text.hpp"
#include "runtime/serving/tls_options.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::runtime {
namespace {

using transport::scheme;

/// A value, and the flag that has it.
struct value_of {
    std::string_view text;
    std::string_view flag;
};

std::unexpected<problem> not_a_target(const value_of& of, std::string_view why) {
    return refuse(400, fmt::format("{} cannot be \"{}\": {}", of.flag, of.text, why));
}

/// "wss" of "wss://host/"; empty without a scheme.
std::string_view scheme_of(std::string_view text) noexcept {
    const std::size_t end = text.find("://");
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

outcome<server_address> read_websocket(const value_of& of, bool is_secure) {
    const std::string_view text = of.text;
    const std::size_t end = std::min(text.find('#'), text.size());
    const std::string_view url = text.substr(0, end);
    const std::string_view parameters = text.substr(std::min(end + 1, text.size()));
    if (end < text.size() && !is_secure)
        return not_a_target(of, "behind a # stand parameters of TLS, for wss:// alone");
    const auto parts = http1::split_target("GET", url);
    if (!parts || parts->form != http1::target_form::absolute || parts->authority.empty())
        return not_a_target(
            of,
            "write ws://HOST[:PORT][/PATH], in which other bytes than letters, digits and "
            "-._~/?=& stand as %XX");
    std::string uri(is_secure ? "tls://" : "tcp://");
    uri += parts->authority;
    const std::size_t bracket = parts->authority.rfind(']');
    const bool has_port =
        parts->authority.find(':', bracket == std::string_view::npos ? 0 : bracket) !=
        std::string_view::npos;
    if (!has_port) uri += is_secure ? ":443" : ":80";
    if (!parameters.empty()) uri.append("?").append(parameters);
    auto where = transport::parse(uri);
    if (!where) return not_a_target(of, transport::explain(uri, where.error()));
    if (where->host.empty()) return not_a_target(of, "name the host to connect to");
    if (where->port == 0) return not_a_target(of, "name the port to connect to");
    if (auto whole = check_tls_files(where->tls); !whole) return std::unexpected(whole.error());
    return server_address{std::move(*where), std::string(url)};
}

outcome<server_address> read_datagram(const value_of& of) {
    auto where = transport::parse(of.text);
    if (!where) return not_a_target(of, transport::explain(of.text, where.error()));
    if (where->host.empty()) return not_a_target(of, "name the host to send to");
    if (where->port == 0) return not_a_target(of, "name the port to send to");
    return server_address{std::move(*where)};
}

}  // namespace

bool server_address::has_keepalive() const noexcept {
    return is_websocket() || where.kind == scheme::tcp || where.kind == scheme::tls;
}

std::string server_address::to_string() const {
    return is_websocket() ? url.substr(0, url.find('?')) : where.to_string();
}

std::string server_address::explain(std::error_code error) const {
    if (is_websocket() && error == errc::malformed)
        return fmt::format("\"{}\" cannot be opened: the server did not agree on WebSocket",
                           to_string());
    return transport::explain(where.to_string(), error);
}

outcome<server_address> read_server_address(std::string_view text, std::string_view flag) {
    if (text.size() > transport::max_uri_size)
        return refuse(400, fmt::format("{} has {} bytes; at most {} are a URI", flag, text.size(),
                                       transport::max_uri_size));
    const std::string_view kind = scheme_of(text);
    if (is_word(kind, "ws")) return read_websocket({text, flag}, false);
    if (is_word(kind, "wss")) return read_websocket({text, flag}, true);
    if (is_word(kind, "udp")) return read_datagram({text, flag});
    auto where = read_target(text, flag);
    if (!where) return std::unexpected(std::move(where.error()));
    return server_address{std::move(*where)};
}

}  // namespace eddy::runtime
