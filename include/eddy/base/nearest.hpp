// "Did you mean ...?": the known word that is nearest to what somebody typed.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace eddy {

/// Words longer than this are never near to anything.
inline constexpr std::size_t nearest_word_limit = 64;

/// How many letters must be inserted, dropped, replaced or swapped with their neighbour to make one
/// word the other. nearest_word_limit when one of them is longer than that. Any thread.
std::size_t word_distance(std::string_view a, std::string_view b) noexcept;

/// The candidate that was probably meant, or "" when none is near: up to a third of the written
/// letters may be wrong, and one always. The first of several that are equally near. Any thread.
std::string_view nearest_word(std::string_view written,
                              std::span<const std::string_view> candidates) noexcept;

}  // namespace eddy
