// Replication commands: PSYNC and REPLCONF between servers; REPLICAOF, FAILOVER, ROLE, WAIT and
// WAITAOF for clients.
#include "cache/replication/replication.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/clients/client_name.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/waits.hpp"
#include "cache/config/config_values.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/replication/replication_info.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace eddy::cache::commands {
namespace {

constexpr std::size_t max_host = 255;
constexpr std::string_view too_many_text = "ERR too many replicas follow this server already";

bool is_replica(const call& c) noexcept {
    return c.state.replication.replicating != nullptr &&
           c.state.replication.replicating->is_replica();
}

// rdb-filter-only: a copy contains nothing but the named parts. Redis 7.2 has one name.
bool note_filter(call& c, replica& of, std::string_view value) {
    of.content = copy_content::nothing;
    for (const std::string_view each : split_words(value)) {
        if (!is_word(each, "functions")) {
            c.error("ERR Unsupported rdb-filter-only option: " + std::string(each.substr(0, 128)));
            return false;
        }
        of.content = copy_content::functions;
    }
    return true;
}

// The replica's own port and address, as it announces them.
bool note_attribute(call& c, replica& of, std::size_t i) {
    const std::string_view what = c.arg(i);
    const std::string_view value = c.arg(i + 1);
    if (is_word(what, "listening-port")) {
        const auto port =
            c.integer_in(i + 1, 0, 65535, "ERR value is out of range, must be between 0 and 65535");
        if (!port) return false;
        of.port = static_cast<std::uint16_t>(*port);
    } else if (is_word(what, "ip-address")) {
        // ROLE and INFO show it as a word.
        if (value.size() > max_host || !is_client_name(value)) {
            c.error("ERR REPLCONF ip-address provided by replica instance is too long: " +
                    std::to_string(value.size()) + " bytes");
            return false;
        }
        of.host = value;
    } else if (is_word(what, "capa")) {
        of.takes_eof |= is_word(value, "eof");
        of.takes_new_id |= is_word(value, "psync2");
        of.takes_channel |= is_word(value, "rdb-channel-repl");
    } else if (is_word(what, "rdb-only")) {
        const auto only =
            c.integer_in(i + 1, 0, 1, "ERR value is out of range, must be between 0 and 1");
        if (!only) return false;
        of.copy_only = *only == 1;
    } else if (is_word(what, "rdb-filter-only")) {
        return note_filter(c, of, value);
    } else if (is_word(what, "version")) {
        // Valkey's. One that is no number is none.
        of.valkey_version = 0;
        std::from_chars(value.data(), value.data() + value.size(), of.valkey_version);
    } else {
        c.error("ERR Unrecognized REPLCONF option: " + std::string(what.substr(0, 128)));
        return false;
    }
    return true;
}

// The replica state of a session that may start replication; null with the refusal replied.
replica* begin_sync(call& c) {
    if ((c.client.special & client_session::replica) != 0) return nullptr;
    replication& its = replication::of(c.state);
    if (its.is_failing_over()) {
        c.error("NOMASTERLINK Can't SYNC while failing over");
        return nullptr;
    }
    if (its.is_replica() && its.link() != link_state::connected) {
        c.error("NOMASTERLINK Can't SYNC while not connected with my master");
        return nullptr;
    }
    if (its.replicas().size() >= replication::max_replicas) {
        c.error(too_many_text);
        return nullptr;
    }
    return its.introduce(c.client);
}

// PSYNC FAILOVER: the master asks this replica to become the master. False with the refusal
// replied.
bool take_over(call& c) {
    if ((c.client.special & client_session::replica) != 0) return true;
    if (!is_replica(c)) {
        c.error("ERR PSYNC FAILOVER can't be sent to a master.");
        return false;
    }
    if (c.state.settings.options.mode == access_mode::readonly) {
        c.error(
            "ERR PSYNC FAILOVER can't be sent to a cache in readonly mode: its option --replicate "
            "names its master");
        return false;
    }
    replication& its = *c.state.replication.replicating;
    if (!is_word(c.arg(1), its.id())) {
        c.error("ERR PSYNC FAILOVER replid must match my replid.");
        return false;
    }
    if (its.host != nullptr) its.host->log("is master from now on, by a FAILOVER of its master");
    its.become_master();
    return true;
}

// WAIT and WAITAOF.
void wait_for(call& c, const awaited_copies& wanted, std::int64_t deadline_us) {
    replication& its = replication::of(c.state);
    if (its.has_copies(c, wanted)) return;
    its.wait_for_copies(c, wanted, deadline_us);
}

}  // namespace

