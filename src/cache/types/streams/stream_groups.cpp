// Consumer groups with their pending entries and counters; untrusted blocks.
#include <eddy/base/assert.hpp>

#include "cache/types/packed.hpp"
#include "cache/types/streams/stream.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

// A named object in a block of its own.
template <class T>
T& make_named(slab& memory, std::string_view name) {
    auto* const made = new (memory.allocate(sizeof(T) + name.size())) T{};
    made->name_size = static_cast<std::uint32_t>(name.size());
    made->own_size = sizeof(T);
    if (!name.empty()) std::memcpy(reinterpret_cast<char*>(made + 1), name.data(), name.size());
    return *made;
}

}  // namespace

stream_consumer& stream_group::add(slab& memory, std::string_view consumer, std::int64_t now_ms) {
    auto& made = make_named<stream_consumer>(memory, consumer);
    made.seen_ms = now_ms;
    made.active_ms = stream_consumer::never;
    EDDY_ASSERT(consumers.insert(memory, &made));
    return made;
}

void stream_group::erase(slab& memory, stream_consumer& gone) noexcept {
    for (auto at = gone.pending.first(); at; at.forward()) {
        pending.erase(memory, at->id);
        if (has_deliveries) deliveries.erase(memory, stream_delivery{at->of->delivered_ms, at->id});
        memory.release(at->of, sizeof(stream_pending));
    }
    consumers.erase(memory, gone.name());
    std::size_t steps = SIZE_MAX;
    gone.pending.free_some(memory, steps, [](const pending_tree::item&) {});
    memory.release(&gone, gone.block_size());
}

void stream_group::deliver(slab& memory, stream_id id, stream_consumer& to, std::int64_t now_ms) {
    stream_pending* what = nullptr;
    // Mostly the ID is above all pending ones.
    const auto last = pending.last();
    if (last && last->id >= id) what = find(id);
    if (what == nullptr) what = &add_pending(memory, id);
    set_delivered(memory, id, *what, now_ms);
    what->deliveries = 1;
    pass_on(memory, id, *what, to);
}

stream_pending& stream_group::add_pending(slab& memory, stream_id id) {
    auto* const made = new (memory.allocate(sizeof(stream_pending))) stream_pending{};
    EDDY_ASSERT(pending.insert(memory, {id, made}));
    if (has_deliveries) deliveries.insert(memory, {made->delivered_ms, id});
    return *made;
}

void stream_group::index_deliveries(slab& memory) {
    if (std::exchange(has_deliveries, true)) return;
    for (auto at = pending.first(); at; at.forward())
        deliveries.insert(memory, {at->of->delivered_ms, at->id});
}

void stream_group::set_delivered(slab& memory, stream_id id, stream_pending& what,
                                 std::int64_t time_ms) {
    if (has_deliveries) {
        deliveries.erase(memory, stream_delivery{what.delivered_ms, id});
        deliveries.insert(memory, {time_ms, id});
    }
    what.delivered_ms = time_ms;
}

void stream_group::pass_on(slab& memory, stream_id id, stream_pending& what, stream_consumer& to) {
    if (what.owner == &to) return;
    if (what.owner != nullptr) what.owner->pending.erase(memory, id);
    what.owner = &to;
    EDDY_ASSERT(to.pending.insert(memory, {id, &what}));
}

bool stream_group::acknowledge(slab& memory, stream_id id) noexcept {
    stream_pending* const what = find(id);
    if (what == nullptr) return false;
    pending.erase(memory, id);
    if (has_deliveries) deliveries.erase(memory, stream_delivery{what->delivered_ms, id});
    if (what->owner != nullptr) what->owner->pending.erase(memory, id);
    memory.release(what, sizeof(stream_pending));
    return true;
}

bool stream_group::free_some(slab& memory, std::size_t& steps) noexcept {
    while (!consumers.empty()) {
        stream_consumer& gone = **consumers.first();
        if (gone.pending.free_some(memory, steps, [](const pending_tree::item&) {})) return true;
        consumers.erase(memory, gone.name());
        memory.release(&gone, gone.block_size());
        if (steps > 0) --steps;
    }
    if (deliveries.free_some(memory, steps, [](const stream_delivery&) {})) return true;
    return pending.free_some(memory, steps, [&](const pending_tree::item& each) {
        memory.release(each.of, sizeof(stream_pending));
    });
}

