// List commands: LPUSH, LRANGE and their kin. Waiting ones are in list_blocking.cpp.
#include "cache/catalog/commands.hpp"
#include "cache/commands/collections/list_ends.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class if_absent : std::uint8_t { create, refuse };

void push(call& c, list_side where, if_absent otherwise) {
    slot* place = c.find_to_write();
    if (place == nullptr) {
        if (otherwise == if_absent::refuse) return c.reply.integer(0);
        place = c.keys->add(c.arg(1), c.hash, value_type::list);
    } else if (c.is_not(place, value_type::list)) {
        return;
    }
    list& to = call::list_of(place);
    for (std::size_t i = 2; i < c.count; ++i) push_element(c, to, where, c.arg(i));
    c.changed(key_event::list, push_event(where), c.arg(1), c.count - 2);
    c.reply.integer(static_cast<std::int64_t>(to.size()));
}

void pop(call& c, list_side where) {
    if (c.count > 3) return c.wrong_arity();
    std::optional<std::int64_t> count;
    if (c.count == 3) {
        count = c.positive(2);
        if (!count) return;
    }
    slot* const place = c.find_to_write();
    if (place == nullptr) return count ? c.reply.null_array() : c.reply.null();
    if (c.is_not(place, value_type::list)) return;
    if (count) {
        if (*count == 0) return c.reply.array(0);
        return pop_range(c, c.arg(1), place, c.hash, where, static_cast<std::uint64_t>(*count));
    }
    pop_one(c, c.arg(1), place, c.hash, where);
}

// Index from the front, negative from the back; none when it is outside.
std::optional<std::size_t> resolve(std::int64_t index, std::size_t size) noexcept {
    if (index < 0) index += static_cast<std::int64_t>(size);
    if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
    return static_cast<std::size_t>(index);
}

struct range {
    std::size_t first = 0;
    std::size_t count = 0;
};

// Both ends are included, and either may be negative or outside.
range resolve_range(std::int64_t from, std::int64_t to, std::size_t size) noexcept {
    const auto length = static_cast<std::int64_t>(size);
    if (from < 0) from = std::max<std::int64_t>(from + length, 0);
    if (to < 0) to += length;
    to = std::min(to, length - 1);
    if (from > to || from >= length) return {};
    return {static_cast<std::size_t>(from), static_cast<std::size_t>(to - from + 1)};
}

}  // namespace

void lpush(call& c) { push(c, list_side::left, if_absent::create); }
void rpush(call& c) { push(c, list_side::right, if_absent::create); }
void lpushx(call& c) { push(c, list_side::left, if_absent::refuse); }
void rpushx(call& c) { push(c, list_side::right, if_absent::refuse); }
void lpop(call& c) { pop(c, list_side::left); }
void rpop(call& c) { pop(c, list_side::right); }

void llen(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::list)) return;
    c.reply.integer(static_cast<std::int64_t>(call::list_of(place).size()));
}

void lindex(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.null();
    if (c.is_not(place, value_type::list)) return;
    const auto index = c.integer(2);
    if (!index) return;
    const list& elements = call::list_of(place);
    const auto at = resolve(*index, elements.size());
    if (!at) return c.reply.null();
    c.reply.bulk(list::get(elements.at(*at)));
}

void lset(call& c) {
    const slot* const place = c.find_to_write();
    if (place == nullptr) return c.error(no_such_key_text);
    if (c.is_not(place, value_type::list)) return;
    const auto index = c.integer(2);
    if (!index) return;
    list& elements = call::list_of(place);
    const auto at = resolve(*index, elements.size());
    if (!at) return c.error("ERR index out of range");
    before_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    elements.replace(c.memory(), elements.at(*at), c.arg(3));
    after_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    c.changed(key_event::list, "lset", c.arg(1));
    c.reply.ok();
}

void lrange(call& c) {
    const auto from = c.integer(2);
    if (!from) return;
    const auto to = c.integer(3);
    if (!to) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::list)) return;
    const list& elements = call::list_of(place);
    const range wanted = resolve_range(*from, *to, elements.size());
    c.reply.array(wanted.count);
    if (wanted.count == 0) return;
    list::position at = elements.at(wanted.first);
    for (std::size_t i = 0; i < wanted.count && !c.reply_is_too_large();
         ++i, at = list::after(at)) {
        c.reply.bulk(list::get(at));
    }
}

void ltrim(call& c) {
    const auto from = c.integer(2);
    if (!from) return;
    const auto to = c.integer(3);
    if (!to) return;
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.ok();
    if (c.is_not(place, value_type::list)) return;
    list& elements = call::list_of(place);
    const range kept = resolve_range(*from, *to, elements.size());
    c.changed(key_event::list, "ltrim", c.arg(1), elements.size() - kept.count);
    if (kept.count == 0) {
        c.keys->remove(place, c.hash);
        c.also_happened(key_event::generic, "del", c.arg(1));
        return c.reply.ok();
    }
    before_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    elements.drop_front(c.memory(), kept.first);
    elements.drop_back(c.memory(), elements.size() - kept.count);
    after_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    c.reply.ok();
}

