// Values in the parameters of handoff and shm URIs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

namespace eddy::transport {

/// Permissions in octal digits, at most 0777.
std::optional<int> mode_of(std::string_view text) noexcept;

/// Numbers of users joined by ',', at most max_handoff_users; none of an empty text.
std::optional<std::vector<uid_t>> users_of(std::string_view text);

}  // namespace eddy::transport