stream_group* redis_stream::add_group(slab& memory, std::string_view name, stream_id last,
                                      std::int64_t entries_read) {
    if (find_group(name) != nullptr) return nullptr;
    auto& made = make_named<stream_group>(memory, name);
    made.last_id = last;
    made.entries_read = entries_read;
    groups_.insert(memory, &made);
    return &made;
}

redis_stream redis_stream::take_group(slab& memory, stream_group& gone) {
    groups_.erase(memory, gone.name());
    redis_stream made;
    made.groups_.insert(memory, &gone);
    return made;
}

bool redis_stream::is_referenced(stream_id id) const noexcept {
    for (auto at = groups_.first(); at; at.forward()) {
        const stream_group& group = **at;
        if (group.last_id < id || group.find(id) != nullptr) return true;
    }
    return false;
}

std::uint64_t redis_stream::remove_references(slab& memory, stream_id id) noexcept {
    std::uint64_t removed = 0;
    for (auto at = groups_.first(); at; at.forward())
        removed += (*at)->acknowledge(memory, id) ? 1 : 0;
    return removed;
}

bool redis_stream::has_gaps_from(stream_id id) const noexcept {
    return size_ != 0 && !max_deleted_id_.is_zero() && id <= max_deleted_id_;
}

std::optional<std::int64_t> redis_stream::count_up_to(stream_id id) const noexcept {
    const auto count = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    if (entries_added_ == 0) return 0;
    if (size_ == 0 && id <= last_id_) return count(entries_added_);
    // The number of removed entries after it is unknown.
    if (!id.is_zero() && id < max_deleted_id_) return std::nullopt;
    if (id == last_id_) return count(entries_added_);
    if (id > last_id_) return std::nullopt;
    if (max_deleted_id_.is_zero() || max_deleted_id_ < first_id_) {
        if (id < first_id_) return count(entries_added_ - size_);
        if (id == first_id_) return count(entries_added_ - size_ + 1);
    }
    return std::nullopt;
}

std::optional<std::int64_t> redis_stream::lag(const stream_group& of) const noexcept {
    if (entries_added_ == 0 || size_ == 0) return 0;
    // All that is left is unread, and nothing is missing in it.
    if (of.last_id < first_id_ && max_deleted_id_ < first_id_)
        return static_cast<std::int64_t>(size_);
    std::optional<std::int64_t> read;
    if (of.entries_read != stream_group::unknown_count && !has_gaps_from(of.last_id)) {
        read = of.entries_read;
    } else {
        read = count_up_to(of.last_id);
    }
    if (!read) return std::nullopt;
    return static_cast<std::int64_t>(entries_added_ - static_cast<std::uint64_t>(*read));
}