void lrem(call& c) {
    const auto count = c.integer(2);
    if (!count) return;
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::list)) return;
    list& elements = call::list_of(place);
    const bool all = *count == 0 || *count == INT64_MIN;
    const std::int64_t limit = all ? INT64_MAX : std::abs(*count);
    std::int64_t removed = 0;
    const bool from_back = *count < 0;
    before_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    list::position at = from_back ? elements.last() : elements.first();
    while (at && removed < limit) {
        const bool same = same_bytes(list::get(at), c.arg(3));
        if (same) ++removed;
        if (from_back) {
            const list::position before = list::before(at);
            if (same) elements.erase(c.memory(), at);
            at = before;
        } else {
            at = same ? elements.erase(c.memory(), at) : list::after(at);
        }
    }
    if (removed > 0) {
        c.changed(key_event::list, "lrem", c.arg(1), static_cast<std::uint64_t>(removed));
    }
    elements.shrink(c.memory());
    if (!elements.empty())
        after_shrinking(c.state.data.env, *keyspace::at(place), list_measure::exact);
    c.remove_if_empty(place, c.hash);
    c.reply.integer(removed);
}

void linsert(call& c) {
    const bool before = is_word(c.arg(2), "before");
    if (!before && !is_word(c.arg(2), "after")) return c.syntax_error();
    const slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::list)) return;
    list& elements = call::list_of(place);
    list::position at = elements.first();
    while (at && !same_bytes(list::get(at), c.arg(3))) at = list::after(at);
    if (!at) return c.reply.integer(-1);
    if (before) {
        elements.insert_before(c.memory(), at, c.arg(4));
    } else {
        elements.insert_after(c.memory(), at, c.arg(4));
    }
    c.changed(key_event::list, "linsert", c.arg(1));
    c.reply.integer(static_cast<std::int64_t>(elements.size()));
}

void lpos(call& c) {
    std::int64_t rank = 1;
    std::optional<std::int64_t> count;
    std::int64_t max_compared = 0;
    for (std::size_t i = 3; i < c.count; i += 2) {
        const bool has_value = i + 1 < c.count;
        if (is_word(c.arg(i), "rank") && has_value) {
            const auto given = c.integer(i + 1);
            if (!given) return;
            if (*given == INT64_MIN) {
                return c.error(
                    "ERR value is out of range, value must between -9223372036854775807 and "
                    "9223372036854775807");
            }
            if (*given == 0) {
                return c.error(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                    "the second ... or use negative to start from the end of the list");
            }
            rank = *given;
        } else if (is_word(c.arg(i), "count") && has_value) {
            count = c.integer_in(i + 1, 0, INT64_MAX, "ERR COUNT can't be negative");
            if (!count) return;
        } else if (is_word(c.arg(i), "maxlen") && has_value) {
            const auto given = c.integer_in(i + 1, 0, INT64_MAX, "ERR MAXLEN can't be negative");
            if (!given) return;
            max_compared = *given;
        } else {
            return c.syntax_error();
        }
    }
    const slot* const place = c.find_to_read();
    if (place == nullptr) return count ? c.reply.array(0) : c.reply.null();
    if (c.is_not(place, value_type::list)) return;

    const list& elements = call::list_of(place);
    const bool from_back = rank < 0;
    std::int64_t to_skip = std::abs(rank) - 1;
    const std::int64_t wanted = !count ? 1 : *count == 0 ? INT64_MAX : *count;
    std::vector<std::int64_t> found;
    list::position at = from_back ? elements.last() : elements.first();
    for (std::int64_t seen = 0; at && (max_compared == 0 || seen < max_compared); ++seen) {
        if (same_bytes(list::get(at), c.arg(2)) && to_skip-- <= 0) {
            found.push_back(from_back ? static_cast<std::int64_t>(elements.size()) - 1 - seen
                                      : seen);
            if (static_cast<std::int64_t>(found.size()) == wanted) break;
        }
        at = from_back ? list::before(at) : list::after(at);
    }
    if (!count) return found.empty() ? c.reply.null() : c.reply.integer(found[0]);
    c.reply.array(found.size());
    for (const std::int64_t index : found) c.reply.integer(index);
}

void lmove(call& c) {
    list_side from, to;
    if (!parse_side(c.arg(3), from) || !parse_side(c.arg(4), to)) return c.syntax_error();
    move_element(c, from, to);
}

void rpoplpush(call& c) { move_element(c, list_side::right, list_side::left); }

void lmpop(call& c) {
    const auto what = parse_lmpop(c, 1);
    if (what && !pop_from_first(c, *what)) c.reply.null_array();
}

}  // namespace eddy::cache::commands
