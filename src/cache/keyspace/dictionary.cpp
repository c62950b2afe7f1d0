// Growth, shrinking and scanning of the hash table.
#include "cache/keyspace/dictionary.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace eddy::cache {
namespace {

// A table of one segment shrinks when less than this share of its slots is in use.
constexpr std::size_t shrink_below = 8;
// Two segments are joined when all their keys fill at most this share of one.
constexpr std::size_t merged_limit = 4;

// A scan's cursor: the segment's depth, the first 32 bits of the hash, and the eight that choose
// the bucket.
constexpr unsigned prefix_bits = 32;
constexpr unsigned depth_shift = prefix_bits + dictionary::max_bucket_bits;

constexpr unsigned log2_of(std::size_t power) noexcept {
    return static_cast<unsigned>(__builtin_ctzll(power));
}

}  // namespace

bucket dictionary::no_buckets[1]{};

dictionary::slot* dictionary::search(std::string_view key, std::uint64_t hash) const noexcept {
    return find_hash(hash, [key](const entry& e) { return same_bytes(e.key(), key); });
}

dictionary::slot* dictionary::insert(entry* added, std::uint64_t hash) {
    EDDY_ASSERT((address(added) & ~address_mask) == 0);
    for (;;) {
        segment* const owner = root(hash).owner;
        // With locked buckets, take_place() has checked that there is room.
        if (owner != nullptr && (is_held() || owner->count < fill_limit(bucket_count())))
            [[likely]] {
            count(*owner, 1);
            return place(owner->buckets, address(added) | (hash & hash_mask), hash);
        }
        grow(hash);
    }
}

void dictionary::count(segment& owner, int more) noexcept {
    if (is_held()) [[unlikely]] {
        std::atomic_ref(owner.count)
            .fetch_add(static_cast<std::uint32_t>(more), std::memory_order_relaxed);
        holding::current().keys += more;
        return;
    }
    owner.count += static_cast<std::uint32_t>(more);
    count_ += static_cast<std::size_t>(more);
}

bool dictionary::holding::take_further(const dictionary& of, std::uint64_t hash) noexcept {
    bucket* const buckets = of.root(hash).buckets;
    const std::size_t home = of.home(hash);
    for (std::size_t at = home; buckets[at].passed_over != 0;) {
        at = (at + 1) & of.bucket_mask_;
        if (at == home) break;  // once around, as the search
        if (!take(buckets + at)) return false;
    }
    return true;
}

bool dictionary::holding::take_place(const dictionary& of, std::uint64_t hash) noexcept {
    if (of.depth_ == 0 || of.keys_of_segment(hash) >= fill_limit(full_buckets) + overfill)
        return false;
    bucket* const buckets = of.root(hash).buckets;
    for (std::size_t at = of.home(hash);; at = (at + 1) & of.bucket_mask_) {
        if (!take(buckets + at)) return false;
        if (buckets[at].occupied() != bucket::full_mask) return true;
    }
}

void dictionary::resize_around(std::uint64_t hash) {
    if (depth_ == 0) return;
    if (root(hash).owner->count >= fill_limit(full_buckets))
        split(hash);
    else if (root(hash).owner->count < merge_limit)
        merge(hash);
}

// The segment has a free slot.
dictionary::slot* dictionary::place(bucket* buckets, slot with, std::uint64_t hash) const noexcept {
    const std::size_t own = home(hash);
    for (std::size_t at = own;; at = (at + 1) & bucket_mask_) {
        bucket& b = buckets[at];
        const unsigned free = ~b.occupied() & bucket::full_mask;
        if (free != 0) {
            const auto i = static_cast<unsigned>(__builtin_ctz(free));
            b.tags[i] = tag(hash);
            b.slots[i] = with;
            if (at != own) b.add_overflow(1);
            return &b.slots[i];
        }
        if (b.passed_over != 0xff) ++b.passed_over;
    }
}

void dictionary::erase(slot* place, std::uint64_t hash) noexcept {
    auto* const b =
        reinterpret_cast<bucket*>(reinterpret_cast<std::uintptr_t>(place) & ~(sizeof(bucket) - 1));
    segment* const owner = root(hash).owner;
    const auto at = static_cast<std::size_t>(b - owner->buckets);
    b->tags[place - b->slots] = 0;
    const std::size_t own = home(hash);
    if (at != own) {
        b->add_overflow(-1);
        for (std::size_t i = own; i != at; i = (i + 1) & bucket_mask_) {
            bucket& passed = owner->buckets[i];
            if (passed.passed_over != 0xff) --passed.passed_over;
        }
    }
    count(*owner, -1);
    if (is_held()) return;
    if (count_ == 0) {
        clear();
    } else if (depth_ > 0) {
        if (owner->count < merge_limit) merge(hash);
    } else if (bucket_mask_ > 0 && count_ < bucket_count() * bucket::width / shrink_below) {
        resize_first(log2_of(bucket_count()) - 1);
    }
}

