// Table of parameters, one row each: its reader and, if it can be set, its setter.
#include "cache/config/config.hpp"

#include <eddy/base/glob.hpp>

#include "base/text/text.hpp"
#include "cache/acl/access.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/notifications.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/config/config_values.hpp"
#include "cache/config/ignored_parameters.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/replication/replication.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using view = parameters_view;
using target = parameters_target;

// Reason of a refusal; empty on success.
using refusal = std::string_view;
constexpr refusal immutable = "can't set immutable config";
constexpr std::int64_t most_soft_seconds = std::numeric_limits<std::int32_t>::max();

struct parameter {
    std::string_view name;
    std::string (*get)(view);
    refusal (*set)(target, std::string_view);  // null: cannot be set
    bool is_hidden = false;                    // CONFIG GET shows it by its whole name alone
};

refusal set_max_memory(target o, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    o.engine.max_memory = *bytes;
    return {};
}

refusal set_max_text(target o, std::string_view value) {
    constexpr std::size_t least = 1024 * 1024;
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    if (*bytes < least || *bytes > largest_text)
        return "argument must be between 1048576 and 2147483647";
    o.engine.max_text = *bytes;
    return {};
}

refusal set_query_buffer(target o, std::string_view value) {
    constexpr std::size_t least = 1024 * 1024;
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    if (*bytes < least || *bytes > INT64_MAX)
        return "argument must be between 1048576 and 9223372036854775807 inclusive";
    o.server.max_query_buffer = *bytes;
    return {};
}

refusal set_policy(target o, std::string_view value) {
    for (const eviction_name& each : eviction_names) {
        if (!is_word(value, each.name)) continue;
        o.engine.policy = each.policy;
        return {};
    }
    return "argument(s) must be one of the following: volatile-lru, volatile-lfu, "
           "volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction";
}

refusal set_password(target o, std::string_view value) {
    o.engine.password = value;
    return {};
}

refusal set_events(target o, std::string_view value) {
    if (set_event_letters(o.engine.notifications, value)) return {};
    return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
}

std::optional<client_class> class_named(std::string_view name) noexcept {
    if (is_word(name, "normal")) return client_class::normal;
    if (is_word(name, "slave") || is_word(name, "replica")) return client_class::replica;
    if (is_word(name, "pubsub")) return client_class::pubsub;
    return std::nullopt;
}

// "class hard soft seconds", for one class or several.
refusal set_output_limits(target o, std::string_view value) {
    const std::vector<std::string_view> words = split_words(value);
    if (words.empty() || words.size() % 4 != 0) {
        return "Wrong number of arguments in buffer limit configuration.";
    }
    for (std::size_t i = 0; i < words.size(); i += 4) {
        const auto which = class_named(words[i]);
        if (!which) return "Invalid client class specified in buffer limit configuration.";
        const auto hard = parse_bytes(words[i + 1]);
        const auto soft = parse_bytes(words[i + 2]);
        const auto seconds = parse_integer(words[i + 3]);
        if (!hard || !soft || !seconds || *seconds < 0 || *seconds > most_soft_seconds) {
            return "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        }
        o.engine.clients.output[static_cast<std::size_t>(*which)] = {*hard, *soft, *seconds};
    }
    return {};
}

std::string output_limits_text(view o) {
    constexpr std::string_view names[] = {"normal", "slave", "pubsub"};
    std::string text;
    for (std::size_t i = 0; i < std::size(names); ++i) {
        const output_limit& its = o.engine.clients.output[i];
        if (i > 0) text += ' ';
        text += names[i];
        text += ' ' + std::to_string(its.hard) + ' ' + std::to_string(its.soft) + ' ' +
                std::to_string(its.soft_seconds);
    }
    return text;
}

// Parameters that need a folder can only be off without one.
constexpr refusal no_persistence = "this cache keeps nothing on disk";

refusal set_appendonly(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    if (yes && o.server.dir.empty()) return no_persistence;
    o.engine.append.enabled = yes;
    return {};
}

constexpr std::pair<std::string_view, fsync_policy> fsync_names[] = {
    {"everysec", fsync_policy::everysec},
    {"always", fsync_policy::always},
    {"no", fsync_policy::no},
};

std::string fsync_text(view o) {
    for (const auto& [name, policy] : fsync_names) {
        if (policy == o.engine.append.fsync) return std::string(name);
    }
    return {};
}

refusal set_fsync(target o, std::string_view value) {
    for (const auto& [name, policy] : fsync_names) {
        if (!is_word(value, name)) continue;
        o.engine.append.fsync = policy;
        return {};
    }
    return "argument(s) must be one of the following: everysec, always, no";
}

template <auto Member>
refusal set_append_flag(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    o.server.append_file.*Member = yes;
    return {};
}

template <auto Member>
std::string append_flag(view o) {
    return o.server.append_file.*Member ? "yes" : "no";
}

refusal set_rewrite_min_size(target o, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    o.server.append_file.rewrite_min_size = *bytes;
    return {};
}

refusal set_rewrite_percentage(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < 0 || *number > INT32_MAX)
        return "argument must be between 0 and 2147483647 inclusive";
    o.server.append_file.rewrite_percentage = static_cast<std::uint64_t>(*number);
    return {};
}

