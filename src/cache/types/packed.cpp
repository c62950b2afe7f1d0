// Walks over the four encodings.
#include "cache/types/packed.hpp"

#include "cache/types/listpack.hpp"
#include "cache/types/number.hpp"

#include <cstring>

namespace eddy::cache {
namespace {

constexpr std::uint8_t end_mark = 0xff;
// A count that did not fit its 16 bits.
constexpr std::size_t unknown_count = 0xffff;

constexpr const char* ends_early = "a packed value ends too early";
constexpr const char* wrong_size = "a packed value does not have the size that it claims";
constexpr const char* wrong_count = "a packed value does not have the elements that it claims";
constexpr const char* wrong_encoding = "an element of a packed value has no known encoding";
constexpr const char* wrong_back_size = "an element of a packed value has a wrong size behind it";

std::uint64_t little(const char* from, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
}

std::uint64_t big(const char* from, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        value = value << 8 | static_cast<std::uint8_t>(from[i]);
    }
    return value;
}

std::int64_t sign_extend(std::uint64_t value, unsigned bits) noexcept {
    const unsigned unused = 64 - bits;
    return static_cast<std::int64_t>(value << unused) >> unused;
}

}  // namespace

std::string_view packed_item::text(char (&digits)[24]) const noexcept {
    if (!is_number) return bytes;
    return {digits, static_cast<std::size_t>(write_integer(digits, number) - digits)};
}

packed_step listpack_walk::next(packed_item& to) noexcept {
    constexpr std::size_t header = 6;
    if (at_ == 0) {
        if (block_.size() < header + 1) return broken(ends_early);
        if (little(block_.data(), 4) != block_.size()) return broken(wrong_size);
        at_ = header;
    }
    if (!has(at_, 1)) return broken(ends_early);
    const std::uint8_t mark = byte(at_);
    if (mark == end_mark) {
        if (at_ + 1 != block_.size()) return broken(wrong_size);
        const std::size_t claimed = little(block_.data() + 4, 2);
        if (claimed != unknown_count && claimed != count_) return broken(wrong_count);
        return packed_step::end;
    }
    std::size_t head = 1;  // bytes before the text
    std::size_t text_size = 0;
    bool is_text = false;
    const char* const data = block_.data() + at_;
    const auto take_text = [&](std::size_t head_size, std::size_t size) {
        head = head_size;
        text_size = size;
        is_text = true;
    };
    if (mark < 0x80) {
        to = packed_item::of(std::int64_t{mark});
    } else if (mark < 0xc0) {
        take_text(1, mark & 0x3fU);
    } else if (mark < 0xe0) {
        if (!has(at_, 2)) return broken(ends_early);
        head = 2;
        to = packed_item::of(sign_extend(big(data, 2) & 0x1fff, 13));
    } else if (mark < 0xf0) {
        if (!has(at_, 2)) return broken(ends_early);
        take_text(2, big(data, 2) & 0xfff);
    } else if (mark == 0xf0) {
        if (!has(at_, 5)) return broken(ends_early);
        take_text(5, little(data + 1, 4));
    } else if (mark <= 0xf4) {
        const std::size_t width = mark == 0xf4 ? 8 : mark - 0xf1U + 2U;
        if (!has(at_, 1 + width)) return broken(ends_early);
        head = 1 + width;
        to =
            packed_item::of(sign_extend(little(data + 1, width), static_cast<unsigned>(width) * 8));
    } else {
        return broken(wrong_encoding);
    }
    if (!has(at_ + head, text_size)) return broken(ends_early);
    if (is_text) to = packed_item::of(block_.substr(at_ + head, text_size));
    const std::size_t size = head + text_size;
    char back[5];
    const auto back_size = static_cast<std::size_t>(listpack::put_back_size(back, size) - back);
    if (!has(at_ + size, back_size)) return broken(ends_early);
    if (std::memcmp(data + size, back, back_size) != 0) return broken(wrong_back_size);
    at_ += size + back_size;
    ++count_;
    return packed_step::item;
}

