// JSON API: GET /echo?hello=world answers {"hello":"world"}, and /notes keeps notes in memory.
//
//     json_api [PORT]
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/wire/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

eddy::task<http::response> echo(http::request& request) {
    eddy::json_writer out;
    out.begin_object();
    for (const auto& each : request.query()) out.member(each.name, each.value);
    out.end_object();
    co_return http::json(out.take());
}

class notes {
public:
    eddy::task<http::response> show(http::request& request) {
        const auto found = texts_.find(request.path_integer("id"));
        if (found == texts_.end()) co_return http::text("there is no such note\n", 404);
        co_return http::text(found->second);
    }

    eddy::task<http::response> add(http::request& request) {
        if (!co_await request.collect()) co_return http::response();
        texts_[++last_] = std::move(request.content());
        http::response made = http::json(eddy::json_writer().value(last_).take(), 201);
        made.add("Location", "/notes/" + std::to_string(last_));
        co_return made;
    }

private:
    std::map<std::int64_t, std::string> texts_;
    std::int64_t last_ = 0;
};

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

eddy::task<int> start(std::uint16_t port) {
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!listening) {
        std::fprintf(stderr, "port %d: %s\n", int{port}, listening.error().message().c_str());
        co_return 1;
    }
    notes kept;
    http::router routes;
    routes.get("/echo", echo)
        .get("/notes/{id:int}", [&](http::request& request) { return kept.show(request); })
        .post("/notes", [&](http::request& request) { return kept.add(request); });
    co_await serve(std::move(*listening), routes);
    co_return 0;
}

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start(port));
}
