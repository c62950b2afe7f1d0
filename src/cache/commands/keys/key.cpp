// Keys of any type: finding, removing, renaming.
#include <eddy/base/glob.hpp>

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/notifications.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/keys/scan_options.hpp"
#include "cache/commands/server/cluster_slot.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/keys_ahead.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/types/encoding_name.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {

std::vector<dictionary::slot> scan_keys(call& c, std::uint64_t& cursor,
                                        const scan_options& options) {
    const auto is_wanted = [&](dictionary::slot s) {
        const entry& e = *dictionary::entry_of(s);
        return options.matches(e.key()) &&
               (!options.type || is_word(*options.type, type_name(e.type))) &&
               (!options.slot || cluster_slot_of(e.key()) == *options.slot);
    };
    std::vector<dictionary::slot> found;
    std::vector<dictionary::slot> over;
    std::size_t visited = 0;
    do {
        const std::size_t before = found.size();
        over.clear();
        cursor = c.keys->scan(cursor, found, over);
        visited += std::max<std::size_t>(found.size() - before + over.size(), 1);
        found.erase(std::remove_if(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                                   std::not_fn(is_wanted)),
                    found.end());
        // As in Redis all that match are removed, of whatever type. Each entry is here once: the
        // table does not change within its scan.
        for (const dictionary::slot s : over) {
            const std::string_view key = dictionary::entry_of(s)->key();
            if (options.matches(key)) c.keys->find_to_read(key);
        }
    } while (cursor != 0 && visited < static_cast<std::uint64_t>(options.count));
    return found;
}

}  // namespace eddy::cache

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// RANDOMKEY draws at most so many keys until one has not expired: it may have to remove all others.
// Fewer when expired keys stay and all keys have a TTL, as no live key may exist.
constexpr int most_drawn = 1000;
constexpr int most_drawn_in_vain = 100;

// FLUSHDB and FLUSHALL accept ASYNC and SYNC; memory is freed in slices either way.
bool flush_options_fit(call& c) {
    if (c.count == 1) return true;
    if (c.count == 2 && (is_word(c.arg(1), "async") || is_word(c.arg(1), "sync"))) return true;
    c.syntax_error();
    return false;
}

void flush(call& c, keyspace& keys) {
    // Earlier writes of the same transaction or script are still passed to the hook; the flush is
    // not.
    if (c.state.hooked != nullptr) c.state.hooked->keep_values();
    touch_watched(c.state, keys, nullptr);
    c.state.data.changes += keys.size();
    keys.clear();
    note_all_ready(c.state, keys.number());
}

// As in Redis, also for an empty database: a replica may have keys that this cache has not.
void record_flush(call& c) {
    if (!propagates(c)) return;
    std::vector<std::string_view> command(c.args, c.args + c.count);
    if (c.state.settings.renamed != nullptr) command.front() = c.spec->name;
    propagate_as(c, command);
}

std::int64_t count_keys(call& c) {
    std::int64_t found = 0;
    keys_ahead ahead(c, 1, 1);
    for (std::size_t i = 1; i < c.count; ++i) {
        found += c.find_to_read(c.arg(i), ahead.next_hash()) != nullptr ? 1 : 0;
    }
    return found;
}

enum class if_taken : std::uint8_t { replace, refuse };

void rename_key(call& c, if_taken otherwise) {
    if (c.find_to_replace() == nullptr) return c.error(no_such_key_text);
    const bool refusing = otherwise == if_taken::refuse;
    const auto done = [&] { refusing ? c.reply.integer(1) : c.reply.ok(); };
    const std::string_view to = c.arg(2);
    if (c.arg(1) == to) return refusing ? c.reply.integer(0) : c.reply.ok();
    const std::uint64_t to_hash = c.keys->hash(to);
    if (slot* const taken = c.keys->find_to_read(to, to_hash)) {
        if (refusing) return c.reply.integer(0);
        c.keys->remove(taken, to_hash);
    }
    // The slot may have changed with the removal.
    c.keys->move_value(*c.keys, c.find_to_replace(), c.hash, to, to_hash);
    c.changed(key_event::generic, "rename_from", c.arg(1));
    c.also_happened(key_event::generic, "rename_to", to);
    done();
}

}  // namespace

