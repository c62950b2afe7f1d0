// Hooks, engine side: load on miss (on_miss) and write-behind (on_set and the others) by scripts.
// Waits of sessions for keys, the queue of changes, remembered values. The hook_host runs the
// scripts.
//
// A command that reads a string waits, if a key of it is missing, as in a pause: it has not run,
// and is executed again once on_miss has answered for all its keys. An answer is stored as a key,
// or kept with the waiting session. Equal misses are joined. Clients' writes are recorded by key,
// read when the command has ended, and queued (write_behind.hpp). A key whose change is still
// queued is never requested: the queue is newer than the backend.
//
// An answer of a script is propagated to replicas and the append-only file as SET. So while writes
// are paused, answers of on_miss wait for the end of the pause, too. While this server is a
// replica, its hooks rest: only the master uses the backend.
//
// The room read_through stands between the cache and a backend. Files in reading order:
//
//   read_through.hpp        misses, changes, and their results
//   write_behind.hpp        the queue of changes
//   remembered_values.hpp   expired values, and keys that the backend does not have
//
// It stands on keyspace, and on clients and persistence of the same floor.
#pragma once

#include "base/text/text.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/read_through/remembered_values.hpp"
#include "cache/read_through/write_behind.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace eddy::cache {

/// Reply for a missing key when on_miss fails or takes too long.
enum class hook_fallback : std::uint8_t {
    error,
    nil,    ///< null, as for a missing key
    stale,  ///< the value that expired last, else an error
};

struct hook_options {
    // Functions that the script has.
    bool has_miss = false;
    bool has_write = false;
    bool has_delete = false;
    bool has_expire = false;

    hook_fallback fallback = hook_fallback::error;
    std::int64_t deadline_us = 1'000'000;  ///< of a wait, for a miss or for room in the queue
    std::int64_t negative_ttl_us = 0;      ///< lifetime of a remembered miss
    std::size_t max_misses = 10'000;       ///< keys that are requested or queued for a request
    std::int64_t stale_for_us = 600'000'000;
    std::size_t max_stale_bytes = 64U << 20;
    bool refuses_when_full = false;  ///< else write commands wait for room in the queue
    write_behind_options queue;
};

/// Call of a script's function.
struct hook_job {
    enum class kind : std::uint8_t { miss, write, erase, expire };
    std::uint64_t id = 0;
    kind what = kind::miss;
    unsigned database = 0;
    std::string key;
    std::shared_ptr<const std::string> value;  ///< of a write
    std::int64_t ttl_ms = 0;                   ///< of a write; 0: it does not expire
};

/// Result of such a call.
struct hook_result {
    std::uint64_t id = 0;
    bool failed = false;
    std::optional<std::string> value;    ///< of a miss; none: the backend has no such key
    std::optional<std::int64_t> ttl_ms;  ///< of the value, or of the remembered miss
};

struct hook_counts {
    std::uint64_t misses = 0;     ///< on_miss calls that have ended
    std::uint64_t joined = 0;     ///< waits that joined an earlier miss of the same key
    std::uint64_t failed = 0;     ///< calls, of any hook
    std::uint64_t timeouts = 0;   ///< waits that ended by their deadline
    std::uint64_t refused = 0;    ///< misses above max_misses, writes without room
    std::uint64_t stale = 0;      ///< stale values that were put back
    std::uint64_t negative = 0;   ///< remembered misses
    std::size_t waiting = 0;      ///< sessions, now
    std::size_t asked = 0;        ///< requested or queued keys, now
    std::size_t queued_keys = 0;  ///< with undelivered changes, now
    std::size_t queued_bytes = 0;
    write_behind::counts changes;
};

/// Runner of the scripts.
class hook_host {
public:
    /// Called by the engine within a command: read_through::take() has work.
    virtual void hook_work_came() noexcept = 0;

protected:
    ~hook_host() = default;
};

/// One thread, the engine's.
class read_through {
public:
    /// A stale value that was put back stays so long before the backend is queried again.
    static constexpr std::int64_t stale_retry_ms = 1000;
    /// At most so many requests per command: a key may be evicted as soon as it was loaded.
    static constexpr int max_rounds = 8;
    /// A larger value is copied at its delivery, not at each change.
    static constexpr std::size_t copied_at_once = 16U << 10;
    static constexpr std::size_t max_negative_bytes = 16U << 20;

