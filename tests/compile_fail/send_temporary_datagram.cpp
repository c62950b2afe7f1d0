// Sending a datagram whose bytes are a temporary.
// Refused: deleted
#include <eddy/io/datagram.hpp>
#include <eddy/io/task.hpp>

#include <vector>

std::vector<std::byte> make_bytes();

eddy::task<> send(eddy::datagram socket, eddy::endpoint to) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await socket.send(make_bytes(), to));
#endif
    const std::vector<std::byte> bytes = make_bytes();
    static_cast<void>(co_await socket.send(bytes));
    static_cast<void>(co_await socket.send(bytes, to));
    static_cast<void>(co_await socket.send(eddy::const_bytes(bytes).first(1), to, 1));
    static_cast<void>(co_await socket.send(eddy::as_bytes("text"), to));
    // It sends now or never, and keeps nothing.
    static_cast<void>(socket.send_to(make_bytes(), to));
}
