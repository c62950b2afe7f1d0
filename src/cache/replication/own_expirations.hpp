// Keys of a writable replica with expirations set by its own clients, and hashes whose last field
// has one: the master does not have these expirations, so this server removes the keys itself.
#pragma once

#include "cache/keyspace/keyspace.hpp"
#include "cache/memory/entry.hpp"
#include "cache/memory/slice_limit.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cache {

/// Belongs to one engine; one thread.
class own_expirations {
public:
    /// At most so many recorded keys. Further ones are hidden once expired, as the master's are,
    /// and stay until a command or the master removes them.
    static constexpr std::size_t most = 100'000;

    std::size_t size() const noexcept { return keys_.size(); }
    /// Records a key that a client has changed, if it expires, or all its fields do.
    void note_change(const keyspace& in, std::string_view key);
    /// True if a recorded key has expired.
    bool is_due(std::int64_t now_ms) const noexcept;
    /// Removes some expired fields of a hash, and the hash with the last one; returns their number.
    /// None while a snapshot has to write it first.
    using fields_expiry =
        std::function<std::size_t(keyspace& in, keyspace::slot* place, std::uint64_t hash)>;
    /// Removes expired keys of all databases, in up to so many steps and until the end of the
    /// slice. True while more remain.
    bool expire_some(environment& env, std::span<const std::unique_ptr<keyspace>> databases,
                     std::size_t steps, slice_limit& slice, const fields_expiry& expire_fields);
    void clear() noexcept;

private:
    using recorded = std::map<std::string, expiry_time>;  // by a byte for the database, and the key
    void record(std::string name, expiry_time end);
    void forget(recorded::iterator gone) noexcept;

    recorded keys_;
    std::set<std::pair<expiry_time, const std::string*>> times_;  // the keys of keys_
};

}  // namespace eddy::cache
