// Limits of nesting in TOML, which its library parses, and frees, by recursion.
#pragma once

#include "cli/stack/stack_file.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli {

/// Lists and tables within each other in one value, and parts of one key (a.b.c has three).
inline constexpr std::size_t deepest_toml = 16;

/// The place in `text` that exceeds the limit. One pass, without recursion; text that is no TOML
/// may have a fault of either kind.
std::optional<file_fault> excess_of_depth(std::string_view text, const std::string& file);

}  // namespace eddy::cli
