// Optional session state: a transaction, subscriptions, a wait, output caused by other sessions.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/clients/client_session.hpp"
#include "cache/clients/name_registry.hpp"
#include "cache/memory/entry.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct call;
struct command_spec;
struct replica;

/// Copies of commands, one after the other in one block.
class command_queue {
public:
    /// Bytes counted for an argument beside its own.
    static constexpr std::size_t overhead = 16;

    std::size_t size() const noexcept { return commands_.size(); }
    /// Bytes of all arguments and of their bookkeeping.
    std::size_t bytes() const noexcept { return text_.size() + sizes_.size() * overhead; }
    static std::size_t cost(const std::string_view* args, std::size_t count) noexcept {
        std::size_t all = count * overhead;
        for (std::size_t i = 0; i < count; ++i) all += args[i].size();
        return all;
    }

    void add(const command_spec& spec, const std::string_view* args, std::size_t count) {
        commands_.push_back({&spec, static_cast<std::uint32_t>(count)});
        for (std::size_t i = 0; i < count; ++i) {
            sizes_.push_back(args[i].size());
            text_.append(args[i]);
        }
    }

    /// Calls f(spec, arguments) for each; the views are valid as long as the queue.
    template <class F>
    void for_each(F&& f) const {
        std::vector<std::string_view> args;
        std::string_view text = text_.text();
        std::size_t next = 0;
        for (const queued& each : commands_) {
            args.clear();
            for (std::uint32_t i = 0; i < each.count; ++i) {
                args.push_back(text.substr(0, sizes_[next]));
                text.remove_prefix(sizes_[next++]);
            }
            f(*each.spec, std::span<const std::string_view>(args));
        }
    }

private:
    struct queued {
        const command_spec* spec;
        std::uint32_t count;
    };
    std::vector<queued> commands_;
    std::vector<std::size_t> sizes_;
    byte_buffer text_;
};

/// Tries the waiting command `c` for `key`, on behalf of the blocked session. True when it has
/// replied: the wait has ended.
using serve_function = bool (*)(call& c, std::string_view key);

enum class wait_kind : std::uint8_t {
    none,
    key,                ///< until a key is ready
    pause,              ///< until a pause of all clients ends; the command has not run
    save,               ///< SAVE: until the dump file is there
    script,             ///< until the script that it has called ends
    script_of_another,  ///< until another client's script ends, or is busy; the command has not run
    replicas,           ///< WAIT, WAITAOF: until so many servers have its writes
    hook,               ///< until a script has loaded a missing key
    snapshot,   ///< until a snapshot has written the value to be changed; the command has not run
    room,       ///< until a snapshot has room for the changed values; the command has not run
    migration,  ///< until a key to be changed has moved to another server; the command has not run
    server,     ///< until a file is read or written, or the daemon has replied
    time        ///< DEBUG SLEEP
};

/// Condition of WAIT and WAITAOF: copies of the session's writes.
struct awaited_copies {
    std::size_t replicas = 0;        ///< so many replicas must have it
    bool on_disks = false;           ///< WAITAOF: on their disks
    bool own_disk = false;           ///< this server's disk must have it, too
    std::uint64_t log_position = 0;  ///< required position in the append-only file
};

struct session_extras {
    // A transaction.
    command_queue queued;
    std::uint64_t queued_flags = 0;  ///< of all queued commands together
    std::uint64_t queued_lack = 0;   ///< command_flag::loading and stale, where one lacks them
    bool refused = false;            ///< a command was refused, so EXEC will be, too
    bool watched_changed = false;
    name_set watched;  ///< flag: the key had expired already

    // Subscriptions.
    name_set channels;
    name_set patterns;
    name_set shard_channels;

    // A wait.
    wait_kind waits_for = wait_kind::none;
    std::uint64_t script_wait = 0;  // number in engine_state::script_waits
    std::int64_t deadline_us = client_session::no_deadline;
    /// Time at which a wait for keys is tried as if its keys had changed.
    std::int64_t retry_us = client_session::no_deadline;
    std::int64_t worked_us = 0;  // before the wait, if slow_log times the command
    serve_function serve = nullptr;
    value_type awaited_type = value_type::string;  // type that a key must have, for waits in the
                                                   // command's order of keys
    std::size_t first_key = 0;                     // argument of the first key, for such waits
    std::size_t ordered_keys = 0;  // number of keys, for such waits; 0: another kind of wait
    command_queue waiting;
    name_set keys;

    // CLIENT TRACKING.
    std::uint8_t tracking = 0;      ///< of tracking_option
    std::uint64_t redirection = 0;  ///< number of the session that gets the invalidations instead;
                                    ///< 0: itself
    name_set prefixes;
    std::size_t redirections = 0;  ///< of other sessions, to this one

    /// Replica state, after REPLCONF or PSYNC: replication.hpp.
    std::shared_ptr<replica> as_replica;
    awaited_copies awaited;
    /// End of its last write in the append-only file, until that is acknowledged; 0: acknowledged.
    std::uint64_t appended_up_to = 0;

    // Output that is sent before any further reply.
    byte_buffer outbox;
    bool has_served = false;         ///< it holds the reply of a served wait: popped values that
                                     ///< exist nowhere else
    std::size_t unsent = 0;          ///< bytes taken from it that the connection has not sent yet
    std::int64_t over_since_us = 0;  ///< time at which the soft limit was passed; 0: it is not

    std::size_t subscriptions() const noexcept {
        return channels.size() + patterns.size() + shard_channels.size();
    }
};

/// The session's extras, allocated at the first use.
inline session_extras& extras_of(client_session& who) {
    if (!who.extras) who.extras = std::make_unique<session_extras>();
    return *who.extras;
}

}  // namespace eddy::cache
