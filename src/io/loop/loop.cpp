// A turn of a loop: posted work, ready coroutines, timers, then the io-backend.
#include <eddy/io/loop.hpp>

#include <eddy/base/random.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/scope.hpp>

#include "io/io_backend.hpp"
#include "io/loop/loop_gate.hpp"
#include "io/loop/loop_mutex.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy {
namespace {

thread_local loop* current_loop = nullptr;

/// `from` + `time`, or the end of time where that is later.
time_point later(time_point from, duration time) noexcept {
    return time < time_point::max() - from ? from + time : time_point::max();
}

result<std::unique_ptr<io_backend>> make_backend(const loop_options& options) {
    switch (options.kind) {
        case io_backend_kind::sim: return make_sim_backend(options);
        case io_backend_kind::epoll: return make_epoll_backend(options);
        case io_backend_kind::uring: return make_uring_backend(options);
        case io_backend_kind::automatic: break;
    }
    auto ring = make_uring_backend(options);
    return ring ? std::move(ring) : make_epoll_backend(options);
}

bool in_range(const loop_options& options) noexcept {
    const auto is_buffer_size = [](std::uint32_t size) {
        return size >= loop_options::min_buffer_size && size <= loop_options::max_buffer_size;
    };
    return is_buffer_size(options.buffer_size) && is_buffer_size(options.datagram_size) &&
           options.file_threads >= 1 && options.file_threads <= loop_options::max_file_threads &&
           (options.kind != io_backend_kind::sim || options.sim.socket_buffer > 0);
}

}  // namespace

std::string_view to_string(io_backend_kind kind) noexcept {
    switch (kind) {
        case io_backend_kind::automatic: return "auto";
        case io_backend_kind::uring: return "uring";
        case io_backend_kind::epoll: return "epoll";
        case io_backend_kind::sim: return "sim";
    }
    return "unknown";
}

result<io_backend_kind> parse_io_backend_kind(std::string_view text) noexcept {
    for (io_backend_kind kind : {io_backend_kind::automatic, io_backend_kind::uring,
                                 io_backend_kind::epoll, io_backend_kind::sim})
        if (text == to_string(kind)) return kind;
    return fail(errc::malformed);
}

/// Shuffles by its own generator, so that the simulator's other draws stay the same.
struct loop::shuffler {
    explicit shuffler(std::uint64_t seed) noexcept : random(seed ^ 0x73687566666c65) {}

    void shuffle(intrusive_list<operation>& batch) {
        order.clear();
        batch.for_each([this](operation& one) { order.push_back(&one); });
        for (std::size_t left = order.size(); left > 1; --left)
            std::swap(order[left - 1], order[random.below(left)]);
        while (!batch.empty()) batch.pop_front();
        for (operation* one : order) batch.push_back(*one);
    }

    random_generator random;
    std::vector<operation*> order;
};

loop::loop(const loop_options& options)
    : most_file_threads_(options.file_threads),
      most_file_queue_(options.max_file_queue),
      spin_(options.spin),
      // The simulator's time passes only in waits.
      polling_(options.polling && options.kind != io_backend_kind::sim),
      gate_(std::make_shared<detail::loop_gate>(*this, options.max_posted)) {
    EDDY_PRECONDITION(!current_loop,
                      "a second loop on one thread: a thread has one loop at a time");
    if (options.kind == io_backend_kind::sim && options.sim.shuffle)
        shuffler_ = std::make_unique<shuffler>(options.sim.seed);
    current_loop = this;
}

result<std::unique_ptr<loop>> loop::create(const loop_options& wanted) {
    if (!in_range(wanted)) return fail_errno(EINVAL);
    loop_options options = wanted;
    for (std::uint32_t* count : {&options.buffer_count, &options.datagram_count})
        *count = std::clamp(*count, 1u, loop_options::max_buffer_count);
    options.max_spare_buffers = std::max(options.max_spare_buffers, 1u);
    auto io_backend = make_backend(options);
    if (!io_backend) return fail(io_backend.error());
    std::unique_ptr<loop> made(new loop(options));
    made->io_backend_ = std::move(*io_backend);
    return made;
}

loop::~loop() {
    {
        scope late;
        late.cancel();
        posted_tasks_ = &late;
        gate_->close();
        gate_->wait_until_left();
        // Accepted work runs, even now. It can no longer post to this loop, but other threads may
        // still end its waits.
        run_posted();
        run_while_any(late);
        posted_tasks_ = nullptr;
    }
    file_threads_.reset();
    gate_->wait_until_left();
    // Drivers whose handles are gone may still await their last completions, which end operations
    // that are already out of the ready list: the io-backend drains them while the loop exists.
    io_backend_.reset();
    EDDY_ASSERT(ready_.empty() && !mutex_);
    current_loop = nullptr;
}

std::unique_ptr<loop> detail::make_loop(const loop_options& options) {
    auto made = loop::create(options);
    if (!made) throw std::system_error(made.error(), "no event loop");
    return std::move(*made);
}

