// HyperLogLog counters: PFADD, PFCOUNT, PFMERGE, and the PFDEBUG and PFSELFTEST of test suites.
//
// PFADD is O(elements) on a dense counter, and O(elements × the limit of its size) on a sparse one;
// the others are O(counters).
#include "cache/types/hyperloglog.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/replication/replication.hpp"

#include <cstring>
#include <memory>
#include <string>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

/// A change that keyspace notifications do not have.
constexpr key_event no_event{};

constexpr std::string_view not_a_counter_text =
    "WRONGTYPE Key is not a valid HyperLogLog string value.";
constexpr std::string_view damaged_text = "INVALIDOBJ Corrupted HLL object detected";

// The counter in the slot, or nothing with the error replied.
std::optional<std::string_view> counter_in(call& c, const slot* place) {
    if (c.is_not(place, value_type::string)) return std::nullopt;
    const entry& e = *keyspace::at(place);
    text_view view;
    if (e.held_as != encoding::integer) {
        const std::string_view text = view(e);
        if (hyperloglog::is_counter(text)) return text;
    }
    c.error(not_a_counter_text);
    return std::nullopt;
}

void put_back(call& c, slot* place, std::string_view counter) {
    std::memcpy(c.keys->open_text(place, counter.size()), counter.data(), counter.size());
}

slot* put_empty(call& c) {
    const std::string fresh = hyperloglog::empty();
    char* const to = c.keys->put_blank(nullptr, c.arg(1), c.hash, fresh.size());
    std::memcpy(to, fresh.data(), fresh.size());
    return c.keys->find(c.arg(1), c.hash);
}

// Raises the registers of a dense counter, of a sparse one. How many changed; less than nothing
// when the counter is damaged.
std::int64_t add_to_dense(call& c, char* counter) {
    std::int64_t raised = 0;
    for (std::size_t i = 2; i < c.count; ++i) {
        raised += hyperloglog::raise_dense(counter, hyperloglog::observe(c.arg(i))) ? 1 : 0;
    }
    if (raised > 0) hyperloglog::drop_cached(counter);
    return raised;
}

std::int64_t add_to_sparse(call& c, slot* place, std::string_view counter) {
    hyperloglog::sparse_editor editor(counter, c.state.settings.options.hll_sparse_max_bytes);
    std::int64_t raised = 0;
    for (std::size_t i = 2; i < c.count; ++i) {
        switch (editor.raise(hyperloglog::observe(c.arg(i)))) {
            case hyperloglog::update::none: break;
            case hyperloglog::update::raised: ++raised; break;
            case hyperloglog::update::damaged: return -1;
        }
    }
    if (raised == 0) return 0;
    editor.drop_cached();
    put_back(c, place, editor.text());
    return raised;
}

// The arguments' counters, from args[1] on, in one. False with the error replied.
bool merge_all(call& c, hyperloglog::registers& to, bool& any_dense) {
    for (std::size_t i = 1; i < c.count; ++i) {
        const slot* const place = c.find_to_read(c.arg(i));
        if (place == nullptr) continue;
        const auto counter = counter_in(c, place);
        if (!counter) return false;
        any_dense |= hyperloglog::layout_of(*counter) == hyperloglog::layout::dense;
        if (!hyperloglog::merge_into(to, *counter)) {
            c.error(damaged_text);
            return false;
        }
    }
    return true;
}

// Makes the counter dense; false with the error replied.
bool make_dense(call& c, slot* place, std::string_view counter) {
    hyperloglog::sparse_editor editor(counter, 0);
    if (!editor.become_dense()) {
        c.error(damaged_text);
        return false;
    }
    put_back(c, place, editor.text());
    return true;
}

}  // namespace

void pfadd(call& c) {
    slot* place = c.find_to_write();
    const bool is_new = place == nullptr;
    if (!is_new && !counter_in(c, place)) return;
    if (is_new) place = put_empty(c);
    // In place, and no longer as SET would have kept it.
    const std::size_t size = text_size(*keyspace::at(place));
    char* const text = c.keys->open_text(place, size);
    const std::string_view counter(text, size);
    const std::int64_t raised = hyperloglog::layout_of(counter) == hyperloglog::layout::dense
                                    ? add_to_dense(c, text)
                                    : add_to_sparse(c, place, counter);
    if (raised < 0) return c.error(damaged_text);
    if (is_new && raised == 0) hyperloglog::drop_cached(text);
    const bool changed = is_new || raised > 0;
    if (changed) c.changed(key_event::string, "pfadd", c.arg(1));
    c.reply.integer(changed ? 1 : 0);
}

