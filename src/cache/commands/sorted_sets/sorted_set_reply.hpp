// Parts shared by the sorted set commands: adding members, members with their scores as replies,
// and results that are stored under a key.
#pragma once

#include "cache/keyspace/keyspace.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

struct call;

/// The head of a reply of `count` members. With their scores they are pairs in RESP3 and flat in
/// RESP2.
void reply_members_head(call& c, std::size_t count, bool with_scores);
void reply_member(call& c, const sorted_set::element& e, bool with_scores);
/// Head and members, from a rank on, in reverse order if `backward`. At least `count` members must
/// follow the rank.
void reply_members(call& c, const sorted_set& from, std::size_t rank, std::size_t count,
                   bool backward, bool with_scores);

/// ZADD's options, which GEOADD shares.
struct add_options {
    bool absent_only = false;   ///< NX
    bool present_only = false;  ///< XX
    bool greater_only = false;  ///< GT
    bool less_only = false;     ///< LT
    bool count_changed = false;
    bool increments = false;

    /// True if GT or LT keeps a member's old score.
    bool refuse(double old, double score) const noexcept {
        return (less_only && score >= old) || (greater_only && score <= old);
    }
};

/// Adds args[first], args[first + step] .. with these scores to the first key's set, and replies.
void add_members(call& c, const add_options& options, std::span<const double> scores,
                 std::size_t first, std::size_t step);

/// Notifies of a change, after it, and removes the key if the set is empty.
void complete_sorted_set(call& c, std::string_view event, std::string_view key,
                         keyspace::slot* place, std::uint64_t hash);

/// A sorted set without a key, until it is stored.
class sorted_set_result {
public:
    explicit sorted_set_result(environment& env);
    sorted_set_result(const sorted_set_result&) = delete;
    sorted_set_result& operator=(const sorted_set_result&) = delete;
    ~sorted_set_result();

    sorted_set members() const noexcept { return {env_, *holder_}; }
    /// Adds a member, or updates its score.
    void put(std::string_view member, double score);

    /// Replaces the value under the key, or removes the key if the set is empty, and replies with
    /// its size. Called once, last.
    void store(call& c, std::string_view key, std::uint64_t hash, std::string_view event);

private:
    environment& env_;
    std::size_t size_;
    entry* holder_;
};

}  // namespace eddy::cache
