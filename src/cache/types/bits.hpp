// Runs of bits within bytes: counted, searched, combined, read and written as integers.
//
// Bit 0 is the highest bit of the first byte, as in Redis's bitmaps. All of it works on words of 64
// bits or wider, so that the memory's speed is the limit for long runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace eddy::cache {

/// The ones among the bits [first, end) of `bytes`; `end` is at most 8 times their number.
std::uint64_t count_bits(std::string_view bytes, std::uint64_t first, std::uint64_t end) noexcept;

/// The first bit of [first, end) that is `wanted`.
std::optional<std::uint64_t> find_bit(std::string_view bytes, std::uint64_t first,
                                      std::uint64_t end, bool wanted) noexcept;

enum class bit_operation : std::uint8_t {
    all_of,
    any_of,
    exclusive,
    negation,
    without_others,  ///< of the first source, without what any other has: DIFF
    others_without,  ///< of any other source, without what the first has: DIFF1
    shared,          ///< of the first source, what any other has as well: ANDOR
    exactly_one      ///< what a single source has: ONE
};

/// Combines the sources, each lengthened with zeros to `size`, into `to`, which may be one of them.
/// A negation has one source; those of the first source and the others have two or more.
void combine_bits(bit_operation how, std::span<const std::string_view> sources, char* to,
                  std::size_t size) noexcept;

/// `width` bits (1 to 64) from `offset` on as a number, the highest bit first. Bits beyond the end
/// are zero.
std::uint64_t read_bits(std::string_view bytes, std::uint64_t offset, unsigned width) noexcept;

/// Writes the lowest `width` bits of `value`; all of them stand within the `size` bytes.
void write_bits(char* bytes, std::size_t size, std::uint64_t offset, unsigned width,
                std::uint64_t value) noexcept;

}  // namespace eddy::cache
