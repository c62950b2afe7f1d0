// Messages of etcd's v3 JSON gateway: bodies of requests, and what its answers hold. Text in, text
// out; answers are untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cluster {

/// Levels of arrays and objects in an answer, at most. Those of etcd have eight.
inline constexpr std::size_t max_etcd_depth = 16;

/// Head of each answer.
struct etcd_header {
    std::uint64_t cluster_id = 0;
    std::int64_t revision = 0;  ///< of the key space, as far as the answering server knows it
};

/// A key and its value.
struct etcd_entry {
    std::string key;
    std::string value;
    std::int64_t create_revision = 0;
    std::int64_t mod_revision = 0;
    std::int64_t lease = 0;  ///< 0: none

    friend bool operator==(const etcd_entry&, const etcd_entry&) = default;
};

/// Keys from `key` up to `end`, without it; with an empty end the key alone.
struct etcd_range {
    std::string key;
    std::string end = {};
    std::int64_t limit = 0;     ///< keys; 0: all
    std::int64_t revision = 0;  ///< as they were then; 0: as they are
    bool is_keys_only = false;
};

/// End of the range of all keys that begin with `prefix`, which is neither empty nor all 0xff.
std::string etcd_prefix_end(std::string prefix);

/// Conditions of a write, together. Without one it is written at any rate.
struct etcd_condition {
    bool is_absent = false;                         ///< there is no such key
    std::optional<std::int64_t> lease = {};         ///< the key has this lease
    std::optional<std::int64_t> mod_revision = {};  ///< the key was written last then
};

/// Answer to a range.
struct etcd_range_reply {
    etcd_header header;
    std::vector<etcd_entry> entries;  ///< by key
    bool has_more = false;            ///< beyond the limit
};
/// Answer to a write.
struct etcd_write_reply {
    etcd_header header;
    bool is_written = false;
    std::optional<etcd_entry> found = {};  ///< the key's, where a condition did not hold
};
/// Answer about a lease.
struct etcd_lease_reply {
    etcd_header header;
    std::int64_t id = 0;
    std::int64_t ttl = 0;  ///< seconds left; 0 or less: there is no such lease
};
/// Token of a user.
struct etcd_token_reply {
    std::string token;
};
/// Answer of which only the header counts.
struct etcd_plain_reply {
    etcd_header header;
};

/// Change of a key.
struct etcd_event {
    bool is_removal = false;
    etcd_entry entry;  ///< of a removal the key and mod_revision alone
};
/// A line of a watch. What is neither created nor canceled has events, or none.
struct etcd_watch_line {
    etcd_header header;
    bool is_created = false;
    bool is_canceled = false;
    std::int64_t compact_revision = 0;  ///< of a cancellation; 0: none
    std::string cancel_reason = {};     ///< may be empty
    std::vector<etcd_event> events = {};
};

/// Error that etcd answers in place of anything else.
struct etcd_failure {
    int code = 0;  ///< of gRPC; 0: none is given
    std::string message;
};

// --- Bodies of requests ---

std::string write_etcd_range(const etcd_range& of);
/// A transaction that writes `key` if the conditions hold and else reads it. A lease of 0: none.
std::string write_etcd_write(std::string_view key, std::string_view value, std::int64_t lease,
                             const etcd_condition& on);
std::string write_etcd_grant(std::int64_t seconds);
/// A request about a lease.
std::string write_etcd_lease(std::int64_t id);
std::string write_etcd_authenticate(std::string_view user, std::string_view password);
/// Changes of `keys` from their revision on; large answers come in fragments.
std::string write_etcd_watch(const etcd_range& keys);

// --- Answers; nothing for a text that is no such answer ---

std::optional<etcd_range_reply> read_etcd_range(std::string_view text);
std::optional<etcd_write_reply> read_etcd_write(std::string_view text);
std::optional<etcd_lease_reply> read_etcd_grant(std::string_view text);
std::optional<etcd_lease_reply> read_etcd_keep_alive(std::string_view text);
std::optional<etcd_lease_reply> read_etcd_time_to_live(std::string_view text);
std::optional<etcd_plain_reply> read_etcd_plain(std::string_view text);
std::optional<etcd_token_reply> read_etcd_token(std::string_view text);
std::optional<etcd_watch_line> read_etcd_watch_line(std::string_view text);
/// The error of an answer or of a line of a watch.
std::optional<etcd_failure> read_etcd_failure(std::string_view text);

}  // namespace eddy::cluster
