// The table of the cache's options, and their contradictions.
#include "runtime/cache/config/options.hpp"

#include "cache/catalog/command_names.hpp"
#include "cache/config/config.hpp"
#include "cache/engine/version.hpp"
#include "cache/persistence/persistence.hpp"
#include "runtime/cache/config/parameters.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/units.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "script/script_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::cache {

using eddy::cache::access_mode;
using eddy::cache::append_options;
using eddy::cache::engine_options;
using eddy::cache::eviction;
using eddy::cache::fsync_policy;
using eddy::cache::hook_fallback;
using eddy::cache::hook_options;
using eddy::cache::save_point;
using eddy::cache::server_settings;
using eddy::cache::write_behind_options;
using transport::scheme;

/// Replies of a long pipeline go out when there are so many bytes of them.
constexpr std::size_t flush_at = 128 * 1024;

/// A hundred days.
constexpr std::int64_t longest_memory_ns = std::int64_t{100} * 86'400 * 1'000'000'000;

namespace {

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

using row = bound_option<config>;

/// The policies by their names in CONFIG, but for Redis's noeviction.
std::vector<named_value<eviction>> eviction_choices() {
    std::vector<named_value<eviction>> all;
    for (const auto& each : eddy::cache::eviction_names)
        all.push_back({each.policy == eviction::none ? "none" : each.name, each.policy});
    return all;
}

constexpr std::string_view usual_save_points = "3600 1 300 100 60 10000";

outcome<std::vector<save_point>> read_save_points(const settings& chosen, const config& so_far) {
    const std::string_view points =
        chosen.has("save") ? std::string_view(chosen.text("save")) : usual_save_points;
    if (so_far.server.dir.empty() || points == "off") return {};
    auto parsed = eddy::cache::parse_save_points(points);
    if (!parsed)
        return refuse(400, fmt::format("--save cannot be \"{}\": write pairs of seconds and "
                                       "changes, such as \"3600 1 300 100\", or off",
                                       points));
    return std::move(*parsed);
}

outcome<std::string> read_redis_version(const settings& chosen, const config& /*so_far*/) {
    const std::string& version = chosen.text("redis-version");
    if (!eddy::cache::version_number(version))
        return refuse(400,
                      fmt::format("--redis-version cannot be \"{}\": write three numbers up to "
                                  "255, such as {}",
                                  version, eddy::cache::compatible_version));
    return version;
}

using renamed_list = std::vector<std::pair<std::string, std::string>>;

// "OLD=NEW", between spaces or commas.
outcome<renamed_list> read_renamed_commands(const settings& chosen, const config& /*so_far*/) {
    renamed_list renamed;
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
        renamed.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
    if (renamed.empty()) return renamed;
    const auto names = eddy::cache::command_names::make(renamed);
    if (!names) return refuse(400, fmt::format("--rename-command: {}", names.error()));
    return renamed;
}

/// Access of clients, and memory.
bound_options<config> access_rows() {
    return {
        row::choice(
            nested(&config::server, &server_settings::protected_mode),
            {.name = "protected-mode",
             .kind = option_kind::choice,
             .value_name = "WHETHER",
             .default_value = "yes",
             .help = "yes: refuse clients of other machines as long as no password is needed",
             .live = true},
            {{"yes", true}, {"no", false}}),
        row::choice(nested(&config::engine, &engine_options::mode),
                    {.name = "mode",
                     .kind = option_kind::choice,
                     .value_name = "MODE",
                     .default_value = "readwrite",
                     .help = "what clients may do: readonly, readwrite, or admin, which also "
                             "allows commands that stop or debug the cache",
                     .live = true},
                    {{"readonly", access_mode::readonly},
                     {"readwrite", access_mode::readwrite},
                     {"admin", access_mode::admin}}),
        row::bound(nested(&config::engine, &engine_options::max_memory),
                   {.name = "maxmemory",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "0",
                    .help = "memory for keys and values, such as 512M or 2GiB; 0 is no limit",
                    .maximum = std::int64_t{1} << 50,
                    .live = true}),
        row::choice(nested(&config::engine, &engine_options::policy),
                    {.name = "eviction",
                     .kind = option_kind::choice,
                     .value_name = "POLICY",
                     .default_value = "none",
                     .help = "policy at --maxmemory: none: refuse writes; lru: evict keys not used "
                             "for long; lfu: seldom used keys; s3fifo: as lru, but an evicted key "
                             "that returns soon stays; random: any keys; ttl: keys that expire "
                             "soonest. volatile: only keys with an expiry",
                     .live = true,
                     .foreign_names = {{"maxmemory-policy", "--eviction"}}},
                    eviction_choices()),
    };
}

/// Files that keep the keys.
bound_options<config> file_rows() {
    return {
        row::whole_path(
            nested(&config::server, &server_settings::dir),
            {.name = "dir",
             .value_name = "FOLDER",
             .help = "keep the keys in a dump file of Redis's format in this folder, and load it "
                     "at the start; without it nothing is kept on disk",
             .is_path = true,
             .absence = "keeps nothing on disk, and a stop loses its keys; to keep them"}),
        row::bound(nested(&config::server, &server_settings::dbfilename),
                   {.name = "dbfilename",
                    .value_name = "NAME",
                    .default_value = "dump.rdb",
                    .help = "name of the dump file in --dir"}),
        row::read_by(
            nested(&config::engine, &engine_options::save_points),
            {.name = "save",
             .value_name = "POINTS",
             .help = "save points: pairs of seconds and changes, such as \"3600 1 300 100\", or "
                     "off; the default with --dir is \"3600 1 300 100 60 10000\"",
             .live = true},
            read_save_points),
        row::choice(
            nested(&config::engine, nested(&engine_options::append, &append_options::enabled)),
            {.name = "appendonly",
             .kind = option_kind::choice,
             .value_name = "YES|NO",
             .default_value = "no",
             .help = "also write each change to an append-only file in --dir, as Redis does, so "
                     "that a crash of the machine loses little or nothing",
             .live = true},
            {{"yes", true}, {"no", false}}),
        row::choice(
            nested(&config::engine, nested(&engine_options::append, &append_options::fsync)),
            {.name = "appendfsync",
             .kind = option_kind::choice,
             .value_name = "WHEN",
             .default_value = "everysec",
             .help = "when appended changes must be on the disk: always: before the reply; "
                     "everysec: a second later; no: when the operating system writes them",
             .live = true},
            {{"always", fsync_policy::always},
             {"everysec", fsync_policy::everysec},
             {"no", fsync_policy::no}}),
    };
}

/// The master, users, and parameters of redis.conf.
bound_options<config> replication_rows() {
    return {
        row::unbound({.name = "replicate",
                      .value_name = "HOST:PORT",
                      .help = "be a replica of another cache or Redis: its data replaces the "
                              "cache's own; REPLICAOF NO ONE ends it until the next start"}),
        row::unbound({.name = "replicate-user",
                      .value_name = "NAME",
                      .help = "user for the server of --replicate"}),
        row::unbound({.name = "replicate-password",
                      .value_name = "PASSWORD",
                      .help = "password for the server of --replicate",
                      .shown = [](const std::string&) { return std::string(hidden); }}),
        row::whole_path(nested(&config::server, &server_settings::acl_file),
                        {.name = "aclfile",
                         .value_name = "FILE",
                         .help = "file of users, loaded at the start; for ACL SAVE and ACL LOAD",
                         .is_path = true}),
        row::unbound({.name = "config",
                      .value_name = "PARAMETERS",
                      .help = "parameters of redis.conf as for CONFIG SET, joined by ;, such as "
                              "\"requirepass secret; slowlog-max-len 7\"; CONFIG REWRITE stores "
                              "parameters without an option of their own here",
                      .live = true,
                      .shown = without_secrets,
                      .foreign_names = {{"requirepass", "--config \"requirepass PASSWORD\""}}}),
        row::unbound(
            {.name = "maxmemory-clients",
             .value_name = "SIZE",
             .default_value = "0",
             .help = "memory for the buffers of all clients, such as 64M, or 5% of --maxmemory; "
                     "beyond it the clients with the largest buffers are closed; 0 is no limit",
             .live = true}),
        row::read_by(nested(&config::engine, &engine_options::renamed_commands),
                     {.name = "rename-command",
                      .value_name = "NAMES",
                      .help = "renamed commands: \"FLUSHALL=wipe CONFIG=\"; a command without a "
                              "new name cannot be called"},
                     read_renamed_commands),
        row::read_by(nested(&config::engine, &engine_options::redis_version),
                     {.name = "redis-version",
                      .value_name = "VERSION",
                      .default_value = eddy::cache::compatible_version,
                      .help = "version of Redis that INFO and HELLO show, by which some clients "
                              "choose commands; nothing else depends on it"},
                     read_redis_version),
    };
}

/// The script behind the cache: its threads, and their limits.
bound_options<config> hook_script_rows() {
    return {
        row::whole_path(nested(&config::hooks, &hook_config::file),
                        {.name = "hooks",
                         .value_name = "FILE",
                         .help = "Lua script that is called for missing keys and for changes: its "
                                 "functions on_miss, on_write, on_delete and on_expire; on_start, "
                                 "on_tick (each tick_ms) and on_stop are its threads' own. --lua "
                                 "is the same",
                         .is_path = true,
                         .former_name = "lua"}),
        row::bound(nested(&config::hooks, &hook_config::threads),
                   {.name = "hook-threads",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "2",
                    .help = "threads that run the script, each with its own Lua state; a script "
                            "with on_tick has one, if this is not given",
                    .minimum = 1,
                    .maximum = static_cast<std::int64_t>(script::script_threads::max_threads)}),
        row::bound(nested(&config::hooks, &hook_config::memory),
                   {.name = "hook-memory",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "256MiB",
                    .help = "memory of the script's values in each thread; a call that needs more "
                            "fails",
                    .minimum = std::int64_t{1} << 20,
                    .maximum = std::int64_t{1} << 36}),
        row::bound(nested(&config::hooks, &hook_config::time),
                   {.name = "hook-time",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "30s",
                    .help = "longest time of a call of the script but on_miss, which has four "
                            "times --hook-deadline; it is ended with an error that names its line",
                    .minimum = 1'000'000,
                    .maximum = std::int64_t{3600} * 1'000'000'000}),
    };
}

/// Clients that wait for the script, and values that it is too late for.
bound_options<config> hook_reply_rows() {
    return {
        row::in_microseconds(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::deadline_us)),
            {.name = "hook-deadline",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "1s",
             .help = "how long a client waits for on_miss, or for room in --hook-queue",
             .minimum = 1'000'000,
             .maximum = std::int64_t{3600} * 1'000'000'000}),
        row::choice(nested(&config::hooks, nested(&hook_config::options, &hook_options::fallback)),
                    {.name = "hook-fallback",
                     .kind = option_kind::choice,
                     .value_name = "WHAT",
                     .default_value = "error",
                     .help = "reply if on_miss fails or takes longer: error; nil, as for a missing "
                             "key; stale: the expired value, else an error"},
                    {{"error", hook_fallback::error},
                     {"nil", hook_fallback::nil},
                     {"stale", hook_fallback::stale}}),
        row::in_microseconds(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::stale_for_us)),
            {.name = "hook-stale-for",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "10m",
             .help = "longest time after its expiry in which a value is served, with "
                     "--hook-fallback stale",
             .maximum = longest_memory_ns}),
        row::bound(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::max_stale_bytes)),
            {.name = "hook-stale-memory",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "64MiB",
             .help = "memory for such values; beyond it the oldest are dropped",
             .maximum = std::int64_t{1} << 40}),
    };
}

