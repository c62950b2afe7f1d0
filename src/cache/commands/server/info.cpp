// INFO: the server's state, in the sections and with the names of Redis 7.0. A field is left out
// where there is no true value for it.
#include "cache/catalog/commands.hpp"
#include "cache/clients/buffer_bytes.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/config/config.hpp"
#include "cache/config/config_values.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/command_stats.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/engine/version.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"
#include "cache/replication/replication_info.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/timed_fields.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace eddy::cache::commands {
namespace {

// Sizes in Redis's notation: "1.50M".
std::string human_bytes(std::size_t bytes) {
    constexpr const char* units[] = {"B", "K", "M", "G", "T"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.2f%s", value, units[unit]);
    return text;
}

bool waits_with_timeout(const client_session& who) noexcept {
    if (!who.blocked || who.extras->deadline_us == client_session::no_deadline) return false;
    return who.extras->waits_for == wait_kind::key || who.extras->waits_for == wait_kind::replicas;
}

class info_text {
public:
    void section(std::string_view name) {
        if (!text_.empty()) text_ += "\r\n";
        text_ += "# ";
        text_ += name;
        text_ += "\r\n";
    }
    void field(std::string_view name, std::string_view value) {
        text_ += name;
        text_ += ':';
        text_ += value;
        text_ += "\r\n";
    }
    void field(std::string_view name, std::uint64_t value) { field(name, std::to_string(value)); }
    void bytes(std::string_view name, std::size_t value) {
        field(name, value);
        field(std::string(name) + "_human", human_bytes(value));
    }
    void decimal(std::string_view name, double value) {
        char text[32];
        std::snprintf(text, sizeof text, "%.2f", value);
        field(name, text);
    }
    void percent(std::string_view name, std::size_t part, std::size_t whole) {
        char text[32];
        std::snprintf(
            text, sizeof text, "%.2f%%",
            whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
        field(name, text);
    }
    void append(std::string_view lines) { text_ += lines; }
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

void server_section(call& c, info_text& to) {
    const engine_state& s = c.state;
    const server_settings& settings = settings_of(s.server);
    // The clock may have been set back.
    const auto uptime_s = static_cast<std::uint64_t>(
        std::max<std::int64_t>(s.data.env.now_us - s.started_us, 0) / 1'000'000);
    to.section("Server");
    to.field("redis_version", s.settings.options.redis_version);
    to.field("redis_git_sha1", "00000000");
    to.field("redis_git_dirty", "0");
    to.field("redis_build_id", "0");
    to.field("redis_mode", s.settings.options.emulates_cluster ? "cluster" : "standalone");
    utsname system{};
    ::uname(&system);
    to.field("os", std::string(system.sysname) + " " + system.release + " " + system.machine);
    to.field("server_name", "eddy");
    to.field("arch_bits", std::uint64_t{sizeof(void*) * 8});
    to.field("multiplexing_api", "eddy");
    to.field("monotonic_clock", "POSIX clock_gettime");
    to.field("process_id", static_cast<std::uint64_t>(::getpid()));
    to.field("process_supervised", "no");
    to.field("run_id", s.replication.run_id);
    to.field("tcp_port", std::uint64_t{settings.port != 0 ? settings.port : settings.tls.port});
    to.field("server_time_usec", static_cast<std::uint64_t>(s.data.env.now_us));
    to.field("uptime_in_seconds", uptime_s);
    to.field("uptime_in_days", uptime_s / (24 * 60 * 60));
    to.field("hz", std::uint64_t{10});
    to.field("configured_hz", std::uint64_t{10});
    to.field("lru_clock", static_cast<std::uint64_t>(s.data.env.now_us / 1'000'000) & 0xffffff);
    to.field("executable", "");
    to.field("config_file", "");
    to.field("io_threads_active", std::uint64_t{settings.threads > 1 ? 1U : 0U});
    for (const listening_place& each : settings.listening) {
        constexpr std::string_view names[] = {"tcp", "unix", "tls"};
        const auto kind = static_cast<std::size_t>(each.kind);
        std::string text = "name=" + std::string(names[kind]) + ",bind=" + each.bind;
        if (each.port != 0) text += ",port=" + std::to_string(each.port);
        to.field("listener" + std::to_string(kind), text);
    }
}

void clients_section(call& c, info_text& to) {
    to.section("Clients");
    to.field("connected_clients", c.state.data.env.counters.sessions);
    to.field("cluster_connections", std::uint64_t{0});
    to.field("maxclients", settings_of(c.state.server).max_clients);
    to.field("blocked_clients", std::uint64_t{c.state.clients.blocked_sessions});
    to.field("tracking_clients", std::uint64_t{c.state.clients.tracking.clients});
    std::uint64_t with_timeout = 0;
    c.state.clients.sessions.for_each([&with_timeout](const client_session& each) {
        with_timeout += waits_with_timeout(each) ? 1 : 0;
    });
    to.field("clients_in_timeout_table", with_timeout);
    // A wait of XREADGROUP ends also when the key is removed.
    std::uint64_t until_gone = 0;
    c.state.clients.awaited.for_each([&until_gone](name_topic& key) {
        bool any = false;
        key.members.for_each([&any](const name_topic::member& each) {
            any |= std::string_view(each.who->last_command) == "xreadgroup";
        });
        until_gone += any ? 1 : 0;
    });
    to.field("total_blocking_keys", std::uint64_t{c.state.clients.awaited.size()});
    to.field("total_blocking_keys_on_nokey", until_gone);
}

void memory_section(call& c, info_text& to) {
    const engine_state& s = c.state;
    const std::size_t used = s.used_memory();
    to.section("Memory");
    to.bytes("used_memory", used);
    to.bytes("used_memory_rss", s.data.env.memory.reserved_bytes());
    const std::size_t peak = std::max(used, s.peak_memory);
    to.bytes("used_memory_peak", peak);
    to.percent("used_memory_peak_perc", used, peak);
    std::size_t overhead = s.startup_bytes;
    for (const auto& each : s.data.keyspaces) overhead += each == nullptr ? 0 : each->table_bytes();
    const std::size_t dataset = used - std::min(used, overhead);
    to.field("used_memory_overhead", std::uint64_t{overhead});
    to.field("used_memory_startup", std::uint64_t{s.startup_bytes});
    to.field("used_memory_dataset", std::uint64_t{dataset});
    to.percent("used_memory_dataset_perc", dataset, used - s.startup_bytes);
    to.field("allocator_allocated", std::uint64_t{used});
    to.field("allocator_active", std::uint64_t{s.data.env.memory.reserved_bytes()});
    to.field("allocator_resident", std::uint64_t{s.data.env.memory.reserved_bytes()});
    const scripting::usage scripts = scripting::use(s);
    to.bytes("used_memory_lua", scripts.vm_bytes);
    to.field("used_memory_vm_eval", std::uint64_t{scripts.vm_bytes});
    to.field("used_memory_scripts_eval", std::uint64_t{scripts.script_bytes});
    to.field("number_of_cached_scripts", std::uint64_t{scripts.scripts});
    to.field("number_of_functions", std::uint64_t{scripts.functions});
    to.field("number_of_libraries", std::uint64_t{scripts.libraries});
    to.field("used_memory_vm_functions", std::uint64_t{scripts.function_vm_bytes});
    to.bytes("used_memory_vm_total", scripts.vm_bytes + scripts.function_vm_bytes);
    to.field("used_memory_functions", std::uint64_t{scripts.library_bytes});
    to.bytes("used_memory_scripts", scripts.script_bytes + scripts.library_bytes);
    const auto ratio = [&to](std::string_view name, std::size_t part, std::size_t whole) {
        to.decimal(name, whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole));
    };
    const std::size_t reserved = s.data.env.memory.reserved_bytes();
    const std::size_t unused = reserved - std::min(reserved, used);
    ratio("allocator_frag_ratio", reserved, used);
    to.field("allocator_frag_bytes", std::uint64_t{unused});
    ratio("allocator_rss_ratio", 1, 1);
    to.field("allocator_rss_bytes", std::uint64_t{0});
    ratio("rss_overhead_ratio", 1, 1);
    to.field("rss_overhead_bytes", std::uint64_t{0});
    ratio("mem_fragmentation_ratio", reserved, used);
    to.field("mem_fragmentation_bytes", std::uint64_t{unused});
    to.field("mem_not_counted_for_evict",
             std::uint64_t{
                 s.persistence.snapshot == nullptr ? 0 : s.persistence.snapshot->held_bytes()});
    const buffer_bytes buffers = measure_buffers(c.state);
    to.field("mem_replication_backlog", std::uint64_t{buffers.backlog});
    to.field("mem_total_replication_buffers", std::uint64_t{buffers.backlog});
    to.field("mem_clients_slaves", std::uint64_t{buffers.replicas});
    to.field("mem_clients_normal", std::uint64_t{buffers.normal});
    to.field("mem_cluster_links", std::uint64_t{0});
    to.field("mem_aof_buffer", std::uint64_t{buffers.append});
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        to.bytes("total_system_memory",
                 static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes));
    to.bytes("maxmemory", s.settings.options.max_memory);
    to.field("maxmemory_policy", policy_name(s.settings.options.policy));
    to.field("mem_allocator", "eddy-slab");
    to.field("active_defrag_running", std::uint64_t{0});
    to.field("lazyfree_pending_objects", std::uint64_t{s.data.env.discarded()});
    to.field("lazyfreed_objects", s.data.env.counters.freed_in_slices);
}

void append_fields(call& c, info_text& to) {
    constexpr std::int64_t second_us = 1'000'000;
    const append_log* const log = c.state.persistence.appending.get();
    const auto flag = [&to](std::string_view name, bool value) {
        to.field(name, std::uint64_t{value ? 1U : 0U});
    };
    const bool is_on = log != nullptr && (log->is_on() || c.state.settings.options.append.enabled);
    const bool rewriting = log != nullptr && log->rewriting;
    // Clients start a rewrite and poll for its end at once, so a rewrite about to begin counts as
    // in progress.
    const bool is_to_come = log != nullptr && log->is_about_to_rewrite();
    flag("aof_enabled", is_on);
    flag("aof_rewrite_in_progress", rewriting || is_to_come);
    flag("aof_rewrite_scheduled",
         log != nullptr && log->rewrite_wanted && !rewriting && !is_to_come);
    to.field("aof_last_rewrite_time_sec",
             std::to_string(log == nullptr ? -1 : log->rewrite_took_s));
    to.field(
        "aof_current_rewrite_time_sec",
        std::to_string(rewriting ? (c.state.data.env.steady_us - log->rewrite_began_us) / second_us
                                 : -1));
    to.field("aof_last_bgrewrite_status", log == nullptr || log->rewrite_succeeded ? "ok" : "err");
    to.field("aof_rewrites", log == nullptr ? 0 : log->rewrites);
    to.field("aof_rewrites_consecutive_failures", log == nullptr ? 0 : log->failures_in_a_row);
    to.field("aof_last_write_status", log == nullptr || !log->has_failed() ? "ok" : "err");
    to.field("aof_last_cow_size", std::uint64_t{0});
    flag("module_fork_in_progress", false);
    flag("module_fork_last_cow_size", false);
    if (!is_on) return;
    to.field("aof_current_size", log->current_size);
    to.field("aof_base_size", log->base_size);
    flag("aof_pending_rewrite", false);
    to.field("aof_buffer_length", std::uint64_t{log->appended - log->written});
    flag("aof_pending_bio_fsync", log->written != log->synced);
    flag("aof_delayed_fsync", false);
    to.field("aof_fsyncs", log->syncs);
}

// Progress of a load. If the total size is unknown, the memory that the writer had in use stands
// for it, as in Redis.
void load_fields(const engine_state& s, info_text& to) {
    constexpr std::int64_t second_us = 1'000'000;
    const load_progress& its = s.persistence.load;
    const std::uint64_t whole = its.total_bytes != 0 ? its.total_bytes : its.used_memory;
    double percent = 0;
    std::uint64_t left = 1;
    if (whole != 0) {
        percent = 100.0 * static_cast<double>(its.loaded_bytes) / static_cast<double>(whole);
        left = whole - std::min(whole, its.loaded_bytes);
    }
    if (its.total_bytes == 0) {
        constexpr double most_guessed = 99.99;
        percent = std::min(percent, most_guessed);
        left = std::max<std::uint64_t>(left, 1);
    }
    const std::int64_t elapsed_s = (s.data.env.steady_us - its.began_us) / second_us;
    const double eta_s = elapsed_s == 0
                             ? 1
                             : static_cast<double>(elapsed_s) * static_cast<double>(left) /
                                   static_cast<double>(its.loaded_bytes + 1);
    to.field("loading_start_time", std::to_string(its.began_at_us / second_us));
    to.field("loading_total_bytes", its.total_bytes);
    to.field("loading_rdb_used_mem", its.used_memory);
    to.field("loading_loaded_bytes", its.loaded_bytes);
    to.decimal("loading_loaded_perc", percent);
    to.field("loading_eta_seconds", static_cast<std::uint64_t>(eta_s));
}

void persistence_section(call& c, info_text& to) {
    constexpr std::int64_t second_us = 1'000'000;
    const save_state& saves = c.state.persistence.saves;
    const auto seconds = [&to](std::string_view name, std::int64_t value) {
        to.field(name, std::to_string(value));
    };
    to.section("Persistence");
    const bool is_loading = (c.state.clients.slow_path & slow_path::not_ready) != 0;
    to.field("loading", std::uint64_t{is_loading ? 1U : 0U});
    to.field("async_loading", std::uint64_t{0});
    // A snapshot copies values that change before it has written them.
    to.field("current_cow_size",
             std::uint64_t{saves.snapshot == nullptr ? 0 : saves.snapshot->held_bytes()});
    to.field("rdb_changes_since_last_save", c.state.data.changes - saves.saved_changes);
    to.field("rdb_bgsave_in_progress", std::uint64_t{saves.snapshot != nullptr ? 1U : 0U});
    seconds("rdb_last_save_time", saves.saved_at_us / second_us);
    to.field("rdb_last_bgsave_status", saves.succeeded ? "ok" : "err");
    seconds("rdb_last_bgsave_time_sec", saves.took_s);
    seconds(
        "rdb_current_bgsave_time_sec",
        saves.snapshot == nullptr ? -1 : (c.state.data.env.steady_us - saves.began_us) / second_us);
    to.field("rdb_saves", saves.count);
    to.field("rdb_last_cow_size", std::uint64_t{0});
    to.field("rdb_last_load_keys_expired", saves.loaded_expired);
    to.field("rdb_last_load_keys_loaded", saves.loaded_keys);
    append_fields(c, to);
    if (is_loading) load_fields(c.state, to);
}

void stats_section(call& c, info_text& to) {
    const statistics& n = c.state.data.env.counters;
    c.state.take_rates(c.executed_in_batch);
    const rate_meter& rates = c.state.rates;
    const traffic moved = c.state.moved();
    const auto kbps = [&](std::string_view name, flow what) {
        to.decimal(name, static_cast<double>(rates.a_second(what)) / 1024);
    };
    to.section("Stats");
    to.field("total_connections_received", n.total_sessions);
    to.field("total_commands_processed", n.commands + c.executed_in_batch);
    to.field("instantaneous_ops_per_sec", rates.a_second(flow::commands));
    to.field("total_net_input_bytes", moved.bytes_in);
    to.field("total_net_output_bytes", moved.bytes_out);
    kbps("instantaneous_input_kbps", flow::bytes_in);
    kbps("instantaneous_output_kbps", flow::bytes_out);
    to.field("rejected_connections", moved.refused);
    const replication* const its = c.state.replication.replicating.get();
    to.field("sync_full", its == nullptr ? 0 : its->full_copies);
    to.field("sync_partial_ok", its == nullptr ? 0 : its->continued);
    to.field("sync_partial_err", its == nullptr ? 0 : its->not_continued);
    to.field("expired_keys", n.expired_keys);
    const field_clock* const fields = c.state.data.env.fields.get();
    to.field("expired_subkeys", fields == nullptr ? 0 : fields->ended);
    to.decimal("expired_stale_perc", n.expired_share * 100);
    to.field("expired_time_cap_reached_count", n.sweeps_cut);
    to.field("expire_cycle_cpu_milliseconds", n.sweep_ns / 1'000'000);
    to.field("evicted_keys", n.evicted_keys);
    to.field("evicted_clients", n.evicted_clients);
    const std::int64_t over_limit_us =
        n.over_limit_since_us == 0 ? 0 : c.state.data.env.steady_us - n.over_limit_since_us;
    to.field("total_eviction_exceeded_time",
             static_cast<std::uint64_t>((n.over_limit_us + over_limit_us) / 1000));
    to.field("current_eviction_exceeded_time", static_cast<std::uint64_t>(over_limit_us / 1000));
    to.field("keyspace_hits", n.hits);
    to.field("keyspace_misses", n.misses);
    to.field("pubsub_channels", std::uint64_t{c.state.clients.channels.size()});
    to.field("pubsub_patterns", std::uint64_t{c.state.clients.patterns.size()});
    to.field("pubsubshard_channels", std::uint64_t{c.state.clients.shard_channels.size()});
    const tracking_table& tracking = c.state.clients.tracking;
    to.field("tracking_total_keys", std::uint64_t{tracking.keys.size()});
    to.field("tracking_total_items", std::uint64_t{tracking.keys.items()});
    to.field("tracking_total_prefixes", std::uint64_t{tracking.prefixes.size()});
    to.field("unexpected_error_replies", n.unexpected_errors);
    to.field("total_error_replies", n.errors);
    to.field("dump_payload_sanitizations", n.payloads_checked);
    to.field("total_reads_processed", moved.reads);
    to.field("total_writes_processed", moved.writes);
    to.field("io_threaded_reads_processed", moved.threaded_reads);
    to.field("io_threaded_writes_processed", moved.threaded_writes);
    to.field("slave_expires_tracked_keys",
             std::uint64_t{its == nullptr ? 0 : its->expirations().size()});
    // There is no fork and no active defragmentation.
    for (const std::string_view none :
         {"total_forks", "latest_fork_usec", "migrate_cached_sockets", "active_defrag_hits",
          "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
          "total_active_defrag_time", "current_active_defrag_time"})
        to.field(none, std::uint64_t{0});
    for (const auto& [name, why] :
         {std::pair{"auth", acl::refusal::password}, std::pair{"cmd", acl::refusal::command},
          std::pair{"key", acl::refusal::key}, std::pair{"channel", acl::refusal::channel}})
        to.field(std::string("acl_access_denied_") + name, c.state.clients.refusals.count(why));
    to.field("client_query_buffer_limit_disconnections", n.query_closed);
    to.field("client_output_buffer_limit_disconnections", n.output_closed);
    to.field("eventloop_cycles", n.rounds);
    to.field("parallel_commands", n.parallel_commands);
    to.field("instantaneous_eventloop_cycles_per_sec", rates.a_second(flow::rounds));
}

void replication_section(call& c, info_text& to) {
    to.section("Replication");
    to.append(replication_info(c.state));
}

void hooks_section(call& c, info_text& to) {
    if (c.state.hooked == nullptr) return;
    const hook_counts n = c.state.hooked->counts();
    to.section("Hooks");
    to.field("hook_misses", n.misses);
    to.field("hook_misses_joined", n.joined);
    to.field("hook_misses_known", n.negative);
    to.field("hook_changes", n.changes.done);
    to.field("hook_changes_coalesced", n.changes.coalesced);
    to.field("hook_retries", n.changes.retries);
    to.field("hook_errors", n.failed);
    to.field("hook_timeouts", n.timeouts);
    to.field("hook_refused", n.refused);
    to.field("hook_stale_served", n.stale);
    to.field("hook_lost", n.changes.lost);
    to.field("hook_waiting_clients", n.waiting);
    to.field("hook_waiting_misses", n.asked);
    to.field("hook_queued_keys", n.queued_keys);
    to.field("hook_queued_bytes", n.queued_bytes);
}

void cpu_section(call&, info_text& to) {
    to.section("CPU");
    rusage own{};
    rusage of_thread{};
    ::getrusage(RUSAGE_SELF, &own);
    ::getrusage(RUSAGE_THREAD, &of_thread);
    const auto seconds = [&to](std::string_view name, const timeval& value) {
        char text[32];
        std::snprintf(text, sizeof text, "%lld.%06lld", static_cast<long long>(value.tv_sec),
                      static_cast<long long>(value.tv_usec));
        to.field(name, text);
    };
    seconds("used_cpu_sys", own.ru_stime);
    seconds("used_cpu_user", own.ru_utime);
    seconds("used_cpu_sys_children", {});
    seconds("used_cpu_user_children", {});
    seconds("used_cpu_sys_main_thread", of_thread.ru_stime);
    seconds("used_cpu_user_main_thread", of_thread.ru_utime);
}

void modules_section(call&, info_text& to) { to.section("Modules"); }

void errorstats_section(call& c, info_text& to) {
    to.section("Errorstats");
    for (const auto& [code, count] : c.state.commands.errors()) {
        // The code may come from a script.
        std::string name = code;
        std::ranges::replace_if(
            name, [](char each) { return std::string_view("#:\r\n").contains(each); }, '_');
        to.field("errorstat_" + name, "count=" + std::to_string(count));
    }
}

void commandstats_section(call& c, info_text& to) {
    to.section("Commandstats");
    c.state.commands.for_each([&to](std::string_view name, const command_stats::counts& its) {
        const auto us = static_cast<double>(its.spent_ns) / 1000;
        char text[160];
        std::snprintf(
            text, sizeof text,
            "calls=%llu,usec=%.0f,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu",
            static_cast<unsigned long long>(its.calls), us,
            its.accounted == 0 ? 0.0 : us / static_cast<double>(its.accounted),
            static_cast<unsigned long long>(its.rejected),
            static_cast<unsigned long long>(its.failed()));
        to.field("cmdstat_" + std::string(name), text);
    });
}

void latencystats_section(call& c, info_text& to) {
    to.section("Latencystats");
    if (!c.state.settings.options.latency.tracking) return;
    c.state.commands.for_each([&](std::string_view name, const command_stats::counts& its) {
        if (its.latency == nullptr) return;
        std::string text;
        for (const double percent : c.state.settings.options.latency.percentiles) {
            if (!text.empty()) text += ',';
            const auto us = static_cast<double>(its.latency->percentile(percent)) / 1000;
            char value[32];
            std::snprintf(value, sizeof value, "=%.3f", us);
            text += 'p' + percentile_text(percent) + value;
        }
        to.field("latency_percentiles_usec_" + std::string(name), text);
    });
}

void cluster_section(call& c, info_text& to) {
    to.section("Cluster");
    to.field("cluster_enabled", std::uint64_t{c.state.settings.options.emulates_cluster ? 1U : 0U});
}

void keyspace_section(call& c, info_text& to) {
    to.section("Keyspace");
    for (std::size_t i = 0; i < engine_databases; ++i) {
        const keyspace* const keys = c.state.data.keyspaces[i].get();
        if (keys == nullptr || keys->size() == 0) continue;
        to.field("db" + std::to_string(i),
                 "keys=" + std::to_string(keys->size()) +
                     ",expires=" + std::to_string(keys->expiring()) +
                     ",avg_ttl=" + std::to_string(keys->average_ttl_ms()) +
                     ",subexpiry=" + std::to_string(keys->with_expiring_fields()));
    }
}

struct info_section {
    std::string_view name;
    void (*write)(call&, info_text&);
    bool by_default = true;
};

constexpr info_section info_sections[] = {
    {"server", server_section},         {"clients", clients_section},
    {"memory", memory_section},         {"persistence", persistence_section},
    {"stats", stats_section},           {"replication", replication_section},
    {"hooks", hooks_section},           {"cpu", cpu_section},
    {"modules", modules_section},       {"commandstats", commandstats_section, false},
    {"errorstats", errorstats_section}, {"latencystats", latencystats_section, false},
    {"cluster", cluster_section},       {"keyspace", keyspace_section},
};

}  // namespace

void info(call& c) {
    info_text text;
    for (const info_section& each : info_sections) {
        bool wanted = c.count == 1 && each.by_default;
        for (std::size_t i = 1; i < c.count; ++i) {
            wanted |= is_word(c.arg(i), each.name) ||
                      (each.by_default && is_word(c.arg(i), "default")) ||
                      is_word(c.arg(i), "all") || is_word(c.arg(i), "everything");
        }
        if (wanted) each.write(c, text);
    }
    c.reply.verbatim("txt", text.text());
}

}  // namespace eddy::cache::commands
