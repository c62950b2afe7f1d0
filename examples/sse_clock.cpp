// Clock by server-sent events: GET / is a page, GET /time its stream of ticks, and texts posted
// to /news go to all clients of GET /news.
//
//     sse_clock [PORT]
#include <eddy/http/event_log.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/io/loop.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <string>

using namespace std::chrono_literals;
namespace http = eddy::http;

constexpr const char* page = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Clock</title>
<h1 id="clock">--:--:--</h1>
<ul id="news"></ul>
<script>
  new EventSource("/time").addEventListener("tick", event =>
      document.getElementById("clock").textContent = event.data);
  new EventSource("/news").onmessage = event => {
    const item = document.createElement("li");
    item.textContent = event.data;
    document.getElementById("news").append(item);
  };
</script>
</html>
)";

std::string time_of_day() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 16> text;
    return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &parts)};
}

eddy::task<eddy::result<>> tick(http::event_writer& out) {
    eddy::sse::event now;
    now.type = "tick";
    for (;;) {
        now.data = time_of_day();
        if (auto sent = co_await out.write(now); !sent) co_return sent;
        if (auto slept = co_await eddy::loop::current().sleep_for(1s); !slept) co_return slept;
    }
}

eddy::task<http::response> show_page(http::request&) { co_return http::html(page); }

eddy::task<http::response> show_time(http::request&) { co_return http::sse(tick); }

class news {
public:
    eddy::task<http::response> add(http::request& request) {
        if (!co_await request.collect()) co_return http::response();
        auto id = log_.publish(request.content());
        if (!id) co_return http::text(id.error().message() + "\n", 503);
        co_return http::text(*id + "\n", 201);
    }

    eddy::task<http::response> follow(http::request& request) {
        co_return log_.subscribe(http::last_event_id(request));
    }

private:
    http::event_log log_;
};

int main(int argc, char** argv) {
    news latest;
    http::router routes;
    routes.get("/", show_page)
        .get("/time", show_time)
        .get("/news", [&](http::request& request) { return latest.follow(request); })
        .post("/news", [&](http::request& request) { return latest.add(request); });
    http::server_options options;
    options.listen = {std::string("tcp://127.0.0.1:") + (argc > 1 ? argv[1] : "8080")};
    return http::run(routes, options);
}
