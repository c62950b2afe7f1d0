// Strings as bitmaps: SETBIT and its kin. BITFIELD is in bitfield.cpp.
//
// SETBIT and GETBIT are O(1) but for a string's growth; the others are O(bytes that they read).
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/types/bits.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

constexpr std::string_view bad_offset_text = "ERR bit offset is not an integer or out of range";
constexpr std::string_view bad_bit_text = "ERR bit is not an integer or out of range";

// The bit's place, within what the longest string may hold.
std::optional<std::uint64_t> bit_offset(call& c, std::size_t i) {
    const auto given = parse_integer(c.arg(i));
    if (given && *given >= 0 && static_cast<std::uint64_t>(*given) / 8 < c.longest_text()) {
        return static_cast<std::uint64_t>(*given);
    }
    c.error(bad_offset_text);
    return std::nullopt;
}

// The arguments "start end BYTE|BIT", from args[first] on, as a run of bits.
struct bit_range {
    std::int64_t first = 0;
    std::int64_t last = -1;  // -1: the last one
    bool in_bits = false;

    bool parse_unit(call& c, std::size_t i) {
        in_bits = is_word(c.arg(i), "bit");
        if (in_bits || is_word(c.arg(i), "byte")) return true;
        c.syntax_error();
        return false;
    }

    // Resolves counts from the end. The run may be empty: its last bit is then before the first.
    // Afterwards in bits, the last one included.
    void resolve(std::size_t bytes) noexcept {
        const auto size = static_cast<std::int64_t>(in_bits ? bytes * 8 : bytes);
        if (first < 0) first = std::max<std::int64_t>(first + size, 0);
        if (last < 0) last = std::max<std::int64_t>(last + size, 0);
        last = std::min(last, size - 1);
        if (in_bits || first > last) return;
        first *= 8;
        last = last * 8 + 7;
    }
};

}  // namespace

void setbit(call& c) {
    const auto offset = bit_offset(c, 2);
    if (!offset) return;
    const auto bit = c.integer_in(3, 0, 1, bad_bit_text);
    if (!bit) return;
    slot* place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::string)) return;
    const std::size_t needed = *offset / 8 + 1;
    const std::size_t old = place == nullptr ? 0 : text_size(*keyspace::at(place));
    if (place == nullptr) place = c.keys->put_text(nullptr, c.arg(1), c.hash, "");
    char& byte = c.keys->open_text(place, std::max(old, needed))[*offset / 8];
    const auto mask = static_cast<char>(0x80U >> (*offset % 8));
    const bool was = (byte & mask) != 0;
    byte = static_cast<char>(*bit != 0 ? byte | mask : byte & ~mask);
    if (needed > old || was != (*bit != 0)) c.changed(key_event::string, "setbit", c.arg(1));
    c.reply.integer(was ? 1 : 0);
}

void getbit(call& c) {
    const auto offset = bit_offset(c, 2);
    if (!offset) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::string)) return;
    text_view view;
    c.reply.integer(static_cast<std::int64_t>(read_bits(view(*keyspace::at(place)), *offset, 1)));
}

void bitcount(call& c) {
    // As in Redis 7.2 the key comes before the arguments: a missing one has no bits in any range.
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::string)) return;
    bit_range range;
    if (c.count == 4 || c.count == 5) {
        const auto first = c.integer(2);
        if (!first) return;
        const auto last = c.integer(3);
        if (!last) return;
        if (*first < 0 && *last < 0 && *first > *last) return c.reply.integer(0);
        range.first = *first;
        range.last = *last;
        if (c.count == 5 && !range.parse_unit(c, 4)) return;
    } else if (c.count != 2) {
        return c.syntax_error();
    }
    text_view view;
    const std::string_view text = view(*keyspace::at(place));
    range.resolve(text.size());
    if (range.first > range.last) return c.reply.integer(0);
    c.reply.integer(
        static_cast<std::int64_t>(count_bits(text, static_cast<std::uint64_t>(range.first),
                                             static_cast<std::uint64_t>(range.last) + 1)));
}

