// Probation queue and ghost queue, by which keyspace_eviction.cpp chooses.
#include "cache/keyspace/eviction.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

namespace eddy::cache {

void probation_queue::push(slab& memory, std::uint64_t hash) {
    if (last_ == nullptr || filled_ == block::room) {
        auto* const added = new (memory.allocate(sizeof(block))) block;
        (last_ == nullptr ? first_ : last_->next) = added;
        last_ = added;
        filled_ = 0;
    }
    last_->hashes[filled_++] = hash;
    ++count_;
}

std::optional<std::uint64_t> probation_queue::pop(slab& memory) noexcept {
    if (count_ == 0) return std::nullopt;
    const std::uint64_t hash = first_->hashes[taken_++];
    --count_;
    if (count_ == 0) {
        clear(memory);
    } else if (taken_ == block::room) {
        block* const emptied = first_;
        first_ = emptied->next;
        taken_ = 0;
        memory.release(emptied, sizeof(block));
    }
    return hash;
}

void probation_queue::clear(slab& memory) noexcept {
    while (first_ != nullptr) {
        block* const gone = first_;
        first_ = gone->next;
        memory.release(gone, sizeof(block));
    }
    last_ = nullptr;
    taken_ = filled_ = count_ = 0;
}

void ghost_queue::push(slab& memory, std::uint64_t hash, std::size_t room) {
    make_room(memory, room);
    if (++pushed_ > room / epochs_a_room) {
        pushed_ = 0;
        ++epoch_;
    }
    segment*& at = segment_of(hash);
    if (at == nullptr) {
        at = new (memory.allocate(sizeof(segment))) segment;
        const mark forgotten{.tag = 0, .epoch = static_cast<std::uint16_t>(epoch_ - epochs_a_room)};
        for (bucket& each : at->buckets) std::ranges::fill(each.marks, forgotten);
    }
    mark* oldest = nullptr;
    for (mark& each : bucket_of(*at, hash).marks) {
        if (oldest == nullptr || age(each) > age(*oldest)) oldest = &each;
    }
    *oldest = {.tag = static_cast<std::uint16_t>(hash), .epoch = epoch_};
}

bool ghost_queue::take(std::uint64_t hash) noexcept {
    if (segments_.empty()) return false;
    segment* const at = segment_of(hash);
    if (at == nullptr) return false;
    for (mark& each : bucket_of(*at, hash).marks) {
        if (each.tag != static_cast<std::uint16_t>(hash) || age(each) >= epochs_a_room) continue;
        each.epoch = static_cast<std::uint16_t>(epoch_ - epochs_a_room);
        return true;
    }
    return false;
}

/// Twice the marks that are needed: a bucket that is full forgets too soon.
void ghost_queue::make_room(slab& memory, std::size_t room) {
    constexpr std::size_t marks = sizeof(segment) / sizeof(mark);
    const std::size_t wanted = std::bit_ceil(room * 3 / 2 / marks + 1);
    const bool is_small = room > segments_.size() * marks * 3 / 4;
    if (!segments_.empty() && !is_small && segments_.size() <= 4 * wanted) return;
    clear(memory);
    segments_.resize(wanted);
}

void ghost_queue::clear(slab& memory) noexcept {
    for (segment* const each : segments_) {
        if (each != nullptr) memory.release(each, sizeof(segment));
    }
    segments_.clear();
    segments_.shrink_to_fit();
}

}  // namespace eddy::cache