void dictionary::clear() noexcept { drop_buckets(); }

void dictionary::forget() noexcept {
    first_ = {no_buckets, nullptr};
    directory_ = &first_;
    bucket_mask_ = 0;
    bucket_shift_ = max_bucket_bits;
    depth_ = 0;
    count_ = 0;
}

void dictionary::grow(std::uint64_t hash) {
    if (first_.owner == nullptr && depth_ == 0) {
        bucket* const buckets = allocate_buckets(1);
        first_ = {buckets, allocate_segment(buckets, 0)};
    } else if (bucket_count() < full_buckets) {
        resize_first(log2_of(bucket_count()) + 1);
    } else {
        split(hash);
    }
}

// Resizes the table's only segment to 2^bucket_bits buckets.
void dictionary::resize_first(unsigned bucket_bits) {
    segment* const owner = first_.owner;
    bucket* const old = owner->buckets;
    const std::size_t old_count = bucket_count();
    moved_ += owner->count;
    bucket* const buckets = allocate_buckets(std::size_t{1} << bucket_bits);
    bucket_mask_ = (std::size_t{1} << bucket_bits) - 1;
    bucket_shift_ = static_cast<std::uint8_t>(max_bucket_bits - bucket_bits);
    for (std::size_t at = 0; at < old_count; ++at) {
        for (unsigned used = old[at].occupied(); used != 0; used &= used - 1) {
            const slot moved = old[at].slots[__builtin_ctz(used)];
            place(buckets, moved, hash_(entry_of(moved)->key()));
        }
    }
    owner->buckets = buckets;
    first_.buckets = buckets;
    release_buckets(old, old_count);
}

// Half of a segment's entries, those whose next bit of the hash is set, move to a new one. They
// keep their bucket number, so hashes are recomputed only for overflow entries and their
// neighbours.
void dictionary::split(std::uint64_t hash) {
    static_assert(max_moved == fill_limit(full_buckets));
    segment* const low = root(hash).owner;
    EDDY_ASSERT(low->depth < max_depth);
    // Reserved first, as it may fail.
    std::vector<slot> unplaced;
    unplaced.reserve(low->count);
    if (low->depth == depth_) double_directory();
    moved_ += low->count;
    const unsigned bit = 63 - low->depth;
    bucket* const buckets = allocate_buckets(full_buckets);
    segment* const high = allocate_segment(buckets, ++low->depth);

    for (std::size_t at = 0; at < full_buckets; ++at) {
        bucket& from = low->buckets[at];
        bucket& to = buckets[at];
        from.passed_over = 0;
        unsigned placed = 0;
        for (unsigned used = from.occupied(); used != 0; used &= used - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(used));
            const slot moved = from.slots[i];
            if (from.overflow > 0) {
                unplaced.push_back(moved);
                from.tags[i] = 0;
                continue;
            }
            const std::uint64_t bits =
                bit > 63 - hash_bits_in_slot ? moved : hash_(entry_of(moved)->key());
            if ((bits >> bit & 1) == 0) continue;
            to.tags[placed] = from.tags[i];
            to.slots[placed] = moved;
            ++placed;
            from.tags[i] = 0;
        }
        from.overflow = 0;
        high->count += placed;
    }
    low->count -= high->count;
    for (const slot moved : unplaced) {
        const std::uint64_t its = hash_(entry_of(moved)->key());
        const bool up = (its >> bit & 1) != 0;
        place(up ? buckets : low->buckets, moved, its);
        if (up) {
            ++high->count;
            --low->count;
        }
    }

    const std::size_t slots = std::size_t{1} << (depth_ - high->depth);
    point_directory((directory_index(hash) | slots) & ~(slots - 1), slots, high);
}

void dictionary::point_directory(std::size_t first, std::size_t slots, segment* owner) noexcept {
    std::fill_n(directory_ + first, slots, directory_slot{owner->buckets, owner});
}

void dictionary::double_directory() {
    const std::size_t slots = std::size_t{1} << depth_;
    auto* const wider =
        static_cast<directory_slot*>(memory_.allocate(2 * slots * sizeof(directory_slot)));
    for (std::size_t i = 0; i < slots; ++i) wider[2 * i] = wider[2 * i + 1] = directory_[i];
    if (depth_ > 0) memory_.release(directory_, slots * sizeof(directory_slot));
    directory_ = wider;
    ++depth_;
}

