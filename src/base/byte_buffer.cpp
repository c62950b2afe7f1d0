// Growth and release of byte_buffer.
#include <eddy/base/byte_buffer.hpp>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace eddy {
namespace {
constexpr std::size_t smallest_block = 512;
// The allocator gives blocks of this size pages of their own, and moves those without a copy: while
// a large buffer grows its content is there but once.
constexpr std::size_t movable_block = 1024 * 1024;
}  // namespace

byte_buffer::~byte_buffer() { std::free(block_); }

void byte_buffer::release_if_empty() noexcept {
    if (!empty()) return;
    std::free(block_);
    block_ = begin_ = end_ = limit_ = nullptr;
}

void byte_buffer::grow(std::size_t size) {
    const std::size_t used = this->size();
    const std::size_t free_in_front = static_cast<std::size_t>(begin_ - block_);
    // Sliding down is only worth it when it frees at least as much as it moves: that keeps
    // appends amortised O(1).
    if (free_in_front >= used && free_in_front + available() >= size) {
        if (used > 0) std::memmove(block_, begin_, used);
        begin_ = block_;
        end_ = block_ + used;
        return;
    }
    const std::size_t wanted = std::max({smallest_block, capacity() * 2, used + size});
    if (capacity() >= movable_block && begin_ == block_) {
        char* const moved = static_cast<char*>(std::realloc(block_, wanted));
        if (!moved) throw std::bad_alloc();
        block_ = begin_ = moved;
        end_ = moved + used;
        limit_ = moved + wanted;
        return;
    }
    char* block = static_cast<char*>(std::malloc(wanted));
    if (!block) throw std::bad_alloc();
    if (used > 0) std::memcpy(block, begin_, used);
    std::free(block_);
    block_ = begin_ = block;
    end_ = block + used;
    limit_ = block + wanted;
}

}  // namespace eddy
