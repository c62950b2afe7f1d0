// Sending datagrams whose array is a temporary.
// Refused: deleted
#include <eddy/io/datagram.hpp>
#include <eddy/io/task.hpp>

#include <array>
#include <span>

eddy::task<> send(eddy::datagram socket, eddy::outgoing_datagram one) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await socket.send(std::array<eddy::outgoing_datagram, 2>{one, one}));
#endif
    const std::array<eddy::outgoing_datagram, 2> both{one, one};
    static_cast<void>(co_await socket.send(both));
    static_cast<void>(co_await socket.send(std::span(both).first(1)));
}
