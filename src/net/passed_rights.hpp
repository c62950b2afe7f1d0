// SO_PASSRIGHTS of Linux 6.16: whether a Unix socket accepts descriptors.
#pragma once

namespace eddy::unix_socket {

/// Option of SOL_SOCKET, an int: 0 has the peer's sendmsg(2) with SCM_RIGHTS fail with EPERM. A
/// listener's connections inherit it. ENOPROTOOPT before Linux 6.16. The headers of libc lack it;
/// the number is that of asm-generic/socket.h, as on x86-64 and AArch64.
inline constexpr int so_passrights = 83;

}  // namespace eddy::unix_socket
