// Parser of range bounds: "(1.5", "+inf", "[a", "-", "-1".
#include "cache/commands/sorted_sets/range_bounds.hpp"

#include "cache/engine/call.hpp"

#include <algorithm>

namespace eddy::cache {

bool range_bounds::parse_score(std::string_view text, bound& to) noexcept {
    to.excluded = !text.empty() && text[0] == '(';
    if (to.excluded) text.remove_prefix(1);
    const auto score = parse_double(text, double_syntax::loose);
    if (score) to.score = *score;
    return score.has_value();
}

bool range_bounds::parse_text(std::string_view text, bound& to) noexcept {
    if (text.empty()) return false;
    // A text ends with a NUL for this purpose.
    const bool alone = text.size() == 1 || text[1] == '\0';
    switch (text[0]) {
        case '-': to.kind = limit::lowest; return alone;
        case '+': to.kind = limit::highest; return alone;
        case '(':
        case '[':
            to.kind = limit::text;
            to.excluded = text[0] == '(';
            to.text = text.substr(1);
            return true;
        default: return false;
    }
}

bool range_bounds::parse(call& c, range_by by, std::size_t low_at, std::size_t high_at) {
    by_ = by;
    switch (by) {
        case range_by::rank: {
            const auto low = c.integer(low_at);
            if (!low) return false;
            const auto high = c.integer(high_at);
            if (!high) return false;
            low_.rank = *low;
            high_.rank = *high;
            return true;
        }
        case range_by::score:
            if (parse_score(c.arg(low_at), low_) && parse_score(c.arg(high_at), high_)) return true;
            c.error("ERR min or max is not a float");
            return false;
        case range_by::text:
            if (parse_text(c.arg(low_at), low_) && parse_text(c.arg(high_at), high_)) return true;
            c.error("ERR min or max not valid string range item");
            return false;
    }
    return false;
}

std::size_t range_bounds::below(const sorted_set& members, const bound& of,
                                bool and_equal) noexcept {
    if (of.kind == limit::lowest) return 0;
    if (of.kind == limit::highest) return members.size();
    return members.count_below(of.text, and_equal);
}

rank_range range_bounds::within(const sorted_set& members) const noexcept {
    std::size_t first = 0;
    std::size_t end = 0;
    switch (by_) {
        case range_by::rank: {
            const auto size = static_cast<std::int64_t>(members.size());
            std::int64_t low = low_.rank < 0 ? low_.rank + size : low_.rank;
            std::int64_t high = high_.rank < 0 ? high_.rank + size : high_.rank;
            low = std::max<std::int64_t>(low, 0);
            high = std::min(high, size - 1);
            if (low > high) return {};
            first = static_cast<std::size_t>(low);
            end = static_cast<std::size_t>(high) + 1;
            break;
        }
        case range_by::score:
            first = members.count_below(low_.score, low_.excluded);
            end = members.count_below(high_.score, !high_.excluded);
            break;
        case range_by::text:
            first = below(members, low_, low_.excluded);
            end = below(members, high_, !high_.excluded);
            break;
    }
    if (first >= end) return {};
    return {first, end - first};
}

}  // namespace eddy::cache
