// Blocks of a stream and the entries in them.
#include "cache/types/streams/stream.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace eddy::cache {
namespace {

using listpack::element;

// An entry's flags: its first element, which is one byte.
constexpr char deleted_flag = 1;
constexpr char shared_fields_flag = 2;

// Besides its fields and values an entry has flags, the two parts of its ID, and the number of its
// elements.
constexpr std::size_t entry_elements = 4;
// Room for these, and for the number of fields of an entry with its own fields.
constexpr std::size_t entry_room = 2 + 2 * listpack::max_overhead + 6 + 6;
// A block's header, both counts, the number of fields, the zero after them, and the end.
constexpr std::size_t block_room = listpack::header_bytes + 6 + 6 + 6 + 2 + 1;
constexpr std::size_t usual_capacity = slab::max_small - sizeof(stream_block);

std::size_t room_for(std::string_view text) noexcept {
    return text.size() + (text.size() < 64 ? 2 : text.size() < 4096 ? 4 : listpack::max_overhead);
}

struct block_counts {
    std::uint64_t live;
    std::uint64_t deleted;
};

block_counts counts_of(const stream_block& b) noexcept {
    const char* at = b.pack() + listpack::header_bytes;
    const std::int64_t live = listpack::take_integer(at);
    const std::int64_t deleted = listpack::take_integer(at);
    return {static_cast<std::uint64_t>(live), static_cast<std::uint64_t>(deleted)};
}

const char* end_of(const stream_block& b) noexcept { return b.pack() + b.bytes() - 1; }

// Position of the number of fields.
const char* fields_of(const stream_block& b) noexcept {
    return listpack::skip(listpack::skip(b.pack() + listpack::header_bytes));
}

void set_bytes(stream_block& b, std::size_t bytes) noexcept {
    const auto word = static_cast<std::uint32_t>(bytes);
    std::memcpy(b.pack(), &word, sizeof word);
}

void add_elements(stream_block& b, std::size_t added) noexcept {
    const std::size_t before = listpack::load<std::uint16_t>(b.pack() + 4);
    const auto count = static_cast<std::uint16_t>(
        before == listpack::unknown_count
            ? before
            : std::min<std::size_t>(before + added, listpack::unknown_count));
    std::memcpy(b.pack() + 4, &count, sizeof count);
}

// True if these are the fields of the block's first entry.
bool has_fields(const stream_block& b, const std::string_view* pairs, std::size_t count) noexcept {
    const char* at = fields_of(b);
    if (listpack::take_integer(at) != static_cast<std::int64_t>(count)) return false;
    for (std::size_t i = 0; i < count; ++i) {
        element field;
        at = listpack::read(at, field);
        if (!field.is(pairs[2 * i])) return false;
    }
    return true;
}

stream_id id_from(stream_id base, std::int64_t ms, std::int64_t seq) noexcept {
    return {base.ms + static_cast<std::uint64_t>(ms), base.seq + static_cast<std::uint64_t>(seq)};
}

// Begin of the entry whose last element ends here.
const char* entry_ending_at(const char* end) noexcept {
    const char* at = listpack::before(end);
    const char* count_at = at;
    for (std::int64_t left = listpack::take_integer(count_at); left > 0; --left) {
        at = listpack::before(at);
    }
    return at;
}

struct entry_head {
    stream_id id;
    bool deleted;
};

entry_head head_of(const char* entry, stream_id base) noexcept {
    const std::int64_t flags = listpack::take_integer(entry);
    const std::int64_t ms = listpack::take_integer(entry);
    const std::int64_t seq = listpack::take_integer(entry);
    return {id_from(base, ms, seq), (flags & deleted_flag) != 0};
}

}  // namespace

