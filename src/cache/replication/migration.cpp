// Check of commands' keys against running migrations, as snapshot_gate.cpp does for snapshots.
#include "cache/replication/migration.hpp"

#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/rdb/payload.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace eddy::cache {
namespace {

using arguments = std::span<const std::string_view>;

// True if it changes one of the held keys, as far as it declares them.
bool changes_held_key(const migrations& its, unsigned database, const command_spec& spec,
                      arguments args) {
    if (!writes_keys(flags_of(spec, args.data(), args.size()))) return false;
    const auto found = find_key_arguments(spec, args);
    if (!found) return false;
    // One of its keys may be in another database.
    const bool is_of_any = (spec.flags & command_flag::spans_databases) != 0;
    // XREADGROUP reads the entries, and changes the group.
    const bool changes_group = (spec.flags & command_flag::changes_group) != 0;
    return std::ranges::any_of(*found, [&](const key_argument& each) {
        const bool only_reads = each.flags.starts_with("RO") && !changes_group;
        const std::string_view key = args[each.index];
        return !only_reads && (is_of_any ? its.holds(key) : its.holds(database, key));
    });
}

// Scope in which changes are attributed to a waiting session, or to none (null).
class doing_of {
public:
    doing_of(engine_state& s, client_session* who)
        : state_(s),
          outer_(std::exchange(s.clients.executing, who)),
          outer_pushes_(std::exchange(s.clients.own_pushes, {})) {}
    ~doing_of() {
        state_.clients.executing = outer_;
        state_.clients.own_pushes = std::move(outer_pushes_);
    }
    doing_of(const doing_of&) = delete;
    doing_of& operator=(const doing_of&) = delete;

private:
    engine_state& state_;
    client_session* outer_;
    byte_buffer outer_pushes_;
};

}  // namespace

void migrations::note_change(unsigned database, std::string_view key) noexcept {
    const auto found = held_[database].find(key);
    if (found != held_[database].end()) found->second = true;
}

void migrations::note_changes(unsigned database) noexcept {
    for (auto& each : held_[database]) each.second = true;
}

migration::migration(engine_state& s, std::uint64_t asked_by, migration_order what)
    : state_(s), asked_by_(asked_by), order_(std::move(what)) {
    if (state_.replication.migrating == nullptr)
        state_.replication.migrating = std::make_unique<migrations>();
    ++state_.replication.migrating->count_;
    state_.clients.slow_path |= slow_path::migration;
    state_.note_observers();
    try {
        // A command that names a key of another migration waits for it, so none is held twice.
        auto& held = state_.replication.migrating->held_[order_.from];
        held.reserve(held.size() + order_.keys.size());
        for (const std::string& each : order_.keys) held.emplace(each, false);
    } catch (const std::bad_alloc&) {
        leave();
        throw;
    }
}

migration::~migration() {
    leave();
    end_migration_waits(state_);
}

bool migration::release(std::size_t end) noexcept {
    if (end <= released_) return false;
    let_go(end);
    end_migration_waits(state_);
    return true;
}

void migration::let_go(std::size_t end) noexcept {
    for (; released_ < end; ++released_) {
        std::string& key = order_.keys[released_];
        state_.replication.migrating->held_[order_.from].erase(key);
        // Freed now, not all together at the end.
        std::string().swap(key);
    }
}

void migration::leave() noexcept {
    let_go(order_.keys.size());
    note_unsent(0);
    if (--state_.replication.migrating->count_ != 0) return;
    state_.replication.migrating.reset();
    state_.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::migration);
    state_.note_observers();
}

bool migration::is_wanted() const noexcept { return find_session(state_, asked_by_) != nullptr; }

bool migration::is_crowded() const noexcept {
    return state_.replication.migrating->unsent_ >= most_unsent;
}

void migration::note_unsent(std::size_t bytes) noexcept {
    state_.replication.migrating->unsent_ += bytes - std::exchange(unsent_, bytes);
}

