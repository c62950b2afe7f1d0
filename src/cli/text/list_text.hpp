// Table of runtimes, as `eddy ls` prints it.
#pragma once

#include "cli/text/list_rows.hpp"
#include "cli/text/table.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <span>
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
/// The same of rows with list_fields().
std::string list_text(const list_rows& list, const list_style& style);
/// Fields of the table that is not wide.
std::span<const std::string_view> list_fields() noexcept;

/// Tint of a runtime's status.
tint tint_of_status(std::string_view status);

/// "just now", "12 seconds ago", "2 minutes ago", "3 years ago"; the text itself where it is no
/// time like 2026-11-21T21:22:04Z.
std::string age_text(std::string_view created, std::chrono::system_clock::time_point now);

}  // namespace eddy::cli
