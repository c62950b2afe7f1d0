// The files of the console's page, which are a part of the program.
#pragma once

#include <span>
#include <string_view>

namespace eddy::daemon {

struct console_file {
    std::string_view path;  ///< as browsers ask for it: "/console.js"
    std::string_view type;  ///< its Content-Type
    std::string_view content;
};

/// All of them; "/" is the page itself. Constants of the program.
std::span<const console_file> console_files() noexcept;

}  // namespace eddy::daemon
