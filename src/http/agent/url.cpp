// Parsing and resolving of URLs.
#include "http/agent/url.hpp"

#include <eddy/wire/http1/target.hpp>

#include "base/text/text.hpp"

#include <algorithm>
#include <charconv>

namespace eddy::http {
namespace {

constexpr std::string_view plain_scheme = "http://";
constexpr std::string_view secure_scheme = "https://";

bool begins_with_scheme(std::string_view text, std::string_view scheme) noexcept {
    return equal_in_any_case(text.substr(0, scheme.size()), scheme);
}

std::string_view scheme_of(const url& of) noexcept {
    return of.is_secure ? secure_scheme : plain_scheme;
}

std::string join(std::string_view host, std::uint16_t port) {
    const bool is_ipv6 = host.contains(':');
    std::string made(is_ipv6 ? "[" : "");
    made.append(host).append(is_ipv6 ? "]:" : ":").append(std::to_string(port));
    return made;
}

std::string without_usual_port(std::string host_and_port, const url& of) {
    if (of.port == (of.is_secure ? 443 : 80)) host_and_port.resize(host_and_port.rfind(':'));
    return host_and_port;
}

std::string_view without_zone(std::string_view host) noexcept {
    return host.substr(0, host.find('%'));
}

/// Without the fragment, and with what some servers forget to encode encoded.
std::string cleaned(std::string_view text) {
    std::string made;
    for (const char c : text.substr(0, text.find('#'))) {
        if (c == ' ' || static_cast<unsigned char>(c) > 127)
            made += http1::percent_encode(std::string_view(&c, 1));
        else
            made += c;
    }
    return made;
}

/// Without its dot segments (RFC 3986, 5.2.4). `path` begins with a slash.
std::string without_dots(std::string_view path) {
    std::string made;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/', 1), path.size());
        const std::string_view segment = path.substr(0, end);
        path.remove_prefix(end);
        const bool is_up = segment == "/..";
        if (is_up) made.resize(made.empty() ? 0 : made.rfind('/'));
        if (!is_up && segment != "/.")
            made += segment;
        else if (path.empty())
            made += '/';
    }
    return made.empty() ? "/" : made;
}

}  // namespace

result<url> url::parse(std::string_view text) {
    url made;
    made.is_secure = begins_with_scheme(text, secure_scheme);
    if (!made.is_secure && !begins_with_scheme(text, plain_scheme)) return fail(errc::bad_address);
    const std::string rest =
        cleaned(text.substr(made.is_secure ? secure_scheme.size() : plain_scheme.size()));
    std::string_view authority(rest);
    authority = authority.substr(0, authority.find_first_of("/?"));
    std::string_view target(rest);
    target.remove_prefix(authority.size());
    if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
        auto user = http1::percent_decode(authority.substr(0, at));
        if (!user) return fail(errc::bad_address);
        made.user = std::move(*user);
        authority.remove_prefix(at + 1);
    }
    std::string_view port;
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        if (end == authority.npos) return fail(errc::bad_address);
        made.host = lower(authority.substr(1, end - 1));
        port = authority.substr(end + 1);
        if (made.host.find(':') == std::string::npos) return fail(errc::bad_address);
    } else {
        const std::size_t end = std::min(authority.find(':'), authority.size());
        made.host = lower(authority.substr(0, end));
        port = authority.substr(end);
        constexpr std::string_view forbidden = "[]:%@\\\"<>^`{|}";
        if (made.host.find_first_of(forbidden) != std::string::npos) return fail(errc::bad_address);
    }
    for (const char c : made.host)
        if (c <= ' ' || c == 127) return fail(errc::bad_address);
    if (made.host.empty()) return fail(errc::bad_address);
    made.port = made.is_secure ? 443 : 80;
    if (!port.empty() && port != ":") {
        port.remove_prefix(port.starts_with(':') ? 1 : 0);
        const auto [end, error] =
            std::from_chars(port.data(), port.data() + port.size(), made.port);
        const bool is_read = error == std::errc() && end == port.data() + port.size();
        if (!is_read || made.port == 0) return fail(errc::bad_address);
    }
    made.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
    if (!http1::split_target("GET", made.target)) return fail(errc::bad_address);
    return made;
}

result<url> url::resolve(std::string_view reference) const {
    const std::size_t colon = reference.find(':');
    if (colon < reference.find_first_of("/?#")) return parse(reference);
    const std::string_view scheme = scheme_of(*this);
    if (reference.starts_with("//")) return parse(std::string(scheme).append(reference.substr(2)));
    reference = reference.substr(0, reference.find('#'));
    std::string next;
    if (reference.empty()) {
        next = target;
    } else if (reference.starts_with('?')) {
        next = std::string(path()).append(reference);
    } else {
        const std::size_t query = std::min(reference.find('?'), reference.size());
        std::string full(reference.starts_with('/') ? std::string_view()
                                                    : path().substr(0, path().rfind('/') + 1));
        full += reference.substr(0, query);
        next = without_dots(full).append(reference.substr(query));
    }
    return parse(std::string(scheme) + join(host, port) + next);
}

std::string url::host_and_port() const { return join(without_zone(host), port); }

std::string url::authority() const { return without_usual_port(host_and_port(), *this); }

std::string_view url::path() const noexcept {
    return std::string_view(target).substr(0, target.find('?'));
}

std::string url::absolute_form() const {
    return std::string(scheme_of(*this)).append(authority()).append(target);
}

std::string url::to_string() const {
    return std::string(scheme_of(*this))
        .append(without_usual_port(join(host, port), *this))
        .append(target);
}

}  // namespace eddy::http
