// Lines of clients that are commands to the server itself, and no messages: `master PASSWORD` with
// --mode master, `cache COMMAND` with --cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::runtime::server {

enum class line_command : std::uint8_t {
    none,  ///< a message
    master,
    cache,
};

/// Commands that a server takes, and the size of its longest line without the newline.
struct line_command_rules {
    bool takes_master = false;
    bool takes_cache = false;
    std::size_t longest = 0;

    bool any() const noexcept { return takes_master || takes_cache; }
};

/// First whole line of an input, if it is a command; else the lines before the first command.
struct line_command_split {
    line_command what = line_command::none;
    std::size_t size = 0;  ///< bytes of the line with its newline, or of what is before it
    std::string_view argument = {};  ///< of the command: what stands behind its name and a blank
};

/// Splits off the beginning of `input`. Without a command in it that is all of it. A line that is
/// too long is no command.
line_command_split split_commands(std::string_view input, const line_command_rules& rules) noexcept;

}  // namespace eddy::runtime::server
