// Views of bytes, and the two casts between text and bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace eddy {

using const_bytes = std::span<const std::byte>;
using mutable_bytes = std::span<std::byte>;

/// The bytes of a text. The view lives as long as the text.
inline const_bytes as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// The text that the bytes hold, unchecked. The view lives as long as the bytes.
inline std::string_view as_text(const_bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace eddy
