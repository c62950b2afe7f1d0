// Pages of a peer's ring that the peer has written. The kernel allocates the other ones for the
// process that reads them, and counts them as its memory: a peer could publish bytes that it never
// wrote, up to 1 GiB.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include <cstddef>
#include <cstdint>

namespace eddy::shm {

/// Check of what is published in the first lap around a large ring; afterwards all pages exist. A
/// small ring is not checked, since that would take a descriptor for each connection, and the own
/// ring costs as much. One thread.
class written_pages {
public:
    /// Largest ring without a check.
    static constexpr std::size_t small_ring = 256 * 1024;

    /// Checks nothing.
    written_pages() noexcept = default;
    /// `file` is the peer's memory file, `begin` its first position.
    written_pages(unique_fd file, std::uint64_t begin, std::size_t ring_size) noexcept;

    /// Positions up to this one need no check.
    std::uint64_t known() const noexcept { return known_; }
    /// True if all bytes up to position `to` are in pages that were written, or if the kernel
    /// cannot say: cachestat(2), since Linux 6.5.
    bool reach(std::uint64_t to) noexcept;

private:
    bool exist(std::uint64_t offset, std::uint64_t size) noexcept;
    void end() noexcept;

    unique_fd file_;
    std::uint64_t known_ = UINT64_MAX;
    std::uint64_t lap_end_ = 0;
    std::size_t ring_size_ = 0;
};

}  // namespace eddy::shm