stream_block* redis_stream::make_block(slab& memory, std::size_t capacity) {
    // The whole capacity of the slab's block is used.
    const std::size_t whole = slab::capacity(sizeof(stream_block) + capacity);
    auto* const made = static_cast<stream_block*>(memory.allocate(whole));
    made->capacity = static_cast<std::uint32_t>(whole - sizeof(stream_block));
    made->first_entry = 0;
    block_bytes_ += whole;
    return made;
}

void redis_stream::release_block(slab& memory, stream_block* gone) noexcept {
    const std::size_t whole = sizeof(stream_block) + gone->capacity;
    block_bytes_ -= whole;
    memory.release(gone, whole);
}

void redis_stream::resize_block(slab& memory, block_tree::item& of, std::size_t capacity) {
    stream_block* const made = make_block(memory, capacity);
    made->first_entry = of.of->first_entry;
    std::memcpy(made->pack(), of.of->pack(), of.of->bytes());
    release_block(memory, of.of);
    of.of = made;
}

void redis_stream::set_counts(slab& memory, block_tree::item& of, std::uint64_t live,
                              std::uint64_t deleted) {
    char head[2 * listpack::max_overhead];
    char* const head_end =
        listpack::put_integer(listpack::put_integer(head, static_cast<std::int64_t>(live)),
                              static_cast<std::int64_t>(deleted));
    const auto size = static_cast<std::size_t>(head_end - head);
    constexpr std::size_t begin = listpack::header_bytes;
    const auto old = static_cast<std::size_t>(fields_of(*of.of) - of.of->pack()) - begin;
    if (size != old) [[unlikely]] {
        const std::size_t bytes = of.of->bytes();
        const std::size_t wider = bytes - old + size;
        if (wider > of.of->capacity) resize_block(memory, of, wider);
        char* const pack = of.of->pack();
        std::memmove(pack + begin + size, pack + begin + old, bytes - begin - old);
        set_bytes(*of.of, wider);
        of.of->first_entry += static_cast<std::uint32_t>(size - old);
    }
    std::memcpy(of.of->pack() + begin, head, size);
}

// Adds a block without entries, with the fields of its first entry and `room` bytes for it.
redis_stream::block_tree::position redis_stream::begin_block(slab& memory, stream_id id,
                                                             const std::string_view* pairs,
                                                             std::size_t count, std::size_t room) {
    room += block_room;
    for (std::size_t i = 0; i < count; ++i) room += room_for(pairs[2 * i]);
    // The next block becomes approximately as large as the last one.
    const auto previous = blocks_.last();
    if (previous)
        room = std::max(room, std::min<std::size_t>(previous->of->capacity, usual_capacity));
    stream_block* const made = make_block(memory, room);
    char* at = made->pack() + listpack::header_bytes;
    at = listpack::put_integer(at, 0);
    at = listpack::put_integer(at, 0);
    at = listpack::put_integer(at, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) at = listpack::put_text(at, pairs[2 * i]);
    at = listpack::put_integer(at, 0);
    made->first_entry = static_cast<std::uint32_t>(at - made->pack());
    *at++ = listpack::end_mark;
    set_bytes(*made, static_cast<std::size_t>(at - made->pack()));
    std::memset(made->pack() + 4, 0, 2);
    add_elements(*made, 4 + count);
    EDDY_ASSERT(blocks_.insert(memory, {id, made}));
    return blocks_.last();
}

