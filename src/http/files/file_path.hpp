// Paths of requests as names of files below a root.
#pragma once

#include <eddy/base/result.hpp>

#include <string>
#include <string_view>

namespace eddy::http {

/// A request's path below a root.
struct file_path {
    /// Decoded segments joined by '/', without one at either end; empty for the root itself. No
    /// segment is empty, "." or "..", or holds '/' or NUL.
    std::string name;
    /// True if the path asks for a folder: it is empty or ends with a slash.
    bool is_folder = false;
};

/// Decodes a percent-encoded path. errc::malformed for a segment "." or "..". ENOENT for what
/// else names no file below a root, but may be a route of an application: a bad encoding, an
/// encoded slash or NUL, and without `hidden` a segment that begins with a dot, except
/// ".well-known". Empty segments are skipped. Any thread.
result<file_path> decode_path(std::string_view path, bool hidden);

/// True if a name begins with a dot and is not ".well-known".
bool is_hidden(std::string_view segment) noexcept;

}  // namespace eddy::http
