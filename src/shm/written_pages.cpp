// cachestat(2), which counts the pages of a file that exist, also the swapped ones. It
// takes no lock that the peer could hold, unlike lseek(2), and sees swapped pages, unlike
// mincore(2).
#include "shm/written_pages.hpp"

#include <eddy/shm/layout.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace eddy::shm {
namespace {

constexpr long cachestat_number = 451;  // on every architecture; older headers lack it

struct cachestat_range {
    std::uint64_t offset;
    std::uint64_t size;
};
struct cachestat_counts {
    std::uint64_t cached;
    std::uint64_t dirty;
    std::uint64_t written_back;
    std::uint64_t evicted;  // swapped out
    std::uint64_t recently_evicted;
};

std::uint64_t page_size() noexcept {
    static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

}  // namespace

written_pages::written_pages(unique_fd file, std::uint64_t begin, std::size_t ring_size) noexcept
    : file_(std::move(file)), known_(begin), lap_end_(begin + ring_size), ring_size_(ring_size) {
    if (!file_ || ring_size <= small_ring) end();
}

void written_pages::end() noexcept {
    file_.reset();
    known_ = UINT64_MAX;
}

bool written_pages::reach(std::uint64_t to) noexcept {
    if (to <= known_) return true;
    // A ring is whole pages, so positions and offsets have the same ends of pages.
    const std::uint64_t in_page = page_size() - 1;
    const std::uint64_t begin = known_ & ~in_page;
    const std::uint64_t end_of_last = (std::min(to, lap_end_) + in_page) & ~in_page;
    const std::uint64_t offset = begin & (ring_size_ - 1);
    const std::uint64_t size = end_of_last - begin;
    const std::uint64_t first = std::min<std::uint64_t>(size, ring_size_ - offset);
    if (!exist(offset, first) || !exist(0, size - first)) return false;
    known_ = end_of_last;
    if (known_ >= lap_end_) end();
    return true;
}

bool written_pages::exist(std::uint64_t offset, std::uint64_t size) noexcept {
    if (size == 0 || !file_) return true;
    const cachestat_range range{EDDY_SHM_HEADER_SIZE + offset, size};
    cachestat_counts counts{};
    if (::syscall(cachestat_number, file_.get(), &range, &counts, 0U) < 0) {
        lap_end_ = 0;  // so that this is the last check
        return true;
    }
    return counts.cached + counts.evicted >= size / page_size();
}

}  // namespace eddy::shm
