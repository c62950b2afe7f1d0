// The part of docs/tour.md that is about HTTP: a server with routes and a client in one program.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/client.hpp>
#include <eddy/http/client_pool.hpp>
#include <eddy/http/form.hpp>
#include <eddy/http/multipart.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
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

task<http::response> sign_in(http::request& incoming) {
    auto form = co_await http::read_form(incoming);
    if (!form) co_return http::response();
    http::response made = http::redirect("/me", 303);
    http::cookie session;
    session.name = "session";
    session.value = http1::percent_encode(form->find("name").value_or("guest"));
    session.max_age = 1h;
    made.set_cookie(session);
    co_return made;
}

task<http::response> show_me(http::request& incoming) {
    co_return http::text(std::string(incoming.cookie("session").value_or("guest")));
}

task<http::response> add_photos(http::request& incoming) {
    http::form_data_limits limits;
    limits.bytes = 100 * 1024 * 1024;
    auto form = co_await http::read_form_data(incoming, limits);
    if (!form) co_return http::response();
    std::string seen;
    for (http::form_data_part& part : form->parts)
        if (part.filename) seen += part.safe_filename() + " " + std::to_string(part.size) + "\n";
    co_return http::text(seen);
}

task<http::response> count_with_digest(http::request&) {
    auto numbers = [](http::body_writer& to) -> task<result<>> {
        auto sent = co_await to.write("0\n1\n2\n");
        http1::header_list fields;
        if (fields.add("Sum", "3")) to.set_trailers(std::move(fields));
        co_return sent;
    };
    co_return http::response(200, "text/plain", http::body::streamed(numbers));
}

http::router make_routes() {
    http::router routes;
    routes.add("GET", "/greet/{name}", greet);
    routes.add("POST", "/measure", measure);
    routes.add("GET", "/count", count);
    routes.post("/session", sign_in).get("/me", show_me).post("/photos", add_photos);
    routes.get("/counted", count_with_digest);
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

task<result<std::string>> send_photo(http::client& server) {
    byte_buffer out;
    http1::multipart_writer form(out, http::make_boundary());
    form.field("album", "birds").file("photo", "../kea.jpg", "image/jpeg", "pixels");
    if (auto written = form.end(); !written) co_return fail(written.error());
    http::client_request question;
    question.method = "POST";
    question.target = "/photos";
    question.body = std::string(out.text());
    if (auto typed = question.headers.add("Content-Type", form.content_type()); !typed)
        co_return fail(typed.error());
    auto answer = co_await server.send(std::move(question));
    if (!answer) co_return fail(answer.error());
    co_return co_await answer->body().whole(1024);
}

task<result<std::string>> meet(http::client& server) {
    http::client_request question;
    question.method = "POST";
    question.target = "/session";
    question.body = "name=you+two";
    if (auto typed = question.headers.add("Content-Type", "application/x-www-form-urlencoded");
        !typed)
        co_return fail(typed.error());
    auto answer = co_await server.send(std::move(question));
    if (!answer) co_return fail(answer.error());
    const auto cookie = answer->headers.find("Set-Cookie");
    if (!cookie) co_return fail(errc::malformed);
    http::client_request next;
    next.target = "/me";
    if (auto added = next.headers.add("Cookie", cookie->substr(0, cookie->find(';'))); !added)
        co_return fail(added.error());
    auto greeting = co_await answer->body().whole(64);
    if (greeting) answer = co_await server.send(std::move(next));
    if (!answer) co_return fail(answer.error());
    co_return co_await answer->body().whole(64);
}

task<result<std::string>> fetch_by_url(http::client_pool& web, std::string url) {
    auto answer = co_await web.get(std::move(url));
    if (!answer) co_return fail(answer.error());
    co_return co_await answer->body().whole(64 * 1024);
}

task<bool> use_pool(std::string site) {
    http::client_pool_options options;
    options.host_connections = 4;
    options.proxies = {};
    http::client_pool web(options);
    auto [one, other] = co_await when_all(fetch_by_url(web, site + "/greet/one"),
                                          fetch_by_url(web, site + "/greet/other"));
    co_return one == "hello, one\n" && other == "hello, other\n" && web.idle_connections() == 2;
}

task<bool> greets(std::string uri) {
    auto where = transport::parse(uri);
    if (!where) co_return false;
    http::client server(*where);
    auto greeting = co_await with_timeout(10s, fetch(server, "/greet/you"));
    co_return greeting && *greeting == "hello, you\n";
}

task<bool> by_a_server() {
    http::router app = make_routes();
    http::server site(app, {.listen = {"tcp://127.0.0.1:0"}, .threads = 2});
    if (auto started = co_await site.start(); !started) co_return false;
    const std::string port = std::to_string(site.addresses()[0].port());
    const bool works = co_await greets("tcp://127.0.0.1:" + port);
    co_await site.stop(5s);
    co_return works;
}

task<bool> by_sessions() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const std::string port = std::to_string(listening->local().port());
    const std::string uri = "tcp://127.0.0.1:" + port;
    application site;
    scope serving;
    serving.spawn(serve_all(std::move(*listening), site));
    bool works = false;
    if (auto where = transport::parse(uri)) {
        http::client server(*where);
        auto greeting = co_await with_timeout(10s, fetch(server, "/greet/you"));
        auto numbers = co_await with_timeout(10s, fetch(server, "/count"));
        auto size = co_await with_timeout(10s, post(server, "12345"));
        auto photo = co_await with_timeout(10s, send_photo(server));
        auto me = co_await with_timeout(10s, meet(server));
        auto counted = co_await with_timeout(10s, fetch(server, "/counted"));
        works = photo && *photo == "kea.jpg 6\n" && me && *me == "you%20two" && counted &&
                *counted == "0\n1\n2\n";
        works = works && greeting && *greeting == "hello, you\n" && numbers &&
                *numbers == "0\n1\n2\n" && size && *size == "5" &&
                co_await use_pool("http://127.0.0.1:" + port);
    }
    serving.cancel();
    co_await serving.join();
    co_return works;
}

task<bool> everything() {
    const bool works = co_await by_a_server();
    co_return co_await by_sessions() && works;
}

}  // namespace

int main() {
    auto made = loop::create();
    const bool works = made && (*made)->run(everything());
    std::puts(works ? "all of it works" : "it does not work");
    return works ? 0 : 1;
}
