// Sorted set commands on members of one set. Ranges are in sorted_set_range.cpp, unions and the
// like in sorted_set_algebra.cpp.
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/keys/random_picks.hpp"
#include "cache/commands/keys/scan_options.hpp"
#include "cache/commands/sorted_sets/sorted_set_ends.hpp"
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"
#include "cache/engine/call.hpp"
#include "cache/types/number.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// The scores of a ZADD, all parsed before anything changes; up to a few without an allocation.
class score_arguments {
public:
    // False with the error replied.
    bool parse(call& c, std::size_t first) {
        count_ = (c.count - first) / 2;
        if (count_ > few_.size()) {
            many_.resize(count_);
            scores_ = many_.data();
        }
        for (std::size_t i = 0; i < count_; ++i) {
            const auto score = parse_double(c.arg(first + 2 * i));
            if (!score) {
                c.error(not_a_float_text);
                return false;
            }
            scores_[i] = *score;
        }
        return true;
    }
    std::span<const double> all() const noexcept { return {scores_, count_}; }

private:
    std::array<double, 16> few_;
    std::vector<double> many_;
    double* scores_ = few_.data();
    std::size_t count_ = 0;
};

// Reads options from args[2] on; returns where the scores begin, or 0 with the error replied.
std::size_t parse_options(call& c, add_options& to) {
    std::size_t i = 2;
    for (; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        if (is_word(word, "nx")) {
            to.absent_only = true;
        } else if (is_word(word, "xx")) {
            to.present_only = true;
        } else if (is_word(word, "gt")) {
            to.greater_only = true;
        } else if (is_word(word, "lt")) {
            to.less_only = true;
        } else if (is_word(word, "ch")) {
            to.count_changed = true;
        } else if (is_word(word, "incr")) {
            to.increments = true;
        } else {
            break;
        }
    }
    const std::size_t left = c.count - i;
    if (left == 0 || left % 2 != 0) {
        c.syntax_error();
        return 0;
    }
    if (to.absent_only && to.present_only) {
        c.error("ERR XX and NX options at the same time are not compatible");
        return 0;
    }
    if ((to.absent_only && (to.greater_only || to.less_only)) ||
        (to.greater_only && to.less_only)) {
        c.error("ERR GT, LT, and/or NX options at the same time are not compatible");
        return 0;
    }
    if (to.increments && left > 2) {
        c.error("ERR INCR option supports a single increment-element pair");
        return 0;
    }
    return i;
}

void add(call& c, add_options options) {
    const std::size_t first = parse_options(c, options);
    if (first == 0) return;
    score_arguments scores;
    if (scores.parse(c, first)) add_members(c, options, scores.all(), first + 1, 2);
}

void reply_rank(call& c, bool backward) {
    if (c.count > 4) return c.wrong_arity();
    const bool with_score = c.count == 4;
    if (with_score && !is_word(c.arg(3), "withscore")) return c.syntax_error();
    const auto nothing = [&] { with_score ? c.reply.null_array() : c.reply.null(); };
    const slot* const place = c.find_to_read();
    if (place == nullptr) return nothing();
    if (c.is_not(place, value_type::sorted_set)) return;
    const sorted_set members = c.sorted_set_of(place);
    const sorted_set::place at = members.find(c.arg(2));
    if (!at) return nothing();
    const std::size_t rank = members.rank(at);
    if (with_score) c.reply.array(2);
    c.reply.integer(static_cast<std::int64_t>(backward ? members.size() - 1 - rank : rank));
    if (with_score) c.reply.number(at.score);
}

void pop(call& c, score_end from) {
    if (c.count > 3) return c.syntax_error();
    std::size_t count = 1;
    if (c.count == 3) {
        const auto given = c.positive(2);
        if (!given) return;
        count = static_cast<std::size_t>(*given);
    }
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    if (count == 0) return c.reply.array(0);
    const bool paired = c.count == 3 && c.reply.protocol() == 3;
    pop_members(c, c.arg(1), c.hash, place, from, count,
                paired ? pop_shape::pairs : pop_shape::flat);
}

// Distinct random members: few of many are drawn by rank, many are chosen on a walk over all.
void reply_random_members(call& c, const sorted_set& from, std::size_t wanted, bool with_scores) {
    constexpr std::size_t few = 3;
    const std::size_t size = from.size();
    random_generator& random = c.state.data.env.random;
    reply_members_head(c, wanted, with_scores);
    if (wanted < size / few) {
        std::vector<std::size_t> ranks;
        while (ranks.size() < wanted) {
            for (std::size_t i = ranks.size(); i < wanted; ++i) ranks.push_back(random.below(size));
            std::sort(ranks.begin(), ranks.end());
            ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
        }
        for (const std::size_t rank : ranks) {
            if (c.reply_is_too_large()) return;
            reply_member(c, from.at(rank), with_scores);
        }
        return;
    }
    sorted_set::walk walk(from);
    std::size_t unseen = size;
    for (sorted_set::element e; wanted > 0 && walk.next(e); --unseen) {
        if (random.below(unseen) >= wanted) continue;
        if (c.reply_is_too_large()) return;
        reply_member(c, e, with_scores);
        --wanted;
    }
}