packed_step ziplist_walk::next(packed_item& to) noexcept {
    constexpr std::size_t header = 10;
    constexpr std::uint8_t long_previous = 254;
    if (at_ == 0) {
        if (block_.size() < header + 1) return broken(ends_early);
        if (little(block_.data(), 4) != block_.size()) return broken(wrong_size);
        at_ = last_ = header;
    }
    if (!has(at_, 1)) return broken(ends_early);
    if (byte(at_) == end_mark) {
        if (at_ + 1 != block_.size()) return broken(wrong_size);
        if (little(block_.data() + 4, 4) != last_) {
            return broken("a ziplist's last element is not where it claims");
        }
        const std::size_t claimed = little(block_.data() + 8, 2);
        if (claimed != unknown_count && claimed != count_) return broken(wrong_count);
        return packed_step::end;
    }
    std::size_t at = at_ + 1;
    std::size_t previous = byte(at_);
    if (previous == long_previous) {
        if (!has(at, 4)) return broken(ends_early);
        previous = little(block_.data() + at, 4);
        at += 4;
    }
    if (previous != previous_size_) return broken(wrong_back_size);

    if (!has(at, 1)) return broken(ends_early);
    const std::uint8_t mark = byte(at);
    const char* const data = block_.data() + at;
    if (mark < 0xc0) {
        std::size_t head = 1;
        std::size_t text_size = mark & 0x3fU;
        if (mark >= 0x80) {
            if (!has(at, 5)) return broken(ends_early);
            head = 5;
            text_size = big(data + 1, 4);
        } else if (mark >= 0x40) {
            if (!has(at, 2)) return broken(ends_early);
            head = 2;
            text_size = big(data, 2) & 0x3fff;
        }
        if (!has(at + head, text_size)) return broken(ends_early);
        to = packed_item::of(block_.substr(at + head, text_size));
        at += head + text_size;
    } else {
        std::size_t width = 0;
        switch (mark) {
            case 0xc0: width = 2; break;
            case 0xd0: width = 4; break;
            case 0xe0: width = 8; break;
            case 0xf0: width = 3; break;
            case 0xfe: width = 1; break;
            default:
                if (mark < 0xf1 || mark > 0xfd) return broken(wrong_encoding);
                break;
        }
        if (!has(at, 1 + width)) return broken(ends_early);
        to = packed_item::of(
            width == 0 ? std::int64_t{mark & 0x0f} - 1
                       : sign_extend(little(data + 1, width), static_cast<unsigned>(width) * 8));
        at += 1 + width;
    }
    last_ = at_;
    previous_size_ = at - at_;
    at_ = at;
    ++count_;
    return packed_step::item;
}

// Fields and values in turn: a size, and behind a value's size the count of unused bytes that
// follow the value.
packed_step zipmap_walk::next(packed_item& to) noexcept {
    constexpr std::uint8_t long_size = 254;
    constexpr std::size_t many = 254;  // a count that did not fit
    if (at_ == 0) {
        if (block_.size() < 2) return broken(ends_early);
        at_ = 1;
    }
    if (!has(at_, 1)) return broken(ends_early);
    const bool is_value = count_ % 2 != 0;
    if (byte(at_) == end_mark) {
        if (is_value) return broken("a zipmap's last field has no value");
        if (at_ + 1 != block_.size()) return broken(wrong_size);
        const std::size_t claimed = byte(0);
        if (claimed < many && claimed != count_ / 2) return broken(wrong_count);
        return packed_step::end;
    }
    std::size_t at = at_ + 1;
    std::size_t size = byte(at_);
    if (size == long_size) {
        if (!has(at, 4)) return broken(ends_early);
        size = little(block_.data() + at, 4);
        at += 4;
    }
    std::size_t unused = 0;
    if (is_value) {
        if (!has(at, 1)) return broken(ends_early);
        unused = byte(at++);
    }
    if (!has(at, size) || !has(at + size, unused)) return broken(ends_early);
    to = packed_item::of(block_.substr(at, size));
    at_ = at + size + unused;
    ++count_;
    return packed_step::item;
}

packed_step intset_walk::next(packed_item& to) noexcept {
    constexpr std::size_t header = 8;
    if (at_ == 0) {
        if (block_.size() < header) return broken(ends_early);
        width_ = little(block_.data(), 4);
        if (width_ != 2 && width_ != 4 && width_ != 8) return broken(wrong_encoding);
        const std::uint64_t claimed = little(block_.data() + 4, 4);
        if (claimed == 0 || block_.size() - header != claimed * width_) return broken(wrong_size);
        at_ = header;
    }
    if (at_ == block_.size()) return packed_step::end;
    const std::int64_t value =
        sign_extend(little(block_.data() + at_, width_), static_cast<unsigned>(width_) * 8);
    if (count_ > 0 && value <= last_) return broken("an intset's numbers are not in order");
    to = packed_item::of(value);
    last_ = value;
    at_ += width_;
    ++count_;
    return packed_step::item;
}

}  // namespace eddy::cache