// The member's place among the parts.
template <typename Parts, typename Type>
auto& member_of(Parts o, Type engine_options::* which) {
    return o.engine.*which;
}
template <typename Parts, typename Type>
auto& member_of(Parts o, Type slow_log_options::* which) {
    return o.engine.slow_log.*which;
}
template <typename Parts, typename Type>
auto& member_of(Parts o, Type stream_options::* which) {
    return o.engine.streams.*which;
}
template <typename Parts, typename Type>
auto& member_of(Parts o, Type replication_options::* which) {
    return o.engine.replication.*which;
}
template <typename Parts, typename Type>
auto& member_of(Parts o, Type replica_settings::* which) {
    return o.server.replica.*which;
}

// COMMANDLOG's parameters.
template <size_log_options slow_log_options::* Which, auto Member>
std::string log_limit(view o) {
    return std::to_string(o.engine.slow_log.*Which.*Member);
}
template <size_log_options slow_log_options::* Which, auto Member, std::int64_t Low>
refusal set_log_limit(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < Low)
        return Low < 0 ? "argument must be between -1 and 9223372036854775807 inclusive"
                       : "argument must be between 0 and 9223372036854775807 inclusive";
    auto& to = o.engine.slow_log.*Which.*Member;
    to = static_cast<std::remove_reference_t<decltype(to)>>(*number);
    return {};
}

// A number within a range, with Redis's errors.
template <auto Member, std::int64_t Low, std::int64_t High>
refusal set_number(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < Low || *number > High) {
        if constexpr (Low < 0)
            return "argument must be between -1 and 9223372036854775807 inclusive";
        return "argument must be between 0 and 9223372036854775807 inclusive";
    }
    auto& to = member_of(o, Member);
    to = static_cast<std::remove_reference_t<decltype(to)>>(*number);
    return {};
}

refusal set_sparse_limit(target o, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    o.engine.hll_sparse_max_bytes = *bytes;
    return {};
}

refusal set_node_bytes(target o, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    o.engine.streams.node_max_bytes = *bytes;
    return {};
}

refusal set_cluster(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    o.engine.emulates_cluster = yes;
    return {};
}

refusal set_save(target o, std::string_view value) {
    auto points = parse_save_points(value);
    if (!points) return "Invalid save parameters";
    if (o.server.dir.empty() && !points->empty()) return no_persistence;
    o.engine.save_points = std::move(*points);
    return {};
}

// Redis protects these parameters, too, unless they are enabled at its start.
refusal set_protected(target, std::string_view) { return "can't set protected config"; }

refusal set_stop_writes(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    o.engine.stop_writes_on_save_error = yes;
    return {};
}

// Bytes, or "5%" of maxmemory.
refusal set_clients_memory(target o, std::string_view value) {
    if (value.ends_with('%')) {
        const auto percent = parse_integer(value.substr(0, value.size() - 1));
        if (!percent || *percent < 0) return "argument must be a memory or percent value";
        if (*percent > 100) return "percentage argument must be less or equal to 100";
        o.engine.clients.max_memory = 0;
        o.engine.clients.max_memory_percent = static_cast<unsigned>(*percent);
        return {};
    }
    const auto bytes = parse_bytes(value);
    if (!bytes) return "argument must be a memory or percent value";
    o.engine.clients.max_memory = *bytes;
    o.engine.clients.max_memory_percent = 0;
    return {};
}

