// Server of chat completions for measuring: each answer is the same number of pieces, one each so
// many milliseconds.
//
//     chat_api PORT PIECES DELAY_MS
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/io/loop.hpp>

#include <chrono>
#include <cstdlib>
#include <string>

namespace http = eddy::http;

namespace {

int pieces = 18;
std::chrono::milliseconds delay{50};

eddy::task<eddy::result<>> complete(http::event_writer& out) {
    eddy::sse::event next;
    next.data = R"({"choices":[{"delta":{"content":"This is a piece of some length."}}]})";
    for (int i = 0; i < pieces; ++i) {
        if (auto slept = co_await eddy::loop::current().sleep_for(delay); !slept) co_return slept;
        if (auto sent = co_await out.write(next); !sent) co_return sent;
    }
    next.data = "[DONE]";
    co_return co_await out.write(next);
}

eddy::task<http::response> answer(http::request& request) {
    if (!co_await request.collect()) co_return http::response();
    co_return http::sse(complete);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return EXIT_FAILURE;
    pieces = std::atoi(argv[2]);
    delay = std::chrono::milliseconds(std::atoi(argv[3]));
    http::router routes;
    routes.post("/v1/chat/completions", answer);
    http::server_options options;
    options.listen = {"tcp://127.0.0.1:" + std::string(argv[1])};
    options.max_connections = 20'000;
    return http::run(routes, options);
}
