// Waits for on_miss, recording of changes for the other hooks, and the application of answers.
#include "cache/read_through/read_through.hpp"

#include <eddy/base/assert.hpp>

#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {
namespace {

// True if the command reads a string, or its presence, also to compute what it writes: INCR of an
// evicted key must not begin at zero.
bool reads_string(const call& c) noexcept {
    if ((c.spec->flags & command_flag::reads_by_option) != 0) {
        for (std::size_t i = 3; i < c.count; ++i) {
            const std::string_view option = c.arg(i);
            if (is_word(option, "nx") || is_word(option, "xx") || is_word(option, "get") ||
                is_word(option, "ifeq") || is_word(option, "ifne") || is_word(option, "ifdeq") ||
                is_word(option, "ifdne"))
                return true;
        }
        return false;
    }
    return (c.spec->flags & command_flag::reads_string) != 0;
}

constexpr std::string_view failed_text =
    "ERR on_miss failed for a key of this command: the cache's log says why";
constexpr std::string_view timeout_text =
    "ERR on_miss did not answer in time for a key of this command, see --hook-deadline";
constexpr std::string_view crowded_text =
    "ERR too many keys wait for on_miss already, see --hook-max-misses";
constexpr std::string_view evicted_text =
    "ERR a key of this command was removed as often as on_miss brought it, for want of memory or "
    "of "
    "time to live";
constexpr std::string_view no_room_text =
    "OOM a key of this command was found by on_miss, but used memory > 'maxmemory'.";
constexpr std::string_view full_text =
    "ERR too many changes wait for the hooks, see --hook-queue: this one was not made";

// A loaded key lives at least so long, so that the command that requested it finds it.
constexpr std::int64_t shortest_ttl_ms = 100;
constexpr std::int64_t longest_ttl_ms = std::int64_t{100} * 366 * 86'400 * 1000;
// Retry period of results that a late script or a pause postpones.
constexpr std::int64_t postponement_us = 10'000;

static_assert(engine_databases <= 256);
std::string scoped_key(unsigned database, std::string_view key) {
    std::string name;
    name.reserve(1 + key.size());
    name += static_cast<char>(database);
    name += key;
    return name;
}
unsigned database_of(std::string_view scoped) noexcept {
    return static_cast<unsigned char>(scoped.front());
}
std::string_view key_of(std::string_view scoped) noexcept { return scoped.substr(1); }

template <class F>
void for_each_key(const call& c, F&& what) {
    for_each_fixed_key(*c.spec, {c.args, c.count}, what);
    // MSETEX.
    if ((c.spec->flags & command_flag::reads_by_option) == 0 || c.spec->first_key > 0) return;
    const auto found = find_key_arguments(*c.spec, {c.args, c.count});
    for (std::size_t i = 0; found && i < found->size(); ++i) what(c.arg((*found)[i].index));
}

}  // namespace

read_through::read_through(engine_state& home, const hook_options& options, hook_host& host)
    : home_(home),
      options_(options),
      host_(host),
      queue_(options.queue),
      stale_(options.max_stale_bytes, options.stale_for_us),
      absent_(max_negative_bytes) {}

read_through::~read_through() = default;

read_through& read_through::attach(engine& to, const hook_options& options, hook_host& host) {
    engine_state& s = to.internals();
    s.hooked = std::make_unique<read_through>(s, options, host);
    s.clients.slow_path |= slow_path::read_through;
    s.note_observers();
    return *s.hooked;
}

/// True while another server's or a file's data is loaded or replicated here.
bool read_through::rests() const noexcept {
    return (home_.clients.slow_path & (slow_path::replica | slow_path::loading)) != 0;
}

/// True if keys may be added or removed now: this is a change, which is propagated.
bool read_through::may_change_keys() const noexcept {
    return (home_.clients.slow_path & slow_path::pause) == 0 && !scripting::is_late(home_);
}

