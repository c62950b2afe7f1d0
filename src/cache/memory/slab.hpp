// Slab allocator for the cache's many small blocks.
//
// Chunks of 2 MiB come from the system and are cut into pages of 64 KiB; a page holds blocks of one
// size class. A page whose last block is released goes back to the pool and may serve another
// class, and a chunk whose last page comes back goes to the system. Sizes up to 512 bytes are
// rounded to 8 bytes, up to 4 KiB to an eighth of their power of two; larger blocks come from
// malloc. allocate() and release() are O(1): a free list, a counter, now and then a page.
//
// The room memory is the lowest of the cache: blocks and the layout of a key. Files in reading
// order:
//
//   slab.hpp             blocks, by size classes; a stock of blocks for each thread
//   entry.hpp            layout of a key, or of a member of a big value
//   key_hash.hpp         the keyed hash of keys
//   large_argument.hpp   arguments received straight into a value's block
//   slice_limit.hpp      time limit of a slice of background work
//
// It stands on base alone.
#pragma once

#include <eddy/base/assert.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace eddy::cache {

/// Blocks by size. The caller keeps each block's size and passes it to release(). Blocks are
/// aligned to 8 bytes, and to their size (128 at most) where that is a power of two. Running out of
/// memory aborts the process, as in Redis. One thread, or several at a time that each have a
/// `stock` in use, without any other use meanwhile.
class slab {
    struct free_block;

public:
    static constexpr std::size_t chunk_bytes = 2U << 20;
    static constexpr std::size_t page_bytes = 64U << 10;
    static constexpr std::size_t max_small = 4096;
    /// The dictionaries' segments, which have classes of their own.
    static constexpr std::size_t max_segment = 32U << 10;
    /// From this chunk on the system is asked for huge pages: with a million keys the translation
    /// of addresses costs as much as the caches' misses. The first chunks go without, so that an
    /// idle cache takes no more than what it touches.
    static constexpr std::size_t chunks_without_huge_pages = 1;

    /// Free small blocks of one thread, so that threads need not wait for each other.
    class stock {
    public:
        /// At most so many free blocks of one class; half of them are exchanged at a time.
        static constexpr unsigned most = 32;
        static constexpr unsigned at_a_time = most / 2;

        explicit stock(slab& of) noexcept : of_(of) { of.has_stocks_ = true; }
        stock(const stock&) = delete;
        stock& operator=(const stock&) = delete;
        /// Returns the blocks. No other use of the slab meanwhile.
        ~stock();

        /// Bytes that were allocated through it since merge_counters().
        std::size_t taken() const noexcept { return taken_; }
        /// Merges its free blocks into the slab's count. No other use of the slab meanwhile.
        void merge_counters() noexcept {
            of_.stocked_ += bytes_ - merged_;
            merged_ = bytes_;
            taken_ = 0;
        }

        /// While it lives, its thread allocates and releases through the stock.
        class use {
        public:
            explicit use(stock& by) noexcept {
                EDDY_ASSERT(in_use_ == nullptr);
                in_use_ = &by;
            }
            ~use() { in_use_ = nullptr; }
            use(const use&) = delete;
            use& operator=(const use&) = delete;
        };

    private:
        friend class slab;
        struct pile {
            free_block* first = nullptr;
            unsigned count = 0;
        };

        void* take(unsigned index);
        void put(free_block* block, unsigned index) noexcept;

        slab& of_;
        std::size_t bytes_ = 0;   // in its free blocks
        std::size_t merged_ = 0;  // part of them that the slab has counted
        std::size_t taken_ = 0;
        std::array<pile, 65> piles_;  // one for each fine class
    };

    slab() noexcept = default;
    slab(const slab&) = delete;
    slab& operator=(const slab&) = delete;
    /// Returns the chunks. Blocks above max_small must have been released before.
    ~slab();

    [[nodiscard]] void* allocate(std::size_t size) {
        if (is_in_shared_use()) [[unlikely]]
            return allocate_shared(size);
        return allocate_alone(size);
    }

    void release(void* block, std::size_t size) noexcept {
        if (is_in_shared_use()) [[unlikely]]
            return release_shared(block, size);
        release_alone(block, size);
    }

    /// Counts a block of `size` bytes from malloc, above max_segment, as if allocate() had returned
    /// it.
    void adopt(std::size_t size) noexcept;

    /// Returns to the system the whole pages between two offsets in a block of more than 1 MiB that
    /// is about to be released; their content is lost. The block still counts with all of its size.
    static void forget_bytes(void* block, std::size_t from, std::size_t to) noexcept;

