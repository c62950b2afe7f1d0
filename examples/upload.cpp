// Upload: a page with a form that uploads files. They are streamed to a folder, which is listed.
//
//     upload [PORT [FOLDER [MEBIBYTES]]]
#include <eddy/base/bytes.hpp>
#include <eddy/http/multipart.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>

#include <fcntl.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;
namespace http = eddy::http;

constexpr std::string_view page = R"(<!doctype html>
<title>Upload</title>
<form action="/" method="post" enctype="multipart/form-data">
<input type="file" name="files" multiple>
<button>Upload</button>
</form>
<p><a href="/files/">What is there</a></p>
)";

class uploads {
public:
    uploads(std::string folder, http::static_files files, std::uint64_t most)
        : folder_(std::move(folder)), files_(std::move(files)), most_(most) {}

    eddy::task<http::response> receive(http::request& request) {
        request.body().set_limit(most_);
        http::multipart_reader form(request);
        while (auto part = co_await form.next()) {
            if (part->filename().empty()) continue;
            auto saved = co_await save(*part);
            if (!saved && !form.failure())
                co_return http::text("a file could not be stored: " + saved.error().message(), 500);
        }
        // A form that is too large, malformed or cut off is answered by the session.
        if (!form.is_whole()) co_return http::response();
        co_return http::redirect("/files/", 303);
    }

    eddy::task<http::response> show(http::request& request) {
        http::response found = co_await files_.serve(request, request.path().substr(6));
        // A page that was uploaded must not act in this site's name.
        found.add("Content-Security-Policy", "sandbox");
        found.add("X-Content-Type-Options", "nosniff");
        co_return found;
    }

private:
    // The file gets its name once it is whole. Names that clients choose never begin with a dot.
    eddy::task<eddy::result<>> save(http::multipart_part& part) {
        const std::string unfinished = folder_ + "/.part" + std::to_string(++last_);
        auto opened = co_await eddy::file::open(unfinished, O_CREAT | O_TRUNC | O_WRONLY);
        if (!opened) co_return eddy::fail(opened.error());
        auto done = co_await copy(part, *opened);
        const std::string name = folder_ + "/" + part.safe_filename();
        if (done) done = co_await eddy::file::rename(unfinished, name);
        if (!done) static_cast<void>(co_await eddy::file::remove(unfinished));
        co_return done;
    }

    static eddy::task<eddy::result<>> copy(http::multipart_part& from, eddy::file& to) {
        std::uint64_t size = 0;
        for (;;) {
            auto piece = co_await from.read();
            if (!piece && piece.error() == eddy::errc::end_of_stream) co_return eddy::result<>();
            if (!piece) co_return eddy::fail(piece.error());
            auto written = co_await to.write_at(size, eddy::as_bytes(*piece));
            if (!written) co_return written;
            size += piece->size();
        }
    }

    std::string folder_;
    http::static_files files_;
    std::uint64_t most_;  // bytes of a form
    std::uint64_t last_ = 0;
};

eddy::task<http::response> show_form(http::request&) { co_return http::html(std::string(page)); }

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

eddy::task<int> start(std::uint16_t port, std::string folder, std::uint64_t most) {
    http::static_options options;
    options.listing = true;
    auto files = http::static_files::open(folder, options);
    if (!files) {
        std::fprintf(stderr, "%s: %s\n", folder.c_str(), files.error().message().c_str());
        co_return 1;
    }
    auto listening = eddy::tcp::listen("127.0.0.1", port);
    if (!listening) {
        std::fprintf(stderr, "port %d: %s\n", int{port}, listening.error().message().c_str());
        co_return 1;
    }
    uploads kept(std::move(folder), std::move(*files), most);
    const auto show = [&](http::request& request) { return kept.show(request); };
    http::router routes;
    routes.get("/", show_form)
        .post("/", [&](http::request& request) { return kept.receive(request); })
        .get("/files/", show)
        .get("/files/{path...}", show);
    co_await serve(std::move(*listening), routes);
    co_return 0;
}

int main(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
    const std::string folder = argc > 2 ? argv[2] : ".";
    const std::uint64_t mebibytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1024;
    auto loop = eddy::loop::create();
    if (!loop) {
        std::fprintf(stderr, "no event loop: %s\n", loop.error().message().c_str());
        return 1;
    }
    return (*loop)->run(start(port, folder, mebibytes * 1024 * 1024));
}