/// Keys that the script does not know, and the queue of changes.
bound_options<config> hook_queue_rows() {
    return {
        row::in_microseconds(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::negative_ttl_us)),
            {.name = "hook-negative-ttl",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "0",
             .help = "how long a missing value of on_miss is remembered; 0 is not at all",
             .maximum = longest_memory_ns}),
        row::bound(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::max_misses)),
            {.name = "hook-max-misses",
             .kind = option_kind::integer,
             .value_name = "N",
             .default_value = "10000",
             .help = "keys that wait for on_miss at the same time; more get the fallback at once",
             .minimum = 1,
             .maximum = 10'000'000}),
        row::bound(nested(&config::hooks,
                          nested(&hook_config::options,
                                 nested(&hook_options::queue, &write_behind_options::max_bytes))),
                   {.name = "hook-queue",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "64MiB",
                    .help = "memory for changes that wait for the script",
                    .minimum = 4096,
                    .maximum = std::int64_t{1} << 40}),
        row::choice(
            nested(&config::hooks, nested(&hook_config::options, &hook_options::refuses_when_full)),
            {.name = "hook-full",
             .kind = option_kind::choice,
             .value_name = "WHAT",
             .default_value = "wait",
             .help = "what happens to write commands when --hook-queue is full: wait, or refuse"},
            {{"wait", false}, {"refuse", true}}),
        row::bound(
            nested(&config::hooks,
                   nested(&hook_config::options,
                          nested(&hook_options::queue, &write_behind_options::max_retries))),
            {.name = "hook-retries",
             .kind = option_kind::integer,
             .value_name = "N",
             .default_value = "0",
             .help = "how often a failed call for a change is repeated; 0 is until it succeeds",
             .maximum = 1'000'000}),
        row::bound(nested(&config::hooks, &hook_config::flush),
                   {.name = "hook-flush",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "10s",
                    .help = "how long a stop waits for the calls for all changes",
                    .maximum = std::int64_t{3600} * 1'000'000'000}),
    };
}