// Joins the segment of `hash` with its other half, if that is not split further and there is room.
void dictionary::merge(std::uint64_t hash) noexcept {
    const std::size_t index = directory_index(hash);
    segment* one = directory_[index].owner;
    const std::size_t slots = std::size_t{1} << (depth_ - one->depth);
    segment* other = directory_[index ^ slots].owner;
    if (one->depth != other->depth ||
        one->count + other->count > full_buckets * bucket::width / merged_limit) {
        return;
    }
    if (one->count < other->count) std::swap(one, other);
    moved_ += other->count;
    for (std::size_t at = 0; at < full_buckets; ++at) {
        const bucket& from = other->buckets[at];
        for (unsigned used = from.occupied(); used != 0; used &= used - 1) {
            const slot moved = from.slots[__builtin_ctz(used)];
            place(one->buckets, moved, hash_(entry_of(moved)->key()));
        }
    }
    one->count += other->count;
    --one->depth;
    point_directory(index & ~(2 * slots - 1), 2 * slots, one);
    release_buckets(other->buckets, full_buckets);
    memory_.release(other, sizeof(segment));
    if (slots == 1) shrink_directory();
}

// Halves the directory as long as every two neighbours are the same segment.
void dictionary::shrink_directory() noexcept {
    while (depth_ > 0) {
        const std::size_t slots = std::size_t{1} << depth_;
        for (std::size_t i = 0; i < slots; i += 2) {
            if (directory_[i].owner != directory_[i + 1].owner) return;
        }
        directory_slot* const wide = directory_;
        --depth_;
        directory_ = depth_ == 0 ? &first_
                                 : static_cast<directory_slot*>(
                                       memory_.allocate(slots / 2 * sizeof(directory_slot)));
        for (std::size_t i = 0; i < slots / 2; ++i) directory_[i] = wide[2 * i];
        memory_.release(wide, slots * sizeof(directory_slot));
    }
}

bucket* dictionary::allocate_buckets(std::size_t buckets) {
    void* const block = memory_.allocate(buckets * sizeof(bucket));
    std::memset(block, 0, buckets * sizeof(bucket));
    return static_cast<bucket*>(block);
}

void dictionary::release_buckets(bucket* buckets, std::size_t count) noexcept {
    memory_.release(buckets, count * sizeof(bucket));
}

dictionary::segment* dictionary::allocate_segment(bucket* buckets, unsigned depth) {
    return new (memory_.allocate(sizeof(segment))) segment{buckets, 0, depth};
}

void dictionary::drop_buckets() noexcept {
    std::size_t at = 0;
    while (drop_some(at)) {
    }
}

bool dictionary::drop_some(std::size_t& at) noexcept {
    const std::size_t slots = std::size_t{1} << depth_;
    if (at < slots && directory_[at].owner != nullptr) {
        segment* const owner = directory_[at].owner;
        at += slots >> owner->depth;
        release_buckets(owner->buckets, bucket_count());
        memory_.release(owner, sizeof(segment));
        if (at < slots) return true;
    }
    if (depth_ > 0) memory_.release(directory_, slots * sizeof(directory_slot));
    forget();
    return false;
}

dictionary::dictionary(dictionary&& other) noexcept
    : is_shared_(other.is_shared_), memory_(other.memory_), hash_(other.hash_) {
    first_ = other.first_;
    directory_ = other.depth_ == 0 ? &first_ : other.directory_;
    bucket_mask_ = other.bucket_mask_;
    bucket_shift_ = other.bucket_shift_;
    depth_ = other.depth_;
    count_ = other.count_;
    other.forget();
}

std::size_t dictionary::table_bytes() const noexcept {
    if (depth_ == 0) {
        return first_.owner == nullptr ? 0 : bucket_count() * sizeof(bucket) + sizeof(segment);
    }
    const std::size_t slots = std::size_t{1} << depth_;
    std::size_t segments = 0;
    for (std::size_t i = 0; i < slots; i += slots >> directory_[i].owner->depth) ++segments;
    return segments * (full_buckets * sizeof(bucket) + sizeof(segment)) +
           slots * sizeof(directory_slot);
}

// The entries that belong to one bucket: in it, and as overflow in those behind it.
void dictionary::collect(const bucket* buckets, std::size_t home_bucket,
                         std::vector<slot>& found) const {
    std::size_t at = home_bucket;
    for (std::size_t probes = 0; probes <= bucket_mask_; ++probes) {
        const bucket& b = buckets[at];
        const bool own = at == home_bucket;
        for (unsigned used = b.occupied(); used != 0; used &= used - 1) {
            if (!own && b.overflow == 0) break;
            const slot s = b.slots[__builtin_ctz(used)];
            if (b.overflow > 0 && home(hash_(entry_of(s)->key())) != home_bucket) continue;
            found.push_back(s);
        }
        if (b.passed_over == 0) return;
        at = (at + 1) & bucket_mask_;
    }
}

