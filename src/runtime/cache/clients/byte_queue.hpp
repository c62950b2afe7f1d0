// FIFO of bytes in blocks: the query buffer of a client whose execution waits, and the replies that
// its connection has not taken.
//
// Blocks, since one run of bytes would be copied as it grows, and would take twice its size then.
// The front block stays where it is until it is consumed: a write may be in flight from it.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

/// It has no cap of its own: check size() against a named limit before each append. One thread.
class byte_queue {
public:
    /// Bytes of a block that is filled by append(); one that is pushed has any size.
    static constexpr std::size_t block_size = 64 * 1024;

    /// Bytes of content.
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    /// Copies the bytes to the end.
    void append(std::string_view bytes) {
        while (!bytes.empty()) {
            // The front may be in use.
            if (blocks_.size() < first_ + 2 || blocks_.back().size() >= block_size) {
                blocks_.emplace_back();
                // Much has come already: more is likely to follow.
                if (size_ >= block_size) static_cast<void>(blocks_.back().reserve(block_size));
            }
            byte_buffer& last = blocks_.back();
            const std::string_view part = bytes.substr(0, block_size - last.size());
            last.append(part);
            size_ += part.size();
            bytes.remove_prefix(part.size());
        }
    }
    /// Adds a block without a copy.
    void push(byte_buffer&& block) {
        if (block.empty()) return;
        const std::size_t more = block.size();
        blocks_.push_back(std::move(block));
        size_ += more;
    }

    /// The first block. Not of an empty queue.
    const byte_buffer& front() const noexcept {
        EDDY_ASSERT(!empty());
        return blocks_[first_];
    }
    /// Drops bytes of the first block, which is returned once nothing of it is left.
    byte_buffer consume(std::size_t bytes) {
        EDDY_ASSERT(!empty());
        byte_buffer& block = blocks_[first_];
        block.consume(bytes);
        size_ -= bytes;
        if (!block.empty()) return {};
        return take_first();
    }
    /// Takes the first block out. Not of an empty queue.
    byte_buffer pop() {
        EDDY_ASSERT(!empty());
        size_ -= blocks_[first_].size();
        return take_first();
    }

private:
    byte_buffer take_first() {
        byte_buffer taken = std::move(blocks_[first_++]);
        // Amortised: at least as many blocks are dropped as are moved.
        if (first_ == blocks_.size() || first_ >= 64 + blocks_.size() / 2) {
            blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        if (blocks_.empty()) std::vector<byte_buffer>().swap(blocks_);
        return taken;
    }

    std::vector<byte_buffer> blocks_;
    std::size_t first_ = 0;  // those before it are gone
    std::size_t size_ = 0;
};

}  // namespace eddy::runtime::cache
