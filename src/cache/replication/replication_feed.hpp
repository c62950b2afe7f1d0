// Replication backlog: the bytes of a master's stream, kept once for all replicas: those that some
// replica has not been sent yet, and some more for a partial resynchronisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

namespace eddy::cache {

/// Offsets count the bytes since the stream's beginning, which may have been on another server. One
/// thread.
class replication_feed {
public:
    static constexpr std::size_t block_bytes = 32 * 1024;
    using block = std::array<char, block_bytes>;

    /// Bytes in one block, and what keeps them there.
    struct piece {
        std::shared_ptr<const block> kept;
        std::string_view text;
    };

    /// Of the first byte that is kept.
    std::uint64_t begin() const noexcept { return begin_; }
    /// Behind the last byte: all that there ever was.
    std::uint64_t end() const noexcept { return end_; }
    bool has(std::uint64_t offset) const noexcept { return offset >= begin_ && offset <= end_; }

    /// Nothing is kept, and the next byte is this one.
    void restart(std::uint64_t at) noexcept;
    void append(std::string_view bytes);
    /// Forgets what comes before the offset.
    void forget_before(std::uint64_t offset) noexcept;
    /// The bytes from the offset to the end of their block; empty at the end. has(offset).
    piece at(std::uint64_t offset) const;

private:
    std::deque<std::shared_ptr<block>> blocks_;
    std::uint64_t base_ = 0;  // of the first block
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace eddy::cache
