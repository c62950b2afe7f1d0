// Table of ignored parameters, with Redis's limits and its error texts beyond them.
#include "cache/config/ignored_parameters.hpp"

#include "base/text/text.hpp"
#include "cache/config/config_values.hpp"
#include "cache/types/number.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using kind = ignored_parameter::kind;
using answer = std::expected<std::string, std::string>;

constexpr std::int64_t most_int = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t least_int = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t most_long = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_port = std::numeric_limits<std::uint16_t>::max();

consteval ignored_parameter fixed(std::string_view name, std::string_view usual) {
    return {name, usual, kind::immutable};
}
consteval ignored_parameter yes_no(std::string_view name, std::string_view usual) {
    return {name, usual, kind::yes_no};
}
consteval ignored_parameter number(std::string_view name, std::string_view usual,
                                   std::int64_t low = 0, std::int64_t high = most_int) {
    return {name, usual, kind::number, low, high};
}
consteval ignored_parameter count(std::string_view name, std::string_view usual) {
    return number(name, usual, 0, most_long);
}
consteval ignored_parameter bytes(std::string_view name, std::string_view usual,
                                  std::int64_t low = 0) {
    return {name, usual, kind::bytes, low, most_long};
}
consteval ignored_parameter choice(std::string_view name, std::string_view usual,
                                   std::string_view choices) {
    return {name, usual, kind::choice, 0, 0, choices};
}
consteval ignored_parameter text(std::string_view name, std::string_view usual) {
    return {name, usual};
}

consteval ignored_parameter also(std::string_view name, ignored_parameter of) {
    const std::string_view other = of.name;
    of.name = name;
    of.other = other;
    return of;
}

constexpr std::string_view shutdown_choices = "default, save, nosave, now, force";

constexpr ignored_parameter ignored[] = {
    number("active-defrag-cycle-max", "25", 1, 99),
    number("active-defrag-cycle-min", "1", 1, 99),
    bytes("active-defrag-ignore-bytes", "104857600", 1),
    number("active-defrag-max-scan-fields", "1000", 1, most_long),
    number("active-defrag-threshold-lower", "10", 0, 1000),
    number("active-defrag-threshold-upper", "100", 0, 1000),
    number("active-expire-effort", "1", 1, 10),
    yes_no("activedefrag", "no"),
    yes_no("activerehashing", "yes"),
    fixed("always-show-logo", "no"),
    yes_no("aof-rewrite-incremental-fsync", "yes"),
    yes_no("aof-timestamp-enabled", "no"),
    yes_no("cluster-allow-pubsubshard-when-down", "yes"),
    yes_no("cluster-allow-reads-when-down", "no"),
    yes_no("cluster-allow-replica-migration", "yes"),
    number("cluster-announce-bus-port", "0", 0, most_port),
    text("cluster-announce-hostname", ""),
    text("cluster-announce-human-nodename", ""),
    text("cluster-announce-ip", ""),
    number("cluster-announce-port", "0", 0, most_port),
    number("cluster-announce-tls-port", "0", 0, most_port),
    fixed("cluster-config-file", "nodes.conf"),
    bytes("cluster-link-sendbuf-limit", "0"),
    number("cluster-migration-barrier", "1"),
    count("cluster-node-timeout", "15000"),
    fixed("cluster-port", "0"),
    choice("cluster-preferred-endpoint-type", "ip", "ip, hostname, unknown-endpoint"),
    yes_no("cluster-replica-no-failover", "no"),
    number("cluster-replica-validity-factor", "10"),
    yes_no("cluster-require-full-coverage", "yes"),
    also("cluster-slave-no-failover", yes_no("cluster-replica-no-failover", "no")),
    also("cluster-slave-validity-factor", number("cluster-replica-validity-factor", "10")),
    yes_no("crash-log-enabled", "yes"),
    yes_no("crash-memcheck-enabled", "yes"),
    fixed("daemonize", "no"),
    fixed("disable-thp", "yes"),
    yes_no("dynamic-hz", "yes"),
    fixed("enable-debug-command", "no"),
    fixed("enable-module-command", "no"),
    fixed("enable-protected-configs", "no"),
    count("hash-max-listpack-entries", "512"),
    bytes("hash-max-listpack-value", "64"),
    also("hash-max-ziplist-entries", count("hash-max-listpack-entries", "512")),
    also("hash-max-ziplist-value", bytes("hash-max-listpack-value", "64")),
    number("hz", "10"),
    yes_no("jemalloc-bg-thread", "yes"),
    yes_no("lazyfree-lazy-eviction", "no"),
    yes_no("lazyfree-lazy-expire", "no"),
    yes_no("lazyfree-lazy-server-del", "no"),
    yes_no("lazyfree-lazy-user-del", "no"),
    yes_no("lazyfree-lazy-user-flush", "no"),
    number("lfu-decay-time", "1"),
    number("lfu-log-factor", "10"),
    number("list-compress-depth", "0"),
    number("list-max-listpack-size", "-2", least_int),
    also("list-max-ziplist-size", number("list-max-listpack-size", "-2", least_int)),
    text("locale-collate", ""),
    fixed("logfile", ""),
    choice("loglevel", "notice", "debug, verbose, notice, warning, nothing"),
    number("maxmemory-eviction-tenacity", "10", 0, 100),
    number("maxmemory-samples", "5", 1, 64),
    choice("oom-score-adj", "no", "no, yes, relative, absolute"),
    {"oom-score-adj-values", "0 200 800", kind::scores},
    fixed("pidfile", ""),
    text("proc-title-template", "{title} {listen-addr} {server-mode}"),
    choice("propagation-error-behavior", "ignore", "ignore, panic, panic-on-replicas"),
    yes_no("rdb-del-sync-files", "no"),
    yes_no("rdb-save-incremental-fsync", "yes"),
    fixed("rdbchecksum", "yes"),
    yes_no("rdbcompression", "yes"),
    yes_no("repl-disable-tcp-nodelay", "no"),
    choice("repl-diskless-load", "swapdb", "disabled, on-empty-db, swapdb"),
    yes_no("repl-diskless-sync", "yes"),
    yes_no("replica-ignore-disk-write-errors", "no"),
    yes_no("replica-ignore-maxmemory", "yes"),
    yes_no("replica-lazy-flush", "yes"),
    count("set-max-intset-entries", "512"),
    count("set-max-listpack-entries", "128"),
    count("set-max-listpack-value", "64"),
    fixed("set-proc-title", "yes"),
    choice("shutdown-on-sigint", "default", shutdown_choices),
    choice("shutdown-on-sigterm", "default", shutdown_choices),
    also("slave-ignore-maxmemory", yes_no("replica-ignore-maxmemory", "yes")),
    also("slave-lazy-flush", yes_no("replica-lazy-flush", "yes")),
    fixed("socket-mark-id", "0"),
    fixed("supervised", "no"),
    fixed("syslog-enabled", "no"),
    fixed("syslog-facility", "local0"),
    fixed("syslog-ident", "redis"),
    fixed("tcp-backlog", "511"),
    yes_no("tls-cluster", "no"),
    number("tls-session-cache-size", "20480"),
    number("tls-session-cache-timeout", "300"),
    yes_no("tls-session-caching", "yes"),
    fixed("unixsocket", ""),
    fixed("unixsocketperm", "0"),
    count("zset-max-listpack-entries", "128"),
    bytes("zset-max-listpack-value", "64"),
    also("zset-max-ziplist-entries", count("zset-max-listpack-entries", "128")),
    also("zset-max-ziplist-value", bytes("zset-max-listpack-value", "64")),
};

