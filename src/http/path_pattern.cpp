// Matching paths.
#include "http/path_pattern.hpp"

#include <eddy/wire/http1/target.hpp>

#include <algorithm>
#include <utility>

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

std::optional<std::size_t> parameter_index(std::string_view pattern,
                                           std::string_view name) noexcept {
    std::size_t index = 0;
    while (pattern.starts_with('/')) {
        const std::string_view segment = take_segment(pattern);
        if (!is_parameter(segment)) continue;
        if (segment.substr(1, segment.size() - 2) == name) return index;
        ++index;
    }
    return std::nullopt;
}

}  // namespace eddy::http