migration::written migration::write(std::size_t index, byte_buffer& to) {
    const std::string& key = order_.keys[index];
    keyspace& keys = state_.data.database(order_.from);
    const keyspace::slot* const place = keys.find_to_read(key);
    if (place == nullptr) return written::gone;
    entry& its = *keyspace::at(place);
    byte_buffer payload;
    if (!rdb::write_payload(state_.data.env, its, payload, state_.settings.options.max_reply))
        return written::too_large;
    const expiry_time ends_ms = its.expiry();
    // 0 would mean no expiry.
    const std::int64_t left_ms =
        ends_ms == no_expiry ? 0 : std::max<std::int64_t>(ends_ms - state_.data.env.now_ms, 1);
    const decimal time(left_ms);
    const std::string_view words[] = {
        // For a cluster node that does not own the slot yet.
        state_.settings.options.emulates_cluster ? "RESTORE-ASKING" : "RESTORE", key, time,
        payload.text(), "REPLACE"};
    resp::write_command(to, std::span(words).first(order_.replaces ? 5 : 4));
    state_.replication.migrating->held_[order_.from].at(key) = false;
    return written::whole;
}

bool migration::may_remove() const {
    return !is_client_paused(state_) && state_.clients.writes_held == 0 &&
           !scripting::is_late(state_);
}

std::int64_t migration::pause_ends_us() const noexcept {
    return state_.clients.paused_until_us != 0 ? state_.clients.paused_until_us
                                               : client_session::no_deadline;
}

std::string migration::remove(const std::vector<std::size_t>& indexes) {
    engine_state& s = state_;
    if (s.replication.replicating != nullptr && s.replication.replicating->is_replica())
        return "this server follows another one since";
    client_session* const who = find_session(s, asked_by_);
    const doing_of its(s, who);
    keyspace& keys = s.data.database(order_.from);
    const auto& held = s.replication.migrating->held_[order_.from];
    bool some_changed = false;
    for (const std::size_t index : indexes) {
        const std::string& key = order_.keys[index];
        if (keys.find_to_read(key) == nullptr) continue;
        if (held.at(key)) {
            some_changed = true;
            continue;
        }
        const recorded_alone told(s, order_.from, {"DEL", key});
        // For hooks it is no deletion: the backend's value stays.
        if (s.hooked != nullptr)
            s.hooked->key_happened(order_.from, key_event::evicted, "evicted", key);
        keys.remove(key, keys.hash(key));
        ++s.data.changes;
        s.notify_clients(order_.from, key_event::generic, "del", key);
    }
    if (!s.clients.tracking.changes.empty()) send_broadcasts(s);
    if (who != nullptr && !s.clients.own_pushes.empty()) {
        extras_of(*who).outbox.append(s.clients.own_pushes.text());
        who->wake();
    }
    return some_changed ? "they were changed meanwhile, by a script or the like. Send them again, "
                          "with REPLACE"
                        : "";
}

bool waits_for_migration(call& c) {
    if ((c.state.clients.slow_path & slow_path::migration) == 0) [[likely]]
        return false;
    const migrations& its = *c.state.replication.migrating;
    unsigned database = c.keys->number();
    bool waits = false;
    const auto look = [&](const command_spec& spec, arguments args) {
        // Within a transaction.
        if ((spec.flags & command_flag::selects_database) != 0 && args.size() == 2) {
            const auto number = parse_integer(args[1]);
            if (number && *number >= 0 && *number < engine_databases)
                database = static_cast<unsigned>(*number);
        }
        waits = waits || changes_held_key(its, database, spec, args);
    };
    if ((c.spec->flags & command_flag::executes_queue) != 0 &&
        (c.client.special & client_session::in_transaction) != 0)
        c.client.extras->queued.for_each(look);
    else
        look(*c.spec, {c.args, c.count});
    if (waits) wait_for_migration(c.client);
    return waits;
}

}  // namespace eddy::cache
