// Relative paths, alone and within URIs.
#include "cli/local_path.hpp"

#include "base/text/text.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace eddy::cli {
namespace {

bool has_path(std::string_view scheme) {
    return is_word(scheme, "unix") || is_word(scheme, "shm") || is_word(scheme, "handoff");
}

bool is_folder(const std::string& path) {
    struct stat about{};
    return ::lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

/// An absolute path without "." and, where that is the same place, without "..".
std::string without_dots(std::string_view path) {
    std::string made;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        const std::string_view name = path.substr(at, end - at);
        at = end + 1;
        if (name.empty() || name == "." || (name == ".." && made.empty())) continue;
        if (name == ".." && !made.ends_with("/..") && is_folder(made))
            made.resize(made.rfind('/'));
        else
            made.append("/").append(name);
    }
    if (made.empty() || path.ends_with('/')) made += '/';
    return made;
}

/// Appends the pieces of a text, each as `change` makes it, and what stands between them.
template <class Change>
local_path change_each(std::string_view text, char between, Change change) {
    std::string made;
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(text.find(between), text.size());
        local_path one = change(text.substr(0, end));
        if (!one) return one;
        made += *one;
        is_last = end == text.size();
        if (!is_last) made += between;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return made;
}

/// cert=a.pem
local_path absolute_file(std::string_view parameter) {
    const std::size_t value = parameter.find('=') + 1;
    const std::string_view name = parameter.substr(0, value == 0 ? value : value - 1);
    if (name != "cert" && name != "key" && name != "ca") return std::string(parameter);
    const local_path path = absolute_path(parameter.substr(value));
    if (!path) return path;
    return std::string(parameter.substr(0, value)) + *path;
}

local_path absolute_uri(std::string_view uri) {
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
    if (has_path(scheme)) {
        local_path path = absolute_socket(place);
        if (!path) return path;
        return head + *path + std::string(uri.substr(query));
    }
    if (!is_word(scheme, "tls") || query == uri.size()) return std::string(uri);
    local_path files = change_each(uri.substr(query + 1), '&', absolute_file);
    if (!files) return files;
    return head + std::string(place) + '?' + *files;
}

}  // namespace

local_path absolute_path(std::string_view path) {
    if (path.empty() || path.starts_with('/')) return path.empty() ? "" : without_dots(path);
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    if (error)
        return std::unexpected(
            fmt::format("\"{}\" is a path of the working folder, which cannot be had: {}. Go to "
                        "another folder, or write the whole path, from /",
                        path, error.message()));
    return without_dots(here.string().append("/").append(path));
}

local_path absolute_socket(std::string_view path) {
    return path.starts_with('@') ? std::string(path) : absolute_path(path);
}

local_path absolute_uris(std::string_view text) { return change_each(text, ',', absolute_uri); }

}  // namespace eddy::cli
