// The length of a random or exhaustive search in a sanitized build. Sanitizers make each round many
// times as slow, and the plain build makes all of them.
#pragma once

#include <concepts>

namespace eddy::testing {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

/// A quarter of the rounds where they are sanitized.
template <std::integral Number>
constexpr Number rounds(Number in_a_plain_build) {
    return is_sanitized ? (in_a_plain_build + 3) / 4 : in_a_plain_build;
}

/// The step of a search through places one after another.
inline constexpr unsigned place_step = is_sanitized ? 5 : 1;

}  // namespace eddy::testing
