// Growth of a large argument's block.
#include "cache/memory/large_argument.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace eddy::cache {

large_argument::large_argument(std::size_t size, std::size_t offset, std::string_view begun)
    : size_(size), received_(begun.size()), offset_(offset) {
    EDDY_ASSERT(size >= least_size && begun.size() < size + ending);
    grow(std::min(size_ + ending, std::max(least_size, begun.size())));
    std::memcpy(block_->bytes(), begun.data(), begun.size());
}

void large_argument::grow(std::size_t capacity) {
    void* const grown = std::realloc(block_.get(), sizeof(text_block) + capacity);
    if (grown == nullptr) throw std::bad_alloc();
    static_cast<void>(block_.release());
    block_.reset(new (grown) text_block{size_, capacity});
    capacity_ = capacity;
}

mutable_bytes large_argument::room() {
    if (received_ == capacity_) grow(std::min(size_ + ending, 2 * capacity_));
    const std::size_t room = std::min(capacity_ - received_, most_at_once);
    return {reinterpret_cast<std::byte*>(block_->bytes()) + received_, room};
}

}  // namespace eddy::cache
