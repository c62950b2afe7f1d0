// Patterns of paths such as "/v1/runtimes/{name}/start", in which {name} stands for one segment.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// The decoded segments that stood in the places of a path's braces, in order; none when the path
/// does not fit. A segment that decodes to nothing, to a '/' or to a control byte fits nowhere.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

/// The place of {name} among the braces of a pattern; none when it is not there.
std::optional<std::size_t> parameter_index(std::string_view pattern,
                                           std::string_view name) noexcept;

}  // namespace eddy::http
