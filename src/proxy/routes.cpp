// Order of routes, and the match of hosts and paths.
#include "proxy/routes.hpp"

#include "base/text/authority.hpp"

#include <algorithm>
#include <utility>

namespace eddy::proxy {
namespace {

constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool is_wildcard(std::string_view host) noexcept { return host.starts_with("*."); }

/// Greater for what is more specific.
auto specificity(const route& of) noexcept {
    return std::pair(host_specificity(of.host), of.path.size());
}

bool has_prefix(std::string_view path, std::string_view prefix) noexcept {
    if (!path.starts_with(prefix)) return false;
    return prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/';
}

/// True if resolved_path() changes nothing.
bool is_plain(std::string_view path) noexcept {
    return path.find('%') == std::string_view::npos && path.find("/.") == std::string_view::npos &&
           path.find("//") == std::string_view::npos;
}

constexpr int digit_of(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    const char low = lower(c);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// Decodes what is percent-encoded; a malformed '%' stays, as with servers that take it.
std::string decoded(std::string_view path) {
    std::string made;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const int high = path[i] == '%' && i + 2 < path.size() ? digit_of(path[i + 1]) : -1;
        const int low = high >= 0 ? digit_of(path[i + 2]) : -1;
        made += low >= 0 ? static_cast<char>(high * 16 + low) : path[i];
        if (low >= 0) i += 2;
    }
    return made;
}

}  // namespace

bool matches_host(std::string_view of_route, std::string_view host) noexcept {
    if (of_route.empty()) return true;
    if (!is_wildcard(of_route)) return of_route == host;
    const std::string_view below = of_route.substr(1);
    return host.size() > below.size() && host.ends_with(below);
}

std::pair<int, std::size_t> host_specificity(std::string_view of_route) noexcept {
    const int kind = of_route.empty() ? 0 : is_wildcard(of_route) ? 1 : 2;
    return {kind, of_route.size()};
}

std::string resolved_path(std::string_view path) {
    const std::string text = decoded(path);
    std::vector<std::string_view> segments;
    std::string_view rest = text;
    bool ends_open = false;  // with a slash
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const std::size_t end = std::min(rest.find('/'), rest.size());
        const std::string_view segment = rest.substr(0, end);
        rest.remove_prefix(end);
        ends_open = segment.empty() || segment == "." || segment == "..";
        if (segment == "..") {
            if (!segments.empty()) segments.pop_back();
        } else if (!ends_open) {
            segments.push_back(segment);
        }
    }
    std::string made;
    for (const std::string_view each : segments) made.append("/").append(each);
    if (ends_open || made.empty()) made += '/';
    return made;
}

route_table::route_table(std::vector<route> all) : all_(std::move(all)) {
    // Routes of equal specificity differ in their host or path, so their order does not matter.
    std::ranges::sort(all_, std::ranges::greater(), specificity);
}

const route* route_table::find(std::string_view host, std::string_view path) const {
    if (all_.size() == 1 && all_[0].host.empty() && all_[0].path == "/") return all_.data();
    const std::string name = host_of(host);
    std::string resolved;
    if (!is_plain(path)) {
        resolved = resolved_path(path);
        path = resolved;
    }
    for (const route& each : all_)
        if (matches_host(each.host, name) && has_prefix(path, each.path)) return &each;
    return nullptr;
}

bool is_below(const route& of, std::string_view path) {
    return has_prefix(resolved_path(path), of.path);
}

result<std::string> forwarded_target(const route& by, std::string_view path,
                                     std::string_view query) {
    std::string made;
    if (path.empty()) path = "/";
    if (by.prefix) {
        if (!has_prefix(path, by.path)) return fail(errc::malformed);
        std::string_view rest = path.substr(by.path.size());
        made = *by.prefix;
        if (made.ends_with('/') && rest.starts_with('/')) rest.remove_prefix(1);
        if (!made.ends_with('/') && !rest.empty() && !rest.starts_with('/')) made += '/';
        made += rest;
        // Dot segments must not lead out of the new prefix, either.
        if (!is_plain(made) && !has_prefix(resolved_path(made), resolved_path(*by.prefix)))
            return fail(errc::malformed);
    } else {
        made = path;
    }
    if (!query.empty()) made.append("?").append(query);
    return made;
}

}  // namespace eddy::proxy
