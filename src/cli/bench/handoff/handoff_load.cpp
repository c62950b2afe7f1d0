// Load of handoffs: the processes of the load, and the one that starts them, shows the progress and
// merges their results.
#include "cli/bench/handoff/handoff_load.hpp"

#include "cli/bench/handoff/handoff_worker.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace eddy::cli::bench {
namespace {

using namespace std::chrono_literals;

/// Open files of a process that are no streams: its loop, sockets that are being handed over.
constexpr std::size_t spare_descriptors = 256;
/// From the last worker's being ready to the first stream, so that all see the time before it.
constexpr duration head_start = 20ms;
/// Period of the checks for workers that have ended.
constexpr duration poll_pause = 20ms;
/// Period over which the generator's CPU is taken to find its peak.
constexpr duration cpu_window = 500ms;

/// Memory that the workers share: the board, and a share for each.
class shared_memory {
public:
    explicit shared_memory(std::size_t workers)
        : size_(sizeof(handoff_board) + workers * sizeof(handoff_share)) {
        void* const made =
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED)
            give_up(fmt::format("cannot make shared memory: {}", std::strerror(errno)));
        board_ = new (made) handoff_board;
        auto* const first = static_cast<std::byte*>(made) + sizeof(handoff_board);
        shares_ = reinterpret_cast<handoff_share*>(first);
        for (std::size_t i = 0; i < workers; ++i) new (shares_ + i) handoff_share;
        static_assert(sizeof(handoff_board) % alignof(handoff_share) == 0);
    }
    ~shared_memory() { ::munmap(board_, size_); }
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;

    handoff_board& board() noexcept { return *board_; }
    handoff_share& share(std::size_t index) noexcept { return shares_[index]; }

private:
    std::size_t size_;
    handoff_board* board_;
    handoff_share* shares_;
};

/// The worker's process, from fork(2) to its end.
[[noreturn]] void run_child(const handoff_options& wanted, std::size_t index, std::size_t processes,
                            pid_t parent, shared_memory& memory) {
    // A worker must not outlive its parent, which reads its result.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(2);
    int status = 0;
    try {
        run_handoff_worker(wanted, index, processes, memory.board(), memory.share(index));
    } catch (const std::exception& error) {
        memory.share(index).counts.note(error.what());
        status = 1;
    }
    // The parent's buffers and handlers are not this process's.
    ::_exit(status);
}

/// Running workers; the destructor kills the ones that are left.
class worker_processes {
public:
    worker_processes() = default;
    ~worker_processes() {
        for (const pid_t each : running_) ::kill(each, SIGKILL);
        for (const pid_t each : running_) ::waitpid(each, nullptr, 0);
    }
    worker_processes(const worker_processes&) = delete;
    worker_processes& operator=(const worker_processes&) = delete;

    void start(const handoff_options& wanted, std::size_t processes, shared_memory& memory) {
        const pid_t parent = ::getpid();
        std::fflush(stdout);
        std::fflush(stderr);
        for (std::size_t i = 0; i < processes; ++i) {
            const pid_t child = ::fork();
            if (child < 0) give_up(fmt::format("cannot start a process: {}", std::strerror(errno)));
            if (child == 0) run_child(wanted, i, processes, parent, memory);
            running_.push_back(child);
            all_.push_back(child);
        }
    }

    /// Reaps workers that have ended; true once none is left. Gives up when one has failed.
    bool have_ended(shared_memory& memory) {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const auto at = std::find(running_.begin(), running_.end(), all_[i]);
            int status = 0;
            if (at == running_.end() || ::waitpid(all_[i], &status, WNOHANG) != all_[i]) continue;
            running_.erase(at);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
            if (WIFSIGNALED(status))
                give_up(
                    fmt::format("a process of the load was ended by signal {}", WTERMSIG(status)));
            give_up(memory.share(i).counts.first_fault.data());
        }
        return running_.empty();
    }

private:
    std::vector<pid_t> all_;
    std::vector<pid_t> running_;
};

/// Cores that so many single-threaded processes can keep busy.
double usable_cores(std::size_t processes) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return static_cast<double>(std::min<std::size_t>(static_cast<std::size_t>(cores), processes));
}

/// Share of the generator's CPU over time, of which the busiest window is kept.
class cpu_meter {
public:
    /// `used` is the CPU time so far.
    void sample(time_point now, duration used) {
        if (since_ == time_point()) {
            since_ = now;
            before_ = used;
        }
        if (now - since_ < cpu_window) return;
        peak_ = std::max(peak_, std::chrono::duration<double>(used - before_) /
                                    std::chrono::duration<double>(now - since_));
        since_ = now;
        before_ = used;
    }
    double peak() const noexcept { return peak_; }

private:
    time_point since_;
    duration before_{};
    double peak_ = 0;
};

