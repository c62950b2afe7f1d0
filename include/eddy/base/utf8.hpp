// UTF-8 validation (RFC 3629), incremental and vectorised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy {

/// Validator of UTF-8 that comes in pieces, cut anywhere. Overlong forms, surrogates and code
/// points above U+10FFFF are invalid. ASCII is checked at memory speed; so is all other text where
/// the processor has AVX2. Four bytes; never allocates. One thread.
class utf8_validator {
public:
    /// Checks the next piece. Returns its size, or the position of its first byte that continues
    /// no valid text; the result does not depend on how the text is cut. After an invalid byte:
    /// reset().
    std::size_t check(std::string_view piece) noexcept;

    /// True between two characters: a text may end here.
    bool is_complete() const noexcept { return missing_ == 0; }

    /// Begins a new text.
    void reset() noexcept { *this = utf8_validator(); }

private:
    std::size_t check_bytewise(std::string_view piece, std::size_t from, std::size_t end) noexcept;

    std::uint8_t missing_ = 0;  // bytes that complete the open character
    std::uint8_t least_ = 0;    // the range of the next one of them
    std::uint8_t most_ = 0;
};

/// True if the whole text is valid UTF-8. Any thread.
bool is_utf8(std::string_view text) noexcept;

}  // namespace eddy