read_through::verdict read_through::before(call& c, std::uint64_t flags) {
    if (rests()) [[unlikely]] {
        forget(c.client);
        return verdict::run;
    }
    const bool writes = writes_keys(flags);
    if (writes && queue_.is_full() && (options_.has_write || options_.has_delete)) [[unlikely]]
        return look_for_room(c);
    auto found = verdict::run;
    if (options_.has_miss)
        found = look_for_misses(c, writes);
    else
        waiters_.erase(&c.client);
    if (found == verdict::run && options_.has_delete && writes) note_deletions(c);
    return found;
}

/// A deletion is meant for the backend, too, even if the key is not in the cache.
void read_through::note_deletions(const call& c) {
    if ((c.spec->flags & command_flag::deletes_keys) == 0) return;
    // A conditional deletion of a missing key is none.
    if ((c.spec->flags & command_flag::reads_string) != 0 && c.count > 2) return;
    for_each_key(c, [&](std::string_view key) {
        if (c.keys->find_to_read(key) == nullptr)
            key_happened(c.keys->number(), key_event::generic, "del", key);
    });
}

read_through::verdict read_through::look_for_room(call& c) {
    waiter& own = waiters_[&c.client];
    if (options_.refuses_when_full || own.room_refused) {
        ++counts_.refused;
        return refuse(c, full_text);
    }
    own.for_room = true;
    waiting_for_room_.insert(&c.client);
    block(c.client, own);
    return verdict::wait;
}

read_through::verdict read_through::look_for_misses(call& c, bool writes) {
    if (writes && stale_.any_back()) {
        // A transaction or a script may write any key.
        if (c.spec->first_key <= 0) {
            for (const std::string& scoped : stale_.keys_back()) take_back_stale(scoped);
        } else {
            drop_stale_keys(c);
        }
    }
    const auto known = waiters_.find(&c.client);
    waiter* own = known == waiters_.end() ? nullptr : &known->second;
    if (reads_string(c))
        for_each_key(c, [&](std::string_view key) { look_for(c, own, key, writes); });
    if (own == nullptr) return verdict::run;
    if (!own->refusal.empty()) return refuse(c, own->refusal);
    if (own->misses.empty()) {
        waiters_.erase(&c.client);
        return verdict::run;
    }
    ++own->rounds;
    block(c.client, *own);
    return verdict::wait;
}

read_through::verdict read_through::refuse(call& c, std::string_view why) {
    forget(c.client);
    c.error(why);
    return verdict::refused;
}

void read_through::look_for(call& c, waiter*& own, std::string_view key, bool writes) {
    if (c.keys->find_to_read(key) != nullptr) return;
    const std::string scoped = scoped_key(c.keys->number(), key);
    if (const key_change* const change = queue_.find(scoped)) {
        if (change->what == key_change::kind::erase) return;
        if (change->what == key_change::kind::write) {
            // Evicted before its change was delivered.
            const std::int64_t at_ms = change->expires_at_ms;
            if (at_ms != no_expiry && at_ms <= home_.data.env.now_ms) return;
            // Otherwise the miss waits for the delivery, and then queries the backend.
            if (may_change_keys()) {
                const std::int64_t ttl_ms = at_ms == no_expiry ? 0 : at_ms - home_.data.env.now_ms;
                return store(scoped, *change->value, ttl_ms);
            }
        }
    }
    if (own != nullptr && own->absent.contains(scoped)) return;
    if (absent_.has(scoped, home_.data.env.steady_us)) {
        ++counts_.negative;
        return;
    }
    if (own == nullptr) own = &waiters_[&c.client];
    own->writes = writes;
    if (own->rounds >= max_rounds)
        own->refusal = evicted_text;
    else
        ask(*own, c.client, scoped);
}

void read_through::ask(waiter& own, client_session& who, std::string_view scoped) {
    auto found = misses_.find(scoped);
    if (found == misses_.end()) {
        if (misses_.size() >= options_.max_misses) {
            ++counts_.refused;
            return fail(own, scoped, crowded_text);
        }
        auto made = std::make_unique<miss>();
        made->key = scoped;
        made->id = next_id_++;
        unasked_.emplace(made->id, made.get());
        found = misses_.emplace(made->key, std::move(made)).first;
        host_.hook_work_came();
    } else if (!found->second->waiting.contains(&who)) {
        ++counts_.joined;
    }
    found->second->waiting.insert(&who);
    own.misses.insert(found->second.get());
}

