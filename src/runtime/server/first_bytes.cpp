// First lines, as far as they have come. They are read more generously than http1 does: what no
// parser accepts may still be an HTTP client's.
#include "runtime/server/first_bytes.hpp"

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

/// Whether the word may be a method that is not registered: by convention these are in capitals.
bool is_in_capitals(std::string_view word) noexcept {
    return std::ranges::all_of(word, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
}

enum class verdict : std::uint8_t { no, maybe, yes };

/// Whether the bytes behind a method are a target: a path, "*" or a URL (RFC 9112, 3.2).
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

/// Whether a whole line's last word is a version of HTTP.
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

}  // namespace

speech judge_first_bytes(std::string_view bytes, const first_bytes_rules& rules,
                         bool is_end) noexcept {
    const std::size_t begin = bytes.find_first_not_of(blanks_and_ends);
    if (begin == std::string_view::npos) return is_end ? speech::raw : speech::undecided;
    bytes.remove_prefix(begin);
    const std::size_t line_end = bytes.find('\n');
    const bool is_whole = is_end || line_end != std::string_view::npos;
    const std::string_view line = bytes.substr(0, line_end);

    const std::size_t word_end = line.find_first_of(blanks);
    const std::string_view word = line.substr(0, word_end);
    verdict target = verdict::no;
    bool may_become_request = false;
    if (word_end != std::string_view::npos) {
        if (std::ranges::find(common_methods, word) != common_methods.end()) return speech::http;
        const std::size_t behind = line.find_first_not_of(blanks, word_end);
        target = judge_target(
            behind == std::string_view::npos ? std::string_view() : line.substr(behind), is_whole);
        const bool is_known = is_method(word);
        if (is_known && target == verdict::yes) return speech::http;
        may_become_request = target != verdict::no && (is_known || is_in_capitals(word));
    } else {
        may_become_request = may_become_method(word);
    }
    if (is_whole) return ends_with_version(line) ? speech::http : speech::raw;

    const std::size_t limit =
        rules.by_line ? std::min(rules.longest_message, longest_first_line) : longest_first_line;
    if (line.size() > limit) return target == verdict::yes ? speech::http : speech::raw;
    return rules.by_line || may_become_request ? speech::undecided : speech::raw;
}

bool is_blank(std::string_view bytes) noexcept {
    return bytes.find_first_not_of(blanks_and_ends) == std::string_view::npos;
}

bool begins_tls(std::string_view bytes) noexcept {
    return bytes.size() >= 3 && bytes[0] == '\x16' && bytes[1] == '\x03' &&
           static_cast<unsigned char>(bytes[2]) <= 4;
}

}  // namespace eddy::runtime::server
