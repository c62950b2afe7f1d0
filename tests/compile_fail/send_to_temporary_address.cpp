// Sending a datagram to an address that is a temporary.
// Refused: deleted
#include <eddy/io/datagram.hpp>
#include <eddy/io/task.hpp>

eddy::task<> send(eddy::datagram socket, eddy::const_bytes bytes) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await socket.send(bytes, socket.peer()));
#endif
    const eddy::endpoint to = socket.peer();
    static_cast<void>(co_await socket.send(bytes, to));
    // It sends now or never, and keeps nothing.
    static_cast<void>(socket.send_to(bytes, socket.peer()));
}
