// Blocking sorted set commands: BZPOPMIN, BZPOPMAX, BZMPOP.
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/sorted_sets/sorted_set_ends.hpp"
#include "cache/engine/call.hpp"

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// The sorted set under the key, or null.
slot* find_sorted_set(call& c, std::string_view key, std::uint64_t hash) {
    slot* const place = c.keys->find(key, hash);
    return place == nullptr || keyspace::at(place)->type != value_type::sorted_set ? nullptr
                                                                                   : place;
}

template <score_end From>
bool serve_pop(call& c, std::string_view key) {
    const std::uint64_t hash = c.keys->hash(key);
    slot* const place = find_sorted_set(c, key, hash);
    if (place == nullptr) return false;
    pop_members(c, key, hash, place, From, 1, pop_shape::behind_key);
    return true;
}

template <score_end From>
void pop_or_wait(call& c) {
    const std::size_t last = c.count - 1;
    const auto deadline = deadline_argument(c, last);
    if (!deadline) return;
    for (std::size_t i = 1; i < last; ++i) {
        const std::uint64_t hash = c.keys->hash(c.arg(i));
        slot* const place = c.keys->find(c.arg(i), hash);
        if (place == nullptr) continue;
        if (c.is_not(place, value_type::sorted_set)) return;
        return pop_members(c, c.arg(i), hash, place, From, 1, pop_shape::behind_key);
    }
    if (!may_wait(c)) return c.reply.null_array();
    wait_for_keys(c, 1, last - 1, value_type::sorted_set, *deadline, serve_pop<From>);
}

bool serve_zmpop(call& c, std::string_view key) {
    const std::uint64_t hash = c.keys->hash(key);
    slot* const place = find_sorted_set(c, key, hash);
    if (place == nullptr) return false;
    const auto what = parse_zmpop(c, 2);
    c.reply.array(2);
    c.reply.bulk(key);
    pop_members(c, key, hash, place, what->from, what->count, pop_shape::pairs);
    return true;
}

}  // namespace

void bzpopmin(call& c) { pop_or_wait<score_end::lowest>(c); }
void bzpopmax(call& c) { pop_or_wait<score_end::highest>(c); }

void bzmpop(call& c) {
    const auto deadline = deadline_argument(c, 1);
    if (!deadline) return;
    const auto what = parse_zmpop(c, 2);
    if (!what || pop_from_first(c, *what)) return;
    if (!may_wait(c)) return c.reply.null_array();
    wait_for_keys(c, what->first_key, what->keys, value_type::sorted_set, *deadline, serve_zmpop);
}

}  // namespace eddy::cache::commands
