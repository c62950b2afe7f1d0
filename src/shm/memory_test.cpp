// Memory files: seals, and what is refused from a peer.
#include "shm/memory.hpp"

#include "io/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;

constexpr std::size_t ring = EDDY_SHM_MIN_RING;
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10;

struct sizes {
    std::size_t file = EDDY_SHM_HEADER_SIZE + ring;
    int seals = all_seals;
    unsigned flags = 0;
};

unique_fd file_with(const sizes& wanted) {
    unique_fd made(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | wanted.flags));
    if (!made) return made;
    EXPECT_EQ(::ftruncate(made.get(), static_cast<off_t>(wanted.file)), 0);
    EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, wanted.seals), 0);
    return made;
}

TEST(shm_memory, is_read_by_the_peer_and_written_by_nobody_else) {
    unique_fd file;
    const memory own = must(memory::create(ring, file));
    const memory peer = must(memory::open(file.get(), ring));
    std::memcpy(own.ring(), "bytes", 5);
    EXPECT_EQ(std::memcmp(peer.ring(), "bytes", 5), 0);
    *own.word64(EDDY_SHM_HEAD) = 7;
    EXPECT_EQ(*peer.word64(EDDY_SHM_HEAD), 7u);

    const std::size_t size = EDDY_SHM_HEADER_SIZE + ring;
    EXPECT_EQ(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), MAP_FAILED);
    EXPECT_EQ(::mprotect(peer.ring(), 4096, PROT_READ | PROT_WRITE), -1);
    EXPECT_LT(::pwrite(file.get(), "x", 1, 0), 0);
    EXPECT_EQ(::ftruncate(file.get(), 0), -1);
    EXPECT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
}

TEST(shm_memory, has_its_ring_twice_so_that_no_span_wraps) {
    unique_fd file;
    const memory own = must(memory::create(ring, file));
    const memory peer = must(memory::open(file.get(), ring));
    std::memcpy(own.ring() + ring - 2, "wrap", 4);
    EXPECT_EQ(std::memcmp(own.ring(), "ap", 2), 0);
    EXPECT_EQ(std::memcmp(peer.ring() + ring - 2, "wrap", 4), 0);
}

TEST(shm_memory, of_a_peer_must_be_sealed_and_of_its_size) {
    EXPECT_TRUE(memory::open(file_with({}).get(), ring));
    for (const int missing : {F_SEAL_SHRINK, F_SEAL_GROW, 0x10, F_SEAL_SEAL}) {
        const unique_fd file = file_with({.seals = all_seals & ~missing});
        EXPECT_EQ(error_of(memory::open(file.get(), ring)), errc::malformed) << missing;
    }
    const std::size_t right = EDDY_SHM_HEADER_SIZE + ring;
    for (const std::size_t wrong : {std::size_t{0}, right - 1, right + 1, 2 * right}) {
        const unique_fd file = file_with({.file = wrong});
        EXPECT_EQ(error_of(memory::open(file.get(), ring)), errc::malformed) << wrong;
    }
    for (const std::size_t wrong : {std::size_t{0}, ring - 1, ring / 2, ring + 1, SIZE_MAX})
        EXPECT_EQ(error_of(memory::open(file_with({}).get(), wrong)), errc::malformed) << wrong;
}

TEST(shm_memory, is_no_other_kind_of_file) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    const unique_fd first(pipe_ends[0]);
    const unique_fd second(pipe_ends[1]);
    EXPECT_EQ(error_of(memory::open(first.get(), ring)), errc::malformed);
    const testing::temporary_folder folder;
    const unique_fd on_disk(::open(folder.file("f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(on_disk.get(), EDDY_SHM_HEADER_SIZE + ring), 0);
    EXPECT_EQ(error_of(memory::open(on_disk.get(), ring)), errc::malformed);
    // Pages of such a file may be missing when they are touched, which would be a signal.
    if (const unique_fd huge = file_with({.file = 2 * 1024 * 1024, .flags = MFD_HUGETLB}))
        EXPECT_EQ(error_of(memory::open(huge.get(), 2 * 1024 * 1024 - EDDY_SHM_HEADER_SIZE)),
                  errc::malformed);
}

TEST(shm_memory, uses_pages_only_as_far_as_they_are_written) {
    unique_fd file;
    const memory own = must(memory::create(EDDY_SHM_DEFAULT_RING, file));
    const memory peer = must(memory::open(file.get(), EDDY_SHM_DEFAULT_RING));
    own.ring()[0] = std::byte{1};
    *own.word64(EDDY_SHM_HEAD) = *peer.word64(EDDY_SHM_TAIL);
    struct stat info{};
    ASSERT_EQ(::fstat(file.get(), &info), 0);
    EXPECT_LE(info.st_blocks * 512, 64 * 1024);
}

TEST(shm_memory, larger_than_the_process_may_make_files_is_refused_and_no_signal) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit files{};
        bool fits = ::getrlimit(RLIMIT_FSIZE, &files) == 0;
        files.rlim_cur = EDDY_SHM_HEADER_SIZE + ring;
        unique_fd file;
        fits = fits && ::setrlimit(RLIMIT_FSIZE, &files) == 0 && memory::create(ring, file);
        const auto larger = memory::create(2 * ring, file);
        ::_exit(fits && error_of(larger) == errno_code(EFBIG) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace eddy::shm
