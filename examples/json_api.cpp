// JSON API: GET /echo?hello=world answers {"hello":"world"}, and /notes keeps notes in memory.
//
//     json_api [PORT]
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/wire/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

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

int main(int argc, char** argv) {
    const std::string port = argc > 1 ? argv[1] : "8080";
    notes kept;
    http::router routes;
    routes.get("/echo", echo)
        .get("/notes/{id:int}", [&](http::request& request) { return kept.show(request); })
        .post("/notes", [&](http::request& request) { return kept.add(request); });
    return http::run(routes, {.listen = {"tcp://127.0.0.1:" + port}});
}
