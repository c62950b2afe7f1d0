// Relative paths, alone and within URIs.
#include "cli/local_path.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
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

bool is_program(const std::string& path) {
    struct stat about{};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
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
local_path absolute_file(std::string_view parameter, std::string_view folder) {
    const std::size_t value = parameter.find('=') + 1;
    const std::string_view name = parameter.substr(0, value == 0 ? value : value - 1);
    if (name != "cert" && name != "key" && name != "ca") return std::string(parameter);
    const local_path path = absolute_path(parameter.substr(value), folder);
    if (!path) return path;
    return std::string(parameter.substr(0, value)) + *path;
}

/// wss://HOST/PATH#ca=FILE, whose fragment has the parameters of TLS.
local_path with_absolute_fragment(std::string_view url, std::string_view folder) {
    const std::size_t begin = std::min(url.find('#'), url.size());
    if (begin == url.size()) return std::string(url);
    local_path files = change_each(url.substr(begin + 1), '&', [folder](std::string_view each) {
        return absolute_file(each, folder);
    });
    if (!files) return files;
    return std::string(url.substr(0, begin + 1)) + *files;
}

local_path absolute_uri(std::string_view uri, std::string_view folder) {
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
    if (is_word(scheme, "shm") && place.starts_with(':')) return std::string(uri);  // a port
    if (has_path(scheme)) {
        local_path path = absolute_socket(place, folder);
        if (!path) return path;
        return head + *path + std::string(uri.substr(query));
    }
    if (is_word(scheme, "wss")) return with_absolute_fragment(uri, folder);
    if (!is_word(scheme, "tls") || query == uri.size()) return std::string(uri);
    local_path files = change_each(uri.substr(query + 1), '&', [folder](std::string_view each) {
        return absolute_file(each, folder);
    });
    if (!files) return files;
    return head + std::string(place) + '?' + *files;
}

}  // namespace

local_path absolute_path(std::string_view path, std::string_view folder) {
    if (path.empty() || path.starts_with('/')) return path.empty() ? "" : without_dots(path);
    if (!folder.empty()) return without_dots(std::string(folder).append("/").append(path));
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    if (error)
        return std::unexpected(
            fmt::format("\"{}\" is a path of the working folder, which cannot be had: {}. Go to "
                        "another folder, or write the whole path, from /",
                        path, error.message()));
    return without_dots(here.string().append("/").append(path));
}

local_path absolute_socket(std::string_view path, std::string_view folder) {
    return path.starts_with('@') ? std::string(path) : absolute_path(path, folder);
}

local_path absolute_uris(std::string_view text, std::string_view folder) {
    return change_each(text, ',',
                       [folder](std::string_view each) { return absolute_uri(each, folder); });
}

local_path find_program(std::string_view word, std::string_view folder) {
    if (word.empty() || word.contains('/')) return absolute_path(word, folder);
    const char* const folders = std::getenv("PATH");
    std::string_view rest = folders != nullptr ? folders : "/usr/local/bin:/usr/bin:/bin";
    while (!rest.empty()) {
        const std::string_view each = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(each.size() + 1, rest.size()));
        if (each.empty()) continue;
        const std::string path = fmt::format("{}/{}", each, word);
        if (is_program(path)) return absolute_path(path);
    }
    const local_path here = absolute_path(word, folder);
    return std::unexpected(fmt::format(
        "there is no program \"{0}\" in $PATH{1}", printable(word),
        here && is_program(*here) ? fmt::format("; the one of this folder is ./{}", printable(word))
                                  : std::string()));
}

}  // namespace eddy::cli