void replconf(call& c) {
    if (c.count % 2 == 0) return c.syntax_error();
    replica* of = replication::find(c.client);
    for (std::size_t i = 1; i < c.count; i += 2) {
        if (is_word(c.arg(i), "ack")) {
            if (of == nullptr || (c.client.special & client_session::replica) == 0) return;
            const auto offset = parse_integer(c.arg(i + 1));
            const bool has_disk = i + 3 < c.count && is_word(c.arg(i + 2), "fack");
            const auto synced = has_disk ? parse_integer(c.arg(i + 3)) : std::nullopt;
            if (offset && *offset >= 0) {
                c.state.replication.replicating->acknowledge(
                    *of, static_cast<std::uint64_t>(*offset),
                    static_cast<std::uint64_t>(std::max<std::int64_t>(synced.value_or(0), 0)));
            }
            return;
        }
        if (is_word(c.arg(i), "getack")) {
            if ((c.client.special & client_session::master) == 0 ||
                c.state.replication.replicating == nullptr)
                return;
            c.state.replication.replicating->ack_wanted = true;
            if (c.state.replication.replicating->host != nullptr)
                c.state.replication.replicating->host->link_changed();
            return;
        }
        if (of == nullptr) of = replication::of(c.state).introduce(c.client);
        if (!note_attribute(c, *of, i)) return;
    }
    c.reply.ok();
}

void sync(call& c) {
    replica* const of = begin_sync(c);
    if (of == nullptr) return;
    of->plain = true;
    c.state.replication.replicating->wait_for_copy(*of);
}

void psync(call& c) {
    if (c.count > 3 && is_word(c.arg(3), "failover") && !take_over(c)) return;
    replica* const of = begin_sync(c);
    if (of == nullptr) return;
    const auto from = c.integer(2);
    if (!from) return;
    replication& its = *c.state.replication.replicating;
    if (*from > 0 && its.can_continue(c.arg(1), static_cast<std::uint64_t>(*from - 1))) {
        its.go_on(*of, static_cast<std::uint64_t>(*from - 1));
        return c.reply.simple(of->takes_new_id ? "CONTINUE " + its.id() : "CONTINUE");
    }
    if (!c.arg(1).starts_with('?')) ++its.not_continued;
    its.wait_for_copy(*of);
}

void replicaof(call& c) {
    if (c.state.settings.options.emulates_cluster) {
        return c.error("ERR REPLICAOF not allowed in cluster mode.");
    }
    if (c.state.replication.replicating != nullptr &&
        c.state.replication.replicating->is_failing_over()) {
        return c.error("ERR REPLICAOF not allowed while failing over.");
    }
    if (is_word(c.arg(1), "no") && is_word(c.arg(2), "one")) {
        if (is_replica(c)) c.state.replication.replicating->become_master();
        return c.reply.ok();
    }
    if ((c.client.special & client_session::replica) != 0) {
        return c.error("ERR Command is not valid when client is a replica.");
    }
    const auto port = c.integer_in(2, 0, 65535, "ERR Invalid master port");
    if (!port) return;
    const std::string_view host = c.arg(1);
    if (host.empty() || host.size() > max_host || !is_client_name(host)) {
        return c.error("ERR Invalid master host");
    }
    replication& its = replication::of(c.state);
    if (its.is_replica() && its.master_host() == host && its.master_port() == *port) {
        return c.reply.simple("OK Already connected to specified master");
    }
    its.become_replica(host, static_cast<std::uint16_t>(*port));
    c.reply.ok();
}