void bitpos(call& c) {
    const auto bit = c.integer(2);
    if (!bit) return;
    if (*bit != 0 && *bit != 1) return c.error("ERR The bit argument must be 1 or 0.");
    const slot* const place = c.find_to_read();
    // A missing key counts as an infinite number of zeros.
    if (place == nullptr) return c.reply.integer(*bit == 1 ? -1 : 0);
    if (c.is_not(place, value_type::string)) return;
    bit_range range;
    bool has_end = false;
    if (c.count >= 4 && c.count <= 6) {
        const auto first = c.integer(3);
        if (!first) return;
        range.first = *first;
        if (c.count == 6 && !range.parse_unit(c, 5)) return;
        has_end = c.count >= 5;
        if (has_end) {
            const auto last = c.integer(4);
            if (!last) return;
            range.last = *last;
        }
    } else if (c.count != 3) {
        return c.syntax_error();
    }
    text_view view;
    const std::string_view text = view(*keyspace::at(place));
    range.resolve(text.size());
    if (range.first > range.last) return c.reply.integer(-1);
    const auto end = static_cast<std::uint64_t>(range.last) + 1;
    const auto found = find_bit(text, static_cast<std::uint64_t>(range.first), end, *bit == 1);
    if (found) return c.reply.integer(static_cast<std::int64_t>(*found));
    // Without an end the string is followed by zeros.
    c.reply.integer(*bit == 0 && !has_end ? static_cast<std::int64_t>(end) : -1);
}

namespace {

struct named_operation {
    std::string_view name;
    bit_operation what;
    bool needs_others = false;
};

constexpr named_operation operations[] = {
    {"AND", bit_operation::all_of},
    {"OR", bit_operation::any_of},
    {"XOR", bit_operation::exclusive},
    {"NOT", bit_operation::negation},
    {"DIFF", bit_operation::without_others, true},
    {"DIFF1", bit_operation::others_without, true},
    {"ANDOR", bit_operation::shared, true},
    {"ONE", bit_operation::exactly_one},
};

// None, with the error replied, for an unknown one or too few or too many sources.
std::optional<bit_operation> operation_argument(call& c) {
    const auto* const found = std::ranges::find_if(operations, [&c](const named_operation& each) {
        return equal_in_any_case(c.arg(1), each.name);
    });
    if (found == std::end(operations)) {
        c.syntax_error();
        return std::nullopt;
    }
    if (found->what == bit_operation::negation && c.count != 4) {
        c.error("ERR BITOP NOT must be called with a single source key.");
        return std::nullopt;
    }
    if (found->needs_others && c.count < 5) {
        c.error("ERR BITOP " + std::string(found->name) +
                " must be called with at least two source keys.");
        return std::nullopt;
    }
    return found->what;
}

}  // namespace

void bitop(call& c) {
    const auto how = operation_argument(c);
    if (!how) return;
    const std::string_view to = c.arg(2);
    std::vector<entry*> entries;
    std::size_t size = 0;
    bool onto_source = false;
    for (std::size_t i = 3; i < c.count; ++i) {
        const slot* const place = c.find_to_read(c.arg(i));
        if (place != nullptr && c.is_not(place, value_type::string)) return;
        entries.push_back(place == nullptr ? nullptr : keyspace::at(place));
        if (place == nullptr) continue;
        size = std::max(size, text_size(*entries.back()));
        onto_source |= c.arg(i) == to;
    }
    const std::uint64_t hash = c.keys->hash(to);
    slot* place = c.keys->find(to, hash);
    if (size == 0) {
        if (place != nullptr) {
            c.keys->remove(place, hash);
            c.changed(key_event::generic, "del", to);
        }
        return c.reply.integer(0);
    }
    const entry* const old = place == nullptr ? nullptr : keyspace::at(place);
    const std::size_t old_size = onto_source ? text_size(*old) : 0;
    char* bytes;
    if (onto_source) {
        c.keys->drop_expiry(place);
        bytes = c.keys->open_text(place, size);
    } else {
        bytes = c.keys->put_blank(place, to, hash, size);
    }
    // Other entries do not move, whatever happens to the target's.
    std::vector<text_view> views(entries.size());
    std::vector<std::string_view> sources;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i] == nullptr) {
            sources.emplace_back();
        } else if (onto_source && entries[i] == old) {
            sources.emplace_back(bytes, old_size);
        } else {
            sources.push_back(views[i](*entries[i]));
        }
    }
    combine_bits(*how, sources, bytes, size);
    c.changed(key_event::string, "set", to);
    c.reply.integer(static_cast<std::int64_t>(size));
}

}  // namespace eddy::cache::commands