/// Threads, and limits of clients.
bound_options<config> client_rows() {
    return {
        row::unbound(threads_option(
            "threads that serve clients. One has the highest throughput a core; more "
            "receive, parse, encrypt, send and execute the usual commands on single "
            "keys at the same time, and all other commands one at a time")),
        row::bound(nested(&config::server, &server_settings::max_clients),
                   max_connections_option()),
        accept_proxy_row<config>(),
        row::bound(
            nested(&config::server, &server_settings::client_timeout),
            {.name = "idle-timeout",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "0",
             .help =
                 "close a client that sends nothing for this time, such as 30s or 5m; 0 is never",
             .live = true}),
        row::bound(&config::write_timeout, {.name = "write-timeout",
                                            .kind = option_kind::duration,
                                            .value_name = "TIME",
                                            .default_value = "60s",
                                            .help = "close a client that neither takes its replies "
                                                    "nor sends commands for this time; 0 is never",
                                            .live = true}),
        row::bound(
            &config::max_queue,
            {.name = "max-queue",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "1GiB",
             .help = "largest reply, such as of a GET or LRANGE: a larger one closes its client. "
                     "When replies of this size wait, or 8 MiB, execution of the client's commands "
                     "pauses until it takes some; client-query-buffer-limit limits the commands "
                     "that it may send meanwhile",
             .minimum = 16 * 1024,
             .maximum = std::int64_t{1} << 40}),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows = joined(
        {listening_rows<config>(
             "serve on a URI instead: tcp://HOST:PORT, unix:///PATH, shm:///PATH, shm://:PORT or "
             "handoff:///PATH",
             bind_option("address of this machine to serve on; * for all, so that other machines "
                         "may read and write the cache")),
         secure_rows<config>(), row::unbound_all(redis_tls_options()), access_rows(), file_rows(),
         replication_rows(), hook_script_rows(), hook_reply_rows(), hook_queue_rows(),
         client_rows()});
    return rows;
}

namespace {

outcome<> check_persistence(const settings& chosen, const eddy::cache::server_settings& read) {
    if (read.dir.empty()) {
        for (const char* const name : {"save", "dbfilename", "appendonly", "appendfsync"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --dir FOLDER", name));
        }
        return {};
    }
    if (read.dbfilename.find('/') != std::string::npos || read.dbfilename == "." ||
        read.dbfilename == "..")
        return refuse(400, fmt::format("--dbfilename cannot be \"{}\": write a file's name; its "
                                       "folder is --dir",
                                       read.dbfilename));
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

outcome<> check_hooks(const settings& chosen) {
    if (chosen.has("hooks")) return {};
    for (const auto& each : option_rows()) {
        const std::string_view name = each.row().name;
        if (name.starts_with("hook-") && chosen.given(name))
            return refuse(400, fmt::format("--{} has no effect without --hooks FILE", name));
    }
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
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (read.engine.policy != eviction::none && read.engine.max_memory == 0)
        return refuse(400, "--eviction has no effect without a limit; add --maxmemory SIZE");
    if (auto limited = read_clients_memory(chosen, read.engine); !limited)
        return std::unexpected(limited.error());
    if (auto kept = check_persistence(chosen, read.server); !kept)
        return std::unexpected(kept.error());
    if (auto follows = read_replication(chosen, read.server.replica); !follows)
        return std::unexpected(follows.error());
    if (auto set = read_parameters(chosen, {read.engine, read.server}); !set)
        return std::unexpected(set.error());
    if (auto hooked = check_hooks(chosen); !hooked) return std::unexpected(hooked.error());
    read.hooks.has_threads = chosen.given("hook-threads");
    read.threads = read.server.threads = static_cast<std::size_t>(chosen.number("threads"));
    read.engine.max_pending_reply = std::min(flush_at, read.max_queue);
    return read;
}

}  // namespace eddy::runtime::cache
