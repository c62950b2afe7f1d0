// Views of bytes, and the two casts between text and bytes.
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

namespace eddy {

/// Bytes to read, owned elsewhere. Like all views here: any thread, while no thread writes to the
/// bytes.
using const_bytes = std::span<const std::byte>;
/// Writable bytes, owned elsewhere.
using mutable_bytes = std::span<std::byte>;

/// The bytes of a text. The view lives as long as the text.
inline const_bytes as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// The text that the bytes hold, unchecked. The view lives as long as the bytes.
inline std::string_view as_text(const_bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A temporary that owns its bytes: a std::string or std::vector that dies at the end of the
/// statement, not a string_view, a span, or a literal. Functions that keep a view of their argument
/// until later refuse it.
template <class Bytes>
concept owning_temporary =
    !std::is_lvalue_reference_v<Bytes> && std::ranges::contiguous_range<Bytes> &&
    !std::ranges::borrowed_range<Bytes>;

}  // namespace eddy
