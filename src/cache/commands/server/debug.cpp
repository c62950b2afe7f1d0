// DEBUG: queries and actions for test suites; in admin mode only.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/glob.hpp>

#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/dataset_digest.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/rdb/value_writer.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/encoding_name.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace eddy::cache::commands {
namespace {

// At most so long a DEBUG SLEEP.
constexpr std::int64_t longest_sleep_us = 60'000'000;
// At most so many keys and bytes of one DEBUG POPULATE, which runs without a pause.
constexpr std::int64_t most_populated = 1'000'000;
constexpr std::int64_t most_populated_bytes = std::int64_t{1} << 30;

// Redis blocks the whole server. Here only the client waits; SLOWLOG and LATENCY show the command
// as a slow one. A transaction is suspended like one with a slow script, so that other clients wait
// too. Within a script nothing waits, and only SLOWLOG and LATENCY show the time.
void sleep(call& c) {
    const double seconds = std::strtod(std::string(c.arg(2)).c_str(), nullptr);
    const double wanted_us = seconds > 0 ? seconds * 1e6 : 0;
    const auto us = wanted_us < static_cast<double>(longest_sleep_us)
                        ? static_cast<std::int64_t>(wanted_us)
                        : longest_sleep_us;
    c.state.slow.pretend(us);
    if (us == 0 || !may_wait(c)) {
        if (c.in_exec) scripting::pause(c.state, us);
        return c.reply.ok();
    }
    wait_for_time(c, c.state.data.env.steady_us + us);
}

// Bytes of the value in a dump file.
std::size_t serialized_size(call& c, entry& e) {
    rdb::value_writer writer(c.state.data.env);
    writer.begin_value(e);
    constexpr std::size_t piece = 64U << 10;
    std::size_t size = 0;
    for (bool more = true; more;) {
        byte_buffer out;
        more = !writer.write(out, piece);
        size += out.size();
    }
    return size - 1;  // of the type
}

void object(call& c) {
    // As in Redis an expired key is shown until it is removed.
    const call::slot* const place = c.keys->table().find(c.arg(2), c.keys->hash(c.arg(2)));
    if (place == nullptr) return c.error(no_such_key_text);
    entry& e = *keyspace::at(place);
    const std::string_view name = encoding_name(c.state.data.env, e);
    char text[200];
    std::snprintf(text, sizeof text,
                  "Value at:%p refcount:1 encoding:%.*s serializedlength:%zu lru:0 "
                  "lru_seconds_idle:0",
                  static_cast<const void*>(&e), static_cast<int>(name.size()), name.data(),
                  serialized_size(c, e));
    c.reply.simple(text);
}

// Redis prints the value's structure to its output; here there is only the reply.
void printed(call& c, std::string_view wanted, std::string_view what, std::string_view refusal) {
    const call::slot* const place = c.keys->find_to_read(c.arg(2), c.keys->hash(c.arg(2)));
    if (place == nullptr) return c.error(no_such_key_text);
    const std::string_view name = encoding_name(c.state.data.env, *keyspace::at(place));
    if (!name.starts_with(wanted)) return c.error(refusal);
    c.reply.simple(what);
}

void digest_values(call& c) {
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count; ++i) {
        const call::slot* const place = c.keys->find_to_read(c.arg(i));
        c.reply.simple(hexadecimal(place == nullptr
                                       ? sha1_digest{}
                                       : value_digest(c.state.data.env, *keyspace::at(place))));
    }
}

void populate(call& c) {
    const auto count = c.positive(2);
    if (!count) return;
    const std::string prefix(c.count > 3 ? c.arg(3) : "key");
    std::int64_t size = 0;
    if (c.count > 4) {
        const auto given = c.positive(4);
        if (!given) return;
        size = *given;
    }
    if (*count > most_populated || size > most_populated_bytes ||
        (*count > 0 && size > most_populated_bytes / *count)) {
        return c.error("ERR DEBUG POPULATE adds " + std::to_string(most_populated) +
                       " keys and a gibibyte at most");
    }
    std::string key;
    std::string value;
    for (std::int64_t i = 0; i < *count; ++i) {
        key = prefix + ':' + std::to_string(i);
        const std::uint64_t hash = c.keys->hash(key);
        if (c.keys->find_to_read(key, hash) != nullptr) continue;
        value = "value:" + std::to_string(i);
        if (size != 0) value.resize(static_cast<std::size_t>(size));
        c.keys->put_text(nullptr, key, hash, value);
        ++c.state.data.changes;
        if ((c.state.clients.observers & observers::watchers) != 0)
            c.state.notify_watchers(c.keys->number(), key_event::generic, key);
    }
    c.reply.ok();
}

