// Reading of routes.
#include "runtime/proxy/route_source.hpp"

#include <eddy/wire/http1.hpp>

#include "base/text/authority.hpp"
#include "base/text/text.hpp"
#include "wire/http1/authority.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

/// Longest name of a protocol (RFC 7301, 3.1).
constexpr std::size_t max_alpn = 255;

bool is_path(std::string_view text) {
    return text.starts_with('/') && text.find('?') == std::string_view::npos &&
           http1::split_target("GET", text).has_value();
}

/// A host name, or "*." and one; empty for all. As routes have it.
outcome<std::string> read_host(std::string_view host, std::string_view flag,
                               std::string_view whole) {
    const std::string_view name = host.starts_with("*.") ? host.substr(2) : host;
    if (name.find('*') != std::string_view::npos)
        return refuse(
            400, fmt::format("{} {}: a host is NAME or *.NAME; leave it out for all", flag, whole));
    if (!host.empty() && (!http1::is_authority(name) || name.find(':') != std::string_view::npos))
        return refuse(400, fmt::format("{} {}: \"{}\" is no host name", flag, whole, host));
    return host_of(host);
}

/// The part before '=', which names host and path.
outcome<route_source> read_place(std::string_view text, std::string_view flag,
                                 std::string_view whole) {
    route_source made;
    const std::size_t slash = std::min(text.find('/'), text.size());
    std::string_view host = text.substr(0, slash);
    std::string_view path = text.substr(slash);
    if (const std::size_t arrow = path.find('>'); arrow != std::string_view::npos) {
        made.by.prefix = std::string(path.substr(arrow + 1));
        path = path.substr(0, arrow);
        if (!is_path(*made.by.prefix))
            return refuse(400,
                          fmt::format("{} {}: what is behind > is a path, such as /", flag, whole));
    }
    auto read = read_host(host, flag, whole);
    if (!read) return std::unexpected(std::move(read.error()));
    made.by.host = std::move(*read);
    if (!path.empty()) {
        if (!is_path(path))
            return refuse(400, fmt::format("{} {}: \"{}\" is no path", flag, whole, path));
        if (path.find('*') != std::string_view::npos)
            return refuse(400, fmt::format("{} {}: a path stands for all below it; write it "
                                           "without *",
                                           flag, whole));
        made.by.path = path;
    }
    // Requests are matched by the path that a backend reads.
    if (eddy::proxy::resolved_path(made.by.path) != made.by.path)
        return refuse(400, fmt::format("{} {}: write the path as {}", flag, whole,
                                       eddy::proxy::resolved_path(made.by.path)));
    return made;
}

constexpr std::string_view host_variable = "$host";

/// "http://HOST", "https://HOST[:PORT]", either with a path, or a path. $host may be the host.
bool is_redirect_target(std::string_view url) {
    // Browsers take a backslash for a slash.
    if (!http1::is_field_value(url) || url.find_first_of(" \\") != std::string_view::npos)
        return false;
    if (url.starts_with('/')) return !url.starts_with("//");
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) return false;
    if (url.substr(0, scheme) != "http" && url.substr(0, scheme) != "https") return false;
    const std::string_view rest = url.substr(scheme + 3);
    std::string authority(rest.substr(0, rest.find_first_of("/?#")));
    if (authority.starts_with(host_variable)) authority.replace(0, host_variable.size(), "host");
    if (!http1::is_authority(authority)) return false;
    const std::size_t colon = authority.rfind(':');
    if (colon == std::string::npos || authority.find(']', colon) != std::string::npos) return true;
    const std::string port = authority.substr(colon + 1);
    return port.size() <= 5 && (port.empty() || std::stoi(port) <= UINT16_MAX);
}

/// True for a variable that would be sent as it stands.
bool has_other_variable(std::string_view url) {
    const std::size_t first = url.find('$');
    if (first == std::string_view::npos) return false;
    const std::string_view rest = url.substr(first);
    if (!rest.starts_with(host_variable)) return true;
    const std::string_view behind = rest.substr(host_variable.size());
    const bool goes_on =
        !behind.empty() && (is_letter(behind[0]) || is_digit(behind[0]) || behind[0] == '_');
    return goes_on || behind.find('$') != std::string_view::npos;
}

}  // namespace

outcome<route_source> read_route(std::string_view text) {
    constexpr std::string_view flag = "--route";
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
        return refuse(
            400, fmt::format("--route {}: write HOST/PATH=BACKENDS, such as /api=:7001", text));
    auto made = read_place(text.substr(0, equals), flag, text);
    if (!made) return made;
    auto backends = read_sources(text.substr(equals + 1), flag);
    if (!backends) return std::unexpected(std::move(backends.error()));
    made->backends = std::move(*backends);
    return made;
}

outcome<route_source> read_tls_route(std::string_view text) {
    constexpr std::string_view flag = "--route";
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view place = text.substr(0, equals);
    const std::size_t slash = std::min(place.find('/'), place.size());
    const std::string_view alpn = place.substr(std::min(slash + 1, place.size()));
    const bool has_end = slash + 1 == place.size() || alpn.size() > max_alpn;
    if (place.empty() || has_end || equals + 1 >= text.size())
        return refuse(400, fmt::format("{} {}: write HOST=BACKENDS, such as a.example=:7443, or "
                                       "HOST/ALPN=BACKENDS, such as a.example/h2=:7443",
                                       flag, text));
    route_source made;
    auto host = read_host(place.substr(0, slash), flag, text);
    if (!host) return std::unexpected(std::move(host.error()));
    made.by.host = std::move(*host);
    made.alpn = alpn;
    auto backends = read_sources(text.substr(equals + 1), flag);
    if (!backends) return std::unexpected(std::move(backends.error()));
    made.backends = std::move(*backends);
    return made;
}

outcome<route_source> read_redirect(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view url =
        equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
    if (equals == 0 || !is_redirect_target(url))
        return refuse(400, fmt::format("--redirect {}: write HOST/PATH=URL, such as "
                                       "old.example.org=https://example.org",
                                       text));
    if (url.find_first_of("?#") != std::string_view::npos || has_other_variable(url))
        return refuse(400, fmt::format("--redirect {}: the path and query of the request are "
                                       "appended to the URL: write it without ? and #, and "
                                       "without variables besides one $host",
                                       text));
    auto made = read_place(text.substr(0, equals), "--redirect", text);
    if (!made) return made;
    made->by.redirect = url;
    return made;
}

}  // namespace eddy::runtime::proxy