/// Result of a miss without an answer of on_miss, for one session.
void read_through::fail(waiter& of, std::string_view scoped, std::string_view why) {
    // A write based on a guess would reach the backend.
    if (!of.writes && options_.fallback == hook_fallback::nil) {
        of.absent.emplace(scoped);
        return;
    }
    if (!of.writes && options_.fallback == hook_fallback::stale && may_change_keys()) {
        const std::int64_t now_us = home_.data.env.steady_us;
        if (stale_values::value* const old = stale_.find_usable(scoped, now_us)) {
            if (old->is_back) return;
            const std::int64_t left_ms = (old->until_us - now_us) / 1000;
            store(scoped, old->text, std::clamp<std::int64_t>(left_ms, 1, stale_retry_ms));
            stale_.set_back(*old, true);
            ++counts_.stale;
            return;
        }
    }
    of.refusal = why;
}

/// Removes stale values before a write command sees them.
void read_through::drop_stale_keys(const call& c) {
    for_each_key(c, [&](std::string_view key) {
        const std::string scoped = scoped_key(c.keys->number(), key);
        take_back_stale(scoped);
    });
}

void read_through::take_back_stale(std::string_view scoped) {
    stale_values::value* const old = stale_.find(scoped);
    if (old == nullptr || !old->is_back) return;
    // FLUSHALL and SWAPDB are not tracked: the key may have another value now.
    keyspace& keys = home_.data.database(database_of(scoped));
    const std::string_view key = key_of(scoped);
    const entry* const there = keys.look_at(key);
    text_view text;
    const bool is_there = there != nullptr && there->type == value_type::string &&
                          text(*there) == old->text && there->expiry() != no_expiry &&
                          there->expiry() <= home_.data.env.now_ms + stale_retry_ms;
    // An expired one is removed by the lookup, and must count as put back until then: other
    // expirations are kept as new stale values, and queued.
    const std::uint64_t hash = home_.data.env.hash(key);
    if (is_there && keys.find_to_read(key, hash) != nullptr) {
        const recorded_alone told(home_, keys.number(), {"DEL", key});
        keys.remove(key, hash);
        notify_trackers(key);
    }
    if (stale_values::value* const kept = stale_.find(scoped)) stale_.set_back(*kept, false);
}

/// Clients with a cache of their own get an invalidation: the value may differ from theirs.
void read_through::notify_trackers(std::string_view key) {
    if ((home_.clients.observers & observers::trackers) != 0) invalidate(home_, key, nullptr);
}

void read_through::block(client_session& who, waiter& own) {
    if (own.deadline_us == 0) own.deadline_us = home_.data.env.steady_us + options_.deadline_us;
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::hook;
    extras.deadline_us = own.deadline_us;
    who.blocked = true;
}

void read_through::wake(client_session& who) {
    forget_wait(home_, who);
    who.wake();
}

void read_through::wake_for_room() {
    if (waiting_for_room_.empty() || queue_.is_full()) return;
    const auto all = std::exchange(waiting_for_room_, {});
    for (client_session* const each : all) {
        waiters_[each].for_room = false;
        wake(*each);
    }
}

/// The session waits for nothing any more.
void read_through::leave(client_session& who, waiter& of) {
    for (miss* const each : of.misses) {
        each->waiting.erase(&who);
        let_go(*each);
    }
    of.misses.clear();
    if (of.for_room) waiting_for_room_.erase(&who);
    of.for_room = false;
}

/// Drops a miss without waiting sessions, unless a script processes it.
void read_through::let_go(miss& of) {
    if (of.running || !of.waiting.empty()) return;
    unasked_.erase(of.id);
    misses_.erase(misses_.find(of.key));
}

void read_through::forget(client_session& who) {
    const auto found = waiters_.find(&who);
    if (found == waiters_.end()) return;
    leave(who, found->second);
    waiters_.erase(found);
}

