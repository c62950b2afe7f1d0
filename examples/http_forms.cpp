// Forms, cookies, JSON, uploads and content codings of docs/http.md.
//
//     http_forms [PORT]
#include <eddy/http/client_pool.hpp>
#include <eddy/http/compression.hpp>
#include <eddy/http/form.hpp>
#include <eddy/http/json.hpp>
#include <eddy/http/multipart.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace http = eddy::http;

eddy::task<http::response> sign_in(http::request& request) {
    auto sent = co_await http::read_form(request);
    if (!sent) co_return http::response();
    http::cookie name;
    name.name = "name";
    name.value = eddy::http1::percent_encode(sent->find("name").value_or("you"));
    http::response made = http::redirect("/", 303);
    made.set_cookie(name);
    co_return made;
}

eddy::task<http::response> greet(http::request& request) {
    co_return http::text("hello, " + std::string(request.cookie("name").value_or("you")) + "\n");
}

eddy::task<http::response> mark_as_seen(http::request& request) {
    auto note = co_await http::read_json(request);
    if (!note) co_return http::response();
    if (!note->is_object()) co_return http::text("an object is needed\n", 422);
    (*note)["seen"] = true;
    co_return http::json(*note);
}

eddy::task<http::response> upload(http::request& request) {
    request.body().set_limit(1ULL << 30);
    http::multipart_reader form(request);
    std::uint64_t bytes = 0;
    while (auto part = co_await form.next()) {
        if (!part->is_file()) continue;
        while (auto piece = co_await part->read()) bytes += piece->size();
    }
    if (!form.is_whole()) co_return http::response();
    co_return http::text(std::to_string(bytes) + "\n");
}

eddy::task<eddy::result<std::string>> fetch(http::client_pool& web, std::string url) {
    auto answer = co_await web.get(std::move(url));
    if (!answer) co_return eddy::fail(answer.error());
    co_return co_await answer->body().whole(1024 * 1024);
}

/// Shows a page of another server, which the query names.
class mirror {
public:
    eddy::task<http::response> show(http::request& request) {
        auto text = co_await fetch(web_, std::string(request.query("url").value_or("")));
        if (!text) co_return http::text(text.error().message() + "\n", 502);
        co_return http::text(std::move(*text));
    }

private:
    http::client_pool web_;
};

int main(int argc, char** argv) {
    mirror other;
    http::router site;
    site.get("/", greet)
        .post("/sign-in", sign_in)
        .post("/notes", mark_as_seen)
        .post("/files", upload)
        .get("/mirror", [&](http::request& request) { return other.show(request); });
    site.use(http::compress()).use(http::decompress());
    http::server_options options;
    options.listen = {std::string("tcp://127.0.0.1:") + (argc > 1 ? argv[1] : "8080")};
    return http::run(site, options);
}
