// Spare buffers of a thread: connections have none while they are idle, and take one of these when
// bytes come, in place of one from the heap for each request.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include <cstddef>

namespace eddy::http {

/// Buffers that a thread keeps at most, and the most that one of them may hold.
inline constexpr std::size_t max_spare_buffers = 64;
inline constexpr std::size_t max_spare_capacity = 64 * 1024;

/// Gives `into` a spare block if it has none, and there is one.
void take_spare(byte_buffer& into) noexcept;

/// Keeps the block of `from`, which is empty, for other buffers, or frees it.
void give_spare(byte_buffer& from) noexcept;

/// Number of spare blocks of this thread.
std::size_t spare_buffers() noexcept;

}  // namespace eddy::http