void dbsize(call& c) { c.reply.integer(static_cast<std::int64_t>(c.keys->size())); }

void flushdb(call& c) {
    if (!flush_options_fit(c)) return;
    flush(c, *c.keys);
    record_flush(c);
    invalidate_all(c.state);
    c.reply.ok();
}

void flushall(call& c) {
    if (!flush_options_fit(c)) return;
    for (const auto& each : c.state.data.keyspaces) {
        if (each != nullptr) flush(c, *each);
    }
    record_flush(c);
    invalidate_all(c.state);
    c.reply.ok();
}

void keys(call& c) {
    scan_options options;
    options.pattern = c.arg(1);
    options.has_pattern = options.pattern != "*";
    std::vector<std::string_view> found;
    dictionary::iterator all(c.keys->table());
    while (const slot* const place = all.next()) {
        const entry& e = *keyspace::at(place);
        if (!c.keys->is_over(e) && options.matches(e.key())) found.push_back(e.key());
    }
    c.reply.array(found.size());
    for (const std::string_view key : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(key);
    }
}

void scan(call& c) {
    auto cursor = parse_cursor(c, 1);
    if (!cursor) return;
    scan_options options;
    if (!options.parse(c, 2, scan_of::keys)) return;
    const std::vector<slot> found = scan_keys(c, *cursor, options);
    c.reply.array(2);
    c.reply.bulk_integer(static_cast<std::int64_t>(*cursor));
    c.reply.array(found.size());
    for (const slot s : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(dictionary::entry_of(s)->key());
    }
}

void type(call& c) {
    const slot* const place = c.find_to_read();
    c.reply.simple(place == nullptr ? "none" : type_name(keyspace::at(place)->type));
}

void exists(call& c) { c.reply.integer(count_keys(c)); }
// Also for a client with CLIENT NO-TOUCH: execution.cpp has switched the counting off.
void touch(call& c) {
    if ((c.client.special & client_session::no_touch) != 0)
        c.state.data.env.most_uses = counted_uses(c.state.data.env.policy);
    c.reply.integer(count_keys(c));
}

void del(call& c) {
    std::int64_t removed = 0;
    keys_ahead ahead(c, 1, 1);
    for (std::size_t i = 1; i < c.count; ++i) {
        if (!c.keys->remove(c.arg(i), ahead.next_hash())) continue;
        ++removed;
        c.changed(key_event::generic, "del", c.arg(i));
    }
    c.reply.integer(removed);
}

void rename(call& c) { rename_key(c, if_taken::replace); }
void renamenx(call& c) { rename_key(c, if_taken::refuse); }

void copy(call& c) {
    std::size_t number = c.client.db;
    bool replace = false;
    for (std::size_t i = 3; i < c.count; ++i) {
        if (is_word(c.arg(i), "replace")) {
            replace = true;
        } else if (is_word(c.arg(i), "db") && i + 1 < c.count) {
            const auto given = c.database_number(++i);
            if (!given) return;
            number = *given;
        } else {
            return c.syntax_error();
        }
    }
    keyspace& target = c.state.data.database(number);
    const std::string_view to = c.arg(2);
    if (&target == c.keys && c.arg(1) == to) {
        return c.error("ERR source and destination objects are the same");
    }
    if (c.find_to_read() == nullptr) return c.reply.integer(0);
    const std::uint64_t to_hash = target.hash(to);
    if (slot* const taken = target.find_to_read(to, to_hash)) {
        if (!replace) return c.reply.integer(0);
        target.remove(taken, to_hash);
    }
    target.copy_value(c.keys->find_to_read(c.arg(1), c.hash), to, to_hash);
    ++c.state.data.changes;
    c.also_happened_in(target, key_event::generic, "copy_to", to);
    c.reply.integer(1);
}

