// Replica side: data and replication ID at changes of the master.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/notifications.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <utility>

namespace eddy::cache {
namespace {

constexpr std::string_view no_write_text = "READONLY You can't write against a read only replica.";
constexpr std::string_view few_replicas_text = "NOREPLICAS Not enough good replicas to write.";

bool is_replica(const engine_state& s) noexcept {
    return s.replication.replicating != nullptr && s.replication.replicating->is_replica();
}

}  // namespace

void replication::set_link(link_state now) noexcept {
    if (link_ == link_state::connected && now != link_state::connected) {
        down_since_us = state_.data.env.steady_us;
    }
    link_ = now;
}

void replication::become_replica(std::string_view to, std::uint16_t port) {
    if (is_loading()) fail_load();
    if (!is_replica()) {
        unblock_all(state_,
                    "UNBLOCKED force unblock from blocking operation, instance state changed "
                    "(master -> replica?)");
        // The new master may know this stream.
        resumable_ = active_;
    }
    disconnect_replicas();
    host_ = to;
    port_ = port;
    ++generation_;
    link_ = link_state::connect;
    down_since_us = state_.data.env.steady_us;
    last_input_us = 0;
    note_mode();
    if (host != nullptr) host->link_changed();
}

void replication::become_master() {
    if (!is_replica()) return;
    if (is_loading()) fail_load();
    have_data();
    host_.clear();
    port_ = 0;
    ++generation_;
    link_ = link_state::none;
    // Replicas of the same master may continue with this one.
    second_id_ = std::exchange(id_, make_run_id(state_.data.env.random));
    second_offset_ = static_cast<std::int64_t>(feed_.end()) + 1;
    writer_.forget();
    disconnect_replicas();
    note_mode();
    if (host != nullptr) host->link_changed();
}

void replication::resumed(std::string_view id) {
    if (!id.empty() && id != id_) {
        second_id_ = std::exchange(id_, std::string(id));
        second_offset_ = static_cast<std::int64_t>(feed_.end()) + 1;
        disconnect_replicas();
    }
    active_ = true;
    resumable_ = true;
    set_link(link_state::connected);
}

bool replication::is_loading() const noexcept {
    return (state_.clients.slow_path & slow_path::loading) != 0 && link_ == link_state::sync;
}

void replication::clear_data() {
    expirations_.clear();
    if (state_.hooked != nullptr) state_.hooked->keep_values();
    for (const auto& each : state_.data.keyspaces) {
        if (each == nullptr || each->size() == 0) continue;
        touch_watched(state_, *each, nullptr);
        each->clear();
        note_all_ready(state_, each->number());
    }
    scripting::drop_libraries(state_);
    invalidate_all(state_);
    ++state_.data.changes;
}

// Files may be written again.
void replication::have_data() noexcept {
    if (!std::exchange(lacks_data_, false)) return;
    if (state_.persistence.appending != nullptr) state_.persistence.appending->note_options();
    state_.note_obstacle_ended();
}

void replication::begin_load() {
    disconnect_replicas();
    lacks_data_ = true;
    resumable_ = false;
    active_ = false;
    if (state_.persistence.appending != nullptr) state_.persistence.appending->interrupt();
    state_.clients.slow_path |= slow_path::loading;
    note_load_began(state_, copy_size);
    set_link(link_state::sync);
    clear_data();
}

void replication::end_load(std::string_view id, std::uint64_t offset) {
    state_.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::loading);
    id_ = id;
    second_id_.assign(id_.size(), '0');
    second_offset_ = -1;
    feed_.restart(offset);
    active_ = true;
    resumable_ = true;
    have_data();
    note_mode();
    set_link(link_state::connected);
    for (const auto& each : state_.data.keyspaces) {
        if (each != nullptr) note_all_ready(state_, each->number());
    }
}

void replication::fail_load() {
    state_.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::loading);
    clear_data();
    take_new_id();
    feed_.restart(feed_.end());
    set_link(link_state::connect);
}

bool replication::lacks_replicas() const noexcept {
    const replication_options& its = state_.settings.options.replication;
    return !is_replica() && its.min_replicas_to_write > 0 && its.min_replicas_max_lag_s > 0 &&
           good_replicas() < static_cast<std::size_t>(its.min_replicas_to_write);
}

// CLIENT CAPA REDIRECT of Valkey: the command is for the master.
static bool is_redirected(call& c, std::uint64_t flags) {
    if (!c.client.redirects || !is_replica(c.state)) return false;
    // Scripts that only read have the flag for COMMAND alone.
    const bool reads = ((flags | c.spec->shown_flags) & command_flag::readonly) != 0;
    if ((flags & command_flag::write) == 0 && (!reads || c.client.reads_replica)) return false;
    const replication& its = *c.state.replication.replicating;
    c.error("REDIRECT " + its.master_host() + ':' + std::to_string(its.master_port()));
    return true;
}

bool refused_by_replication(call& c, std::uint64_t flags) {
    if ((c.client.special & client_session::master) != 0) return false;
    const replication_options& options = c.state.settings.options.replication;
    const bool writes = (flags & command_flag::write) != 0;
    // It waits until the failover has ended.
    if (holds_writes(c.state, write_hold::failover) &&
        (flags & (command_flag::write | command_flag::may_replicate)) != 0)
        return false;
    if (is_redirected(c, flags)) return true;
    if (writes && lacks_replicas(c.state)) {
        c.error(few_replicas_text);
    } else if (writes && is_replica(c.state) && options.read_only) {
        c.error(no_write_text);
    } else if ((flags & command_flag::stale) == 0 && is_stale(c.state, c.client)) {
        c.error(stale_text);
    } else if ((c.state.clients.slow_path & slow_path::not_ready) != 0 &&
               (flags & command_flag::loading) == 0 &&
               !((c.spec->flags & command_flag::changes_master) != 0 && is_replica(c.state))) {
        c.error(loading_text);
    } else {
        return false;
    }
    return true;
}

bool lacks_replicas(const engine_state& s) noexcept {
    const replication_options& its = s.settings.options.replication;
    if (its.min_replicas_to_write <= 0 || its.min_replicas_max_lag_s <= 0) return false;
    return s.replication.replicating == nullptr || s.replication.replicating->lacks_replicas();
}

bool lacks_data(const engine_state& s) noexcept {
    return s.replication.replicating != nullptr && s.replication.replicating->lacks_data();
}

bool is_stale(const engine_state& s, const client_session& caller) noexcept {
    return is_replica(s) && !s.settings.options.replication.serve_stale_data &&
           s.replication.replicating->link() != link_state::connected &&
           (caller.special & client_session::master) == 0;
}

bool is_read_only_replica(const engine_state& s, const client_session& caller) noexcept {
    return is_replica(s) && s.settings.options.replication.read_only &&
           (caller.special & client_session::master) == 0;
}

}  // namespace eddy::cache
