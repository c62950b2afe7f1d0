// Nearest known word by edit distance, for "did you mean ...?".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace eddy {

/// Words longer than this are never near to anything.
inline constexpr std::size_t nearest_word_limit = 64;

/// Edit distance: the letters to insert, drop, replace or swap with their neighbour to make one
/// word the other. nearest_word_limit when one of them is longer than that. Any thread.
std::size_t word_distance(std::string_view a, std::string_view b) noexcept;

/// The candidate that was probably meant, or "" when none is near: up to a third of the written
/// letters may be wrong, and one always. The first of several that are equally near. Any thread.
std::string_view nearest_word(std::string_view written,
                              std::span<const std::string_view> candidates) noexcept;

}  // namespace eddy
