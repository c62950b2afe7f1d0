// Keys of a writable replica that expire by its own clients' commands, and hashes whose last field
// does: the master has none of these expirations, so that this server removes the keys itself.
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
    /// Keys that are recorded. Further ones are hidden once their time is over, as the master's
    /// are, and stay until a command or the master removes them.
    static constexpr std::size_t most = 100'000;

    std::size_t size() const noexcept { return keys_.size(); }
    /// A client has changed the key: records it if it expires, or all its fields do.
    void note_change(const keyspace& in, std::string_view key);
    /// Whether the recorded time of one is over.
    bool is_due(std::int64_t now_ms) const noexcept;
    /// Removal of some expired fields of a hash, and of the hash with the last one: how many. None
    /// while a snapshot is about to write it.
    using fields_expiry =
        std::function<std::size_t(keyspace& in, keyspace::slot* place, std::uint64_t hash)>;
    /// Removes those of all databases whose time is over, up to so many and until the slice is
    /// over. True when there are more.
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