void read_through::end_wait(client_session& who) {
    waiter& own = waiters_[&who];
    ++counts_.timeouts;
    if (own.for_room) own.room_refused = true;
    for (const miss* const each : own.misses) fail(own, each->key, timeout_text);
    leave(who, own);
    wake(who);
}

void read_through::store(std::string_view scoped, std::string_view value, std::int64_t ttl_ms) {
    if (rests()) return;
    keyspace& keys = home_.data.database(database_of(scoped));
    const std::string_view key = key_of(scoped);
    const std::uint64_t hash = home_.data.env.hash(key);
    if (keys.find_to_read(key, hash) != nullptr) return;
    keyspace::slot* const place = keys.put_text(nullptr, key, hash, value);
    const std::int64_t ends_ms = home_.data.env.now_ms + std::min(ttl_ms, longest_ttl_ms);
    if (ttl_ms > 0) keys.set_expiry(place, ends_ms);
    if (ttl_ms > 0)
        propagate_alone(home_, keys.number(), {"SET", key, value, "PXAT", decimal(ends_ms)});
    else
        propagate_alone(home_, keys.number(), {"SET", key, value});
    notify_trackers(key);
}

void read_through::key_happened(unsigned database, key_event kind, std::string_view name,
                                std::string_view key) {
    const std::string scoped = scoped_key(database, key);
    if (kind == key_event::expired || kind == key_event::evicted) {
        // The value is still there, and its write must be delivered.
        if (dirty_.contains(scoped)) queue_changes();
        if (const key_change* const change = queue_.find(scoped);
            change != nullptr && change->what == key_change::kind::write && !change->value)
            queue_.fill(scoped, value_of(scoped));
        if (kind == key_event::expired) return expired(database, key, scoped);
        if (stale_values::value* const old = stale_.find(scoped)) stale_.set_back(*old, false);
        return;
    }
    absent_.remove(scoped);
    stale_.forget(scoped);
    if (const auto found = misses_.find(scoped); found != misses_.end()) {
        // Waiting sessions see the key's new state.
        miss& asked = *found->second;
        asked.superseded = true;
        for (client_session* const each : std::exchange(asked.waiting, {})) {
            waiter& its = waiters_[each];
            its.misses.erase(&asked);
            if (its.misses.empty()) wake(*each);
        }
        let_go(asked);
    }
    if (rests()) return drop_without_value(scoped);
    if (!options_.has_write && !options_.has_delete) return;
    // SUNIONSTORE and the like may have replaced a string by another type, and a removed key may be
    // created again as another type before the command, or transaction, has ended.
    const bool may_be_other = name == "del" || name == "rename_from" || name == "move_from" ||
                              name == "rename_to" || name == "copy_to" || name == "move_to" ||
                              name == "restore" || name.ends_with("store");
    if (kind != key_event::string && kind != key_event::generic && !may_be_other) return;
    // Not every change is part of a command, at the end of which queue_changes() is called.
    if (dirty_.empty()) host_.hook_work_came();
    dirty_[scoped] |= may_be_other;
}

void read_through::expired(unsigned database, std::string_view key, std::string_view scoped) {
    if (stale_values::value* const old = stale_.find(scoped); old != nullptr && old->is_back) {
        stale_.set_back(*old, false);
        return;
    }
    if (rests()) return;
    if (options_.fallback == hook_fallback::stale && options_.has_miss) {
        const entry* const gone = home_.data.database(database).look_at(key);
        text_view text;
        if (gone != nullptr && gone->type == value_type::string)
            stale_.keep(scoped, text(*gone), home_.data.env.steady_us);
    }
    if (!options_.has_expire) return;
    queue_.add(scoped, {key_change::kind::expire, nullptr, 0});
    host_.hook_work_came();
}