void redis_stream::append(slab& memory, stream_id id, const std::string_view* pairs,
                          std::size_t count, stream_block_limits limits) {
    EDDY_ASSERT(id > last_id_);
    std::size_t text = 0;
    std::size_t room = entry_room;
    for (std::size_t i = 0; i < 2 * count; ++i) {
        text += pairs[i].size();
        room += room_for(pairs[i]);
    }
    EDDY_ASSERT(text <= max_entry_bytes);
    auto last = blocks_.last();
    block_counts counts{};
    if (last) {
        counts = counts_of(*last->of);
        const std::size_t max_bytes =
            limits.bytes == 0 ? max_entry_bytes : std::min(limits.bytes, max_entry_bytes);
        const bool full = last->of->bytes() + text >= max_bytes ||
                          (limits.entries != 0 && counts.live + counts.deleted >= limits.entries);
        if (full) {
            const std::size_t fitting = last->of->bytes();
            if (!slab::same_class(fitting + sizeof(stream_block),
                                  last->of->capacity + sizeof(stream_block))) {
                resize_block(memory, *last, fitting);
            }
            last = {};
            counts = {};
        }
    }
    const bool begins = !last;
    if (begins) last = begin_block(memory, id, pairs, count, room);
    const bool shares = begins || has_fields(*last->of, pairs, count);
    set_counts(memory, *last, counts.live + 1, counts.deleted);
    const std::size_t bytes = last->of->bytes();
    if (bytes + room > last->of->capacity) {
        const std::size_t need = bytes + room;
        const std::size_t twice = std::size_t{last->of->capacity} * 2;
        resize_block(memory, *last,
                     need <= usual_capacity ? std::clamp(twice, need, usual_capacity)
                                            : std::max(need, std::min(twice, max_entry_bytes)));
    }
    stream_block& into = *last->of;
    char* at = into.pack() + bytes - 1;
    at = listpack::put_integer(at, shares ? shared_fields_flag : 0);
    at = listpack::put_integer(at, static_cast<std::int64_t>(id.ms - last->id.ms));
    at = listpack::put_integer(at, static_cast<std::int64_t>(id.seq - last->id.seq));
    std::size_t elements = entry_elements + count;
    if (!shares) {
        at = listpack::put_integer(at, static_cast<std::int64_t>(count));
        elements += 1 + count;
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (!shares) at = listpack::put_text(at, pairs[2 * i]);
        at = listpack::put_text(at, pairs[2 * i + 1]);
    }
    at = listpack::put_integer(at, static_cast<std::int64_t>(elements) - 1);
    *at++ = listpack::end_mark;
    set_bytes(into, static_cast<std::size_t>(at - into.pack()));
    add_elements(into, elements);
    last_id_ = id;
    if (size_++ == 0) first_id_ = id;
    ++entries_added_;
}

void redis_stream::remove_block(slab& memory, block_tree::position at) noexcept {
    release_block(memory, at->of);
    blocks_.erase(memory, at->id);
}

void redis_stream::find_first_id() noexcept {
    walk entries(*this, {}, stream_id::max());
    first_id_ = entries.next() ? entries.id() : stream_id{};
}

stream_id redis_stream::last_entry_id() const noexcept {
    walk entries(*this, {}, stream_id::max(), order::backward);
    EDDY_ASSERT(entries.next());
    return entries.id();
}

bool redis_stream::erase(slab& memory, stream_id id) {
    walk found(*this, id, id);
    if (!found.next()) return false;
    const block_counts counts = counts_of(*found.block_->of);
    if (counts.live == 1) {
        remove_block(memory, found.block_);
    } else {
        *const_cast<char*>(found.entry_) |= deleted_flag;
        set_counts(memory, *found.block_, counts.live - 1, counts.deleted + 1);
    }
    --size_;
    if (id > max_deleted_id_) max_deleted_id_ = id;
    if (id == first_id_) find_first_id();
    return true;
}

bool redis_stream::trims_whole(const stream_trim& request, const block_tree::item& block,
                               std::uint64_t live) const noexcept {
    if (request.what == stream_trim::by::length) return size_ - live >= request.length;
    return head_of(entry_ending_at(end_of(*block.of)), block.id).id < request.id;
}

stream_trimmed redis_stream::trim(slab& memory, const stream_trim& request) {
    stream_trimmed done;
    if (request.what == stream_trim::by::none) return done;
    if (request.references == stream_references::keep)
        done.entries = trim_plainly(memory, request);
    else
        done = trim_with_references(memory, request);
    if (done.entries != 0) find_first_id();
    return done;
}

