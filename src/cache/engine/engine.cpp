// Batch execution: checks, prefetching, execution; and the upkeep between batches.
#include "cache/engine/engine.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>

#include "cache/acl/access.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/field_expiry.hpp"
#include "cache/engine/planner.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/migration.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

namespace eddy::cache {
namespace {

// Whose commands are executed. A client that is given up in the middle leaves nothing that the next
// one would get.
class executing_mark {
public:
    executing_mark(engine::state& s, session& who) noexcept : state_(s) { s.executing = &who; }
    ~executing_mark() {
        state_.executing = nullptr;
        if (std::uncaught_exceptions() == exceptions_) return;
        state_.own_pushes.clear();
        state_.has_effects = !state_.ready_keys.empty();
    }
    executing_mark(const executing_mark&) = delete;
    executing_mark& operator=(const executing_mark&) = delete;

    void end() const noexcept { state_.executing = nullptr; }

private:
    engine::state& state_;
    const int exceptions_ = std::uncaught_exceptions();
};

std::int64_t system_time_us() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

// False when the command was not executed, because it is to wait.
bool execute_one(call& c, const resp::command& what, const planned& plan) {
    c.spec = plan.spec;
    c.args = what.argv;
    c.count = what.argc;
    c.hash = plan.hash;
    c.reply_begin = c.reply.buffer().size();
    if ((c.client.special | c.state.slow_path) != 0) [[unlikely]]
        return execute_on_slow_path(c);
    if (!admit(c)) [[unlikely]] {
        after_refusal(c);
        return true;
    }
    c.client.last_command = c.spec->name.data();
    const bool is_timed = c.state.commands.count(*c.spec);
    if (is_timed || !c.state.slow.skips(c.spec->flags, c.count)) [[unlikely]]
        c.state.slow.run(c);
    else
        call_function(c);
    return true;
}

// What a snapshot holds back does not count.
bool is_over_limit(const engine::state& s) noexcept {
    const std::size_t used = s.used_memory();
    if (used <= s.options.max_memory || s.snapshot == nullptr) return used > s.options.max_memory;
    return used - std::min(used, s.snapshot->held_bytes()) > s.options.max_memory;
}

// Values of several cache lines are fetched, too, but only for the next few commands: those of a
// whole batch would push each other out.
constexpr std::size_t values_ahead = 4;
constexpr std::size_t large_value = 512;

bool has_large_values(const engine::state& s, const keyspace& keys) noexcept {
    return s.env.memory.used_bytes() / large_value > keys.size();
}

void prefetch_value(const dictionary& table, std::uint64_t hash) noexcept {
    constexpr std::size_t line = 64;
    constexpr std::size_t most_bytes = 2 * keyspace::max_inline_text;
    const dictionary::slot* const place = table.find_hash(hash, [](const entry&) { return true; });
    if (place == nullptr) return;
    const entry* const e = dictionary::entry_of(*place);
    const char* at = reinterpret_cast<const char*>(e);
    // Its first two lines are on their way already.
    std::size_t size = std::min(e->size(), most_bytes);
    for (std::size_t i = 2 * line; i < size; i += line) __builtin_prefetch(at + i);
    if (e->held_as != encoding::external) return;
    at = reinterpret_cast<const char*>(e->pointer<text_block>());
    size = most_bytes;
    for (std::size_t i = 0; i < size; i += line) __builtin_prefetch(at + i);
}

// Of all that a sweep has to pass, so many buckets, from the number of keys: exact counts would
// take longer than the sweep of a small table.
double share_of(const engine::state& s, std::size_t buckets) noexcept {
    constexpr double keys_a_bucket = 10;
    std::size_t keys = 0;
    for (const auto& each : s.keyspaces) {
        if (each != nullptr && each->expiring() > 0) keys += each->size();
    }
    const double passed = static_cast<double>(buckets + 1) * keys_a_bucket;
    return keys == 0 ? 1 : std::min(passed / static_cast<double>(keys), 1.0);
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

engine::state::state(engine_options given)
    : options(std::move(given)), env(options.seed != 0 ? options.seed : entropy_seed()) {
    started_us = system_time_us();
    env.now_us = env.steady_us = started_us;
    env.now_ms = started_us / 1000;
    env.set_policy(options.policy);
    env.limits = options.limits;
    saves.saved_us = saves.saved_at_us = started_us;
    run_id = make_run_id(env.random);
    slow.configure(options.slow_log);
    commands.configure(options.latency);
    if (!options.renamed_commands.empty()) {
        auto names = command_names::make(options.renamed_commands);
        EDDY_ASSERT(names);
        renamed = std::move(*names);
    }
    configure_client_memory(*this);
}

engine::state::~state() = default;

// What was not found yet is no reason to refuse a command: each goes on with the walk, which passes
// all keys in the end, and upkeep() does without commands.
bool engine::state::make_room() {
    if (options.max_memory == 0 || used_memory() <= options.max_memory) [[likely]] {
        if (env.counters.over_limit_since_us != 0) note_limit();
        return true;
    }
    slice_limit slice(env.slice_time, longest_slice_ns);
    const room found = make_room(slice);
    note_limit();
    return found != room::none;
}

void engine::state::note_obstacle_ended() noexcept {
    if (server != nullptr) server->obstacle_ended();
}

void engine::state::note_limit() noexcept {
    statistics& n = env.counters;
    const bool was_over = n.over_limit_since_us != 0;
    if (was_over == (options.max_memory != 0 && is_over_limit(*this))) return;
    if (was_over) n.over_limit_us += env.steady_us - n.over_limit_since_us;
    n.over_limit_since_us = was_over ? 0 : env.steady_us;
}

engine::state::room engine::state::make_room(slice_limit& slice) {
    const std::size_t limit = options.max_memory;
    // Another server, or a file, says which keys there are.
    if ((slow_path & (slow_path::replica | slow_path::loading)) != 0) return room::there;
    // Within a script no key goes by itself. What needs room waits as well.
    if (scripting::is_late(*this)) return room::there;
    // What replicas are sent must come to an end. What needs room waits as well.
    if ((slow_path & slow_path::pause) != 0) return room::there;
    // No client adds a key. Hooks do, and keys must go for those.
    if (options.mode == access_mode::readonly && hooked == nullptr) return room::there;
    if (limit == 0 || used_memory() <= limit) return room::there;
    // What was deleted but not freed yet comes first. A huge value is freed in slices, more in each
    // than a command adds, and no other key need go for it.
    const auto is_coming = [&] {
        for (int i = 0; i < max_evictions && !slice.is_over() && is_over_limit(*this); ++i) {
            if (!env.free_some(max_evictions, slice)) break;
        }
        return !is_over_limit(*this) || env.discarded() > 0;
    };
    if (is_coming()) return room::there;
    if (options.policy == eviction::none) return room::none;
    for (int i = 0; i < max_evictions; ++i) {
        // Where some went, this command may run; the next one goes on, as in Redis.
        if (i > 0 && slice.is_over_after(slice_limit::a_look / 4)) return room::there;
        bool is_later = false;
        bool evicted = false;
        for (std::size_t tried = 0; tried < databases && !evicted && !is_later; ++tried) {
            keyspace* const victim = keyspaces[evict_database % databases].get();
            ++evict_database;
            if (victim == nullptr) continue;
            const keyspace::evicted what = victim->evict_one(slice);
            evicted = what == keyspace::evicted::one;
            is_later = what == keyspace::evicted::later;
        }
        if (is_later) return room::later;
        if (!evicted) return room::none;
        if (is_coming()) return room::there;
    }
    return room::there;
}

engine::engine(engine_options options) : state_(std::make_unique<state>(std::move(options))) {
    state_->home = this;
}

engine::~engine() {
    EDDY_ASSERT(state_->sessions.empty());
    state_->scripting.reset();
}

void engine::set_time(std::chrono::microseconds since_1970) noexcept {
    state_->env.now_us = since_1970.count();
    state_->env.now_ms = since_1970.count() / 1000;
    state_->env.steady_us = since_1970.count();
    ++state_->env.counters.rounds;
}

void engine::set_time(std::chrono::microseconds since_1970,
                      std::chrono::microseconds steady) noexcept {
    set_time(since_1970);
    state_->env.steady_us = steady.count();
}

void engine::set_slice_clock(slice_clock by) noexcept { state_->env.slice_time = by; }

std::int64_t engine::steady_us() const noexcept { return state_->env.steady_us; }

const engine_options& engine::options() const noexcept { return state_->options; }

std::size_t engine::execute(session& who, std::span<const resp::command> commands,
                            byte_buffer& out) {
    state& s = *state_;
    if (who.extras != nullptr) [[unlikely]]
        take_output(who, out);
    resp::reply_writer reply(out, who.protocol);
    call c{s, who, reply, &s.database(who.db)};
    planner planner(s.env.hash, s.renamed.get(), (who.special & session::master) != 0);
    who.last_used_us = s.env.now_us;
    const std::size_t reply_limit = s.options.max_pending_reply;

    std::size_t done = 0;
    const auto may_go_on = [&] {
        return done < commands.size() && !who.closing && !who.blocked &&
               (done == 0 || out.size() < reply_limit);
    };
    const auto execute_next = [&](const resp::command& next, const planned& plan) {
        c.executed_in_batch = done;
        const bool executed = execute_one(c, next, plan);
        if (s.has_effects) [[unlikely]]
            flush_effects(s, out);
        done += executed ? 1 : 0;
    };
    const executing_mark mark(s, who);
    while (may_go_on()) {
        const std::size_t batch = std::min(commands.size() - done, max_batch);
        const resp::command* const next = commands.data() + done;
        if (batch < min_prefetch_batch || c.keys->size() < min_prefetch_keys) {
            for (std::size_t i = 0; i < batch && may_go_on(); ++i) {
                execute_next(next[i], planner.plan(next[i]));
            }
            continue;
        }
        planned plans[max_batch];
        for (std::size_t i = 0; i < batch; ++i) {
            plans[i] = planner.plan(next[i]);
            c.keys->prefetch_bucket(plans[i].hash);
        }
        for (std::size_t i = 0; i < batch; ++i) c.keys->prefetch_entry(plans[i].hash);
        if (has_large_values(s, *c.keys)) [[unlikely]] {
            for (std::size_t i = 0; i < std::min(batch, values_ahead); ++i)
                prefetch_value(c.keys->table(), plans[i].hash);
            for (std::size_t i = 0; i < batch && may_go_on(); ++i) {
                if (const std::size_t ahead = i + values_ahead; ahead < batch)
                    prefetch_value(c.keys->table(), plans[ahead].hash);
                execute_next(next[i], plans[i]);
            }
            continue;
        }
        for (std::size_t i = 0; i < batch && may_go_on(); ++i) execute_next(next[i], plans[i]);
    }
    if (!s.tracking.changes.empty()) [[unlikely]] {
        send_broadcasts(s);
        if (s.has_effects) flush_effects(s, out);
    }
    mark.end();
    const output_limit& limit = s.options.clients.output[0];
    if (limit.hard != 0 && out.size() >= limit.hard && class_of(who) == client_class::normal) {
        ++s.env.counters.output_closed;
        out.clear();
        who.closing = true;
        who.close_now();
    }
    s.env.counters.commands += done;
    s.take_rates(0);
    s.peak_memory = std::max(s.peak_memory, s.used_memory());
    return done;
}

void engine::state::take_rates(std::uint64_t executed) {
    const std::int64_t now_ms = env.steady_us / 1000;
    if (!rates.is_due(now_ms)) return;
    const traffic now = moved();
    rates.note(now_ms, {env.counters.commands + executed, now.bytes_in, now.bytes_out,
                        env.counters.rounds});
}

traffic engine::state::moved() const noexcept {
    return server == nullptr ? traffic() : server->moved() - moved_before;
}

void engine::state::forget_moved() noexcept {
    if (server != nullptr) moved_before = server->moved();
}

std::size_t engine::execute(session& who, const resp::command& command,
                            std::vector<large_argument>& large, byte_buffer& out) {
    environment& env = state_->env;
    struct offer {
        explicit offer(environment& to, std::span<large_argument> what) noexcept : its(to) {
            its.offered = what;
        }
        ~offer() { its.offered = {}; }
        environment& its;
    };
    std::size_t executed = 0;
    {
        const offer these(env, large);
        executed = execute(who, {&command, 1}, out);
    }
    if (executed > 0) discard(large);
    return executed;
}

void engine::discard(std::vector<large_argument>& large) noexcept {
    environment& env = state_->env;
    for (large_argument& each : large) {
        if (each) env.discard(env.take_over(each));
    }
    large.clear();
}

void engine::take_output(session& who, byte_buffer& out) {
    if (who.extras == nullptr || who.extras->outbox.empty()) return;
    byte_buffer& outbox = who.extras->outbox;
    if (out.empty()) {
        out.swap(outbox);
    } else {
        out.append(outbox.text());
        outbox.clear();
    }
    constexpr std::size_t kept = 4 * 1024;
    if (outbox.capacity() > kept) outbox = byte_buffer();
}

void engine::set_unsent(session& who, std::size_t bytes) {
    state& s = *state_;
    if (who.extras == nullptr) {
        // Few who send their replies are over a limit, and only those need extras.
        const output_limit& limit =
            s.options.clients.output[static_cast<std::size_t>(class_of(who))];
        const bool counts =
            (limit.soft != 0 && bytes >= limit.soft) || (limit.hard != 0 && bytes >= limit.hard);
        if (!counts) return;
    }
    extras_of(who).unsent = bytes;
    check_output(s, who);
}

std::int64_t engine::outputs_due_us() const noexcept { return state_->outputs_due_us; }

void engine::check_outputs() {
    state& s = *state_;
    if (s.env.steady_us < s.outputs_due_us) return;
    s.outputs_due_us = session::no_deadline;
    s.sessions.for_each([&](session& each) {
        // The limits may be others than when it was told of these.
        const std::size_t unsent = each.held().output;
        if (unsent > 0)
            set_unsent(each, unsent);
        else
            check_output(s, each);
    });
}

namespace {

bool ends_snapshot(const engine::state& s) noexcept {
    return s.snapshot != nullptr && s.snapshot->has_ended();
}

bool free_some(engine::state& s, std::size_t steps, slice_limit& slice) {
    const bool more = s.env.free_some(steps, slice);
    if (!ends_snapshot(s)) return more;
    if (slice.is_over()) return true;
    constexpr std::size_t entries_a_bucket = 8;
    if (s.snapshot->clear_some(steps / entries_a_bucket + 1, slice)) return true;
    s.snapshot.reset();
    s.note_obstacle_ended();
    return more;
}

bool evict_some(engine::state& s, std::size_t, slice_limit& slice) {
    const std::uint64_t before = s.env.counters.evicted_keys;
    const bool is_later = s.make_room(slice) == engine::state::room::later;
    s.note_limit();
    // Where nothing is left to evict another turn changes nothing.
    return (is_later || s.env.counters.evicted_keys != before) && is_over_limit(s);
}

// Within a script no key goes by itself.
bool may_sweep(const engine::state& s) noexcept {
    constexpr auto keeping = slow_path::replica | slow_path::loading | slow_path::pause;
    return s.sweeps && (s.slow_path & keeping) == 0 && !scripting::is_late(s);
}

// Of a replica, which leaves all other keys to its master.
bool has_own_expirations(const engine::state& s) {
    constexpr auto keeping = slow_path::loading | slow_path::pause;
    return s.sweeps && (s.slow_path & keeping) == 0 && !scripting::is_late(s) &&
           s.replicating != nullptr && s.replicating->expirations().is_due(s.env.now_ms);
}

bool sweep_keys(engine::state& s, std::size_t steps, slice_limit& slice) {
    keyspace* one = nullptr;
    for (std::size_t tried = 0; one == nullptr && tried < engine::databases; ++tried) {
        keyspace* const next = s.keyspaces[s.upkeep_database].get();
        s.upkeep_database = (s.upkeep_database + 1) % engine::databases;
        if (next != nullptr && next->expiring() > 0) one = next;
    }
    if (one == nullptr) return false;
    statistics& n = s.env.counters;
    const std::int64_t began_ns = slice.seen_ns();
    const keyspace::swept done = one->sweep(steps, slice);
    const std::int64_t ended_ns = slice.is_over() ? slice.seen_ns() : slice.read_clock();
    n.sweep_ns += static_cast<std::uint64_t>(ended_ns - began_ns);
    n.sweeps_cut += slice.is_over() ? 1 : 0;
    // As Redis does it: each sweep moves the average by a part.
    constexpr double part = 0.05;
    const double share =
        done.expiring == 0 ? 0
                           : static_cast<double>(done.removed) / static_cast<double>(done.expiring);
    n.expired_share += (share - n.expired_share) * part;
    s.swept_share = share_of(s, done.passed);
    // A database full of expired keys is worth another round at once.
    return done.many;
}

struct upkeep_part {
    bool (*has_work)(const engine::state&);
    bool (*work)(engine::state&, std::size_t steps, slice_limit&);  // true: there is more
};
constexpr upkeep_part upkeep_parts[] = {
    {[](const engine::state& s) { return s.env.discarded() > 0 || ends_snapshot(s); }, free_some},
    {[](const engine::state& s) {
         return s.options.max_memory != 0 && is_over_limit(s) && !scripting::is_late(s);
     },
     evict_some},
    {[](const engine::state& s) {
         return may_sweep(s) && std::ranges::any_of(s.keyspaces, [](const auto& each) {
                    return each != nullptr && each->expiring() > 0;
                });
     },
     sweep_keys},
    {[](const engine::state& s) { return may_sweep(s) && has_fields_to_end(s); }, sweep_fields},
    {has_own_expirations,
     [](engine::state& s, std::size_t steps, slice_limit& slice) {
         return s.replicating->expirations().expire_some(
             s.env, s.keyspaces, steps, slice,
             [&s](keyspace& in, keyspace::slot* place, std::uint64_t hash) {
                 return expire_fields(s, in, place, hash, fields_expired_by_command);
             });
     }},
    {is_over_tracking_limit, shrink_tracking_table}};

}  // namespace

double engine::swept_share() const noexcept { return state_->swept_share; }

bool engine::upkeep(std::size_t steps) {
    state& s = *state_;
    s.swept_share = 1;
    static_cast<void>(is_client_paused(s));
    slice_limit slice(s.env.slice_time, longest_slice_ns);
    const std::size_t first = s.upkeep_part;
    bool more = false;
    for (std::size_t i = 0; i < std::size(upkeep_parts); ++i) {
        const std::size_t turn = (first + i) % std::size(upkeep_parts);
        const upkeep_part& its = upkeep_parts[turn];
        if (!its.has_work(s)) continue;
        if (slice.is_over()) {
            // Who takes the whole slice takes it from nobody twice.
            s.upkeep_part = turn;
            more = true;
            break;
        }
        more |= its.work(s, steps, slice);
    }
    // Those who wait for a key may have been told that one expired.
    if (s.has_effects && !scripting::is_late(s)) serve_waiting(s);
    if (!s.tracking.changes.empty()) send_broadcasts(s);
    return more;
}

bool engine::wind_up() {
    EDDY_ASSERT(state_->sessions.empty());
    state_->env.observer = nullptr;
    for (const auto& each : state_->keyspaces) {
        if (each != nullptr && each->size() > 0) each->clear();
    }
    return upkeep();
}

bool engine::script_is_late() const noexcept { return scripting::is_late(*state_); }

// Those that a script_gap has wait go on with its end.
static bool ends_script_waits(const engine::state& s) noexcept {
    return !s.script_waits.empty() && (s.slow_path & slow_path::script) == 0;
}

bool engine::script_is_busy() const noexcept { return scripting::is_busy(*state_); }

bool engine::script_is_late(const session& of) const noexcept {
    return of.blocked && of.extras->waits_for == wait_kind::script;
}

bool engine::is_behind() const noexcept {
    const state& s = *state_;
    return s.some_wait_for_snapshot || scripting::is_late(s) || ends_script_waits(s);
}

void engine::go_on() {
    state& s = *state_;
    if (scripting::is_late(s))
        scripting::go_on(s);
    else if (ends_script_waits(s))
        end_script_waits_in_turn(s);
    if (!s.tracking.changes.empty()) send_broadcasts(s);
    if (s.some_wait_for_snapshot && (s.snapshot == nullptr || s.snapshot->write_ahead()))
        end_snapshot_waits(s);
}

std::size_t engine::used_memory() const noexcept { return state_->used_memory(); }

statistics engine::stats() const noexcept {
    const state& s = *state_;
    statistics all = s.env.counters;
    for (const auto& each : s.keyspaces) {
        if (each == nullptr) continue;
        all.keys += each->size();
        all.keys_with_expiry += each->expiring();
    }
    all.fields_with_expiry = s.env.fields == nullptr ? 0 : s.env.fields->size();
    all.used_memory = s.used_memory();
    all.peak_memory = std::max(s.peak_memory, all.used_memory);
    all.reserved_memory = s.env.memory.reserved_bytes();
    return all;
}

session::session(engine& at, std::string_view from, std::string_view to)
    : home(at), address(from), local_address(to) {
    engine::state& s = home.internals();
    id = s.next_session_id++;
    created_us = last_used_us = s.env.now_us;
    use_default_user(s, *this);
    s.sessions.push_back(*this);
    ++s.env.counters.sessions;
    ++s.env.counters.total_sessions;
}

session::session(engine& at, internal) : home(at), id(0), created_us(0), last_used_us(0) {}

session::~session() {
    engine::state& s = home.internals();
    // Also one of the engine's own may be in the middle of it: of a file that is given up.
    scripting::forget(s, *this);
    if (id == 0) return;
    if (s.hooked != nullptr) s.hooked->forget(*this);
    unlink();
    if (s.executing == this) s.executing = nullptr;
    --s.env.counters.sessions;
    stop_monitoring(s, *this);
    forget_tracked(s, *this);
    if (extras == nullptr) return;
    forget_wait(s, *this);
    if (s.replicating != nullptr) s.replicating->forget(*this);
    unsubscribe_all(s, *this);
    drop_transaction(s, *this);
}

}  // namespace eddy::cache