std::string clients_memory_text(view o) {
    if (o.engine.clients.max_memory_percent != 0)
        return std::to_string(o.engine.clients.max_memory_percent) + '%';
    return std::to_string(o.engine.clients.max_memory);
}

// As --max-connections.
refusal set_max_clients(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < 1 || *number > 10'000'000)
        return "argument must be between 1 and 10000000 inclusive";
    o.server.max_clients = static_cast<std::uint64_t>(*number);
    return {};
}

refusal set_client_timeout(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < 0 || *number > INT32_MAX)
        return "argument must be between 0 and 2147483647 inclusive";
    o.server.client_timeout = std::chrono::seconds(*number);
    return {};
}

// Rounded up to whole seconds, as 0 means none.
std::string client_timeout_text(view o) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(o.server.client_timeout).count());
}

refusal set_keepalive(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < 0 || *number > INT32_MAX)
        return "argument must be between 0 and 2147483647 inclusive";
    o.server.tcp_keepalive = std::chrono::seconds(*number);
    return {};
}

refusal set_protected_mode(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    o.server.protected_mode = yes;
    return {};
}

refusal set_latency_tracking(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    o.engine.latency.tracking = yes;
    return {};
}

refusal set_percentiles(target o, std::string_view value) {
    auto read = parse_percentiles(value);
    if (!read) return read.error();
    o.engine.latency.percentiles = std::move(*read);
    return {};
}

std::string percentiles_text(view o) {
    std::string text;
    for (const double each : o.engine.latency.percentiles) {
        if (!text.empty()) text += ' ';
        text += percentile_text(each);
    }
    return text;
}

std::string busy_reply_text(view o) { return std::to_string(o.engine.busy_reply_ms); }
constexpr auto set_busy_reply = set_number<&engine_options::busy_reply_ms, 0, INT64_MAX>;

template <auto Member>
refusal set_key_delay(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < INT32_MIN || *number > INT32_MAX)
        return "argument must be between -2147483648 and 2147483647 inclusive";
    o.server.*Member = *number;
    return {};
}

// Numbers of replication_options and replica_settings.
template <auto Member>
std::string replication_number(view o) {
    return std::to_string(member_of(o, Member));
}
template <auto Member, std::int64_t Low, std::int64_t High>
refusal set_replication_number(target o, std::string_view value) {
    const auto number = parse_integer(value);
    if (!number) return not_an_integer;
    if (*number < Low || *number > High) {
        if constexpr (Low == 1) return "argument must be between 1 and 2147483647 inclusive";
        if constexpr (High == UINT16_MAX) return "argument must be between 0 and 65535 inclusive";
        return "argument must be between 0 and 2147483647 inclusive";
    }
    auto& to = member_of(o, Member);
    to = static_cast<std::remove_reference_t<decltype(to)>>(*number);
    return {};
}
template <auto Member>
std::string replication_switch(view o) {
    return member_of(o, Member) ? "yes" : "no";
}
template <auto Member>
refusal set_replication_switch(target o, std::string_view value) {
    const bool yes = is_word(value, "yes");
    if (!yes && !is_word(value, "no")) return not_a_switch;
    member_of(o, Member) = yes;
    return {};
}
template <auto Member>
std::string replication_text(view o) {
    return member_of(o, Member);
}
template <auto Member>
refusal set_replication_text(target o, std::string_view value) {
    member_of(o, Member) = value;
    return {};
}

refusal set_channels_default(target o, std::string_view value) {
    const bool all = is_word(value, "allchannels");
    if (!all && !is_word(value, "resetchannels"))
        return "argument(s) must be one of the following: allchannels, resetchannels";
    o.engine.new_users_use_channels = all;
    return {};
}

refusal set_sanitize(target o, std::string_view value) {
    for (const std::string_view each : {"no", "yes", "clients"}) {
        if (!is_word(value, each)) continue;
        o.engine.sanitize_payload = each;
        return {};
    }
    return "argument(s) must be one of the following: no, yes, clients";
}

