// DEBUG DIGEST: forty digits that are the same for the same keys and values, whatever their order
// and encoding, here and in Redis. Test suites compare data sets by them.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

using digest = std::array<std::uint8_t, 20>;

/// SHA-1 (FIPS 180-4), which is good for telling data apart, not for keeping secrets.
digest sha1(std::string_view bytes);

/// The same of a text in pieces.
class sha1_sum {
public:
    static constexpr std::size_t block_bytes = 64;
    /// Takes whole blocks of the text.
    void add(std::string_view blocks) noexcept;
    /// Takes the rest of it, of any size. To be called once, as the last thing.
    digest end(std::string_view rest) noexcept;

private:
    std::array<std::uint32_t, 5> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    std::uint64_t bytes_ = 0;
};

/// Of one value, with the fact that it has an expiry. O(its size).
digest value_digest(environment& env, const entry& of);
/// Of all databases. O(all there is).
digest dataset_digest(engine::state& of);

std::string hexadecimal(const digest& of);

}  // namespace eddy::cache
