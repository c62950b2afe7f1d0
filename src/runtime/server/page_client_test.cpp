// Tests of pages with the WebSocket client: --http-inject.
#include "runtime/server/page_client.hpp"

#include <eddy/http/static_files.hpp>

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(server_pages);

const std::string page = "<!doctype html><body><p>a page</BODY></html>";
const std::string tag(server::page_client_tag);
const std::string injected = "<!doctype html><body><p>a page" + tag + "</BODY></html>";

/// Answer to a request with these fields, each with its line end.
task<std::string> ask_for(subject& of, std::string path, std::string fields = "",
                          std::string method = "GET") {
    const std::uint64_t before = of->count().connections_total;
    talker one = co_await talker::to(of->local());
    co_await until([&] { return of->count().connections_total > before; });
    co_await one.say(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + fields +
                     "Connection: close\r\n\r\n");
    co_return co_await one.rest();
}

std::string body_of(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::string field_of(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

class folder_of_pages {
public:
    folder_of_pages() {
        write("index.html", page);
        write("index.html.gz", "no gzip at all");
        write("none.html", "no end");
        write("a.txt", "</body>");
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_.file(name)) << text;
    }
    json options(json more = json::object()) const {
        more.update({{"http", folder_.path()}, {"http_inject", true}});
        return with(more);
    }

private:
    temporary_folder folder_;
};

TEST_P(server_pages, html_gets_the_script_and_other_files_do_not) {
    run([&]() -> task<void> {
        const folder_of_pages pages;
        for (const bool caches : {false, true}) {
            subject server("server", pages.options({{"http_cache", caches}}));
            co_await server.start();
            for (int i = 0; i < 2; ++i) {
                const std::string whole = co_await ask_for(server, "/");
                EXPECT_EQ(body_of(whole), injected);
                EXPECT_EQ(field_of(whole, "Content-Length"), std::to_string(injected.size()));
            }
            EXPECT_EQ(body_of(co_await ask_for(server, "/none.html")), "no end" + tag);
            EXPECT_EQ(body_of(co_await ask_for(server, "/a.txt")), "</body>");
            const std::string head = co_await ask_for(server, "/", "", "HEAD");
            EXPECT_EQ(field_of(head, "Content-Length"), std::to_string(injected.size()));
            EXPECT_EQ(body_of(head), "");
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_pages, a_compressed_file_is_not_served_in_place_of_an_injected_page) {
    run([&]() -> task<void> {
        const folder_of_pages pages;
        for (const bool caches : {false, true}) {
            subject server("server", pages.options({{"http_cache", caches}}));
            co_await server.start();
            const std::string answer = co_await ask_for(server, "/", "Accept-Encoding: gzip\r\n");
            EXPECT_EQ(body_of(answer), injected);
            EXPECT_EQ(field_of(answer, "Content-Encoding"), "");
            EXPECT_EQ(field_of(answer, "Vary"), "");
            co_await server->stop(0s);
        }
        json options = pages.options();
        options["http_inject"] = false;
        subject without("server", options);
        co_await without.start();
        EXPECT_EQ(body_of(co_await ask_for(without, "/", "Accept-Encoding: gzip\r\n")),
                  "no gzip at all");
        co_await without->stop(0s);
    });
}

TEST_P(server_pages, validators_and_ranges_are_those_of_the_result) {
    run([&]() -> task<void> {
        const folder_of_pages pages;
        std::string etag_without;
        {
            json options = pages.options();
            options["http_inject"] = false;
            subject without("server", options);
            co_await without.start();
            etag_without = field_of(co_await ask_for(without, "/"), "ETag");
            co_await without->stop(0s);
        }
        for (const bool caches : {false, true}) {
            subject server("server", pages.options({{"http_cache", caches}}));
            co_await server.start();
            const std::string etag = field_of(co_await ask_for(server, "/"), "ETag");
            EXPECT_NE(etag, etag_without);
            EXPECT_THAT(co_await ask_for(server, "/", "If-None-Match: " + etag + "\r\n"),
                        StartsWith("HTTP/1.1 304 "));
            EXPECT_EQ(
                body_of(co_await ask_for(server, "/", "If-None-Match: " + etag_without + "\r\n")),
                injected);
            for (std::size_t first : {std::size_t{0}, page.find("</BODY"), page.size()}) {
                const std::string part =
                    co_await ask_for(server, "/",
                                     "Range: bytes=" + std::to_string(first) + "-" +
                                         std::to_string(first + 4) + "\r\n");
                EXPECT_THAT(part, StartsWith("HTTP/1.1 206 "));
                EXPECT_EQ(body_of(part), injected.substr(first, 5));
                EXPECT_THAT(field_of(part, "Content-Range"),
                            HasSubstr("/" + std::to_string(injected.size())));
            }
            const std::string both = co_await ask_for(server, "/", "Range: bytes=0-4,-3\r\n");
            EXPECT_THAT(both, HasSubstr(injected.substr(0, 5)));
            EXPECT_THAT(both, HasSubstr("\r\n\r\nml>"));
            EXPECT_THAT(
                co_await ask_for(server, "/",
                                 "Range: bytes=" + std::to_string(injected.size()) + "-\r\n"),
                StartsWith("HTTP/1.1 416 "));
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_pages, a_page_over_the_limit_is_served_as_it_is) {
    run([&]() -> task<void> {
        const folder_of_pages pages;
        constexpr std::size_t limit = eddy::http::static_files::insertion_limit;
        pages.write("at.html", std::string(limit, 'x'));
        pages.write("over.html", std::string(limit + 1, 'x'));
        for (const bool caches : {false, true}) {
            subject server("server", pages.options({{"http_cache", caches}}));
            co_await server.start();
            const std::string at = co_await ask_for(server, "/at.html");
            EXPECT_EQ(body_of(at).size(), limit + tag.size());
            EXPECT_TRUE(at.ends_with(tag));
            EXPECT_EQ(body_of(co_await ask_for(server, "/over.html")).size(), limit + 1);
            co_await server->stop(0s);
        }
    });
}

TEST_P(server_pages, the_script_has_a_url_of_its_own) {
    run([&]() -> task<void> {
        const folder_of_pages pages;
        subject server("server", pages.options());
        co_await server.start();
        const std::string path(server::page_client_path);
        EXPECT_THAT(tag, HasSubstr("src=\"" + path + "\""));
        const std::string answer = co_await ask_for(server, path);
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
        EXPECT_EQ(field_of(answer, "Content-Type"), "text/javascript; charset=utf-8");
        EXPECT_THAT(body_of(answer), HasSubstr("new WebSocket("));
        EXPECT_THAT(body_of(answer), Not(HasSubstr("eval")));
        const std::string etag = field_of(answer, "ETag");
        EXPECT_THAT(co_await ask_for(server, path, "If-None-Match: " + etag + "\r\n"),
                    StartsWith("HTTP/1.1 304 "));
        EXPECT_EQ(body_of(co_await ask_for(server, path, "", "HEAD")), "");
        EXPECT_THAT(co_await ask_for(server, path, "", "DELETE"), StartsWith("HTTP/1.1 405 "));
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
