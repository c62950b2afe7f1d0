// Which request goes to which handler: one table, which the OpenAPI document is compared with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A method and a path such as "/v1/runtimes/{name}/start", where {name} stands for one segment.
struct route {
    std::string_view method;
    std::string_view path;
};

/// The decoded segments that stood in the places of a path's braces, in order; none when the path
/// does not fit. A segment that decodes to nothing, to a '/' or to a control byte fits nowhere.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

/// Where a request goes.
struct routing {
    std::optional<std::size_t> index;  ///< of the route in the table
    std::vector<std::string> parameters;
    std::string allow;  ///< when only the method is wrong: those that would do
};

/// Finds the route of a request; HEAD goes where GET does.
routing find_route(std::span<const route> table, std::string_view method, std::string_view path);

}  // namespace eddy::http
