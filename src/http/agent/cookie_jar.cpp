// Storing and matching of cookies.
#include <eddy/http/cookie_jar.hpp>

#include "base/text/text.hpp"
#include "http/fields/http_date.hpp"
#include "wire/http1/text.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace eddy::http {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

bool is_address(std::string_view host) {
    const std::string text(host);
    std::array<unsigned char, 16> bytes{};
    return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

/// True if the host is the domain or a subdomain of it.
bool is_in_domain(std::string_view host, std::string_view domain) {
    if (host == domain) return true;
    return host.size() > domain.size() && host.ends_with(domain) &&
           host[host.size() - domain.size() - 1] == '.' && !is_address(host);
}

bool is_below_path(std::string_view path, std::string_view of) {
    if (!path.starts_with(of)) return false;
    return path.size() == of.size() || of.ends_with('/') || path[of.size()] == '/';
}

/// The folder of a request's path (RFC 6265, 5.1.4).
std::string_view default_path(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == 0 || slash == path.npos ? std::string_view("/") : path.substr(0, slash);
}

/// The moment that Max-Age is of; none for what is no number.
std::optional<std::int64_t> parse_age(std::string_view text, std::int64_t now) {
    const bool is_negative = text.starts_with('-');
    const std::string_view digits = text.substr(is_negative ? 1 : 0);
    if (digits.empty() || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
    std::int64_t age = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), age);
    if (is_negative || (error == std::errc() && age == 0)) return now;
    return error != std::errc() || age > never - now ? never : now + age;
}

}  // namespace

void cookie_jar::store(std::string_view set_cookie, std::string_view host, std::string_view path,
                       bool is_secure, std::int64_t now) {
    const auto next_part = [&set_cookie] {
        const std::string_view part = set_cookie.substr(0, set_cookie.find(';'));
        set_cookie.remove_prefix(std::min(part.size() + 1, set_cookie.size()));
        const std::size_t equals = std::min(part.find('='), part.size());
        return std::pair(http1::trim(part.substr(0, equals)),
                         http1::trim(part.substr(std::min(equals + 1, part.size()))));
    };
    const bool has_name = set_cookie.substr(0, set_cookie.find(';')).find('=') != set_cookie.npos;
    const auto [name, value] = next_part();
    if (!has_name || name.empty() || name.size() + value.size() > max_cookie_bytes) return;

    cookie made{std::string(name),
                std::string(value),
                std::string(host),
                std::string(default_path(path)),
                never,
                true,
                false};
    bool has_age = false;
    while (!set_cookie.empty()) {
        const auto [attribute, given] = next_part();
        if (is_word(attribute, "domain") && !given.empty()) {
            const std::string domain = lower(given.substr(given.starts_with('.') ? 1 : 0));
            if (!is_in_domain(host, domain)) return;
            const bool is_single_label = domain.find('.') == std::string::npos;
            if (is_single_label && domain != host) return;
            made.is_host_only = is_single_label || is_address(host);
            made.domain = domain;
        } else if (is_word(attribute, "path")) {
            made.path = given.starts_with('/') ? given : default_path(path);
        } else if (is_word(attribute, "secure")) {
            made.is_secure = true;
        } else if (is_word(attribute, "max-age")) {
            if (const auto until = parse_age(given, now)) {
                made.expires = *until;
                has_age = true;
            }
        } else if (is_word(attribute, "expires") && !has_age) {
            if (const auto until = parse_http_date(given, now)) made.expires = *until;
        }
    }
    if (made.is_secure && !is_secure) return;
    // Servers that take names in any case must not be misled (RFC 6265bis, 5.7).
    const std::string prefix = lower(name);
    const bool is_locked = prefix.starts_with("__host-");
    if ((is_locked || prefix.starts_with("__secure-")) && !made.is_secure) return;
    if (is_locked && (!made.is_host_only || made.path != "/")) return;

    const auto same = std::ranges::find_if(cookies_, [&](const cookie& each) {
        return each.name == made.name && each.domain == made.domain && each.path == made.path;
    });
    if (same != cookies_.end()) {
        // A page without TLS changes no cookie that was set over it.
        if (same->is_secure && !is_secure) return;
        *same = std::move(made);
    } else {
        cookies_.push_back(std::move(made));
    }
    drop_expired(now);
    make_room(lower(host));
}

void cookie_jar::drop_expired(std::int64_t now) {
    std::erase_if(cookies_, [&](const cookie& each) { return each.expires <= now; });
}

void cookie_jar::make_room(const std::string& domain) {
    const auto is_of_domain = [&](const cookie& each) { return is_in_domain(domain, each.domain); };
    if (std::ranges::count_if(cookies_, is_of_domain) >
        static_cast<std::ptrdiff_t>(max_domain_cookies))
        cookies_.erase(std::ranges::find_if(cookies_, is_of_domain));
    if (cookies_.size() > max_cookies) cookies_.erase(cookies_.begin());
}

std::string cookie_jar::value_for(std::string_view host, std::string_view path, bool is_secure,
                                  std::int64_t now) {
    drop_expired(now);
    std::vector<const cookie*> found;
    for (const cookie& each : cookies_) {
        const bool is_of_host =
            each.is_host_only ? host == each.domain : is_in_domain(host, each.domain);
        if (is_of_host && is_below_path(path, each.path) && (is_secure || !each.is_secure))
            found.push_back(&each);
    }
    // Longer paths first, and older cookies before others; pointers are in the order of age.
    std::ranges::sort(found, [](const cookie* a, const cookie* b) {
        if (a->path.size() != b->path.size()) return a->path.size() > b->path.size();
        return a < b;
    });
    std::string value;
    for (const cookie* each : found) {
        if (!value.empty()) value += "; ";
        value.append(each->name).append("=").append(each->value);
    }
    return value;
}

}  // namespace eddy::http
