// The rival: the echo server as a careful user of standalone Asio writes it. One thread, one C++20
// coroutine a connection, the context's own executor instead of the type-erased one, error codes
// instead of exceptions, and a concurrency hint of 1.
//
//     echo_asio --port N
#include "socket.hpp"

// Asio 1.22 looks for Clang's coroutines where they were before they became standard.
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#include <asio.hpp>
#if __has_include(<asio/as_tuple.hpp>)
#include <asio/as_tuple.hpp>
namespace tuples = asio;
#else
#include <asio/experimental/as_tuple.hpp>
namespace tuples = asio::experimental;
#endif

#include <array>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using executor = asio::io_context::executor_type;
using token = tuples::as_tuple_t<asio::use_awaitable_t<executor>>;
using asio::ip::tcp;
using stream_socket = asio::basic_stream_socket<tcp, executor>;
using acceptor = asio::basic_socket_acceptor<tcp, executor>;
using nothing = asio::awaitable<void, executor>;

constexpr token with_error_code{};

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
    const long port = number_option(argc, argv, "--port", 7000);
    asio::io_context context(1);
    const tcp::endpoint local(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    acceptor listening(context.get_executor(), local);
    listening.listen(4096);
    asio::co_spawn(context, serve(std::move(listening)), asio::detached);
    say_ready(port);
    context.run();
}