refusal set_backlog(target o, std::string_view value) {
    constexpr std::size_t least = 16 * 1024;
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    if (*bytes == 0) return "argument must be between 1 and 9223372036854775807 inclusive";
    o.engine.replication.backlog_size = std::max(*bytes, least);
    return {};
}

// The current master; CONFIG GET's command fills it in.
std::string master_text(view) { return {}; }

using replicas = replication_options;
constexpr std::int64_t most_int = INT32_MAX;

constexpr parameter parameters[] = {
    {"aclfile", [](view o) { return o.server.acl_file; }, nullptr},
    {"acl-pubsub-default",
     [](view o) {
         return std::string(o.engine.new_users_use_channels ? "allchannels" : "resetchannels");
     },
     set_channels_default},
    {"acllog-max-len", [](view o) { return std::to_string(o.engine.acllog_max_len); },
     set_number<&engine_options::acllog_max_len, 0, INT64_MAX>},
    {"aof-load-truncated", append_flag<&append_file_settings::load_truncated>,
     set_append_flag<&append_file_settings::load_truncated>},
    {"aof-use-rdb-preamble", append_flag<&append_file_settings::use_rdb_preamble>,
     set_append_flag<&append_file_settings::use_rdb_preamble>},
    {"appenddirname", [](view o) { return o.server.append_file.dirname; }, nullptr},
    {"appendfilename", [](view o) { return o.server.append_file.filename; }, nullptr},
    {"appendfsync", fsync_text, set_fsync},
    {"appendonly", [](view o) { return std::string(o.engine.append.enabled ? "yes" : "no"); },
     set_appendonly},
    {"auto-aof-rewrite-min-size",
     [](view o) { return std::to_string(o.server.append_file.rewrite_min_size); },
     set_rewrite_min_size},
    {"auto-aof-rewrite-percentage",
     [](view o) { return std::to_string(o.server.append_file.rewrite_percentage); },
     set_rewrite_percentage},
    {"bind", [](view) { return std::string(); }, nullptr},
    {"bind-source-addr", replication_text<&replica_settings::source_address>,
     set_replication_text<&replica_settings::source_address>},
    {"busy-reply-threshold", busy_reply_text, set_busy_reply},
    {"client-output-buffer-limit", output_limits_text, set_output_limits},
    {"client-query-buffer-limit", [](view o) { return std::to_string(o.server.max_query_buffer); },
     set_query_buffer},
    {"cluster-enabled",
     [](view o) { return std::string(o.engine.emulates_cluster ? "yes" : "no"); }, set_cluster},
    {"commandlog-execution-slower-than",
     [](view o) { return std::to_string(o.engine.slow_log.slower_than_us); },
     set_number<&slow_log_options::slower_than_us, -1, INT64_MAX>},
    {"commandlog-large-reply-max-len",
     log_limit<&slow_log_options::replies, &size_log_options::max_len>,
     set_log_limit<&slow_log_options::replies, &size_log_options::max_len, 0>},
    {"commandlog-large-request-max-len",
     log_limit<&slow_log_options::requests, &size_log_options::max_len>,
     set_log_limit<&slow_log_options::requests, &size_log_options::max_len, 0>},
    {"commandlog-reply-larger-than",
     log_limit<&slow_log_options::replies, &size_log_options::larger_than>,
     set_log_limit<&slow_log_options::replies, &size_log_options::larger_than, -1>},
    {"commandlog-request-larger-than",
     log_limit<&slow_log_options::requests, &size_log_options::larger_than>,
     set_log_limit<&slow_log_options::requests, &size_log_options::larger_than, -1>},
    {"commandlog-slow-execution-max-len",
     [](view o) { return std::to_string(o.engine.slow_log.max_len); },
     set_number<&slow_log_options::max_len, 0, INT64_MAX>},
    {"databases", [](view) { return std::to_string(engine_databases); }, nullptr},
    {"dbfilename", [](view o) { return o.server.dbfilename; }, set_protected},
    {"dir", [](view o) { return o.server.dir; }, set_protected},
    {"hll-sparse-max-bytes", [](view o) { return std::to_string(o.engine.hll_sparse_max_bytes); },
     set_sparse_limit},
    {"io-threads-do-reads", [](view o) { return std::string(o.server.threads > 1 ? "yes" : "no"); },
     nullptr},
    {"io-threads", [](view o) { return std::to_string(o.server.threads); }, nullptr},
    {"key-load-delay", [](view o) { return std::to_string(o.server.load_key_delay_us); },
     set_key_delay<&server_settings::load_key_delay_us>, true},
    {"latency-monitor-threshold",
     [](view o) { return std::to_string(o.engine.slow_log.latency_threshold_ms); },
     set_number<&slow_log_options::latency_threshold_ms, 0, INT64_MAX>},
    {"latency-tracking",
     [](view o) { return std::string(o.engine.latency.tracking ? "yes" : "no"); },
     set_latency_tracking},
    {"latency-tracking-info-percentiles", percentiles_text, set_percentiles},
    {"lua-time-limit", busy_reply_text, set_busy_reply},
    {"masterauth", replication_text<&replica_settings::master_password>,
     set_replication_text<&replica_settings::master_password>},
    {"masteruser", replication_text<&replica_settings::master_user>,
     set_replication_text<&replica_settings::master_user>},
    {"maxclients", [](view o) { return std::to_string(o.server.max_clients); }, set_max_clients},
    {"maxmemory", [](view o) { return std::to_string(o.engine.max_memory); }, set_max_memory},
    {"maxmemory-clients", clients_memory_text, set_clients_memory},
    {"maxmemory-policy", [](view o) { return std::string(policy_name(o.engine.policy)); },
     set_policy},
    {"no-appendfsync-on-rewrite", append_flag<&append_file_settings::no_fsync_on_rewrite>,
     set_append_flag<&append_file_settings::no_fsync_on_rewrite>},
    {"min-replicas-max-lag", replication_number<&replicas::min_replicas_max_lag_s>,
     set_replication_number<&replicas::min_replicas_max_lag_s, 0, most_int>},
    {"min-replicas-to-write", replication_number<&replicas::min_replicas_to_write>,
     set_replication_number<&replicas::min_replicas_to_write, 0, most_int>},
    {"min-slaves-max-lag", replication_number<&replicas::min_replicas_max_lag_s>,
     set_replication_number<&replicas::min_replicas_max_lag_s, 0, most_int>},
    {"min-slaves-to-write", replication_number<&replicas::min_replicas_to_write>,
     set_replication_number<&replicas::min_replicas_to_write, 0, most_int>},
    {"notify-keyspace-events", [](view o) { return event_letters(o.engine.notifications); },
     set_events},
    {"port", [](view o) { return std::to_string(o.server.port); }, nullptr},
    {"proto-max-bulk-len", [](view o) { return std::to_string(o.engine.max_text); }, set_max_text},
    {"rdb-key-save-delay", [](view o) { return std::to_string(o.server.save_key_delay_us); },
     set_key_delay<&server_settings::save_key_delay_us>, true},
    {"repl-backlog-size", replication_number<&replicas::backlog_size>, set_backlog},
    {"repl-backlog-ttl", replication_number<&replicas::backlog_ttl_s>,
     set_replication_number<&replicas::backlog_ttl_s, 0, most_int>},
    {"repl-diskless-sync-delay", replication_number<&replicas::sync_delay_s>,
     set_replication_number<&replicas::sync_delay_s, 0, most_int>},
    {"repl-diskless-sync-max-replicas", replication_number<&replicas::enough_for_copy>,
     set_replication_number<&replicas::enough_for_copy, 0, most_int>},
    {"repl-ping-replica-period", replication_number<&replicas::ping_period_s>,
     set_replication_number<&replicas::ping_period_s, 1, most_int>},
    {"repl-ping-slave-period", replication_number<&replicas::ping_period_s>,
     set_replication_number<&replicas::ping_period_s, 1, most_int>},
    {"repl-timeout", replication_number<&replicas::timeout_s>,
     set_replication_number<&replicas::timeout_s, 1, most_int>},
    {"replica-announce-ip", replication_text<&replica_settings::announce_ip>,
     set_replication_text<&replica_settings::announce_ip>},
    {"replica-announce-port", replication_number<&replica_settings::announce_port>,
     set_replication_number<&replica_settings::announce_port, 0, UINT16_MAX>},
    {"replica-announced", replication_switch<&replica_settings::announced>,
     set_replication_switch<&replica_settings::announced>},
    {"replica-priority", replication_number<&replica_settings::priority>,
     set_replication_number<&replica_settings::priority, 0, most_int>},
    {"replica-read-only", replication_switch<&replicas::read_only>,
     set_replication_switch<&replicas::read_only>},
    {"replica-serve-stale-data", replication_switch<&replicas::serve_stale_data>,
     set_replication_switch<&replicas::serve_stale_data>},
    {"replicaof", master_text, nullptr},
    {"protected-mode", [](view o) { return std::string(o.server.protected_mode ? "yes" : "no"); },
     set_protected_mode},
    {"requirepass", [](view o) { return o.engine.password; }, set_password},
    {"sanitize-dump-payload", [](view o) { return o.engine.sanitize_payload; }, set_sanitize},
    {"save", [](view o) { return to_text(o.engine.save_points); }, set_save},
    {"shutdown-timeout", replication_number<&replica_settings::shutdown_timeout_s>,
     set_replication_number<&replica_settings::shutdown_timeout_s, 0, most_int>},
    {"slave-announce-ip", replication_text<&replica_settings::announce_ip>,
     set_replication_text<&replica_settings::announce_ip>},
    {"slave-announce-port", replication_number<&replica_settings::announce_port>,
     set_replication_number<&replica_settings::announce_port, 0, UINT16_MAX>},
    {"slave-priority", replication_number<&replica_settings::priority>,
     set_replication_number<&replica_settings::priority, 0, most_int>},
    {"slave-read-only", replication_switch<&replicas::read_only>,
     set_replication_switch<&replicas::read_only>},
    {"slave-serve-stale-data", replication_switch<&replicas::serve_stale_data>,
     set_replication_switch<&replicas::serve_stale_data>},
    {"slaveof", master_text, nullptr},
    {"slowlog-log-slower-than",
     [](view o) { return std::to_string(o.engine.slow_log.slower_than_us); },
     set_number<&slow_log_options::slower_than_us, -1, INT64_MAX>},
    {"slowlog-max-len", [](view o) { return std::to_string(o.engine.slow_log.max_len); },
     set_number<&slow_log_options::max_len, 0, INT64_MAX>},
    {"stop-writes-on-bgsave-error",
     [](view o) { return std::string(o.engine.stop_writes_on_save_error ? "yes" : "no"); },
     set_stop_writes},
    {"stream-node-max-bytes",
     [](view o) { return std::to_string(o.engine.streams.node_max_bytes); }, set_node_bytes},
    {"stream-node-max-entries",
     [](view o) { return std::to_string(o.engine.streams.node_max_entries); },
     set_number<&stream_options::node_max_entries, 0, INT64_MAX>},
    {"tcp-keepalive", [](view o) { return std::to_string(o.server.tcp_keepalive.count()); },
     set_keepalive},
    {"timeout", client_timeout_text, set_client_timeout},
    {"tls-auth-clients", [](view o) { return o.server.tls.auth_clients; }, nullptr},
    {"tls-ca-cert-dir", [](view o) { return o.server.tls.ca_cert_dir; }, nullptr},
    {"tls-ca-cert-file", [](view o) { return o.server.tls.ca_cert_file; }, nullptr},
    {"tls-cert-file", [](view o) { return o.server.tls.cert_file; }, nullptr},
    {"tls-ciphers", [](view o) { return o.server.tls.ciphers; }, nullptr},
    {"tls-ciphersuites", [](view o) { return o.server.tls.ciphersuites; }, nullptr},
    {"tls-key-file", [](view o) { return o.server.tls.key_file; }, nullptr},
    {"tls-port", [](view o) { return std::to_string(o.server.tls.port); }, nullptr},
    {"tls-prefer-server-ciphers",
     [](view o) { return std::string(o.server.tls.prefer_server_ciphers ? "yes" : "no"); },
     nullptr},
    {"tls-protocols", [](view o) { return o.server.tls.protocols; }, nullptr},
    {"tls-replication", [](view o) { return std::string(o.server.tls.replication ? "yes" : "no"); },
     nullptr},
    {"tracking-table-max-keys",
     [](view o) { return std::to_string(o.engine.tracking_table_max_keys); },
     set_number<&engine_options::tracking_table_max_keys, 0, INT64_MAX>},
};