void read_through::queue_changes() {
    if (dirty_.empty()) [[likely]]
        return;
    for (const auto& [scoped, may_be_other] : dirty_) {
        const entry* const now = home_.data.database(database_of(scoped)).look_at(key_of(scoped));
        if (now != nullptr && now->type == value_type::string) {
            if (!options_.has_write) continue;
            text_view text;
            const std::string_view value = text(*now);
            key_change change{key_change::kind::write, nullptr, now->expiry(), value.size()};
            if (value.size() <= copied_at_once)
                change.value = std::make_shared<const std::string>(value);
            queue_.add(scoped, std::move(change));
        } else if (options_.has_delete && (now == nullptr || may_be_other)) {
            queue_.add(scoped, {key_change::kind::erase, nullptr, 0});
        } else if (now == nullptr || may_be_other) {
            // Without on_delete neither the deletion nor the previous state is delivered.
            queue_.drop(scoped);
        }
    }
    dirty_.clear();
    if (queue_.has_due()) host_.hook_work_came();
}

/// Drops a change that was queued before this server became a replica, if the master's commands
/// have removed the key before its value was copied.
void read_through::drop_without_value(std::string_view scoped) {
    const key_change* const queued = queue_.find(scoped);
    if (queued == nullptr || queued->what != key_change::kind::write || queued->value) return;
    const entry* const now = home_.data.database(database_of(scoped)).look_at(key_of(scoped));
    if (now == nullptr || now->type != value_type::string) queue_.drop(scoped);
}

std::shared_ptr<const std::string> read_through::value_of(std::string_view scoped) {
    const entry* const now = home_.data.database(database_of(scoped)).look_at(key_of(scoped));
    // Invariant: every change and removal of a key is noted, so a queued write without its value
    // has a string, or was replaced or dropped.
    EDDY_ASSERT(now != nullptr && now->type == value_type::string);
    text_view text;
    return std::make_shared<const std::string>(text(*now));
}

void read_through::keep_values() {
    queue_changes();
    queue_.for_each_unfilled(
        [this](const std::string& scoped) { queue_.fill(scoped, value_of(scoped)); });
}

bool read_through::take(hook_job& job) {
    queue_changes();
    const bool changes_first = change_has_turn_;
    if (changes_first && take_change(job)) return true;
    if (take_miss(job)) {
        change_has_turn_ = true;
        return true;
    }
    return !changes_first && take_change(job);
}

bool read_through::take_miss(hook_job& job) {
    while (!unasked_.empty()) {
        miss& next = *unasked_.begin()->second;
        unasked_.erase(unasked_.begin());
        if (queue_.is_failing(next.key)) {
            answer(next, {.id = next.id, .failed = true, .value = {}, .ttl_ms = {}});
            continue;
        }
        if (queue_.find(next.key) != nullptr) {
            next.parked = true;
            continue;
        }
        next.running = true;
        running_misses_.emplace(next.id, next.key);
        job.id = next.id;
        job.what = hook_job::kind::miss;
        job.database = database_of(next.key);
        job.key = key_of(next.key);
        job.value = nullptr;
        job.ttl_ms = 0;
        return true;
    }
    return false;
}

bool read_through::take_change(hook_job& job) {
    change_has_turn_ = false;
    std::string scoped;
    key_change change;
    if (!queue_.take(scoped, change)) return false;
    if (change.what == key_change::kind::write && !change.value) {
        change.value = value_of(scoped);
        queue_.fill(scoped, change.value);
    }
    job.id = next_id_++;
    switch (change.what) {
        case key_change::kind::write: job.what = hook_job::kind::write; break;
        case key_change::kind::erase: job.what = hook_job::kind::erase; break;
        case key_change::kind::expire: job.what = hook_job::kind::expire; break;
    }
    job.database = database_of(scoped);
    job.key = key_of(scoped);
    job.value = std::move(change.value);
    job.ttl_ms = change.expires_at_ms == no_expiry
                     ? 0
                     : std::max<std::int64_t>(change.expires_at_ms - home_.data.env.now_ms, 1);
    running_changes_.emplace(job.id, std::move(scoped));
    return true;
}

