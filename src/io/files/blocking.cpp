// Threads of a blocking pool and their queue.
#include <eddy/io/blocking.hpp>

#include "io/posix/signals.hpp"

#include <system_error>

namespace eddy {

bool blocking_operation::start() {
    home_ = &loop::current();
    error_ = pool_->submit(*this);
    return static_cast<bool>(error_);
}

void blocking_operation::on_cancel() noexcept {
    if (!pool_->withdraw(*this)) return;  // it runs, and completes when it is done
    error_ = errc::cancelled;
    complete_later();
}

blocking_pool::blocking_pool(const blocking_options& options) : options_(options) {
    EDDY_PRECONDITION(options.max_threads > 0,
                      "a blocking_pool of no thread: max_threads is at least 1");
    threads_.reserve(options.max_threads);
}

blocking_pool::~blocking_pool() {
    {
        const std::lock_guard lock(mutex_);
        EDDY_PRECONDITION(
            in_progress_ == 0,
            "a blocking_pool was destroyed while work of it is awaited: await it first");
        stopping_ = true;
    }
    work_ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

std::size_t blocking_pool::threads() const {
    const std::lock_guard lock(mutex_);
    return threads_.size();
}

std::error_code blocking_pool::submit(blocking_operation& work) {
    const std::lock_guard lock(mutex_);
    if (in_progress_ >= options_.max_threads &&
        in_progress_ - options_.max_threads >= options_.max_queue)
        return errc::limit_reached;
    if (in_progress_ >= threads_.size() && threads_.size() < options_.max_threads) {
        try {
            const signals_blocked while_it_starts;
            threads_.emplace_back([this] { serve(); });
        } catch (const std::system_error& refused) {
            // The threads that there are will do.
            if (threads_.empty()) return refused.code();
        }
    }
    queue_.push_back(work);
    ++in_progress_;
    work_ready_.notify_one();
    return {};
}

bool blocking_pool::withdraw(blocking_operation& work) {
    list_link<blocking_pool>& link = work;
    const std::lock_guard lock(mutex_);
    if (!link.linked()) return false;
    link.unlink();
    --in_progress_;
    return true;
}

void blocking_pool::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_ready_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        blocking_operation& work = queue_.pop_front();
        lock.unlock();
        work.execute();
        lock.lock();
        --in_progress_;
        lock.unlock();
        // From here on the work belongs to its loop, which may end it at once.
        work.home_->post(work);
        lock.lock();
    }
}

}  // namespace eddy
