// Blocks, tables, and conversion between them.
#include "cache/types/collection.hpp"

#include <eddy/base/assert.hpp>

#include "cache/types/number.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using packed_text::read;
using packed_text::skip;
using packed_text::skip_field;
using packed_text::write;

// Capacity for the elements with a reserve, rounded up to the slab's.
std::size_t capacity_for(std::size_t used) noexcept {
    std::size_t wanted = used + used / 4;
    for (const std::size_t small : {collection::second_capacity, collection::first_capacity})
        if (used <= small) wanted = small;
    return slab::capacity(sizeof(packed_block) + wanted) - sizeof(packed_block);
}

// True if a block should shrink. The smaller block is filled, or halved again, before the next
// copy.
bool is_wide(const packed_block& block) noexcept {
    if (block.capacity <= collection::first_capacity) return false;
    const bool is_small = block.capacity <= collection::second_capacity;
    return block.used < block.capacity / (is_small ? 4 : 2);
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
    packed_block* const made = make_packed(env.memory, 0);
    if (type == value_type::set) made->flags = packed_block::integers;
    holder.set_pointer(made);
}

void collection::copy_to(entry& to) const {
    to.type = type();
    if (is_packed()) {
        const packed_block& from = packed();
        packed_block* const made = make_packed(env_->memory, from.used);
        made->take(from);
        to.held_as = encoding::packed;
        return to.set_pointer(made);
    }
    if (is_indexed()) {
        indexed_block& from = indexed();
        indexed_block* const made = indexed_block::make(env_->memory, from.used, from.count);
        made->take(from);
        to.held_as = encoding::indexed;
        return to.set_pointer(made);
    }
    make(*env_, to, type());
    collection copy(*env_, to);
    copy.become_table();
    walk elements(*this, also::ended);
    for (element e; elements.next(e);) {
        copy.put(e.field, e.value);
        if (elements.ends_at() != no_expiry) copy.set_end(e.field, elements.ends_at());
    }
}

std::size_t collection::size() const noexcept { return is_timed() ? all() - ended() : all(); }

// Begin of the field, or null.
char* collection::find_packed(std::string_view field) const noexcept {
    packed_block& block = packed();
    char* at = block.data();
    char* const end = at + block.used;
    const bool pairs = has_values();
    while (at < end) {
        if (same_bytes(read(at), field)) return at;
        at = skip_field(at, pairs);
    }
    return nullptr;
}

std::uint8_t collection::tag(std::string_view field) const noexcept {
    return static_cast<std::uint8_t>(env_->hash(field));
}

bool collection::contains(std::string_view field) const noexcept {
    if (is_packed()) return find_packed(field) != nullptr;
    if (is_indexed()) return static_cast<bool>(indexed().find(field, tag(field), has_values()));
    return find_entry(field) != nullptr;
}

std::optional<std::string_view> collection::get(std::string_view field) const noexcept {
    if (is_listed()) {
        const char* const at =
            is_packed() ? find_packed(field) : indexed().find(field, tag(field), has_values()).at;
        if (at == nullptr) return std::nullopt;
        return has_values() ? read(skip(at)) : std::string_view{};
    }
    const entry* const e = find_entry(field);
    if (e == nullptr) return std::nullopt;
    return e->value_bytes();
}

bool collection::put(std::string_view field, std::string_view value, bool keeps_expiry) {
    if (is_listed()) {
        if (fits(field, value)) {
            return is_packed() ? put_packed(field, value) : put_indexed(field, value);
        }
        // An existing member stays in its block, whatever its length.
        if (!has_values() && contains(field)) return false;
        become_table();
    }
    return put_table(field, value, keeps_expiry);
}

// True if the lengths permit a block.
bool collection::fits(std::string_view field, std::string_view value) const noexcept {
    const encoding_limits& limits = env_->limits;
    if (has_values()) {
        const std::size_t most = std::min(limits.hash_text, packed_text::longest);
        return field.size() <= most && value.size() <= most;
    }
    return field.size() <= std::min(limits.set_text, packed_text::longest) ||
           ((flags() & packed_block::integers) != 0 && parse_integer(field).has_value());
}

// A set of integers that gets another member keeps their order, but is no longer sorted.
collection::addition collection::adding(std::string_view field, std::size_t count) noexcept {
    const encoding_limits& limits = env_->limits;
    const auto within = [count](std::size_t most) {
        return count < std::min(most, indexed_block::max_fields);
    };
    if (has_values()) return within(limits.hash_fields) ? addition::appended : addition::table;
    if ((flags() & packed_block::integers) != 0) {
        if (parse_integer(field)) {
            return within(limits.set_integers) ? addition::sorted : addition::table;
        }
        if (within(limits.set_members) && !are_members_within(limits.set_text)) {
            return addition::table;
        }
        flags() &= static_cast<std::uint16_t>(~packed_block::integers);
    }
    return within(limits.set_members) ? addition::appended : addition::table;
}

