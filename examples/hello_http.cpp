// The smallest HTTP server: GET /hello/NAME greets. docs/http.md begins with it.
//
//     hello_http [PORT]
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>

#include <string>

namespace http = eddy::http;

eddy::task<http::response> hello(http::request& request) {
    co_return http::text("Hello, " + std::string(request.path_parameter("name")) + "!\n");
}

int main(int argc, char** argv) {
    http::router routes;
    routes.get("/hello/{name}", hello);
    http::server_options options;
    options.listen = {std::string("tcp://127.0.0.1:") + (argc > 1 ? argv[1] : "8080")};
    return http::run(routes, options);
}
