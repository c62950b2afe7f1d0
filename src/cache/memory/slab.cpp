// Chunks, pages and the slow halves of allocate() and release().
#include "cache/memory/slab.hpp"

#include <eddy/base/assert.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define EDDY_SLAB_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EDDY_SLAB_POISONS 1
#endif
#endif
#ifdef EDDY_SLAB_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace eddy::cache {
namespace {

constexpr std::size_t pages_in_chunk = slab::chunk_bytes / slab::page_bytes;
constexpr std::size_t chunk_head_bytes = 4096;
// Free pages of a chunk that keep their memory. The memory of further ones is returned to the
// system, which costs some microseconds for a page of a thousand blocks: otherwise, when all values
// change their size class, by EXPIRE for example, a third of the memory would remain in free pages.
constexpr std::size_t kept_free_pages = 2;
// No block is of this class: its list holds the free pages without memory.
constexpr unsigned bare_pages = 0;
// Assumed overhead of a malloc block, for the count of used bytes.
constexpr std::size_t malloc_overhead = 16;

[[noreturn]] void out_of_memory(std::size_t size) noexcept {
    std::fprintf(stderr, "eddy: the cache could not get %zu bytes of memory from the system\n",
                 size);
    std::abort();
}

void* map_chunk() noexcept {
    // Twice the size, of which the aligned half is kept.
    constexpr std::size_t size = slab::chunk_bytes;
    void* const mapped = ::mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) out_of_memory(size);
    char* const begin = static_cast<char*>(mapped);
    const std::size_t before = (size - reinterpret_cast<std::uintptr_t>(begin) % size) % size;
    if (before > 0) ::munmap(begin, before);
    if (before < size) ::munmap(begin + before + size, size - before);
    return begin + before;
}

}  // namespace

struct slab::chunk {
    chunk* previous;
    chunk* next;
    std::size_t pages_in_use;
    std::size_t pages_kept;      // free ones that have memory
    std::size_t pages_returned;  // free ones whose memory went back
    bool huge;                   // the system was asked for huge pages
    page pages[pages_in_chunk];

    static chunk* of(const void* inside) noexcept {
        return reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(inside) &
                                        ~(chunk_bytes - 1));
    }
    std::size_t number_of(const void* inside) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(inside) -
                                        reinterpret_cast<const char*>(this)) /
               page_bytes;
    }
    char* begin_of(const page* p) noexcept {
        const auto number = static_cast<std::size_t>(p - pages);
        return reinterpret_cast<char*>(this) + number * page_bytes + head_of(p);
    }
    std::size_t head_of(const page* p) const noexcept { return p == pages ? chunk_head_bytes : 0; }

    // Only for a free page.
    static bool has_memory(const page* p) noexcept { return p->block_size != 0; }
    static bool was_returned(const page* p) noexcept { return !has_memory(p) && p->end != nullptr; }

    // Switches huge pages off for the chunk: the kernel would join the rest to one again, and fill
    // it up.
    void return_memory(page* p) noexcept {
        if (pages_returned++ == 0 && huge)
            static_cast<void>(::madvise(this, chunk_bytes, MADV_NOHUGEPAGE));
        char* const begin = begin_of(p);
        unpoison(begin, page_bytes - head_of(p));
        static_cast<void>(::madvise(begin, page_bytes - head_of(p), MADV_DONTNEED));
        poison(begin, page_bytes - head_of(p));
        p->block_size = 0;
    }
    void note_taken(const page* p) noexcept {
        if (has_memory(p))
            --pages_kept;
        else if (was_returned(p) && --pages_returned == 0 && huge)
            static_cast<void>(::madvise(this, chunk_bytes, MADV_HUGEPAGE));
    }
};

slab::~slab() {
    EDDY_ASSERT(large_ == 0);
    while (chunks_ != nullptr) {
        chunk* const next = chunks_->next;
        unpoison(chunks_, chunk_bytes);
        ::munmap(chunks_, chunk_bytes);
        chunks_ = next;
    }
}

void slab::unpoison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t size) noexcept {
#ifdef EDDY_SLAB_POISONS
    __asan_unpoison_memory_region(block, size);
#endif
}

