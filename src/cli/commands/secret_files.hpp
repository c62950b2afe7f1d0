// Secret options from files: --NAME-file FILE for each option --NAME whose value is not to be seen
// in the list of processes or a shell's history.
#pragma once

#include "cli/flags.hpp"

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Largest content of such a file.
inline constexpr std::size_t secret_file_limit = std::size_t{64} * 1024;

/// The flags for the secret ones of `table`; an option of such a name has precedence.
std::vector<flag> secret_file_flags(std::span<const flag> table);

/// Name of the option whose value the flag `name` reads from a file; empty for another flag.
std::string_view option_of_secret_file(std::span<const flag> table, std::string_view name);

/// The value in a file, without newlines at its end; lines of several are joined by "; ", as
/// parameters are, and a line that begins with # is left out. "-" is standard input. The error
/// names flag and file.
std::expected<std::string, std::string> read_secret_file(std::string_view flag_name,
                                                         const std::string& path);

}  // namespace eddy::cli