// A score in ZSCAN's reply: Redis keeps a listpack's scores as text, and writes the others with 17
// digits.
void reply_scanned_score(call& c, double score, bool listed) {
    char text[std::max(max_double_text, resp::max_number_text)];
    char* const end = listed ? resp::write_number(text, score) : write_double(text, score);
    c.reply.bulk({text, static_cast<std::size_t>(end - text)});
}

}  // namespace

void zadd(call& c) { add(c, {}); }
void zincrby(call& c) { add(c, {.increments = true}); }

void zrem(call& c) {
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    sorted_set members = c.sorted_set_of(place);
    std::int64_t removed = 0;
    for (std::size_t i = 2; i < c.count && !members.empty(); ++i) {
        removed += members.erase(c.arg(i)) ? 1 : 0;
    }
    if (removed > 0) complete_sorted_set(c, "zrem", c.arg(1), place, c.hash);
    c.reply.integer(removed);
}

void zscore(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.null();
    if (c.is_not(place, value_type::sorted_set)) return;
    const sorted_set::place at = c.sorted_set_of(place).find(c.arg(2));
    at ? c.reply.number(at.score) : c.reply.null();
}

void zmscore(call& c) {
    const slot* const place = c.find_to_read();
    if (place != nullptr && c.is_not(place, value_type::sorted_set)) return;
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count; ++i) {
        sorted_set::place at;
        if (place != nullptr) at = c.sorted_set_of(place).find(c.arg(i));
        at ? c.reply.number(at.score) : c.reply.null();
    }
}

void zcard(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    c.reply.integer(static_cast<std::int64_t>(c.sorted_set_of(place).size()));
}

void zrank(call& c) { reply_rank(c, false); }
void zrevrank(call& c) { reply_rank(c, true); }

void zpopmin(call& c) { pop(c, score_end::lowest); }
void zpopmax(call& c) { pop(c, score_end::highest); }

void zmpop(call& c) {
    const auto what = parse_zmpop(c, 1);
    if (what && !pop_from_first(c, *what)) c.reply.null_array();
}

void zrandmember(call& c) {
    if (c.count == 2) {
        const slot* const place = c.find_to_read();
        if (place == nullptr) return c.reply.null();
        if (c.is_not(place, value_type::sorted_set)) return;
        const sorted_set members = c.sorted_set_of(place);
        return c.reply.bulk(members.at(c.state.data.env.random.below(members.size())).member);
    }
    const auto count = random_count(c, 2);
    if (!count) return;
    const bool with_scores = c.count == 4;
    if (c.count > 4 || (with_scores && !is_word(c.arg(3), "withscores"))) return c.syntax_error();
    if (with_scores && (*count < -INT64_MAX / 2 || *count > INT64_MAX / 2)) {
        return c.error("ERR value is out of range");
    }
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::sorted_set)) return;
    const sorted_set members = c.sorted_set_of(place);
    if (*count >= 0) {
        const std::size_t wanted = std::min(static_cast<std::size_t>(*count), members.size());
        return reply_random_members(c, members, wanted, with_scores);
    }
    reply_members_head(c, static_cast<std::size_t>(-*count), with_scores);
    for (std::int64_t left = -*count; left > 0 && !c.reply_is_too_large(); --left) {
        reply_member(c, members.at(c.state.data.env.random.below(members.size())), with_scores);
    }
}

void zscan(call& c) {
    auto cursor = parse_cursor(c, 2);
    if (!cursor) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return reply_empty_scan(c);
    if (c.is_not(place, value_type::sorted_set)) return;
    scan_options options;
    if (!options.parse(c, 3, scan_of::sorted_set)) return;
    const sorted_set members = c.sorted_set_of(place);
    std::vector<sorted_set::element> found;
    std::size_t visited = 0;
    do {
        const std::size_t before = found.size();
        *cursor = members.scan(*cursor, found);
        visited += std::max<std::size_t>(found.size() - before, 1);
        const auto unwanted = [&](const sorted_set::element& e) {
            return !options.matches(e.member);
        };
        found.erase(std::remove_if(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                                   unwanted),
                    found.end());
    } while (*cursor != 0 && visited < static_cast<std::uint64_t>(options.count));
    c.reply.array(2);
    c.reply.bulk_integer(static_cast<std::int64_t>(*cursor));
    c.reply.array(options.names_only ? found.size() : found.size() * 2);
    for (const sorted_set::element& e : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(e.member);
        if (!options.names_only) reply_scanned_score(c, e.score, members.is_listed());
    }
}

}  // namespace eddy::cache::commands