const ignored_parameter* find_ignored(std::string_view name) noexcept {
    for (const ignored_parameter& each : ignored_parameters()) {
        if (is_word(name, each.name)) return &each;
    }
    return nullptr;
}

// Name under which the value is stored.
std::string_view key_of(const ignored_parameter& of) noexcept {
    return of.other.empty() ? of.name : of.other;
}

std::string_view remembered(const server_settings& o, const ignored_parameter& of) noexcept {
    for (const auto& [name, value] : o.remembered) {
        if (name == key_of(of)) return value;
    }
    return of.usual;
}

// The limits of encodings have an effect.
void note_limit(encoding_limits& of, std::string_view name, std::string_view value) {
    constexpr std::pair<std::string_view, std::size_t encoding_limits::*> sizes[] = {
        {"hash-max-listpack-entries", &encoding_limits::hash_fields},
        {"hash-max-listpack-value", &encoding_limits::hash_text},
        {"set-max-intset-entries", &encoding_limits::set_integers},
        {"set-max-listpack-entries", &encoding_limits::set_members},
        {"set-max-listpack-value", &encoding_limits::set_text},
        {"zset-max-listpack-entries", &encoding_limits::sorted_set_members},
        {"zset-max-listpack-value", &encoding_limits::sorted_set_text},
    };
    const std::int64_t number = parse_integer(value).value_or(0);
    if (name == "list-max-listpack-size") of.list_size = number;
    for (const auto& [size_name, member] : sizes)
        if (name == size_name) of.*member = static_cast<std::size_t>(number);
}