std::uint64_t redis_stream::trim_plainly(slab& memory, const stream_trim& request) {
    const bool by_length = request.what == stream_trim::by::length;
    std::uint64_t removed = 0;
    while (!blocks_.empty() && (!by_length || size_ > request.length)) {
        const auto front = blocks_.first();
        const block_counts counts = counts_of(*front->of);
        if (request.limit != 0 && removed + counts.live > request.limit) break;
        if (trims_whole(request, *front, counts.live)) {
            remove_block(memory, front);
            size_ -= counts.live;
            removed += counts.live;
            continue;
        }
        if (request.approximate) break;
        std::uint64_t marked = 0;
        walk entries(*this, {}, stream_id::max());
        while (marked < counts.live && (!by_length || size_ > request.length)) {
            if (!entries.next() || (!by_length && entries.id() >= request.id)) break;
            *const_cast<char*>(entries.entry_) |= deleted_flag;
            ++marked;
            --size_;
        }
        set_counts(memory, *front, counts.live - marked, counts.deleted + marked);
        removed += marked;
        break;
    }
    return removed;
}

// As Redis 8.6: block by block like trim_plainly(), but entry by entry within each, also where an
// approximate trim would keep the block. The last block is the first one that has too many: where
// entries of it are spared, more than the wanted length stay.
stream_trimmed redis_stream::trim_with_references(slab& memory, const stream_trim& request) {
    const bool by_length = request.what == stream_trim::by::length;
    stream_trimmed done;
    bool ends = false;
    for (auto at = blocks_.first(); at && !ends;) {
        if (by_length && size_ <= request.length) break;
        const block_counts counts = counts_of(*at->of);
        if (request.limit != 0 && done.entries + counts.live > request.limit) break;
        const bool whole = trims_whole(request, *at, counts.live);
        std::uint64_t marked = 0;
        walk entries(*this, at->id, stream_id::max());
        for (std::uint64_t seen = 0; seen < counts.live && entries.next(); ++seen) {
            const stream_id id = entries.id();
            ends = by_length ? size_ <= request.length : id >= request.id;
            if (ends) break;
            if (request.references == stream_references::spare_referenced && is_referenced(id))
                continue;
            if (request.references == stream_references::remove) remove_references(memory, id);
            *const_cast<char*>(entries.entry_) |= deleted_flag;
            ++marked;
            --size_;
            done.last = id;
        }
        done.entries += marked;
        auto next = at;
        next.forward();
        const std::optional<stream_id> rest = next ? std::optional(next->id) : std::nullopt;
        if (marked == counts.live)
            remove_block(memory, at);
        else if (marked != 0)
            set_counts(memory, *at, counts.live - marked, counts.deleted + marked);
        if (!rest || !whole) break;
        at = blocks_.find(*rest);
    }
    return done;
}

void redis_stream::set_ids(stream_id last, std::optional<std::uint64_t> entries_added,
                           stream_id max_deleted) noexcept {
    last_id_ = last;
    if (entries_added) entries_added_ = *entries_added;
    if (!max_deleted.is_zero()) max_deleted_id_ = max_deleted;
}

redis_stream redis_stream::copy(slab& memory) const {
    redis_stream made(*this);
    made.blocks_ = {};
    made.groups_ = {};
    made.block_bytes_ = 0;
    for (auto at = blocks_.first(); at; at.forward()) {
        stream_block* const block = made.make_block(memory, at->of->bytes());
        block->first_entry = at->of->first_entry;
        std::memcpy(block->pack(), at->of->pack(), at->of->bytes());
        made.blocks_.insert(memory, {at->id, block});
    }
    for (auto at = groups_.first(); at; at.forward()) {
        const stream_group& from = **at;
        stream_group& to = *made.add_group(memory, from.name(), from.last_id, from.entries_read);
        for (auto each = from.consumers.first(); each; each.forward()) {
            const stream_consumer& its = **each;
            stream_consumer& consumer = to.add(memory, its.name(), its.seen_ms);
            consumer.active_ms = its.active_ms;
            for (auto what = its.pending.first(); what; what.forward()) {
                stream_pending& pending = to.add_pending(memory, what->id);
                pending.delivered_ms = what->of->delivered_ms;
                pending.deliveries = what->of->deliveries;
                to.pass_on(memory, what->id, pending, consumer);
            }
        }
    }
    return made;
}

