// Ranges of one sorted set, by rank, score or text.
#include "cache/catalog/commands.hpp"
#include "cache/commands/sorted_sets/range_bounds.hpp"
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <optional>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class order : std::uint8_t { forward, backward };

// Parsed arguments of ZRANGE and of the commands that it replaced.
struct range_request {
    std::size_t key_at = 1;
    bool stores = false;
    std::optional<range_by> by{};           // given by the command's name, or by an option
    std::optional<order> order_of_reply{};  // likewise
    bool with_scores = false;
    std::int64_t offset = 0;
    std::int64_t limit = -1;  // negative: none
    range_bounds bounds{};

    bool backward() const noexcept { return order_of_reply == order::backward; }

    // False with the error replied.
    bool parse(call& c);
    bool parse_options(call& c);
};

bool range_request::parse_options(call& c) {
    for (std::size_t i = key_at + 3; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        if (!stores && is_word(word, "withscores")) {
            with_scores = true;
        } else if (is_word(word, "limit") && i + 2 < c.count) {
            const auto first = c.integer(i + 1);
            if (!first) return false;
            const auto most = c.integer(i + 2);
            if (!most) return false;
            offset = *first;
            limit = *most;
            i += 2;
        } else if (!order_of_reply && is_word(word, "rev")) {
            order_of_reply = order::backward;
        } else if (!by && is_word(word, "bylex")) {
            by = range_by::text;
        } else if (!by && is_word(word, "byscore")) {
            by = range_by::score;
        } else {
            c.syntax_error();
            return false;
        }
    }
    return true;
}

bool range_request::parse(call& c) {
    if (!parse_options(c)) return false;
    const range_by kind = by.value_or(range_by::rank);
    if (limit != -1 && kind == range_by::rank) {
        c.error(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or "
            "BYLEX");
        return false;
    }
    if (with_scores && kind == range_by::text) {
        c.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    // The highest comes first when the reply goes backward, but ranks count from where it begins.
    const bool swapped = backward() && kind != range_by::rank;
    by = kind;
    return bounds.parse(c, kind, key_at + (swapped ? 2 : 1), key_at + (swapped ? 1 : 2));
}

// Where a walk begins, and how many members it takes.
struct chosen_range {
    std::size_t rank = 0;
    std::size_t count = 0;
};

chosen_range choose(const range_request& request, const sorted_set& members) {
    const rank_range range = request.bounds.within(members);
    if (range.count == 0) return {};
    if (request.by == range_by::rank) {
        return {request.backward() ? members.size() - 1 - range.first : range.first, range.count};
    }
    const auto skipped = static_cast<std::uint64_t>(request.offset);
    if (request.offset < 0 || skipped >= range.count) return {};
    std::size_t count = range.count - skipped;
    if (request.limit >= 0) count = std::min(count, static_cast<std::size_t>(request.limit));
    if (request.backward()) return {range.first + range.count - 1 - skipped, count};
    return {range.first + skipped, count};
}

void reply_range(call& c, range_request request) {
    if (!request.parse(c)) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    const sorted_set members = c.sorted_set_of(place);
    const chosen_range chosen = choose(request, members);
    reply_members(c, members, chosen.rank, chosen.count, request.backward(), request.with_scores);
}

void reply_count(call& c, range_by by) {
    range_bounds bounds;
    if (!bounds.parse(c, by, 2, 3)) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    c.reply.integer(static_cast<std::int64_t>(bounds.within(c.sorted_set_of(place)).count));
}

void remove_range(call& c, range_by by, std::string_view event) {
    range_bounds bounds;
    if (!bounds.parse(c, by, 2, 3)) return;
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    sorted_set members = c.sorted_set_of(place);
    const rank_range range = bounds.within(members);
    if (range.count > 0 && range.count == members.size()) {
        // Freed as a whole, in slices if it is big.
        c.keys->remove(place, c.hash);
        c.changed(key_event::sorted_set, event, c.arg(1));
        c.changed(key_event::generic, "del", c.arg(1));
    } else if (range.count > 0) {
        members.erase_range(range.first, range.count);
        c.changed(key_event::sorted_set, event, c.arg(1));
    }
    c.reply.integer(static_cast<std::int64_t>(range.count));
}

}  // namespace

void zrange(call& c) { reply_range(c, {}); }
void zrevrange(call& c) {
    reply_range(c, {.by = range_by::rank, .order_of_reply = order::backward});
}
void zrangebyscore(call& c) {
    reply_range(c, {.by = range_by::score, .order_of_reply = order::forward});
}
void zrevrangebyscore(call& c) {
    reply_range(c, {.by = range_by::score, .order_of_reply = order::backward});
}
void zrangebylex(call& c) {
    reply_range(c, {.by = range_by::text, .order_of_reply = order::forward});
}
void zrevrangebylex(call& c) {
    reply_range(c, {.by = range_by::text, .order_of_reply = order::backward});
}

void zrangestore(call& c) {
    range_request request{.key_at = 2, .stores = true};
    if (!request.parse(c)) return;
    sorted_set_result result(c.state.data.env);
    const slot* const place = c.find_to_read(c.arg(2));
    if (place != nullptr) {
        if (c.is_not(place, value_type::sorted_set)) return;
        const sorted_set members = c.sorted_set_of(place);
        chosen_range chosen = choose(request, members);
        if (chosen.count > 0) {
            sorted_set::walk walk(members, chosen.rank, request.backward());
            for (sorted_set::element e; chosen.count > 0 && walk.next(e); --chosen.count) {
                result.put(e.member, e.score);
            }
        }
    }
    result.store(c, c.arg(1), c.hash, "zrangestore");
}

void zcount(call& c) { reply_count(c, range_by::score); }
void zlexcount(call& c) { reply_count(c, range_by::text); }

void zremrangebyrank(call& c) { remove_range(c, range_by::rank, "zremrangebyrank"); }
void zremrangebyscore(call& c) { remove_range(c, range_by::score, "zremrangebyscore"); }
void zremrangebylex(call& c) { remove_range(c, range_by::text, "zremrangebylex"); }

}  // namespace eddy::cache::commands
