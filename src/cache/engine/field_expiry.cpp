// Removal of expired fields: the snapshot is notified before it, all other observers after it.
#include "cache/engine/field_expiry.hpp"

#include "cache/persistence/propagation.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <vector>

namespace eddy::cache {
namespace {

constexpr std::size_t steps_a_field = 4;

bool others_say_what_goes(const engine_state& s) noexcept {
    return s.data.env.expired != expired_keys::go;
}

// Expired fields are invisible, so they can stay until a snapshot has written a huge hash, which
// would block all clients. A command that changes the hash runs after the snapshot has written it.
bool has_to_wait(engine_state& s, const keyspace& in, entry& e, std::uint64_t hash) {
    if (in.keeper() == nullptr || !in.keeper()->takes_long(e, hash)) return false;
    in.keeper()->prepare(e);
    s.clients.some_wait_for_snapshot = true;
    return true;
}

}  // namespace

void notify_fields_expired(engine_state& s, keyspace& in, std::string_view key,
                           std::span<const std::string> fields, bool key_is_gone) {
    if (s.data.env.fields != nullptr) s.data.env.fields->ended += fields.size();
    if (s.clients.observers == 0) return;
    if (propagates(s)) {
        std::vector<std::string_view> command{"HDEL", key};
        command.insert(command.end(), fields.begin(), fields.end());
        s.persistence.propagating->record(in.number(), command, false);
        s.persistence.propagating->deliver_if_closed();
    }
    s.key_happened(in.number(), key_event::hash, "hexpired", key);
    if (key_is_gone) s.key_happened(in.number(), key_event::generic, "del", key);
}

std::size_t expire_fields(engine_state& s, keyspace& in, keyspace::slot* place, std::uint64_t hash,
                          std::size_t most, std::span<const std::string_view> named) {
    entry& e = *keyspace::at(place);
    collection fields(s.data.env, e);
    if (fields.ended() == 0 || others_say_what_goes(s)) return 0;
    if (has_to_wait(s, in, e, hash)) return 0;
    if (in.keeper() != nullptr) in.keeper()->before_change(e, hash);
    const std::string key(e.key());
    std::vector<std::string> names;
    fields.remove_expired(most, named, names);
    const bool is_gone = fields.all() == 0;
    if (is_gone)
        in.remove(place, hash);
    else
        s.data.env.fields->note(*timed_table::of(e));
    notify_fields_expired(s, in, key, names, is_gone);
    return names.size();
}

bool has_fields_to_end(const engine_state& s) noexcept {
    return s.data.env.fields != nullptr && !others_say_what_goes(s) &&
           s.data.env.fields->size() > 0 && s.data.env.now_ms > s.data.env.fields->first_end();
}

bool sweep_fields(engine_state& s, std::size_t steps, slice_limit& slice) {
    if (!has_fields_to_end(s)) return false;
    field_clock& clock = *s.data.env.fields;
    std::size_t left = steps / steps_a_field + 1;
    std::size_t weight = 0;
    for (; has_fields_to_end(s) && left > 0; --left) {
        // The weight of a hash is one field's, plus one for each expired field.
        if (slice.is_over_after(std::exchange(weight, 1))) break;
        timed_table& next = clock.first();
        keyspace& in = *next.home;
        keyspace::slot* const place = in.table().find_hash(next.key_hash, [&](const entry& e) {
            return e.held_as == encoding::timed_table && timed_table::of(e) == &next;
        });
        if (place == nullptr) {
            // Flushed or removed; kept only until a snapshot has written it or its memory is free.
            clock.forget(next);
        } else if (in.is_over(*keyspace::at(place))) {
            const std::string key(keyspace::at(place)->key());
            static_cast<void>(in.find_to_read(key, next.key_hash));
        } else if (has_to_wait(s, in, *keyspace::at(place), next.key_hash)) {
            return false;
        } else {
            const std::size_t most = std::min(left, slice_limit::a_look);
            const std::size_t ended = expire_fields(s, in, place, next.key_hash, most);
            if (ended == 0) clock.note(next);
            weight += ended;
            left -= std::min(left - 1, ended);
        }
    }
    return has_fields_to_end(s);
}

keyspace::slot* without_expired(call& c, keyspace::slot* place) {
    // Fields named by the command are removed, here and on replicas, before it sets them again.
    const std::span<const std::string_view> named(c.args + 2, c.count - 2);
    if (expire_fields(c.state, *c.keys, place, c.hash, fields_expired_by_command, named) == 0)
        return place;
    return c.keys->find(c.arg(1), c.hash);
}

}  // namespace eddy::cache
