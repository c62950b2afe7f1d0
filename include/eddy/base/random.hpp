// Random numbers, fast and repeatable. Not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace eddy {

/// The xoshiro256++ generator (Blackman and Vigna): 256 bits of state, about a nanosecond a number.
/// The same seed gives the same numbers on every machine. It is a UniformRandomBitGenerator. One
/// thread.
class random_generator {
public:
    /// The type that a UniformRandomBitGenerator yields.
    using result_type = std::uint64_t;

    /// The state is `seed` spread over 256 bits; every seed is as good as another.
    explicit random_generator(std::uint64_t seed) noexcept;

    /// The smallest number that it yields.
    static constexpr result_type min() noexcept { return 0; }
    /// The largest.
    static constexpr result_type max() noexcept { return ~result_type{0}; }

    /// The next number: 64 random bits.
    result_type operator()() noexcept {
        const std::uint64_t number = std::rotl(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t carried = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= carried;
        state_[3] = std::rotl(state_[3], 45);
        return number;
    }

    /// Uniform in 0 .. bound-1, without bias; `bound` must not be 0.
    std::uint64_t below(std::uint64_t bound) noexcept;

    /// Uniform in [0, 1), in steps of 2^-53.
    double unit() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

    /// True with this probability.
    bool chance(double probability) noexcept { return unit() < probability; }

private:
    std::array<std::uint64_t, 4> state_;
};

/// A seed from the operating system; print it to repeat the run. Any thread.
std::uint64_t entropy_seed() noexcept;

}  // namespace eddy
