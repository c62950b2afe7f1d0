// HTTPS server that asks for certificates of clients: GET / answers with the name of the client's.
// The files are PEM; CA has the certificates of the authorities that may sign those of clients.
//
//     https_client_certs PORT CERTIFICATE KEY CA
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/tls/tls.hpp>
#include <eddy/transport/transport.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

eddy::task<http::response> greet(http::request& request) {
    const auto secure = eddy::tls::info(*request.connection());
    if (!secure || !secure->peer_verified)
        co_return http::text("show a certificate, please\n", 403);
    co_return http::text("hello, " + secure->peer_subject + "\n");
}

eddy::task<> serve(eddy::listener listening, http::router& routes) {
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer)
                clients.spawn(http::serve(std::move(*peer), routes, {}));
            else if (!co_await eddy::loop::current().sleep_for(10ms))
                co_return;
        }
    });
}

eddy::task<int> start(std::string uri) {
    auto listening = eddy::transport::listen(uri);
    if (!listening) {
        std::fprintf(stderr, "%s\n", eddy::transport::explain(uri, listening.error()).c_str());
        co_return 1;
    }
    http::router routes;
    routes.get("/", greet);
    co_await serve(std::move(*listening), routes);
    co_return 0;
}

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: https_client_certs PORT CERTIFICATE KEY CA\n", stderr);
        return 1;
    }
    const std::string uri = std::string("tls://127.0.0.1:") + argv[1] + "?cert=" + argv[2] +
                            "&key=" + argv[3] + "&ca=" + argv[4] + "&clients=optional";
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start(uri));
}
