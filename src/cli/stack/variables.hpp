// Variables of a stack file: ${NAME} in its texts, from the environment.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli {

/// The value of a variable; none for one that is not set.
using environment = std::function<std::optional<std::string>(std::string_view name)>;

/// The process's own.
environment process_environment();

/// Longest text after its variables.
inline constexpr std::size_t expanded_limit = std::size_t{64} * 1024;

/// The text with the values of its variables: ${NAME} must be set; ${NAME:-TEXT} is TEXT where it
/// is not set or empty, ${NAME-TEXT} where it is not set; ${NAME:?WHY} and ${NAME?WHY} fail with
/// WHY there. TEXT may have variables. $$ is one dollar; a dollar before any other character is
/// itself.
std::expected<std::string, std::string> expand(std::string_view text, const environment& of);

/// The inverse: a text that expand() makes into `text`.
std::string without_variables(std::string_view text);

}  // namespace eddy::cli