// The block is first checked as a listpack, so that the second walk, which interprets the elements,
// is safe. A removed entry may have a higher ID than the entries after it: old versions of Redis
// could set the last ID back to before it.
const char* redis_stream::add_block(slab& memory, stream_id id, std::string_view pack) {
    constexpr const char* wrong_entry = "an entry of a stream is not made as it should be";
    constexpr const char* wrong_order = "a stream's entries are not in the order of their IDs";
    constexpr std::int64_t max_flags = 3;
    std::size_t count = 0;
    if (const char* const why = check_packed<listpack_walk>(pack, count)) return why;
    if (!blocks_.empty() && id <= last_id_) return wrong_order;
    const char* at = pack.data() + listpack::header_bytes;
    const char* const end = pack.data() + pack.size() - 1;
    const auto elements = [&](std::int64_t number) {
        if (number < 0) return false;
        for (; number > 0 && at != end; --number) at = listpack::skip(at);
        return number == 0;
    };
    const auto number = [&](std::int64_t& to) {
        if (at == end) return false;
        listpack::element one;
        at = listpack::read(at, one);
        to = one.number;
        return one.is_number;
    };
    std::int64_t live = 0;
    std::int64_t deleted = 0;
    std::int64_t shared = 0;
    std::int64_t zero = 0;
    if (!number(live) || !number(deleted) || !number(shared) || !elements(shared) ||
        !number(zero) || zero != 0) {
        return "a block of a stream does not begin as it should";
    }
    const auto first_entry = static_cast<std::uint32_t>(at - pack.data());
    std::optional<stream_id> last;
    std::int64_t found = 0;
    std::int64_t found_deleted = 0;
    while (at != end) {
        const bool is_short = static_cast<std::uint8_t>(*at) <= max_flags;
        std::int64_t flags = 0;
        std::int64_t ms = 0;
        std::int64_t seq = 0;
        std::int64_t own = 0;
        std::int64_t claimed = 0;
        if (!is_short || !number(flags) || !number(ms) || !number(seq)) return wrong_entry;
        const bool shares = (flags & 2) != 0;
        if (!shares && !number(own)) return wrong_entry;
        const std::int64_t texts = shares ? shared : own;
        if (texts > static_cast<std::int64_t>(count)) return wrong_entry;
        if (!elements(shares ? texts : 2 * texts) || !number(claimed)) return wrong_entry;
        if (claimed != (shares ? 3 + texts : 4 + 2 * texts)) return wrong_entry;
        const stream_id its{id.ms + static_cast<std::uint64_t>(ms),
                            id.seq + static_cast<std::uint64_t>(seq)};
        if (its < id || (last && its <= *last) || its.is_zero()) return wrong_order;
        if ((flags & 1) != 0) {
            ++found_deleted;
        } else {
            ++found;
            last = its;
        }
    }
    if (found != live || found_deleted != deleted) {
        return "a block of a stream does not have the entries that it claims";
    }
    if (live == 0) return nullptr;
    stream_block* const made = make_block(memory, pack.size());
    made->first_entry = first_entry;
    std::memcpy(made->pack(), pack.data(), pack.size());
    EDDY_ASSERT(blocks_.insert(memory, {id, made}));
    size_ += static_cast<std::uint64_t>(live);
    last_id_ = *last;
    return nullptr;
}

const char* redis_stream::set_facts(const facts& known) noexcept {
    if (known.length != size_) return "a stream does not have the entries that it claims";
    if (known.last_id < last_id_) return "a stream's last ID is before its last entry";
    last_id_ = known.last_id;
    max_deleted_id_ = known.max_deleted_id;
    entries_added_ = known.entries_added.value_or(known.length);
    find_first_id();
    return nullptr;
}

void redis_stream::check() const {
    blocks_.check();
    groups_.check();
    std::uint64_t live = 0;
    std::size_t bytes = 0;
    for (auto at = blocks_.first(); at; at.forward()) {
        std::size_t count = 0;
        const std::string_view pack(at->of->pack(), at->of->bytes());
        EDDY_ASSERT(check_packed<listpack_walk>(pack, count) == nullptr);
        const char* counts = pack.data() + listpack::header_bytes;
        live += static_cast<std::uint64_t>(listpack::take_integer(counts));
        EDDY_ASSERT(at->of->bytes() <= at->of->capacity);
        bytes += sizeof(stream_block) + at->of->capacity;
    }
    EDDY_ASSERT(live == size_ && bytes == block_bytes_);
    std::uint64_t walked = 0;
    stream_id previous;
    walk entries(*this, {}, stream_id::max());
    while (entries.next()) {
        EDDY_ASSERT(entries.id() > previous && entries.id() <= last_id_);
        EDDY_ASSERT(walked != 0 || entries.id() == first_id_);
        previous = entries.id();
        ++walked;
    }
    EDDY_ASSERT(walked == size_ && (walked != 0 || first_id_.is_zero()));
    for (auto at = groups_.first(); at; at.forward()) {
        const stream_group& group = **at;
        group.pending.check();
        group.consumers.check();
        std::size_t owned = 0;
        for (auto each = group.consumers.first(); each; each.forward()) {
            (*each)->pending.check();
            owned += (*each)->pending.size();
            for (auto what = (*each)->pending.first(); what; what.forward()) {
                EDDY_ASSERT(what->of->owner == *each && group.find(what->id) == what->of);
            }
        }
        EDDY_ASSERT(owned == group.pending.size());
        group.deliveries.check();
        for (auto one = group.deliveries.first(); one; one.forward()) {
            const stream_pending* const known = group.find(one->id);
            EDDY_ASSERT(known != nullptr && known->delivered_ms == one->delivered_ms);
        }
        for (auto one = group.pending.first(); one && group.has_deliveries; one.forward()) {
            EDDY_ASSERT(!contains(one->id) ||
                        group.deliveries.find(stream_delivery{one->of->delivered_ms, one->id}));
        }
    }
}

}  // namespace eddy::cache
