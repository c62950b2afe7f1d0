// Reading of the Cookie field, and writing of Set-Cookie.
#include <eddy/http/cookie.hpp>

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/wire/http1/headers.hpp>

#include "http/fields/http_date.hpp"

#include <algorithm>

namespace eddy::http {
namespace {

std::string_view without_blanks(std::string_view text) noexcept {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// cookie-octet of RFC 6265, 4.1.1.
bool is_cookie_octet(char c) noexcept {
    return c > ' ' && c < '\x7f' && c != '"' && c != ',' && c != ';' && c != '\\';
}

/// path-value of RFC 6265, 4.1.1, which has no blank at its ends.
bool is_cookie_path(std::string_view text) noexcept {
    return text.starts_with('/') && !text.ends_with(' ') &&
           std::ranges::all_of(text, [](char c) { return c >= ' ' && c < '\x7f' && c != ';'; });
}

bool is_domain(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.';
    });
}

bool has_prefix(std::string_view name, std::string_view prefix) noexcept {
    return http1::equal_ignoring_case(name.substr(0, prefix.size()), prefix);
}

/// True if browsers keep a cookie with these attributes.
bool is_consistent(const cookie& set) noexcept {
    const bool needs_secure = set.same_site == same_site_policy::none || set.partitioned ||
                              has_prefix(set.name, "__Secure-") || has_prefix(set.name, "__Host-");
    if (needs_secure && !set.secure) return false;
    return !has_prefix(set.name, "__Host-") || (set.domain.empty() && set.path == "/");
}

std::string_view text_of(same_site_policy policy) noexcept {
    switch (policy) {
        case same_site_policy::unset: break;
        case same_site_policy::none: return "; SameSite=None";
        case same_site_policy::lax: return "; SameSite=Lax";
        case same_site_policy::strict: return "; SameSite=Strict";
    }
    return {};
}

}  // namespace

std::optional<cookie_pair> cookie_reader::next() noexcept {
    while (!rest_.empty()) {
        const std::size_t end = std::min(rest_.find(';'), rest_.size());
        const std::string_view part = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) continue;
        cookie_pair found{without_blanks(part.substr(0, equals)),
                          without_blanks(part.substr(equals + 1))};
        if (found.name.empty()) continue;
        if (found.value.size() >= 2 && found.value.starts_with('"') && found.value.ends_with('"'))
            found.value = found.value.substr(1, found.value.size() - 2);
        return found;
    }
    return std::nullopt;
}

result<std::string> format_cookie(const cookie& set) {
    if (!http1::is_token(set.name) || !std::ranges::all_of(set.value, is_cookie_octet) ||
        !is_cookie_path(set.path) || !is_domain(set.domain) || !is_consistent(set))
        return fail(errc::malformed);
    if (set.name.size() + set.value.size() > cookie_size_limit ||
        set.path.size() > cookie_size_limit || set.domain.size() > cookie_size_limit)
        return fail(errc::limit_reached);
    std::string text = set.name + "=" + set.value + "; Path=" + set.path;
    if (!set.domain.empty()) text += "; Domain=" + set.domain;
    if (set.max_age) {
        // An expired cookie is removed at once: the grammar has no negative ages.
        text += "; Max-Age=" + std::to_string(std::max<std::int64_t>(set.max_age->count(), 0));
    }
    if (set.expires) text.append("; Expires=").append(http_date_writer().write(*set.expires));
    if (set.secure) text += "; Secure";
    if (set.http_only) text += "; HttpOnly";
    text += text_of(set.same_site);
    if (set.partitioned) text += "; Partitioned";
    return text;
}

std::optional<std::string_view> request::cookie(std::string_view name) const noexcept {
    for (const http1::header field : headers()) {
        if (!http1::equal_ignoring_case(field.name, "Cookie")) continue;
        cookie_reader reader(field.value);
        while (const auto found = reader.next())
            if (found->name == name) return found->value;
    }
    return std::nullopt;
}

std::vector<cookie_pair> request::cookies() const {
    std::vector<cookie_pair> all;
    for (const http1::header field : headers()) {
        if (!http1::equal_ignoring_case(field.name, "Cookie")) continue;
        cookie_reader reader(field.value);
        while (const auto found = reader.next()) all.push_back(*found);
    }
    return all;
}

response& response::set_cookie(const http::cookie& added) {
    const auto text = format_cookie(added);
    if (!text)
        has_bad_field_ = true;
    else
        add("Set-Cookie", *text);
    return *this;
}

}  // namespace eddy::http
