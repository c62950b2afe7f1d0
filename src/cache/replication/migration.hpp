// MIGRATE, engine side: keys on their way to another server. Connecting and sending is the
// server_host's part.
//
// MIGRATE waits for the transfer; all other clients go on. Commands that would change one of its
// keys wait until the other server has it; reads do not. A change without the key's name, such as
// by a script that did not declare it, does not wait: then the key stays, and the client gets an
// error. A key that expires or is evicted meanwhile counts as gone as well.
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
    std::chrono::milliseconds patience{};  ///< of each step: connecting, sending, an answer
    bool copies = false;                   ///< the keys stay
    bool replaces = false;                 ///< what the other server has of these names
    bool has_password = false;
    std::string user;  ///< empty: none is named
    std::string password;
    unsigned from = 0;              ///< the database here
    std::vector<std::string> keys;  ///< those that were there, each once
};

/// Running migration. It ends with this object; then sessions that waited for a key of it go on.
/// The engine's thread, while the engine is there.
class migration {
public:
    /// At a time; each has a connection. One more is refused.
    static constexpr std::size_t most = 64;
    /// Keys of one, named or existing. At most this many: they are looked up in one slice.
    static constexpr std::size_t most_keys = 1U << 16;
    /// Bytes of all of them that are written and not sent yet, from which on is_crowded(); one key
    /// more may go over it.
    static constexpr std::size_t most_unsent = 64U << 20;

    /// `asked_by` is the number of the session that gets the answer.
    migration(engine_state& s, std::uint64_t asked_by, migration_order what);
    ~migration();
    migration(const migration&) = delete;
    migration& operator=(const migration&) = delete;

    const migration_order& order() const noexcept { return order_; }
    /// Whether the session that has asked is still there. O(sessions).
    bool is_wanted() const noexcept;
    /// Whether writing must pause now.
    bool is_crowded() const noexcept;
    /// Bytes that write() gave and that are not sent.
    void note_unsent(std::size_t bytes) noexcept;

    enum class written : std::uint8_t { whole, gone, too_large };
    /// Appends the command that brings the key of this index, and no other, to the other server, as
    /// it is now.
    written write(std::size_t index, byte_buffer& to);
    /// Whether keys may be removed now: not while commands that write are held up.
    bool may_remove() const;
    /// When CLIENT PAUSE ends by its time, in microseconds of the steady time;
    /// session::no_deadline without a pause.
    std::int64_t pause_ends_us() const noexcept;
    /// Removes these keys, as DEL does, but for hooks they are evicted: they are not deleted. Why
    /// some of them may not go any more, and have stayed, or empty. Only when may_remove().
    std::string remove(const std::vector<std::size_t>& indexes);
    /// Completes the keys before this index, and drops them: sessions that wait for them go on.
    /// Returns whether there were any.
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

/// All of one engine's.
class migrations {
public:
    bool holds(unsigned database, std::string_view key) const {
        return held_[database].contains(key);
    }
    /// In any database.
    bool holds(std::string_view key) const {
        return std::ranges::any_of(held_, [&](const auto& each) { return each.contains(key); });
    }
    /// The key, or all keys of the database, may be others than those that were sent.
    void note_change(unsigned database, std::string_view key) noexcept;
    void note_changes(unsigned database) noexcept;
    std::size_t count() const noexcept { return count_; }

private:
    friend class migration;

    /// By database, and whether they have changed; the names are those in their orders.
    std::array<std::unordered_map<std::string_view, bool>, engine_databases> held_;
    std::size_t count_ = 0;
    std::size_t unsent_ = 0;
};

/// True when the command is to wait for the end of a migration, and does.
bool waits_for_migration(call& c);

}  // namespace eddy::cache