bool collection::are_members_within(std::size_t longest) const noexcept {
    walk members(*this);
    for (element e; members.next(e);)
        if (e.field.size() > longest) return false;
    return true;
}

void collection::expect_several(std::string_view first, std::size_t count) {
    if (!is_listed()) return;
    const encoding_limits& limits = env_->limits;
    if (has_values()) {
        if (count > limits.hash_fields) become_table();
        return;
    }
    const bool is_of_integers = (flags() & packed_block::integers) != 0;
    if (is_of_integers && (!empty() || parse_integer(first))) {
        if (count <= limits.set_integers) return;
        if (!empty()) return become_table();
        keep_order();
    }
    if (count > limits.set_members) become_table();
}

void collection::keep_order() noexcept {
    EDDY_ASSERT(type() == value_type::set && is_packed() && empty());
    flags() &= static_cast<std::uint16_t>(~packed_block::integers);
}

void collection::order_integers() {
    const std::size_t most = std::min(env_->limits.set_integers, indexed_block::max_fields);
    if (is_integers() || size() > most) return;
    std::vector<std::string> all;
    all.reserve(size());
    walk members(*this);
    for (element e; members.next(e);) {
        if (!parse_integer(e.field)) return;
        all.emplace_back(e.field);
    }
    std::ranges::sort(all, packed_text::is_less);
    release_value(*env_, *holder_);
    make(*env_, *holder_, value_type::set);
    for (const std::string& each : all) put(each);
}

// The block, or a new one, with room for so many more bytes.
packed_block& collection::packed_with_room(std::size_t more) {
    packed_block& block = packed();
    if (block.used + more <= block.capacity) return block;
    packed_block* const wider = make_packed(env_->memory, block.used + more);
    wider->take(block);
    env_->memory.release(&block, sizeof(packed_block) + block.capacity);
    holder_->set_pointer(wider);
    return *wider;
}

bool collection::put_packed(std::string_view field, std::string_view value) {
    if (char* const at = find_packed(field); at != nullptr) {
        if (!has_values()) return false;
        if (packed().count > env_->limits.hash_fields) {
            become_table();
            return put_table(field, value, false);
        }
        const std::size_t old_size = read(skip(at)).size();
        if (old_size == value.size()) {
            write(skip(at), value);
            return false;
        }
        const auto before = static_cast<std::size_t>(skip(at) - packed().data());
        packed_block& block =
            packed_with_room(value.size() > old_size ? value.size() - old_size : 0);
        char* const old = block.data() + before;
        char* const rest = skip(old);
        std::memmove(old + 1 + value.size(), rest,
                     static_cast<std::size_t>(block.data() + block.used - rest));
        block.used = static_cast<std::uint16_t>(block.used + value.size() - old_size);
        write(old, value);
        if (is_wide(block)) [[unlikely]]
            shrink_packed();
        return false;
    }
    const addition how = adding(field, packed().count);
    if (how == addition::table) {
        become_table();
        return put_table(field, value, false);
    }
    if (packed().count == max_packed_fields) {
        become_indexed();
        return put_indexed(field, value);
    }
    const std::size_t need = 1 + field.size() + (has_values() ? 1 + value.size() : 0);
    packed_block& block = packed_with_room(need);
    char* to = block.data() + block.used;
    if (how == addition::sorted) {
        char* const end = to;
        to = block.data();
        while (to < end && packed_text::is_less(read(to), field)) to = skip(to);
        std::memmove(to + need, to, static_cast<std::size_t>(end - to));
    }
    to = write(to, field);
    if (has_values()) write(to, value);
    block.used = static_cast<std::uint16_t>(block.used + need);
    ++block.count;
    return true;
}

// The same for an indexed block.
indexed_block& collection::indexed_with_room(std::size_t more, std::size_t fields) {
    indexed_block& block = indexed();
    if (block.used + more <= block.capacity && block.count + fields <= block.room) return block;
    indexed_block* const wider =
        indexed_block::widen(env_->memory, &block, block.used + more, block.count + fields);
    holder_->set_pointer(wider);
    return *wider;
}

