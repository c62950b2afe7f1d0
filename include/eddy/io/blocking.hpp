// Thread pool for work that has no asynchronous form: file metadata, fsync, password hashing.
//
//     blocking_pool pool;
//     result<int> written = co_await run_blocking(pool, [&] { return write_snapshot(path); });
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <expected>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace eddy {

class blocking_pool;

/// One piece of work on its way through a pool.
class blocking_operation : public operation, public list_link<blocking_pool>, private posted_work {
public:
    explicit blocking_operation(blocking_pool& pool) noexcept : pool_(&pool) {}
    void set_error(std::error_code error) noexcept final { error_ = error; }

protected:
    ~blocking_operation() = default;
    std::error_code error_;

private:
    friend class blocking_pool;
    /// Does the work, on a thread of the pool.
    virtual void execute() noexcept = 0;

    bool start() final;
    void on_cancel() noexcept final;
    void run() noexcept final { complete_later(); }

    blocking_pool* pool_;
    loop* home_ = nullptr;
};

/// Limits of a blocking_pool.
struct blocking_options {
    /// At most so many threads. They start when work waits and no thread is free, and stay.
    std::size_t max_threads = 4;
    /// At most so many pieces of work wait while all threads are busy; one more fails with
    /// errc::limit_reached. SIZE_MAX for no limit.
    std::size_t max_queue = 1024;
};

/// A bounded pool of threads, shared by any number of loops. It must outlive every wait for its
/// work. Its threads take no signals.
class blocking_pool {
public:
    /// Starts no thread yet.
    explicit blocking_pool(const blocking_options& options = {});
    /// Ends the threads; no work may be left.
    ~blocking_pool();
    blocking_pool(const blocking_pool&) = delete;
    blocking_pool& operator=(const blocking_pool&) = delete;

    /// Threads started so far. Any thread.
    std::size_t threads() const;

private:
    friend class blocking_operation;
    std::error_code submit(blocking_operation& work);
    bool withdraw(blocking_operation& work);
    void serve();

    const blocking_options options_;
    mutable std::mutex mutex_;
    std::condition_variable work_ready_;
    intrusive_list<blocking_operation, blocking_pool> queue_;
    std::size_t in_progress_ = 0;  // waiting or running
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

namespace detail {

/// The result of an awaited callable: result<T> for a T, and the same for one that returns
/// result<T>.
template <class T>
struct blocking_result {
    using type = result<T>;
};
template <class T>
struct blocking_result<std::expected<T, std::error_code>> {
    using type = result<T>;
};

template <class Work>
class blocking_call final : public blocking_operation {
    using value = std::invoke_result_t<Work&>;
    using outcome = typename blocking_result<value>::type;

public:
    blocking_call(blocking_pool& pool, Work work)
        : blocking_operation(pool), work_(std::move(work)) {}

    outcome take_result() {
        if (failure_) std::rethrow_exception(failure_);
        if (error_) return fail(error_);
        return std::move(*outcome_);
    }

private:
    void execute() noexcept override {
        try {
            if constexpr (std::is_void_v<value>) {
                work_();
                outcome_.emplace();
            } else {
                outcome_.emplace(work_());
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    Work work_;
    std::optional<outcome> outcome_;
    std::exception_ptr failure_;
};

}  // namespace detail

/// Awaits `work()`, run on a thread of `pool`. Yields a result<T> of its value; a result<T> that it
/// returns is yielded as it is. Its exception is thrown from the co_await. Fails with
/// errc::limit_reached when the queue is full, and with errc::cancelled when it was cancelled
/// before a thread took it. Work that runs is awaited even so, because it may refer to the caller's
/// frame, and its result is kept.
template <class Work>
auto run_blocking(blocking_pool& pool, Work work) {
    return awaiting<detail::blocking_call<Work>>(pool, std::move(work));
}

}  // namespace eddy
