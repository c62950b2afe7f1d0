// The part of docs/tour.md that is about HTTP: a server with routes and a client in one program.
#include <eddy/http/client.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

task<http::response> greet(http::request& incoming) {
    const std::string name(incoming.path_parameter("name"));
    co_return http::response(200, "text/plain", "hello, " + name + "\n");
}

task<http::response> measure(http::request& incoming) {
    std::size_t bytes = 0;
    while (auto piece = co_await incoming.body().read()) bytes += piece->size();
    co_return http::response(200, "text/plain", std::to_string(bytes));
}

task<http::response> count(http::request&) {
    auto numbers = [](http::body_writer& to) -> task<result<>> {
        for (int i = 0; i < 3; ++i) {
            const std::string line = std::to_string(i) + "\n";
            if (auto sent = co_await to.write(line); !sent) co_return fail(sent.error());
        }
        co_return result<>{};
    };
    co_return http::response(200, "text/plain", http::body::streamed(numbers));
}

http::router make_routes() {
    http::router routes;
    routes.add("GET", "/greet/{name}", greet);
    routes.add("POST", "/measure", measure);
    routes.add("GET", "/count", count);
    return routes;
}

class application final : public http::request_handler {
public:
    task<http::response> handle(http::request& incoming) override {
        return routes_.dispatch(incoming);
    }
    http::response reject(int status, std::string_view what) override {
        return http::response(status, "text/plain", std::string(what));
    }

    int sessions = 0;

private:
    http::router routes_ = make_routes();
};

task<> serve_one(stream peer, application& site) {
    if (site.sessions == 100) {
        http::response busy(503, "text/plain", "try again later\n");
        static_cast<void>(co_await http::send_and_close(std::move(peer), std::move(busy), 1s));
        co_return;
    }
    ++site.sessions;
    http::session_limits limits;
    limits.idle_time = 30s;
    co_await http::serve(std::move(peer), site, limits);
    --site.sessions;
}

task<> serve_all(listener from, application& site) {
    co_await with_scope([&](scope& sessions) -> task<> {
        while (auto peer = co_await from.accept())
            sessions.spawn(serve_one(std::move(*peer), site));
    });
}

task<result<std::string>> fetch(http::client& server, std::string target) {
    http::client_request question;
    question.target = std::move(target);
    auto answer = co_await server.send(std::move(question));
    if (!answer) co_return fail(answer.error());
    co_return co_await answer->body().whole(64 * 1024);
}

task<result<std::string>> post(http::client& server, std::string text) {
    http::client_request question;
    question.method = "POST";
    question.target = "/measure";
    question.body = std::move(text);
    auto answer = co_await server.send(std::move(question));
    if (!answer) co_return fail(answer.error());
    co_return co_await answer->body().whole(64);
}

task<bool> everything() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const std::string uri = "tcp://127.0.0.1:" + std::to_string(listening->local().port());
    application site;
    scope serving;
    serving.spawn(serve_all(std::move(*listening), site));
    bool works = false;
    if (auto where = transport::parse(uri)) {
        http::client server(*where);
        auto greeting = co_await with_timeout(10s, fetch(server, "/greet/you"));
        auto numbers = co_await with_timeout(10s, fetch(server, "/count"));
        auto size = co_await with_timeout(10s, post(server, "12345"));
        works = greeting && *greeting == "hello, you\n" && numbers && *numbers == "0\n1\n2\n" &&
                size && *size == "5";
    }
    serving.cancel();
    co_await serving.join();
    co_return works;
}

}  // namespace

int main() {
    auto made = loop::create();
    const bool works = made && (*made)->run(everything());
    std::puts(works ? "all of it works" : "it does not work");
    return works ? 0 : 1;
}
