// Release of values, at once or in slices.
#include "cache/keyspace/environment.hpp"

#include "cache/types/collection.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

// Tables of at most so many entries are freed at once, and lists and orders of so many elements:
// some ten microseconds.
constexpr std::size_t freed_at_once = 256;
// The same for strings, in bytes.
constexpr std::size_t text_freed_at_once = 4U << 20;
// Steps between two readings of the clock: entries of a table, or blocks, most of which are freed
// in 100 ns.
constexpr std::size_t steps_a_look = 64;
// Steps for a value in blocks of its own, relative to an entry.
constexpr std::size_t big_value_steps = 8;
// Steps for a page returned to the system with an entry. Keys are freed in an order unrelated to
// their addresses, so most pages become empty near the end, one with every other key.
constexpr std::size_t return_steps = 16;
// Steps for a table's segment: half a page, which is returned to the kernel with its other half.
constexpr std::size_t segment_steps = 16;
// Bytes that are returned to the kernel in one step.
constexpr std::size_t text_piece = 1U << 20;
// A stream, or a hash with expiring fields, of fewer elements is not counted as freed in slices.
constexpr std::size_t least_counted = 64;

bool counts_as_freed_in_slices(const entry& of) noexcept {
    return is_freed_in_slices(of) &&
           (of.held_as == encoding::external || elements_of(of) > least_counted);
}

}  // namespace