bool redis_stream::free_some(slab& memory, std::size_t steps) noexcept {
    while (!groups_.empty()) {
        stream_group& group = **groups_.first();
        if (group.free_some(memory, steps)) return true;
        groups_.erase(memory, group.name());
        memory.release(&group, group.block_size());
    }
    const bool left = blocks_.free_some(
        memory, steps, [&](const block_tree::item& gone) { release_block(memory, gone.of); });
    if (!left) *this = redis_stream();
    return left;
}

std::size_t redis_stream::memory_bytes(std::size_t samples) const noexcept {
    std::size_t bytes = block_bytes_ + blocks_.memory_bytes() + groups_.memory_bytes();
    for (auto at = groups_.first(); at; at.forward()) {
        const stream_group& group = **at;
        bytes += slab::capacity(group.block_size()) + group.pending.memory_bytes() +
                 group.deliveries.memory_bytes() +
                 group.pending.size() * slab::capacity(sizeof(stream_pending)) +
                 group.consumers.memory_bytes();
        std::size_t seen = 0;
        std::size_t of_seen = 0;
        for (auto each = group.consumers.first(); each && (samples == 0 || seen < samples);
             each.forward(), ++seen) {
            of_seen += slab::capacity((*each)->block_size()) + (*each)->pending.memory_bytes();
        }
        if (seen != 0) bytes += of_seen * group.consumers.size() / seen;
    }
    return bytes;
}

// Radix tree over the IDs' 16 bytes in big-endian order. A node is a run of bytes without a branch,
// a branch, or a key's end.
std::size_t redis_stream::radix_nodes() const noexcept {
    constexpr unsigned key_bytes = 16;
    const auto common = [](stream_id a, stream_id b) {
        const std::uint64_t ms = a.ms ^ b.ms;
        return static_cast<unsigned>(ms != 0 ? std::countl_zero(ms) / 8
                                             : 8 + std::countl_zero(a.seq ^ b.seq) / 8);
    };
    if (blocks_.empty()) return 1;
    // Open branches on the path to the last key, by the number of bytes before them.
    unsigned open[key_bytes + 1];
    unsigned depth = 0;
    std::size_t nodes = 0;
    std::size_t seen = 1;
    // A branch at `at`, or a key's end there, below the branch at `above` (or the root).
    const auto count_node = [&](bool has_above, unsigned above, unsigned at) {
        nodes += 1 + (has_above ? (at > above + 1 ? 1U : 0U) : (at > 0 ? 1U : 0U));
    };
    auto at = blocks_.first();
    stream_id previous = at->id;
    // The depth at which the last key left its neighbours is known at the next key.
    unsigned pending_end = key_bytes;
    for (at.forward(); at && seen < max_counted_blocks; at.forward(), ++seen) {
        const unsigned same = common(previous, at->id);
        // All branches deeper than this one are complete.
        while (depth > 0 && open[depth - 1] > same) {
            count_node(true, open[depth - 1], pending_end);
            pending_end = open[--depth];
        }
        if (depth > 0 && open[depth - 1] == same) {
            count_node(true, same, pending_end);
        } else {
            // A new branch, above the pending one.
            count_node(true, same, pending_end);
            open[depth++] = same;
        }
        pending_end = key_bytes;
        previous = at->id;
    }
    while (depth > 0) {
        count_node(true, open[depth - 1], pending_end);
        pending_end = open[--depth];
    }
    count_node(false, 0, pending_end);
    return seen == blocks_.size() ? nodes : nodes * blocks_.size() / seen;
}

