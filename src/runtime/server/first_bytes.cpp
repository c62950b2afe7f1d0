// First lines, as far as they have come. They are read more generously than http1 does: what no
// parser accepts may still be an HTTP client's.
#include "runtime/server/first_bytes.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <array>

namespace eddy::runtime::server {
namespace {

constexpr std::string_view blanks = " \t\v\f\r";
constexpr std::string_view blanks_and_ends = " \t\v\f\r\n";

/// RFC 9110's, PATCH, and the first word of HTTP/2.
constexpr std::array<std::string_view, 10> common_methods{
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI"};

/// IANA's registry of methods, without those above, and four that are common without it.
constexpr std::array<std::string_view, 37> other_methods{"ACL",
                                                         "BASELINE-CONTROL",
                                                         "BIND",
                                                         "CHECKIN",
                                                         "CHECKOUT",
                                                         "COPY",
                                                         "LABEL",
                                                         "LINK",
                                                         "LOCK",
                                                         "MERGE",
                                                         "MKACTIVITY",
                                                         "MKCALENDAR",
                                                         "MKCOL",
                                                         "MKREDIRECTREF",
                                                         "MKWORKSPACE",
                                                         "MOVE",
                                                         "ORDERPATCH",
                                                         "PROPFIND",
                                                         "PROPPATCH",
                                                         "QUERY",
                                                         "REBIND",
                                                         "REPORT",
                                                         "SEARCH",
                                                         "UNBIND",
                                                         "UNCHECKOUT",
                                                         "UNLINK",
                                                         "UNLOCK",
                                                         "UPDATE",
                                                         "UPDATEREDIRECTREF",
                                                         "VERSION-CONTROL",
                                                         "M-SEARCH",
                                                         "NOTIFY",
                                                         "PURGE",
                                                         "SUBSCRIBE",
                                                         "UNSUBSCRIBE",
                                                         "TRACK",
                                                         "DEBUG"};

char to_upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

bool begins_with(std::string_view text, std::string_view upper) noexcept {
    return text.size() >= upper.size() &&
           std::ranges::equal(text.substr(0, upper.size()), upper, {}, to_upper);
}

template <class Holds>
bool any_method(Holds holds) {
    return std::ranges::any_of(common_methods, holds) || std::ranges::any_of(other_methods, holds);
}

bool is_method(std::string_view word) noexcept {
    return any_method([&](std::string_view each) {
        return each.size() == word.size() && begins_with(word, each);
    });
}

bool may_become_method(std::string_view word) noexcept {
    return any_method([&](std::string_view each) {
        return each.size() >= word.size() && begins_with(word, each.substr(0, word.size()));
    });
}

/// True for a word that may be an unregistered method: by convention these are in capitals.
bool is_in_capitals(std::string_view word) noexcept {
    if (word.empty() || word.front() < 'A' || word.front() > 'Z') return false;
    return std::ranges::all_of(word, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
}

enum class verdict : std::uint8_t { no, maybe, yes };

/// Verdict on the bytes behind a method as a target: a path, "*" or a URL (RFC 9112, 3.2).
verdict judge_target(std::string_view bytes, bool is_whole) noexcept {
    if (bytes.empty()) return is_whole ? verdict::no : verdict::maybe;
    if (bytes.front() == '/') return verdict::yes;
    if (bytes.front() == '*') {
        if (bytes.size() == 1) return is_whole ? verdict::yes : verdict::maybe;
        return blanks.contains(bytes[1]) ? verdict::yes : verdict::no;
    }
    bool is_begun = false;
    for (const std::string_view scheme : {"HTTP:", "HTTPS:"}) {
        if (begins_with(bytes, scheme)) return verdict::yes;
        is_begun |=
            bytes.size() < scheme.size() && begins_with(bytes, scheme.substr(0, bytes.size()));
    }
    return is_begun && !is_whole ? verdict::maybe : verdict::no;
}

constexpr std::string_view stun_magic = "\x21\x12\xa4\x42";
constexpr std::size_t stun_magic_at = 4;

/// True when the first two bits are those of STUN.
bool has_stun_type(std::string_view message) noexcept {
    EDDY_ASSERT(!message.empty());
    return (static_cast<unsigned char>(message.front()) & 0xc0U) == 0;
}

/// True when the last word is a version of HTTP.
bool ends_with_version(std::string_view line) noexcept {
    const std::size_t last = line.find_last_not_of(blanks);
    if (last == std::string_view::npos) return false;
    line = line.substr(0, last + 1);
    const std::size_t before = line.find_last_of(blanks);
    const std::string_view word = line.substr(before == std::string_view::npos ? 0 : before + 1);
    constexpr std::string_view name = "HTTP/";
    return word.size() > name.size() && begins_with(word, name) && word[name.size()] >= '0' &&
           word[name.size()] <= '9';
}

/// The same for any part of a whole line that a bare CR ends.
bool has_version_at_an_end(std::string_view line) noexcept {
    while (!line.empty()) {
        const std::size_t end = line.find('\r');
        if (ends_with_version(line.substr(0, end))) return true;
        if (end == std::string_view::npos) break;
        line.remove_prefix(end + 1);
    }
    return false;
}

/// Verdict on bytes that must begin with the whole `start`.
verdict compare_start(std::string_view bytes, std::string_view start) noexcept {
    if (bytes.starts_with(start)) return verdict::yes;
    return start.starts_with(bytes) ? verdict::maybe : verdict::no;
}

/// A record of TLS (RFC 8446, 5.1), or a hello of SSL 2: Chromium's WebRTC sends one ("ssltcp").
verdict judge_tls(std::string_view bytes, bool by_line) noexcept {
    const auto is_version = [](char minor) { return static_cast<unsigned char>(minor) <= 4; };
    if (bytes.size() >= 5 && bytes[0] == '\x80' && bytes[2] == '\x01' && bytes[3] == '\x03' &&
        is_version(bytes[4]))
        return verdict::yes;
    if (const verdict start = compare_start(bytes, "\x16\x03"); start != verdict::yes) return start;
    if (bytes.size() < 3) return verdict::maybe;
    if (!is_version(bytes[2])) return verdict::no;
    if (by_line) return verdict::yes;
    constexpr std::size_t at_type = 5;
    if (bytes.size() <= at_type) return verdict::maybe;
    return bytes[at_type] == '\x01' ? verdict::yes : verdict::no;
}

/// A STUN message, alone or behind its length in two bytes (RFC 4571). Only bytes that begin with
/// 0, as those of browsers do, wait to become one: text does not.
verdict judge_stun(std::string_view bytes) noexcept {
    constexpr std::size_t framing = 2;
    const std::string_view framed = bytes.substr(std::min(framing, bytes.size()));
    if (begins_stun(bytes) || begins_stun(framed)) return verdict::yes;
    if (bytes.empty() || bytes.front() != '\0') return verdict::no;
    const auto may_become = [](std::string_view message) {
        if (message.size() >= stun_magic_at + stun_magic.size()) return false;
        if (!message.empty() && !has_stun_type(message)) return false;
        return message.size() <= stun_magic_at ||
               stun_magic.starts_with(message.substr(stun_magic_at));
    };
    return may_become(bytes) || may_become(framed) ? verdict::maybe : verdict::no;
}

/// Either version of the header.
verdict judge_proxy_header(std::string_view bytes) noexcept {
    constexpr std::string_view signature("\r\n\r\n\0\r\nQUIT\n", 12);
    return std::max(compare_start(bytes, "PROXY "), compare_start(bytes, signature));
}

}  // namespace

speech judge_first_bytes(std::string_view bytes, const first_bytes_rules& rules,
                         bool is_end) noexcept {
    const std::size_t begin = bytes.find_first_not_of(blanks_and_ends);
    if (begin == std::string_view::npos) return is_end ? speech::raw : speech::undecided;
    bytes.remove_prefix(begin);
    const std::size_t line_end = bytes.find('\n');
    const bool is_whole = is_end || line_end != std::string_view::npos;
    const std::string_view line = bytes.substr(0, line_end);

    // Not more of a line that comes in small pieces is searched each time.
    const std::string_view start = line.substr(0, longest_first_line);
    const std::size_t word_end = start.find_first_of(blanks);
    const std::string_view word = start.substr(0, word_end);
    verdict target = verdict::no;
    bool has_name = false;
    bool may_become_request = false;
    if (word_end != std::string_view::npos) {
        if (std::ranges::find(common_methods, word) != common_methods.end()) return speech::http;
        const std::size_t behind = start.find_first_not_of(blanks, word_end);
        target = judge_target(
            behind == std::string_view::npos ? std::string_view() : start.substr(behind), is_whole);
        const bool is_known = is_method(word);
        if (is_known && target == verdict::yes) return speech::http;
        has_name = is_known || is_in_capitals(word);
        may_become_request = target != verdict::no && has_name;
    } else {
        may_become_request = may_become_method(word);
    }
    const bool is_request = has_name && target == verdict::yes;
    if (is_whole) {
        const bool is_cut = line_end == std::string_view::npos;
        return (is_cut && is_request) || has_version_at_an_end(line) ? speech::http : speech::raw;
    }

    const std::size_t limit =
        rules.by_line ? std::min(rules.longest_message, longest_first_line) : longest_first_line;
    if (line.size() > limit && is_request) return speech::http;
    if (line.size() > (rules.by_line ? rules.longest_message : limit)) return speech::raw;
    return rules.by_line || may_become_request ? speech::undecided : speech::raw;
}

bool begins_stun(std::string_view bytes) noexcept {
    return bytes.size() > stun_magic_at && has_stun_type(bytes) &&
           bytes.substr(stun_magic_at).starts_with(stun_magic);
}

bool begins_quic(std::string_view datagram) noexcept {
    constexpr std::size_t least = 1200;
    constexpr unsigned char long_header = 0xc0;
    if (datagram.size() < least ||
        (static_cast<unsigned char>(datagram.front()) & long_header) != long_header)
        return false;
    const std::string_view version = datagram.substr(1, 4);
    constexpr std::string_view first("\0\0\0\1", 4);
    constexpr std::string_view second("\x6b\x33\x43\xcf");
    constexpr std::string_view drafts("\xff\0\0", 3);
    return version == first || version == second || version.starts_with(drafts);
}

foreign_protocol judge_foreign_protocol(std::string_view bytes,
                                        const first_bytes_rules& rules) noexcept {
    if (bytes.empty()) return foreign_protocol::undecided;
    const verdict tls =
        rules.is_secure && !rules.by_line ? verdict::no : judge_tls(bytes, rules.by_line);
    const verdict stun = judge_stun(bytes);
    const verdict proxy = judge_proxy_header(bytes);
    if (tls == verdict::yes) return foreign_protocol::tls;
    if (stun == verdict::yes) return foreign_protocol::stun;
    if (proxy == verdict::yes) return foreign_protocol::proxy;
    const bool may_become = std::max({tls, stun, proxy}) == verdict::maybe;
    return may_become ? foreign_protocol::undecided : foreign_protocol::none;
}

bool is_blank(std::string_view bytes) noexcept {
    return bytes.find_first_not_of(blanks_and_ends) == std::string_view::npos;
}

}  // namespace eddy::runtime::server
