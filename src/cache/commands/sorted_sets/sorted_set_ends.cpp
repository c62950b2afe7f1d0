// Pop at the ends of sorted sets.
#include "cache/commands/sorted_sets/sorted_set_ends.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>

namespace eddy::cache {

// Propagates commands that wait, or that search for a key to pop from, as a pop of that key.
static void propagate_pop(call& c, std::string_view key, score_end from, std::size_t popped,
                          pop_shape shape) {
    if (!propagates(c) || (c.spec->flags & command_flag::pops_one_of) == 0) return;
    const std::string_view name = from == score_end::highest ? "ZPOPMAX" : "ZPOPMIN";
    if (shape == pop_shape::behind_key)
        propagate_as(c, {name, key});
    else
        propagate_as(c, {name, key, decimal(static_cast<std::int64_t>(popped))});
}

void pop_members(call& c, std::string_view key, std::uint64_t hash, call::slot* place,
                 score_end from, std::size_t count, pop_shape shape) {
    sorted_set members = c.sorted_set_of(place);
    const std::size_t size = members.size();
    const std::size_t popped = std::min(count, size);
    const bool paired = shape == pop_shape::pairs;
    c.reply.array(paired ? popped : popped * 2 + (shape == pop_shape::behind_key ? 1 : 0));
    if (shape == pop_shape::behind_key) c.reply.bulk(key);
    sorted_set::walk walk(members, from == score_end::highest);
    sorted_set::element e;
    for (std::size_t left = popped; left > 0 && walk.next(e); --left) {
        if (c.reply_is_too_large()) return;  // with nothing removed
        if (paired) c.reply.array(2);
        c.reply.bulk(e.member);
        c.reply.number(e.score);
    }
    propagate_pop(c, key, from, popped, shape);
    const std::string_view event = from == score_end::highest ? "zpopmax" : "zpopmin";
    if (popped == size) {
        // Freed as a whole, in slices if it is big.
        c.keys->remove(place, hash);
        c.changed(key_event::sorted_set, event, key);
        return c.changed(key_event::generic, "del", key);
    }
    members.erase_range(from == score_end::highest ? size - popped : 0, popped);
    c.changed(key_event::sorted_set, event, key);
}

std::optional<sorted_set_pop> parse_zmpop(call& c, std::size_t first) {
    const auto keys = c.integer_in(first, 1, INT64_MAX, "ERR numkeys should be greater than 0");
    if (!keys) return std::nullopt;
    const auto syntax_error = [&c]() -> std::optional<sorted_set_pop> {
        c.syntax_error();
        return std::nullopt;
    };
    if (static_cast<std::uint64_t>(*keys) >= c.count - first - 1) return syntax_error();
    sorted_set_pop what{first + 1, static_cast<std::size_t>(*keys), score_end::lowest, 1};
    const std::size_t where_at = what.first_key + what.keys;
    if (is_word(c.arg(where_at), "max")) {
        what.from = score_end::highest;
    } else if (!is_word(c.arg(where_at), "min")) {
        return syntax_error();
    }
    bool has_count = false;
    for (std::size_t i = where_at + 1; i < c.count; i += 2) {
        if (has_count || !is_word(c.arg(i), "count") || i + 1 == c.count) return syntax_error();
        const auto count = c.integer_in(i + 1, 1, INT64_MAX, "ERR count should be greater than 0");
        if (!count) return std::nullopt;
        what.count = static_cast<std::size_t>(*count);
        has_count = true;
    }
    return what;
}

bool pop_from_first(call& c, const sorted_set_pop& what) {
    for (std::size_t i = what.first_key; i < what.first_key + what.keys; ++i) {
        const std::string_view key = c.arg(i);
        const std::uint64_t hash = c.keys->hash(key);
        call::slot* const place = c.keys->find(key, hash);
        if (place == nullptr) continue;
        if (c.is_not(place, value_type::sorted_set)) return true;
        c.reply.array(2);
        c.reply.bulk(key);
        pop_members(c, key, hash, place, what.from, what.count, pop_shape::pairs);
        return true;
    }
    return false;
}

}  // namespace eddy::cache
