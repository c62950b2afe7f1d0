// Site of templates and files: pages by FOLDER/pages/*.mustache, everything else below
// FOLDER/public.
//
//     static_site [PORT [FOLDER]]
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/http/templates.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

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

int main(int argc, char** argv) {
    auto shown = open_site(argc > 2 ? argv[2] : "site");
    if (!shown) return 1;
    http::router routes;
    routes.get("/", [&](http::request& request) { return shown->home(request); })
        .get("/hello/{name}", [&](http::request& request) { return shown->greet(request); })
        .get("/{path...}", [&](http::request& request) { return shown->file(request); })
        .on_refusal([&](const http::request&, int status, std::string_view) {
            return shown->not_found(status);
        });
    http::server_options options;
    options.listen = {std::string("tcp://127.0.0.1:") + (argc > 1 ? argv[1] : "8080")};
    return http::run(routes, options);
}