environment::environment(std::uint64_t seed) noexcept : hash(seed), random(seed ^ 0x9e37'79b9ULL) {}

environment::~environment() {
    slice_time = nullptr;
    while (free_some(static_cast<std::size_t>(-1))) {
    }
}

void environment::discard(dictionary&& table) {
    if (table.size() > freed_at_once) {
        tables_.emplace_back(std::move(table));
        return;
    }
    dictionary small(std::move(table));
    dictionary::iterator entries(small);
    // Entries of a keyspace may hold big tables themselves, which are freed later.
    while (dictionary::slot* const place = entries.next()) {
        release_entry(*this, dictionary::entry_of(*place));
    }
}

void environment::discard(list&& elements) {
    if (elements.size() > freed_at_once) {
        lists_.push_back(elements);
    } else {
        elements.clear(memory);
    }
    elements = list();
}

void environment::discard(score_tree&& order) {
    if (order.size() > freed_at_once) {
        orders_.push_back(order);
    } else {
        order.free_some(memory, freed_at_once);
    }
    order = score_tree();
}

void environment::discard(redis_stream&& entries) {
    if (entries.free_some(memory, freed_at_once)) streams_.push_back(entries);
    entries = redis_stream();
}

void environment::discard(text_block* text) {
    const std::size_t size = sizeof(text_block) + text->capacity;
    if (size <= text_freed_at_once && offered.empty()) return memory.release(text, size);
    try {
        texts_.push_back({text, text->capacity, size});
    } catch (const std::bad_alloc&) {
        // The command may still read the argument.
        if (!offered.empty()) throw;
        memory.release(text, size);
    }
}

text_block* environment::keep_offered(std::string_view text) noexcept {
    for (large_argument& each : offered) {
        if (!each || each.text().data() != text.data() || each.text().size() != text.size())
            continue;
        return take_over(each);
    }
    return nullptr;
}

text_block* environment::take_over(large_argument& whole) noexcept {
    text_block* const taken = whole.release();
    memory.adopt(sizeof(text_block) + taken->capacity);
    return taken;
}

bool environment::free_some(std::size_t steps, slice_limit& slice) noexcept {
    while (discarded() > 0) {
        const std::size_t portion = std::min(steps, steps_a_look);
        if (portion == 0) return true;
        std::size_t left = 0;
        if (!streams_.empty()) {
            if (!streams_.front().free_some(memory, portion)) streams_.pop_front();
        } else if (!orders_.empty()) {
            // A tree has at most as many nodes as items.
            left = portion - std::min(portion, orders_.front().size());
            if (!orders_.front().free_some(memory, portion)) orders_.pop_front();
        } else if (!lists_.empty()) {
            left = portion - std::min(portion, lists_.front().size());
            if (!lists_.front().free_some(memory, portion)) lists_.pop_front();
        } else if (!texts_.empty()) {
            if (!free_text(texts_.front())) texts_.pop_front();
        } else {
            left = portion;
            if (!free_table(tables_.front(), left)) tables_.pop_front();
        }
        steps -= std::max<std::size_t>(portion - left, 1);
        if (slice.is_over_after(slice_limit::a_look)) return discarded() > 0;
    }
    return false;
}

// True while a part of it remains.
bool environment::free_text(deferred_text& of) noexcept {
    if (of.left > text_freed_at_once) {
        slab::forget_bytes(of.block, of.left - text_piece, of.left);
        of.left -= text_piece;
        return true;
    }
    memory.release(of.block, sizeof(text_block) + of.capacity);
    return false;
}

// The same. Subtracts its work from `steps`.
bool environment::free_table(deferred_table& of, std::size_t& steps) noexcept {
    while (steps > 0) {
        dictionary::slot* const place = of.rest.next();
        if (place == nullptr) {
            steps -= std::min(steps, segment_steps);
            if (!of.table.drop_some(of.dropped)) return false;
            continue;
        }
        entry* const gone = dictionary::entry_of(*place);
        std::size_t weight = gone->held_as > encoding::integer ? big_value_steps : 1;
        const std::uint64_t before = memory.returns();
        release_entry(*this, gone);
        weight += (memory.returns() - before) * return_steps;
        steps -= std::min(steps, weight);
    }
    return true;
}

void release_value(environment& env, entry& of) noexcept {
    if (of.held_as > encoding::integer && counts_as_freed_in_slices(of))
        ++env.counters.freed_in_slices;
    switch (of.held_as) {
        case encoding::bytes:
        case encoding::integer: return;
        case encoding::external: {
            env.discard(of.pointer<text_block>());
            return;
        }
        case encoding::list: {
            list* const values = of.pointer<list>();
            // NOLINTNEXTLINE(performance-move-const-arg): its chunks change hands
            env.discard(std::move(*values));
            env.memory.release(values, sizeof(list));
            return;
        }
        case encoding::packed: {
            auto* const packed = of.pointer<packed_block>();
            env.memory.release(packed, sizeof(packed_block) + packed->capacity);
            return;
        }
        case encoding::indexed: return of.pointer<indexed_block>()->release(env.memory);
        case encoding::table: {
            auto* const table = of.pointer<dictionary>();
            env.discard(std::move(*table));
            table->~dictionary();
            env.memory.release(table, sizeof(dictionary));
            return;
        }
        case encoding::timed_table: {
            timed_table* const table = timed_table::of(of);
            if (env.fields != nullptr) env.fields->forget(*table);
            // NOLINTNEXTLINE(performance-move-const-arg): its nodes change hands
            env.discard(std::move(table->order));
            env.discard(static_cast<dictionary&&>(*table));
            table->~timed_table();
            env.memory.release(table, sizeof(timed_table));
            return;
        }
        case encoding::sorted_table: {
            auto* const table = of.pointer<sorted_table>();
            // NOLINTNEXTLINE(performance-move-const-arg): its nodes change hands
            env.discard(std::move(table->order));
            env.discard(std::move(table->members));
            table->~sorted_table();
            env.memory.release(table, sizeof(sorted_table));
            return;
        }
        case encoding::stream: {
            auto* const entries = of.pointer<redis_stream>();
            // NOLINTNEXTLINE(performance-move-const-arg): its blocks change hands
            env.discard(std::move(*entries));
            env.memory.release(entries, sizeof(redis_stream));
            return;
        }
    }
}

bool is_freed_in_slices(const entry& of) noexcept {
    switch (of.held_as) {
        case encoding::bytes:
        case encoding::integer:
        case encoding::packed:
        case encoding::indexed: return false;
        case encoding::external:
            return sizeof(text_block) + of.pointer<text_block>()->capacity > text_freed_at_once;
        case encoding::list:
        case encoding::table:
        case encoding::sorted_table: return elements_of(of) > freed_at_once;
        case encoding::stream:
        case encoding::timed_table: return true;
    }
    return true;
}

void release_entry(environment& env, entry* gone) noexcept {
    release_value(env, *gone);
    env.memory.release(gone, gone->size());
}

std::size_t elements_of(const entry& of) noexcept {
    switch (of.held_as) {
        case encoding::bytes:
        case encoding::integer:
        case encoding::external: return 1;
        case encoding::list: return of.pointer<list>()->size();
        case encoding::packed: return of.pointer<packed_block>()->count;
        case encoding::indexed: return of.pointer<indexed_block>()->count;
        case encoding::table:
        case encoding::timed_table: return of.pointer<dictionary>()->size();
        case encoding::sorted_table: return of.pointer<sorted_table>()->members.size();
        case encoding::stream: return of.pointer<redis_stream>()->size();
    }
    return 0;
}

// Bytes of a table's entries and their values, extrapolated from the first `samples`.
static std::size_t entries_bytes(const environment& env, const dictionary& table,
                                 std::size_t samples) {
    std::size_t seen = 0;
    std::size_t bytes = 0;
    dictionary::iterator elements(table);
    while (samples == 0 || seen < samples) {
        const dictionary::slot* const place = elements.next();
        if (place == nullptr) break;
        bytes += memory_usage(env, *dictionary::entry_of(*place), samples);
        ++seen;
    }
    return seen > 0 ? bytes / seen * table.size() + bytes % seen : 0;
}

std::size_t memory_usage(const environment& env, const entry& of, std::size_t samples) {
    const std::size_t own = slab::capacity(of.size());
    switch (of.held_as) {
        case encoding::bytes:
        case encoding::integer: return own;
        case encoding::external:
            return own + slab::capacity(sizeof(text_block) + of.pointer<text_block>()->capacity);
        case encoding::list:
            return own + slab::capacity(sizeof(list)) + of.pointer<list>()->memory_bytes();
        case encoding::packed:
            return own +
                   slab::capacity(sizeof(packed_block) + of.pointer<packed_block>()->capacity);
        case encoding::indexed: return own + slab::capacity(of.pointer<indexed_block>()->bytes());
        case encoding::table: {
            const auto& table = *of.pointer<dictionary>();
            return own + slab::capacity(sizeof(dictionary)) + table.table_bytes() +
                   entries_bytes(env, table, samples);
        }
        case encoding::timed_table: {
            const timed_table& table = *timed_table::of(of);
            return own + slab::capacity(sizeof(timed_table)) + table.order.memory_bytes() +
                   table.table_bytes() + entries_bytes(env, table, samples);
        }
        case encoding::sorted_table: {
            const auto& table = *of.pointer<sorted_table>();
            return own + slab::capacity(sizeof(sorted_table)) + table.order.memory_bytes() +
                   table.members.table_bytes() + entries_bytes(env, table.members, samples);
        }
        case encoding::stream:
            return own + slab::capacity(sizeof(redis_stream)) +
                   of.pointer<redis_stream>()->memory_bytes(samples);
    }
    return own;
}

}  // namespace eddy::cache
