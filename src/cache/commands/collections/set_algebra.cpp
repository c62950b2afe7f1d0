// Intersection, union and difference of sets.
//
// SINTER is O(the smallest set × the number of sets), SUNION and SDIFF O(all members).
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class operation : std::uint8_t { intersection, both, difference };

// The sets named by some arguments, in order; null for a key that is not there.
using operands = std::vector<entry*>;

// False, with the error replied, when one is not a set. A lookup may remove another, expired key,
// but never moves an entry.
bool find_operands(call& c, std::size_t first, std::size_t last, operands& to) {
    for (std::size_t i = first; i <= last; ++i) {
        const slot* const place = c.find_to_read(c.arg(i));
        if (place != nullptr && c.is_not(place, value_type::set)) return false;
        to.push_back(place == nullptr ? nullptr : keyspace::at(place));
    }
    return true;
}

// A set of its own, under no key.
class scratch_set {
public:
    explicit scratch_set(environment& env)
        : env_(env), size_(entry::size_for(0, sizeof(void*), false)) {
        holder_ = entry::make(env.memory.allocate(size_), {}, sizeof(void*), false);
        collection::make(env, *holder_, value_type::set);
    }
    scratch_set(const scratch_set&) = delete;
    scratch_set& operator=(const scratch_set&) = delete;
    ~scratch_set() {
        if (holder_ != nullptr) release_entry(env_, holder_);
    }

    collection members() const noexcept { return {env_, *holder_}; }

    // The value goes to an entry that has room for a pointer.
    void give_to(entry& other) {
        other.type = value_type::set;
        other.held_as = holder_->held_as;
        other.set_pointer(holder_->pointer<void>());
        env_.memory.release(holder_, size_);
        holder_ = nullptr;
    }

private:
    environment& env_;
    std::size_t size_;
    entry* holder_;
};

// Adds the intersection to `to`, up to `limit` members.
std::size_t intersect(call& c, operands sets, std::size_t limit, collection* to) {
    if (std::ranges::find(sets, nullptr) != sets.end()) return 0;
    environment& env = c.state.data.env;
    const auto size = [&env](entry* e) { return collection(env, *e).size(); };
    // The result is in the order of the smallest set, the first of equal ones, as in Redis.
    std::ranges::iter_swap(sets.begin(), std::ranges::min_element(sets, {}, size));
    std::ranges::sort(sets.begin() + 1, sets.end(), {}, size);
    std::size_t found = 0;
    if (to != nullptr && !collection(env, *sets[0]).is_integers()) to->keep_order();
    collection::walk smallest(collection(env, *sets[0]));
    for (collection::element e; found < limit && smallest.next(e);) {
        const bool in_all = std::all_of(sets.begin() + 1, sets.end(), [&](entry* other) {
            return other == sets[0] || collection(env, *other).contains(e.field);
        });
        if (!in_all) continue;
        ++found;
        if (to != nullptr) to->put(e.field);
    }
    return found;
}

void unite(call& c, const operands& sets, collection& to) {
    for (entry* const set : sets) {
        if (set == nullptr) continue;
        collection::walk walk(collection(c.state.data.env, *set));
        for (collection::element e; walk.next(e);) to.put(e.field);
    }
}

void subtract(call& c, const operands& sets, collection& to) {
    environment& env = c.state.data.env;
    if (sets[0] == nullptr) return;
    collection::walk walk(collection(env, *sets[0]));
    for (collection::element e; walk.next(e);) {
        const bool elsewhere = std::any_of(sets.begin() + 1, sets.end(), [&](entry* other) {
            return other != nullptr && collection(env, *other).contains(e.field);
        });
        if (!elsewhere) to.put(e.field);
    }
}

void compute(call& c, operation what, const operands& sets, collection to) {
    switch (what) {
        case operation::intersection: intersect(c, sets, SIZE_MAX, &to); break;
        case operation::both: unite(c, sets, to); break;
        case operation::difference: subtract(c, sets, to); break;
    }
}

void reply_with(call& c, operation what) {
    operands sets;
    if (!find_operands(c, 1, c.count - 1, sets)) return;
    const scratch_set result(c.state.data.env);
    compute(c, what, sets, result.members());
    c.reply.set(result.members().size());
    collection::walk walk(result.members());
    for (collection::element e; walk.next(e) && !c.reply_is_too_large();) c.reply.bulk(e.field);
}

std::string_view stored_event(operation what) noexcept {
    switch (what) {
        case operation::intersection: return "sinterstore";
        case operation::both: return "sunionstore";
        case operation::difference: break;
    }
    return "sdiffstore";
}

void store(call& c, operation what) {
    operands sets;
    if (!find_operands(c, 2, c.count - 1, sets)) return;
    scratch_set result(c.state.data.env);
    compute(c, what, sets, result.members());
    if (what == operation::intersection) result.members().order_integers();
    const std::size_t size = result.members().size();
    const bool removed = c.keys->remove(c.arg(1), c.hash);
    if (size > 0) {
        // A key that was there is replaced, not new.
        environment& env = c.state.data.env;
        key_observer* const observer =
            std::exchange(env.observer, removed ? nullptr : env.observer);
        slot* const place = c.keys->add(c.arg(1), c.hash, sizeof(void*));
        env.observer = observer;
        result.give_to(*keyspace::at(place));
        c.changed(key_event::set, stored_event(what), c.arg(1));
    } else if (removed) {
        c.changed(key_event::generic, "del", c.arg(1));
    }
    c.reply.integer(static_cast<std::int64_t>(size));
}

}  // namespace

void sinter(call& c) { reply_with(c, operation::intersection); }
void sunion(call& c) { reply_with(c, operation::both); }
void sdiff(call& c) { reply_with(c, operation::difference); }
void sinterstore(call& c) { store(c, operation::intersection); }
void sunionstore(call& c) { store(c, operation::both); }
void sdiffstore(call& c) { store(c, operation::difference); }

void sintercard(call& c) {
    const auto keys = c.integer_in(1, 1, INT64_MAX, "ERR numkeys should be greater than 0");
    if (!keys) return;
    if (static_cast<std::uint64_t>(*keys) > c.count - 2) {
        return c.error("ERR Number of keys can't be greater than number of args");
    }
    const std::size_t last = static_cast<std::size_t>(*keys) + 1;
    std::int64_t limit = 0;
    for (std::size_t i = last + 1; i < c.count; i += 2) {
        if (!is_word(c.arg(i), "limit") || i + 1 == c.count) return c.syntax_error();
        const auto given = c.integer_in(i + 1, 0, INT64_MAX, "ERR LIMIT can't be negative");
        if (!given) return;
        limit = *given;
    }
    operands sets;
    if (!find_operands(c, 2, last, sets)) return;
    const std::size_t most = limit == 0 ? SIZE_MAX : static_cast<std::size_t>(limit);
    c.reply.integer(static_cast<std::int64_t>(intersect(c, std::move(sets), most, nullptr)));
}

}  // namespace eddy::cache::commands