bool collection::put_indexed(std::string_view field, std::string_view value) {
    const bool pairs = has_values();
    const std::uint8_t its_tag = tag(field);
    indexed_block* block = &indexed();
    indexed_block::place at = block->find(field, its_tag, pairs);
    if (at && !pairs) return false;
    const addition how = at ? addition::appended : adding(field, block->count);
    std::size_t need = 1 + field.size() + (pairs ? 1 + value.size() : 0);
    const bool is_beyond = pairs && block->count > env_->limits.hash_fields;
    if (at) {
        const std::size_t old_size = read(skip(at.at)).size();
        need = value.size() > old_size ? value.size() - old_size : 0;
    }
    if (how == addition::table || is_beyond || block->used + need > indexed_block::max_bytes) {
        become_table();
        return put_table(field, value, false);
    }
    if (at) {
        const std::ptrdiff_t before = at.at - block->data();
        block = &indexed_with_room(need, 0);
        block->replace_value({at.index, block->data() + before}, value);
        shrink_indexed();
        return false;
    }
    block = &indexed_with_room(need, 1);
    at = how == addition::sorted ? block->find_integer(field) : block->end();
    block->insert(at, field, value, its_tag, pairs);
    return true;
}

void collection::become_indexed() {
    packed_block& old = packed();
    indexed_block* const made = indexed_block::make(env_->memory, old.used, old.count + 1U);
    made->flags = old.flags;
    walk elements(*this);
    for (element e; elements.next(e);)
        made->insert(made->end(), e.field, e.value, tag(e.field), has_values());
    release_value(*env_, *holder_);
    holder_->held_as = encoding::indexed;
    holder_->set_pointer(made);
}

// Converts to a packed block: the same fields without their index.
void collection::become_packed() {
    indexed_block& old = indexed();
    packed_block* const made = make_packed(env_->memory, old.used);
    std::memcpy(made->data(), old.data(), old.used);
    made->used = static_cast<std::uint16_t>(old.used);
    made->count = old.count;
    made->flags = old.flags;
    old.release(env_->memory);
    holder_->held_as = encoding::packed;
    holder_->set_pointer(made);
}

void collection::shrink_packed() {
    packed_block& block = packed();
    packed_block* const smaller = make_packed(env_->memory, block.used);
    smaller->take(block);
    env_->memory.release(&block, sizeof(packed_block) + block.capacity);
    holder_->set_pointer(smaller);
}

void collection::shrink_indexed() {
    indexed_block& block = indexed();
    if (block.count <= max_packed_fields / 2) return become_packed();
    if (block.used >= block.capacity / 2) return;
    holder_->set_pointer(indexed_block::widen(env_->memory, &block, block.used, block.count));
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
    // The order of expiring fields refers to the entry by its address.
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
    auto* const made =
        new (env_->memory.allocate(sizeof(dictionary))) dictionary(env_->memory, env_->hash);
    walk elements(*this);
    for (element e; elements.next(e);) add_to_table(*made, e.field, e.value, env_->hash(e.field));
    release_value(*env_, *holder_);
    holder_->held_as = encoding::table;
    holder_->set_pointer(made);
}

bool collection::erase(std::string_view field) {
    if (is_packed()) {
        char* const at = find_packed(field);
        if (at == nullptr) return false;
        packed_block& block = packed();
        char* const next = skip_field(at, has_values());
        std::memmove(at, next, static_cast<std::size_t>(block.data() + block.used - next));
        block.used = static_cast<std::uint16_t>(block.used - (next - at));
        --block.count;
        if (is_wide(block)) [[unlikely]]
            shrink_packed();
        return true;
    }
    if (is_indexed()) {
        indexed_block& block = indexed();
        const indexed_block::place at = block.find(field, tag(field), has_values());
        if (!at) return false;
        block.erase(at, has_values());
        shrink_indexed();
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
    if (!is_listed()) {
        const entry* const e = table().random(env_->random);
        return {e->key(), e->value_bytes()};
    }
    EDDY_ASSERT(all() > 0);
    const bool pairs = has_values();
    std::uint64_t left = env_->random.below(all());
    const char* at = nullptr;
    if (is_indexed()) {
        at = indexed().at(left, pairs).at;
    } else {
        for (at = packed().data(); left > 0; --left) at = skip_field(at, pairs);
    }
    return {read(at), pairs ? read(skip(at)) : std::string_view{}};
}

std::uint64_t collection::scan(std::uint64_t cursor, std::vector<element>& found) const {
    if (is_listed()) {
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
    } else if (over.is_indexed()) {
        at_ = over.indexed().data();
        end_ = at_ + over.indexed().used;
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
