// Entries: creation, change of layout, moves and removal.
#include "cache/keyspace/keyspace.hpp"

#include <eddy/base/assert.hpp>

#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/number.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

// Above this size a growing string gets a fixed reserve instead of doubling.
constexpr std::size_t max_growth = 1U << 20;

// Weights of a sweep's removals, so that the clock is read after 32 small keys, or one value in
// blocks of its own, which may take ten microseconds and more to free, or four keys whose removal
// returns memory to the system.
constexpr std::size_t removal_weight = 1;
constexpr std::size_t big_removal_weight = slice_limit::a_look;
constexpr std::size_t return_weight = slice_limit::a_look / 4;
// After a sweep with more than one removal per so many buckets, another one at once is worth it.
constexpr std::size_t buckets_a_removal = 4;

bool may_be_integer(std::string_view text) noexcept {
    if (text.empty() || text.size() > max_integer_text) return false;
    const char first = text[0];
    return (first >= '0' && first <= '9') || first == '-';
}

void copy(char* to, std::string_view text) noexcept {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
}

void* copy_list(environment& env, const list& from) {
    auto* const made = new (env.memory.allocate(sizeof(list))) list;
    for (list::position p = from.first(); p; p = list::after(p)) {
        made->push_back(env.memory, list::get(p));
    }
    return made;
}

}  // namespace

text_block* keyspace::make_external(slab& memory, std::size_t size, std::size_t capacity) {
    return new (memory.allocate(sizeof(text_block) + capacity)) text_block{size, capacity};
}

keyspace::slot* keyspace::add(std::string_view key, std::uint64_t hash, std::size_t value_size) {
    notify_added(key);
    if (env_.most_uses != 0) [[unlikely]]
        note_new_key(hash);
    void* const block = env_.memory.allocate(entry::size_for(key.size(), value_size, false));
    slot* const place = table_.insert(entry::make(block, key, value_size, false), hash);
    if (keeper_ != nullptr) [[unlikely]]
        keeper_->added(*at(place), hash);
    return place;
}

keyspace::slot* keyspace::add(std::string_view key, std::uint64_t hash, value_type type) {
    slot* const place = add(key, hash, sizeof(void*));
    entry* const e = at(place);
    if (type == value_type::list) {
        e->type = type;
        e->held_as = encoding::list;
        e->set_pointer(new (env_.memory.allocate(sizeof(list))) list);
    } else if (type == value_type::sorted_set) {
        sorted_set::make(env_, *e);
    } else if (type == value_type::stream) {
        e->type = type;
        e->held_as = encoding::stream;
        e->set_pointer(new (env_.memory.allocate(sizeof(redis_stream))) redis_stream);
    } else {
        collection::make(env_, *e, type);
    }
    return place;
}

// The entry with another value size, with or without room for an expiry; the block may change.
entry* keyspace::reshape(slot* place, std::size_t value_size, bool with_expiry, bool keep_value) {
    entry* const old = at(place);
    const bool same_room = with_expiry == old->has(entry::has_expiry_room);
    const std::size_t size = entry::size_for(old->key_size(), value_size, with_expiry);
    if (same_room && slab::same_class(size, old->size())) {
        old->value_size = static_cast<std::uint32_t>(value_size);
        return old;
    }
    entry* const made =
        entry::make(env_.memory.allocate(size), old->key(), value_size, with_expiry);
    made->type = old->type;
    made->held_as = old->held_as;
    constexpr int layout = entry::has_expiry_room | entry::long_key;
    made->flags = static_cast<std::uint8_t>((made->flags & layout) | (old->flags & ~layout));
    if (with_expiry) made->set_expiry(old->expiry());
    if (keep_value) copy(made->value(), old->value_bytes().substr(0, value_size));
    env_.memory.release(old, old->size());
    dictionary::replace(place, made);
    return made;
}

// Passes a value that is about to be replaced to the keeper as if it were removed, so that the
// keeper may keep it as it is: before_change() would have to write all of it at once.
void keyspace::set_aside(slot* place, std::uint64_t hash) {
    entry* const old = at(place);
    const bool with_expiry = old->has(entry::has_expiry_room);
    entry* const made =
        entry::make(env_.memory.allocate(entry::size_for(old->key().size(), 0, with_expiry)),
                    old->key(), 0, with_expiry);
    constexpr int layout = entry::has_expiry_room | entry::long_key;
    constexpr int kept = ~(layout | entry::in_snapshot);
    made->flags = static_cast<std::uint8_t>((made->flags & layout) | (old->flags & kept));
    if (with_expiry) made->set_expiry(old->expiry());
    dictionary::replace(place, made);
    if (!keeper_->removed(*old, hash)) release_entry(env_, old);
    keeper_->added(*made, hash);
}

