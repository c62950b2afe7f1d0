// Relative paths of the command line, made absolute: the daemon's working folder is another one.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace eddy::cli {

/// A path, or the sentence that says why there is none.
using local_path = std::expected<std::string, std::string>;

/// The path from the working folder; an empty one stays. It names what the kernel takes it for:
/// a ".." goes only with the folder in front of it, never with a symbolic link. Fails for a
/// relative path where the working folder was removed.
local_path absolute_path(std::string_view path);

/// The same of a Unix socket: an abstract name (@NAME) stays, too.
local_path absolute_socket(std::string_view path);

/// A URI, or several joined by commas: unix://./a.sock gets the whole path, and so do the files in
/// the parameters of a tls:// URI (cert, key, ca). What is no such URI stays.
local_path absolute_uris(std::string_view text);

}  // namespace eddy::cli
