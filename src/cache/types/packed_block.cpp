// The index of a packed block, kept as fields come and go.
#include "cache/types/packed_block.hpp"

#include <eddy/base/assert.hpp>

#include "cache/memory/entry.hpp"

#include <algorithm>
#include <bit>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace eddy::cache {
namespace {

// Tags that are compared at once; room_step is a multiple of it.
constexpr std::size_t width = 16;
static_assert(indexed_block::room_step % width == 0);

// A bit for each of the tags at `at` that is this one.
unsigned match(const std::uint8_t* at, std::uint8_t tag) noexcept {
#ifdef __SSE2__
    const __m128i line = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(tag));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(line, wanted)));
#else
    unsigned found = 0;
    for (unsigned i = 0; i < width; ++i) found |= static_cast<unsigned>(at[i] == tag) << i;
    return found;
#endif
}

}  // namespace

bool packed_text::is_less(std::string_view one, std::string_view other) noexcept {
    const bool negative = one.front() == '-';
    if (negative != (other.front() == '-')) return negative;
    if (one.size() != other.size()) return (one.size() < other.size()) != negative;
    const int order = one.compare(other);
    return negative ? order > 0 : order < 0;
}

indexed_block* indexed_block::make(slab& memory, std::size_t bytes, std::size_t fields) {
    const std::size_t room = (fields + room_step - 1) / room_step * room_step;
    const std::size_t head = sizeof(indexed_block) + index_bytes(room);
    const std::size_t capacity = slab::capacity(head + bytes + bytes / 8) - head;
    auto* const made = static_cast<indexed_block*>(memory.allocate(head + capacity));
    *made = {static_cast<std::uint32_t>(capacity), 0, 0, static_cast<std::uint16_t>(room), 0, 0};
    // The last line of tags is compared whole.
    std::memset(made->tags(), 0, room);
    return made;
}

void indexed_block::take(indexed_block& from) noexcept {
    EDDY_ASSERT(from.count <= room && from.used <= capacity);
    used = from.used;
    count = from.count;
    flags = from.flags;
    const std::size_t groups = (count + group - 1) / group;
    std::memcpy(offsets(), from.offsets(), groups * sizeof(std::uint32_t));
    std::memcpy(tags(), from.tags(), count);
    std::memcpy(data(), from.data(), used);
}

indexed_block* indexed_block::widen(slab& memory, indexed_block* from, std::size_t bytes,
                                    std::size_t fields) {
    indexed_block* const made = make(memory, bytes, fields);
    made->take(*from);
    from->release(memory);
    return made;
}

indexed_block::place indexed_block::at(std::size_t index, bool pairs) noexcept {
    char* to = data() + offsets()[index / group];
    for (std::size_t left = index % group; left > 0; --left)
        to = packed_text::skip_field(to, pairs);
    return {index, to};
}

indexed_block::place indexed_block::find(std::string_view field, std::uint8_t tag,
                                         bool pairs) noexcept {
    const std::uint8_t* const all = tags();
    for (std::size_t first = 0; first < count; first += width) {
        unsigned found = match(all + first, tag);
        if (count - first < width) found &= (1U << (count - first)) - 1;
        for (; found != 0; found &= found - 1) {
            const place here = at(first + static_cast<unsigned>(std::countr_zero(found)), pairs);
            if (same_bytes(packed_text::read(here.at), field)) return here;
        }
    }
    return {};
}

indexed_block::place indexed_block::find_integer(std::string_view least) noexcept {
    if (count == 0) return end();
    // The last group that begins with less.
    std::size_t low = 0;
    for (std::size_t high = (count + group - 1) / group; high - low > 1;) {
        const std::size_t middle = (low + high) / 2;
        const char* const first = data() + offsets()[middle];
        (packed_text::is_less(packed_text::read(first), least) ? low : high) = middle;
    }
    place here = at(low * group, false);
    while (here.index < count && packed_text::is_less(packed_text::read(here.at), least))
        here = {here.index + 1, packed_text::skip(here.at)};
    return here;
}

void indexed_block::insert(place before, std::string_view field, std::string_view value,
                           std::uint8_t tag, bool pairs) noexcept {
    const std::size_t need = 1 + field.size() + (pairs ? 1 + value.size() : 0);
    EDDY_ASSERT(before.index <= count && count < room && used + need <= capacity);
    char* const end = data() + used;
    std::memmove(before.at + need, before.at, static_cast<std::size_t>(end - before.at));
    char* const to = packed_text::write(before.at, field);
    if (pairs) packed_text::write(to, value);
    std::uint8_t* const tag_at = tags() + before.index;
    std::memmove(tag_at + 1, tag_at, count - before.index);
    *tag_at = tag;
    used += static_cast<std::uint32_t>(need);
    ++count;
    // Each group behind begins with what was the last field of the one before.
    std::size_t next = before.index / group;
    if (before.index % group == 0) offsets()[next] = static_cast<std::uint32_t>(before.at - data());
    char* first = data() + offsets()[next];
    for (++next; next * group < count; ++next) {
        for (std::size_t i = 0; i < group; ++i) first = packed_text::skip_field(first, pairs);
        offsets()[next] = static_cast<std::uint32_t>(first - data());
    }
}

void indexed_block::replace_value(place of, std::string_view value) noexcept {
    char* const old = packed_text::skip(of.at);
    const std::size_t old_size = packed_text::read(old).size();
    EDDY_ASSERT(of.index < count && used + value.size() <= capacity + old_size);
    if (old_size != value.size()) {
        char* const rest = packed_text::skip(old);
        std::memmove(old + 1 + value.size(), rest, static_cast<std::size_t>(data() + used - rest));
        // Modulo 2^32, so that it may be negative.
        const auto more = static_cast<std::uint32_t>(value.size() - old_size);
        used += more;
        for (std::size_t next = of.index / group + 1; next * group < count; ++next)
            offsets()[next] += more;
    }
    packed_text::write(old, value);
}

void indexed_block::erase(place gone, bool pairs) noexcept {
    EDDY_ASSERT(gone.index < count);
    char* const rest = packed_text::skip_field(gone.at, pairs);
    const auto less = static_cast<std::uint32_t>(rest - gone.at);
    --count;
    std::memmove(gone.at, rest, static_cast<std::size_t>(data() + used - rest));
    used -= less;
    // Each group behind begins with what was its second field.
    for (std::size_t next = gone.index / group + 1; next * group < count; ++next) {
        const char* const first = data() + offsets()[next] - less;
        offsets()[next] =
            static_cast<std::uint32_t>(packed_text::skip_field(first, pairs) - data());
    }
    std::uint8_t* const tag_at = tags() + gone.index;
    std::memmove(tag_at, tag_at + 1, count - gone.index);
}

}  // namespace eddy::cache
