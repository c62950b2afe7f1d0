// The rival with TLS: echo_asio.cpp with asio::ssl::stream, and the same settings of OpenSSL as
// Eddy's.
//
//     echo_tls_asio --port N
#include "asio_program.hpp"
#include "socket.hpp"
#include "test_certificate.hpp"

#include <asio/ssl.hpp>

#include <array>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using asio::ip::tcp;
using stream_socket = asio::basic_stream_socket<tcp, executor>;
using secure_socket = asio::ssl::stream<stream_socket>;
using acceptor = asio::basic_socket_acceptor<tcp, executor>;

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
    const long port = port_option(argc, argv);
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
