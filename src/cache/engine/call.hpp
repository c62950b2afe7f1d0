// Call: one execution of a command, with its arguments, and the checks and replies that all
// commands share.
#pragma once

#include <eddy/wire/resp/reply_writer.hpp>

#include "base/text/text.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/keyspace/key_event.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/number.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace eddy::cache {

struct command_spec;

/// Counters of a command that may run in parallel with others.
struct own_counts {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t changes = 0;
    bool fails = false;  ///< it has an error to reply, which is left to the exclusive path
};

inline constexpr std::string_view wrong_type_text =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view not_an_integer_text =
    "ERR value is not an integer or out of range";
inline constexpr std::string_view not_a_float_text = "ERR value is not a valid float";
inline constexpr std::string_view syntax_error_text = "ERR syntax error";
inline constexpr std::string_view no_such_key_text = "ERR no such key";

/// The arguments are the client's bytes: they never point into a keyspace or value.
struct call {
    using slot = keyspace::slot;

    engine_state& state;
    client_session& client;
    resp::reply_writer& reply;
    keyspace* keys;  ///< the client's database
    const command_spec* spec = nullptr;
    const std::string_view* args = nullptr;  ///< args[0] is the command's name
    std::size_t count = 0;
    std::uint64_t hash = 0;             ///< of args[1], where that is a key
    std::size_t executed_in_batch = 0;  ///< commands before this one that are not counted yet
    std::size_t reply_begin = 0;        ///< where in the buffer this command's reply begins
    bool in_exec = false;               ///< a part of a transaction or script: it cannot wait
    bool in_script = false;
    own_counts* apart = nullptr;  ///< null: no other command runs in parallel
    slot* known = nullptr;        ///< of the first key, where others do

    std::string_view arg(std::size_t i) const noexcept { return args[i]; }
    /// All of them, the name first.
    std::span<const std::string_view> all_args() const noexcept { return {args, count}; }
    /// Size of the command as an array of RESP.
    std::size_t request_bytes() const noexcept;
    std::int64_t now_ms() const noexcept { return state.data.env.now_ms; }
    slab& memory() const noexcept { return state.data.env.memory; }

    /// The slot of the first key, or null; counts a hit or a miss. See keyspace::find_to_read()
    /// for what may be changed in it.
    slot* find_to_read() { return counted(find_first(), args[1]); }
    slot* find_to_read(std::string_view key) { return counted(keys->find_to_read(key), key); }
    slot* find_to_read(std::string_view key, std::uint64_t its_hash) {
        return counted(keys->find_to_read(key, its_hash), key);
    }
    /// The same for what is counted as reading, as in Redis, and yet changes what the key holds: a
    /// stream's groups.
    slot* find_to_read_and_change() { return counted(keys->find(args[1], hash), args[1]); }
    slot* find_to_read_and_change(std::string_view key) { return counted(keys->find(key), key); }
    /// The slot of the first key for a command that changes it.
    slot* find_to_write() { return apart != nullptr ? known : keys->find(args[1], hash); }
    /// The same for one that only replaces, moves or removes its value, or changes its expiry, by
    /// the keyspace's functions: they notify a snapshot themselves.
    slot* find_to_replace() { return find_first(); }

    /// True, with the error replied, when the key holds something else.
    bool is_not(const slot* place, value_type type) {
        if (keyspace::at(place)->type == type) [[likely]]
            return false;
        error(wrong_type_text);
        return true;
    }

    /// Notifies all observers of a change of the key in the client's database. Each command calls
    /// it once for each key that it really changed, after the change, with the name of the event as
    /// Redis's keyspace notifications have it. `changes` is Redis's count of changes: the elements
    /// added or removed, mostly.
    void changed(key_event kind, std::string_view name, std::string_view key,
                 std::uint64_t changes = 1) {
        (apart != nullptr ? apart->changes : state.data.changes) += changes;
        also_happened(kind, name, key);
    }
    /// The same for an event that follows from a change that is counted already: "del", after the
    /// last element was popped.
    void also_happened(key_event kind, std::string_view name, std::string_view key) {
        if (state.clients.observers != 0) [[unlikely]]
            state.key_happened(keys->number(), kind, name, key);
    }
    /// The same in another database.
    void also_happened_in(const keyspace& where, key_event kind, std::string_view name,
                          std::string_view key) {
        if (state.clients.observers != 0) [[unlikely]]
            state.key_happened(where.number(), kind, name, key);
    }

