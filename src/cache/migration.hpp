// Keys on their way to another server: MIGRATE, as the engine sees it. Connecting and sending is a
// server_host's affair.
//
// MIGRATE waits for that; all others go on. Until it is over nobody changes the keys: commands that
// would wait, and so do those of which nobody knows what they change, as scripts and FLUSHALL. Who
// reads them does, until they have gone. What expires or is evicted meanwhile has gone as well.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/call.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace eddy::cache {

/// What MIGRATE is told.
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

/// One that is under way. It ends with this object; then those go on who waited for a key of it.
/// The engine's thread, while the engine is there.
class migration {
public:
    /// At a time; each has a connection. One more is refused.
    static constexpr std::size_t most = 64;

    migration(engine::state& s, migration_order what);
    ~migration();
    migration(const migration&) = delete;
    migration& operator=(const migration&) = delete;

    const migration_order& order() const noexcept { return order_; }

    enum class written : std::uint8_t { whole, gone, too_large };
    /// Appends the command that brings the key of this index, and no other, to the other server.
    written write(std::size_t index, byte_buffer& to) const;
    /// Whether keys may be removed now: not while commands that write are held up.
    bool may_remove() const;
    /// Removes these keys, as DEL does, but for hooks they are evicted: they are not deleted. Why
    /// that may not be any more, or empty. Only when may_remove().
    std::string remove(const std::vector<std::size_t>& indexes);

    /// The keys before this index are settled, and are forgotten: who waits for them goes on.
    void release(std::size_t end) noexcept;

private:
    void let_go(std::size_t end) noexcept;
    void leave() noexcept;

    engine::state& state_;
    migration_order order_;
    std::size_t released_ = 0;
};

/// Of one engine: which keys are held, and for how many migrations.
struct migrations {
    /// By database; the names are those in their orders.
    std::array<std::unordered_set<std::string_view>, engine::databases> held;
    std::size_t count = 0;
};

/// True when the command is to wait for the end of a migration, and does.
bool waits_for_migration(call& c);

}  // namespace eddy::cache
