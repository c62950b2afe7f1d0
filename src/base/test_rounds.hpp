// Length of random and exhaustive searches: shorter in a sanitized build, where each round is many
// times as slow, and longer by the environment variable EDDY_ROUNDS.
#pragma once

#include <concepts>
#include <cstdlib>

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

/// A quarter of the rounds where they are sanitized, and EDDY_ROUNDS times as many.
template <std::integral Number>
Number rounds(Number in_a_plain_build) {
    const char* const wanted = std::getenv("EDDY_ROUNDS");
    const int times = wanted != nullptr ? std::atoi(wanted) : 1;
    return static_cast<Number>((is_sanitized ? (in_a_plain_build + 3) / 4 : in_a_plain_build) *
                               static_cast<Number>(times > 0 ? times : 1));
}

/// The step of a search through places one after another.
inline constexpr unsigned place_step = is_sanitized ? 5 : 1;

}  // namespace eddy::testing
