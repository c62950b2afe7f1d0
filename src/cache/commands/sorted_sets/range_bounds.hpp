// Range bounds: the two arguments that select a part of a sorted set by rank, score or text.
#pragma once

#include "cache/types/sorted_sets/sorted_set.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

struct call;

enum class range_by : std::uint8_t { rank, score, text };

/// Members in order, from the rank `first` on.
struct rank_range {
    std::size_t first = 0;
    std::size_t count = 0;
};

/// Two bounds as the client wrote them; texts point into its arguments.
class range_bounds {
public:
    /// Parses the arguments at these indexes; false with the error replied.
    bool parse(call& c, range_by by, std::size_t low_at, std::size_t high_at);

    /// The members within the bounds, none if the bounds are empty. Negative ranks count from the
    /// end. Bounds by text require that all members have the same score, as in Redis. O(log n).
    rank_range within(const sorted_set& members) const noexcept;

private:
    enum class limit : std::uint8_t { lowest, text, highest };
    struct bound {
        std::int64_t rank = 0;
        double score = 0;
        std::string_view text;
        limit kind = limit::text;
        bool excluded = false;
    };

    static bool parse_score(std::string_view text, bound& to) noexcept;
    static bool parse_text(std::string_view text, bound& to) noexcept;
    static std::size_t below(const sorted_set& members, const bound& of, bool and_equal) noexcept;

    range_by by_ = range_by::rank;
    bound low_;
    bound high_;
};

}  // namespace eddy::cache
