// The rival with TLS: echo_asio.cpp with asio::ssl::stream, and the same settings of OpenSSL as
// Eddy's.
//
//     echo_tls_asio --port N
#include "socket.hpp"
#include "test_certificate.hpp"

// Asio 1.22 looks for Clang's coroutines where they were before they became standard.
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/ssl.hpp>

#include <array>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using executor = asio::io_context::executor_type;
using token = asio::experimental::as_tuple_t<asio::use_awaitable_t<executor>>;
using asio::ip::tcp;
using stream_socket = asio::basic_stream_socket<tcp, executor>;
using secure_socket = asio::ssl::stream<stream_socket>;
using acceptor = asio::basic_socket_acceptor<tcp, executor>;
using nothing = asio::awaitable<void, executor>;

constexpr token with_error_code{};

nothing echo(stream_socket plain, asio::ssl::context& with) {
    secure_socket peer(std::move(plain), with);
    std::array<char, 16 * 1024> bytes;
    std::error_code error;
    std::size_t size = 0;
    std::tie(error) = co_await peer.async_handshake(secure_socket::server, with_error_code);
    if (error) co_return;
    for (;;) {
        std::tie(error, size) = co_await peer.async_read_some(asio::buffer(bytes), with_error_code);
        if (error) co_return;
        std::tie(error, size) =
            co_await asio::async_write(peer, asio::buffer(bytes.data(), size), with_error_code);
        if (error) co_return;
    }
}

nothing serve(acceptor listening, asio::ssl::context& with) {
    stream_socket peer(listening.get_executor());
    for (;;) {
        const auto accepted = co_await listening.async_accept(peer, with_error_code);
        if (std::get<0>(accepted)) continue;
        std::error_code ignored;
        peer.set_option(tcp::no_delay(true), ignored);
        asio::co_spawn(listening.get_executor(), echo(std::move(peer), with), asio::detached);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const long port = number_option(argc, argv, "--port", 7000);
    asio::io_context context(1);
    asio::ssl::context with(asio::ssl::context::tls_server);
    const bench_certificate own = make_bench_certificate();
    with.use_certificate_chain(asio::buffer(own.chain));
    with.use_private_key(asio::buffer(own.key), asio::ssl::context::pem);
    SSL_CTX_set_min_proto_version(with.native_handle(), TLS1_3_VERSION);
    SSL_CTX_set_mode(with.native_handle(), SSL_MODE_RELEASE_BUFFERS);
    const tcp::endpoint local(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    acceptor listening(context.get_executor(), local);
    listening.listen(4096);
    asio::co_spawn(context, serve(std::move(listening), with), asio::detached);
    say_ready(port);
    context.run();
}
