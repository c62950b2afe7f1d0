// Blocking list commands: BLPOP, BLMOVE, BLMPOP and their kin.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/collections/list_ends.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// The list under the key, or null.
slot* find_list(call& c, std::string_view key, std::uint64_t hash) {
    slot* const place = c.keys->find(key, hash);
    return place == nullptr || keyspace::at(place)->type != value_type::list ? nullptr : place;
}

void reply_popped(call& c, std::string_view key, slot* place, std::uint64_t hash, list_side where) {
    c.reply.array(2);
    c.reply.bulk(key);
    pop_one(c, key, place, hash, where);
    propagate_as(c, {pop_name(where), key});
}

template <list_side Where>
bool serve_pop(call& c, std::string_view key) {
    const std::uint64_t hash = c.keys->hash(key);
    slot* const place = find_list(c, key, hash);
    if (place == nullptr) return false;
    reply_popped(c, key, place, hash, Where);
    return true;
}

template <list_side Where>
void pop_or_wait(call& c) {
    const std::size_t last = c.count - 1;
    const auto deadline = deadline_argument(c, last);
    if (!deadline) return;
    for (std::size_t i = 1; i < last; ++i) {
        const std::uint64_t hash = c.keys->hash(c.arg(i));
        slot* const place = c.keys->find(c.arg(i), hash);
        if (place == nullptr) continue;
        if (c.is_not(place, value_type::list)) return;
        return reply_popped(c, c.arg(i), place, hash, Where);
    }
    if (!may_wait(c)) return c.reply.null_array();
    wait_for_keys(c, 1, last - 1, value_type::list, *deadline, serve_pop<Where>);
}

// Sides of a move: arguments of BLMOVE, fixed for BRPOPLPUSH.
struct sides {
    list_side from = list_side::right;
    list_side to = list_side::left;
};

bool parse_sides(call& c, sides& to) {
    if ((c.spec->flags & command_flag::last_to_first) != 0) return true;
    if (parse_side(c.arg(3), to.from) && parse_side(c.arg(4), to.to)) return true;
    c.syntax_error();
    return false;
}

bool serve_move(call& c, std::string_view key) {
    if (find_list(c, key, c.hash) == nullptr) return false;
    sides which;
    parse_sides(c, which);
    move_element(c, which.from, which.to);
    return true;
}

void move_or_wait(call& c) {
    sides which;
    if (!parse_sides(c, which)) return;
    const auto deadline = deadline_argument(c, c.count - 1);
    if (!deadline) return;
    if (c.find_to_write() != nullptr) return move_element(c, which.from, which.to);
    if (!may_wait(c)) return c.reply.null();
    wait_for_keys(c, 1, 1, value_type::list, *deadline, serve_move);
}

bool serve_lmpop(call& c, std::string_view key) {
    const std::uint64_t hash = c.keys->hash(key);
    slot* const place = find_list(c, key, hash);
    if (place == nullptr) return false;
    const auto what = parse_lmpop(c, 2);
    c.reply.array(2);
    c.reply.bulk(key);
    pop_range(c, key, place, hash, what->where, what->count);
    return true;
}

}  // namespace

void blpop(call& c) { pop_or_wait<list_side::left>(c); }
void brpop(call& c) { pop_or_wait<list_side::right>(c); }
void blmove(call& c) { move_or_wait(c); }
void brpoplpush(call& c) { move_or_wait(c); }

void blmpop(call& c) {
    const auto deadline = deadline_argument(c, 1);
    if (!deadline) return;
    const auto what = parse_lmpop(c, 2);
    if (!what || pop_from_first(c, *what)) return;
    if (!may_wait(c)) return c.reply.null_array();
    wait_for_keys(c, what->first_key, what->keys, value_type::list, *deadline, serve_lmpop);
}

}  // namespace eddy::cache::commands
