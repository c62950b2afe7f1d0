// Lengths and strings.
#include "cache/rdb/window.hpp"

#include "cache/rdb/format.hpp"
#include "cache/rdb/lzf.hpp"
#include "cache/types/number.hpp"

#include <cstring>

namespace eddy::cache::rdb {
namespace {

// Capacity that is kept after an unusually large string.
constexpr std::size_t kept_scratch = 1U << 20;

constexpr const char* no_length = "a length has an unknown form";
constexpr const char* text_too_long = "a string is longer than the limit";

std::uint64_t big_endian(std::string_view bytes) noexcept {
    std::uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
}

}  // namespace

bool window::byte(std::uint8_t& to) noexcept {
    std::string_view one;
    if (!take(1, one)) return false;
    to = static_cast<std::uint8_t>(one[0]);
    return true;
}

bool window::little(std::size_t size, std::uint64_t& to) noexcept {
    std::string_view bytes;
    if (!take(size, bytes)) return false;
    to = 0;
    std::memcpy(&to, bytes.data(), size);
    return true;
}

bool window::length_or_special(std::uint64_t& to, bool& special) noexcept {
    std::uint8_t first;
    if (!byte(first)) return false;
    const auto form = static_cast<length_form>(first >> 6);
    special = form == length_form::special;
    to = first & 0x3fU;
    if (special || form == length_form::bits_6) return true;
    std::string_view rest;
    if (form == length_form::bits_14) {
        if (!take(1, rest)) return false;
        to = to << 8 | static_cast<std::uint8_t>(rest[0]);
        return true;
    }
    if (first != length_32 && first != length_64) return fail(no_length);
    if (!take(first == length_32 ? 4 : 8, rest)) return false;
    to = big_endian(rest);
    return true;
}

bool window::length(std::uint64_t& to) noexcept {
    bool special = false;
    if (!length_or_special(to, special)) return false;
    return !special || fail("a string stands where a length should");
}

bool window::length(std::uint64_t& to, bool& is_longer) noexcept {
    const std::size_t before = at_;
    if (!length(to)) return false;
    constexpr std::size_t wide_bytes = 5;
    const std::size_t shortest = to < 1U << 6       ? 1
                                 : to < 1U << 14    ? 2
                                 : to <= UINT32_MAX ? wide_bytes
                                                    : at_ - before;
    is_longer = at_ - before > shortest;
    return true;
}

bool window::text_size(std::uint64_t& to) noexcept {
    return length(to) && (to <= max_text_ || fail(text_too_long));
}

bool window::text(written_text& to) noexcept {
    std::uint64_t size = 0;
    bool special = false;
    if (!length_or_special(size, special)) return false;
    if (!special) {
        to.form = text_form::plain;
        if (size > max_text_) return fail(text_too_long);
        return take(size, to.bytes);
    }
    switch (static_cast<special_text>(size)) {
        case special_text::int_8:
        case special_text::int_16:
        case special_text::int_32: {
            const std::size_t bytes = std::size_t{1} << size;
            const std::size_t unused = 64 - 8 * bytes;
            std::uint64_t number = 0;
            if (!little(bytes, number)) return false;
            to.form = text_form::number;
            to.number = static_cast<std::int64_t>(number << unused) >> unused;
            return true;
        }
        case special_text::lzf: {
            std::uint64_t packed = 0;
            std::uint64_t expanded = 0;
            if (!text_size(packed) || !text_size(expanded)) return false;
            if (expanded > packed * max_lzf_ratio) {
                return fail("a compressed string claims more than it can hold");
            }
            to.form = text_form::lzf;
            to.expanded = expanded;
            return take(packed, to.bytes);
        }
    }
    return fail("a string has an unknown form");
}

bool window::expand(const written_text& from, text_scratch& scratch, std::string_view& to) {
    switch (from.form) {
        case text_form::plain: to = from.bytes; return true;
        case text_form::number:
            to = {scratch.digits, static_cast<std::size_t>(
                                      write_integer(scratch.digits, from.number) - scratch.digits)};
            return true;
        case text_form::lzf: break;
    }
    byte_buffer& into = scratch.expanded;
    into.clear();
    if (into.capacity() > kept_scratch) into.release_if_empty();
    char* const at = into.reserve(from.expanded);
    if (!expand_lzf(from.bytes, at, from.expanded)) {
        return fail("a compressed string is damaged");
    }
    into.commit(from.expanded);
    to = into.text();
    return true;
}

}  // namespace eddy::cache::rdb
