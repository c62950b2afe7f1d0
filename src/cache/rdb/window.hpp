// Input window of the reader: the bytes at hand, from which one whole unit after another is taken.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

enum class text_form : std::uint8_t { plain, number, lzf };

/// A string as it is written. It is not expanded before all of it is there.
struct written_text {
    text_form form = text_form::plain;
    std::string_view bytes;    // plain, or packed
    std::int64_t number = 0;   // in place of bytes
    std::size_t expanded = 0;  // of packed bytes
};

/// Where a text is put that does not stand in the input as it is.
struct text_scratch {
    char digits[24];
    byte_buffer expanded;
};

/// A unit of the input begins where the window begins. Each function takes what its name says, or
/// returns false: then either needed() bytes of the unit must be present for another try, or
/// fault() is the reason why no further byte can help.
class window {
public:
    window(std::string_view bytes, std::size_t max_text) noexcept
        : bytes_(bytes), max_text_(max_text) {}

    /// Bytes that were taken.
    std::size_t used() const noexcept { return at_; }
    std::size_t needed() const noexcept { return needed_; }
    const char* fault() const noexcept { return fault_; }
    bool fail(const char* why) noexcept {
        fault_ = why;
        return false;
    }

    bool take(std::size_t size, std::string_view& to) noexcept {
        if (size > bytes_.size() - at_) {
            needed_ = at_ + size;
            return false;
        }
        to = bytes_.substr(at_, size);
        at_ += size;
        return true;
    }
    bool byte(std::uint8_t& to) noexcept;
    /// `size` bytes, at most 8, the lowest first.
    bool little(std::size_t size, std::uint64_t& to) noexcept;
    bool length(std::uint64_t& to) noexcept;
    /// The same; `is_longer` when a shorter form would have done.
    bool length(std::uint64_t& to, bool& is_longer) noexcept;
    bool text(written_text& to) noexcept;

    /// The text as bytes, which are the input's or the scratch's. The sizes were checked by text().
    bool expand(const written_text& from, text_scratch& scratch, std::string_view& to);

private:
    bool length_or_special(std::uint64_t& to, bool& special) noexcept;
    bool text_size(std::uint64_t& to) noexcept;

    std::string_view bytes_;
    std::size_t max_text_;
    std::size_t at_ = 0;
    std::size_t needed_ = 0;
    const char* fault_ = nullptr;
};

}  // namespace eddy::cache::rdb
