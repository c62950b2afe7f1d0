// Set commands on one set: SADD, SPOP and their kin. Unions and the like are in set_algebra.cpp.
#include "cache/catalog/commands.hpp"
#include "cache/commands/keys/random_picks.hpp"
#include "cache/commands/keys/scan_options.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// False when the reply is too large; then the error is replied.
bool reply_members(call& c, const collection& members) {
    c.reply.set(members.size());
    collection::walk walk(members);
    for (collection::element e; walk.next(e);) {
        c.reply.bulk(e.field);
        if (c.reply_is_too_large()) return false;
    }
    return true;
}

// Random members popped by SPOP.
class popped_members {
public:
    popped_members(call& c, collection& from, std::int64_t wanted)
        : c_(c), from_(from), keeps_(wanted > 1 || propagates(c)) {}
    std::size_t size() const noexcept { return taken_; }
    /// Takes one and replies it. False when the reply becomes too large; then all are put back.
    bool take() {
        std::string member(from_.random().field);
        c_.reply.bulk(member);
        if (c_.reply_is_too_large()) {
            for (const std::string& each : members_) from_.put(each);
            return false;
        }
        from_.erase(member);
        ++taken_;
        if (keeps_) members_.push_back(std::move(member));
        return true;
    }
    /// Propagates as SREM, in several commands of bounded size.
    void propagate() const {
        if (!propagates(c_)) return;
        for (std::span<const std::string> left = members_; !left.empty();) {
            const auto some = left.first(std::min(left.size(), most_in_one));
            std::vector<std::string_view> args{"SREM", c_.arg(1)};
            args.insert(args.end(), some.begin(), some.end());
            propagate_as(c_, args);
            left = left.subspan(some.size());
        }
    }

private:
    static constexpr std::size_t most_in_one = 1024;
    call& c_;
    collection& from_;
    const bool keeps_;
    std::size_t taken_ = 0;
    std::vector<std::string> members_;
};

// Where SPOP removes many at once, Redis moves the remaining members, so that few that remain of a
// table become a listpack.
void gather_rest(call& c, slot* place, std::size_t taken) {
    constexpr std::size_t many = 5;
    environment& env = c.state.data.env;
    entry& e = *keyspace::at(place);
    const collection before(env, e);
    const std::size_t left = before.size();
    if (before.is_listed() || left * many > taken || left > env.limits.set_members) return;
    std::vector<std::string> rest;
    rest.reserve(left);
    collection::walk walk(before);
    for (collection::element each; walk.next(each);) rest.emplace_back(each.field);
    release_value(env, e);
    collection::make(env, e, value_type::set);
    collection made(env, e);
    made.keep_order();
    for (const std::string& each : rest) made.put(each);
}

}  // namespace

void sadd(call& c) {
    slot* place = c.find_to_write();
    if (place == nullptr) {
        place = c.keys->add(c.arg(1), c.hash, value_type::set);
    } else if (c.is_not(place, value_type::set)) {
        return;
    }
    collection members = c.collection_of(place);
    members.expect(c.arg(2), c.count - 2);
    std::int64_t added = 0;
    for (std::size_t i = 2; i < c.count; ++i) added += members.put(c.arg(i)) ? 1 : 0;
    if (added > 0) {
        c.changed(key_event::set, "sadd", c.arg(1), static_cast<std::uint64_t>(added));
    }
    c.reply.integer(added);
}

void srem(call& c) {
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::set)) return;
    collection members = c.collection_of(place);
    std::int64_t removed = 0;
    for (std::size_t i = 2; i < c.count && !members.empty(); ++i) {
        removed += members.erase(c.arg(i)) ? 1 : 0;
    }
    if (removed > 0) {
        c.changed(key_event::set, "srem", c.arg(1), static_cast<std::uint64_t>(removed));
    }
    c.remove_if_empty(place, c.hash);
    c.reply.integer(removed);
}

void smembers(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.set(0);
    if (c.is_not(place, value_type::set)) return;
    static_cast<void>(reply_members(c, c.collection_of(place)));
}

