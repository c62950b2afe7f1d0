// Replication backlog: the bytes of a master's stream, kept once for all replicas: bytes that are
// not sent to some replica yet, and more for a partial resynchronisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

namespace eddy::cache {

/// Offsets count from the stream's begin, which may have been on another server. One thread.
class replication_feed {
public:
    static constexpr std::size_t block_bytes = 32 * 1024;
    using block = std::array<char, block_bytes>;

    /// Bytes in one block, and their owner.
    struct piece {
        std::shared_ptr<const block> kept;
        std::string_view text;
    };

    /// Offset of the first kept byte.
    std::uint64_t begin() const noexcept { return begin_; }
    /// Offset after the last byte.
    std::uint64_t end() const noexcept { return end_; }
    bool has(std::uint64_t offset) const noexcept { return offset >= begin_ && offset <= end_; }

    /// Drops all bytes; `at` is the offset of the next one.
    void restart(std::uint64_t at) noexcept;
    void append(std::string_view bytes);
    /// Drops the bytes before the offset.
    void forget_before(std::uint64_t offset) noexcept;
    /// The bytes from the offset to the end of their block; empty at the end. has(offset).
    piece at(std::uint64_t offset) const;

private:
    std::deque<std::shared_ptr<block>> blocks_;
    std::uint64_t base_ = 0;  // offset of the first block
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace eddy::cache
