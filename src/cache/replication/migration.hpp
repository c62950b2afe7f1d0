// MIGRATE, engine side: transfer of keys to another server. The server_host connects and sends.
//
// MIGRATE waits for the transfer; all other clients continue. Commands that would change one of its
// keys wait until the other server has it; reads do not. A change without the key's name, such as
// by a script that did not declare it, does not wait: then the key stays, and the client gets an
// error. A key that expires or is evicted meanwhile counts as moved.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/call.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::cache {

/// Arguments of MIGRATE.
struct migration_order {
    std::string host;
    std::string port;
    std::int64_t database = 0;             ///< at the other server, which may refuse it
    std::chrono::milliseconds patience{};  ///< of each step: connecting, sending, a reply
    bool copies = false;                   ///< the keys stay
    bool replaces = false;                 ///< replaces the other server's keys of these names
    bool has_password = false;
    std::string user;  ///< empty: the default user
    std::string password;
    unsigned from = 0;              ///< database here
    std::vector<std::string> keys;  ///< existing ones, each once
};

/// Running migration. Its destructor ends it and wakes the sessions that wait for its keys. The
/// engine's thread, within the engine's lifetime.
class migration {
public:
    /// At most so many at a time, each with a connection; a further one is refused.
    static constexpr std::size_t most = 64;
    /// At most so many keys of one migration, named or existing: they are looked up in one slice.
    static constexpr std::size_t most_keys = 1U << 16;
    /// At so many written and unsent bytes of all migrations is_crowded() becomes true; one more
    /// key may exceed it.
    static constexpr std::size_t most_unsent = 64U << 20;

    /// `asked_by` is the number of the session that gets the reply.
    migration(engine_state& s, std::uint64_t asked_by, migration_order what);
    ~migration();
    migration(const migration&) = delete;
    migration& operator=(const migration&) = delete;

    const migration_order& order() const noexcept { return order_; }
    /// True while the requesting session is connected. O(sessions).
    bool is_wanted() const noexcept;
    /// True while writing must pause.
    bool is_crowded() const noexcept;
    /// Sets the number of bytes from write() that are not sent.
    void note_unsent(std::size_t bytes) noexcept;

    enum class written : std::uint8_t { whole, gone, too_large };
    /// Appends the command that stores the key of this index on the other server, with its current
    /// value.
    written write(std::size_t index, byte_buffer& to);
    /// True if keys may be removed now: not while writes are paused.
    bool may_remove() const;
    /// Deadline of CLIENT PAUSE, in microseconds of the steady time; session::no_deadline without a
    /// pause.
    std::int64_t pause_ends_us() const noexcept;
    /// Removes these keys, as DEL does, but for hooks as an eviction, not a deletion. Returns the
    /// reason why some of them had to stay, or empty. Only when may_remove().
    std::string remove(const std::vector<std::size_t>& indexes);
    /// Completes the keys before this index, drops them, and wakes the sessions that wait for them.
    /// Returns false if there were none.
    bool release(std::size_t end) noexcept;

private:
    void let_go(std::size_t end) noexcept;
    void leave() noexcept;

    engine_state& state_;
    std::uint64_t asked_by_;
    migration_order order_;
    std::size_t released_ = 0;
    std::size_t unsent_ = 0;
};

/// All migrations of an engine.
class migrations {
public:
    bool holds(unsigned database, std::string_view key) const {
        return held_[database].contains(key);
    }
    /// In any database.
    bool holds(std::string_view key) const {
        return std::ranges::any_of(held_, [&](const auto& each) { return each.contains(key); });
    }
    /// The key, or all keys of the database, may differ from the sent ones.
    void note_change(unsigned database, std::string_view key) noexcept;
    void note_changes(unsigned database) noexcept;
    std::size_t count() const noexcept { return count_; }

private:
    friend class migration;

    /// By database, with a flag for changes; the names are views of the orders' keys.
    std::array<std::unordered_map<std::string_view, bool>, engine_databases> held_;
    std::size_t count_ = 0;
    std::size_t unsent_ = 0;
};

/// True when the command has to wait for the end of a migration; it blocks the session.
bool waits_for_migration(call& c);

}  // namespace eddy::cache
