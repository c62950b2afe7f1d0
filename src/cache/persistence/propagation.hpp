// Propagation: changes as commands that make the same change elsewhere, in the append-only file and
// on replicas.
//
// While a sink is attached, every command takes the slow path (execution.cpp), which checks whether
// it has changed data. Such a command is recorded as it was sent, unless it has recorded other
// commands: for effects that depend on time, chance, or waiting clients. A unit is delivered as a
// whole at its end: a command, a transaction, a script, the serving of one blocked client. Keys
// that expire are recorded as DEL.
//
// A command that ran out of memory may have done a part of its work, and a change may find no
// memory to be recorded. Then the sinks are notified of missed changes.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/call.hpp"
#include "cache/types/number.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Commands as RESP, to be executed in one database.
struct change {
    static constexpr unsigned any_database = ~0U;
    unsigned database = any_database;
    std::string_view commands;
    bool is_message = false;  ///< PUBLISH: not for files
};

/// Receiver of changes. The engine's thread.
class change_sink {
public:
    /// One unit; several commands are framed by MULTI and EXEC. The views are valid during the
    /// call, which is within a command or engine::upkeep(): the engine must not be used.
    virtual void changed(std::span<const change> unit) noexcept = 0;

    /// A change was not recorded for lack of memory: later ones are useless without a new copy of
    /// all keys. The same rules.
    virtual void missed() noexcept = 0;

protected:
    ~change_sink() = default;
};

/// Attaches a sink for all later changes; it must outlive its removal. Within a unit it gets the
/// changes after this call.
void add_sink(engine_state& s, change_sink& to);
void remove_sink(engine_state& s, change_sink& from) noexcept;

/// Writer of units as a sequence of commands, with SELECT where the database changes.
class change_writer {
public:
    void write(byte_buffer& to, std::span<const change> unit, bool with_messages);
    /// The next command is preceded by SELECT.
    void forget() noexcept { selected_ = change::any_database; }
    /// The database selected by the written commands; 0 if SELECT comes next.
    unsigned database() const noexcept { return selected_ == change::any_database ? 0 : selected_; }

private:
    unsigned selected_ = change::any_database;
};

/// True while a sink is attached. Check it before building arguments for one.
inline bool propagates(const engine_state& s) noexcept {
    return (s.clients.slow_path & slow_path::propagates) != 0;
}
inline bool propagates(const call& c) noexcept { return propagates(c.state); }

/// Records this command instead of the running one; several calls record several commands.
void propagate_as(call& c, std::span<const std::string_view> command);
inline void propagate_as(call& c, std::initializer_list<std::string_view> command) {
    propagate_as(c, std::span<const std::string_view>(command.begin(), command.size()));
}
/// The running command is not recorded.
void propagate_nothing(call& c);
/// The running command is recorded for replicas alone.
void propagate_message(call& c);

/// Scope of a change that is not part of a command, or comes before it, such as an expiration.
/// Sinks are notified after all other observers; when an exception ends the scope its effect is
/// unknown, and they are notified of a missed change.
class recorded_alone {
public:
    recorded_alone(engine_state& s, unsigned database,
                   std::initializer_list<std::string_view> command);
    recorded_alone(const recorded_alone&) = delete;
    recorded_alone& operator=(const recorded_alone&) = delete;
    ~recorded_alone();

private:
    propagation* const to_;
    const int exceptions_ = std::uncaught_exceptions();
};
/// Records a change that has happened.
void propagate_alone(engine_state& s, unsigned database,
                     std::initializer_list<std::string_view> command);

/// True if a key with this expiry would be removed at once. Not for commands of a master or a file,
/// which decide themselves.
inline bool is_over_at_once(const call& c, expiry_time at_ms) noexcept {
    return at_ms <= c.now_ms() && c.state.data.env.expired != expired_keys::stay;
}

/// Recorded changes of the running unit, and their sinks.
class propagation {
public:
    void add(change_sink& to);
    void remove(change_sink& from) noexcept;
    bool has_sinks() const noexcept { return !sinks_.empty(); }
    /// True while recorded changes are undelivered.
    bool has_undelivered() const noexcept { return !items_.empty() || missed_; }

    void record(unsigned database, std::span<const std::string_view> command, bool is_message);
    /// Delivers the recorded changes, unless a unit is open.
    void deliver_if_closed() {
        if (!open_) deliver();
    }

private:
    friend class recording;
    friend class recorded_alone;
    friend void propagate_as(call& c, std::span<const std::string_view> command);
    friend void propagate_nothing(call& c);
    friend void finish_unit(engine_state& s);
    friend void discard_unit(engine_state& s) noexcept;

    struct item {
        unsigned database;
        std::size_t end;  // of its bytes in text_
        bool is_message;
    };
    struct taker {
        change_sink* sink;
        std::size_t first;  // index of its first item
    };

    void deliver() noexcept;
    void forget_unit() noexcept;

    std::vector<taker> sinks_;
    byte_buffer text_;
    std::vector<item> items_;
    std::vector<change> unit_;
    bool open_ = false;
    bool missed_ = false;
    bool given_ = false;  // the running command has recorded its own commands
};

/// Scope of the run of one command, also of a nested one. Does nothing without a sink. If a write
/// command ends by an exception its progress is unknown.
class recording {
public:
    recording(engine_state& s, const command_spec& of) noexcept;
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    ~recording();

    /// The command has run. `database` is the one before it.
    void end(std::span<const std::string_view> args, unsigned database);

private:
    engine_state& state_;
    const command_spec& spec_;
    propagation* const to_;
    std::uint64_t changes_;
    const int exceptions_ = std::uncaught_exceptions();
    bool outermost_ = false;
    bool outer_given_ = false;
};

/// A script that was suspended within its unit has ended.
void finish_unit(engine_state& s);
/// It was cut off: no sink gets any change of the unit.
void discard_unit(engine_state& s) noexcept;
/// No sink gets further changes. Between units.
void stop_propagation(engine_state& s) noexcept;

/// Treatment of expired keys between commands: they stay while a master decides about keys, and
/// while writes are paused.
expired_keys fate_of_expired(const engine_state& s) noexcept;

/// Scope with the treatment of expired keys for one command: on a replica, for a master's commands,
/// and while writes are paused. Write commands remove expired keys first.
class expiry_scope {
public:
    explicit expiry_scope(const call& c) noexcept;
    expiry_scope(const expiry_scope&) = delete;
    expiry_scope& operator=(const expiry_scope&) = delete;
    ~expiry_scope() { env_.expired = before_; }

private:
    environment& env_;
    const expired_keys before_;
};

}  // namespace eddy::cache
