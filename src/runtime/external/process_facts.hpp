// Facts about processes and listening sockets of this machine, from /proc.
#pragma once

#include <eddy/base/result.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace eddy::runtime::external {

/// The time at which a process began, in the kernel's ticks since its boot: with the number it
/// names one process. Errors are open(2)'s: ENOENT for none.
result<std::uint64_t> start_time_of(int pid);
/// The same of the text of /proc/PID/stat, whose second field may have any bytes; errc::malformed.
result<std::uint64_t> start_time_in(std::string_view stat);

/// Sockets, by their inodes, that listen on a TCP port, of any address. They are read from the
/// kernel's tables of this network namespace; it takes as long as there are connections: not on a
/// loop's thread.
std::vector<std::uint64_t> listening_sockets(std::uint16_t port);
/// The inodes of a table such as /proc/net/tcp.
void add_listening(std::string_view table, std::uint16_t port, std::vector<std::uint64_t>& to);

/// True if the process has one of the sockets open. EACCES for one whose descriptors this process
/// may not see, ENOENT for none.
result<bool> has_socket(int pid, const std::vector<std::uint64_t>& sockets);

}  // namespace eddy::runtime::external