std::uint64_t dictionary::scan(std::uint64_t cursor, std::vector<slot>& found) const {
    if (count_ == 0) return 0;
    const std::uint64_t prefix =
        cursor >> max_bucket_bits & ((std::uint64_t{1} << prefix_bits) - 1);
    const directory_slot& at = directory_[prefix >> (prefix_bits - depth_)];
    const std::uint64_t depth = at.owner->depth;
    // After a merge since the last call, the other halves were not visited yet.
    const bool joined = depth < cursor >> depth_shift;
    const std::size_t bucket_at = joined ? 0 : (cursor & (full_buckets - 1)) >> bucket_shift_;
    collect(at.buckets, bucket_at, found);
    if (bucket_at < bucket_mask_) {
        return depth << depth_shift | prefix << max_bucket_bits | (bucket_at + 1) << bucket_shift_;
    }
    const std::uint64_t below = prefix_bits - depth;
    const std::uint64_t next = ((prefix >> below) + 1) << below;
    return next >> prefix_bits != 0 ? 0 : next << max_bucket_bits;
}

void dictionary::visit(order_cursor& at, std::vector<slot>& found) const {
    found.clear();
    // At the start of a region the cursor covers all of the current segment that is ahead of it.
    if (at.bucket == 0) {
        const unsigned aligned =
            at.prefix == 0 ? 0 : prefix_bits - static_cast<unsigned>(__builtin_ctzll(at.prefix));
        const directory_slot& first = directory_[at.prefix >> (prefix_bits - depth_)];
        const unsigned own = first.owner == nullptr ? 0 : first.owner->depth;
        at.depth = std::max(aligned, own);
    }
    const std::size_t own_bucket = at.bucket >> bucket_shift_;
    at.next_bucket = static_cast<unsigned>(own_bucket + 1) << bucket_shift_;
    if (count_ == 0) return;
    const std::uint64_t end = at.prefix + (std::uint64_t{1} << (prefix_bits - at.depth));
    for (std::uint64_t prefix = at.prefix; prefix < end;) {
        const directory_slot& here = directory_[prefix >> (prefix_bits - depth_)];
        const bucket& b = here.buckets[own_bucket];
        for (unsigned ahead = b.occupied(); ahead != 0; ahead &= ahead - 1) {
            __builtin_prefetch(entry_of(b.slots[__builtin_ctz(ahead)]));
        }
        collect(here.buckets, own_bucket, found);
        prefix += std::uint64_t{1} << (prefix_bits - std::max(here.owner->depth, at.depth));
    }
    std::erase_if(found, [&](slot each) {
        const std::uint64_t hash = hash_(entry_of(each)->key());
        const std::uint64_t region = hash >> 32 & ~((std::uint64_t{1} << (32 - at.depth)) - 1);
        return region != at.prefix || at.passed(hash);
    });
}

entry* dictionary::random(random_generator& random) const noexcept {
    if (count_ == 0) return nullptr;
    // With an eighth of the slots in use, 64 tries fail once in five thousand times.
    for (int tries = 0; tries < 64; ++tries) {
        const std::uint64_t number = random();
        const bucket& b = root(number).buckets[number & bucket_mask_];
        const auto i = static_cast<unsigned>((number >> 8 & 0xffff) * bucket::width >> 16);
        if (b.tags[i] != 0) return entry_of(b.slots[i]);
    }
    const std::size_t slots = std::size_t{1} << depth_;
    const std::uint64_t start = random();
    for (std::size_t i = 0; i < slots; ++i) {
        const bucket* const buckets = directory_[(start + i) & (slots - 1)].buckets;
        for (std::size_t j = 0; j <= bucket_mask_; ++j) {
            const bucket& b = buckets[((start >> 32) + j) & bucket_mask_];
            if (b.occupied() != 0) return entry_of(b.slots[__builtin_ctz(b.occupied())]);
        }
    }
    return nullptr;
}

dictionary::slot* dictionary::iterator::next() noexcept {
    while (left_ == 0) {
        const std::size_t slots = std::size_t{1} << over_.depth_;
        if (over_.count_ == 0 || segment_ >= slots) return nullptr;
        const directory_slot& at = over_.directory_[segment_];
        current_ = &at.buckets[bucket_];
        left_ = current_->occupied();
        if (bucket_++ == over_.bucket_mask_) {
            bucket_ = 0;
            segment_ += slots >> at.owner->depth;
        }
        // The iteration reads the entries, which are scattered in memory.
        for (unsigned ahead = left_; ahead != 0; ahead &= ahead - 1) {
            __builtin_prefetch(entry_of(current_->slots[__builtin_ctz(ahead)]));
        }
    }
    const auto i = static_cast<unsigned>(__builtin_ctz(left_));
    left_ &= left_ - 1;
    return &current_->slots[i];
}

}  // namespace eddy::cache