void read_through::finish(hook_result&& result) {
    // While a script is suspended nothing changes, and while writes are paused no key is added or
    // removed.
    if (scripting::is_late(home_) || (!may_change_keys() && running_misses_.contains(result.id))) {
        postponed_.push_back(std::move(result));
        return;
    }
    if (result.failed) ++counts_.failed;
    if (const auto found = running_misses_.find(result.id); found != running_misses_.end()) {
        const std::string scoped = std::move(found->second);
        running_misses_.erase(found);
        ++counts_.misses;
        return answer(*misses_.find(scoped)->second, std::move(result));
    }
    const auto found = running_changes_.find(result.id);
    EDDY_ASSERT(found != running_changes_.end());
    const std::string scoped = std::move(found->second);
    running_changes_.erase(found);
    change_delivered(scoped, !result.failed);
}

void read_through::answer(miss& of, hook_result&& result) {
    of.running = false;
    const std::string& scoped = of.key;
    const std::size_t longest = home_.settings.options.max_text;
    const bool has_no_room = !result.failed && !of.superseded && result.value &&
                             home_.settings.options.max_memory != 0 && !home_.make_room();
    const bool failed =
        result.failed || has_no_room || (result.value && result.value->size() > longest);
    if (!failed && !of.superseded) {
        take_back_stale(scoped);
        stale_.forget(scoped);
        if (result.value) {
            const std::int64_t ttl_ms = result.ttl_ms.value_or(0);
            store(scoped, *result.value, ttl_ms > 0 ? std::max(ttl_ms, shortest_ttl_ms) : 0);
        } else {
            const std::int64_t known_us =
                result.ttl_ms ? std::clamp<std::int64_t>(*result.ttl_ms, 0, longest_ttl_ms) * 1000
                              : options_.negative_ttl_us;
            if (known_us > 0) absent_.add(scoped, home_.data.env.steady_us + known_us);
        }
    }
    for (client_session* const each : std::exchange(of.waiting, {})) {
        waiter& its = waiters_[each];
        its.misses.erase(&of);
        if (failed)
            fail(its, scoped, has_no_room ? no_room_text : failed_text);
        else if (!of.superseded && !result.value)
            its.absent.insert(scoped);
        if (!its.refusal.empty()) leave(*each, its);
        if (its.misses.empty()) wake(*each);
    }
    let_go(of);
    if (!home_.clients.tracking.changes.empty()) send_broadcasts(home_);
}

void read_through::change_delivered(const std::string& scoped, bool succeeded) {
    queue_.finish(scoped, succeeded, home_.data.env.steady_us);
    if (const auto found = misses_.find(scoped); found != misses_.end() && found->second->parked) {
        miss& held_up = *found->second;
        if (queue_.is_failing(scoped)) {
            answer(held_up, {.id = held_up.id, .failed = true, .value = {}, .ttl_ms = {}});
        } else if (queue_.find(scoped) == nullptr) {
            held_up.parked = false;
            unasked_.emplace(held_up.id, &held_up);
            host_.hook_work_came();
        }
    }
    wake_for_room();
    if (queue_.has_due()) host_.hook_work_came();
}

std::int64_t read_through::next_due_us() const noexcept {
    const std::int64_t retry_us = queue_.next_retry_us();
    return postponed_.empty() ? retry_us
                              : std::min(retry_us, home_.data.env.steady_us + postponement_us);
}

void read_through::tick() {
    queue_.release(home_.data.env.steady_us);
    // Ends a pause that no command checks.
    static_cast<void>(is_client_paused(home_));
    if (!postponed_.empty() && !scripting::is_late(home_)) {
        for (hook_result& each : std::exchange(postponed_, {})) finish(std::move(each));
    }
    if (queue_.has_due()) host_.hook_work_came();
}

bool read_through::flushed() {
    queue_changes();
    return queue_.empty();
}

hook_counts read_through::counts() const {
    hook_counts all = counts_;
    all.waiting = waiters_.size();
    all.asked = misses_.size();
    all.queued_keys = queue_.keys();
    all.queued_bytes = queue_.bytes();
    all.changes = queue_.count();
    return all;
}

}  // namespace eddy::cache
