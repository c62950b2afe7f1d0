// Request targets, percent-encoding and queries (RFC 9112 section 3.2, RFC 3986).
#include <eddy/wire/http1/target.hpp>

#include "wire/http1/authority.hpp"
#include "wire/http1/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace eddy::http1 {
namespace {

constexpr byte_set unreserved("-._~");
constexpr byte_set scheme_bytes("+-.");

bool is_port(std::string_view text) noexcept {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc() && end == text.data() + text.size() && port > 0;
}

result<target_parts> split_authority_form(std::string_view target) noexcept {
    const std::size_t colon = target.rfind(':');
    if (colon == std::string_view::npos || !is_port(target.substr(colon + 1)) ||
        !is_authority(target)) {
        return fail(errc::malformed);
    }
    target_parts parts;
    parts.form = target_form::authority;
    parts.authority = target;
    return parts;
}

// `rest` is what follows the authority, or the whole of an origin form.
void split_path(std::string_view rest, target_parts& parts) noexcept {
    const std::size_t question = rest.find('?');
    parts.path = rest.substr(0, question);
    if (question != std::string_view::npos) parts.query = rest.substr(question + 1);
}

result<target_parts> split_absolute_form(std::string_view target) noexcept {
    target_parts parts;
    parts.form = target_form::absolute;
    const std::size_t colon = target.find("://");
    if (colon == std::string_view::npos || colon == 0) return fail(errc::malformed);
    parts.scheme = target.substr(0, colon);
    if (!is_alpha(parts.scheme[0]) || !scheme_bytes.has_all(parts.scheme)) {
        return fail(errc::malformed);
    }
    const std::string_view rest = target.substr(colon + 3);
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    parts.authority = rest.substr(0, end);
    // An '@', which follows a user's name, is no part of a host.
    if (!is_authority(parts.authority)) return fail(errc::malformed);
    split_path(rest.substr(end), parts);
    return parts;
}

}  // namespace

result<target_parts> split_target(std::string_view method, std::string_view target) noexcept {
    // Without an early exit, so that the compiler makes vector instructions of it. Bytes beyond
    // ASCII are no lower ones when unsigned.
    bool bad = target.empty();
    for (const char c : target) {
        const auto byte = static_cast<unsigned char>(c);
        bad |= byte <= ' ' || byte >= 0x7f || byte == '#';
    }
    if (bad) return fail(errc::malformed);
    if (method == "CONNECT") return split_authority_form(target);
    if (target[0] == '/') {
        target_parts parts;
        split_path(target, parts);
        return parts;
    }
    if (target == "*") {
        if (method != "OPTIONS") return fail(errc::malformed);
        target_parts parts;
        parts.form = target_form::asterisk;
        return parts;
    }
    return split_absolute_form(target);
}

namespace {

result<std::string> decode(std::string_view text, bool plus_is_space) {
    const auto is_encoded = [=](char c) { return c == '%' || (c == '+' && plus_is_space); };
    const auto first = std::ranges::find_if(text, is_encoded);
    std::string out;
    out.reserve(text.size());
    out.assign(text.begin(), first);
    for (std::size_t i = out.size(); i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) return fail(errc::malformed);
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return out;
}

}  // namespace

result<std::string> percent_decode(std::string_view text) { return decode(text, false); }

std::string percent_encode(std::string_view text) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (unreserved.has(c)) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return out;
}

std::optional<query_parameter> query_reader::next() {
    while (!rest_.empty()) {
        const std::string_view part = rest_.substr(0, rest_.find('&'));
        rest_.remove_prefix(std::min(part.size() + 1, rest_.size()));
        if (part.empty()) continue;
        const std::string_view before = part.substr(0, part.find('='));
        const std::string_view after = part.substr(std::min(before.size() + 1, part.size()));
        if (part.find('%') == part.npos && part.find('+') == part.npos)
            return query_parameter{std::string(before), std::string(after)};
        result<std::string> name = decode(before, true);
        result<std::string> value = decode(after, true);
        if (!name || !value) {
            malformed_ = true;
            rest_ = {};
            break;
        }
        return query_parameter{std::move(*name), std::move(*value)};
    }
    return std::nullopt;
}

}  // namespace eddy::http1
