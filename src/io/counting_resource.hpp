// Memory resource that counts its blocks, for tests of with_frames().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory_resource>
#include <mutex>
#include <new>
#include <set>
#include <thread>

namespace eddy::testing {

/// Any thread. At its end all blocks must have been given back, each with its requested size.
class counting_resource final : public std::pmr::memory_resource {
public:
    counting_resource() = default;
    ~counting_resource() override { EXPECT_EQ(outstanding(), 0u) << "some frames never came back"; }
    counting_resource(const counting_resource&) = delete;
    counting_resource& operator=(const counting_resource&) = delete;

    /// Blocks allocated so far.
    std::size_t made() const { return locked(made_); }
    /// Blocks in use.
    std::size_t outstanding() const {
        const std::lock_guard hold(mutex_);
        return blocks_.size();
    }
    /// Bytes in use.
    std::size_t bytes() const { return locked(bytes_); }
    /// Most bytes in use at one time.
    std::size_t peak() const { return locked(peak_); }
    /// Threads that have given blocks back.
    std::set<std::thread::id> threads() const { return locked(threads_); }

    /// Fails after `blocks` more allocations.
    void fail_after(std::size_t blocks) {
        const std::lock_guard hold(mutex_);
        left_ = blocks;
    }
    /// Ends the failures.
    void recover() { fail_after(static_cast<std::size_t>(-1)); }

private:
    template <class T>
    T locked(const T& member) const {
        const std::lock_guard hold(mutex_);
        return member;
    }

    void* do_allocate(std::size_t size, std::size_t alignment) override {
        const std::lock_guard hold(mutex_);
        if (left_ == 0) throw std::bad_alloc();
        --left_;
        EXPECT_EQ(alignment, 16u);
        void* const block = ::operator new(size, std::align_val_t(alignment));
        blocks_[block] = size;
        ++made_;
        bytes_ += size;
        peak_ = std::max(peak_, bytes_);
        return block;
    }
    void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
        const std::lock_guard hold(mutex_);
        threads_.insert(std::this_thread::get_id());
        const auto known = blocks_.find(block);
        if (known == blocks_.end()) {
            ADD_FAILURE() << "a block of another one";
            return;
        }
        EXPECT_EQ(known->second, size);
        EXPECT_EQ(alignment, 16u);
        bytes_ -= known->second;
        blocks_.erase(known);
        ::operator delete(block, std::align_val_t(alignment));
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    mutable std::mutex mutex_;
    std::map<void*, std::size_t> blocks_;
    std::size_t made_ = 0;
    std::size_t bytes_ = 0;
    std::size_t peak_ = 0;
    std::size_t left_ = static_cast<std::size_t>(-1);
    std::set<std::thread::id> threads_;
};

}  // namespace eddy::testing
