// What the server says about itself: INFO, CONFIG, COMMAND, TIME.
#include "cache/call.hpp"
#include "cache/command_table.hpp"
#include "cache/commands.hpp"
#include "cache/config.hpp"
#include "cache/version.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

// Redis writes sizes so: "1.50M".
std::string human_bytes(std::size_t bytes) {
    constexpr const char* units[] = {"B", "K", "M", "G", "T"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.2f%s", value, units[unit]);
    return text;
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
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

void server_section(call& c, info_text& to) {
    const engine::state& s = c.state;
    const auto uptime_s = static_cast<std::uint64_t>(s.env.now_us - s.started_us) / 1'000'000;
    to.section("Server");
    to.field("redis_version", compatible_version);
    to.field("redis_mode", "standalone");
    to.field("server_name", "eddy");
    to.field("arch_bits", std::uint64_t{sizeof(void*) * 8});
    to.field("process_id", static_cast<std::uint64_t>(::getpid()));
    to.field("run_id", s.run_id);
    to.field("tcp_port", std::uint64_t{s.options.port});
    to.field("server_time_usec", static_cast<std::uint64_t>(s.env.now_us));
    to.field("uptime_in_seconds", uptime_s);
    to.field("uptime_in_days", uptime_s / (24 * 60 * 60));
}

void clients_section(call& c, info_text& to) {
    to.section("Clients");
    to.field("connected_clients", c.state.env.counters.sessions);
    to.field("blocked_clients", std::uint64_t{c.state.blocked_sessions});
}

void memory_section(call& c, info_text& to) {
    const engine::state& s = c.state;
    const std::size_t used = s.env.memory.used_bytes();
    to.section("Memory");
    to.bytes("used_memory", used);
    to.bytes("used_memory_rss", s.env.memory.reserved_bytes());
    to.bytes("used_memory_peak", std::max(used, s.peak_memory));
    to.bytes("maxmemory", s.options.max_memory);
    to.field("maxmemory_policy", policy_name(s.options.policy));
    to.field("mem_allocator", "eddy-slab");
    to.field("lazyfree_pending_objects", std::uint64_t{s.env.discarded()});
}

void persistence_section(call& c, info_text& to) {
    to.section("Persistence");
    to.field("loading", std::uint64_t{0});
    to.field("rdb_changes_since_last_save", c.state.changes);
    to.field("rdb_bgsave_in_progress", std::uint64_t{0});
    to.field("aof_enabled", std::uint64_t{0});
}

void stats_section(call& c, info_text& to) {
    const statistics& n = c.state.env.counters;
    to.section("Stats");
    to.field("total_connections_received", n.total_sessions);
    to.field("total_commands_processed", n.commands + c.executed_in_batch);
    to.field("expired_keys", n.expired_keys);
    to.field("evicted_keys", n.evicted_keys);
    to.field("keyspace_hits", n.hits);
    to.field("keyspace_misses", n.misses);
    to.field("pubsub_channels", std::uint64_t{c.state.channels.size()});
    to.field("pubsub_patterns", std::uint64_t{c.state.patterns.size()});
    to.field("pubsubshard_channels", std::uint64_t{c.state.shard_channels.size()});
    to.field("total_error_replies", n.errors);
    to.field("client_output_buffer_limit_disconnections", n.output_closed);
}

void replication_section(call&, info_text& to) {
    to.section("Replication");
    to.field("role", "master");
    to.field("connected_slaves", std::uint64_t{0});
}

void keyspace_section(call& c, info_text& to) {
    to.section("Keyspace");
    for (std::size_t i = 0; i < engine::databases; ++i) {
        const keyspace* const keys = c.state.keyspaces[i].get();
        if (keys == nullptr || keys->size() == 0) continue;
        to.field("db" + std::to_string(i), "keys=" + std::to_string(keys->size()) + ",expires=" +
                                               std::to_string(keys->expiring()) + ",avg_ttl=0");
    }
}

struct info_section {
    std::string_view name;
    void (*write)(call&, info_text&);
};

constexpr info_section info_sections[] = {
    {"server", server_section},     {"clients", clients_section},
    {"memory", memory_section},     {"persistence", persistence_section},
    {"stats", stats_section},       {"replication", replication_section},
    {"keyspace", keyspace_section},
};

void reply_flags(call& c, const command_spec& spec) {
    constexpr std::pair<std::uint16_t, std::string_view> names[] = {
        {command_flag::write, "write"},       {command_flag::readonly, "readonly"},
        {command_flag::denyoom, "denyoom"},   {command_flag::admin, "admin"},
        {command_flag::noscript, "noscript"}, {command_flag::loading, "loading"},
        {command_flag::stale, "stale"},       {command_flag::fast, "fast"},
        {command_flag::noauth, "no_auth"},    {command_flag::no_multi, "no_multi"},
        {command_flag::pubsub, "pubsub"},     {command_flag::blocking, "blocking"},
    };
    const auto has = [&spec](const auto& each) { return (spec.flags & each.first) != 0; };
    c.reply.set(static_cast<std::size_t>(std::ranges::count_if(names, has)));
    for (const auto& each : names) {
        if (has(each)) c.reply.simple(each.second);
    }
}

void reply_spec(call& c, const command_spec& spec) {
    c.reply.array(10);
    c.reply.bulk(spec.name);
    c.reply.integer(spec.arity);
    reply_flags(c, spec);
    c.reply.integer(spec.first_key);
    c.reply.integer(spec.last_key);
    c.reply.integer(spec.key_step);
    c.reply.set(0);    // ACL categories
    c.reply.array(0);  // tips
    c.reply.array(0);  // key specifications
    c.reply.array(0);  // subcommands
}

void command_info(call& c) {
    if (c.count == 2) {
        c.reply.array(all_commands().size());
        for (const command_spec& each : all_commands()) reply_spec(c, each);
        return;
    }
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        const command_spec* const spec = find_command(fold_command_name(c.arg(i)));
        if (spec == nullptr) {
            c.reply.null_array();
        } else {
            reply_spec(c, *spec);
        }
    }
}

void command_getkeys(call& c) {
    if (c.count < 3) return c.wrong_arity("getkeys");
    const command_spec* const spec = find_command(fold_command_name(c.arg(2)));
    if (spec == nullptr) return c.error("ERR Invalid command specified");
    const auto given = static_cast<std::int64_t>(c.count) - 2;
    if (spec->arity >= 0 ? given != spec->arity : given < -spec->arity) {
        return c.error("ERR Invalid number of arguments specified for command");
    }
    if (spec->first_key == 0) return c.error("ERR The command has no key arguments");
    const std::int64_t last = spec->last_key >= 0 ? spec->last_key : given + spec->last_key;
    c.reply.array(static_cast<std::size_t>((last - spec->first_key) / spec->key_step + 1));
    for (std::int64_t i = spec->first_key; i <= last; i += spec->key_step) {
        c.reply.bulk(c.arg(static_cast<std::size_t>(i) + 2));
    }
}

}  // namespace

