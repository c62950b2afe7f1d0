// Glob matching with one point of return: only the last star can need another try.
#include <eddy/base/glob.hpp>

#include <algorithm>
#include <cstddef>

namespace eddy {
namespace {

struct step {
    std::size_t next;  // rest of the pattern
    bool matched;
};

// `at` is just behind '['.
step match_class(std::string_view pattern, std::size_t at, unsigned char byte) noexcept {
    const auto byte_at = [pattern](std::size_t i) {
        return static_cast<unsigned char>(pattern[i]);
    };
    const bool negated = at < pattern.size() && pattern[at] == '^';
    if (negated) ++at;
    bool matched = false;
    for (; at < pattern.size() && pattern[at] != ']'; ++at) {
        if (pattern[at] == '\\' && at + 1 < pattern.size()) {
            ++at;
            matched |= byte_at(at) == byte;
        } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
            const auto [low, high] = std::minmax({byte_at(at), byte_at(at + 2)});
            matched |= low <= byte && byte <= high;
            at += 2;
        } else {
            matched |= byte_at(at) == byte;
        }
    }
    return {std::min(at + 1, pattern.size()), matched != negated};
}

// One element of the pattern, not a star, against one byte.
step match_one(std::string_view pattern, std::size_t at, char byte) noexcept {
    switch (pattern[at]) {
        case '?': return {at + 1, true};
        case '[': return match_class(pattern, at + 1, static_cast<unsigned char>(byte));
        case '\\':
            if (at + 1 < pattern.size()) ++at;
            break;
        default: break;
    }
    return {at + 1, pattern[at] == byte};
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) noexcept {
    constexpr std::size_t none = std::string_view::npos;
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t after_star = none;  // the pattern behind the last star seen
    std::size_t star_end = 0;       // where in the text that star's run ends for now
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            after_star = ++p;
            if (after_star == pattern.size()) return true;
            star_end = t;
            continue;
        }
        if (p < pattern.size()) {
            const step one = match_one(pattern, p, text[t]);
            if (one.matched) {
                p = one.next;
                ++t;
                continue;
            }
        }
        if (after_star == none) return false;
        // Earlier stars need no retry: this one can take any bytes that they could.
        p = after_star;
        t = ++star_end;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

bool glob_has_wildcard(std::string_view pattern) noexcept {
    return pattern.find_first_of("*?[\\") != std::string_view::npos;
}

}  // namespace eddy
