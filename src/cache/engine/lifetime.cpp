// Beginning and end of an engine and of its sessions; its clock and its counters.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>

#include "cache/acl/access.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/migration.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace eddy::cache {
namespace {

std::int64_t system_time_us() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string make_run_id(random_generator& random) {
    std::string id(run_id_size, '0');
    write_run_id(id, random);
    return id;
}

void write_run_id(std::span<char> to, random_generator& random) noexcept {
    for (char& each : to) each = "0123456789abcdef"[random() >> 60];
}

configuration::configuration(engine_options given) : options(std::move(given)) {}

configuration::~configuration() = default;

client_state::client_state(environment& env)
    : watched(env.hash),
      channels(env.hash),
      patterns(env.hash),
      shard_channels(env.hash),
      awaited(env.hash),
      tracking(env) {}

client_state::~client_state() = default;

engine_state::engine_state(engine_options given)
    : settings(std::move(given)),
      data(settings.options.seed != 0 ? settings.options.seed : entropy_seed()),
      clients(data.env) {
    started_us = system_time_us();
    data.env.now_us = data.env.steady_us = started_us;
    data.env.now_ms = started_us / 1000;
    const engine_options& options = settings.options;
    data.env.set_policy(options.policy);
    data.env.limits = options.limits;
    persistence.saves.saved_us = persistence.saves.saved_at_us = started_us;
    replication.run_id = make_run_id(data.env.random);
    slow.configure(options.slow_log);
    commands.configure(options.latency);
    if (!options.renamed_commands.empty()) {
        auto names = command_names::make(options.renamed_commands);
        EDDY_ASSERT(names);
        settings.renamed = std::move(*names);
    }
    configure_client_memory(*this);
}

engine_state::~engine_state() = default;

engine::engine(engine_options options) : state_(std::make_unique<state>(std::move(options))) {
    state_->home = this;
}

engine::~engine() {
    EDDY_ASSERT(state_->clients.sessions.empty());
    state_->scripting.reset();
}

void engine::set_time(std::chrono::microseconds since_1970) noexcept {
    state_->data.env.now_us = since_1970.count();
    state_->data.env.now_ms = since_1970.count() / 1000;
    state_->data.env.steady_us = since_1970.count();
    ++state_->data.env.counters.rounds;
}

void engine::set_time(std::chrono::microseconds since_1970,
                      std::chrono::microseconds steady) noexcept {
    set_time(since_1970);
    state_->data.env.steady_us = steady.count();
}

void engine::set_slice_clock(slice_clock by) noexcept { state_->data.env.slice_time = by; }

std::int64_t engine::steady_us() const noexcept { return state_->data.env.steady_us; }

const engine_options& engine::options() const noexcept { return state_->settings.options; }

void engine_state::take_rates(std::uint64_t executed) {
    const std::int64_t now_ms = data.env.steady_us / 1000;
    if (!rates.is_due(now_ms)) return;
    const traffic now = moved();
    rates.note(now_ms, {data.env.counters.commands + executed, now.bytes_in, now.bytes_out,
                        data.env.counters.rounds});
}

traffic engine_state::moved() const noexcept {
    return server == nullptr ? traffic() : server->moved() - moved_before;
}

void engine_state::forget_moved() noexcept {
    if (server != nullptr) moved_before = server->moved();
}

std::size_t engine::used_memory() const noexcept { return state_->used_memory(); }

statistics engine::stats() const noexcept {
    const state& s = *state_;
    statistics all = s.data.env.counters;
    for (const auto& each : s.data.keyspaces) {
        if (each == nullptr) continue;
        all.keys += each->size();
        all.keys_with_expiry += each->expiring();
    }
    all.fields_with_expiry = s.data.env.fields == nullptr ? 0 : s.data.env.fields->size();
    all.used_memory = s.used_memory();
    all.peak_memory = std::max(s.peak_memory, all.used_memory);
    all.reserved_memory = s.data.env.memory.reserved_bytes();
    return all;
}

client_session::client_session(engine& at, std::string_view from, std::string_view to)
    : home(at), address(from), local_address(to) {
    engine_state& s = home.internals();
    id = s.clients.next_session_id++;
    created_us = last_used_us = s.data.env.now_us;
    use_default_user(s.settings, *this);
    s.clients.sessions.push_back(*this);
    ++s.data.env.counters.sessions;
    ++s.data.env.counters.total_sessions;
}

client_session::client_session(engine& at, internal)
    : home(at), id(0), created_us(0), last_used_us(0) {}

client_session::~client_session() {
    engine_state& s = home.internals();
    // Also one of the engine's own may be in the middle of it: of a file that is given up.
    scripting::forget(s, *this);
    if (id == 0) return;
    unlink();
    if (s.clients.executing == this) s.clients.executing = nullptr;
    if (!killed) --s.data.env.counters.sessions;
    retire(s, *this);
}

}  // namespace eddy::cache
