// Shared parts of the UDP servers and their load.
#pragma once

/// SO_RCVBUF of servers and clients alike, so that the rows under way fit; the kernel caps it at
/// net.core.rmem_max.
inline constexpr int udp_receive_buffer = 4 * 1024 * 1024;