// One reply of each kind.
void protocol(call& c) {
    const std::string_view kind = c.arg(2);
    resp::reply_writer& reply = c.reply;
    if (is_word(kind, "string")) return reply.bulk("Hello World");
    if (is_word(kind, "integer")) return reply.integer(12345);
    if (is_word(kind, "double")) return reply.number(3.141);
    if (is_word(kind, "null")) return reply.null();
    if (is_word(kind, "array") || is_word(kind, "set")) {
        is_word(kind, "set") ? reply.set(3) : reply.array(3);
        for (int i = 0; i < 3; ++i) reply.integer(i);
        return;
    }
    if (is_word(kind, "map")) {
        reply.map(3);
        for (int i = 0; i < 3; ++i) {
            reply.integer(i);
            reply.boolean(i == 1);
        }
        return;
    }
    if (is_word(kind, "attrib")) {
        if (reply.protocol() == 3) {
            reply.raw("|1\r\n");
            reply.bulk("key-popularity");
            reply.array(2);
            reply.bulk("key:123");
            reply.integer(90);
        }
        return reply.bulk("Some real reply following the attribute");
    }
    if (is_word(kind, "push")) {
        if (reply.protocol() == 2) return c.error("ERR RESP2 is not supported by this command");
        // Pushes caused by a command itself come after its reply, since Redis 7.2.
        reply.bulk("Some real reply following the push reply");
        reply.push(2);
        reply.bulk("server-cpu-usage");
        return reply.integer(42);
    }
    if (is_word(kind, "verbatim")) return reply.verbatim("txt", "This is a verbatim\nstring");
    if (is_word(kind, "true")) return reply.boolean(true);
    if (is_word(kind, "false")) return reply.boolean(false);
    if (is_word(kind, "bignum")) return reply.big_number("1234567999999999999999999999999999999");
    c.error(
        "ERR Wrong protocol type name. Please use one of the following: "
        "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

void stringmatch(call& c) {
    constexpr std::int64_t longest = 1 << 20;
    const auto length = c.integer_in(2, 0, longest, not_an_integer_text);
    if (!length) return;
    const std::string text(static_cast<std::size_t>(*length), 'a');
    c.reply.integer(glob_match(c.arg(3), text) ? 1 : 0);
}

// Settings of encodings that the cache does not have.
void packed_threshold(call& c) {
    const std::string text(c.arg(2));
    char* unit = nullptr;
    const unsigned long long number = std::strtoull(text.c_str(), &unit, 10);
    const std::string_view rest(unit);
    unsigned long long scale = 0;
    if (rest.empty() || is_word(rest, "b")) scale = 1;
    if (is_word(rest, "k")) scale = 1000;
    if (is_word(rest, "kb")) scale = 1ULL << 10;
    if (is_word(rest, "m")) scale = 1'000'000;
    if (is_word(rest, "mb")) scale = 1ULL << 20;
    if (is_word(rest, "g")) scale = 1'000'000'000;
    if (is_word(rest, "gb")) scale = 1ULL << 30;
    constexpr unsigned long long limit = 1ULL << 32;
    if (scale == 0 || text.empty() || text[0] < '0' || text[0] > '9' || number >= limit / scale) {
        return c.error("ERR argument must be a memory value bigger than 1 and smaller than 4gb");
    }
    c.reply.ok();
}

// Redis's text about a hash table; buckets of fourteen places here.
void append_table(std::string& to, std::string_view title, const dictionary& table) {
    const std::size_t places = table.table_bytes() / sizeof(bucket) * bucket::width;
    to += "Hash table 0 stats (";
    to += title;
    to += "):\n table size: " + std::to_string(places) +
          "\n number of elements: " + std::to_string(table.size()) + '\n';
}

void table_of_key(call& c) {
    const call::slot* const place = c.keys->find_to_read(c.arg(2), c.keys->hash(c.arg(2)));
    if (place == nullptr) return c.error(no_such_key_text);
    const entry& e = *keyspace::at(place);
    const dictionary* table = nullptr;
    if (e.held_as == encoding::table || e.held_as == encoding::timed_table)
        table = e.pointer<dictionary>();
    else if (e.held_as == encoding::sorted_table)
        table = &e.pointer<sorted_table>()->members;
    if (table == nullptr) {
        return c.error(
            "ERR The value stored at the specified key is not represented using an hash table");
    }
    std::string text;
    append_table(text, "main hash table", *table);
    c.reply.verbatim("txt", text);
}

void tables_of_database(call& c) {
    const auto number = c.integer(2);
    if (!number) return;
    if (*number < 0 || *number >= engine_databases) return c.error("ERR Out of range database");
    const keyspace& in = c.state.data.database(static_cast<std::size_t>(*number));
    std::string text = "[Dictionary HT]\n";
    append_table(text, "main hash table", in.table());
    // A key's expiry is in its entry.
    text += "\n[Expires HT]\nHash table 0 stats (main hash table):\n number of elements: " +
            std::to_string(in.expiring()) + '\n';
    c.reply.verbatim("txt", text);
}

// In Redis each client has a reply buffer that grows and shrinks.
void reply_buffer(call& c) {
    if (is_word(c.arg(2), "peak-reset-time")) {
        const bool is_named = is_word(c.arg(3), "never") || is_word(c.arg(3), "reset");
        if (!is_named && !c.integer(3)) return;
    } else if (!is_word(c.arg(2), "resizing")) {
        return c.syntax_error();
    }
    c.reply.ok();
}

void help(call& c) {
    c.help(
        {"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
         "CHANGE-REPL-ID",
         "    Take another replication id.",
         "DIGEST",
         "    A digest of all keys and values.",
         "DIGEST-VALUE <key> [<key> ...]",
         "    Digests of values.",
         "ERROR <string>",
         "    Reply with the text as an error.",
         "HTSTATS <dbid> [FULL]",
         "    Sizes of a database's tables.",
         "HTSTATS-KEY <key> [FULL]",
         "    Size of the key's table.",
         "LISTPACK <key>",
         "    Whether the key is a listpack.",
         "LOADAOF",
         "    The same as RELOAD, if there is an append-only file.",
         "LOG <message>",
         "    Nothing.",
         "OBJECT <key>",
         "    How the key is held.",
         "POPULATE <count> [<prefix>] [<size>]",
         "    Add keys prefix:0 and so on that are not there.",
         "PROTOCOL <type>",
         "    Reply with a value of that type.",
         "QUICKLIST <key>",
         "    Whether the key is a quicklist.",
         "QUICKLIST-PACKED-THRESHOLD <size>",
         "    Nothing.",
         "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
         "    Save everything, to memory, and load it again. NOSAVE: what the last one has saved;",
         "    NOFLUSH: beside the keys that are there; MERGE: in place of those of the same name.",
         "REPLYBUFFER <PEAK-RESET-TIME <ms|NEVER|RESET>|RESIZING <0|1>>",
         "    Nothing.",
         "SET-ACTIVE-EXPIRE <0|1>",
         "    Whether expired keys are removed before a command comes upon them.",
         "SET-DISABLE-DENY-SCRIPTS <0|1>",
         "    Whether scripts may call DEBUG.",
         "SLEEP <seconds>",
         "    This client waits; SLOWLOG and LATENCY tell of it.",
         "STRINGMATCH-LEN <len> <pattern>",
         "    Match a text of so many letters a.",
         "HELP",
         "    Print this help."});
}

struct form {
    std::string_view name;
    std::size_t fewest;  // arguments, with DEBUG and the name
    std::size_t most;
    void (*run)(call&);
    bool changes_keys = false;
};

constexpr std::size_t any = SIZE_MAX;

constexpr form forms[] = {
    {"object", 3, 3, object},
    {"sleep", 3, 3, sleep},
    {"reload", 2, any, debug_reload, true},
    {"loadaof", 2, 2, debug_load_append, true},
    {"digest", 2, 2, [](call& c) { c.reply.simple(hexadecimal(dataset_digest(c.state.data))); }},
    {"digest-value", 2, any, digest_values},
    {"protocol", 3, 3, protocol},
    {"populate", 3, 5, populate, true},
    {"error", 3, 3, [](call& c) { c.error(c.arg(2)); }},
    {"log", 3, 3, [](call& c) { c.reply.ok(); }},
    {"set-active-expire", 3, 3,
     [](call& c) {
         c.state.sweeps = std::atoi(std::string(c.arg(2)).c_str()) != 0;
         c.reply.ok();
     }},
    {"change-repl-id", 2, 2,
     [](call& c) {
         replication::of(c.state).take_new_id();
         c.reply.ok();
     }},
    {"listpack", 3, 3,
     [](call& c) {
         printed(c, "listpack", "Listpack structure printed on stdout",
                 "ERR Not a listpack encoded object.");
     }},
    {"quicklist", 3, 4,
     [](call& c) {
         printed(c, "quicklist", "Quicklist structure printed on stdout",
                 "ERR Not a quicklist encoded object.");
     }},
    {"stringmatch-len", 4, 4, stringmatch},
    {"quicklist-packed-threshold", 3, 3, packed_threshold},
    {"listpack-threshold", 2, any, [](call& c) { c.reply.ok(); }},
    {"htstats", 3, 4, tables_of_database},
    {"htstats-key", 3, 4, table_of_key},
    {"replybuffer", 4, 4, reply_buffer},
    {"set-disable-deny-scripts", 3, 3,
     [](call& c) {
         c.state.scripts_call_debug = std::atoi(std::string(c.arg(2)).c_str()) != 0;
         c.reply.ok();
     }},
    {"pause-cron", 3, 3, [](call& c) { c.reply.ok(); }},
    {"dict-resizing", 3, 3, [](call& c) { c.reply.ok(); }},
    {"help", 2, 2, help},
};

}  // namespace

void debug(call& c) {
    const bool is_ready = (c.state.clients.slow_path & slow_path::not_ready) == 0;
    for (const form& each : forms) {
        if (!is_word(c.arg(1), each.name)) continue;
        if (c.count < each.fewest || c.count > each.most) return c.wrong_subcommand();
        // It would remove keys that are being loaded, or disturb the load.
        if (each.changes_keys && !is_ready) return c.error(loading_text);
        if (each.changes_keys && c.in_script)
            return c.error("ERR This Redis command is not allowed from script");
        return each.run(c);
    }
    c.wrong_subcommand();
}

}  // namespace eddy::cache::commands
