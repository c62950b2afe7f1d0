// Shared counts of the workers of a stream daemon.
#include "runtime/stream/worker_share.hpp"

#include <eddy/base/assert.hpp>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// A worker is ahead by more streams than this and an eighth of the average: below, an exact
/// balance is worth no pause.
constexpr std::uint64_t slack = 16;

/// Bytes of the processor's cache line: workers write their counters without slowing the others.
constexpr std::size_t cache_line = 64;

/// Bytes of a page on most machines. On others a worker's users are cleared one by one.
constexpr std::size_t page = 4096;

}  // namespace

struct worker_board::counts {
    struct alignas(cache_line) slot {
        std::atomic<std::uint32_t> streams{0};
        std::atomic<std::uint32_t> is_taken{0};
    };
    /// Its pages are there once they are used, of workers that there are.
    struct alignas(page) user_slot {
        user_table users;
    };
    std::atomic<std::uint64_t> peak{0};
    std::array<slot, max_workers> slots{};
    std::array<user_slot, max_workers> users{};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "other processes see them");

worker_board::worker_board(unique_fd memory, counts* mapped) noexcept
    : memory_(std::move(memory)), counts_(mapped) {}

worker_board::~worker_board() { ::munmap(counts_, sizeof(counts)); }

result<std::shared_ptr<worker_board>> worker_board::map(unique_fd memory) {
    void* const mapped =
        ::mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) return fail_errno();
    // A new file is zeros, which is what the counters begin with.
    return std::shared_ptr<worker_board>(
        new worker_board(std::move(memory), static_cast<counts*>(mapped)));
}

result<std::shared_ptr<worker_board>> worker_board::make() {
    unique_fd memory(::memfd_create("eddy-workers", MFD_CLOEXEC));
    if (!memory || ::ftruncate(memory.get(), sizeof(counts)) < 0) return fail_errno();
    return map(std::move(memory));
}

result<std::shared_ptr<worker_board>> worker_board::open(unique_fd from) {
    struct stat info{};
    if (::fstat(from.get(), &info) < 0) return fail_errno();
    if (info.st_size != static_cast<off_t>(sizeof(counts))) return fail_errno(EINVAL);
    return map(std::move(from));
}

std::uint64_t worker_board::streams() const noexcept {
    std::uint64_t sum = 0;
    for (const counts::slot& each : counts_->slots) sum += each.streams.load();
    return sum;
}

std::uint64_t worker_board::peak_streams() const noexcept { return counts_->peak.load(); }

std::uint32_t worker_board::streams_of(std::size_t number) const noexcept {
    EDDY_ASSERT(number < max_workers);
    return counts_->slots[number].streams.load();
}

std::uint32_t worker_board::clear(std::size_t number) noexcept {
    EDDY_ASSERT(number < max_workers);
    counts_->slots[number].is_taken.store(0);
    counts::user_slot& its = counts_->users[number];
    if (::madvise(&its, sizeof(its), MADV_REMOVE) < 0) its.users.clear();
    return counts_->slots[number].streams.exchange(0);
}

worker_share::worker_share(std::shared_ptr<worker_board> of, std::size_t number) noexcept
    : board_(std::move(of)), number_(number) {
    board_->clear(number_);
    board_->counts_->slots[number_].is_taken.store(1);
}

worker_share::~worker_share() { board_->clear(number_); }

bool worker_share::take(std::uint64_t limit) noexcept {
    worker_board::counts& all = *board_->counts_;
    // Its own stream is there for the others before it adds them up, so that of two workers at the
    // limit at least one sees both.
    all.slots[number_].streams.store(streams_ + 1);
    const std::uint64_t sum = board_->streams();
    if (sum > limit) {
        all.slots[number_].streams.store(streams_);
        return false;
    }
    ++streams_;
    std::uint64_t peak = all.peak.load();
    while (sum > peak && !all.peak.compare_exchange_weak(peak, sum)) {
    }
    return true;
}

void worker_share::give_back() noexcept {
    EDDY_ASSERT(streams_ > 0);
    board_->counts_->slots[number_].streams.store(--streams_);
}

void worker_share::give_all_back() noexcept {
    streams_ = 0;
    board_->counts_->slots[number_].streams.store(0);
}

bool worker_share::is_ahead() const noexcept {
    std::uint64_t workers = 0;
    std::uint64_t sum = 0;
    for (const worker_board::counts::slot& each : board_->counts_->slots) {
        if (each.is_taken.load(std::memory_order_relaxed) == 0) continue;
        ++workers;
        sum += each.streams.load(std::memory_order_relaxed);
    }
    if (workers < 2) return false;
    const std::uint64_t average = sum / workers;
    return streams_ > average + average / 8 + slack;
}

user_table::entry* worker_share::add_user(std::uint64_t hash) noexcept {
    return board_->counts_->users[number_].users.add(hash);
}

user_count worker_share::others_of(std::uint64_t hash, std::uint32_t minute) const noexcept {
    const worker_board::counts& all = *board_->counts_;
    user_count sum;
    for (std::size_t i = 0; i < max_workers; ++i) {
        if (i == number_ || all.slots[i].is_taken.load() == 0) continue;
        const user_count its = all.users[i].users.of(hash, minute);
        sum.streams += its.streams;
        sum.events += its.events;
    }
    return sum;
}

}  // namespace eddy::runtime::stream
