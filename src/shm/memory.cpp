// Memory files: creation, seals, mapping.
#include "shm/memory.hpp"

#include <eddy/base/assert.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

// Since Linux 5.1 and 6.3; older headers lack them.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace eddy::shm {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

constexpr std::size_t mappings_of_one = 2;
constexpr std::size_t usual_max_map_count = 65'530;

std::atomic<std::size_t> memories{0};
std::atomic<std::size_t> limit_of_tests{SIZE_MAX};

std::size_t max_map_count() noexcept {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen("/proc/sys/vm/max_map_count", "re"),
        [](std::FILE* open) { return std::fclose(open); });
    unsigned long count = 0;
    if (!file || std::fscanf(file.get(), "%lu", &count) != 1) return usual_max_map_count;
    return count;
}

result<unique_fd> create_file() noexcept {
    constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    unique_fd file(::memfd_create("eddy-shm", flags | MFD_NOEXEC_SEAL));
    // Kernels before 6.3 do not know the flag.
    if (!file && errno == EINVAL) file.reset(::memfd_create("eddy-shm", flags));
    if (!file) return fail_errno();
    return file;
}

bool may_have_files_of(off_t size) noexcept {
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) < 0) return true;
    return most.rlim_cur == RLIM_INFINITY || static_cast<rlim_t>(size) <= most.rlim_cur;
}

}  // namespace

std::size_t most_memories() noexcept {
    static const std::size_t usual = max_map_count() / 4 * 3 / mappings_of_one;
    return std::min(usual, limit_of_tests.load(std::memory_order_relaxed));
}

void limit_memories(std::size_t most) noexcept { limit_of_tests = most; }

result<memory> memory::create(std::size_t ring_size, unique_fd& file) noexcept {
    EDDY_ASSERT(is_ring_size(ring_size));
    const auto size = static_cast<off_t>(EDDY_SHM_HEADER_SIZE + ring_size);
    // ftruncate(2) beyond the limit sends SIGXFSZ, which ends the process.
    if (!may_have_files_of(size)) return fail_errno(EFBIG);
    auto created = create_file();
    if (!created) return fail(created.error());
    if (::ftruncate(created->get(), size) < 0) return fail_errno();
    auto mapped = map(created->get(), ring_size, PROT_READ | PROT_WRITE);
    if (!mapped) return fail(mapped.error());
    // After the own mapping, which the seal against writing would refuse.
    if (::fcntl(created->get(), F_ADD_SEALS, seals) < 0) return fail_errno();
    file = std::move(*created);
    return mapped;
}

result<memory> memory::open(int file, std::size_t ring_size) noexcept {
    if (!is_ring_size(ring_size)) return fail(errc::malformed);
    // Files of other systems could end, or block, under a reader: only memory files have seals, and
    // those of huge pages may have none when they are touched.
    const int found = ::fcntl(file, F_GET_SEALS);
    if (found < 0 || (found & seals) != seals) return fail(errc::malformed);
    struct statfs system{};
    if (::fstatfs(file, &system) < 0) return fail_errno();
    if (static_cast<unsigned long>(system.f_type) != TMPFS_MAGIC) return fail(errc::malformed);
    struct stat info{};
    if (::fstat(file, &info) < 0) return fail_errno();
    const auto size = static_cast<off_t>(EDDY_SHM_HEADER_SIZE + ring_size);
    if (!S_ISREG(info.st_mode) || info.st_size != size) return fail(errc::malformed);
    return map(file, ring_size, PROT_READ);
}

result<memory> memory::map(int file, std::size_t ring_size, int protection) noexcept {
    const std::size_t once = EDDY_SHM_HEADER_SIZE + ring_size;
    if (memories.fetch_add(1, std::memory_order_relaxed) >= most_memories()) {
        memories.fetch_sub(1, std::memory_order_relaxed);
        return fail_errno(ENOMEM);
    }
    // The room for both first, so that the second one has its place.
    void* const room =
        ::mmap(nullptr, once + ring_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        const int error = errno;
        memories.fetch_sub(1, std::memory_order_relaxed);
        return fail_errno(error);
    }
    memory made;
    made.base_ = static_cast<std::byte*>(room);
    made.ring_size_ = ring_size;
    if (::mmap(made.base_, once, protection, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        return fail_errno();
    if (::mmap(made.base_ + once, ring_size, protection, MAP_SHARED | MAP_FIXED, file,
               EDDY_SHM_HEADER_SIZE) == MAP_FAILED)
        return fail_errno();
    return made;
}

void memory::unmap() noexcept {
    if (!base_) return;
    const int failed = ::munmap(base_, EDDY_SHM_HEADER_SIZE + 2 * ring_size_);
    EDDY_ASSERT(failed == 0);
    memories.fetch_sub(1, std::memory_order_relaxed);
    base_ = nullptr;
}

}  // namespace eddy::shm