void slab::poison([[maybe_unused]] void* block, [[maybe_unused]] std::size_t size) noexcept {
#ifdef EDDY_SLAB_POISONS
    __asan_poison_memory_region(block, size);
#endif
}

void slab::forget_bytes(void* block, std::size_t from, std::size_t to) noexcept {
    // malloc's own data is before and after a block, never within.
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t begin = (at + from + page - 1) / page * page;
    const std::uintptr_t end = (at + to) / page * page;
    if (begin < end)
        static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
}

void* slab::allocate_large(std::size_t size) {
    const std::size_t room = capacity(size);
    void* const block = std::malloc(room);
    if (block == nullptr) out_of_memory(room);
    count_large(size);
    return block;
}

void slab::adopt(std::size_t size) noexcept {
    EDDY_ASSERT(size > max_segment);
    count_large(size);
}

void slab::count_large(std::size_t size) noexcept {
    used_ += capacity(size) + malloc_overhead;
    large_ += capacity(size) + malloc_overhead;
}

void* slab::allocate_slow(unsigned index) {
    EDDY_ASSERT(index > 0);
    page* const from = partial_[index] != nullptr ? partial_[index] : take_page(index);
    char* const block = from->fresh;
    unpoison(block, from->block_size);
    from->fresh += from->block_size;
    ++from->live;
    used_ += from->block_size;
    if (from->fresh == from->end) unlink_full(index);
    return block;
}

void slab::unlink_full(unsigned index) noexcept {
    page* const full = partial_[index];
    full->listed = false;
    partial_[index] = full->next;
    if (full->next != nullptr) full->next->previous = nullptr;
}

void* slab::allocate_shared(std::size_t size) {
    stock& mine = *in_use_;
    EDDY_ASSERT(&mine.of_ == this);
    const unsigned index = class_of(size);
    mine.taken_ += capacity(size);
    if (index < fine_classes) return mine.take(index);
    const std::lock_guard alone(sharing_);
    return allocate_alone(size);
}

void slab::release_shared(void* block, std::size_t size) noexcept {
    stock& mine = *in_use_;
    EDDY_ASSERT(&mine.of_ == this);
    const unsigned index = class_of(size);
    if (index < fine_classes) {
        poison(block, class_size(index));
        return mine.put(static_cast<free_block*>(block), index);
    }
    const std::lock_guard alone(sharing_);
    release_alone(block, size);
}

slab::stock::~stock() {
    for (unsigned index = 0; index < fine_classes; ++index) {
        while (piles_[index].first != nullptr) {
            of_.release_alone(take(index), class_size(index));
        }
    }
    merge_counters();
}

// The links are in the blocks themselves, as in a page's free list.
void* slab::stock::take(unsigned index) {
    static_assert(std::tuple_size_v<decltype(piles_)> == fine_classes);
    pile& its = piles_[index];
    const std::size_t size = class_size(index);
    if (its.first == nullptr) {
        const std::lock_guard alone(of_.sharing_);
        for (unsigned i = 0; i < at_a_time; ++i) {
            void* const block = of_.allocate_alone(size);
            poison(block, size);
            put(static_cast<free_block*>(block), index);
        }
    }
    free_block* const block = its.first;
    unpoison(block, size);
    its.first = block->next;
    --its.count;
    bytes_ -= size;
    return block;
}

void slab::stock::put(free_block* block, unsigned index) noexcept {
    pile& its = piles_[index];
    const std::size_t size = class_size(index);
    unpoison(block, size);
    block->next = its.first;
    poison(block, size);
    its.first = block;
    bytes_ += size;
    if (++its.count <= most) return;
    const std::lock_guard alone(of_.sharing_);
    for (unsigned i = 0; i < at_a_time; ++i) {
        void* const surplus = take(index);
        of_.release_alone(surplus, size);
    }
}

