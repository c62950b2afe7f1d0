// Growable byte buffer: consumed at its front, filled at its back.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace eddy {

/// Contiguous bytes: appended at the back, consumed at the front. Growth doubles, so an append is
/// amortised O(1). It has no cap of its own: code that fills it from a peer checks size() against a
/// named limit. Views into it end with the next call that adds bytes. One thread.
class byte_buffer {
public:
    byte_buffer() noexcept = default;
    /// `other` is empty afterwards.
    byte_buffer(byte_buffer&& other) noexcept { swap(other); }
    /// The previous memory is freed. `other` is empty afterwards.
    byte_buffer& operator=(byte_buffer&& other) noexcept {
        byte_buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~byte_buffer();

    /// Bytes of content.
    std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
    /// True if there is no content.
    bool empty() const noexcept { return begin_ == end_; }
    /// Bytes of the block, used or not; 0 while there is none.
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(limit_ - block_); }

    /// The content. The view ends with the next call that adds, drops or moves bytes.
    const_bytes bytes() const noexcept { return as_bytes(text()); }
    /// The same as text.
    std::string_view text() const noexcept { return {begin_, size()}; }

    /// Copies `text` to the end; it must not lie in this buffer. Throws std::bad_alloc, as
    /// everything that may grow does.
    void append(std::string_view text) {
        if (text.empty()) return;
        std::memcpy(reserve(text.size()), text.data(), text.size());
        end_ += text.size();
    }
    /// The same for bytes.
    void append(const_bytes bytes) { append(as_text(bytes)); }
    /// Adds one byte.
    void append(char byte) {
        *reserve(1) = byte;
        ++end_;
    }

    /// Makes room for at least `size` more bytes and returns where to write them; commit() then
    /// counts the bytes written.
    char* reserve(std::size_t size) {
        if (static_cast<std::size_t>(limit_ - end_) < size) grow(size);
        return end_;
    }
    /// Counts `size` bytes, written where reserve() pointed, as content; at most available().
    void commit(std::size_t size) noexcept {
        EDDY_PRECONDITION(size <= static_cast<std::size_t>(limit_ - end_),
                          "commit() of more bytes than reserve() has made room for");
        end_ += size;
    }
    /// The free bytes behind the content: what reserve() can give without growing.
    std::size_t available() const noexcept { return static_cast<std::size_t>(limit_ - end_); }

    /// Drops `size` bytes from the front. An emptied buffer starts again at its block's beginning.
    void consume(std::size_t size) noexcept {
        EDDY_PRECONDITION(size <= this->size(), "consume() of more bytes than a byte_buffer has");
        begin_ += size;
        if (begin_ == end_) begin_ = end_ = block_;
    }
    /// Keeps the first `size` bytes and drops the rest.
    void truncate(std::size_t size) noexcept {
        EDDY_PRECONDITION(size <= this->size(), "truncate() to more bytes than a byte_buffer has");
        end_ = begin_ + size;
    }
    /// Drops the content and keeps the block.
    void clear() noexcept { begin_ = end_ = block_; }

    /// Gives the block back when it is empty, so that an idle connection holds no memory.
    void release_if_empty() noexcept;

    /// Exchanges contents; views go with their bytes.
    void swap(byte_buffer& other) noexcept {
        std::swap(block_, other.block_);
        std::swap(begin_, other.begin_);
        std::swap(end_, other.end_);
        std::swap(limit_, other.limit_);
    }

private:
    void grow(std::size_t size);

    char* block_ = nullptr;
    char* begin_ = nullptr;
    char* end_ = nullptr;
    char* limit_ = nullptr;
};

}  // namespace eddy