void command(call& c) {
    if (c.count == 1) {
        c.reply.array(all_commands().size());
        for (const command_spec& each : all_commands()) reply_spec(c, each);
        return;
    }
    const std::string_view what = c.arg(1);
    if (is_word(what, "count")) {
        if (c.count != 2) return c.wrong_arity("count");
        return c.reply.integer(static_cast<std::int64_t>(all_commands().size()));
    }
    if (is_word(what, "docs")) return c.reply.map(0);
    if (is_word(what, "info")) return command_info(c);
    if (is_word(what, "getkeys")) return command_getkeys(c);
    if (is_word(what, "list") && c.count == 2) {
        c.reply.array(all_commands().size());
        for (const command_spec& each : all_commands()) c.reply.bulk(each.name);
        return;
    }
    c.unknown_subcommand();
}

void info(call& c) {
    info_text text;
    for (const info_section& each : info_sections) {
        bool wanted = c.count == 1;
        for (std::size_t i = 1; i < c.count; ++i) {
            wanted |= is_word(c.arg(i), each.name) || is_word(c.arg(i), "default") ||
                      is_word(c.arg(i), "all") || is_word(c.arg(i), "everything");
        }
        if (wanted) each.write(c, text);
    }
    c.reply.verbatim("txt", text.text());
}

void config(call& c) {
    const std::string_view what = c.arg(1);
    if (is_word(what, "get")) {
        if (c.count < 3) return c.wrong_arity("get");
        return config_get(c);
    }
    if (is_word(what, "set")) {
        if (c.count < 4) return c.wrong_arity("set");
        return config_set(c);
    }
    if (is_word(what, "resetstat")) {
        if (c.count != 2) return c.wrong_arity("resetstat");
        statistics& n = c.state.env.counters;
        const std::uint64_t sessions = n.sessions;
        n = {};
        n.sessions = sessions;
        c.state.peak_memory = c.state.env.memory.used_bytes();
        return c.reply.ok();
    }
    if (is_word(what, "rewrite")) {
        if (c.count != 2) return c.wrong_arity("rewrite");
        return c.error("ERR The server is running without a config file");
    }
    c.unknown_subcommand();
}

void time(call& c) {
    constexpr std::int64_t second_us = 1'000'000;
    c.reply.array(2);
    c.reply.bulk_integer(c.state.env.now_us / second_us);
    c.reply.bulk_integer(c.state.env.now_us % second_us);
}

}  // namespace eddy::cache::commands
