// Commands to a cache that other runtimes may send for their clients and scripts: those about data.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Refusal of a command, the name first; empty if it is one about data. Commands about a
/// connection, the cache itself, other servers or scripts are not, and none may wait. `caller`
/// names its kind: "clients of a server".
std::string refuse_data_command(std::span<const std::string_view> args, std::string_view caller);

}  // namespace eddy::runtime