    /// For a change without notification of watchers, as Redis has it for a stream's groups and
    /// IDs.
    void notify(key_event kind, std::string_view name, std::string_view key) {
        ++state.data.changes;
        if ((state.clients.observers & observers::events & static_cast<std::uint16_t>(kind)) != 0)
            [[unlikely]]
            state.publish_event(keys->number(), kind, name, key);
    }

    /// Replies with an error; `text` begins with its code word.
    void error(std::string_view text) {
        if (apart != nullptr) [[unlikely]] {
            apart->fails = true;
            return;
        }
        state.count_error(text);
        if ((client.special & client_session::master) != 0)
            ++state.data.env.counters.unexpected_errors;
        pass_on_error(text);
    }
    /// The same with one that has been counted: of a command that a script called.
    void pass_on_error(std::string_view text) {
        count_failure();
        reply.error(text);
    }
    /// Counts an error that is its reply, and a refusal before it began.
    void count_failure() noexcept { state.commands.failed(spec, all_args()); }
    void count_rejection() noexcept { state.commands.rejected(spec, all_args()); }
    void wrong_type() { error(wrong_type_text); }
    void syntax_error() { error(syntax_error_text); }
    void wrong_arity();
    /// For commands that have several forms under one name: "client|setname".
    void wrong_arity(std::string_view subcommand);
    void unknown_subcommand();
    /// Where Redis itself leaves open which of the two it was.
    void wrong_subcommand();
    /// Replies with lines of help.
    void help(std::initializer_list<std::string_view> lines);

    /// The argument as a number, or none with the error replied.
    std::optional<std::int64_t> integer(std::size_t i, std::string_view text = not_an_integer_text);
    std::optional<std::int64_t> integer_in(std::size_t i, std::int64_t low, std::int64_t high,
                                           std::string_view text);
    /// Zero or more.
    std::optional<std::int64_t> positive(std::size_t i);

    /// The argument as a database's number.
    std::optional<std::size_t> database_number(std::size_t i);

    /// Removes a list, set, hash or sorted set that has become empty, and notifies observers.
    void remove_if_empty(slot* place, std::uint64_t its_hash);

    collection collection_of(const slot* place) const noexcept {
        return {state.data.env, *keyspace::at(place)};
    }
    static list& list_of(const slot* place) noexcept {
        return *keyspace::at(place)->pointer<list>();
    }
    static redis_stream& stream_of(const slot* place) noexcept {
        return *keyspace::at(place)->pointer<redis_stream>();
    }
    sorted_set sorted_set_of(const slot* place) const noexcept {
        return {state.data.env, *keyspace::at(place)};
    }

    /// True when the reply has passed engine_options::max_reply: it is dropped and an error replied
    /// instead. Check before each element and stop when true. Commands that delete what they return
    /// must check up front, with the bytes that are `still` to come: a deletion cannot be undone.
    bool reply_is_too_large(std::uint64_t still = 0) {
        if (reply.buffer().size() - reply_begin + still <= state.settings.options.max_reply)
            [[likely]]
            return false;
        refuse_reply();
        return true;
    }

    /// Maximum length of a client's string: proto-max-bulk-len. Without limit for another server
    /// and the append-only file, whose changes have been made already.
    std::size_t longest_text() const noexcept {
        return (client.special & client_session::master) != 0 ? largest_text
                                                              : state.settings.options.max_text;
    }
    /// True when the string may become that long, else the error is replied.
    bool fits_text(std::uint64_t size, std::uint64_t added = 0);

private:
    slot* find_first() { return apart != nullptr ? known : keys->find_to_read(args[1], hash); }
    void refuse_reply();
    slot* counted(slot* place, std::string_view key) {
        if (apart != nullptr) [[unlikely]]
            ++(place != nullptr ? apart->hits : apart->misses);
        else
            ++(place != nullptr ? state.data.env.counters.hits : state.data.env.counters.misses);
        if (place == nullptr && state.clients.observers != 0) [[unlikely]]
            also_happened(key_event::key_miss, "keymiss", key);
        return place;
    }
};

}  // namespace eddy::cache
