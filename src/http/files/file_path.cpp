// Decoding of paths, segment by segment, so that an encoded slash never separates two of them.
#include "http/files/file_path.hpp"

#include <eddy/wire/http1/target.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace eddy::http {

bool is_hidden(std::string_view segment) noexcept {
    return segment.starts_with('.') && segment != ".well-known";
}

result<file_path> decode_path(std::string_view path, bool hidden) {
    file_path made;
    made.is_folder = path.empty() || path.back() == '/';
    while (!path.empty()) {
        const std::string_view encoded = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(encoded.size() + 1, path.size()));
        if (encoded.empty()) continue;
        const auto segment = http1::percent_decode(encoded);
        if (!segment) return fail_errno(ENOENT);
        if (*segment == "." || *segment == "..") return fail(errc::malformed);
        const bool is_name = segment->find_first_of(std::string_view("/\0", 2)) == segment->npos;
        if (!is_name || (!hidden && is_hidden(*segment))) return fail_errno(ENOENT);
        if (!made.name.empty()) made.name += '/';
        made.name += *segment;
    }
    return made;
}

}  // namespace eddy::http
