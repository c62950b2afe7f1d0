// A rival: the echo server with Boost.Asio, as echo_asio.cpp has it with standalone Asio. Debian 12
// has Boost 1.74, whose Asio knows no as_tuple yet, so errors are redirected into a variable.
//
//     echo_boost --port N
#include "socket.hpp"

#include <utility>  // which Boost 1.74 needs and does not include

// Asio 1.18 looks for Clang's coroutines where they were before they became standard.
#define BOOST_ASIO_HAS_CO_AWAIT 1
#define BOOST_ASIO_HAS_STD_COROUTINE 1
#include <boost/asio.hpp>

#include <array>

namespace {

namespace asio = boost::asio;
using executor = asio::io_context::executor_type;
using asio::ip::tcp;
using stream_socket = asio::basic_stream_socket<tcp, executor>;
using acceptor = asio::basic_socket_acceptor<tcp, executor>;
using nothing = asio::awaitable<void, executor>;

constexpr asio::use_awaitable_t<executor> awaited{};

nothing echo(stream_socket peer) {
    std::array<char, 16 * 1024> bytes;
    boost::system::error_code error;
    for (;;) {
        const std::size_t size = co_await peer.async_read_some(
            asio::buffer(bytes), asio::redirect_error(awaited, error));
        if (error) co_return;
        co_await asio::async_write(peer, asio::buffer(bytes.data(), size),
                                   asio::redirect_error(awaited, error));
        if (error) co_return;
    }
}

nothing serve(acceptor listening) {
    stream_socket peer(listening.get_executor());
    boost::system::error_code error;
    for (;;) {
        co_await listening.async_accept(peer, asio::redirect_error(awaited, error));
        if (error) continue;
        peer.set_option(tcp::no_delay(true), error);
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
