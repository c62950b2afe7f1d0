// The table of the cache's options, and their contradictions.
#include "runtime/cache/config/options.hpp"

#include "cache/catalog/command_names.hpp"
#include "cache/config/config.hpp"
#include "cache/persistence/persistence.hpp"
#include "runtime/cache/config/parameters.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/option_tables.hpp"
#include "runtime/options/units.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::cache {

using transport::scheme;

/// Replies of a long pipeline go out when there are so many bytes of them.
constexpr std::size_t flush_at = 128 * 1024;

/// A hundred days.
constexpr std::int64_t longest_memory_ns = std::int64_t{100} * 86'400 * 1'000'000'000;

namespace {

/// Where the cache serves.
std::vector<option> listening_options() {
    return {
        port_option(),
        bind_option("address of this machine to serve on; * for all, so that other machines may "
                    "read and write the cache"),
        unix_option(),
        allow_users_option(),
        listen_option("serve on a URI instead: tcp://HOST:PORT, unix:///PATH or handoff:///PATH"),
    };
}

/// TLS by the names of redis.conf.
std::vector<option> redis_tls_options() {
    return {
        {.name = "tls-port",
         .kind = option_kind::integer,
         .value_name = "N",
         .help = "port to serve TLS on, beside --port or alone; needs --tls-cert-file",
         .maximum = 65535},
        {.name = "tls-cert-file",
         .value_name = "FILE",
         .help = "certificate chain of --tls-port, as PEM",
         .is_path = true},
        {.name = "tls-key-file",
         .value_name = "FILE",
         .help = "the private key of that certificate, if it is not in the same file",
         .is_path = true},
        {.name = "tls-ca-cert-file",
         .value_name = "FILE",
         .help = "authorities of client certificates, as PEM",
         .is_path = true},
        {.name = "tls-ca-cert-dir",
         .value_name = "FOLDER",
         .help = "the same as a folder made by openssl-rehash(1)",
         .is_path = true},
        {.name = "tls-auth-clients",
         .kind = option_kind::choice,
         .value_name = "WHO",
         .default_value = "yes",
         .help = "whether clients on --tls-port must show a certificate: yes; optional: only a "
                 "shown one must be valid; no",
         .choices = {"yes", "no", "optional"}},
        {.name = "tls-protocols",
         .value_name = "VERSIONS",
         .help =
             "protocol versions: TLSv1.2, TLSv1.3, or both with a space between; both by default"},
        {.name = "tls-ciphers",
         .value_name = "LIST",
         .help = "ciphers of TLS 1.2, in the form of openssl-ciphers(1), preferred first"},
        {.name = "tls-ciphersuites",
         .value_name = "LIST",
         .help = "ciphers of TLS 1.3, such as TLS_AES_256_GCM_SHA384, joined by colons"},
        {.name = "tls-prefer-server-ciphers",
         .kind = option_kind::choice,
         .value_name = "WHETHER",
         .default_value = "yes",
         .help = "yes: the server's order of ciphers counts; no: the client's",
         .choices = {"yes", "no"}},
        {.name = "tls-replication",
         .kind = option_kind::choice,
         .value_name = "WHETHER",
         .default_value = "no",
         .help = "yes: this replica connects to its master by TLS; the master's certificate must "
                 "be signed by --tls-ca-cert-file",
         .choices = {"yes", "no"}},
    };
}

/// What clients may do, and memory.
std::vector<option> access_options() {
    return {
        {.name = "protected-mode",
         .kind = option_kind::choice,
         .value_name = "WHETHER",
         .default_value = "yes",
         .help = "yes: refuse clients of other machines as long as no password is needed",
         .choices = {"yes", "no"},
         .live = true},
        {.name = "mode",
         .kind = option_kind::choice,
         .value_name = "MODE",
         .default_value = "readwrite",
         .help = "what clients may do: readonly, readwrite, or admin, which also allows commands "
                 "that stop or debug the cache",
         .choices = {"readonly", "readwrite", "admin"},
         .live = true},
        {.name = "maxmemory",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "0",
         .help = "memory for keys and values, such as 512M or 2GiB; 0 is no limit",
         .maximum = std::int64_t{1} << 50,
         .live = true},
        {.name = "eviction",
         .kind = option_kind::choice,
         .value_name = "POLICY",
         .default_value = "none",
         .help =
             "policy at --maxmemory: none: refuse writes; lru: evict keys not used for long; lfu: "
             "seldom used keys; s3fifo: as lru, but an evicted key that returns soon stays; "
             "random: any keys; ttl: keys that expire soonest. volatile: only keys with an expiry",
         .choices = {"none", "allkeys-lru", "allkeys-lfu", "allkeys-s3fifo", "allkeys-random",
                     "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"},
         .live = true,
         .foreign_names = {{"maxmemory-policy", "--eviction"}}},
    };
}

/// Files that keep the keys.
std::vector<option> file_options() {
    return {
        {.name = "dir",
         .value_name = "FOLDER",
         .help = "keep the keys in a dump file of Redis's format in this folder, and load it at "
                 "the start; without it nothing is kept on disk",
         .is_path = true,
         .absence = "keeps nothing on disk, and a stop loses its keys; to keep them"},
        {.name = "dbfilename",
         .value_name = "NAME",
         .default_value = "dump.rdb",
         .help = "name of the dump file in --dir"},
        {.name = "save",
         .value_name = "POINTS",
         .help = "save points: pairs of seconds and changes, such as \"3600 1 300 100\", or off; "
                 "the default with --dir is \"3600 1 300 100 60 10000\"",
         .live = true},
        {.name = "appendonly",
         .kind = option_kind::choice,
         .value_name = "YES|NO",
         .default_value = "no",
         .help = "also write each change to an append-only file in --dir, as Redis does, so that a "
                 "crash of the machine loses little or nothing",
         .choices = {"yes", "no"},
         .live = true},
        {.name = "appendfsync",
         .kind = option_kind::choice,
         .value_name = "WHEN",
         .default_value = "everysec",
         .help = "when appended changes must be on the disk: always: before the reply; everysec: a "
                 "second later; no: when the operating system writes them",
         .choices = {"always", "everysec", "no"},
         .live = true},
    };
}

/// The master, users, and parameters of redis.conf.
std::vector<option> replication_options() {
    return {
        {.name = "replicate",
         .value_name = "HOST:PORT",
         .help = "be a replica of another cache or Redis: its data replaces the cache's own; "
                 "REPLICAOF NO ONE ends it until the next start"},
        {.name = "replicate-user",
         .value_name = "NAME",
         .help = "user for the server of --replicate"},
        {.name = "replicate-password",
         .value_name = "PASSWORD",
         .help = "password for the server of --replicate",
         .shown = [](const std::string&) { return std::string(hidden); }},
        {.name = "aclfile",
         .value_name = "FILE",
         .help = "file of users, loaded at the start; for ACL SAVE and ACL LOAD",
         .is_path = true},
        {.name = "config",
         .value_name = "PARAMETERS",
         .help = "parameters of redis.conf as for CONFIG SET, joined by ;, such as \"requirepass "
                 "secret; slowlog-max-len 7\"; CONFIG REWRITE stores parameters without an option "
                 "of their own here",
         .live = true,
         .shown = without_secrets,
         .foreign_names = {{"requirepass", "--config \"requirepass PASSWORD\""}}},
        {.name = "maxmemory-clients",
         .value_name = "SIZE",
         .default_value = "0",
         .help = "memory for the buffers of all clients, such as 64M, or 5% of --maxmemory; beyond "
                 "it the clients with the largest buffers are closed; 0 is no limit",
         .live = true},
        {.name = "rename-command",
         .value_name = "NAMES",
         .help = "renamed commands: \"FLUSHALL=wipe CONFIG=\"; a command without a new name cannot "
                 "be called"},
    };
}

/// The script behind the cache, and values that it is too late for.
std::vector<option> hook_options() {
    return {
        {.name = "hooks",
         .value_name = "FILE",
         .help = "Lua script that is called for missing keys and for changes: its functions "
                 "on_miss, on_write, on_delete and on_expire",
         .is_path = true},
        {.name = "hook-threads",
         .kind = option_kind::integer,
         .value_name = "N",
         .default_value = "2",
         .help = "threads that run the script, each with its own Lua state",
         .minimum = 1,
         .maximum = static_cast<std::int64_t>(script::workers::max_threads)},
        {.name = "hook-deadline",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "1s",
         .help = "how long a client waits for on_miss, or for room in --hook-queue",
         .minimum = 1'000'000,
         .maximum = std::int64_t{3600} * 1'000'000'000},
        {.name = "hook-fallback",
         .kind = option_kind::choice,
         .value_name = "WHAT",
         .default_value = "error",
         .help = "reply if on_miss fails or takes longer: error; nil, as for a missing key; stale: "
                 "the expired value, else an error",
         .choices = {"error", "nil", "stale"}},
        {.name = "hook-stale-for",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "10m",
         .help =
             "longest time after its expiry in which a value is served, with --hook-fallback stale",
         .maximum = longest_memory_ns},
        {.name = "hook-stale-memory",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "64MiB",
         .help = "memory for such values; beyond it the oldest are dropped",
         .maximum = std::int64_t{1} << 40},
    };
}

/// Keys that the script does not know, and the queue of changes.
std::vector<option> hook_queue_options() {
    return {
        {.name = "hook-negative-ttl",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "0",
         .help = "how long a missing value of on_miss is remembered; 0 is not at all",
         .maximum = longest_memory_ns},
        {.name = "hook-max-misses",
         .kind = option_kind::integer,
         .value_name = "N",
         .default_value = "10000",
         .help = "keys that wait for on_miss at the same time; more get the fallback at once",
         .minimum = 1,
         .maximum = 10'000'000},
        {.name = "hook-queue",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "64MiB",
         .help = "memory for changes that wait for the script",
         .minimum = 4096,
         .maximum = std::int64_t{1} << 40},
        {.name = "hook-full",
         .kind = option_kind::choice,
         .value_name = "WHAT",
         .default_value = "wait",
         .help = "what happens to write commands when --hook-queue is full: wait, or refuse",
         .choices = {"wait", "refuse"}},
        {.name = "hook-retries",
         .kind = option_kind::integer,
         .value_name = "N",
         .default_value = "0",
         .help = "how often a failed call for a change is repeated; 0 is until it succeeds",
         .maximum = 1'000'000},
        {.name = "hook-flush",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "10s",
         .help = "how long a stop waits for the calls for all changes",
         .maximum = std::int64_t{3600} * 1'000'000'000},
    };
}

/// Threads, and limits of clients.
std::vector<option> client_options() {
    return {
        threads_option("threads that serve clients. One has the highest throughput a core; more "
                       "receive, parse, encrypt, send and execute the usual commands on single "
                       "keys at the same time, and all other commands one at a time"),
        max_connections_option(),
        {.name = "idle-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "0",
         .help = "close a client that sends nothing for this time, such as 30s or 5m; 0 is never",
         .live = true},
        {.name = "write-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "60s",
         .help = "close a client that neither takes its replies nor sends commands for this time; "
                 "0 is never",
         .live = true},
        {.name = "max-queue",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "1GiB",
         .help = "largest reply, such as of a GET or LRANGE: a larger one closes its client. When "
                 "replies of this size wait, or 8 MiB, execution of the client's commands pauses "
                 "until it takes some; client-query-buffer-limit limits the commands that it may "
                 "send meanwhile",
         .minimum = 16 * 1024,
         .maximum = std::int64_t{1} << 40},
    };
}

}  // namespace

std::vector<option> option_table() {
    return joined({listening_options(), tls_options(), shm_options(), redis_tls_options(),
                   access_options(), file_options(), replication_options(), hook_options(),
                   hook_queue_options(), client_options()});
}

namespace {

constexpr std::string_view usual_save_points = "3600 1 300 100 60 10000";

outcome<> read_persistence(const settings& chosen, eddy::cache::parameters_target to) {
    if (!chosen.has("dir")) {
        for (const char* const name : {"save", "dbfilename", "appendonly", "appendfsync"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --dir FOLDER", name));
        }
        return {};
    }
    to.server.dir = chosen.text("dir");
    if (!to.server.dir.starts_with('/'))
        return refuse(400, fmt::format("--dir cannot be \"{}\": write the whole path, from /",
                                       to.server.dir));
    to.server.dbfilename = chosen.text("dbfilename");
    if (to.server.dbfilename.find('/') != std::string::npos || to.server.dbfilename == "." ||
        to.server.dbfilename == "..")
        return refuse(400, fmt::format("--dbfilename cannot be \"{}\": write a file's name; its "
                                       "folder is --dir",
                                       to.server.dbfilename));
    to.engine.append.enabled = chosen.text("appendonly") == "yes";
    if (chosen.text("appendfsync") == "always")
        to.engine.append.fsync = eddy::cache::fsync_policy::always;
    else if (chosen.text("appendfsync") == "no")
        to.engine.append.fsync = eddy::cache::fsync_policy::no;
    const std::string_view points =
        chosen.has("save") ? std::string_view(chosen.text("save")) : usual_save_points;
    if (points == "off") return {};
    auto parsed = eddy::cache::parse_save_points(points);
    if (!parsed)
        return refuse(400, fmt::format("--save cannot be \"{}\": write pairs of seconds and "
                                       "changes, such as \"3600 1 300 100\", or off",
                                       points));
    to.engine.save_points = std::move(*parsed);
    return {};
}

outcome<> read_replication(const settings& chosen, eddy::cache::replica_settings& to) {
    if (!chosen.has("replicate")) {
        for (const char* const name : {"replicate-user", "replicate-password"}) {
            if (chosen.given(name))
                return refuse(
                    400, fmt::format("--{} has no effect without --replicate HOST:PORT", name));
        }
        return {};
    }
    const std::string& text = chosen.text("replicate");
    const result<transport::address> where = transport::parse("tcp://" + text);
    if (!where || where->host.empty() || where->port == 0 || where->host.size() > 255)
        return refuse(400, fmt::format("--replicate cannot be \"{}\": write the other server's "
                                       "HOST:PORT, such as 10.0.0.1:6379",
                                       text));
    to.master_host = where->host;
    to.master_port = where->port;
    if (chosen.has("replicate-password")) to.master_password = chosen.text("replicate-password");
    if (chosen.has("replicate-user")) to.master_user = chosen.text("replicate-user");
    if (!to.master_user.empty() && to.master_password.empty())
        return refuse(400, "--replicate-user has no effect without --replicate-password PASSWORD");
    return {};
}

outcome<> read_clients_memory(const settings& chosen, eddy::cache::engine_options& to) {
    const std::string& text = chosen.text("maxmemory-clients");
    const auto wrong = [&] {
        return refuse(400, fmt::format("--maxmemory-clients cannot be \"{}\"; write a number of "
                                       "bytes, such as 64M, or a part of --maxmemory, such as 5%",
                                       text));
    };
    if (!text.ends_with('%')) {
        const result<std::int64_t> bytes = parse_size(text);
        if (!bytes) return wrong();
        to.clients.max_memory = static_cast<std::size_t>(*bytes);
        return {};
    }
    const auto percent = parse_size(std::string_view(text).substr(0, text.size() - 1));
    if (!percent || *percent < 1 || *percent > 100) return wrong();
    if (to.max_memory == 0)
        return refuse(400, fmt::format("--maxmemory-clients {} has no effect without a limit; add "
                                       "--maxmemory SIZE",
                                       text));
    to.clients.max_memory_percent = static_cast<unsigned>(*percent);
    return {};
}

// "OLD=NEW", between spaces or commas.
outcome<> read_renamed_commands(const settings& chosen, eddy::cache::engine_options& to) {
    if (!chosen.has("rename-command")) return {};
    constexpr std::string_view between = " ,\t\n";
    std::string_view rest = chosen.text("rename-command");
    while (true) {
        rest.remove_prefix(std::min(rest.find_first_not_of(between), rest.size()));
        if (rest.empty()) break;
        const std::string_view pair = rest.substr(0, rest.find_first_of(between));
        rest.remove_prefix(pair.size());
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return refuse(400, fmt::format("--rename-command cannot have \"{}\": write OLD=NEW, "
                                           "such as FLUSHALL=wipe, or OLD= so that no client can "
                                           "call it",
                                           pair));
        to.renamed_commands.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
    const auto names = eddy::cache::command_names::make(to.renamed_commands);
    if (!names) return refuse(400, fmt::format("--rename-command: {}", names.error()));
    return {};
}

outcome<> read_acl_file(const settings& chosen, eddy::cache::server_settings& to) {
    if (!chosen.has("aclfile")) return {};
    to.acl_file = chosen.text("aclfile");
    if (to.acl_file.starts_with('/')) return {};
    return refuse(
        400, fmt::format("--aclfile cannot be \"{}\": write the whole path, from /", to.acl_file));
}

outcome<> read_parameters(const settings& chosen, eddy::cache::parameters_target to) {
    if (!chosen.has("config")) return {};
    const auto parameters = split_parameters(chosen.text("config"));
    if (!parameters)
        return refuse(400, fmt::format("--config cannot be \"{}\": write NAME VALUE, several "
                                       "joined by ;, and a value that is empty or has a ; in "
                                       "double quotes",
                                       chosen.text("config")));
    for (const auto& [name, value] : *parameters) {
        if (name == "io-threads")
            return refuse(400,
                          fmt::format("--config: io-threads is the option --threads {}", value));
        if (const auto set = eddy::cache::set_parameter(to, name, value); !set)
            return refuse(400, fmt::format("--config: {}", set.error()));
    }
    return {};
}

outcome<> read_hooks(const settings& chosen, hook_config& to) {
    if (!chosen.has("hooks")) {
        for (const option& each : option_table()) {
            if (each.name.starts_with("hook-") && chosen.given(each.name))
                return refuse(400,
                              fmt::format("--{} has no effect without --hooks FILE", each.name));
        }
        return {};
    }
    to.file = chosen.text("hooks");
    if (!to.file.starts_with('/'))
        return refuse(
            400, fmt::format("--hooks cannot be \"{}\": write the whole path, from /", to.file));
    constexpr std::int64_t ns_a_us = 1000;
    eddy::cache::hook_options& options = to.options;
    to.threads = static_cast<std::size_t>(chosen.number("hook-threads"));
    to.flush = duration(chosen.number("hook-flush"));
    options.deadline_us = chosen.number("hook-deadline") / ns_a_us;
    const std::string& fallback = chosen.text("hook-fallback");
    options.fallback = fallback == "nil"     ? eddy::cache::hook_fallback::nil
                       : fallback == "stale" ? eddy::cache::hook_fallback::stale
                                             : eddy::cache::hook_fallback::error;
    options.stale_for_us = chosen.number("hook-stale-for") / ns_a_us;
    options.max_stale_bytes = static_cast<std::size_t>(chosen.number("hook-stale-memory"));
    options.negative_ttl_us = chosen.number("hook-negative-ttl") / ns_a_us;
    options.max_misses = static_cast<std::size_t>(chosen.number("hook-max-misses"));
    options.queue.max_bytes = static_cast<std::size_t>(chosen.number("hook-queue"));
    options.queue.max_retries = static_cast<std::uint64_t>(chosen.number("hook-retries"));
    options.refuses_when_full = chosen.text("hook-full") == "refuse";
    return {};
}

}  // namespace

outcome<config> read_config(const settings& chosen) {
    config read;
    auto secure = choose_tls_address(chosen, read.server.tls);
    if (!secure) return std::unexpected(secure.error());
    const bool is_alone =
        *secure && !chosen.has("port") && !chosen.has("unix") && !chosen.has("listen");
    if (is_alone) {
        read.where = std::move(**secure);
    } else {
        auto where = choose_address(chosen, scheme::tcp);
        if (!where) return std::unexpected(where.error());
        if (where->kind == scheme::udp)
            return refuse(400, "a cache cannot serve udp://; write --listen tcp://HOST:PORT");
        read.where = std::move(*where);
        if (chosen.flag("tls")) {
            if (auto added = add_tls(read.where, tls_parameters_of(read.server.tls)); !added)
                return std::unexpected(added.error());
            read.is_tls_by_option = true;
        }
        read.secure = std::move(*secure);
    }
    auto shared = read_shm(chosen, read.where);
    if (!shared) return std::unexpected(shared.error());
    read.shared = std::move(*shared);
    auto allowed = read_allowed_users(chosen, read.where);
    if (!allowed) return std::unexpected(allowed.error());
    read.rules.users = std::move(*allowed);
    read.server.protected_mode = chosen.text("protected-mode") == "yes";
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
    if (auto limited = read_clients_memory(chosen, read.engine); !limited)
        return std::unexpected(limited.error());
    if (auto renamed = read_renamed_commands(chosen, read.engine); !renamed)
        return std::unexpected(renamed.error());
    if (auto kept = read_persistence(chosen, {read.engine, read.server}); !kept)
        return std::unexpected(kept.error());
    if (auto follows = read_replication(chosen, read.server.replica); !follows)
        return std::unexpected(follows.error());
    if (auto users = read_acl_file(chosen, read.server); !users)
        return std::unexpected(users.error());
    read.server.max_clients = static_cast<std::uint64_t>(chosen.number("max-connections"));
    read.server.client_timeout = duration(chosen.number("idle-timeout"));
    if (auto set = read_parameters(chosen, {read.engine, read.server}); !set)
        return std::unexpected(set.error());
    if (auto hooked = read_hooks(chosen, read.hooks); !hooked)
        return std::unexpected(hooked.error());
    read.threads = read.server.threads = static_cast<std::size_t>(chosen.number("threads"));
    read.write_timeout = duration(chosen.number("write-timeout"));
    read.max_queue = static_cast<std::size_t>(chosen.number("max-queue"));
    read.engine.max_pending_reply = std::min(flush_at, read.max_queue);
    return read;
}

}  // namespace eddy::runtime::cache
