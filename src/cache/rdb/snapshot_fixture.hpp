// Test fixtures for snapshots: a cache with two clients, and the content of a file.
#pragma once

#include <eddy/wire/resp/request.hpp>

#include "cache/engine/dataset_digest.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace eddy::cache::testing {

using rdb::snapshot;
using status = snapshot::status;

inline constexpr std::int64_t start_ms = 1'700'000'000'000;

inline engine_options with_seed(std::uint64_t seed) {
    engine_options made;
    made.mode = access_mode::admin;
    made.seed = seed;
    return made;
}

struct cache_with_client {
    explicit cache_with_client(std::uint64_t seed = 1) : home(with_seed(seed)) {
        set_time(start_ms);
    }
    void set_time(std::int64_t ms) { home.set_time(std::chrono::milliseconds(ms)); }
    engine home;
    test_client ask{home};
    test_client other{home};
};

// Options without waits: changed values are written at once.
inline rdb::snapshot_options at_once() {
    rdb::snapshot_options made;
    made.huge_elements = SIZE_MAX;
    made.huge_bytes = SIZE_MAX;
    return made;
}

// One turn for clients with waiting commands.
inline void go_on(cache_with_client& it) {
    it.home.go_on();
    for (test_client* const each : {&it.ask, &it.other})
        if (each->woken()) each->pushed();
}

// Parts of a stream that a digest leaves out: its groups and their pending entries.
inline std::string written_stream(engine_state& state, entry& of) {
    byte_buffer out;
    rdb::value_writer writer(state.data.env);
    writer.begin_value(of);
    EXPECT_TRUE(writer.write(out, SIZE_MAX));
    return std::string(out.text());
}

// The same without state that commands do not carry: times at which consumers were seen, pending
// entries that were removed, and the layout in blocks.
inline std::string stream_in_commands(const redis_stream& of) {
    std::string all;
    const auto add = [&all](std::string_view text) { all.append(text) += ' '; };
    const auto add_number = [&](auto number) { add(std::to_string(number)); };
    const auto add_id = [&](stream_id id) { add(stream_id_text(id).view()); };
    redis_stream::walk entries(of, {}, stream_id::max());
    while (entries.next()) {
        add_id(entries.id());
        for (std::size_t i = entries.pairs(); i > 0; --i) {
            listpack::element field;
            listpack::element value;
            entries.pair(field, value);
            char digits[24];
            add(field.text(digits));
            add(value.text(digits));
        }
    }
    add_id(of.last_id());
    add_id(of.max_deleted_id());
    add_number(of.entries_added());
    for (auto group = of.groups().first(); group; group.forward()) {
        add((*group)->name());
        add_id((*group)->last_id);
        add_number((*group)->entries_read);
        for (auto each = (*group)->consumers.first(); each; each.forward()) add((*each)->name());
        for (auto each = (*group)->pending.first(); each; each.forward()) {
            if (!of.contains(each->id)) continue;
            add_id(each->id);
            add_number(each->of->delivered_ms);
            add_number(each->of->deliveries);
            add(each->of->owner->name());
        }
    }
    return all;
}

// Fingerprint of all keys, values and times, expired or not, as far as the form has them.
inline std::string fingerprint(engine& of, rdb::file_form form = rdb::file_form::rdb) {
    engine_state& state = of.internals();
    std::uint64_t times = 0;
    std::uint64_t streams = 0;
    for (unsigned i = 0; i < engine_databases; ++i) {
        if (state.data.keyspaces[i] == nullptr) continue;
        dictionary::iterator all(state.data.keyspaces[i]->table());
        while (const dictionary::slot* const place = all.next()) {
            entry& e = *dictionary::entry_of(*place);
            std::uint64_t name = i + 1;
            for (const char c : e.key())
                name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3;
            times += name * static_cast<std::uint64_t>(e.expiry());
            if (e.type == value_type::stream)
                streams += name * std::hash<std::string>()(
                                      form == rdb::file_form::rdb
                                          ? written_stream(state, e)
                                          : stream_in_commands(*e.pointer<redis_stream>()));
        }
    }
    return hexadecimal(dataset_digest(state.data)) + " " + std::to_string(times) + " " +
           std::to_string(streams) + " " + std::to_string(of.stats().keys) + " keys";
}

struct file_session final : client_session {
    explicit file_session(engine& home) : client_session(home, internal{}) { special = master; }
};

// True if all commands were parsed and executed.
inline bool execute_file(engine& to, std::string_view commands) {
    file_session from(to);
    resp::request_parser parser;
    byte_buffer out;
    while (!commands.empty()) {
        const resp::request_outcome next = parser.next(commands);
        if (next.status != resp::parse_status::complete) return false;
        out.clear();
        if (to.execute(from, {&next.request, 1}, out) != 1) return false;
        commands.remove_prefix(next.consumed);
    }
    return to.stats().errors == 0;
}

inline std::string loaded(std::string_view file, rdb::file_form form = rdb::file_form::rdb) {
    cache_with_client to(99);
    to.set_time(1);
    if (form == rdb::file_form::commands) {
        // XCLAIM permits no delivery in the future; expired keys stay all the same.
        to.set_time(2 * start_ms);
        if (!execute_file(to.home, file)) return "fault: commands";
        to.set_time(1);
        return fingerprint(to.home, form);
    }
    rdb::load_options options;
    options.keep_expired = true;
    rdb::loader loader(to.home, options);
    loader.feed(file);
    loader.finish();
    if (loader.now() != rdb::reader::status::done) {
        return std::string("fault: ") + loader.fault().what + " at " +
               std::to_string(loader.fault().offset);
    }
    return fingerprint(to.home);
}

inline int marked(engine& of) {
    int found = 0;
    for (const auto& keys : of.internals().data.keyspaces) {
        if (keys == nullptr) continue;
        EXPECT_EQ(keys->keeper(), nullptr);
        dictionary::iterator all(keys->table());
        while (const dictionary::slot* const place = all.next()) {
            found += dictionary::entry_of(*place)->has(entry::in_snapshot) ? 1 : 0;
        }
    }
    return found;
}

// Everything up to the end, without commands in between.
inline std::string rest_of(snapshot& image, std::size_t limit = 64U << 10) {
    std::string all;
    byte_buffer out;
    for (;;) {
        out.clear();
        const status now = image.step(out, limit);
        EXPECT_LE(out.size(), limit + rdb::value_writer::max_whole_text + 200);
        all += out.text();
        if (now == status::writing) continue;
        EXPECT_EQ(now, status::done);
        return all;
    }
}

inline void clear_up(engine& after) {
    while (after.upkeep()) {
    }
}

inline std::string big_value_of(cache_with_client& it, const std::string& key) {
    for (int i = 0; i < 20'000; ++i) {
        const std::string n = std::to_string(i);
        it.ask({"HSET", key, "field" + n, "value" + n});
    }
    return key;
}

}  // namespace eddy::cache::testing