void move(call& c) {
    const auto number = c.database_number(2);
    if (!number) return;
    keyspace& target = c.state.data.database(*number);
    if (&target == c.keys) return c.error("ERR source and destination objects are the same");
    slot* const source = c.find_to_replace();
    if (source == nullptr || target.find_to_read(c.arg(1), c.hash) != nullptr)
        return c.reply.integer(0);
    target.move_value(*c.keys, source, c.hash, c.arg(1), c.hash);
    c.changed(key_event::generic, "move_from", c.arg(1));
    c.also_happened_in(target, key_event::generic, "move_to", c.arg(1));
    c.reply.integer(1);
}

// After the last draw it returns an expired key: null would mean that the database is empty.
void randomkey(call& c) {
    const bool in_vain =
        c.state.data.env.expired == expired_keys::hide && c.keys->expiring() == c.keys->size();
    for (int left = in_vain ? most_drawn_in_vain : most_drawn;; --left) {
        const entry* const e = c.keys->random();
        if (e == nullptr) return c.reply.null();
        if (!c.keys->is_over(*e) || left == 0) return c.reply.bulk(e->key());
        const std::uint64_t hash = c.keys->hash(e->key());
        static_cast<void>(c.keys->find_to_read(e->key(), hash));  // removes it
    }
}

// The value of an OBJECT command's key; null, with null replied, if the key is missing.
static entry* object_at(call& c) {
    slot* const place = c.keys->find_to_read(c.arg(2));
    if (place != nullptr) return keyspace::at(place);
    c.reply.null();
    return nullptr;
}

void object_encoding(call& c) {
    if (entry* const its = object_at(c)) c.reply.bulk(encoding_name(c.state.data.env, *its));
}

void object_refcount(call& c) {
    if (object_at(c) != nullptr) c.reply.integer(1);
}

void object_idletime(call& c) {
    if (object_at(c) == nullptr) return;
    const eviction policy = c.state.data.env.policy;
    if (policy != eviction::allkeys_lfu && policy != eviction::volatile_lfu)
        return c.reply.integer(0);
    c.error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

void object_freq(call& c) {
    const entry* const its = object_at(c);
    if (its == nullptr) return;
    if (counted_uses(c.state.data.env.policy) > 1) return c.reply.integer(its->uses());
    c.error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
        "that when switching between policies at runtime LRU and LFU data will take some time to "
        "adjust.");
}

void object_help(call& c) {
    c.help({"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "ENCODING <key>",
            "    How the value is kept, in Redis's words.", "FREQ <key>",
            "    How often it was used of late, 0 to 3, with an LFU policy.", "IDLETIME <key>",
            "    Always 0: the time of use is not kept.", "REFCOUNT <key>", "    Always 1.", "HELP",
            "    Print this help."});
}

void swapdb(call& c) {
    // Both must be numbers before either database is looked up.
    if (!c.integer_in(1, INT32_MIN, INT32_MAX, "ERR invalid first DB index") ||
        !c.integer_in(2, INT32_MIN, INT32_MAX, "ERR invalid second DB index"))
        return;
    const auto first = c.database_number(1);
    if (!first) return;
    const auto second = c.database_number(2);
    if (!second) return;
    swap_databases(c.state, *first, *second);
    ++c.state.data.changes;
    c.keys = &c.state.data.database(c.client.db);
    c.reply.ok();
}

void memory_usage(call& c) {
    std::size_t samples = 5;
    for (std::size_t i = 3; i < c.count; i += 2) {
        if (!is_word(c.arg(i), "samples") || i + 1 == c.count) return c.syntax_error();
        const auto given = c.integer(i + 1);
        if (!given) return;
        if (*given < 0) return c.syntax_error();
        samples = static_cast<std::size_t>(*given);
    }
    const slot* const place = c.keys->find_to_read(c.arg(2));
    if (place == nullptr) return c.reply.null();
    const std::size_t slot_bytes = c.keys->table_bytes() / c.keys->size();
    c.reply.integer(static_cast<std::int64_t>(
        cache::memory_usage(c.state.data.env, *keyspace::at(place), samples) + slot_bytes));
}

}  // namespace eddy::cache::commands
