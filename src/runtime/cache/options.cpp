// The table of the cache's options, and which of them contradict each other.
#include "runtime/cache/options.hpp"

#include "cache/persistence.hpp"
#include "runtime/listening.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::cache {

using transport::scheme;

/// Replies of a long pipeline go out when there are so many bytes of them.
constexpr std::size_t flush_at = 128 * 1024;

std::vector<option> option_table() {
    return {
        port_option(),
        bind_option("127.0.0.1",
                    "address of this machine to serve on; * for all, so that others on the network "
                    "may read and write the cache"),
        unix_option(),
        listen_option("serve on a URI instead: tcp://HOST:PORT or unix:///PATH"),
        {.name = "mode",
         .kind = option_kind::choice,
         .value_name = "MODE",
         .default_value = "readwrite",
         .help = "what clients may do: readonly, readwrite, or admin, which also allows commands "
                 "that stop or debug the cache",
         .choices = {"readonly", "readwrite", "admin"}},
        {.name = "maxmemory",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "0",
         .help = "memory for keys and values, such as 512M or 2GiB; 0 is no limit",
         .maximum = std::int64_t{1} << 50},
        {.name = "eviction",
         .kind = option_kind::choice,
         .value_name = "POLICY",
         .default_value = "none",
         .help = "what happens at --maxmemory: none, writes are refused; lru, keys that were not "
                 "used for long are removed; lfu, seldom used ones; random, any; ttl, those that "
                 "end soonest. volatile: only keys that have an expiry",
         .choices = {"none", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
                     "volatile-lfu", "volatile-random", "volatile-ttl"}},
        {.name = "dir",
         .value_name = "FOLDER",
         .help = "keep the keys in a dump file in this folder, in Redis's own format, and begin "
                 "with what is in it; without it nothing is kept on disk"},
        {.name = "dbfilename",
         .value_name = "NAME",
         .default_value = "dump.rdb",
         .help = "name of the dump file in --dir"},
        {.name = "save",
         .value_name = "POINTS",
         .help =
             "when to save by itself: pairs of seconds and changes, such as \"3600 1 300 100\", "
             "or off; with --dir it is \"3600 1 300 100 60 10000\" otherwise"},
        max_connections_option(),
        {.name = "idle-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "0",
         .help = "close a client that sends nothing for so long, such as 30s or 5m; 0 is never",
         .live = true},
        {.name = "write-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "60s",
         .help = "close a client that takes nothing of its replies for so long; 0 is never",
         .live = true},
        {.name = "max-queue",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "1GiB",
         .help =
             "largest reply, such as that of a GET or LRANGE: a larger one closes its client; more "
             "replies than that never wait, as nothing is read from a client that does not take "
             "its "
             "replies",
         .minimum = 16 * 1024,
         .maximum = std::int64_t{1} << 40},
    };
}

namespace {

constexpr std::string_view usual_save_points = "3600 1 300 100 60 10000";

outcome<> read_persistence(const settings& chosen, eddy::cache::engine_options& to) {
    if (!chosen.has("dir")) {
        for (const char* const name : {"save", "dbfilename"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --dir FOLDER", name));
        }
        return {};
    }
    to.dir = chosen.text("dir");
    if (!to.dir.starts_with('/'))
        return refuse(400,
                      fmt::format("--dir cannot be \"{}\": write the whole path, from /", to.dir));
    to.dbfilename = chosen.text("dbfilename");
    if (to.dbfilename.find('/') != std::string::npos || to.dbfilename == "." ||
        to.dbfilename == "..")
        return refuse(400, fmt::format("--dbfilename cannot be \"{}\": write a file's name; its "
                                       "folder is --dir",
                                       to.dbfilename));
    const std::string_view points =
        chosen.has("save") ? std::string_view(chosen.text("save")) : usual_save_points;
    if (points == "off") return {};
    auto parsed = eddy::cache::parse_save_points(points);
    if (!parsed)
        return refuse(400, fmt::format("--save cannot be \"{}\": write pairs of seconds and "
                                       "changes, such as \"3600 1 300 100\", or off",
                                       points));
    to.save_points = std::move(*parsed);
    return {};
}

}  // namespace

outcome<config> read_config(const settings& chosen) {
    auto where = choose_address(chosen, scheme::tcp);
    if (!where) return std::unexpected(where.error());
    if (where->kind == scheme::udp)
        return refuse(400, "a cache cannot serve udp://; write --listen tcp://HOST:PORT");

    config read;
    read.where = std::move(*where);
    const std::string& mode = chosen.text("mode");
    if (mode == "readonly")
        read.engine.mode = eddy::cache::access_mode::readonly;
    else if (mode == "admin")
        read.engine.mode = eddy::cache::access_mode::admin;
    read.engine.max_memory = static_cast<std::size_t>(chosen.number("maxmemory"));
    for (const auto& each : eddy::cache::eviction_names) {
        if (chosen.text("eviction") == each.name) read.engine.policy = each.policy;
    }
    if (read.engine.policy != eddy::cache::eviction::none && read.engine.max_memory == 0)
        return refuse(400, "--eviction has no effect without a limit; add --maxmemory SIZE");
    if (auto kept = read_persistence(chosen, read.engine); !kept)
        return std::unexpected(kept.error());
    read.max_connections = static_cast<std::uint64_t>(chosen.number("max-connections"));
    read.idle_timeout = duration(chosen.number("idle-timeout"));
    read.write_timeout = duration(chosen.number("write-timeout"));
    read.max_queue = static_cast<std::size_t>(chosen.number("max-queue"));
    read.engine.max_pending_reply = std::min(flush_at, read.max_queue);
    return read;
}

}  // namespace eddy::runtime::cache