keyspace::slot* keyspace::put_text(slot* place, std::string_view key, std::uint64_t hash,
                                   std::string_view text, bool keep_expiry) {
    encoding held_as = encoding::bytes;
    std::size_t size = text.size();
    std::int64_t number = 0;
    if (may_be_integer(text)) {
        if (const auto parsed = parse_integer(text)) {
            held_as = encoding::integer;
            number = *parsed;
            size = sizeof number;
        }
    } else if (size > max_inline_text) {
        held_as = encoding::external;
        size = sizeof(void*);
    }
    entry* e;
    if (place != nullptr) {
        if (keeper_ != nullptr && at(place)->held_as > encoding::integer) [[unlikely]]
            set_aside(place, hash);
        before_change(place);
        e = at(place);
        if (e->held_as > encoding::integer) release_value(env_, *e);
        if (e->value_size != size) e = reshape(place, size, e->has(entry::has_expiry_room), false);
        if (!keep_expiry && (*place & dictionary::expires_bit) != 0) drop_expiry(place);
        e->flags &= static_cast<std::uint8_t>(~entry::modified_text);
    } else {
        place = add(key, hash, size);
        e = at(place);
    }
    e->type = value_type::string;
    e->held_as = held_as;
    if (held_as == encoding::bytes) {
        copy(e->value(), text);
    } else if (held_as == encoding::integer) {
        e->set_integer(number);
    } else {
        text_block* block = env_.offered.empty() ? nullptr : env_.keep_offered(text);
        if (block == nullptr) {
            block = make_external(env_.memory, text.size(), text.size());
            copy(block->bytes(), text);
        }
        e->set_pointer(block);
    }
    return place;
}

keyspace::slot* keyspace::put_integer(slot* place, std::string_view key, std::uint64_t hash,
                                      std::int64_t number) {
    entry* e;
    if (place == nullptr) {
        place = add(key, hash, sizeof number);
        e = at(place);
    } else {
        before_change(place);
        e = at(place);
        EDDY_ASSERT(e->type == value_type::string);
        if (e->held_as == encoding::external) release_value(env_, *e);
        if (e->value_size != sizeof number) {
            e = reshape(place, sizeof number, e->has(entry::has_expiry_room), false);
        }
        e->flags &= static_cast<std::uint8_t>(~entry::modified_text);
    }
    e->held_as = encoding::integer;
    e->set_integer(number);
    return place;
}

char* keyspace::open_text(slot* place, std::size_t size) {
    before_change(place);
    entry* e = at(place);
    EDDY_ASSERT(e->type == value_type::string);
    e->flags |= entry::modified_text;
    if (e->held_as == encoding::integer) {
        char digits[max_integer_text];
        const std::string_view text(
            digits, static_cast<std::size_t>(write_integer(digits, e->integer()) - digits));
        e = reshape(place, text.size(), e->has(entry::has_expiry_room), false);
        e->held_as = encoding::bytes;
        copy(e->value(), text);
    }
    if (e->held_as == encoding::bytes) {
        const std::size_t old = e->value_size;
        if (size <= max_inline_text) {
            if (size != old) e = reshape(place, size, e->has(entry::has_expiry_room), true);
            if (size > old) std::memset(e->value() + old, 0, size - old);
            return e->value();
        }
        text_block* const block =
            make_external(env_.memory, old, size + std::min(size, max_growth));
        copy(block->bytes(), e->value_bytes());
        e = reshape(place, sizeof(void*), e->has(entry::has_expiry_room), false);
        e->held_as = encoding::external;
        e->set_pointer(block);
    }
    auto* block = e->pointer<text_block>();
    if (size > block->capacity) {
        text_block* const wider =
            make_external(env_.memory, block->size, size + std::min(size, max_growth));
        copy(wider->bytes(), {block->bytes(), block->size});
        env_.memory.release(block, sizeof(text_block) + block->capacity);
        e->set_pointer(wider);
        block = wider;
    }
    if (size > block->size) std::memset(block->bytes() + block->size, 0, size - block->size);
    block->size = size;
    return block->bytes();
}

char* keyspace::put_blank(slot* place, std::string_view key, std::uint64_t hash, std::size_t size) {
    place = put_text(place, key, hash, {});
    entry* e = at(place);
    e->flags |= entry::modified_text;
    const bool is_inline = size <= max_inline_text;
    e = reshape(place, is_inline ? size : sizeof(void*), e->has(entry::has_expiry_room), false);
    if (is_inline) return e->value();
    text_block* const block = make_external(env_.memory, size, size);
    e->held_as = encoding::external;
    e->set_pointer(block);
    return block->bytes();
}

