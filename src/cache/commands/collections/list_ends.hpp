// List ends: the parts shared by the commands that pop, push and move elements.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/types/encoding_name.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

enum class list_side : std::uint8_t { left, right };

/// "left" or "right" in any case; false for another word.
bool parse_side(std::string_view word, list_side& to) noexcept;

inline void push_element(call& c, list& to, list_side where, std::string_view element) {
    if (where == list_side::left) {
        to.push_front(c.memory(), element);
    } else {
        to.push_back(c.memory(), element);
    }
}

/// The list is not empty.
inline std::string_view peek_element(const list& from, list_side where) noexcept {
    return where == list_side::left ? from.front() : from.back();
}

inline void drop_element(call& c, entry& holder, list_side where) noexcept {
    list& from = *holder.pointer<list>();
    before_shrinking(c.state.data.env, holder, list_measure::fast);
    if (where == list_side::left) {
        from.pop_front(c.memory());
    } else {
        from.pop_back(c.memory());
    }
    if (!from.empty()) after_shrinking(c.state.data.env, holder, list_measure::fast);
}

inline std::string_view push_event(list_side where) noexcept {
    return where == list_side::left ? "lpush" : "rpush";
}

inline std::string_view pop_event(list_side where) noexcept {
    return where == list_side::left ? "lpop" : "rpop";
}

/// The command that pops.
inline std::string_view pop_name(list_side where) noexcept {
    return where == list_side::left ? "LPOP" : "RPOP";
}

/// Replies with one element of the list and removes it, and the key with its last one.
inline void pop_one(call& c, std::string_view key, call::slot* place, std::uint64_t hash,
                    list_side where) {
    list& from = call::list_of(place);
    c.reply.bulk(peek_element(from, where));
    drop_element(c, *keyspace::at(place), where);
    c.changed(key_event::list, pop_event(where), key);
    if (!from.empty()) [[likely]]
        return;
    c.keys->remove(place, hash);
    c.also_happened(key_event::generic, "del", key);
}

/// The same with up to `count` elements, as an array.
void pop_range(call& c, std::string_view key, call::slot* place, std::uint64_t hash,
               list_side where, std::uint64_t count);

/// Arguments of LMPOP and BLMPOP.
struct list_pop {
    std::size_t first_key;
    std::size_t keys;
    list_side where;
    std::uint64_t count;
};
/// Parses "numkeys key ... LEFT|RIGHT [COUNT count]" from arg(first) on; none, with the error
/// replied, where that is something else.
std::optional<list_pop> parse_lmpop(call& c, std::size_t first);
/// Pops from the first of the keys that is there, and replies; false, with no reply, when there is
/// none.
bool pop_from_first(call& c, const list_pop& what);

/// Moves an element from arg(1) to arg(2) and replies with it, or null where there is none.
void move_element(call& c, list_side from, list_side to);

}  // namespace eddy::cache
