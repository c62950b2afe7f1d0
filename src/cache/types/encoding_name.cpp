// Redis's limits of its encodings.
#include "cache/types/encoding_name.hpp"

#include "cache/keyspace/keyspace.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/number.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <algorithm>
#include <bit>

namespace eddy::cache {
namespace {

// Bytes of an element in a listpack.
std::size_t listpack_bytes(std::string_view text) noexcept {
    std::size_t bytes = 0;
    if (const auto number = parse_integer(text)) {
        const std::uint64_t high =
            static_cast<std::uint64_t>(*number < 0 ? ~*number : *number);  // without its sign
        const auto bits = static_cast<std::size_t>(std::bit_width(high)) + 1;
        if (*number >= 0 && *number <= 127)
            bytes = 1;
        else if (bits <= 13)
            bytes = 2;
        else if (bits <= 32)
            bytes = 1 + (bits + 7) / 8;
        else
            bytes = 9;
    } else {
        constexpr std::size_t short_text = 64;
        constexpr std::size_t long_text = 4096;
        bytes = text.size() + (text.size() < short_text ? 1 : text.size() < long_text ? 2 : 5);
    }
    // Its length follows in groups of seven bits.
    std::size_t back = 1;
    for (std::size_t left = bytes >> 7; left > 0; left >>= 7) ++back;
    return bytes + back;
}

struct list_limits {
    std::size_t bytes;
    std::size_t elements;
};

// Limits of a listpack, by list-max-listpack-size.
list_limits limits_of(std::int64_t size) noexcept {
    constexpr std::int64_t smallest = 2048;
    constexpr std::size_t always = 8192;
    if (size >= 0) return {always, static_cast<std::size_t>(std::max<std::int64_t>(size, 1))};
    return {static_cast<std::size_t>(smallest << std::min<std::int64_t>(-size, 5)), SIZE_MAX};
}

// True if the elements are within the limits.
bool fits_listpack(const list& elements, list_limits most, list_measure how) noexcept {
    constexpr std::size_t head = 7;
    // A number takes up to 2.5 times as many bytes in decimal as in a listpack.
    constexpr std::size_t parts = 5;
    constexpr std::size_t parts_of_numbers = 2;
    if (elements.size() > most.elements) return false;
    const std::size_t used = elements.used_bytes(most.bytes / parts_of_numbers * parts);
    if (used > most.bytes / parts_of_numbers * parts) return false;
    if (how == list_measure::fast) {
        return used + head <= most.bytes || parse_integer(elements.front()).has_value();
    }
    std::size_t bytes = head;
    for (list::position at = elements.first(); at && bytes <= most.bytes; at = list::after(at))
        bytes += listpack_bytes(list::get(at));
    return bytes <= most.bytes;
}

// True if Redis would hold a hash with expiring fields in a listpack.
bool fits(const encoding_limits& limits, const collection& fields) {
    if (fields.size() > limits.hash_fields) return false;
    collection::walk walk(fields);
    for (collection::element e; walk.next(e);)
        if (std::max(e.field.size(), e.value.size()) > limits.hash_text) return false;
    return true;
}

}  // namespace

void detail::note_large_list(const environment& env, entry& list_entry, list_measure how) {
    const list& elements = *list_entry.pointer<list>();
    // One block is smaller than any listpack with a limit in bytes.
    if (elements.is_one_block() && env.limits.list_size < 0 && how == list_measure::fast) return;
    if (!fits_listpack(elements, limits_of(env.limits.list_size), how))
        list_entry.flags |= entry::large_list;
}

void detail::note_small_list(const environment& env, entry& list_entry, list_measure how) {
    list_limits most = limits_of(env.limits.list_size);
    most.bytes /= 2;
    most.elements /= 2;
    const list& elements = *list_entry.pointer<list>();
    if (how == list_measure::fast && elements.used_bytes(most.bytes) > most.bytes) return;
    if (fits_listpack(elements, most, how))
        list_entry.flags &= static_cast<std::uint8_t>(~entry::large_list);
}

std::string_view encoding_name(environment& env, entry& e) {
    constexpr std::size_t max_embedded = 44;
    switch (e.type) {
        case value_type::string:
            if (e.held_as == encoding::integer) return "int";
            return e.has(entry::modified_text) || text_size(e) > max_embedded ? "raw" : "embstr";
        case value_type::list:
            return !e.has(entry::large_list) &&
                           fits_listpack(*e.pointer<list>(), limits_of(env.limits.list_size),
                                         list_measure::exact)
                       ? "listpack"
                       : "quicklist";
        case value_type::set: {
            const collection members = collection(env, e);
            if (members.is_integers()) return "intset";
            return members.is_listed() ? "listpack" : "hashtable";
        }
        case value_type::hash: {
            const collection fields = collection(env, e);
            if (fields.is_listed()) return "listpack";
            return e.held_as == encoding::timed_table && fits(env.limits, fields) ? "listpackex"
                                                                                  : "hashtable";
        }
        case value_type::sorted_set:
            return sorted_set(env, e).is_listed() ? "listpack" : "skiplist";
        case value_type::stream: return "stream";
    }
    return "unknown";
}

}  // namespace eddy::cache