redis_stream::walk::walk(const redis_stream& over, stream_id first, stream_id last,
                         order direction) noexcept
    : first_(first), last_(last), direction_(direction) {
    if (over.blocks_.empty() || first > last) return;
    if (direction == order::backward) {
        block_ = over.blocks_.last_up_to(last);
        if (block_) enter();
        return;
    }
    block_ = over.blocks_.last_up_to(first);
    if (!block_) block_ = over.blocks_.first();
    enter();
    if (first > block_->id) seek();
}

void redis_stream::walk::enter() noexcept {
    const stream_block& b = *block_->of;
    const char* at = fields_of(b);
    shared_ = static_cast<std::size_t>(listpack::take_integer(at));
    fields_ = at;
    at_ = direction_ == order::forward ? b.pack() + b.first_entry : end_of(b);
}

// Moves to the first entry of the block, or of the next one, that is not before first_. It starts
// at the end that is nearer in time.
void redis_stream::walk::seek() noexcept {
    const char* const end = end_of(*block_->of);
    const char* at = entry_ending_at(end);
    const stream_id last = head_of(at, block_->id).id;
    if (last < first_) {
        block_.forward();
        if (block_) enter();
        return;
    }
    if (first_.ms - block_->id.ms <= (last.ms - block_->id.ms) / 2) return;
    const char* const front = at_;
    at_ = end;
    while (at_ != front) {
        at = entry_ending_at(at_);
        const entry_head head = head_of(at, block_->id);
        if (!head.deleted && head.id < first_) return;
        at_ = at;
    }
}

void redis_stream::walk::open(const char* entry) noexcept {
    entry_ = entry;
    const std::int64_t flags = listpack::take_integer(entry);
    const std::int64_t ms = listpack::take_integer(entry);
    const std::int64_t seq = listpack::take_integer(entry);
    id_ = id_from(block_->id, ms, seq);
    deleted_ = (flags & deleted_flag) != 0;
    shares_fields_ = (flags & shared_fields_flag) != 0;
    next_field_ = fields_;
    pairs_ = shares_fields_ ? shared_ : static_cast<std::size_t>(listpack::take_integer(entry));
    unread_ = shares_fields_ ? pairs_ : 2 * pairs_;
    rest_ = entry;
}

// Moves to the next entry, marked or not; false at the end.
bool redis_stream::walk::step() noexcept {
    if (direction_ == order::backward) {
        if (at_ == block_->of->pack() + block_->of->first_entry) {
            block_.backward();
            if (!block_) return false;
            enter();
        }
        at_ = entry_ending_at(at_);
        open(at_);
        return true;
    }
    if (entry_ != nullptr) {
        for (; unread_ > 0; --unread_) rest_ = listpack::skip(rest_);
        at_ = listpack::skip(rest_);
        entry_ = nullptr;
    }
    if (*at_ == listpack::end_mark) {
        block_.forward();
        if (!block_) return false;
        enter();
    }
    open(at_);
    return true;
}

bool redis_stream::walk::next() noexcept {
    while (block_ && step()) {
        if (deleted_) continue;
        const bool forward = direction_ == order::forward;
        if (forward ? id_ > last_ : id_ < first_) break;
        if (forward ? id_ >= first_ : id_ <= last_) return true;
    }
    block_ = {};
    return false;
}

void redis_stream::walk::pair(listpack::element& field, listpack::element& value) noexcept {
    if (shares_fields_) {
        next_field_ = listpack::read(next_field_, field);
        --unread_;
    } else {
        rest_ = listpack::read(rest_, field);
        unread_ -= 2;
    }
    rest_ = listpack::read(rest_, value);
}

}  // namespace eddy::cache
