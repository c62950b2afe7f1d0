// Text forms of what an upgrade passes on: listeners, clients, and texts that are too long for a
// message.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "runtime/instance.hpp"
#include "runtime/serving/passed_listeners.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// All but its descriptor.
json show_passed(const runtime::passed_listener& each);
/// The inverse. Refuses (400) what is none.
outcome<runtime::passed_listener> read_passed(const json& from);

/// A text in a file without a name. Refuses (503) for want of memory; `what` names it in the
/// message.
outcome<unique_fd> write_passed(std::string_view text, std::string_view what);
/// The inverse; empty for what is no such file.
std::string read_passed(int file);

/// A file without a name that has the state and the input of living connections; their sockets
/// follow one by one. Refuses (503) for want of memory.
outcome<unique_fd> write_clients(const std::vector<runtime::passed_client>& all);
/// The inverse, without sockets. Refuses (400) a file that has not `count` of them.
outcome<std::vector<runtime::passed_client>> read_clients(int file, std::size_t count);

}  // namespace eddy::daemon