loop& loop::current() noexcept {
    EDDY_PRECONDITION(
        current_loop,
        "no loop on this thread: loop::create() has to come first, on the same thread");
    return *current_loop;
}

loop* loop::of_this_thread() noexcept { return current_loop; }

io_backend_kind loop::kind() const noexcept { return io_backend_->kind(); }

void loop::run_until_done(task<void> root) {
    EDDY_PRECONDITION(!posted_tasks_, "run() of a loop that runs already: await the task instead");
    now_is_known_ = false;
    scope top;
    scope posted;
    posted_tasks_ = &posted;
    top.spawn(std::move(root));
    run_while_any(top);
    posted.cancel();
    run_while_any(posted);
    posted_tasks_ = nullptr;
    top.rethrow_failure();
}

void loop::run_while_any(const scope& tasks) {
    while (tasks.children() > 0) {
        run_posted();
        run_ready();
        if (tasks.children() == 0) return;
        time_point until = time_point::max();
        if (!ready_.empty() || posted_.load(std::memory_order_relaxed))
            until = time_point::min();
        else
            until = timers_.next();
        // Waits may take long, and completions at their end need the time after them.
        now_is_known_ = false;
        waits_until_ = until;
        poll(until);
        fire_timers();
    }
}

void loop::read_clock() const noexcept {
    now_ = io_backend_->now();
    now_is_known_ = true;
}

void loop::poll(time_point until) {
    if (until == time_point::min()) {
        io_backend_->poll(until);
        return;
    }
    if (spin_ > duration::zero()) {
        const time_point begin = io_backend_->now();
        if (spin(begin, std::min(until, later(begin, spin_)))) return;
    } else if (polling_ && poll_adaptively(until)) {
        return;
    }
    // Work begun under a loop_lock meanwhile may have used up its wake-up, too.
    if (mutex_ && (!ready_.empty() || io_backend_->has_begun())) until = time_point::min();
    if (mutex_) until = std::min(until, timers_.next());
    io_backend_->poll(until);
    working_since_ = io_backend_->woke_at();
}

/// Polls without sleeping, at least a few times, until completions arrive or `stop` has passed.
/// True when they arrived. Work begins then: `working_since_`.
bool loop::spin(time_point begin, time_point stop) {
    // Reading the clock costs as much as a poll that finds nothing, so it is read every few.
    constexpr int polls_between_clock_reads = 8;
    working_since_ = begin;
    do {
        for (int i = 0; i < polls_between_clock_reads; ++i)
            if (io_backend_->poll(time_point::min())) return true;
        working_since_ = io_backend_->now();
        // The wake-up for what was posted may be used up by now; waiting would be for ever.
        if (posted_.load(std::memory_order_relaxed)) return true;
    } while (working_since_ < stop);
    return false;
}

/// Adaptive polling: polls before a wait that would put the thread to sleep. Peers that send in
/// bursts are some microseconds away then, while sleeping and waking takes ten or twenty. Work
/// earns the time for it, so a loop is never busier by more than that share; and a loop that polls
/// in vain soon stops. True when completions arrived.
bool loop::poll_adaptively(time_point until) {
    constexpr int work_per_polling = 3;
    constexpr std::chrono::microseconds most_saved{16};
    constexpr std::uint32_t most_vain = 16;  // in a row that brought nothing
    constexpr std::uint32_t pause = 1024;    // waits without polling after that
    if (waits_without_polling_ > 0) {
        --waits_without_polling_;
        return false;
    }
    const time_point begin = io_backend_->now();
    const duration worked = begin - working_since_;
    polling_budget_ = std::min<duration>(polling_budget_ + worked / work_per_polling, most_saved);
    const bool came = spin(begin, std::min(until, begin + polling_budget_));
    polling_budget_ = std::max(polling_budget_ - (working_since_ - begin), duration::zero());
    if (came) {
        vain_polls_ = 0;
    } else if (++vain_polls_ == most_vain) {
        vain_polls_ = 0;
        waits_without_polling_ = pause;
    }
    return came;
}

void loop::run_ready() {
    // Only operations that are ready now: later ones wait until the io-backend was polled.
    intrusive_list<operation> batch;
    batch.splice_back(ready_);
    if (shuffler_) shuffler_->shuffle(batch);
    while (!batch.empty()) resume(batch.pop_front());
}

void loop::run_posted() noexcept {
    posted_work* newest = posted_.exchange(nullptr, std::memory_order_acquire);
    posted_work* oldest = nullptr;
    while (newest) {
        posted_work* next = newest->next_;
        newest->next_ = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        posted_work* next = oldest->next_;
        oldest->run();
        oldest = next;
    }
}

void loop::post(posted_work& work) noexcept {
    // The work may be what ends the loop, so the destructor waits until this call has left it.
    gate_->enter_existing();
    posted_work* head = posted_.load(std::memory_order_relaxed);
    do {
        work.next_ = head;
    } while (!posted_.compare_exchange_weak(head, &work, std::memory_order_release,
                                            std::memory_order_relaxed));
    // The thread that finds the list empty wakes the loop; the others need not.
    if (!head) io_backend_->wake();
    gate_->leave();
}

