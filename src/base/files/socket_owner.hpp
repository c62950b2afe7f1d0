// Owner and group of a Unix socket's file, and their names.
#pragma once

#include <eddy/base/result.hpp>

#include "base/problem.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace eddy {

/// The user, or group, of that name, or number. Refuses (400) a name that this machine does not
/// have; the refusal begins with `flag`, such as "--socket-group". Any thread.
outcome<uid_t> find_user(std::string_view name, std::string_view flag);
outcome<gid_t> find_group(std::string_view name, std::string_view flag);

/// Gives the socket at `path`, which this process has made, an owner, a group and permissions, each
/// where there is one. Errors: errc::bad_address for what is no socket of this user or of `owner`;
/// EPERM for a user or group that this process may not give a file to; others of chown(2) and
/// chmod(2).
result<> give_socket(const std::string& path, std::optional<uid_t> owner,
                     std::optional<gid_t> group, std::optional<mode_t> mode = std::nullopt);

}  // namespace eddy
