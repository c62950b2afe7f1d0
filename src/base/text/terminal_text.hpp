// Untrusted text made safe for terminals and logs: sequences that could drive a terminal, forge a
// line or reorder the text around them are replaced.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy {

/// The first character of a text.
struct text_unit {
    std::size_t size;  ///< its bytes; 1 for a byte that begins no UTF-8 character
    char32_t code;     ///< meaningless for such a byte
    /// False for C0 and C1 control characters (newline and tab, too), DEL, line separators,
    /// bidirectional controls, and bytes that are no UTF-8.
    bool is_printable;
};

/// `text` is not empty.
text_unit first_unit(std::string_view text) noexcept;

/// Appends each byte of `unit` as `\xNN`.
void append_hex_escaped(std::string& to, std::string_view unit);

/// The text with `?` for each unit that is not printable. At most the units that begin before
/// `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

/// printable() between quotes, with "..." where the limit cut it.
std::string in_quotes(std::string_view text, std::size_t limit);

/// The text with all that is not printable as `\xNN`, but for newlines and tabs.
std::string escaped_for_terminal(std::string_view text);

/// escaped_for_terminal() of a text that comes in pieces, which may end within a character.
class terminal_escaper {
public:
    /// All that `piece` completes; at most 3 bytes wait for the next one.
    std::string next(std::string_view piece);

private:
    std::string waiting_;
};

}  // namespace eddy
