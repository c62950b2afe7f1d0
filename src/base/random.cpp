// Seeding, and bounded numbers without bias.
#include <eddy/base/random.hpp>

#include <eddy/base/assert.hpp>

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

namespace eddy {
namespace {

__extension__ using wide = unsigned __int128;

// SplitMix64: spreads one word over the state, so that near seeds give unlike sequences.
std::uint64_t mix(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace

random_generator::random_generator(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) word = mix(seed);
}

std::uint64_t random_generator::below(std::uint64_t bound) noexcept {
    EDDY_ASSERT(bound > 0);
    // The high half of number × bound is the answer. The first 2^64 mod bound values of the low
    // half would favour some answers, so those are drawn again.
    wide product = wide{(*this)()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
        const std::uint64_t unfair = (0 - bound) % bound;
        while (static_cast<std::uint64_t>(product) < unfair) product = wide{(*this)()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t entropy_seed() noexcept {
    std::uint64_t seed = 0;
    if (::getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed)) return seed;
    // Only a sandbox that forbids getrandom comes here; a seed need not be secret.
    seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    seed ^= static_cast<std::uint64_t>(::getpid()) << 32;
    return mix(seed);
}

}  // namespace eddy
