// Relative paths, alone and within URIs.
#include "cli/local_path.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace eddy::cli {
namespace {

bool has_path(std::string_view scheme) {
    return is_word(scheme, "unix") || is_word(scheme, "shm") || is_word(scheme, "handoff");
}

/// cert=a.pem&key=b.pem&min=1.3
std::string absolute_files(std::string_view parameters) {
    std::string made;
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(parameters.find('&'), parameters.size());
        const std::string_view one = parameters.substr(0, end);
        const std::size_t value = one.find('=') + 1;
        const std::string_view name = one.substr(0, value == 0 ? one.size() : value - 1);
        const bool is_file = value != 0 && (name == "cert" || name == "key" || name == "ca");
        made += is_file ? std::string(one.substr(0, value)) + absolute_path(one.substr(value))
                        : std::string(one);
        is_last = end == parameters.size();
        if (!is_last) made += '&';
        parameters.remove_prefix(std::min(end + 1, parameters.size()));
    }
    return made;
}

std::string absolute_uri(std::string_view uri) {
    constexpr std::string_view separator = "://";
    const std::size_t end = uri.find(separator);
    if (end == std::string_view::npos) return std::string(uri);
    const std::string_view scheme = uri.substr(0, end);
    const std::size_t begin = end + separator.size();
    // A path of unix:// may have a question mark.
    const std::size_t query =
        is_word(scheme, "unix") ? uri.size() : std::min(uri.find('?', begin), uri.size());
    const std::string head(uri.substr(0, begin));
    const std::string_view place = uri.substr(begin, query - begin);
    if (has_path(scheme)) return head + absolute_socket(place) + std::string(uri.substr(query));
    if (!is_word(scheme, "tls") || query == uri.size()) return std::string(uri);
    return head + std::string(place) + '?' + absolute_files(uri.substr(query + 1));
}

}  // namespace

std::string absolute_path(std::string_view path) {
    if (path.empty()) return {};
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    return error ? std::string(path) : whole.lexically_normal().string();
}

std::string absolute_socket(std::string_view path) {
    return path.starts_with('@') ? std::string(path) : absolute_path(path);
}

std::string absolute_uris(std::string_view text) {
    std::string made;
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(text.find(','), text.size());
        made += absolute_uri(text.substr(0, end));
        is_last = end == text.size();
        if (!is_last) made += ',';
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return made;
}

}  // namespace eddy::cli
