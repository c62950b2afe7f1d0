// The distance between words after Damerau and Levenshtein, with adjacent swaps.
#include <eddy/base/nearest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace eddy {

std::size_t word_distance(std::string_view a, std::string_view b) noexcept {
    if (a.size() > nearest_word_limit || b.size() > nearest_word_limit) return nearest_word_limit;
    // The current row and the two before it.
    std::array<std::array<std::size_t, nearest_word_limit + 1>, 3> rows{};
    auto *before = &rows[0], *last = &rows[1], *row = &rows[2];
    for (std::size_t j = 0; j <= b.size(); ++j) (*last)[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        (*row)[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = (*last)[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            (*row)[j] = std::min({replaced, (*last)[j] + 1, (*row)[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                (*row)[j] = std::min((*row)[j], (*before)[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return (*last)[b.size()];
}

std::string_view nearest_word(std::string_view written,
                              std::span<const std::string_view> candidates) noexcept {
    if (written.size() > nearest_word_limit) return {};
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(written.size() / 3, 1) + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = word_distance(written, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace eddy
