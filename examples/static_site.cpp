// Site of templates and files: pages by FOLDER/pages/*.mustache, everything else below
// FOLDER/public.
//
//     static_site [PORT [FOLDER]]
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/http/templates.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

class site {
public:
    site(http::templates pages, http::static_files files)
        : pages_(std::move(pages)), files_(std::move(files)) {}

    eddy::task<http::response> home(http::request&) {
        http::template_data::list dishes;
        dishes.push_back({{"name", "Soup"}, {"price", 6.5}});
        dishes.push_back({{"name", "Fish & chips"}, {"price", 12}, {"is_new", true}});
        co_return pages_.render("home", {{"title", "Menu"}, {"dishes", dishes}});
    }

    eddy::task<http::response> greet(http::request& request) {
        co_return pages_.render("hello", {{"name", request.path_parameter("name")}});
    }

    eddy::task<http::response> file(http::request& request) {
        return files_.serve(request, request.path());
    }

    http::response not_found(int status) {
        return pages_.render("missing", {{"status", status}}, status);
    }

private:
    http::templates pages_;
    http::static_files files_;
};

std::optional<site> open_site(const std::string& folder) {
    http::template_options options;
    options.reload = std::getenv("SITE_RELOAD") != nullptr;
    auto pages = http::templates::open(folder + "/pages", options);
    if (!pages) {
        std::fprintf(stderr, "%s\n", pages.error().c_str());
        return std::nullopt;
    }
    auto files = http::static_files::open(folder + "/public", {});
    if (!files) {
        std::fprintf(stderr, "%s/public: %s\n", folder.c_str(), files.error().message().c_str());
        return std::nullopt;
    }
    return site(std::move(*pages), std::move(*files));
}

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

eddy::task<int> start(std::uint16_t port, std::string folder) {
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!listening) {
        std::fprintf(stderr, "port %d: %s\n", int{port}, listening.error().message().c_str());
        co_return 1;
    }
    auto shown = open_site(folder);
    if (!shown) co_return 1;
    http::router routes;
    routes.get("/", [&](http::request& request) { return shown->home(request); })
        .get("/hello/{name}", [&](http::request& request) { return shown->greet(request); })
        .get("/{path...}", [&](http::request& request) { return shown->file(request); })
        .on_refusal([&](const http::request&, int status, std::string_view) {
            return shown->not_found(status);
        });
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
    return (*loop)->run(start(port, argc > 2 ? argv[2] : "site"));
}
