// Table of runtimes, as `eddy ls` prints it.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::cli {

using nlohmann::json;

struct list_style {
    std::size_t width = 0;  ///< columns of the terminal; 0: lines of any length
    bool is_wide = false;   ///< every column, and nothing shortened
    bool colours = false;
    std::chrono::system_clock::time_point now;  ///< ages count from it
};

/// A line for each runtime below a header. Where it is wider than the terminal, columns are left
/// out, those first that matter least, and then names are shortened.
std::string list_text(const json& list, const list_style& style);

/// "just now", "12 seconds ago", "2 minutes ago", "3 years ago"; the text itself where it is no
/// time like 2026-11-21T21:22:04Z.
std::string age_text(const std::string& created, std::chrono::system_clock::time_point now);

}  // namespace eddy::cli