// Reason of a refusal; empty on success.
std::string remember(target o, const ignored_parameter& of, std::string_view value) {
    if (of.takes == ignored_parameter::kind::immutable) return std::string(immutable);
    auto read = read_ignored(of, value);
    if (!read) return std::move(read.error());
    note_limit(o.engine.limits, key_of(of), *read);
    for (auto& [name, old] : o.server.remembered) {
        if (name != key_of(of)) continue;
        old = std::move(*read);
        return {};
    }
    o.server.remembered.emplace_back(key_of(of), std::move(*read));
    return {};
}

const parameter* find_parameter(std::string_view name) noexcept {
    for (const parameter& each : parameters) {
        if (is_word(name, each.name)) return &each;
    }
    return nullptr;
}

}  // namespace

std::string_view policy_name(eviction policy) noexcept {
    for (const eviction_name& each : eviction_names) {
        if (each.policy == policy) return each.name;
    }
    return {};
}

static std::string master_address(const engine_state& s) {
    const replication* const its = s.replication.replicating.get();
    if (its == nullptr || !its->is_replica()) return {};
    return its->master_host() + ' ' + std::to_string(its->master_port());
}

void commands::config_get(call& c) {
    const auto is_wanted = [&c](std::string_view name) {
        for (std::size_t i = 2; i < c.count; ++i) {
            if (glob_match(lower(c.arg(i)), name)) return true;
        }
        return false;
    };
    const auto is_named = [&c](std::string_view name) {
        for (std::size_t i = 2; i < c.count; ++i) {
            if (is_word(c.arg(i), name)) return true;
        }
        return false;
    };
    const parameters_view shown{c.state.settings.options, settings_of(c.state.server)};
    std::vector<std::pair<std::string_view, std::string>> found;
    for (const parameter& each : parameters) {
        if (!is_wanted(each.name) || (each.is_hidden && !is_named(each.name))) continue;
        found.emplace_back(each.name,
                           each.get == master_text ? master_address(c.state) : each.get(shown));
    }
    for (const ignored_parameter& each : ignored_parameters()) {
        if (is_wanted(each.name)) found.emplace_back(each.name, remembered(shown.server, each));
    }
    c.reply.map(found.size());
    for (const auto& [name, value] : found) {
        c.reply.bulk(name);
        c.reply.bulk(value);
    }
}