    /// True while this thread has a stock in use: other threads may use the slab at the same time.
    bool is_in_shared_use() const noexcept { return has_stocks_ && in_use_ != nullptr; }

    /// Capacity of a block of `size` bytes.
    static std::size_t capacity(std::size_t size) noexcept {
        const unsigned index = class_of(size);
        return index == large_class ? (size + 15) / 16 * 16 : class_size(index);
    }

    /// True if blocks of the two sizes have the same capacity and are interchangeable.
    static bool same_class(std::size_t a, std::size_t b) noexcept {
        return capacity(a) == capacity(b);
    }

    /// Bytes in blocks that are in use, each counted with its whole capacity. Not while stocks are
    /// in use, nor before their merge_counters().
    std::size_t used_bytes() const noexcept { return used_ - stocked_; }
    /// Number of returns of memory to the system so far. One takes a microsecond and more, so
    /// callers that release many blocks in slices of time count them.
    std::uint64_t returns() const noexcept { return returns_; }
    /// Bytes taken from the system: the used ones, free blocks and free pages.
    std::size_t reserved_bytes() const noexcept { return chunk_count_ * chunk_bytes + large_; }

private:
    struct free_block {
        free_block* next;
    };
    struct chunk;
    // Description of one page, in its chunk's first bytes.
    struct page {
        free_block* free;  // released blocks
        char* fresh;       // the first block that was never used
        char* end;         // behind the last block that fits
        page* previous;    // in the list of pages with room, or of free pages
        page* next;
        std::uint32_t block_size;
        std::uint16_t live;  // blocks in use
        std::uint8_t index;  // the class
        bool listed;         // in its class's list of pages with room
    };

    static constexpr unsigned fine_classes = 65;                  // 0, 8, .. 512
    static constexpr unsigned small_classes = fine_classes + 24;  // .. 4096
    static constexpr unsigned class_count = small_classes + 3;    // 8, 16, 32 KiB
    static constexpr unsigned large_class = class_count;

    static unsigned class_of(std::size_t size) noexcept {
        if (size <= 512) return static_cast<unsigned>((size + 7) / 8);
        if (size <= max_small) {
            const auto last = static_cast<unsigned>(size - 1);
            const auto log = 31U - static_cast<unsigned>(__builtin_clz(last));  // 9 .. 11
            return fine_classes + (log - 9) * 8 + ((last >> (log - 3)) & 7);
        }
        if (size == max_small * 2) return small_classes;
        if (size == max_small * 4) return small_classes + 1;
        if (size == max_segment) return small_classes + 2;
        return large_class;
    }
    static std::size_t class_size(unsigned index) noexcept {
        if (index < fine_classes) return index * 8U;
        if (index >= small_classes) return max_small << (index - small_classes + 1);
        const unsigned step = index - fine_classes;
        return (9U + step % 8) << (6 + step / 8);
    }

    void* allocate_alone(std::size_t size) {
        const unsigned index = class_of(size);
        if (index == large_class) return allocate_large(size);
        page* const from = partial_[index];
        if (from == nullptr || from->free == nullptr) return allocate_slow(index);
        free_block* const block = from->free;
        unpoison(block, from->block_size);
        from->free = block->next;
        ++from->live;
        used_ += from->block_size;
        if (from->free == nullptr && from->fresh == from->end) unlink_full(index);
        return block;
    }
    void release_alone(void* block, std::size_t size) noexcept;
    void* allocate_shared(std::size_t size);
    void release_shared(void* block, std::size_t size) noexcept;

    static void unpoison(void* block, std::size_t size) noexcept;
    static void poison(void* block, std::size_t size) noexcept;

    void* allocate_slow(unsigned index);
    void* allocate_large(std::size_t size);
    void count_large(std::size_t size) noexcept;
    void release_page(page* p) noexcept;
    void unlink_full(unsigned index) noexcept;
    page* take_page(unsigned index);
    void add_chunk();

    std::array<page*, class_count> partial_{};  // pages with room, one list a class
    page* free_pages_ = nullptr;
    chunk* chunks_ = nullptr;
    std::size_t chunk_count_ = 0;
    std::size_t free_chunks_ = 0;  // chunks with no page in use
    std::size_t used_ = 0;
    std::size_t stocked_ = 0;  // of them, free blocks in stocks
    std::size_t large_ = 0;
    std::uint64_t returns_ = 0;
    bool has_stocks_ = false;
    alignas(64) std::mutex sharing_;  // taken by threads with a stock for all other state
    inline static thread_local constinit stock* in_use_ = nullptr;
};

}  // namespace eddy::cache