    read_through(engine_state& home, const hook_options& options, hook_host& host);
    read_through(const read_through&) = delete;
    read_through& operator=(const read_through&) = delete;
    ~read_through();
    /// Attaches hooks to the engine: they observe its commands and keys from now on. `host` must
    /// outlive the engine.
    static read_through& attach(engine& to, const hook_options& options, hook_host& host);

    // Calls by the engine.
    enum class verdict : std::uint8_t { run, wait, refused };
    /// Before a command runs; `flags` are those of all commands that it will run.
    verdict before(call& c, std::uint64_t flags);
    /// After it.
    void queue_changes();
    /// Instead of it, after a command that was cut off by the end of the server.
    void drop_changes() noexcept { dirty_.clear(); }
    void key_happened(unsigned database, key_event kind, std::string_view name,
                      std::string_view key);
    /// Before all keys of databases are removed or swapped, without an event for each.
    void keep_values();
    void end_wait(client_session& who);
    void forget(client_session& who);

    // Calls by the host, after the engine's time was set. take() returns a job, if there is one;
    // finish() must be called for each.
    bool take(hook_job& job);
    void finish(hook_result&& result);
    /// Time of the next call of tick() without another event: microseconds of the engine's steady
    /// time, or INT64_MAX.
    std::int64_t next_due_us() const noexcept;
    void tick();
    /// True if all changes of clients were delivered.
    bool flushed();
    const write_behind& queue() const noexcept { return queue_; }

    /// The engine's steady time.
    std::int64_t now_us() const noexcept { return home_.data.env.steady_us; }
    const hook_options& options() const noexcept { return options_; }
    hook_counts counts() const;

private:
    struct miss {
        std::string key;  // with the database's number in front
        std::uint64_t id = 0;
        std::unordered_set<client_session*> waiting;
        bool running = false;
        bool parked = false;      // until the key's changes are delivered
        bool superseded = false;  // the key was changed meanwhile
    };
    /// Keys and known answers of a waiting session.
    struct waiter {
        std::unordered_set<miss*> misses;
        bool for_room = false;
        bool room_refused = false;
        bool writes = false;
        int rounds = 0;
        std::int64_t deadline_us = 0;
        std::unordered_set<std::string> absent;
        std::string_view refusal;  // why one of its keys failed; empty: none did
    };
    template <class T>
    using by_name = std::unordered_map<std::string, T, string_hash, std::equal_to<>>;

    bool rests() const noexcept;
    bool may_change_keys() const noexcept;
    verdict look_for_room(call& c);
    verdict look_for_misses(call& c, bool writes);
    void look_for(call& c, waiter*& own, std::string_view key, bool writes);
    void ask(waiter& own, client_session& who, std::string_view scoped);
    void fail(waiter& of, std::string_view scoped, std::string_view why);
    verdict refuse(call& c, std::string_view why);
    void note_deletions(const call& c);
    void drop_stale_keys(const call& c);
    void take_back_stale(std::string_view scoped);
    void block(client_session& who, waiter& own);
    void wake(client_session& who);
    void wake_for_room();
    void leave(client_session& who, waiter& of);
    void let_go(miss& of);
    void drop_without_value(std::string_view scoped);
    std::shared_ptr<const std::string> value_of(std::string_view scoped);
    void notify_trackers(std::string_view key);
    void store(std::string_view scoped, std::string_view value, std::int64_t ttl_ms);
    void expired(unsigned database, std::string_view key, std::string_view scoped);
    void answer(miss& of, hook_result&& result);
    void change_delivered(const std::string& scoped, bool succeeded);
    bool take_miss(hook_job& job);
    bool take_change(hook_job& job);

    engine_state& home_;
    hook_options options_;
    hook_host& host_;
    write_behind queue_;
    by_name<std::unique_ptr<miss>> misses_;
    std::map<std::uint64_t, miss*> unasked_;  // by id: the oldest first
    std::unordered_map<std::uint64_t, std::string> running_misses_;
    std::unordered_map<std::uint64_t, std::string> running_changes_;
    std::unordered_map<client_session*, waiter> waiters_;
    std::unordered_set<client_session*> waiting_for_room_;
    by_name<bool> dirty_;  // value: the key may have another type than string now
    stale_values stale_;
    absent_keys absent_;
    std::vector<hook_result> postponed_;
    std::uint64_t next_id_ = 1;
    bool change_has_turn_ = false;
    hook_counts counts_;
};

}  // namespace eddy::cache
