// ACL file: one line a user, in the form of ACL LIST.
#pragma once

#include "cache/acl/acl.hpp"
#include "cache/engine/engine.hpp"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace eddy::cache::acl {

/// A longer file is not read.
inline constexpr std::size_t max_file_bytes = std::size_t{64} << 20;

/// All users as the file has them.
std::string to_file(const users& all);

/// Replaces all users by those of a file's text: all, or none with all errors, each with the line
/// of `file`. Sessions of removed users are disconnected; "default" always exists, with all
/// permissions if the file does not name it.
std::expected<void, std::string> load(engine_state& s, std::string_view text,
                                      std::string_view file);

}  // namespace eddy::cache::acl
