// Large argument of a command, received directly into a block that a string can keep as its value.
// Smaller arguments are parsed in the receive buffer, and copied.
#pragma once

#include <eddy/base/bytes.hpp>

#include "cache/memory/entry.hpp"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace eddy::cache {

/// Owner of the block until release(). One thread at a time.
class large_argument {
public:
    /// Arguments of so many bytes are large.
    static constexpr std::size_t least_size = 64U << 10;
    /// Bytes that are received at once, at most, so that other clients do not wait.
    static constexpr std::size_t most_at_once = 256U << 10;

    /// For `size` bytes, of which `begun` are received; they may include the first of the two bytes
    /// after a bulk string. `offset` is its position in its command's bytes.
    large_argument(std::size_t size, std::size_t offset, std::string_view begun);

    /// Buffer for the next bytes, up to the two after the argument. Grows with the received bytes,
    /// not by the announced size: to twice their number; large blocks are moved by the kernel, not
    /// copied. Throws std::bad_alloc.
    mutable_bytes room();
    void note_received(std::size_t bytes) noexcept { received_ += bytes; }
    bool is_whole() const noexcept { return received_ == size_ + ending; }

    /// Only when it is whole.
    std::string_view text() const noexcept { return {block_->bytes(), size_}; }
    std::size_t offset() const noexcept { return offset_; }
    /// Approximate bytes of memory that it takes.
    std::size_t held_bytes() const noexcept { return capacity_; }

    /// True while the block is owned here.
    explicit operator bool() const noexcept { return block_ != nullptr; }
    /// Releases the block, allocated by malloc, to the caller.
    text_block* release() noexcept { return block_.release(); }

private:
    static constexpr std::size_t ending = 2;  // CR, LF
    struct freeing {
        void operator()(text_block* block) const noexcept { std::free(block); }
    };

    void grow(std::size_t capacity);

    std::unique_ptr<text_block, freeing> block_;
    std::size_t capacity_ = 0;
    std::size_t size_;
    std::size_t received_;
    std::size_t offset_;
};

}  // namespace eddy::cache
