// Fields of INFO's replication section, in Redis's order; and what the operator's log says of
// replicas.
#include "cache/replication/replication_info.hpp"

#include "cache/engine/server_host.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <cstdint>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;

class lines {
public:
    void field(std::string_view name, std::string_view value) {
        text += name;
        text += ':';
        text += value;
        text += "\r\n";
    }
    void field(std::string_view name, std::int64_t value) { field(name, std::to_string(value)); }
    std::string text;
};

std::int64_t signed_of(std::uint64_t value) noexcept { return static_cast<std::int64_t>(value); }

void add_link_fields(const engine_state& s, const replication& its, lines& to) {
    const std::int64_t now_us = s.data.env.steady_us;
    const auto since = [now_us](std::int64_t then_us) {
        return then_us == 0 ? std::int64_t{-1} : (now_us - then_us) / second_us;
    };
    const bool is_up = its.link() == link_state::connected;
    const bool syncs = its.link() == link_state::sync;
    to.field("master_host", its.master_host());
    to.field("master_port", std::int64_t{its.master_port()});
    to.field("master_link_status", is_up ? "up" : "down");
    to.field("master_last_io_seconds_ago", is_up ? since(its.last_input_us) : std::int64_t{-1});
    to.field("master_sync_in_progress", std::int64_t{syncs ? 1 : 0});
    // Sentinel promotes the replica with the highest offset: not one without data.
    const std::int64_t offset = its.may_resume() ? signed_of(its.offset()) : 1;
    to.field("slave_read_repl_offset", offset);
    to.field("slave_repl_offset", offset);
    if (syncs) {
        const std::int64_t total = signed_of(its.copy_size);
        const std::int64_t read = signed_of(its.copy_bytes);
        to.field("master_sync_total_bytes", total);
        to.field("master_sync_read_bytes", read);
        to.field("master_sync_left_bytes", total == 0 ? std::int64_t{-1} : total - read);
        to.field("master_sync_perc", total == 0 ? "0.00"
                                                : std::to_string(100.0 * static_cast<double>(read) /
                                                                 static_cast<double>(total)));
        to.field("master_sync_last_io_seconds_ago", since(its.last_input_us));
    }
    if (!is_up) to.field("master_link_down_since_seconds", since(its.down_since_us));
    to.field("slave_priority", settings_of(s.server).replica.priority);
    to.field("slave_read_only", std::int64_t{s.settings.options.replication.read_only ? 1 : 0});
    to.field("replica_announced", std::int64_t{settings_of(s.server).replica.announced ? 1 : 0});
}

std::string_view stage_name(failover_stage now) noexcept {
    switch (now) {
        case failover_stage::none: return "no-failover";
        case failover_stage::waiting_for_sync: return "waiting-for-sync";
        case failover_stage::in_progress: break;
    }
    return "failover-in-progress";
}

std::string_view stage_name(replica::stage now) noexcept {
    switch (now) {
        case replica::stage::introduced:
        case replica::stage::waiting: return "wait_bgsave";
        case replica::stage::copying:
        case replica::stage::copied: return "send_bulk";
        case replica::stage::online: break;
    }
    return "online";
}

}  // namespace

std::string_view link_name(link_state now) noexcept {
    switch (now) {
        case link_state::none: return "none";
        case link_state::connect: return "connect";
        case link_state::connecting: return "connecting";
        case link_state::handshake: return "handshake";
        case link_state::sync: return "sync";
        case link_state::connected: break;
    }
    return "connected";
}

std::string replica_host(const replica& of) {
    if (!of.host.empty()) return of.host;
    // "127.0.0.1:4711", "[::1]:4711"
    std::string host = of.who.address.substr(0, of.who.address.rfind(':'));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    return host;
}

std::string replication_info(const engine_state& s) {
    const replication* const its = s.replication.replicating.get();
    const replication_options& options = s.settings.options.replication;
    lines to;
    const bool is_replica = its != nullptr && its->is_replica();
    to.field("role", is_replica ? "slave" : "master");
    if (is_replica) add_link_fields(s, *its, to);
    to.field("connected_slaves", its == nullptr ? 0 : signed_of(its->replicas().size()));
    if (options.min_replicas_to_write > 0 && options.min_replicas_max_lag_s > 0) {
        to.field("min_slaves_good_slaves", its == nullptr ? 0 : signed_of(its->good_replicas()));
    }
    std::size_t number = 0;
    for (std::size_t i = 0; its != nullptr && i < its->replicas().size(); ++i) {
        const replica& each = *its->replicas()[i];
        const bool is_online = each.now == replica::stage::online;
        const std::int64_t lag = is_online ? (s.data.env.steady_us - each.acked_us) / second_us : 0;
        std::string line = "ip=" + replica_host(each);
        line += ",port=" + std::to_string(each.port);
        line += ",state=";
        line += stage_name(each.now);
        line += ",offset=" + std::to_string(each.acked);
        line += ",lag=" + std::to_string(lag);
        to.field("slave" + std::to_string(number++), line);
    }
    to.field("master_failover_state",
             stage_name(its == nullptr ? failover_stage::none : its->failover().now));
    to.field("master_replid", its == nullptr ? s.replication.run_id : its->id());
    to.field("master_replid2",
             its == nullptr ? std::string(s.replication.run_id.size(), '0') : its->second_id());
    to.field("master_repl_offset", its == nullptr ? 0 : signed_of(its->offset()));
    to.field("second_repl_offset", its == nullptr ? -1 : its->second_offset());
    const bool active = its != nullptr && its->is_active();
    to.field("repl_backlog_active", std::int64_t{active ? 1 : 0});
    to.field("repl_backlog_size", signed_of(options.backlog_size));
    to.field("repl_backlog_first_byte_offset", active ? signed_of(its->kept().begin() + 1) : 0);
    to.field("repl_backlog_histlen",
             active ? signed_of(its->kept().end() - its->kept().begin()) : 0);
    return to.text;
}

// Logged once, until there are no such fields: a replica that refuses the copy refuses the commands
// of the stream that set them, too.
void replication::note_expiring_fields() {
    const field_clock* const fields = state_.data.env.fields.get();
    if (fields == nullptr || fields->size() == 0) {
        fields_noted_ = false;
        return;
    }
    if (fields_noted_ || host == nullptr) return;
    const auto lacking = std::ranges::find_if(replicas_, [](const replica* each) {
        return !each->takes_expiring_fields() && !each->copy_only &&
               each->content == copy_content::everything && !each->who.closing;
    });
    if (lacking == replicas_.end()) return;
    const replica& its = **lacking;
    const std::string name = replica_host(its) + ':' + std::to_string(its.port);
    fields_noted_ = true;
    if (its.valkey_version != 0) {
        host->log("the replica " + name + " is Valkey " + std::to_string(its.valkey_version) +
                  ", which cannot take the expiring fields of hashes that are here: Valkey 9 can");
    } else {
        host->log("the replica " + name +
                  " does not say that it takes the expiring fields of hashes that are here: Redis "
                  "before 7.4 and Valkey before 9 cannot take them");
    }
}

}  // namespace eddy::cache
