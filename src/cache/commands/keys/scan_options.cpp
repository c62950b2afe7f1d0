// Parser of MATCH, COUNT, TYPE, SLOT, NOVALUES and NOSCORES.
#include "cache/commands/keys/scan_options.hpp"

#include <eddy/base/glob.hpp>

#include "cache/commands/server/cluster_slot.hpp"
#include "cache/engine/call.hpp"

#include <charconv>

namespace eddy::cache {

// As strtoul takes it, which clients rely on for nothing but digits.
std::optional<std::uint64_t> parse_cursor(call& c, std::size_t at) {
    std::string_view text = c.arg(at);
    if (text.empty()) return 0;
    const bool negative = text[0] == '-';
    if (negative || text[0] == '+') text.remove_prefix(1);
    std::uint64_t cursor = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, cursor);
    if (error != std::errc{} || stopped != end) {
        c.error("ERR invalid cursor");
        return std::nullopt;
    }
    return negative ? 0 - cursor : cursor;
}

bool scan_options::parse_slot(call& c, std::size_t at) {
    if (slot) {
        c.error("ERR SLOT option can only be specified once");
        return false;
    }
    const auto given =
        c.integer_in(at, 0, cluster_slot_count - 1, "ERR Invalid or out of range slot");
    if (given) slot = static_cast<unsigned>(*given);
    return given.has_value();
}

bool scan_options::parse(call& c, std::size_t first, scan_of what) {
    const bool has_keys = what == scan_of::keys || what == scan_of::slots;
    for (std::size_t i = first; i < c.count; i += 2) {
        const bool has_value = i + 1 < c.count;
        if (is_word(c.arg(i), "novalues") || is_word(c.arg(i), "noscores")) {
            const bool of_hash = is_word(c.arg(i), "novalues");
            if (what != (of_hash ? scan_of::hash : scan_of::sorted_set)) {
                c.error(of_hash ? "ERR NOVALUES option can only be used in HSCAN"
                                : "ERR NOSCORES option can only be used in ZSCAN");
                return false;
            }
            names_only = true;
            --i;
            continue;
        }
        if (is_word(c.arg(i), "count") && has_value) {
            const auto given = c.integer(i + 1);
            if (!given) return false;
            if (*given < 1) {
                c.syntax_error();
                return false;
            }
            count = *given;
        } else if (is_word(c.arg(i), "match") && has_value) {
            pattern = c.arg(i + 1);
            has_pattern = pattern != "*";
        } else if (has_keys && is_word(c.arg(i), "type") && has_value) {
            type = c.arg(i + 1);
        } else if (what == scan_of::slots && is_word(c.arg(i), "slot") && has_value) {
            if (!parse_slot(c, i + 1)) return false;
        } else {
            c.syntax_error();
            return false;
        }
    }
    return true;
}

bool scan_options::matches(std::string_view text) const noexcept {
    if (!has_pattern) return true;
    // As in Redis, where stars match the empty text only as the lone "*".
    return text.empty() ? pattern.empty() : glob_match(pattern, text);
}

std::string_view type_name(value_type type) noexcept {
    switch (type) {
        case value_type::string: return "string";
        case value_type::list: return "list";
        case value_type::set: return "set";
        case value_type::hash: return "hash";
        case value_type::sorted_set: return "zset";
        case value_type::stream: return "stream";
    }
    return "none";
}

}  // namespace eddy::cache