void keyspace::remove(slot* place, std::uint64_t hash) {
    entry* const gone = at(place);
    if ((*place & dictionary::expires_bit) != 0) count_expiring(-1);
    table_.erase(place, hash);
    if (keeper_ != nullptr && keeper_->removed(*gone, hash)) [[unlikely]]
        return;
    release_entry(env_, gone);
}

bool keyspace::remove(std::string_view key, std::uint64_t hash) {
    slot* const place = find_to_read(key, hash);
    if (place == nullptr) return false;
    remove(place, hash);
    return true;
}

void keyspace::expire(slot* place, std::uint64_t hash) {
    ++env_.counters.expired_keys;
    if (env_.observer != nullptr) [[unlikely]]
        env_.observer->key_happened(number_, key_event::expired, "expired", at(place)->key());
    remove(place, hash);
}

void keyspace::set_expiry(slot* place, expiry_time at_ms) {
    before_change(place);
    entry* e = at(place);
    if (!e->has(entry::has_expiry_room)) e = reshape(place, e->value_size, true, true);
    if ((*place & dictionary::expires_bit) == 0) {
        *place |= dictionary::expires_bit;
        count_expiring(1);
    }
    e->set_expiry(at_ms);
}

// The room stays: a key that had an expiry often gets one again.
bool keyspace::drop_expiry(slot* place) {
    if ((*place & dictionary::expires_bit) == 0) return false;
    before_change(place);
    *place &= ~dictionary::expires_bit;
    count_expiring(-1);
    at(place)->set_expiry(no_expiry);
    return true;
}

void keyspace::move_value(keyspace& source, slot* from, std::uint64_t from_hash,
                          std::string_view to, std::uint64_t to_hash) {
    notify_added(to);
    source.before_change(from);
    entry* const old = at(from);
    const expiry_time expiry = old->expiry();
    if ((*from & dictionary::expires_bit) != 0) source.count_expiring(-1);
    source.table_.erase(from, from_hash);
    const std::size_t size = entry::size_for(to.size(), old->value_size, expiry != no_expiry);
    entry* const made =
        entry::make(env_.memory.allocate(size), to, old->value_size, expiry != no_expiry);
    made->type = old->type;
    made->held_as = old->held_as;
    made->flags |= old->flags & entry::modified_text;
    copy(made->value(), old->value_bytes());
    env_.memory.release(old, old->size());
    slot* const place = table_.insert(made, to_hash);
    if (keeper_ != nullptr) [[unlikely]]
        keeper_->added(*made, to_hash);
    watch_fields(place, to_hash);
    if (expiry != no_expiry) set_expiry(place, expiry);
}

void keyspace::copy_value(const slot* from, std::string_view to, std::uint64_t to_hash) {
    entry* const old = at(from);
    const expiry_time expiry = old->expiry();
    slot* const place = add(to, to_hash, old->value_size);
    entry* const made = at(place);
    switch (old->held_as) {
        case encoding::bytes:
        case encoding::integer:
            made->type = old->type;
            made->held_as = old->held_as;
            copy(made->value(), old->value_bytes());
            break;
        case encoding::external: {
            const auto* const text = old->pointer<text_block>();
            text_block* const block = make_external(env_.memory, text->size, text->size);
            copy(block->bytes(), {text->bytes(), text->size});
            made->held_as = old->held_as;
            made->set_pointer(block);
            break;
        }
        case encoding::list:
            made->type = old->type;
            made->held_as = old->held_as;
            made->set_pointer(copy_list(env_, *old->pointer<list>()));
            break;
        case encoding::stream:
            made->type = old->type;
            made->held_as = old->held_as;
            made->set_pointer(new (env_.memory.allocate(sizeof(redis_stream)))
                                  redis_stream(old->pointer<redis_stream>()->copy(env_.memory)));
            break;
        case encoding::packed:
        case encoding::indexed:
        case encoding::table:
        case encoding::timed_table:
        case encoding::sorted_table:
            if (old->type == value_type::sorted_set) {
                sorted_set(env_, *old).copy_to(*made);
            } else {
                collection(env_, *old).copy_to(*made);
            }
            break;
    }
    made->flags |= old->flags & entry::modified_text;
    watch_fields(place, to_hash);
    if (expiry != no_expiry) set_expiry(place, expiry);
}

