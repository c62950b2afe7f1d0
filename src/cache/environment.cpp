// Freeing values, at once or in slices.
#include "cache/environment.hpp"

#include "cache/collection.hpp"
#include "cache/sorted_set.hpp"
#include "cache/timed_fields.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {
namespace {

// Tables of so many entries are freed at once, and lists and orders of so many elements: some ten
// microseconds.
constexpr std::size_t freed_at_once = 256;

}  // namespace

environment::environment(std::uint64_t seed) noexcept : hash(seed), random(seed ^ 0x9e37'79b9ULL) {}

environment::~environment() {
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
    // A keyspace's entries may have big tables in their turn, which are kept for later.
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

void environment::discard(stream&& entries) {
    if (entries.free_some(memory, freed_at_once)) streams_.push_back(entries);
    entries = stream();
}

bool environment::free_some(std::size_t steps) noexcept {
    while (!streams_.empty()) {
        if (streams_.front().free_some(memory, steps)) return true;
        streams_.pop_front();
    }
    while (!orders_.empty()) {
        score_tree& oldest = orders_.front();
        // No tree has more nodes than items.
        const std::size_t blocks = std::min(steps, oldest.size());
        if (oldest.free_some(memory, blocks)) return true;
        steps -= blocks;
        orders_.pop_front();
    }
    while (!lists_.empty()) {
        list& oldest = lists_.front();
        const std::size_t blocks = std::min(steps, oldest.size());
        if (oldest.free_some(memory, blocks)) return true;
        steps -= blocks;
        lists_.pop_front();
    }
    while (!tables_.empty()) {
        grave& oldest = tables_.front();
        dictionary::slot* place = nullptr;
        while (steps > 0 && (place = oldest.rest.next()) != nullptr) {
            --steps;
            release_entry(*this, dictionary::entry_of(*place));
        }
        if (place != nullptr || steps == 0) return true;
        tables_.pop_front();
    }
    return !lists_.empty() || !orders_.empty();
}

void release_value(environment& env, entry& of) noexcept {
    switch (of.held_as) {
        case encoding::bytes:
        case encoding::integer: return;
        case encoding::external: {
            auto* const text = of.pointer<text_block>();
            env.memory.release(text, sizeof(text_block) + text->capacity);
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
            auto* const entries = of.pointer<stream>();
            // NOLINTNEXTLINE(performance-move-const-arg): its blocks change hands
            env.discard(std::move(*entries));
            env.memory.release(entries, sizeof(stream));
            return;
        }
    }
}

void release_entry(environment& env, entry* gone) noexcept {
    release_value(env, *gone);
    env.memory.release(gone, gone->size());
}

// Of a table's entries and all that they hold, guessed from the first ones.
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
            return own + slab::capacity(sizeof(stream)) +
                   of.pointer<stream>()->memory_bytes(samples);
    }
    return own;
}

}  // namespace eddy::cache
