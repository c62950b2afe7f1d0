// ACL LOG: refusals of commands, keys, channels and passwords.
#pragma once

#include "cache/acl/acl.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace eddy::cache {

/// ACL LOG's entries, the latest first. A refusal like an earlier one (same user, object, reason
/// and context) within a minute is counted with it.
class access_log {
public:
    /// At most so many bytes of a key or name are kept.
    static constexpr std::size_t max_text = 1024;

    /// Where the command came from.
    enum class context : std::uint8_t { toplevel, multi, lua };

    struct entry {
        std::uint64_t id;
        std::uint64_t count;
        acl::refusal why;
        context where;
        std::string object;  ///< the command, the key or the channel
        std::string user;
        std::string client;  ///< as CLIENT LIST shows it
        std::int64_t created_ms;
        std::int64_t updated_ms;
    };

    void add(entry made, std::size_t limit);
    /// Number of refusals of a kind since reset_counts(), also of dropped entries.
    std::uint64_t count(acl::refusal why) const noexcept {
        return counts_[static_cast<std::size_t>(why)];
    }
    void clear() noexcept { entries_.clear(); }
    void reset_counts() noexcept { counts_ = {}; }
    const std::deque<entry>& entries() const noexcept { return entries_; }

private:
    std::deque<entry> entries_;
    std::uint64_t next_id_ = 0;
    std::array<std::uint64_t, acl::refusal_kinds> counts_{};
};

}  // namespace eddy::cache
