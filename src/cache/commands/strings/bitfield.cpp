// Strings as arrays of integers of any width: BITFIELD and BITFIELD_RO. O(1) an operation.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/types/bits.hpp"

#include <algorithm>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class field_action : std::uint8_t { get, set, increment };
enum class on_overflow : std::uint8_t { wrap, saturate, fail };
enum class overflow : std::uint8_t { none, above, below };

struct field {
    bool is_signed = false;
    unsigned width = 0;
    std::uint64_t offset = 0;

    std::uint64_t last_bit() const noexcept { return offset + width - 1; }
    // The lowest `width` bits as a number of 64 bits.
    std::int64_t widened(std::uint64_t bits) const noexcept {
        const unsigned shift = 64 - width;
        return is_signed ? static_cast<std::int64_t>(bits << shift) >> shift
                         : static_cast<std::int64_t>(bits << shift >> shift);
    }
};

struct field_operation {
    field_action action;
    on_overflow policy;
    field at;
    std::int64_t operand;
};

bool parse_type(call& c, std::size_t i, field& to) {
    const std::string_view text = c.arg(i);
    to.is_signed = text.starts_with('i');
    if (to.is_signed || text.starts_with('u')) {
        const auto width = parse_integer(text.substr(1));
        if (width && *width >= 1 && *width <= (to.is_signed ? 64 : 63)) {
            to.width = static_cast<unsigned>(*width);
            return true;
        }
    }
    c.error(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
        "i64 is.");
    return false;
}

// Offset in bits, or in fields after '#'.
bool parse_offset(call& c, std::size_t i, field& to) {
    std::string_view text = c.arg(i);
    const bool in_fields = text.starts_with('#');
    if (in_fields) text.remove_prefix(1);
    const auto number = parse_integer(text);
    // A product that overflows is refused; in Redis it wraps to another offset.
    std::int64_t bits = 0;
    if (number &&
        !__builtin_mul_overflow(*number, static_cast<std::int64_t>(in_fields ? to.width : 1),
                                &bits) &&
        bits >= 0 && static_cast<std::uint64_t>(bits) / 8 < c.longest_text()) {
        to.offset = static_cast<std::uint64_t>(bits);
        return true;
    }
    c.error("ERR bit offset is not an integer or out of range");
    return false;
}

// False, with the error replied, for malformed operations.
bool parse_operations(call& c, std::vector<field_operation>& to) {
    on_overflow policy = on_overflow::wrap;
    for (std::size_t i = 2; i < c.count;) {
        const std::size_t left = c.count - i - 1;
        field_operation one{field_action::get, policy, {}, 0};
        if (is_word(c.arg(i), "get") && left >= 2) {
        } else if (is_word(c.arg(i), "set") && left >= 3) {
            one.action = field_action::set;
        } else if (is_word(c.arg(i), "incrby") && left >= 3) {
            one.action = field_action::increment;
        } else if (is_word(c.arg(i), "overflow") && left >= 1) {
            const std::string_view name = c.arg(i + 1);
            if (is_word(name, "wrap")) {
                policy = on_overflow::wrap;
            } else if (is_word(name, "sat")) {
                policy = on_overflow::saturate;
            } else if (is_word(name, "fail")) {
                policy = on_overflow::fail;
            } else {
                c.error("ERR Invalid OVERFLOW type specified");
                return false;
            }
            i += 2;
            continue;
        } else {
            c.syntax_error();
            return false;
        }
        if (!parse_type(c, i + 1, one.at) || !parse_offset(c, i + 2, one.at)) return false;
        i += 3;
        if (one.action != field_action::get) {
            const auto operand = c.integer(i++);
            if (!operand) return false;
            one.operand = *operand;
        }
        to.push_back(one);
    }
    return true;
}

