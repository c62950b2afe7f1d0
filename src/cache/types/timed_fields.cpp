// Order of expiring fields, and of the hashes that have them.
#include "cache/types/timed_fields.hpp"

#include <eddy/base/assert.hpp>

#include "cache/types/collection.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace eddy::cache {

void timed_table::enter_order(slab& memory, entry* field, expiry_time at_ms) {
    order.insert(memory, static_cast<double>(at_ms), field);
    field->set_expiry(at_ms);
}

void timed_table::leave_order(slab& memory, entry* field) noexcept {
    order.erase(memory, static_cast<double>(field->expiry()), field);
    field->set_expiry(no_expiry);
}

void field_clock::put(std::size_t place, item what) noexcept {
    heap_[place] = what;
    what.of->place = place;
}

void field_clock::raise(std::size_t place, item what) noexcept {
    while (place > 0) {
        const std::size_t above = (place - 1) / 2;
        if (heap_[above].at_ms <= what.at_ms) break;
        put(place, heap_[above]);
        place = above;
    }
    put(place, what);
}

void field_clock::sink(std::size_t place, item what) noexcept {
    for (;;) {
        std::size_t below = place * 2 + 1;
        if (below >= heap_.size()) break;
        if (below + 1 < heap_.size() && heap_[below + 1].at_ms < heap_[below].at_ms) ++below;
        if (heap_[below].at_ms >= what.at_ms) break;
        put(place, heap_[below]);
        place = below;
    }
    put(place, what);
}

void field_clock::count(timed_table& of, std::uint64_t contents) {
    if (of.counted == contents) return;
    if (contents != 0) ++counts_[contents];
    const auto before = counts_.find(std::exchange(of.counted, contents));
    if (before != counts_.end() && --before->second == 0) counts_.erase(before);
}

void field_clock::note(timed_table& of) {
    if (of.home == nullptr || of.order.size() == 0) return forget(of);
    count(of, of.contents);
    const item what{of.first_end(), &of};
    if (of.place == timed_table::nowhere) {
        heap_.push_back(what);
        return raise(heap_.size() - 1, what);
    }
    if (what.at_ms < heap_[of.place].at_ms)
        raise(of.place, what);
    else
        sink(of.place, what);
}

void field_clock::forget(timed_table& gone) noexcept {
    if (gone.place == timed_table::nowhere) return;
    count(gone, 0);
    const std::size_t hole = std::exchange(gone.place, timed_table::nowhere);
    const item last = heap_.back();
    heap_.pop_back();
    if (last.of == &gone) return;
    if (hole > 0 && last.at_ms < heap_[(hole - 1) / 2].at_ms)
        raise(hole, last);
    else
        sink(hole, last);
}

void collection::become_timed() {
    if (is_listed()) become_table();
    dictionary* const old = holder_->pointer<dictionary>();
    auto* const made =
        new (env_->memory.allocate(sizeof(timed_table))) timed_table(std::move(*old));
    old->~dictionary();
    env_->memory.release(old, sizeof(dictionary));
    holder_->held_as = encoding::timed_table;
    holder_->set_pointer(static_cast<dictionary*>(made));
}

void collection::enter_order(entry* field, expiry_time at_ms) {
    timed_table& fields = *timed_table::of(*holder_);
    fields.enter_order(env_->memory, field, at_ms);
    if (env_->fields != nullptr) env_->fields->note(fields);
}

// The clock is not notified of a later first expiration: it checks again at the earlier time.
void collection::leave_order(entry* field) noexcept {
    timed_table& fields = *timed_table::of(*holder_);
    fields.leave_order(env_->memory, field);
    if (env_->fields != nullptr && fields.order.size() == 0) env_->fields->forget(fields);
}

// The slot's entry with room for an expiration; its block may change.
entry* collection::with_room(environment& env, dictionary& in, dictionary::slot* place) {
    entry* const old = dictionary::entry_of(*place);
    if (old->has(entry::has_expiry_room)) return old;
    const std::size_t size = entry::size_for(old->key_size(), old->value_size, true);
    entry* const made = entry::make(env.memory.allocate(size), old->key(), old->value_size, true);
    if (old->value_size != 0) std::memcpy(made->value(), old->value(), old->value_size);
    env.memory.release(old, old->size());
    in.replace(place, made);
    return made;
}

expiry_time collection::ends_at(std::string_view field) const noexcept {
    if (!is_timed()) return no_expiry;
    const entry* const e = find_entry(field);
    return e == nullptr ? no_expiry : e->expiry();
}

void collection::set_end(std::string_view field, expiry_time at_ms) {
    EDDY_ASSERT(has_values() && at_ms > no_expiry && at_ms <= field_clock::latest_end);
    if (!is_timed()) become_timed();
    timed_table& fields = *timed_table::of(*holder_);
    dictionary::slot* const place = fields.find(field, env_->hash(field));
    EDDY_ASSERT(place != nullptr);
    entry* const before = dictionary::entry_of(*place);
    if (before->expiry() != no_expiry) fields.leave_order(env_->memory, before);
    enter_order(with_room(*env_, fields, place), at_ms);
}

bool collection::drop_end(std::string_view field) {
    if (!is_timed()) return false;
    entry* const e = find_entry(field);
    if (e == nullptr || e->expiry() == no_expiry) return false;
    leave_order(e);
    return true;
}

bool collection::has_expiring_fields() const noexcept {
    return is_timed() && timed_table::of(*holder_)->order.size() > 0;
}

std::size_t collection::ended() const noexcept {
    if (!has_expiring_fields() || env_->expired == expired_keys::stay) return 0;
    const timed_table& fields = *timed_table::of(*holder_);
    if (env_->now_ms <= fields.first_end()) return 0;
    return fields.order.count_below(static_cast<double>(env_->now_ms), false);
}

void collection::remove_expired(std::size_t most, std::span<const std::string_view> first,
                                std::vector<std::string>& names) {
    if (ended() == 0) return;
    timed_table& fields = *timed_table::of(*holder_);
    for (const std::string_view each : first) {
        const dictionary::slot* const place = fields.find(each, env_->hash(each));
        if (place == nullptr || !is_over(*dictionary::entry_of(*place))) continue;
        names.emplace_back(each);
        static_cast<void>(erase(names.back()));
    }
    for (; most > 0 && fields.order.size() > 0 && env_->now_ms > fields.first_end(); --most) {
        names.emplace_back(fields.order.at(0).member()->key());
        static_cast<void>(erase(names.back()));
    }
}

// Mostly few fields have expired, as they are removed when the hash is used.
collection::element collection::random_live() const {
    const std::size_t over = ended();
    EDDY_ASSERT(over < table().size());
    constexpr int tries = 64;
    for (int i = 0; over == 0 || i < tries; ++i) {
        const entry* const e = table().random(env_->random);
        if (!is_over(*e)) return {e->key(), e->value_bytes()};
    }
    walk live(*this);
    element one;
    for (std::uint64_t left = env_->random.below(size()) + 1; left > 0; --left) live.next(one);
    return one;
}

}  // namespace eddy::cache
