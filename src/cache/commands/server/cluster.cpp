// CLUSTER, and READONLY, READWRITE and ASKING of cluster clients.
//
// There is no cluster. CLUSTER is refused as by Redis without cluster mode, so that clients that
// probe for it continue without; with engine_options::emulates_cluster it answers as a cluster of
// one node that has all slots, for clients that require a cluster.
#include "base/sha1.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/keys/scan_options.hpp"
#include "cache/commands/server/cluster_slot.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

// CRC-16/XMODEM, as in the Redis Cluster specification.
constexpr std::array<std::uint16_t, 256> crc_table = [] {
    std::array<std::uint16_t, 256> made{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        unsigned crc = byte << 8;
        for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021U : 0U);
        made[byte] = static_cast<std::uint16_t>(crc);
    }
    return made;
}();

}  // namespace

unsigned cluster_slot_of(std::string_view key) noexcept {
    const std::size_t open = key.find('{');
    if (open != std::string_view::npos) {
        const std::size_t close = key.find('}', open + 1);
        if (close != std::string_view::npos && close > open + 1) {
            key = key.substr(open + 1, close - open - 1);
        }
    }
    unsigned crc = 0;
    for (const char each : key) {
        crc = (crc << 8 & 0xffff) ^ crc_table[crc >> 8 ^ static_cast<unsigned char>(each)];
    }
    return crc % cluster_slot_count;
}

}  // namespace eddy::cache

namespace eddy::cache::commands {
namespace {

constexpr std::string_view no_cluster_text = "ERR This instance has cluster support disabled";

struct address {
    std::string_view host;
    std::int64_t port;
};

// Address at which this client reached the server, so its other connections can use it, too.
address own_address(const call& c) {
    const std::string_view text = c.client.local_address;
    const std::size_t colon = text.rfind(':');
    if (colon != std::string_view::npos) {
        if (const auto port = parse_integer(text.substr(colon + 1))) {
            std::string_view host = text.substr(0, colon);
            // "[::1]:6379"
            if (host.starts_with('[') && host.ends_with(']'))
                host = host.substr(1, host.size() - 2);
            return {host, *port};
        }
    }
    return {"127.0.0.1", settings_of(c.state.server).port};
}

// Derived from the node's name: as long-lived, but different.
std::string shard_id(const call& c) {
    return hexadecimal(sha1("shard of " + c.state.replication.run_id));
}

std::optional<unsigned> slot_argument(call& c) {
    const auto given = c.integer(2);
    if (!given) return std::nullopt;
    if (*given >= 0 && *given < cluster_slot_count) return static_cast<unsigned>(*given);
    c.error("ERR Invalid slot");
    return std::nullopt;
}

// The keys of a slot, at most `most`. O(keys): keys are not grouped by slot.
std::vector<std::string_view> keys_of_slot(call& c, unsigned slot, std::size_t most) {
    std::vector<std::string_view> found;
    dictionary::iterator all(c.keys->table());
    while (found.size() < most) {
        const call::slot* const place = all.next();
        if (place == nullptr) break;
        const entry& e = *keyspace::at(place);
        if (cluster_slot_of(e.key()) == slot && !c.keys->is_over(e)) found.push_back(e.key());
    }
    return found;
}

}  // namespace

void cluster_info(call& c) {
    c.reply.verbatim("txt",
                     "cluster_state:ok\r\n"
                     "cluster_slots_assigned:16384\r\n"
                     "cluster_slots_ok:16384\r\n"
                     "cluster_slots_pfail:0\r\n"
                     "cluster_slots_fail:0\r\n"
                     "cluster_known_nodes:1\r\n"
                     "cluster_size:1\r\n"
                     "cluster_current_epoch:1\r\n"
                     "cluster_my_epoch:1\r\n"
                     "cluster_stats_messages_sent:0\r\n"
                     "cluster_stats_messages_received:0\r\n"
                     "total_cluster_links_buffer_limit_exceeded:0\r\n");
}

void cluster_slots(call& c) {
    const address own = own_address(c);
    c.reply.array(1);
    c.reply.array(3);
    c.reply.integer(0);
    c.reply.integer(cluster_slot_count - 1);
    c.reply.array(4);
    c.reply.bulk(own.host);
    c.reply.integer(own.port);
    c.reply.bulk(c.state.replication.run_id);
    c.reply.map(0);
}

void cluster_shards(call& c) {
    const address own = own_address(c);
    c.reply.array(1);
    c.reply.map(2);
    c.reply.bulk("slots");
    c.reply.array(2);
    c.reply.integer(0);
    c.reply.integer(cluster_slot_count - 1);
    c.reply.bulk("nodes");
    c.reply.array(1);
    c.reply.map(7);
    c.reply.bulk("id");
    c.reply.bulk(c.state.replication.run_id);
    c.reply.bulk("port");
    c.reply.integer(own.port);
    c.reply.bulk("ip");
    c.reply.bulk(own.host);
    c.reply.bulk("endpoint");
    c.reply.bulk(own.host);
    c.reply.bulk("role");
    c.reply.bulk("master");
    c.reply.bulk("replication-offset");
    c.reply.integer(0);
    c.reply.bulk("health");
    c.reply.bulk("online");
}

void cluster_nodes(call& c) {
    const address own = own_address(c);
    const std::string port = std::to_string(own.port);
    c.reply.verbatim("txt", c.state.replication.run_id + " " + std::string(own.host) + ":" + port +
                                "@" + port + " myself,master - 0 0 1 connected 0-16383\n");
}

void cluster_replicas(call& c) {
    if (c.arg(2) != c.state.replication.run_id) {
        return c.error("ERR Unknown node " + std::string(c.arg(2)));
    }
    c.reply.array(0);
}

void cluster_getkeysinslot(call& c) {
    const auto slot = slot_argument(c);
    if (!slot) return;
    const auto most = c.integer(3);
    if (!most) return;
    if (*most < 0) return c.error("ERR Invalid number of keys");
    const auto found = keys_of_slot(c, *slot, static_cast<std::size_t>(*most));
    c.reply.array(found.size());
    for (const std::string_view key : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(key);
    }
}

void cluster_change(call& c) {
    c.error("ERR this cache answers as a cluster of one node, which cannot be changed");
}

void cluster_myid(call& c) { c.reply.bulk(c.state.replication.run_id); }
void cluster_myshardid(call& c) { c.reply.bulk(shard_id(c)); }
void cluster_keyslot(call& c) { c.reply.integer(cluster_slot_of(c.arg(2))); }
void cluster_links(call& c) { c.reply.array(0); }
void cluster_count_failure_reports(call& c) { c.reply.integer(0); }

void cluster_countkeysinslot(call& c) {
    const auto slot = slot_argument(c);
    if (!slot) return;
    c.reply.integer(static_cast<std::int64_t>(keys_of_slot(c, *slot, SIZE_MAX).size()));
}

void cluster_help(call& c) {
    c.help({"CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "COUNTKEYSINSLOT <slot>", "    How many keys the slot has.",
            "GETKEYSINSLOT <slot> <count>", "    Some of its keys.", "INFO",
            "    The state of the cluster, which is this node alone.", "KEYSLOT <key>",
            "    The key's slot.", "MYID", "    The node's name.", "MYSHARDID",
            "    The name of the node and its replicas together.", "NODES, SHARDS, SLOTS",
            "    Who has which slots.", "HELP", "    Print this help."});
}

namespace {

// CLUSTERSCAN's cursor: "0-{tag}-cursor". The tag is of the slot that is asked for, so that a
// client of a cluster finds the node.
struct slot_cursor {
    std::string tag;
    std::uint64_t at = 0;
};

// A text whose slot it is: some 16,000 are tried.
std::string tag_of(unsigned slot) {
    for (unsigned number = 0;; ++number) {
        std::string text = std::to_string(number);
        if (cluster_slot_of(text) == slot) return text;
    }
}

std::optional<slot_cursor> parse_slot_cursor(std::string_view text) {
    const std::size_t begin = text.find("-{");
    if (begin == std::string_view::npos) return std::nullopt;
    const std::size_t end = text.find("}-", begin);
    if (end == std::string_view::npos) return std::nullopt;
    slot_cursor made{std::string(text.substr(begin + 2, end - begin - 2)), 0};
    const std::string_view digits = text.substr(end + 2);
    const auto [stopped, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), made.at);
    if (digits.empty() || error != std::errc{} || stopped != digits.data() + digits.size())
        return std::nullopt;
    return made;
}

}  // namespace

