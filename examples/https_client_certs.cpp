// HTTPS server that asks for certificates of clients: GET / answers with the name of the client's.
// The files are PEM; CA has the certificates of the authorities that may sign those of clients.
//
//     https_client_certs PORT CERTIFICATE KEY CA
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/tls/tls.hpp>

#include <cstdio>
#include <string>

namespace http = eddy::http;

eddy::task<http::response> greet(http::request& request) {
    const auto secure = eddy::tls::info(*request.connection());
    if (!secure || !secure->peer_verified)
        co_return http::text("show a certificate, please\n", 403);
    co_return http::text("hello, " + secure->peer_subject + "\n");
}

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: https_client_certs PORT CERTIFICATE KEY CA\n", stderr);
        return 1;
    }
    const std::string uri = std::string("tls://127.0.0.1:") + argv[1] + "?cert=" + argv[2] +
                            "&key=" + argv[3] + "&ca=" + argv[4] + "&clients=optional";
    http::router routes;
    routes.get("/", greet);
    http::server_options options;
    options.listen = {uri};
    return http::run(routes, options);
}