void sismember(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::set)) return;
    c.reply.integer(c.collection_of(place).contains(c.arg(2)) ? 1 : 0);
}

void smismember(call& c) {
    const slot* const place = c.find_to_read();
    if (place != nullptr && c.is_not(place, value_type::set)) return;
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count; ++i) {
        c.reply.integer(place != nullptr && c.collection_of(place).contains(c.arg(i)) ? 1 : 0);
    }
}

void scard(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::set)) return;
    c.reply.integer(static_cast<std::int64_t>(c.collection_of(place).size()));
}

void spop(call& c) {
    if (c.count > 3) return c.syntax_error();
    std::optional<std::int64_t> count;
    if (c.count == 3) {
        count = c.positive(2);
        if (!count) return;
    }
    slot* const place = c.find_to_write();
    if (place == nullptr) return count ? c.reply.set(0) : c.reply.null();
    if (c.is_not(place, value_type::set)) return;
    collection members = c.collection_of(place);
    if (count && static_cast<std::uint64_t>(*count) >= members.size()) {
        const std::size_t size = members.size();
        if (!reply_members(c, members)) return;
        c.keys->remove(place, c.hash);
        c.changed(key_event::set, "spop", c.arg(1), size);
        propagate_as(c, {"DEL", c.arg(1)});
        return c.also_happened(key_event::generic, "del", c.arg(1));
    }
    if (count) c.reply.set(static_cast<std::size_t>(*count));
    const std::int64_t wanted = count.value_or(1);
    popped_members gone(c, members, wanted);
    for (std::int64_t left = wanted; left > 0; --left) {
        if (!gone.take()) return;
    }
    gone.propagate();
    gather_rest(c, place, gone.size());
    if (gone.size() > 0) c.changed(key_event::set, "spop", c.arg(1), gone.size());
    c.remove_if_empty(place, c.hash);
}

void srandmember(call& c) {
    if (c.count > 3) return c.syntax_error();
    if (c.count == 2) {
        const slot* const place = c.find_to_read();
        if (place == nullptr) return c.reply.null();
        if (c.is_not(place, value_type::set)) return;
        return c.reply.bulk(c.collection_of(place).random().field);
    }
    const auto count = random_count(c, 2);
    if (!count) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::set)) return;
    reply_random(c, c.collection_of(place), *count, picked::fields);
}

void smove(call& c) {
    slot* const source = c.find_to_write();
    if (source == nullptr) return c.reply.integer(0);
    const std::uint64_t to_hash = c.keys->hash(c.arg(2));
    const bool source_is_set = keyspace::at(source)->type == value_type::set;
    slot* const target = c.keys->find(c.arg(2), to_hash);
    if (!source_is_set) return c.wrong_type();
    if (target != nullptr && c.is_not(target, value_type::set)) return;
    if (c.arg(1) == c.arg(2)) {
        return c.reply.integer(c.collection_of(target).contains(c.arg(3)) ? 1 : 0);
    }
    // The lookup of the target may have removed the source, so the source is looked up again.
    slot* const from = c.find_to_write();
    if (!c.collection_of(from).erase(c.arg(3))) return c.reply.integer(0);
    c.changed(key_event::set, "srem", c.arg(1));
    c.remove_if_empty(from, c.hash);
    slot* to = c.keys->find(c.arg(2), to_hash);
    if (to == nullptr) {
        to = c.keys->add(c.arg(2), to_hash, value_type::set);
        c.collection_of(to).expect(c.arg(3), 1);
    }
    if (c.collection_of(to).put(c.arg(3))) c.changed(key_event::set, "sadd", c.arg(2));
    c.reply.integer(1);
}

void sscan(call& c) {
    const auto cursor = parse_cursor(c, 2);
    if (!cursor) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return reply_empty_scan(c);
    if (c.is_not(place, value_type::set)) return;
    reply_scan(c, c.collection_of(place), *cursor);
}

}  // namespace eddy::cache::commands
