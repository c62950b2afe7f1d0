// Relative paths of the command line, made absolute: the daemon's working folder is another one.
#pragma once

#include <string>
#include <string_view>

namespace eddy::cli {

/// The path from the working folder; one that is absolute or empty stays.
std::string absolute_path(std::string_view path);

/// The same of a Unix socket: an abstract name (@NAME) stays, too.
std::string absolute_socket(std::string_view path);

/// A URI, or several joined by commas: unix://./a.sock gets the whole path, and so do the files in
/// the parameters of a tls:// URI (cert, key, ca). What is no such URI stays.
std::string absolute_uris(std::string_view text);

}  // namespace eddy::cli
