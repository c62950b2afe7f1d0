// An HTTPS client in a page: fetches one file and prints it. docs/tutorial.md explains it.
//
//     https_client HOST [PATH [PORT]]
#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/tls/tls.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

eddy::task<eddy::result<>> fetch(std::string host, std::string path, std::uint16_t port,
                                 eddy::tls::context trust) {
    auto plain = co_await eddy::tcp::connect(host, port);
    if (!plain) co_return eddy::fail(plain.error());
    auto server = co_await eddy::tls::connect(std::move(*plain), trust, host);
    if (!server) co_return eddy::fail(server.error());

    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
    auto sent = co_await server->write_all(request);
    if (!sent) co_return sent;
    for (;;) {
        auto received = co_await server->read();
        if (!received && received.error() == eddy::errc::end_of_stream) co_return eddy::result<>();
        if (!received) co_return eddy::fail(received.error());
        std::fwrite(received->bytes().data(), 1, received->size(), stdout);
    }
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: https_client HOST [PATH [PORT]]\n", stderr);
        return 1;
    }
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    auto trust = eddy::tls::context::client();
    if (!trust) {
        std::fprintf(stderr, "%s\n", trust.error().c_str());
        return 1;
    }
    const int port = argc > 3 ? std::atoi(argv[3]) : 443;
    auto fetched = (*loop)->run(fetch(argv[1], argc > 2 ? argv[2] : "/",
                                      static_cast<std::uint16_t>(port), std::move(*trust)));
    if (!fetched) std::fprintf(stderr, "%s: %s\n", argv[1], fetched.error().message().c_str());
    return fetched ? 0 : 1;
}