void failover(call& c) {
    if (c.state.settings.options.emulates_cluster) {
        return c.error("ERR FAILOVER not allowed in cluster mode.");
    }
    replication& its = replication::of(c.state);
    if (c.count == 2 && is_word(c.arg(1), "abort")) {
        if (!its.is_failing_over()) return c.error("ERR No failover in progress.");
        its.abort_failover("FAILOVER ABORT");
        return c.reply.ok();
    }
    failover_plan plan;
    std::int64_t timeout_ms = 0;
    std::int64_t port = 0;
    bool has_target = false;
    for (std::size_t i = 1; i < c.count; ++i) {
        if (is_word(c.arg(i), "timeout") && i + 1 < c.count && timeout_ms == 0) {
            const auto given = c.integer(++i);
            if (!given) return;
            if (*given <= 0) return c.error("ERR FAILOVER timeout must be greater than 0");
            timeout_ms = *given;
        } else if (is_word(c.arg(i), "to") && i + 2 < c.count && !has_target) {
            const auto given = c.integer(i + 2);
            if (!given) return;
            has_target = true;
            port = *given;
            plan.host = c.arg(i + 1);
            i += 2;
        } else if (is_word(c.arg(i), "force") && !plan.force) {
            plan.force = true;
        } else {
            return c.syntax_error();
        }
    }
    if (its.is_failing_over()) return c.error("ERR FAILOVER already in progress.");
    if (its.is_replica()) return c.error("ERR FAILOVER is not valid when server is a replica.");
    if (its.replicas().empty()) return c.error("ERR FAILOVER requires connected replicas.");
    if (plan.force && (timeout_ms == 0 || !has_target)) {
        return c.error(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.");
    }
    if (has_target) {
        const bool is_port = port > 0 && port <= std::numeric_limits<std::uint16_t>::max();
        plan.port = is_port ? static_cast<std::uint16_t>(port) : 0;
        const replica* const target = is_port ? its.find_replica(plan.host, plan.port) : nullptr;
        if (target == nullptr) {
            return c.error("ERR FAILOVER target HOST and PORT is not a replica.");
        }
        if (target->now != replica::stage::online) {
            return c.error("ERR FAILOVER target replica is not online.");
        }
    }
    plan.deadline_us = deadline_after(c, timeout_ms);
    its.begin_failover(std::move(plan));
    c.reply.ok();
}

void role(call& c) {
    const replication* const its = c.state.replication.replicating.get();
    if (its != nullptr && its->is_replica()) {
        c.reply.array(5);
        c.reply.bulk("slave");
        c.reply.bulk(its->master_host());
        c.reply.integer(its->master_port());
        c.reply.bulk(link_name(its->link()));
        c.reply.integer(
            its->link() == link_state::connected ? static_cast<std::int64_t>(its->offset()) : -1);
        return;
    }
    c.reply.array(3);
    c.reply.bulk("master");
    c.reply.integer(its == nullptr ? 0 : static_cast<std::int64_t>(its->offset()));
    std::size_t online = 0;
    const auto for_each_online = [its](auto&& what) {
        if (its == nullptr) return;
        for (const replica* const each : its->replicas()) {
            if (each->now == replica::stage::online) what(*each);
        }
    };
    for_each_online([&online](const replica&) { ++online; });
    c.reply.array(online);
    for_each_online([&c](const replica& each) {
        c.reply.array(3);
        c.reply.bulk(replica_host(each));
        c.reply.bulk(std::to_string(each.port));
        c.reply.bulk(std::to_string(each.acked));
    });
}

void wait(call& c) {
    if (is_replica(c)) {
        return c.error(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis "
            "4.0 if a replica is configured to be writable (which is not the default) writes to "
            "replicas are just local and are not propagated.");
    }
    const auto many = c.integer(1);
    if (!many) return;
    const auto deadline_us = milliseconds_deadline_argument(c, 2);
    if (!deadline_us) return;
    awaited_copies wanted;
    wanted.replicas = static_cast<std::size_t>(std::max<std::int64_t>(*many, 0));
    wait_for(c, wanted, *deadline_us);
}

void waitaof(call& c) {
    const auto own = c.integer(1);
    if (!own) return;
    if (*own < 0 || *own > 1)
        return c.error("ERR value is out of range, value must between 0 and 1");
    constexpr std::string_view not_positive = "ERR value is out of range, must be positive";
    const auto many = c.integer_in(2, 0, std::numeric_limits<std::int64_t>::max(), not_positive);
    if (!many) return;
    const auto deadline_us = milliseconds_deadline_argument(c, 3);
    if (!deadline_us) return;
    if (is_replica(c)) {
        return c.error(
            "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
            "replicas are just local and are not propagated.");
    }
    const append_log* const log = c.state.persistence.appending.get();
    awaited_copies wanted;
    wanted.replicas = static_cast<std::size_t>(*many);
    wanted.on_disks = true;
    wanted.own_disk = *own == 1;
    if (replication::of(c.state).lacks_own_disk(wanted))
        return c.error(replication::no_own_disk_text);
    // Includes the writes of other clients: an append-only file has one order.
    wanted.log_position = log == nullptr ? 0 : log->appended;
    wait_for(c, wanted, *deadline_us);
}

}  // namespace eddy::cache::commands
