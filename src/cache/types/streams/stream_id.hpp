// Stream ID: milliseconds since 1970 and a number among those of one millisecond.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <limits>
#include <string_view>

namespace eddy::cache {

struct stream_id {
    std::uint64_t ms = 0;
    std::uint64_t seq = 0;

    static constexpr std::uint64_t max_part = std::numeric_limits<std::uint64_t>::max();
    static constexpr stream_id max() noexcept { return {max_part, max_part}; }

    constexpr auto operator<=>(const stream_id&) const noexcept = default;
    constexpr bool is_zero() const noexcept { return (ms | seq) == 0; }

    /// To the next or the previous ID; false, and the ID wraps around, when there is none.
    constexpr bool increment() noexcept {
        if (++seq == 0) ++ms;
        return (ms | seq) != 0;
    }
    constexpr bool decrement() noexcept {
        const bool was_zero = is_zero();
        if (seq-- == 0) --ms;
        return !was_zero;
    }
};

/// The bytes that an ID's text may take.
inline constexpr std::size_t max_stream_id_text = 41;

/// An ID as text, "1526919030474-55", in a buffer of its own.
class stream_id_text {
public:
    explicit stream_id_text(stream_id of, char between = '-') noexcept {
        char* at = std::to_chars(text_, text_ + sizeof text_, of.ms).ptr;
        *at++ = between;
        at = std::to_chars(at, text_ + sizeof text_, of.seq).ptr;
        size_ = static_cast<std::uint8_t>(at - text_);
    }
    std::string_view view() const noexcept { return {text_, size_}; }

private:
    char text_[max_stream_id_text];
    std::uint8_t size_;
};

enum class id_syntax : std::uint8_t {
    loose,   ///< "-" and "+" are the lowest and the highest ID
    strict,  ///< they are errors
};

/// An ID, or its milliseconds alone, which `missing_seq` completes. With `has_seq`, "5-*" is taken,
/// too, and that is false then. False when it is none.
bool parse_stream_id(std::string_view text, stream_id& to, std::uint64_t missing_seq,
                     id_syntax syntax, bool* has_seq = nullptr) noexcept;

}  // namespace eddy::cache
