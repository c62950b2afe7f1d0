// Pop, push and move at the ends of lists.
#include "cache/commands/collections/list_ends.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache {

bool parse_side(std::string_view word, list_side& to) noexcept {
    if (is_word(word, "left")) {
        to = list_side::left;
    } else if (is_word(word, "right")) {
        to = list_side::right;
    } else {
        return false;
    }
    return true;
}

void pop_range(call& c, std::string_view key, call::slot* place, std::uint64_t hash,
               list_side where, std::uint64_t count) {
    list& from = call::list_of(place);
    const std::uint64_t popped = std::min<std::uint64_t>(count, from.size());
    c.reply.array(popped);
    const bool from_left = where == list_side::left;
    list::position at = from_left ? from.first() : from.last();
    for (std::uint64_t left = popped; left > 0; --left) {
        c.reply.bulk(list::get(at));
        if (c.reply_is_too_large()) return;  // with nothing removed
        at = from_left ? list::after(at) : list::before(at);
    }
    before_shrinking(c.state.data.env, *keyspace::at(place), list_measure::fast);
    if (from_left)
        from.drop_front(c.memory(), popped);
    else
        from.drop_back(c.memory(), popped);
    if (!from.empty()) after_shrinking(c.state.data.env, *keyspace::at(place), list_measure::fast);
    c.changed(key_event::list, pop_event(where), key, popped);
    if (propagates(c) && (c.spec->flags & command_flag::pops_one_of) != 0)
        propagate_as(c, {pop_name(where), key, decimal(static_cast<std::int64_t>(popped))});
    if (!from.empty()) return;
    c.keys->remove(place, hash);
    c.also_happened(key_event::generic, "del", key);
}

std::optional<list_pop> parse_lmpop(call& c, std::size_t first) {
    const auto keys = c.integer_in(first, 1, INT64_MAX, "ERR numkeys should be greater than 0");
    if (!keys) return std::nullopt;
    const auto syntax_error = [&c]() -> std::optional<list_pop> {
        c.syntax_error();
        return std::nullopt;
    };
    if (static_cast<std::uint64_t>(*keys) >= c.count - first - 1) return syntax_error();
    list_pop what{first + 1, static_cast<std::size_t>(*keys), list_side::left, 1};
    const std::size_t where_at = what.first_key + what.keys;
    if (!parse_side(c.arg(where_at), what.where)) return syntax_error();
    bool has_count = false;
    for (std::size_t i = where_at + 1; i < c.count; ++i) {
        if (has_count || !is_word(c.arg(i), "count") || i + 1 == c.count) return syntax_error();
        const auto count = c.integer_in(++i, 1, INT64_MAX, "ERR count should be greater than 0");
        if (!count) return std::nullopt;
        what.count = static_cast<std::uint64_t>(*count);
        has_count = true;
    }
    return what;
}

bool pop_from_first(call& c, const list_pop& what) {
    for (std::size_t i = what.first_key; i < what.first_key + what.keys; ++i) {
        const std::uint64_t hash = c.keys->hash(c.arg(i));
        call::slot* const place = c.keys->find(c.arg(i), hash);
        if (place == nullptr) continue;
        if (c.is_not(place, value_type::list)) return true;
        c.reply.array(2);
        c.reply.bulk(c.arg(i));
        pop_range(c, c.arg(i), place, hash, what.where, what.count);
        return true;
    }
    return false;
}

void move_element(call& c, list_side from_side, list_side to_side) {
    call::slot* const source = c.find_to_write();
    if (source == nullptr) return c.reply.null();
    if (c.is_not(source, value_type::list)) return;
    const std::string_view to_key = c.arg(2);
    const std::uint64_t to_hash = c.keys->hash(to_key);
    call::slot* const target = c.keys->find(to_key, to_hash);
    if (target != nullptr && c.is_not(target, value_type::list)) return;
    // The lookup of the target may have removed it as expired, so the source is looked up again.
    // The element is removed first: it may be added to the same block.
    entry& from = *keyspace::at(c.find_to_write());
    const std::string element(peek_element(*from.pointer<list>(), from_side));
    c.reply.bulk(element);
    drop_element(c, from, from_side);
    call::slot* const to = target != nullptr ? c.keys->find(to_key, to_hash)
                                             : c.keys->add(to_key, to_hash, value_type::list);
    push_element(c, call::list_of(to), to_side, element);
    c.changed(key_event::list, push_event(to_side), to_key);
    // One that does not wait is propagated as it is.
    if ((c.spec->flags & command_flag::blocking) != 0) {
        if ((c.spec->flags & command_flag::last_to_first) != 0)
            propagate_as(c, {"RPOPLPUSH", c.arg(1), to_key});
        else
            propagate_as(c, {"LMOVE", c.arg(1), to_key, c.arg(3), c.arg(4)});
    }
    c.also_happened(key_event::list, pop_event(from_side), c.arg(1));
    c.remove_if_empty(c.find_to_write(), c.hash);
}

}  // namespace eddy::cache