std::size_t keyspace::with_expiring_fields() const noexcept {
    return env_.fields == nullptr ? 0 : env_.fields->size_in(contents_);
}

void keyspace::watch_fields(const slot* place, std::uint64_t hash) {
    const entry& e = *at(place);
    if (e.held_as != encoding::timed_table) return;
    timed_table& fields = *timed_table::of(e);
    fields.home = this;
    fields.contents = contents_;
    fields.key_hash = hash;
    if (env_.fields == nullptr) env_.fields = std::make_unique<field_clock>();
    env_.fields->note(fields);
}

std::uint64_t keyspace::scan(std::uint64_t cursor, std::vector<slot>& found,
                             std::vector<slot>& over) const {
    const auto before = static_cast<std::ptrdiff_t>(found.size());
    const std::uint64_t next = table_.scan(cursor, found);
    const auto is_expired = [this](slot s) {
        return (s & dictionary::expires_bit) != 0 && is_over(*dictionary::entry_of(s));
    };
    std::copy_if(found.begin() + before, found.end(), std::back_inserter(over), is_expired);
    found.erase(std::remove_if(found.begin() + before, found.end(), is_expired), found.end());
    return next;
}

keyspace::swept keyspace::sweep(std::size_t buckets, slice_limit& slice) {
    swept done;
    std::size_t& passed = done.passed;
    std::int64_t left_ms = 0;
    std::int64_t staying = 0;
    const auto note_staying = [&] {
        if (staying == 0) return;
        // As in Redis: each sweep moves the average by a fraction.
        constexpr std::int64_t part = 50;
        const std::int64_t its = left_ms / staying;
        average_ttl_ms_ += average_ttl_ms_ == 0 ? its : (its - average_ttl_ms_) / part;
    };
    const auto ends_early = [&] {
        note_staying();
        done.many = done.removed > passed / buckets_a_removal;
        return done;
    };
    while (passed < buckets && expiring_ > 0) {
        seen_.clear();
        const std::uint64_t next = table_.scan(sweep_cursor_, seen_);
        for (const slot s : seen_) {
            if ((s & dictionary::expires_bit) == 0) continue;
            ++done.expiring;
            const entry* const e = dictionary::entry_of(s);
            if (!is_over(*e)) {
                // The sum of a sweep's few keys does not overflow.
                constexpr std::int64_t most_ms = std::int64_t{1} << 48;
                left_ms += std::clamp<std::int64_t>(e->expiry() - env_.now_ms, 0, most_ms);
                ++staying;
                continue;
            }
            const bool big = e->held_as > encoding::integer;
            // Removal of other keys does not move this entry's block.
            const std::uint64_t its = hash(e->key());
            const std::uint64_t returns = env_.memory.returns();
            expire(table_.find(e->key(), its), its);
            ++done.removed;
            const std::size_t weight = (big ? big_removal_weight : removal_weight) +
                                       (env_.memory.returns() - returns) * return_weight;
            // The next sweep scans the rest of the bucket again.
            if (slice.is_over_after(weight)) return ends_early();
        }
        sweep_cursor_ = next;
        if (next == 0) break;
        ++passed;
        if (slice.is_over_after(bucket_weight)) return ends_early();
    }
    note_staying();
    done.many = done.removed > buckets / buckets_a_removal;
    return done;
}

void keyspace::clear() {
    const std::size_t keys = table_.size();
    const std::size_t deferred = env_.discarded();
    const bool is_kept = keeper_ != nullptr;
    if (is_kept)
        std::exchange(keeper_, nullptr)->cleared(std::move(table_));
    else
        env_.discard(std::move(table_));
    if (is_kept || env_.discarded() > deferred) env_.counters.freed_in_slices += keys;
    probation_.clear(env_.memory);
    ghosts_.clear(env_.memory);
    if (env_.fields != nullptr) env_.fields->drop_count(contents_);
    contents_ = ++env_.keyspace_contents;
    expiring_ = 0;
    average_ttl_ms_ = 0;
    sweep_cursor_ = 0;
    clock_hand_ = 0;
}

std::string_view text_view::operator()(const entry& e) noexcept {
    if (e.held_as == encoding::bytes) [[likely]]
        return e.value_bytes();
    if (e.held_as == encoding::integer) {
        return {digits, static_cast<std::size_t>(write_integer(digits, e.integer()) - digits)};
    }
    const auto* const block = e.pointer<text_block>();
    return {block->bytes(), block->size};
}

std::size_t text_size(const entry& e) noexcept {
    text_view view;
    return view(e).size();
}

}  // namespace eddy::cache
