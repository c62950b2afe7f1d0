// Matching paths.
#include "http/router.hpp"

#include <eddy/wire/http1/target.hpp>

#include <algorithm>

namespace eddy::http {
namespace {

// Takes the next "/segment" off a path; the path must begin with a slash.
std::string_view take_segment(std::string_view& path) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

bool is_parameter(std::string_view segment) {
    return segment.starts_with('{') && segment.ends_with('}');
}

}  // namespace

std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   std::string_view path) {
    std::vector<std::string> parameters;
    while (pattern.starts_with('/') && path.starts_with('/')) {
        const std::string_view wanted = take_segment(pattern);
        const std::string_view given = take_segment(path);
        if (!is_parameter(wanted)) {
            if (wanted != given) return std::nullopt;
            continue;
        }
        auto decoded = http1::percent_decode(given);
        if (!decoded || decoded->empty()) return std::nullopt;
        const bool odd = std::any_of(decoded->begin(), decoded->end(), [](char c) {
            return c == '/' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
        });
        if (odd) return std::nullopt;
        parameters.push_back(std::move(*decoded));
    }
    if (!pattern.empty() || !path.empty()) return std::nullopt;
    return parameters;
}

routing find_route(std::span<const route> table, std::string_view method, std::string_view path) {
    const std::string_view wanted = method == "HEAD" ? "GET" : method;
    routing found;
    for (std::size_t i = 0; i < table.size(); ++i) {
        auto parameters = match_path(table[i].path, path);
        if (!parameters) continue;
        if (table[i].method == wanted) {
            found.index = i;
            found.parameters = std::move(*parameters);
            found.allow.clear();
            return found;
        }
        if (!found.allow.empty()) found.allow += ", ";
        found.allow += table[i].method;
        if (table[i].method == "GET") found.allow += ", HEAD";
    }
    return found;
}

}  // namespace eddy::http
