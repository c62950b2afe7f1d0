// The pieces of docs/http.md that are no program of their own: a shop with an API, and its client,
// in one process.
#include <eddy/http/client.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace std::chrono_literals;
namespace http = eddy::http;

class shop {
public:
    eddy::task<http::response> list(http::request& request) {
        const std::string wanted(request.query("contains").value_or(""));
        eddy::json_writer out;
        out.begin_array();
        for (const auto& [id, name] : items_)
            if (name.contains(wanted))
                out.begin_object().member("id", id).member("name", name).end_object();
        out.end_array();
        co_return http::json(out.take());
    }

    eddy::task<http::response> show(http::request& request) {
        const auto found = items_.find(request.path_integer("id"));
        if (found == items_.end()) co_return http::text("there is no such item\n", 404);
        co_return http::text(found->second);
    }

    eddy::task<http::response> add(http::request& request) {
        request.body().set_limit(1000);
        if (!co_await request.collect()) co_return http::response();
        items_[++last_] = std::move(request.content());
        http::response made(201);
        made.add("Location", "/api/items/" + std::to_string(last_));
        co_return made;
    }

    eddy::task<http::response> table(http::request&) {
        http::response made(200, "text/csv", http::body::streamed([this](http::body_writer& to) {
                                return write_table(to);
                            }));
        made.add("Cache-Control", "no-store");
        co_return made;
    }

private:
    eddy::task<eddy::result<>> write_table(http::body_writer& to) {
        for (const auto& [id, name] : items_) {
            const std::string line = std::to_string(id) + "," + name + "\n";
            if (auto sent = co_await to.write(line); !sent) co_return sent;
        }
        co_return eddy::result<>();
    }

    std::map<std::int64_t, std::string> items_;
    std::int64_t last_ = 0;
};

// A body of any size, in constant memory.
eddy::task<http::response> measure(http::request& request) {
    request.body().set_limit(10ULL << 30);
    std::uint64_t bytes = 0;
    for (;;) {
        auto piece = co_await request.body().read();
        if (!piece && piece.error() == eddy::errc::end_of_stream) break;
        if (!piece) co_return http::response();
        bytes += piece->size();
    }
    co_return http::text(std::to_string(bytes) + "\n");
}

eddy::task<http::response> require_token(http::request& request, http::chain rest) {
    const auto token = request.headers().find("Authorization");
    if (token != "Bearer open-sesame") co_return http::text("a token is needed\n", 401);
    co_return co_await rest(request);
}

eddy::task<http::response> forbid_framing(http::request& request, http::chain rest) {
    http::response answer = co_await rest(request);
    answer.add("X-Frame-Options", "DENY");
    co_return answer;
}

http::response show_refusal(const http::request& request, int status, std::string_view) {
    return http::text(std::to_string(status) + ": " + std::string(request.path()) + "\n", status);
}

http::response show_error(int status, std::string_view what) {
    return http::text("sorry: " + std::string(what) + "\n", status);
}

http::router make_routes(shop& of) {
    http::router api;
    api.get("/items", [&](http::request& request) { return of.list(request); })
        .post("/items", [&](http::request& request) { return of.add(request); })
        .get("/items/{id:int}", [&](http::request& request) { return of.show(request); })
        .get("/items.csv", [&](http::request& request) { return of.table(request); })
        .use(require_token);

    http::router site;
    site.mount("/api", std::move(api))
        .put("/measure", measure)
        .use(forbid_framing)
        .on_refusal(show_refusal)
        .on_error(show_error);
    return site;
}

http::session_limits make_limits() {
    http::session_limits limits;
    limits.parser.header_bytes = 8 * 1024;
    limits.parser.body = 64 * 1024;
    limits.request_time = 10s;
    limits.idle_time = 30s;
    return limits;
}

eddy::task<> serve(eddy::listener from, http::router& routes) {
    co_await eddy::with_scope([&](eddy::scope& clients) -> eddy::task<> {
        while (auto peer = co_await from.accept())
            clients.spawn(http::serve(std::move(*peer), routes, make_limits()));
    });
}

struct answer {
    int status = 0;
    std::string text;
};

eddy::task<eddy::result<answer>> ask(http::client& server, http::client_request question) {
    if (!question.headers.add("Authorization", "Bearer open-sesame"))
        co_return eddy::fail(eddy::errc::malformed);
    auto got = co_await server.send(std::move(question));
    if (!got) co_return eddy::fail(got.error());
    auto text = co_await got->body().whole(1024 * 1024);
    if (!text) co_return eddy::fail(text.error());
    answer made;
    made.status = got->status;
    made.text = std::move(*text);
    co_return made;
}

eddy::task<eddy::result<answer>> add_item(http::client& server, std::string name) {
    http::client_request question;
    question.method = "POST";
    question.target = "/api/items";
    question.body = std::move(name);
    co_return co_await eddy::with_timeout(10s, ask(server, std::move(question)));
}

eddy::task<eddy::result<answer>> get(http::client& server, std::string target) {
    http::client_request question;
    question.target = std::move(target);
    co_return co_await eddy::with_timeout(10s, ask(server, std::move(question)));
}

eddy::task<eddy::result<answer>> put(http::client& server, std::string target, std::string text) {
    http::client_request question;
    question.method = "PUT";
    question.target = std::move(target);
    question.body = std::move(text);
    co_return co_await eddy::with_timeout(10s, ask(server, std::move(question)));
}

bool is(const eddy::result<answer>& got, int status, std::string_view text) {
    if (got && got->status == status && got->text == text) return true;
    std::printf("expected %d %s", status, std::string(text).c_str());
    if (got) std::printf("got %d %s\n", got->status, got->text.c_str());
    return false;
}

eddy::task<bool> use_shop(http::client& server) {
    const auto tea = co_await add_item(server, "tea");
    const auto coffee = co_await add_item(server, "coffee");
    const auto listed = co_await get(server, "/api/items?contains=ff");
    const auto shown = co_await get(server, "/api/items/1");
    const auto missing = co_await get(server, "/api/items/3");
    const auto table = co_await get(server, "/api/items.csv");
    const auto nothing = co_await get(server, "/nothing");
    const auto too_long = co_await add_item(server, std::string(1001, 'x'));
    co_return is(tea, 201, "") && is(coffee, 201, "") &&
        is(listed, 200, R"([{"id":2,"name":"coffee"}])") && is(shown, 200, "tea") &&
        is(missing, 404, "there is no such item\n") && is(table, 200, "1,tea\n2,coffee\n") &&
        is(nothing, 404, "404: /nothing\n") &&
        is(too_long, 413, "sorry: Content-Length is above the limit\n");
}

eddy::task<bool> measure_upload(http::client& server) {
    const auto measured = co_await put(server, "/measure", std::string(100'000, 'x'));
    co_return is(measured, 200, "100000\n");
}

eddy::task<bool> everything() {
    auto listening = eddy::tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const auto where =
        eddy::transport::parse("tcp://127.0.0.1:" + std::to_string(listening->local().port()));
    if (!where) co_return false;
    shop tea_house;
    http::router routes = make_routes(tea_house);
    eddy::scope serving;
    serving.spawn(serve(std::move(*listening), routes));
    http::client server(*where);
    const bool works = co_await use_shop(server) && co_await measure_upload(server);
    server.close();
    serving.cancel();
    co_await serving.join();
    co_return works;
}

}  // namespace

int main() {
    auto made = eddy::loop::create();
    const bool works = made && (*made)->run(everything());
    std::puts(works ? "all of it works" : "it does not work");
    return works ? 0 : 1;
}
