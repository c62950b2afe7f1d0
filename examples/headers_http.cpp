// Code in the comments of the headers of http, of the JSON writer and of event streams, so that the
// compiler and tools/tidy.py see that it is right. Nothing of it runs.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/client_pool.hpp>
#include <eddy/http/compression.hpp>
#include <eddy/http/event_log.hpp>
#include <eddy/http/form.hpp>
#include <eddy/http/json_body.hpp>
#include <eddy/http/multipart.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/http/templates.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/http1/multipart.hpp>
#include <eddy/wire/http1/parameters.hpp>
#include <eddy/wire/json.hpp>
#include <eddy/wire/sse.hpp>

#include <chrono>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace eddy;
using namespace std::chrono_literals;

task<http::response> show_user(http::request& request);
task<http::response> add_user(http::request& request);
task<http::response> send_file(http::request& request);
task<http::response> log_requests(http::request& request, http::chain rest);

inline http::router http_router() {
    http::router api;
    api.get("/users/{id:int}", show_user)
        .post("/users", add_user)
        .get("/files/{path...}", send_file)
        .use(log_requests);
    return api;
}

task<http::response> greet(http::request& request);

inline task<int> http_server() {
    http::router app;
    app.get("/greet/{name}", greet);
    http::server site(app, {.listen = {"tcp://127.0.0.1:8080"}, .threads = 2});
    if (auto ended = co_await site.run(); !ended) co_return ended.error().value();
    co_return 0;
}

inline int http_run(http::router& app) {
    return http::run(app, {.listen = {"tcp://127.0.0.1:8080"}});
}

inline http::router http_codings() {
    http::router api;
    api.use(http::compress()).use(http::decompress());
    return api;
}

inline task<std::string> http_client_pool() {
    std::string text;
    http::client_pool web;
    auto answer = co_await web.get("https://example.org/");
    if (answer) text = (co_await answer->body().whole(1 << 20)).value_or("");
    co_return text;
}

inline std::string wire_json(std::string_view name, const std::vector<int>& ids) {
    json_writer out;
    out.begin_object().member("name", name).key("ids").begin_array();
    for (const int id : ids) out.value(id);
    out.end_array().end_object();
    return out.take();
}

std::string time_of_day();

inline task<http::response> clock(http::request&) {
    co_return http::sse([](http::event_writer& out) -> task<result<>> {
        for (;;) {
            if (auto sent = co_await out.write(time_of_day()); !sent) co_return sent;
            if (auto slept = co_await loop::current().sleep_for(1s); !slept) co_return slept;
        }
    });
}

inline http::event_log news;

inline bool announce() {
    auto id = news.publish("the shop is open", "notice");
    return id.has_value();
}

inline task<http::response> follow(http::request& incoming) {
    co_return news.subscribe(http::last_event_id(incoming));  // in a handler
}

inline auto pages = [] {
    auto pages = http::templates::open("pages");
    return pages;
}();

inline task<http::response> show_note(http::request&) {
    co_return pages->render("note", {{"title", "Milk & bread"}, {"done", false}});
}

inline std::string wire_sse(sse::parser& parser, byte_buffer& input) {
    for (;;) {
        std::string data;
        sse::step step = parser.parse(input.text());
        switch (step.what) {
            case sse::step_kind::event: data = parser.event().data; break;
            case sse::step_kind::error: return {};
            case sse::step_kind::need_more: break;
        }
        input.consume(step.consumed);
        if (step.what == sse::step_kind::need_more || !data.empty()) return data;
    }
}

inline task<http::response> http_form(http::request& request) {
    auto sent = co_await http::read_form(request);
    if (!sent) co_return http::response();
    const std::string_view name = sent->find("name").value_or("you");
    co_return http::text("hello, " + std::string(name));
}

inline task<http::response> http_json_body(http::request& request) {
    auto text = co_await http::read_json_text(request);
    if (!text) co_return http::response();
    co_return http::json(*text);
}

inline task<http::response> http_multipart(http::request& request) {
    std::size_t bytes = 0;
    http::multipart_reader form(request);
    while (auto part = co_await form.next()) {
        while (auto piece = co_await part->read()) bytes += piece->size();
    }
    if (!form.is_whole()) co_return http::response();
    co_return http::text(std::to_string(bytes));
}

inline bool wire_parameters(std::string& seen) {
    http1::parameter_reader reader("Text/HTML; charset=\"utf-8\"");
    if (!http1::equal_ignoring_case(reader.value(), "text/html")) return false;
    while (auto parameter = reader.next()) seen += parameter->name;
    if (reader.malformed()) return false;
    return true;
}

inline void wire_multipart(http1::multipart_parser& parser, byte_buffer& input) {
    http1::multipart_step step = parser.parse(input.text());
    switch (step.what) {
        case http1::multipart_event::part: break;
        case http1::multipart_event::content: break;
        case http1::multipart_event::part_end: break;
        case http1::multipart_event::end: break;
        case http1::multipart_event::error: break;
        case http1::multipart_event::need_more: break;
    }
    input.consume(step.consumed);
}

inline result<> wire_multipart_writer(byte_buffer& out, std::string_view pixels,
                                      http1::header_list& fields) {
    http1::multipart_writer form(out, "9a0f364b9e99bb48");
    form.field("user", "me").file("photo", "me.png", "image/png", pixels);
    result<> written = form.end();
    result<> typed = fields.add("Content-Type", form.content_type());
    return written ? typed : written;
}

int main() { return 0; }
