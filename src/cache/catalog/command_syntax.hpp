// Notation of a command's arguments (command_row::syntax), and its parser: for the hints of
// redis-cli and for client generators (COMMAND DOCS).
//
// Arguments stand between spaces:
//     key (data: field value)...
//     timeout/int [mode@6.2.0: WRITE|ALL]
//
//   value            an argument; of type key or pattern if it is called so, else a string
//   value/type       of type int, double, time (of Unix), pattern, key or string
//   value=shown      its display text, if different
//   value#2          of this group of the command's keys, counted from 0; by default, keys
//                    are of one group after the other
//   value@1.2.3      since this version; value!1.2.3: deprecated since
//   TOKEN            a word as it stands; 'x' if it does not begin with a capital letter
//   TOKEN<name>      its name, if not the word in lower case
//   TOKEN value      a value behind a word
//   (name: a b c)    a block; (name: a|b|c): one of these; a word may stand before either
//   [a]              optional; [name: a b] is [(name: a b)]
//   a...             may come several times; [TOKEN a]...: each time with its word
//
// Versions stand last, before the three points; those of a group behind its name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// One argument, or a group of them. Its texts are views of the parsed notation.
struct command_argument {
    std::string name;
    std::string_view type;              ///< as in COMMAND DOCS: "string", "oneof"
    std::string_view display;           ///< what people see; empty: the name
    std::string_view token;             ///< the word before it, or that it is; empty: none
    std::string_view since;             ///< a version, or empty
    std::string_view deprecated_since;  ///< a version, or empty
    int key_group = -1;                 ///< an index into its command's key specifications, or -1
    bool optional = false;
    bool multiple = false;
    bool repeats_token = false;               ///< of a multiple argument: its token comes each time
    std::vector<command_argument> arguments;  ///< of a block or a choice, else none
};

/// At most so many nested blocks.
inline constexpr std::size_t max_argument_depth = 8;

/// The arguments in order; none when the text is malformed or nested too deep. The text must
/// outlive the result.
std::optional<std::vector<command_argument>> parse_arguments(std::string_view text);

}  // namespace eddy::cache
