// Joiner of characters that a provider cuts between two pieces of an answer: halves of a surrogate
// pair, such as "\ud83d" in one chunk's JSON and "\ude00" in the next one's, and bytes of one
// character in UTF-8.
//
// A JSON parser takes neither. So each half is marked before the text is parsed, by a character
// that the text does not have, and joined with its other half behind it. What has no other half
// becomes U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {

/// A JSON text in UTF-8, for a parser.
struct marked_text {
    std::string text;        ///< empty for a text that needs no change
    bool has_marks = false;  ///< else the halves in it are U+FFFD already
};

/// Replaces lone surrogates and bytes that are no UTF-8 by marks, or by U+FFFD in a text that has
/// the characters of the marks itself (of U+10F000 to U+10FFFF, for private use).
marked_text mark_halves(std::string_view json);

/// Replaces each byte that is no UTF-8 by U+FFFD.
std::string valid_utf8(std::string_view text);

/// One stream. Holds at most max_halves halves, of at most 12 bytes each, and their names, of at
/// most max_name bytes each: about 20 KiB.
class piece_joiner {
public:
    /// Pieces that may end within a character at a time, such as one for each choice.
    static constexpr std::size_t max_halves = 64;
    /// Bytes of a text's name.
    static constexpr std::size_t max_name = 256;

    /// The next piece of the text `name`, from a text with marks or without: with the first half
    /// that the piece before ended with, and without the one that it ends with itself. At
    /// max_halves, and for a name above max_name, that becomes U+FFFD.
    std::string join(std::string_view name, std::string_view piece, bool has_marks);
    /// True while any text ends within a character so far.
    bool has_halves() const noexcept { return !halves_.empty(); }
    /// Takes the half of that text, which has ended; true if there was one.
    bool take_half(std::string_view name) { return !take(name).empty(); }

private:
    std::string take(std::string_view name);

    std::vector<std::pair<std::string, std::string>> halves_;  // by the text's name, as marks
};

/// The piece with U+FFFD for each mark.
std::string without_marks(std::string_view piece);

}  // namespace eddy::runtime::stream