std::vector<std::pair<std::string, std::string>> changed_parameters(parameters_view now,
                                                                    parameters_view from) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const parameter& each : parameters) {
        constexpr std::string_view other_names[] = {"commandlog-execution-slower-than",
                                                    "commandlog-slow-execution-max-len",
                                                    "lua-time-limit"};
        if (each.set == nullptr ||
            std::ranges::find(other_names, each.name) != std::end(other_names))
            continue;
        std::string value = each.get(now);
        if (value != each.get(from)) found.emplace_back(each.name, std::move(value));
    }
    for (const ignored_parameter& each : ignored_parameters()) {
        const std::string_view value = remembered(now.server, each);
        if (each.other.empty() && value != remembered(from.server, each))
            found.emplace_back(each.name, value);
    }
    return found;
}

std::expected<void, std::string> set_parameter(parameters_target of, std::string_view name,
                                               std::string_view value) {
    constexpr std::string_view not_here = "it has an option of its own, or cannot be set";
    const ignored_parameter* const other = find_ignored(name);
    const parameter* const found = find_parameter(name);
    if (found == nullptr && other == nullptr) {
        return std::unexpected("there is no parameter \"" + std::string(name) + '"');
    }
    std::string why;
    if (other != nullptr) {
        why = other->takes == ignored_parameter::kind::immutable ? std::string(not_here)
                                                                 : remember(of, *other, value);
    } else {
        why = found->set == nullptr ? not_here : found->set(of, value);
    }
    if (why.empty()) return {};
    return std::unexpected(std::string(name) + " cannot be \"" + std::string(value) + "\": " + why);
}