// Overflow of start + step beyond the field's range. The intermediate sums wrap around at 64 bits,
// so that SET of a number far below the range counts as one above it, as in Redis.
overflow check(const field& f, std::int64_t start, std::int64_t step) noexcept {
    const auto minus = [](std::int64_t a, std::int64_t b) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) -
                                         static_cast<std::uint64_t>(b));
    };
    const unsigned value_bits = f.is_signed ? f.width - 1 : f.width;
    const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << value_bits) - 1);
    if (!f.is_signed) {
        // A negative number counts as a huge one.
        if (start < 0 || start > highest || (step > 0 && step > highest - start)) {
            return overflow::above;
        }
        return step < 0 && step < -start ? overflow::below : overflow::none;
    }
    const std::int64_t lowest = -highest - 1;
    const std::int64_t room_above = minus(highest, start);
    const std::int64_t room_below = minus(lowest, start);
    const bool narrow = f.width != 64;
    if (start > highest || (narrow && step > room_above) ||
        (start >= 0 && step > 0 && step > room_above)) {
        return overflow::above;
    }
    if (start < lowest || (narrow && step < room_below) ||
        (start < 0 && step < 0 && step < room_below)) {
        return overflow::below;
    }
    return overflow::none;
}

std::int64_t saturated(const field& f, overflow at) noexcept {
    const unsigned value_bits = f.is_signed ? f.width - 1 : f.width;
    const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << value_bits) - 1);
    if (at == overflow::above) return highest;
    return f.is_signed ? -highest - 1 : 0;
}

// Executes one SET or INCRBY and replies; true if it changed the string.
bool write_field(call& c, const field_operation& what, char* bytes, std::size_t size) {
    const field& f = what.at;
    const std::int64_t old = f.widened(read_bits({bytes, size}, f.offset, f.width));
    const bool adds = what.action == field_action::increment;
    const std::int64_t start = adds ? old : what.operand;
    const std::int64_t step = adds ? what.operand : 0;
    auto made = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                          static_cast<std::uint64_t>(step));
    if (const overflow over = check(f, start, step); over != overflow::none) {
        if (what.policy == on_overflow::fail) {
            c.reply.null();
            return false;
        }
        made = what.policy == on_overflow::saturate ? saturated(f, over)
                                                    : f.widened(static_cast<std::uint64_t>(made));
    }
    write_bits(bytes, size, f.offset, f.width, static_cast<std::uint64_t>(made));
    c.reply.integer(adds ? made : old);
    return made != old;
}

enum class writing : std::uint8_t { allowed, refused };

void run_bitfield(call& c, writing may_write) {
    std::vector<field_operation> operations;
    if (!parse_operations(c, operations)) return;
    bool writes = false;
    std::uint64_t last_written = 0;
    for (const field_operation& each : operations) {
        if (each.action == field_action::get) continue;
        writes = true;
        last_written = std::max(last_written, each.at.last_bit());
    }
    if (!writes) {
        const slot* const place = c.find_to_read();
        if (place != nullptr && c.is_not(place, value_type::string)) return;
        text_view view;
        const std::string_view text =
            place == nullptr ? std::string_view{} : view(*keyspace::at(place));
        c.reply.array(operations.size());
        for (const field_operation& each : operations) {
            c.reply.integer(each.at.widened(read_bits(text, each.at.offset, each.at.width)));
        }
        return;
    }
    if (may_write == writing::refused) {
        return c.error("ERR BITFIELD_RO only supports the GET subcommand");
    }
    slot* place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::string)) return;
    const std::size_t old = place == nullptr ? 0 : text_size(*keyspace::at(place));
    if (place == nullptr) place = c.keys->put_text(nullptr, c.arg(1), c.hash, "");
    const std::size_t size = std::max<std::size_t>(old, last_written / 8 + 1);
    char* const bytes = c.keys->open_text(place, size);
    bool changed = false;
    bool wrote = false;
    c.reply.array(operations.size());
    for (const field_operation& each : operations) {
        if (each.action == field_action::get) {
            c.reply.integer(
                each.at.widened(read_bits({bytes, size}, each.at.offset, each.at.width)));
        } else {
            changed |= write_field(c, each, bytes, size);
            wrote = true;
        }
    }
    if (changed || (wrote && size > old)) c.changed(key_event::string, "setbit", c.arg(1));
}

}  // namespace

void bitfield(call& c) { run_bitfield(c, writing::allowed); }
void bitfield_ro(call& c) { run_bitfield(c, writing::refused); }

}  // namespace eddy::cache::commands
