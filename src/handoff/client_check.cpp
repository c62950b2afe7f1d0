// Type and state of handed-over descriptors, by getsockopt(2).
#include "handoff/client_check.hpp"

#include <sys/socket.h>

namespace eddy::handoff {
namespace {

int option_of(int socket, int name) noexcept {
    int value = 0;
    socklen_t size = sizeof(value);
    return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

}  // namespace

std::string_view find_fault(int client) noexcept {
    const int type = option_of(client, SO_TYPE);
    if (type < 0) return "not_a_socket";
    if (type != SOCK_STREAM) return "not_a_stream_socket";
    if (option_of(client, SO_ACCEPTCONN) != 0) return "listening_socket";
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(client, reinterpret_cast<sockaddr*>(&peer), &size) < 0)
        return "not_connected";
    return {};
}

}  // namespace eddy::handoff
