// Relative paths of the command line, made absolute: the daemon's working folder is another one.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace eddy::cli {

/// A path, or the sentence that says why there is none.
using local_path = std::expected<std::string, std::string>;

/// The path from `folder`, which is absolute; by default the working folder. An empty one stays. It
/// names what the kernel takes it for: a ".." goes only with the folder in front of it, never with
/// a symbolic link. Fails for a relative path where the working folder was removed.
local_path absolute_path(std::string_view path, std::string_view folder = {});

/// The same of a Unix socket: an abstract name (@NAME) stays, too.
local_path absolute_socket(std::string_view path, std::string_view folder = {});

/// A URI, or several joined by commas: unix://./a.sock gets the whole path, and so do the files in
/// the parameters of a tls:// URI (cert, key, ca). What is no such URI stays.
local_path absolute_uris(std::string_view text, std::string_view folder = {});

/// The absolute path of a program: a word without a slash is looked up in $PATH, as a shell does.
local_path find_program(std::string_view word, std::string_view folder = {});

}  // namespace eddy::cli
