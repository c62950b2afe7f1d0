// Lane execution: commands that a lane executes, commands that it leaves to the exclusive path, and
// merging of its counters.
#include "cache/engine/lane.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/planner.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

std::size_t number_of(const command_spec& what) noexcept {
    return static_cast<std::size_t>(&what - all_commands().data());
}

bool is_write(const command_spec& what) noexcept { return (what.flags & command_flag::write) != 0; }

}  // namespace

// State of a lane while it executes a batch. The destructor merges its counts.
struct lane::turn {
    turn(lane& by, std::size_t database) noexcept
        : its(by), keys(by.keys_[database]), memory(by.stock_) {
        its.has_run_ = true;
    }
    ~turn() {
        its.count_running();
        its.note_contention();
        keys.keys += held.counted().keys;
        keys.expiring += held.counted().expiring;
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

    lane& its;
    dictionary::holding::counts& keys;
    slab::stock::use memory;
    dictionary::holding held;
};

lane::lane(engine& of)
    : state_(of.internals()),
      stock_(state_.data.env.memory),
      calls_(all_commands().size()),
      untimed_(all_commands().size()) {
    called_.reserve(all_commands().size());
    large_.reserve(most_large);
    state_.lanes.push_back(this);
    of.merge_lanes();
}

lane::~lane() {
    merge_counters();
    std::erase(state_.lanes, this);
}

// Reads concern neither files and replicas nor observers of changes.
lane::permitted lane::may_run(const client_session& who, const keyspace* keys) const noexcept {
    const engine_state& s = state_;
    // Output caused by other sessions must precede the replies.
    const bool has_output = who.extras != nullptr && !who.extras->outbox.empty();
    if (keys == nullptr || keys->size() < least_keys || who.special != 0 || has_output ||
        !who.unlimited || who.blocked || who.closing ||
        s.settings.options.mode == access_mode::readonly ||
        s.settings.options.clients.output[0].hard != 0) {
        return permitted::nothing;
    }
    if (s.clients.slow_path == 0 && s.clients.observers == 0) return permitted::all;
    constexpr std::uint16_t of_writes = slow_path::propagates | slow_path::save_trouble |
                                        slow_path::snapshot | slow_path::migration;
    constexpr auto of_reads = static_cast<std::uint32_t>(key_event::key_miss);
    const bool may_read =
        (s.clients.slow_path & ~of_writes) == 0 && (s.clients.observers & of_reads) == 0;
    return may_read ? permitted::reads : permitted::nothing;
}

lane::outcome lane::execute(client_session& who, std::span<const resp::command> commands,
                            byte_buffer& out) {
    engine_state& s = state_;
    keyspace* const keys = s.data.keyspaces[who.db].get();
    permitted_ = may_run(who, keys);
    if (permitted_ == permitted::nothing) {
        batches_left_ = batches_without_use;
        return {.is_over = false};
    }
    turn mine(*this, who.db);
    resp::reply_writer reply(out, who.protocol);
    call c{s, who, reply, keys};
    c.apart = &counts_;
    planner planner(s.data.env.hash, s.settings.renamed.get(), false);
    who.last_used_us = s.data.env.now_us;

    planned plans[engine::max_batch];
    outcome done;
    while (done.is_over && done.executed < commands.size()) {
        const resp::command* const next = commands.data() + done.executed;
        const std::size_t most = std::min(commands.size() - done.executed, engine::max_batch);
        std::size_t batch = 0;
        is_of_one_key_ = true;
        for (; batch < most; ++batch) {
            planned& its = plans[batch] = planner.plan(next[batch]);
            if (!is_permitted(its.spec)) break;
            is_of_one_key_ = is_of_one_key_ && its.hash == plans[0].hash;
            keys->prefetch_to_hold(its.hash);
        }
        for (std::size_t i = 0; i < batch; ++i)
            keys->prefetch_entry(plans[i].hash, is_write(*plans[i].spec));
        for (std::size_t i = 0; i < batch && done.is_over;) {
            const std::size_t taken = take_some(c, {plans + i, batch - i}, mine.held);
            for (const std::size_t end = i + std::max<std::size_t>(taken, 1); i < end; ++i) {
                if (done.executed > 0 && out.size() >= s.settings.options.max_pending_reply)
                    return done;
                c.executed_in_batch = done.executed;
                done.is_over = taken > 0 && run(c, next[i], plans[i], mine.held);
                if (!done.is_over) break;
                ++done.executed;
            }
            mine.held.give_back();
        }
        if (batch < most) done.is_over = false;
    }
    note_use(done);
    return done;
}

// If another thread held the key, the next batch may succeed.
void lane::note_use(const outcome& of) noexcept {
    if (of.executed > 0 || is_contended_) {
        useless_ = 0;
    } else if (++useless_ >= most_useless) {
        useless_ = most_useless - 1;
        batches_left_ = batches_without_use;
    }
}

bool lane::is_permitted(const command_spec* what) const noexcept {
    return what != nullptr && (what->flags & command_flag::local) != 0 &&
           (permitted_ == permitted::all || !is_write(*what));
}

// Locks the buckets of the next few commands' first keys; returns the number of these commands.
// Locking a bucket makes the processor wait for all memory operations before it: several in a row
// cost as much as one.
[[gnu::always_inline]] inline std::size_t lane::take_some(const call& c,
                                                          std::span<const planned> next,
                                                          dictionary::holding& held) noexcept {
    std::size_t taken = 0;
    for (; taken < std::min(next.size(), most_taken); ++taken) {
        // Other lanes may have released it by the time the commands before it are done.
        if (!held.take(c.keys->table(), next[taken].hash)) {
            is_contended_ = taken == 0;
            break;
        }
    }
    return taken;
}

// Checks the needs of a command beyond its key's value: growth of the table, removal of an expired
// key, freeing of a value in slices.
[[gnu::always_inline]] inline bool lane::may_use(const call& c, std::string_view key,
                                                 std::uint64_t hash, dictionary::holding& held,
                                                 keyspace::slot*& place) {
    const dictionary& table = c.keys->table();
    const environment& env = state_.data.env;
    const bool writes = is_write(*c.spec);
    const bool adds = (c.spec->flags & command_flag::denyoom) != 0;
    place = table.find(key, hash);
    if (place == nullptr) {
        // New keys enter the probation queue, which lanes do not change.
        if (!adds) return true;
        if (env.most_uses != 0 || !held.take_place(table, hash)) return false;
        if (table.is_to_resize(hash)) [[unlikely]]
            note_size(c.keys->number(), hash);
        return true;
    }
    entry& e = *keyspace::at(place);
    if ((*place & dictionary::expires_bit) != 0 && c.keys->is_over(e)) return false;
    if (writes && !adds && table.is_to_resize(hash)) [[unlikely]]
        note_size(c.keys->number(), hash);
    if (e.held_as > encoding::integer &&
        (e.held_as == encoding::timed_table || (writes && is_freed_in_slices(e)))) {
        return false;
    }
    return true;
}

[[gnu::always_inline]] inline bool lane::take_keys(call& c, dictionary::holding& held) {
    // Commands that add are refused when memory is short, and may add a key; they remove none.
    const bool adds = (c.spec->flags & command_flag::denyoom) != 0;
    if (adds && room_ != SIZE_MAX) {
        std::size_t wanted = stock_.taken();
        for (std::size_t i = 1; i < c.count; ++i) wanted += c.args[i].size();
        if (wanted > room_) return false;
    }
    if (!note_taken(held.take_more(c.keys->table(), c.hash), held) ||
        !may_use(c, c.args[1], c.hash, held, c.known)) {
        return false;
    }
    if (c.spec->last_key == 1) [[likely]]
        return true;
    for (std::size_t i = 2; i < c.count; ++i) {
        const std::uint64_t hash = c.keys->hash(c.args[i]);
        keyspace::slot* place = nullptr;
        if (!note_taken(held.take(c.keys->table(), hash), held) ||
            !may_use(c, c.args[i], hash, held, place)) {
            return false;
        }
    }
    return true;
}

// Notes contention: the bucket is locked by another lane. With a full holding, the command has too
// many keys.
bool lane::note_taken(bool taken, const dictionary::holding& held) noexcept {
    is_contended_ = !taken && !held.is_full();
    return taken;
}

// False, with nothing done, when the command must take the exclusive path.
bool lane::run(call& c, const resp::command& what, const planned& plan, dictionary::holding& held) {
    const command_spec* const spec = plan.spec;
    if (!arity_fits(*spec, what.argc) || !state_.slow.skips(spec->flags, what.argc) ||
        large_.size() == most_large) {
        return false;
    }
    c.spec = spec;
    c.args = what.argv;
    c.count = what.argc;
    c.hash = plan.hash;
    c.reply_begin = c.reply.buffer().size();
    if (!take_keys(c, held)) return false;
    // Commands of several keys count uses by themselves.
    entry* const used = state_.data.env.most_uses != 0 && spec->last_key == 1 && c.known != nullptr
                            ? keyspace::at(c.known)
                            : nullptr;
    const std::uint8_t flags_before = used != nullptr ? used->flags : std::uint8_t{0};
    if (used != nullptr) [[unlikely]]
        used->count_use(state_.data.env.most_uses);
    const own_counts before = counts_;
    const std::size_t samples = sample_count_;
    if (spec != running_.what) [[unlikely]]
        run_first(c);
    else
        call_function(c);
    ++running_.calls;
    if (!counts_.fails) [[likely]] {
        if (may_be_large(c)) [[unlikely]]
            note_large(c);
        return true;
    }
    --running_.calls;
    counts_ = before;
    // The command has changed nothing.
    if (used != nullptr) used->flags = flags_before;
    sample_count_ = samples;
    c.reply.buffer().truncate(c.reply_begin);
    return false;
}

void lane::note_size(unsigned database, std::uint64_t hash) noexcept {
    if (noted_count_ == most_noted) return;
    const dictionary& table = state_.data.keyspaces[database]->table();
    for (std::size_t i = 0; i < noted_count_; ++i) {
        if (noted_[i].database == database && table.are_close(noted_[i].hash, hash)) return;
    }
    noted_[noted_count_++] = {database, hash};
}

// Times one command in timed_share, as command_stats does. Of a run of the same command only the
// first is checked.
void lane::run_first(call& c) {
    count_running();
    running_ = {c.spec, 0};
    c.client.last_command = c.spec->name.data();
    if (untimed_[number_of(*c.spec)] > 0 || sample_count_ == most_samples) return call_function(c);
    using namespace std::chrono;
    const auto began = steady_clock::now();
    call_function(c);
    const auto took = duration_cast<nanoseconds>(steady_clock::now() - began).count();
    samples_[sample_count_++] = {c.spec, static_cast<std::uint64_t>(took)};
    untimed_[number_of(*c.spec)] = command_stats::timed_share;
}

// For COMMANDLOG.
void lane::note_large(const call& c) noexcept {
    const command_sizes its = sizes_of(c);
    if (!state_.slow.is_large(its)) return;
    try {
        large_.push_back({record_of(c), its});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then it is not kept
    }
}

void lane::note_contention() noexcept {
    if (!std::exchange(is_contended_, false)) [[likely]] {
        contention_ -= contention_ > 0 ? 1 : 0;
        return;
    }
    contention_ += is_of_one_key_ ? same_key_weight : contention_weight;
    if (contention_ < most_contention) return;
    contention_ /= 2;
    state_.lanes_take_turns_until.store(now_ + turns_last, std::memory_order_relaxed);
}

void lane::count_running() noexcept {
    const auto [what, calls] = std::exchange(running_, {});
    if (calls == 0) return;
    const std::size_t number = number_of(*what);
    if (calls_[number] == 0) called_.push_back(static_cast<std::uint16_t>(number));
    calls_[number] += calls;
    untimed_[number] -= std::min(untimed_[number], calls);
}

void lane::merge_counters() noexcept {
    engine_state& s = state_;
    if (!std::exchange(has_run_, false)) return;
    stock_.merge_counters();
    s.data.env.counters.hits += counts_.hits;
    s.data.env.counters.misses += counts_.misses;
    s.data.changes += counts_.changes;
    counts_ = own_counts();
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        const auto counted = std::exchange(keys_[i], {});
        if (s.data.keyspaces[i] != nullptr) s.data.keyspaces[i]->count_in(counted);
    }
    for (const std::uint16_t number : called_) {
        const std::uint32_t calls = std::exchange(calls_[number], 0);
        s.data.env.counters.commands += calls;
        s.data.env.counters.parallel_commands += calls;
        s.commands.add(all_commands()[number], calls);
    }
    called_.clear();
    for (std::size_t i = 0; i < sample_count_; ++i)
        s.commands.add_sample(*samples_[i].what, samples_[i].took_ns);
    sample_count_ = 0;
    for (large_command& each : large_) {
        try {
            s.slow.keep_large(std::move(each.made), s.data.env.now_us, each.its);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then it is not kept
        }
    }
    large_.clear();
}

