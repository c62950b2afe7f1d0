// Host names: their grammar, and the ones that mean this machine.
#pragma once

#include <string_view>

namespace eddy {

/// Host names as RFC 1123 has them, and underscores, which are in use; a dot may end them. A last
/// label of digits alone would be an address, and it is none. Any thread.
bool is_host_name(std::string_view name) noexcept;

/// "localhost" and the names below it (RFC 6761, 6.3), in any case.
bool is_localhost(std::string_view name) noexcept;

}  // namespace eddy
