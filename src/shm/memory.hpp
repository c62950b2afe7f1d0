// Memory file of a shared-memory stream: created and sealed by its owner, verified and mapped by
// the peer. The ring is mapped twice, one behind the other, so that no span of it wraps.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/shm/layout.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace eddy::shm {

/// True for a valid size of a ring.
constexpr bool is_ring_size(std::uint64_t size) noexcept {
    return size >= EDDY_SHM_MIN_RING && size <= EDDY_SHM_MAX_RING && std::has_single_bit(size);
}

/// Limit of memories that this process maps at once, two for each stream. Each takes two of the
/// mappings that the kernel grants a process (vm.max_map_count), of which a quarter stays for other
/// uses. Any thread.
std::size_t most_memories() noexcept;
/// Another limit, for tests; SIZE_MAX for the usual one. Any thread.
void limit_memories(std::size_t most) noexcept;

/// A mapping. Its bytes stay valid until it dies, whatever the other process does: the file cannot
/// shrink. Any thread, one at a time.
class memory {
public:
    memory() noexcept = default;
    memory(memory&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), ring_size_(other.ring_size_) {}
    memory& operator=(memory&& other) noexcept {
        if (this != &other) {
            unmap();
            base_ = std::exchange(other.base_, nullptr);
            ring_size_ = other.ring_size_;
        }
        return *this;
    }
    ~memory() { unmap(); }

    /// New memory, writable here and nowhere else. `file` becomes its descriptor, to be sent to the
    /// peer; the mapping does not need it. Errors are memfd_create(2)'s and mmap(2)'s;
    /// ENOMEM at most_memories(), EFBIG beyond the process's limit of file sizes (RLIMIT_FSIZE).
    static result<memory> create(std::size_t ring_size, unique_fd& file) noexcept;
    /// The peer's memory, to read. errc::malformed for a file that is no sealed memory file of this
    /// size: it could shrink under a reader, or come from another file system. mmap(2)'s, and
    /// ENOMEM at most_memories().
    static result<memory> open(int file, std::size_t ring_size) noexcept;

    explicit operator bool() const noexcept { return base_ != nullptr; }
    std::size_t ring_size() const noexcept { return ring_size_; }
    /// The ring, twice.
    std::byte* ring() const noexcept { return base_ + EDDY_SHM_HEADER_SIZE; }
    /// A word of the header. Its owner stores, the peer loads.
    std::uint64_t* word64(std::size_t offset) const noexcept {
        return reinterpret_cast<std::uint64_t*>(base_ + offset);
    }
    std::uint32_t* word32(std::size_t offset) const noexcept {
        return reinterpret_cast<std::uint32_t*>(base_ + offset);
    }

private:
    static result<memory> map(int file, std::size_t ring_size, int protection) noexcept;
    void unmap() noexcept;

    std::byte* base_ = nullptr;
    std::size_t ring_size_ = 0;
};

}  // namespace eddy::shm