// As Valkey it begins with a page without keys, whose cursor names the node.
void clusterscan(call& c) {
    if (!c.state.settings.options.emulates_cluster) return c.error(no_cluster_text);
    scan_options options;
    if (!options.parse(c, 2, scan_of::slots)) return;
    const bool begins = c.arg(1) == "0";
    auto cursor =
        begins ? slot_cursor{tag_of(options.slot.value_or(0)), 0} : parse_slot_cursor(c.arg(1));
    if (!cursor) return c.error("ERR Invalid cursor");
    if (options.slot && cluster_slot_of('{' + cursor->tag + '}') != *options.slot)
        return c.error("ERR Cursor slot mismatch with SLOT argument");
    std::vector<dictionary::slot> found;
    if (!begins) found = scan_keys(c, cursor->at, options);
    c.reply.array(2);
    c.reply.bulk(begins || cursor->at != 0 ? "0-{" + cursor->tag + "}-" + std::to_string(cursor->at)
                                           : std::string("0"));
    c.reply.array(found.size());
    for (const dictionary::slot s : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(dictionary::entry_of(s)->key());
    }
}

static void ok_in_cluster(call& c) {
    c.state.settings.options.emulates_cluster ? c.reply.ok() : c.error(no_cluster_text);
}

void cluster(call& c) {
    if (!c.state.settings.options.emulates_cluster) return c.error(no_cluster_text);
    subcommand(c);
}

// Also for clients with CLIENT CAPA REDIRECT: whether a replica may answer them.
static void set_reads_replica(call& c, bool to) {
    if (!c.client.redirects) return ok_in_cluster(c);
    c.client.reads_replica = to;
    c.reply.ok();
}

void readonly(call& c) { set_reads_replica(c, true); }
void readwrite(call& c) { set_reads_replica(c, false); }
void asking(call& c) { ok_in_cluster(c); }

}  // namespace eddy::cache::commands
