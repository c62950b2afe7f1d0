// MEMORY STATS, DOCTOR, PURGE and MALLOC-STATS; MEMORY USAGE is with the keys' commands.
#include "cache/catalog/commands.hpp"
#include "cache/clients/buffer_bytes.hpp"
#include "cache/engine/call.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache::commands {
namespace {

constexpr std::size_t startup_bytes = engine_state::startup_bytes;

struct memory_figures {
    std::size_t used = 0;
    std::size_t peak = 0;
    std::size_t reserved = 0;
    std::size_t tables = 0;
    std::size_t keys = 0;
    std::size_t databases = 0;  // that have keys
};

memory_figures measure(const call& c) {
    memory_figures found;
    found.used = c.state.used_memory();
    found.peak = std::max(found.used, c.state.peak_memory);
    found.reserved = c.memory().reserved_bytes();
    for (const auto& each : c.state.data.keyspaces) {
        if (each == nullptr || each->size() == 0) continue;
        found.tables += each->table_bytes();
        found.keys += each->size();
        ++found.databases;
    }
    return found;
}

}  // namespace

void memory_stats(call& c) {
    const memory_figures m = measure(c);
    const auto count = [&c](std::string_view name, std::size_t value) {
        c.reply.bulk(name);
        c.reply.integer(static_cast<std::int64_t>(value));
    };
    const auto ratio = [&c](std::string_view name, std::size_t part, std::size_t whole,
                            double factor) {
        c.reply.bulk(name);
        c.reply.number(
            whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole) * factor);
    };
    const std::size_t overhead = m.tables + startup_bytes;
    const std::size_t dataset = m.used > overhead ? m.used - overhead : 0;
    constexpr std::size_t fields = 27;
    c.reply.map(fields + m.databases);
    count("peak.allocated", m.peak);
    count("total.allocated", m.used);
    count("startup.allocated", startup_bytes);
    // These do not lie where keys do: neither total.allocated nor overhead.total has them.
    const buffer_bytes buffers = measure_buffers(c.state);
    const scripting::usage scripts = scripting::use(c.state);
    count("replication.backlog", buffers.backlog);
    count("clients.slaves", buffers.replicas);
    count("clients.normal", buffers.normal);
    count("cluster.links", 0);
    count("aof.buffer", buffers.append);
    count("lua.caches", scripts.script_bytes);
    count("functions.caches", scripts.library_bytes);
    for (std::size_t i = 0; i < engine_databases; ++i) {
        const keyspace* const keys = c.state.data.keyspaces[i].get();
        if (keys == nullptr || keys->size() == 0) continue;
        c.reply.bulk("db." + std::to_string(i));
        c.reply.map(3);
        count("overhead.hashtable.main", keys->table_bytes());
        count("overhead.hashtable.expires", 0);
        count("overhead.hashtable.slot-to-keys", 0);
    }
    count("overhead.total", overhead);
    count("keys.count", m.keys);
    count("keys.bytes-per-key", m.keys == 0 ? 0 : (m.used - startup_bytes) / m.keys);
    count("dataset.bytes", dataset);
    ratio("dataset.percentage", dataset, m.used - startup_bytes, 100);
    ratio("peak.percentage", m.used, m.peak, 100);
    count("allocator.allocated", m.used);
    count("allocator.active", m.reserved);
    count("allocator.resident", m.reserved);
    ratio("allocator-fragmentation.ratio", m.reserved, m.used, 1);
    count("allocator-fragmentation.bytes", m.reserved > m.used ? m.reserved - m.used : 0);
    ratio("allocator-rss.ratio", m.reserved, m.reserved, 1);
    count("allocator-rss.bytes", 0);
    ratio("rss-overhead.ratio", m.reserved, m.reserved, 1);
    count("rss-overhead.bytes", 0);
    ratio("fragmentation", m.reserved, m.used, 1);
    count("fragmentation.bytes", m.reserved > m.used ? m.reserved - m.used : 0);
}

void memory_doctor(call& c) {
    const memory_figures m = measure(c);
    constexpr std::size_t worth_a_word = 64U << 20;
    std::string text;
    if (m.reserved > worth_a_word && m.reserved > m.used * 3 / 2) {
        text +=
            "Half as much memory again as the keys need is reserved for them. It goes back to "
            "the system as pages become empty, or serves new keys.\n";
    }
    if (m.peak > worth_a_word && m.peak > m.used * 3 / 2) {
        text += "There was a time with half as much memory again in use; that is over.\n";
    }
    if (text.empty()) text = "Nothing is wrong with the memory.\n";
    c.reply.verbatim("txt", text);
}

void memory_malloc_stats(call& c) {
    const memory_figures m = measure(c);
    c.reply.verbatim("txt", "slabs: " + std::to_string(m.used) + " bytes in blocks, " +
                                std::to_string(m.reserved) + " bytes from the system\n");
}

// Free pages go back by themselves, a chunk at a time: there is nothing to purge.
void memory_purge(call& c) { c.reply.ok(); }

void memory_help(call& c) {
    c.help({"MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "DOCTOR",
            "    What is odd about the memory in use.", "MALLOC-STATS",
            "    The allocator's figures.", "PURGE",
            "    Nothing: free memory goes back by itself.", "STATS", "    Where the memory goes.",
            "USAGE <key> [SAMPLES <count>]", "    Bytes used by the key and its value.", "HELP",
            "    Print this help."});
}

}  // namespace eddy::cache::commands
