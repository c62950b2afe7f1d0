// The rival: the UDP echo server as a careful user of standalone Asio writes it, with the same
// choices as ../echo/echo_asio.cpp. Asio has no segments, neither sent nor received.
//
//     udp_asio --port N
#include "../echo/asio_program.hpp"
#include "../echo/socket.hpp"
#include "buffer.hpp"

#include <array>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using asio::ip::udp;
using socket_type = asio::basic_datagram_socket<udp, executor>;

nothing echo(socket_type socket) {
    std::array<char, 64 * 1024> bytes;
    std::error_code error;
    std::size_t size = 0;
    udp::endpoint from;
    for (;;) {
        std::tie(error, size) =
            co_await socket.async_receive_from(asio::buffer(bytes), from, with_error_code);
        if (error) co_return;
        std::tie(error, size) =
            co_await socket.async_send_to(asio::buffer(bytes.data(), size), from, with_error_code);
        if (error) std::fprintf(stderr, "udp_asio: %s\n", error.message().c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    asio::io_context context(1);
    const udp::endpoint local(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    socket_type socket(context.get_executor(), local);
    socket.set_option(asio::socket_base::receive_buffer_size(udp_receive_buffer));
    asio::co_spawn(context, echo(std::move(socket)), asio::detached);
    say_ready(port);
    context.run();
}
