// Syntax of the commands' arguments, for the hints of redis-cli and for client generators (COMMAND
// DOCS). Each command has one line of text, which is parsed on request.
//
// A line is the name, then the command's attributes, then its arguments between spaces; that of a
// form ends with its summary:
//     hset key (data: field value)...
//     client|pause@3.0.0 timeout/int [mode@6.2.0: WRITE|ALL] -- Holds up what clients ask for.
// A longer one goes on in the next, which begins with a space then. Each has its line end.
//
//   name*            a system command (COMMAND DOCS: syscmd)
//   name@1.2.3       since this version
//   name!1.2.3       deprecated since this version
//   value            an argument; of type key or pattern if it is called so, else a string
//   value/type       of type int, double, time (of Unix), pattern, key or string
//   value=shown      its display text, if different
//   value#2          of this group of the command's keys, counted from 0; by default, keys
//                    are of one group after the other
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

/// One argument, or a group of them. Its texts point into the line that it was made of.
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
    bool repeats_token = false;               ///< of those that are multiple
    std::vector<command_argument> arguments;  ///< of a block or a choice, else none
};

/// A line that is not taken apart yet but for its beginning.
struct command_syntax {
    bool internal = false;
    std::string_view since;             ///< of forms; a command's own is in command_facts
    std::string_view deprecated_since;  ///< a version, or empty
    std::string_view arguments;         ///< for parse_arguments()
    std::string_view summary;           ///< of forms; a command's own is in command_facts
};

/// All lines, in order of the names. The first one begins behind a line end.
std::string_view command_syntax_text() noexcept;

/// By lower-case name: "set", "config|get". Some microseconds; nothing when there is no such line.
std::optional<command_syntax> find_command_syntax(std::string_view name) noexcept;

/// How deep blocks may lie within each other.
inline constexpr std::size_t max_argument_depth = 8;

/// In their order; nothing when the text is none of the notation above, or too deep. The text must
/// outlive what is returned.
std::optional<std::vector<command_argument>> parse_arguments(std::string_view text);

}  // namespace eddy::cache
