// Check of handed-over descriptors: which of them can be a client's.
#pragma once

#include <string_view>

namespace eddy::handoff {

/// Why a descriptor cannot be a client's: "not_a_socket", "not_a_stream_socket",
/// "listening_socket" or "not_connected", as metrics label them. Empty if it can be one. Any
/// thread.
std::string_view find_fault(int client) noexcept;

}  // namespace eddy::handoff