std::string describe(const handoff_board& board, const handoff_options& wanted, time_point start) {
    const std::uint64_t failed = board.failed.load(std::memory_order_relaxed);
    return fmt::format("{} of {} streams started, {} under way{}, {:.0f} s",
                       board.started.load(std::memory_order_relaxed), wanted.connections,
                       board.live.load(std::memory_order_relaxed),
                       failed > 0 ? fmt::format(", {} failed", failed) : "",
                       std::chrono::duration<double>(steady::now() - start).count());
}

}  // namespace

std::uint64_t handoff_counts::failed() const noexcept {
    std::uint64_t sum = incomplete;
    for (const std::uint64_t each : faults) sum += each;
    return sum;
}

void handoff_counts::count(handoff_fault kind, std::string_view what) {
    ++faults[static_cast<std::size_t>(kind)];
    note(what);
}

void handoff_counts::note(std::string_view what) {
    if (first_fault[0] != '\0') return;
    const std::size_t size = std::min(what.size(), first_fault.size() - 1);
    std::memcpy(first_fault.data(), what.data(), size);
    first_fault[size] = '\0';
}

void handoff_counts::merge(const handoff_counts& other) {
    started += other.started;
    completed += other.completed;
    incomplete += other.incomplete;
    bytes += other.bytes;
    for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
    note(other.first_fault.data());
    cpu_seconds += other.cpu_seconds;
    if (other.socket != handoff::socket_kind::automatic) socket = other.socket;
    handoff.merge(other.handoff);
    first_byte.merge(other.first_byte);
    stream.merge(other.stream);
    drift.merge(other.drift);
    lateness.merge(other.lateness);
}

std::size_t processes_for(const handoff_options& wanted) {
    const std::size_t most =
        wanted.processes > 0 ? (wanted.connections - 1) / wanted.processes + 1 : streams_a_process;
    const std::size_t needed = std::min(most, wanted.connections) + spare_descriptors;
    const std::size_t allowed = raise_descriptor_limit(needed);
    if (wanted.processes > 0) {
        if (allowed < needed)
            give_up(
                fmt::format("{} streams in {} processes need {} open files each, and {} are "
                            "allowed (ulimit -n): raise --processes",
                            wanted.connections, wanted.processes, needed, allowed));
        return wanted.processes;
    }
    const std::size_t each =
        std::min(streams_a_process, allowed - std::min(allowed - 1, spare_descriptors));
    const std::size_t processes = (wanted.connections - 1) / each + 1;
    if (processes > process_limit)
        give_up(
            fmt::format("{} streams need {} processes with {} open files each, more than {}: "
                        "raise the limit (ulimit -n)",
                        wanted.connections, processes, allowed, process_limit));
    return processes;
}

handoff_result run_handoffs(const handoff_options& wanted, progress_line& progress) {
    handoff_result made;
    made.processes = processes_for(wanted);
    made.generator_cores = usable_cores(made.processes);
    const double server_before = process_cpu_seconds(wanted.server_pid);  // and that it is there
    const auto memory = std::make_unique<shared_memory>(made.processes);
    handoff_board& board = memory->board();
    worker_processes workers;
    workers.start(wanted, made.processes, *memory);
    while (board.ready.load(std::memory_order_acquire) < made.processes) {
        if (workers.have_ended(*memory)) give_up("the processes of the load ended early");
        std::this_thread::sleep_for(1ms);
    }
    const time_point start = steady::now() + head_start;
    board.start_ns.store(start.time_since_epoch().count(), std::memory_order_release);

    cpu_meter meter;
    while (!workers.have_ended(*memory)) {
        std::this_thread::sleep_for(poll_pause);
        duration used{};
        for (std::size_t i = 0; i < made.processes; ++i)
            used += duration(memory->share(i).cpu_ns.load(std::memory_order_relaxed));
        meter.sample(steady::now(), used);
        progress.show(describe(board, wanted, start));
    }
    made.server_cpu = process_cpu_seconds(wanted.server_pid) - server_before;
    for (std::size_t i = 0; i < made.processes; ++i) made.counts.merge(memory->share(i).counts);
    made.seconds = std::chrono::duration<double>(steady::now() - start).count();
    made.server_cpu /= made.seconds;
    made.generator_cpu = made.counts.cpu_seconds / made.seconds;
    made.generator_peak = std::max(meter.peak(), made.generator_cpu);
    made.peak_concurrent = static_cast<std::uint64_t>(board.peak.load(std::memory_order_relaxed));
    return made;
}

}  // namespace eddy::cli::bench