lockable_loop::lockable_loop(loop_lock_observer* observer)
    : home_(loop::current()), observer_(observer) {
    const bool is_first = home_.mutex_ == nullptr;
    if (is_first) {
        home_.mutex_ = std::make_unique<detail::loop_mutex>();
        // This is a turn of the loop.
        home_.mutex_->lock_for_loop();
        home_.io_backend_->set_mutex(home_.mutex_.get());
    }
    ++home_.mutex_->owners;
    if (observer_ != nullptr) home_.mutex_->add(*observer_);
}

lockable_loop::~lockable_loop() {
    EDDY_PRECONDITION(current_loop == &home_,
                      "a lockable_loop was destroyed on another thread than its loop's");
    if (observer_ != nullptr) home_.mutex_->remove(*observer_);
    if (--home_.mutex_->owners > 0) return;
    home_.io_backend_->set_mutex(nullptr);
    home_.mutex_->unlock_for_loop();
    home_.mutex_.reset();
}

loop_lock::loop_lock(lockable_loop* to) noexcept {
    if (to == nullptr || &to->home() == current_loop) return;
    home_ = &to->home();
    home_->mutex_->lock();
    const io_backend& there = *home_->io_backend_;
    if (!there.has_room_for_lock()) [[unlikely]]
        home_->mutex_->wait_for_loop([&there] { return there.has_room_for_lock(); });
    own_ = std::exchange(current_loop, home_);
    own_frame_memory_ = std::exchange(detail::current_frame_memory, nullptr);
}

void loop_lock::unlock() noexcept {
    const bool has_left_work = !home_->ready_.empty() || home_->io_backend_->has_begun() ||
                               home_->timers_.next() < home_->waits_until_;
    if (has_left_work && home_->mutex_->take_wake()) home_->io_backend_->wake();
    // Reading the clock here is no reason for the loop not to read it after its wait.
    home_->now_is_known_ = false;
    current_loop = own_;
    detail::current_frame_memory = own_frame_memory_;
    home_->mutex_->unlock();
}

shared_loop_lock::shared_loop_lock(lockable_loop* to) noexcept {
    if (to == nullptr || &to->home() == current_loop) return;
    home_ = &to->home();
    home_->mutex_->lock_shared();
}

shared_loop_lock::~shared_loop_lock() {
    if (home_ != nullptr) home_->mutex_->unlock_shared();
}

void loop::arm(timer& node, time_point when) noexcept { timers_.insert(node, when); }

void loop::disarm(timer& node) noexcept {
    if (node.armed()) timers_.remove(node);
}

void loop::fire_timers() noexcept {
    if (timers_.next() == time_point::max()) return;
    constexpr std::size_t most_a_turn = 1024;
    const time_point present = now();
    if (timers_.next() <= present) timers_.fire_due(present, most_a_turn);
}

result<listener> loop::listen(const endpoint& local, const listen_options& options) {
    return io_backend_->listen(local, options);
}

result<datagram> loop::bind_datagram(const endpoint& local, const datagram_options& options) {
    return io_backend_->open_datagram(local, {}, options);
}
result<datagram> loop::connect_datagram(const endpoint& peer, const datagram_options& options) {
    return io_backend_->open_datagram({}, peer, options);
}
result<datagram> loop::adopt_datagram(unique_fd socket) {
    return io_backend_->adopt_datagram(std::move(socket));
}

result<listener> loop::adopt_listener(unique_fd socket) {
    return io_backend_->adopt_listener(std::move(socket));
}

result<stream> loop::adopt(unique_fd from) { return io_backend_->adopt(std::move(from)); }

bool poll_operation::start() {
    io_backend_->start_poll(fd_, wanted_, *this);
    return false;
}

void poll_operation::on_cancel() noexcept { io_backend_->cancel_poll(*this); }

void poll_operation::on_completion(int result, unsigned) {
    if (result < 0)
        error_ = result == -ECANCELED ? make_error_code(errc::cancelled) : errno_code(-result);
    complete_now();
}

bool sleep_operation::start() {
    if (until_ <= loop_->now()) {
        complete_later();
        return false;
    }
    loop_->arm(*this, until_);
    return false;
}

void sleep_operation::on_cancel() noexcept {
    loop_->disarm(*this);
    error_ = errc::cancelled;
    complete_later();
}

void sleep_operation::fire() noexcept { complete_later(); }

bool yield_operation::start() {
    complete_later();
    return false;
}

bool connect_operation::start() { return io_backend_->start(*this); }

void connect_operation::on_cancel() noexcept { io_backend_->cancel(*this); }

void connect_operation::on_completion(int result, unsigned) {
    int error = -result;
    if (error == 0) {
        socklen_t size = sizeof(error);
        if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    }
    if (error == 0) {
        auto adopted = io_backend_->adopt(std::move(socket_));
        if (adopted)
            connected_ = std::move(*adopted);
        else
            error_ = adopted.error();
    } else {
        error_ = error == ECANCELED ? make_error_code(errc::cancelled) : errno_code(error);
    }
    complete_now();
}

}  // namespace eddy
