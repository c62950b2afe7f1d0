// Replies with members and scores, and stored results.
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"

#include "cache/engine/call.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace eddy::cache {

void reply_members_head(call& c, std::size_t count, bool with_scores) {
    c.reply.array(with_scores && c.reply.protocol() == 2 ? count * 2 : count);
}

void reply_member(call& c, const sorted_set::element& e, bool with_scores) {
    if (!with_scores) return c.reply.bulk(e.member);
    if (c.reply.protocol() == 3) c.reply.array(2);
    c.reply.bulk(e.member);
    c.reply.number(e.score);
}

void reply_members(call& c, const sorted_set& from, std::size_t rank, std::size_t count,
                   bool backward, bool with_scores) {
    reply_members_head(c, count, with_scores);
    sorted_set::walk walk(from, count > 0 ? rank : from.size(), backward);
    for (sorted_set::element e; count > 0 && walk.next(e) && !c.reply_is_too_large(); --count) {
        reply_member(c, e, with_scores);
    }
}

// The sum with zero is the score itself, but for a negative zero: a listpack of Redis has none.
static double as_kept(double score, bool listed) noexcept { return listed ? score + 0.0 : score; }

void add_members(call& c, const add_options& options, std::span<const double> scores,
                 std::size_t first, std::size_t step) {
    keyspace::slot* place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::sorted_set)) return;
    if (place == nullptr) {
        if (options.present_only) {
            return options.increments ? c.reply.null() : c.reply.integer(0);
        }
        place = c.keys->add(c.arg(1), c.hash, value_type::sorted_set);
    }
    sorted_set members = c.sorted_set_of(place);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
        longest = std::max(longest, c.arg(first + i * step).size());
    members.expect(scores.size(), longest);
    std::int64_t added = 0;
    std::int64_t updated = 0;
    std::optional<double> result;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::string_view member = c.arg(first + i * step);
        double score = scores[i];
        const sorted_set::place at = members.find(member);
        if (!at) {
            if (options.present_only) continue;
            members.add(member, as_kept(score, members.is_listed_with(member)), at);
            ++added;
        } else {
            if (options.absent_only) continue;
            if (options.increments) {
                score += at.score;
                // Then it was the only one.
                if (std::isnan(score)) {
                    return c.error("ERR resulting score is not a number (NaN)");
                }
            }
            if (options.refuse(at.score, score)) continue;
            if (score != at.score) {
                members.change(at, as_kept(score, members.is_listed()));
                ++updated;
            }
        }
        result = score;
    }
    if (added + updated > 0) {
        c.changed(key_event::sorted_set, options.increments ? "zincr" : "zadd", c.arg(1));
    }
    if (!options.increments) {
        return c.reply.integer(options.count_changed ? added + updated : added);
    }
    result ? c.reply.number(*result) : c.reply.null();
}

void complete_sorted_set(call& c, std::string_view event, std::string_view key,
                         keyspace::slot* place, std::uint64_t hash) {
    c.changed(key_event::sorted_set, event, key);
    if (!c.sorted_set_of(place).empty()) return;
    c.keys->remove(place, hash);
    c.changed(key_event::generic, "del", key);
}

sorted_set_result::sorted_set_result(environment& env)
    : env_(env), size_(entry::size_for(0, sizeof(void*), false)) {
    holder_ = entry::make(env.memory.allocate(size_), {}, sizeof(void*), false);
    sorted_set::make(env, *holder_);
}

sorted_set_result::~sorted_set_result() {
    if (holder_ != nullptr) release_entry(env_, holder_);
}

void sorted_set_result::put(std::string_view member, double score) {
    sorted_set to = members();
    const sorted_set::place at = to.find(member);
    if (!at) {
        to.add(member, score, at);
    } else if (at.score != score) {
        to.change(at, score);
    }
}

// A listpack of Redis has no negative zero. There are few members in what it would keep as one.
static void drop_negative_zeros(sorted_set members) {
    for (std::size_t rank = members.count_below(0.0, false); rank < members.size(); ++rank) {
        const sorted_set::element e = members.at(rank);
        if (e.score != 0) return;
        if (std::signbit(e.score)) members.change(members.find(e.member), 0.0);
    }
}

void sorted_set_result::store(call& c, std::string_view key, std::uint64_t hash,
                              std::string_view event) {
    const std::size_t size = members().size();
    if (members().is_listed()) drop_negative_zeros(members());
    const bool replaced = c.keys->remove(key, hash);
    if (size > 0) {
        entry& e = *keyspace::at(c.keys->add(key, hash, sizeof(void*)));
        e.type = value_type::sorted_set;
        e.held_as = holder_->held_as;
        e.set_pointer(holder_->pointer<void>());
        env_.memory.release(holder_, size_);
        holder_ = nullptr;
        c.changed(key_event::sorted_set, event, key);
    } else if (replaced) {
        c.changed(key_event::generic, "del", key);
    }
    c.reply.integer(static_cast<std::int64_t>(size));
}

}  // namespace eddy::cache
