// Large argument of a command, received straight into a block that a string can keep as its value.
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
    /// Bytes that may be received at once: more would keep others waiting.
    static constexpr std::size_t most_at_once = 256U << 10;

    /// Of `size` bytes, of which the first ones are there already; they may include the first of
    /// the two bytes behind a bulk string. `offset` is where it belongs in its command's bytes.
    large_argument(std::size_t size, std::size_t offset, std::string_view begun);

    /// Where the next bytes go, up to the two behind it. Takes memory as bytes come, not as they
    /// were announced: twice as much as there are, and moved by the kernel, not copied, once it is
    /// much. std::bad_alloc.
    mutable_bytes room();
    void note_received(std::size_t bytes) noexcept { received_ += bytes; }
    bool is_whole() const noexcept { return received_ == size_ + ending; }

    /// Once it is whole.
    std::string_view text() const noexcept { return {block_->bytes(), size_}; }
    std::size_t offset() const noexcept { return offset_; }
    /// Bytes of memory that it takes, about.
    std::size_t held_bytes() const noexcept { return capacity_; }

    /// Whether the block is still owned here.
    explicit operator bool() const noexcept { return block_ != nullptr; }
    /// Releases the block, in malloc's memory, to the caller.
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