void slab::release_alone(void* block, std::size_t size) noexcept {
    const unsigned index = class_of(size);
    if (index == large_class) {
        used_ -= capacity(size) + malloc_overhead;
        large_ -= capacity(size) + malloc_overhead;
        std::free(block);
        return;
    }
    chunk* const home = chunk::of(block);
    page* const p = &home->pages[home->number_of(block)];
    EDDY_ASSERT(p->index == index && p->live > 0);
    auto* const freed = static_cast<free_block*>(block);
    freed->next = p->free;
    p->free = freed;
    --p->live;
    used_ -= p->block_size;
    poison(block, p->block_size);
    if (!p->listed) {
        p->listed = true;
        p->previous = nullptr;
        p->next = partial_[index];
        if (p->next != nullptr) p->next->previous = p;
        partial_[index] = p;
    }
    // The last page with room stays; otherwise an alternation of one block would take and release a
    // page each time.
    if (p->live == 0 && (p->previous != nullptr || p->next != nullptr)) release_page(p);
}

slab::page* slab::take_page(unsigned index) {
    if (free_pages_ == nullptr && partial_[bare_pages] == nullptr) add_chunk();
    page*& first = free_pages_ != nullptr ? free_pages_ : partial_[bare_pages];
    page* const p = first;
    first = p->next;
    if (first != nullptr) first->previous = nullptr;

    chunk* const home = chunk::of(p);
    if (home->pages_in_use++ == 0) --free_chunks_;
    home->note_taken(p);
    const std::size_t size = class_size(index);
    p->free = nullptr;
    p->fresh = home->begin_of(p);
    p->end = p->fresh + (page_bytes - home->head_of(p)) / size * size;
    p->block_size = static_cast<std::uint32_t>(size);
    p->live = 0;
    p->index = static_cast<std::uint8_t>(index);
    p->listed = true;
    p->previous = nullptr;
    p->next = nullptr;
    partial_[index] = p;
    return p;
}

void slab::release_page(page* p) noexcept {
    if (p->previous != nullptr) {
        p->previous->next = p->next;
    } else {
        partial_[p->index] = p->next;
    }
    if (p->next != nullptr) p->next->previous = p->previous;
    p->listed = false;
    chunk* const home = chunk::of(p);
    if (home->pages_kept < kept_free_pages) {
        ++home->pages_kept;
    } else {
        home->return_memory(p);
        ++returns_;
    }
    page*& first = chunk::has_memory(p) ? free_pages_ : partial_[bare_pages];
    p->previous = nullptr;
    p->next = first;
    if (p->next != nullptr) p->next->previous = p;
    first = p;

    if (--home->pages_in_use > 0) return;
    // One free chunk is kept in reserve.
    if (free_chunks_ == 0) {
        free_chunks_ = 1;
        return;
    }
    for (page& each : home->pages) {
        if (each.previous != nullptr) {
            each.previous->next = each.next;
        } else {
            (chunk::has_memory(&each) ? free_pages_ : partial_[bare_pages]) = each.next;
        }
        if (each.next != nullptr) each.next->previous = each.previous;
    }
    if (home->previous != nullptr) {
        home->previous->next = home->next;
    } else {
        chunks_ = home->next;
    }
    if (home->next != nullptr) home->next->previous = home->previous;
    --chunk_count_;
    unpoison(home, chunk_bytes);
    ::munmap(home, chunk_bytes);
    ++returns_;
}

void slab::add_chunk() {
    static_assert(sizeof(chunk) <= chunk_head_bytes);
    auto* const added = static_cast<chunk*>(map_chunk());
    const bool huge = chunk_count_ >= chunks_without_huge_pages;
    // Advice only: without it the cache works, slower.
    static_cast<void>(::madvise(added, chunk_bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
    added->previous = nullptr;
    added->next = chunks_;
    if (chunks_ != nullptr) chunks_->previous = added;
    chunks_ = added;
    added->pages_in_use = 0;
    added->pages_kept = 0;
    added->pages_returned = 0;
    added->huge = huge;
    ++chunk_count_;
    ++free_chunks_;
    for (std::size_t i = pages_in_chunk; i-- > 0;) {
        page* const p = &added->pages[i];
        *p = page{};
        p->next = partial_[bare_pages];
        if (p->next != nullptr) p->next->previous = p;
        partial_[bare_pages] = p;
        poison(added->begin_of(p), page_bytes - added->head_of(p));
    }
}

}  // namespace eddy::cache
