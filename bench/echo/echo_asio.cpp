// The rival: the echo server as a careful user of standalone Asio writes it. One thread, one C++20
// coroutine a connection, the context's own executor instead of the type-erased one, error codes
// instead of exceptions, and a concurrency hint of 1.
//
//     echo_asio --port N
#include "asio_program.hpp"
#include "socket.hpp"

#include <array>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using asio::ip::tcp;
using stream_socket = asio::basic_stream_socket<tcp, executor>;
using acceptor = asio::basic_socket_acceptor<tcp, executor>;

nothing echo(stream_socket peer) {
    std::array<char, 16 * 1024> bytes;
    std::error_code error;
    std::size_t size = 0;
    for (;;) {
        std::tie(error, size) = co_await peer.async_read_some(asio::buffer(bytes), with_error_code);
        if (error) co_return;
        std::tie(error, size) =
            co_await asio::async_write(peer, asio::buffer(bytes.data(), size), with_error_code);
        if (error) co_return;
    }
}

nothing serve(acceptor listening) {
    stream_socket peer(listening.get_executor());
    for (;;) {
        const auto accepted = co_await listening.async_accept(peer, with_error_code);
        if (std::get<0>(accepted)) continue;
        std::error_code ignored;
        peer.set_option(tcp::no_delay(true), ignored);
        asio::co_spawn(listening.get_executor(), echo(std::move(peer)), asio::detached);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    asio::io_context context(1);
    const tcp::endpoint local(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    acceptor listening(context.get_executor(), local);
    listening.listen(4096);
    asio::co_spawn(context, serve(std::move(listening)), asio::detached);
    say_ready(port);
    context.run();
}