// A full segment that is not split takes no more keys from lanes: the exclusive path executes such
// a command, and makes room first. So memory exceeds its limit by at most one segment.
void lane::resize(std::size_t& left) noexcept {
    const std::size_t limit = state_.settings.options.max_memory;
    for (; noted_count_ > 0 && left > 0; --left) {
        if (limit != 0 && state_.used_memory() >= limit) return;
        const segment_of& next = noted_[--noted_count_];
        keyspace* const in = state_.data.keyspaces[next.database].get();
        try {
            if (in != nullptr) in->resize_around(next.hash);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): nothing has changed
        }
    }
}

void engine::merge_lanes() noexcept {
    state& s = *state_;
    for (lane* const each : s.lanes) each->merge_counters();
    std::size_t left = lane::most_resized;
    for (lane* const each : s.lanes) each->resize(left);
    const std::size_t used = s.used_memory();
    s.peak_memory = std::max(s.peak_memory, used);
    const std::size_t limit = s.settings.options.max_memory;
    const std::size_t left_of_it = used < limit ? limit - used : 0;
    const std::size_t room = limit == 0 ? SIZE_MAX : left_of_it / std::max(s.lanes.size(), 1UL);
    // Their cache lines are not written when nothing changes.
    for (lane* const each : s.lanes) {
        if (each->room_ != room) each->room_ = room;
    }
}

}  // namespace eddy::cache