void pfcount(call& c) {
    if (c.count > 2) {
        const auto all = std::make_unique<hyperloglog::registers>();
        bool any_dense = false;
        if (!merge_all(c, *all, any_dense)) return;
        return c.reply.integer(static_cast<std::int64_t>(hyperloglog::count(*all)));
    }
    slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    const auto counter = counter_in(c, place);
    if (!counter) return;
    // The cardinality is kept in the string: a change, for watchers, files and replicas too, as in
    // Redis. In readonly mode, and in a replica, the string stays as it is.
    if (c.state.settings.options.mode == access_mode::readonly ||
        is_read_only_replica(c.state, c.client)) {
        const auto kept = hyperloglog::cached(*counter);
        const auto counted = kept ? kept : hyperloglog::count(*counter);
        if (!counted) return c.error(damaged_text);
        return c.reply.integer(static_cast<std::int64_t>(*counted));
    }
    char* const text = c.keys->open_text(place, counter->size());
    const std::string_view opened(text, text_size(*keyspace::at(place)));
    if (const auto kept = hyperloglog::cached(opened)) {
        return c.reply.integer(static_cast<std::int64_t>(*kept));
    }
    const auto counted = hyperloglog::count(opened);
    if (!counted) return c.error(damaged_text);
    hyperloglog::set_cached(text, *counted);
    c.changed(no_event, "", c.arg(1));
    c.reply.integer(static_cast<std::int64_t>(*counted));
}

void pfmerge(call& c) {
    const auto all = std::make_unique<hyperloglog::registers>();
    bool dense = false;
    if (!merge_all(c, *all, dense)) return;
    slot* place = c.find_to_write();
    if (place == nullptr) place = put_empty(c);
    const std::size_t size = text_size(*keyspace::at(place));
    hyperloglog::sparse_editor editor({c.keys->open_text(place, size), size},
                                      c.state.settings.options.hll_sparse_max_bytes);
    if (dense && !editor.become_dense()) return c.error(damaged_text);
    for (std::uint32_t i = 0; i < hyperloglog::register_count; ++i) {
        if ((*all)[i] != 0) static_cast<void>(editor.raise({i, (*all)[i]}));
    }
    editor.drop_cached();
    put_back(c, place, editor.text());
    c.changed(key_event::string, "pfadd", c.arg(1));
    c.reply.ok();
}

void pfdebug(call& c) {
    const std::string_view what = c.arg(1);
    slot* const place = c.keys->find(c.arg(2));
    if (place == nullptr) return c.error("ERR The specified key does not exist");
    if (!counter_in(c, place)) return;
    const std::size_t size = text_size(*keyspace::at(place));
    const std::string_view counter(c.keys->open_text(place, size), size);
    const bool sparse = hyperloglog::layout_of(counter) == hyperloglog::layout::sparse;
    if (is_word(what, "getreg")) {
        const auto all = std::make_unique<hyperloglog::registers>();
        if (!hyperloglog::merge_into(*all, counter)) return c.error(damaged_text);
        if (sparse && !make_dense(c, place, counter)) return;
        c.reply.array(all->size());
        for (const std::uint8_t each : *all) c.reply.integer(each);
    } else if (is_word(what, "decode")) {
        if (!sparse) return c.error("ERR HLL encoding is not sparse");
        c.reply.bulk(hyperloglog::describe(counter));
    } else if (is_word(what, "encoding")) {
        c.reply.simple(sparse ? "sparse" : "dense");
    } else if (is_word(what, "todense")) {
        if (sparse && !make_dense(c, place, counter)) return;
        c.reply.integer(sparse ? 1 : 0);
    } else {
        c.error("ERR Unknown PFDEBUG subcommand '" + std::string(what.substr(0, what.find('\0'))) +
                "'");
    }
}

// Registers set one by one in all layouts against the same in an array.
void pfselftest(call& c) {
    constexpr std::uint32_t step = 37;
    hyperloglog::sparse_editor editor(hyperloglog::empty(), 2 * hyperloglog::dense_bytes);
    const auto expected = std::make_unique<hyperloglog::registers>();
    for (std::uint32_t i = 0; i < hyperloglog::register_count; i += step) {
        const auto rank = static_cast<std::uint8_t>(1 + i % 32);
        static_cast<void>(editor.raise({i, rank}));
        (*expected)[i] = rank;
    }
    for (const bool dense : {false, true}) {
        if (dense) editor.become_dense();
        const auto found = std::make_unique<hyperloglog::registers>();
        if (!hyperloglog::merge_into(*found, editor.text()) || *found != *expected ||
            hyperloglog::count(*expected) != hyperloglog::count(editor.text())) {
            return c.error("TESTFAILED the registers are not what they were set to");
        }
    }
    c.reply.ok();
}

}  // namespace eddy::cache::commands
