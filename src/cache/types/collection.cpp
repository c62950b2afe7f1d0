// Packed blocks, tables, and the conversion from one to the other.
#include "cache/types/collection.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace eddy::cache {
namespace {

std::string_view read(const char* at) noexcept { return {at + 1, static_cast<std::uint8_t>(*at)}; }

const char* skip(const char* at) noexcept { return at + 1 + static_cast<std::uint8_t>(*at); }
char* skip(char* at) noexcept { return at + 1 + static_cast<std::uint8_t>(*at); }

char* write(char* to, std::string_view text) noexcept {
    *to++ = static_cast<char>(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    return to + text.size();
}

// Room for the elements and some more, up to the rounding of the slab.
std::size_t capacity_for(std::size_t used) noexcept {
    const std::size_t wanted = std::max(used + used / 4, collection::first_capacity);
    return slab::capacity(sizeof(packed_block) + wanted) - sizeof(packed_block);
}

packed_block* make_packed(slab& memory, std::size_t used) {
    const std::size_t capacity = capacity_for(used);
    auto* const made = static_cast<packed_block*>(memory.allocate(sizeof(packed_block) + capacity));
    *made = {static_cast<std::uint16_t>(capacity), 0, 0, 0};
    return made;
}

}  // namespace

void collection::make(environment& env, entry& holder, value_type type) {
    holder.type = type;
    holder.held_as = encoding::packed;
    holder.set_pointer(make_packed(env.memory, 0));
}

std::size_t collection::size() const noexcept { return is_timed() ? all() - ended() : all(); }

// Where the field begins, or null.
char* collection::find_packed(std::string_view field) const noexcept {
    packed_block& block = packed();
    char* at = block.data();
    char* const end = at + block.used;
    const bool pairs = has_values();
    while (at < end) {
        if (same_bytes(read(at), field)) return at;
        at = skip(at);
        if (pairs) at = skip(at);
    }
    return nullptr;
}

bool collection::contains(std::string_view field) const noexcept {
    if (is_packed()) return find_packed(field) != nullptr;
    return find_entry(field) != nullptr;
}

std::optional<std::string_view> collection::get(std::string_view field) const noexcept {
    if (is_packed()) {
        const char* const at = find_packed(field);
        if (at == nullptr) return std::nullopt;
        return has_values() ? read(skip(at)) : std::string_view{};
    }
    const entry* const e = find_entry(field);
    if (e == nullptr) return std::nullopt;
    return e->value_bytes();
}

bool collection::put(std::string_view field, std::string_view value, bool keeps_expiry) {
    if (!is_packed()) return put_table(field, value, keeps_expiry);
    if (field.size() <= max_packed_text && value.size() <= max_packed_text) {
        return put_packed(field, value);
    }
    become_table();
    return put_table(field, value, keeps_expiry);
}

bool collection::put_packed(std::string_view field, std::string_view value) {
    packed_block* block = &packed();
    char* const at = find_packed(field);
    if (at != nullptr) {
        if (!has_values()) return false;
        char* const old = skip(at);
        const std::size_t old_size = read(old).size();
        if (old_size == value.size()) {
            write(old, value);
            return false;
        }
        // The pair goes out and comes back at the end.
        char* const next = skip(old);
        std::memmove(at, next, static_cast<std::size_t>(block->data() + block->used - next));
        block->used = static_cast<std::uint16_t>(block->used - (next - at));
        --block->count;
    } else if (block->count == max_packed_fields) {
        become_table();
        return put_table(field, value, false);
    }
    const std::size_t need = 1 + field.size() + (has_values() ? 1 + value.size() : 0);
    if (block->used + need > block->capacity) {
        packed_block* const wider = make_packed(env_->memory, block->used + need);
        std::memcpy(wider->data(), block->data(), block->used);
        wider->used = block->used;
        wider->count = block->count;
        env_->memory.release(block, sizeof(packed_block) + block->capacity);
        holder_->set_pointer(wider);
        block = wider;
    }
    char* const to = write(block->data() + block->used, field);
    if (has_values()) write(to, value);
    block->used = static_cast<std::uint16_t>(block->used + need);
    ++block->count;
    return at == nullptr;
}

void collection::add_to_table(dictionary& to, std::string_view field, std::string_view value,
                              std::uint64_t hash) {
    void* const memory = env_->memory.allocate(entry::size_for(field.size(), value.size(), false));
    entry* const added = entry::make(memory, field, value.size(), false);
    if (!value.empty()) std::memcpy(added->value(), value.data(), value.size());
    to.insert(added, hash);
}

bool collection::put_table(std::string_view field, std::string_view value, bool keeps_expiry) {
    dictionary& fields = table();
    const std::uint64_t hash = env_->hash(field);
    dictionary::slot* const place = fields.find(field, hash);
    if (place == nullptr) {
        add_to_table(fields, field, value, hash);
        return true;
    }
    if (!has_values()) return false;
    entry* e = dictionary::entry_of(*place);
    // In the order of its table the entry stands by its address.
    const expiry_time old_end = e->expiry();
    const bool was_over = is_over(*e);
    const expiry_time end = keeps_expiry && !was_over ? old_end : no_expiry;
    if (old_end != no_expiry) leave_order(e);
    if (e->value_size != value.size()) {
        const bool with_room = e->has(entry::has_expiry_room);
        const std::size_t size = entry::size_for(field.size(), value.size(), with_room);
        if (slab::same_class(size, e->size())) {
            e->value_size = static_cast<std::uint32_t>(value.size());
        } else {
            entry* const moved =
                entry::make(env_->memory.allocate(size), field, value.size(), with_room);
            env_->memory.release(e, e->size());
            dictionary::replace(place, moved);
            e = moved;
        }
    }
    if (!value.empty()) std::memcpy(e->value(), value.data(), value.size());
    if (end != no_expiry) enter_order(e, end);
    return was_over;
}

void collection::become_table() {
    packed_block& old = packed();
    auto* const made =
        new (env_->memory.allocate(sizeof(dictionary))) dictionary(env_->memory, env_->hash);
    walk elements(*this);
    for (element e; elements.next(e);) add_to_table(*made, e.field, e.value, env_->hash(e.field));
    env_->memory.release(&old, sizeof(packed_block) + old.capacity);
    holder_->held_as = encoding::table;
    holder_->set_pointer(made);
}

bool collection::erase(std::string_view field) {
    if (is_packed()) {
        char* const at = find_packed(field);
        if (at == nullptr) return false;
        packed_block& block = packed();
        char* const next = has_values() ? skip(skip(at)) : skip(at);
        std::memmove(at, next, static_cast<std::size_t>(block.data() + block.used - next));
        block.used = static_cast<std::uint16_t>(block.used - (next - at));
        --block.count;
        return true;
    }
    const std::uint64_t hash = env_->hash(field);
    dictionary::slot* const place = table().find(field, hash);
    if (place == nullptr) return false;
    entry* const gone = dictionary::entry_of(*place);
    const bool was_over = is_over(*gone);
    if (gone->expiry() != no_expiry) leave_order(gone);
    table().erase(place, hash);
    env_->memory.release(gone, gone->size());
    return !was_over;
}

collection::element collection::random() const {
    if (is_timed()) return random_live();
    if (!is_packed()) {
        const entry* const e = table().random(env_->random);
        return {e->key(), e->value_bytes()};
    }
    const packed_block& block = packed();
    EDDY_ASSERT(block.count > 0);
    const bool pairs = has_values();
    const char* at = block.data();
    for (std::uint64_t left = env_->random.below(block.count); left > 0; --left) {
        at = skip(at);
        if (pairs) at = skip(at);
    }
    return {read(at), pairs ? read(skip(at)) : std::string_view{}};
}

std::uint64_t collection::scan(std::uint64_t cursor, std::vector<element>& found) const {
    if (is_packed()) {
        walk elements(*this);
        for (element e; elements.next(e);) found.push_back(e);
        return 0;
    }
    std::vector<dictionary::slot> slots;
    const std::uint64_t next = table().scan(cursor, slots);
    for (const dictionary::slot s : slots) {
        const entry* const e = dictionary::entry_of(s);
        if (!is_over(*e)) found.push_back({e->key(), e->value_bytes()});
    }
    return next;
}

collection::walk::walk(const collection& over, also what) noexcept
    : has_values_(over.has_values()) {
    if (over.is_timed() && what == also::none && over.env_->expired != expired_keys::stay)
        skips_expired_ = over.env_;
    if (over.is_packed()) {
        at_ = over.packed().data();
        end_ = at_ + over.packed().used;
    } else {
        table_.emplace(over.table());
    }
}

bool collection::walk::next(element& to) noexcept {
    if (table_) {
        const entry* e = nullptr;
        do {
            const dictionary::slot* const place = table_->next();
            if (place == nullptr) return false;
            e = dictionary::entry_of(*place);
            ends_at_ = e->expiry();
        } while (ends_at_ != no_expiry && skips_expired_ != nullptr &&
                 skips_expired_->now_ms > ends_at_);
        to = {e->key(), e->value_bytes()};
        return true;
    }
    if (at_ == end_) return false;
    to.field = read(at_);
    at_ = skip(at_);
    to.value = {};
    if (has_values_) {
        to.value = read(at_);
        at_ = skip(at_);
    }
    return true;
}

}  // namespace eddy::cache
