// Bytes that are typed at a line editor: characters of UTF-8, and bytes that are none, each carried
// by a character of its own, since an editor of characters would drop it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli {

/// The characters that carry bytes: U+EF80 to U+EFFF, of Unicode's private use. One of these that
/// is typed itself is carried, too, as its bytes.
inline constexpr char32_t first_carrier = 0xef80;
inline constexpr char32_t last_carrier = 0xefff;

/// Characters of a text that comes byte by byte.
class typed_bytes {
public:
    void add(char byte) { bytes_ += byte; }
    /// The next character; none until there are more bytes.
    std::optional<char32_t> take();

private:
    std::string bytes_;      // at most those of one character
    std::size_t whole_ = 0;  // bytes in front that are carried one by one
};

/// The text with its bytes that are no UTF-8 carried.
std::string carry_bytes(std::string_view text);
/// The same backwards.
std::string uncarry_bytes(std::string_view text);

}  // namespace eddy::cli