namespace {

// A copy of all parameters, changed by CONFIG SET before any of it takes effect.
struct changed_options {
    explicit changed_options(const engine_state& s)
        : engine(s.settings.options), server(settings_of(s.server)) {}
    parameters_target target() noexcept { return {engine, server}; }

    engine_options engine;
    server_settings server;
    bool sets_password = false;
};

// Applies the options to the engine and its server.
void take_options(engine_state& s, changed_options& all) {
    const engine_options& changed = all.engine;
    const bool has_limits = changed.max_text != s.settings.options.max_text;
    if (changed.clients.output != s.settings.options.clients.output)
        note_outputs_due(s, s.data.env.steady_us);
    s.settings.options = changed;
    if (s.server != nullptr) {
        s.server->change_settings(std::move(all.server));
        if (has_limits) s.server->limits_changed();
    }
    s.data.env.set_policy(changed.policy);
    s.note_limit();
    s.data.env.limits = changed.limits;
    s.note_observers();
    note_save_trouble(s);
    note_append_options(s);
    s.slow.configure(changed.slow_log);
    s.commands.configure(changed.latency);
    configure_client_memory(s);
    limit_tracking_table(s);
    if (all.sets_password) {
        s.settings.users.set_default_password(changed.password);
        note_all_permissions(s);
    }
}

}  // namespace

std::expected<void, std::string> set_parameters(
    engine_state& s, const std::vector<std::pair<std::string, std::string>>& values) {
    changed_options changed(s);
    for (const auto& [name, value] : values) {
        if (auto set = set_parameter(changed.target(), name, value); !set) return set;
        changed.sets_password |= is_word(name, "requirepass");
    }
    take_options(s, changed);
    return {};
}

// Sets all of them, or none with an error.
void commands::config_set(call& c) {
    if (c.count % 2 != 0) return c.syntax_error();
    changed_options changed(c.state);
    for (std::size_t i = 2; i < c.count; i += 2) {
        const std::string name(c.arg(i));
        for (std::size_t before = 2; before < i; before += 2) {
            if (lower(c.arg(before)) != lower(name)) continue;
            return c.error("ERR CONFIG SET failed (possibly related to argument '" + name +
                           "') - duplicate parameter");
        }
        const parameter* const found = find_parameter(name);
        const ignored_parameter* const other = find_ignored(name);
        if (found == nullptr && other == nullptr) {
            return c.error("ERR Unknown option or number of arguments for CONFIG SET - '" + name +
                           "'");
        }
        std::string why;
        if (other != nullptr) {
            why = remember(changed.target(), *other, c.arg(i + 1));
        } else {
            changed.sets_password |= found->name == "requirepass";
            why = found->set == nullptr ? immutable : found->set(changed.target(), c.arg(i + 1));
        }
        if (!why.empty()) {
            why.insert(0, "') - ").insert(0, name);
            why.insert(0, "ERR CONFIG SET failed (possibly related to argument '");
            return c.error(why);
        }
    }
    take_options(c.state, changed);
    c.reply.ok();
}

}  // namespace eddy::cache