answer refuse(std::string_view why) { return std::unexpected(std::string(why)); }

answer refuse_range(const ignored_parameter& of) {
    return std::unexpected("argument must be between " + std::to_string(of.low) + " and " +
                           std::to_string(of.high) + " inclusive");
}

answer read_number(const ignored_parameter& of, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return refuse(not_an_integer);
    if (*number < of.low || *number > of.high) return refuse_range(of);
    return std::to_string(*number);
}

answer read_bytes(const ignored_parameter& of, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return refuse(not_bytes);
    if (*bytes < static_cast<std::size_t>(of.low) || *bytes > static_cast<std::size_t>(of.high))
        return refuse_range(of);
    return std::to_string(*bytes);
}

answer read_switch(std::string_view value) {
    if (is_word(value, "yes")) return "yes";
    if (is_word(value, "no")) return "no";
    return refuse(not_a_switch);
}

answer read_choice(const ignored_parameter& of, std::string_view value) {
    constexpr std::string_view between = ", ";
    for (std::string_view left = of.choices; !left.empty();) {
        const std::size_t size = std::min(left.find(between), left.size());
        if (is_word(value, left.substr(0, size))) return std::string(left.substr(0, size));
        left.remove_prefix(std::min(size + between.size(), left.size()));
    }
    return std::unexpected("argument(s) must be one of the following: " + std::string(of.choices));
}

answer read_scores(std::string_view value) {
    constexpr std::int64_t most = 2000;
    const std::vector<std::string_view> words = split_words(value);
    if (words.size() != 3) return refuse("wrong number of arguments");
    for (const std::string_view each : words) {
        const auto score = parse_integer(each);
        if (!score || *score < -most || *score > most)
            return refuse("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    }
    return std::string(value);
}

}  // namespace

std::span<const ignored_parameter> ignored_parameters() noexcept { return ignored; }

std::expected<std::string, std::string> read_ignored(const ignored_parameter& of,
                                                     std::string_view value) {
    switch (of.takes) {
        case kind::yes_no: return read_switch(value);
        case kind::number: return read_number(of, value);
        case kind::bytes: return read_bytes(of, value);
        case kind::choice: return read_choice(of, value);
        case kind::scores: return read_scores(value);
        case kind::text:
        case kind::immutable: break;
    }
    return std::string(value);
}

}  // namespace eddy::cache
