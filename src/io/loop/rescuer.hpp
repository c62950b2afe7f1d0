// Rescuer of a blocked loop: a thread that frees it, so that a test of non-blocking calls fails
// instead of hanging.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace eddy::testing {

/// Calls `rescue` on a thread of its own after `patience`, unless it is destroyed before.
class rescuer {
public:
    explicit rescuer(std::function<void()> rescue)
        : thread_([this, rescue = std::move(rescue)] {
              std::unique_lock lock(mutex_);
              if (ended_.wait_for(lock, patience, [this] { return over_; })) return;
              called_ = true;
              rescue();
          }) {}
    ~rescuer() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        ended_.notify_one();
        thread_.join();
    }
    rescuer(const rescuer&) = delete;
    rescuer& operator=(const rescuer&) = delete;

    /// True if `rescue` was called.
    bool called() const noexcept { return called_; }

private:
    static constexpr std::chrono::seconds patience{15};

    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
    std::atomic<bool> called_ = false;
    std::thread thread_;
};

}  // namespace eddy::testing
