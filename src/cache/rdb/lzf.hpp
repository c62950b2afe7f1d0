// LZF, the compression of long strings in RDB files.
#pragma once

#include <cstddef>
#include <string_view>

namespace eddy::cache::rdb {

/// Three bytes stand for 264 at most: a larger promise is a lie.
inline constexpr std::size_t max_lzf_ratio = 88;

/// Writes exactly `size` bytes to `to`. False when the packed bytes, which are untrusted, do not
/// expand to exactly that many; the content of `to` is undefined then.
bool expand_lzf(std::string_view packed, char* to, std::size_t size) noexcept;

}  // namespace eddy::cache::rdb
