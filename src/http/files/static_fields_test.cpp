// Static files in HTTP's terms: conditions, ranges, precompressed variants and listings.
#include <eddy/http/static_files.hpp>

#include "http/files/testing.hpp"
#include "io/files/file_access.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using testing::long_text;

class http_static_fields : public testing::with_files {
protected:
    static void set_time(const std::string& path, std::int64_t seconds) {
        timespec times[2] = {{seconds, 0}, {seconds, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    }

    int status(const std::string& target, std::string_view fields) {
        return status_of(get(target, fields));
    }

    /// Keeps one of the loop's threads for files.
    static task<void> wait_on_thread(loop& of, std::latch& gate) {
        static_cast<void>(co_await run_blocking(file_access::threads(of), [&] { gate.wait(); }));
    }

    static bool has_hung_up(int socket) {
        pollfd seen{.fd = socket, .events = POLLRDHUP, .revents = 0};
        return ::poll(&seen, 1, 0) > 0;
    }
};

EDDY_HTTP_ON_EVERY_BACKEND(http_static_fields);

constexpr char date[] = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr std::int64_t date_seconds = 784'111'777;

TEST_P(http_static_fields, a_file_has_validators) {
    write("a.txt", "hello");
    set_time(root() + "/a.txt", date_seconds);
    static_options options;
    options.cache_control = "max-age=60";
    serve(options);
    const std::string answer = get("/a.txt");
    EXPECT_EQ(field_of(answer, "Last-Modified"), date);
    EXPECT_EQ(field_of(answer, "Accept-Ranges"), "bytes");
    EXPECT_EQ(field_of(answer, "Cache-Control"), "max-age=60");
    const std::string tag = field_of(answer, "ETag");
    EXPECT_TRUE(tag.starts_with('"') && tag.ends_with('"')) << tag;
    EXPECT_EQ(field_of(get("/a.txt"), "ETag"), tag);
    write("a.txt", "HELLO");
    set_time(root() + "/a.txt", date_seconds);
    EXPECT_NE(field_of(get("/a.txt"), "ETag"), tag) << "of the same size and date";
}

TEST_P(http_static_fields, a_file_from_before_1970_has_its_date) {
    constexpr char before[] = "Wed, 31 Dec 1969 23:59:58 GMT";
    write("sub/a.txt", "hello");
    set_time(root() + "/sub/a.txt", -2);
    static_options options;
    options.listing = true;
    serve(options);
    EXPECT_EQ(field_of(get("/sub/a.txt"), "Last-Modified"), before);
    const auto since = [&](std::string_view when) {
        return status("/sub/a.txt", "If-Modified-Since: " + std::string(when) + "\r\n");
    };
    EXPECT_EQ(since(before), 304);
    EXPECT_EQ(since(date), 304);
    EXPECT_EQ(since("Wed, 31 Dec 1969 23:59:57 GMT"), 200);
    EXPECT_EQ(status("/sub/a.txt", "If-Unmodified-Since: " + std::string(before) + "\r\n"), 200);
    EXPECT_EQ(status("/sub/a.txt", "If-Unmodified-Since: Thu, 01 Jan 1950 00:00:00 GMT\r\n"), 412);
    EXPECT_NE(get("/sub/").find("<td>1969-12-31 23:59</td>"), std::string::npos);
}

TEST_P(http_static_fields, conditions_are_evaluated) {
    write("a.txt", "hello");
    set_time(root() + "/a.txt", date_seconds);
    serve();
    const std::string tag = field_of(get("/a.txt"), "ETag");
    const std::string unchanged = get("/a.txt", "If-None-Match: " + tag + "\r\n");
    EXPECT_EQ(status_of(unchanged), 304);
    EXPECT_EQ(body_of(unchanged), "");
    EXPECT_EQ(field_of(unchanged, "ETag"), tag);
    EXPECT_EQ(field_of(unchanged, "Vary"), "Accept-Encoding");
    EXPECT_EQ(status("/a.txt", "If-None-Match: W/" + tag + "\r\n"), 304);
    EXPECT_EQ(status("/a.txt", "If-None-Match: \"x\"\r\n"), 200);
    EXPECT_EQ(status("/a.txt", "If-Modified-Since: " + std::string(date) + "\r\n"), 304);
    EXPECT_EQ(status("/a.txt", "If-Match: " + tag + "\r\n"), 200);
    EXPECT_EQ(status("/a.txt", "If-Match: \"x\"\r\n"), 412);
    EXPECT_EQ(status("/a.txt", "If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT\r\n"), 412);
    const std::string since = "If-Modified-Since: " + std::string(date) + "\r\n";
    EXPECT_EQ(status("/a.txt", since + since), 200) << "several are ignored";
    EXPECT_EQ(status_of(get("/a.txt", "If-None-Match: " + tag + "\r\n", "HEAD")), 304);
    EXPECT_EQ(status("/none", "If-None-Match: *\r\n"), 404) << "nothing to compare with";
    EXPECT_EQ(status("/a.txt",
                     "If-None-Match: \"x\"\r\nIf-Modified-Since: " + std::string(date) + "\r\n"),
              200);
}

TEST_P(http_static_fields, a_range_is_a_part_of_the_file) {
    for (const std::size_t size : {std::size_t{1000}, static_files::slice_bytes * 2}) {
        const std::string content = long_text(size);
        write("a.bin", content);
        serve();
        const std::string answer = get("/a.bin", "Range: bytes=10-29\r\n");
        EXPECT_EQ(status_of(answer), 206);
        EXPECT_EQ(body_of(answer), content.substr(10, 20));
        EXPECT_EQ(field_of(answer, "Content-Range"), "bytes 10-29/" + std::to_string(size));
        EXPECT_EQ(field_of(answer, "Content-Length"), "20");
        EXPECT_EQ(field_of(answer, "Content-Type"), "application/octet-stream");
        EXPECT_TRUE(body_of(get("/a.bin", "Range: bytes=-7\r\n")) == content.substr(size - 7));
        EXPECT_TRUE(body_of(get("/a.bin", "Range: bytes=1-\r\n")) == content.substr(1));
        const std::string beyond = get("/a.bin", "Range: bytes=" + std::to_string(size) + "-\r\n");
        EXPECT_EQ(status_of(beyond), 416);
        EXPECT_EQ(field_of(beyond, "Content-Range"), "bytes */" + std::to_string(size));
        EXPECT_EQ(status("/a.bin", "Range: bytes=0-,0-\r\n"), 200);
        EXPECT_EQ(status("/a.bin", "Range: bytes=0-1\r\nRange: bytes=0-1\r\n"), 200);
        const std::string head = get("/a.bin", "Range: bytes=0-1\r\n", "HEAD");
        EXPECT_EQ(status_of(head), 200) << "ranges are for GET";
        EXPECT_EQ(field_of(head, "Content-Length"), std::to_string(size));
    }
}

TEST_P(http_static_fields, if_range_protects_from_mixing_two_files) {
    write("a.txt", "hello");
    set_time(root() + "/a.txt", date_seconds);
    serve();
    const std::string tag = field_of(get("/a.txt"), "ETag");
    const std::string range = "Range: bytes=0-0\r\nIf-Range: ";
    EXPECT_EQ(status("/a.txt", range + tag + "\r\n"), 206);
    EXPECT_EQ(status("/a.txt", range + tag + "\r\nIf-Range: " + tag + "\r\n"), 200);
    EXPECT_EQ(status("/a.txt", range + "W/" + tag + "\r\n"), 200);
    EXPECT_EQ(status("/a.txt", range + "\"x\"\r\n"), 200);
    EXPECT_EQ(status("/a.txt", range + date + "\r\n"), 206);
    EXPECT_EQ(status("/a.txt", range + "Sun, 06 Nov 1994 08:49:38 GMT\r\n"), 200);
    EXPECT_EQ(status("/a.txt", "Range: bytes=99-\r\nIf-Range: \"x\"\r\n"), 200);
    EXPECT_EQ(status("/a.txt", "If-None-Match: " + tag + "\r\nRange: bytes=0-0\r\n"), 304);
}

TEST_P(http_static_fields, several_ranges_are_a_multipart) {
    for (const std::size_t gap : {std::size_t{100}, static_files::slice_bytes + 5}) {
        const std::string content = long_text(2 * gap + 100);
        write("a.txt", content);
        serve();
        const std::string all = std::to_string(content.size());
        const std::string middle = "5-" + std::to_string(gap + 4);
        const std::string answer = get("/a.txt", "Range: bytes=-3," + middle + ",0-0\r\n");
        EXPECT_EQ(status_of(answer), 206);
        const std::string type = field_of(answer, "Content-Type");
        ASSERT_TRUE(type.starts_with("multipart/byteranges; boundary=")) << type;
        const std::string line = "--" + type.substr(type.find('=') + 1);
        const auto part = [&](const std::string& range, const std::string& text) {
            return line + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes " +
                   range + "/" + all + "\r\n\r\n" + text + "\r\n";
        };
        const std::string expected =
            part(std::to_string(content.size() - 3) + "-" + std::to_string(content.size() - 1),
                 content.substr(content.size() - 3)) +
            part(middle, content.substr(5, gap)) + part("0-0", content.substr(0, 1)) + line +
            "--\r\n";
        EXPECT_TRUE(body_of(answer) == expected) << gap;
        EXPECT_EQ(field_of(answer, "Content-Length"), std::to_string(expected.size()));
        EXPECT_EQ(field_of(answer, "Content-Range"), "");
    }
}

TEST_P(http_static_fields, an_empty_file_has_no_range) {
    write("a.txt", "");
    serve();
    EXPECT_EQ(status("/a.txt", "Range: bytes=0-\r\n"), 416);
    EXPECT_EQ(status("/a.txt", "Range: bytes=-1\r\n"), 200);
}

TEST_P(http_static_fields, precompressed_files_are_chosen_by_quality) {
    write("a.js", "plain");
    write("a.js.gz", "as gzip");
    write("a.js.br", "as br");
    write("b.js", "plain");
    write("b.js.zst", "as zstd");
    write("c.js.gz", "without its file");
    write("d.png", "plain");
    write("d.png.gz", "as gzip");
    serve();
    const auto with = [](const std::string& accepted) {
        return "Accept-Encoding: " + accepted + "\r\n";
    };
    const std::string br = get("/a.js", with("gzip, deflate, br, zstd"));
    EXPECT_EQ(body_of(br), "as br");
    EXPECT_EQ(field_of(br, "Content-Encoding"), "br");
    EXPECT_EQ(field_of(br, "Content-Type"), "text/javascript; charset=utf-8");
    EXPECT_EQ(field_of(br, "Vary"), "Accept-Encoding");
    EXPECT_EQ(body_of(get("/a.js", with("gzip, br;q=0.5"))), "as gzip");
    EXPECT_EQ(body_of(get("/b.js", with("gzip, br, zstd"))), "as zstd");
    EXPECT_EQ(status("/c.js", with("gzip")), 404);
    EXPECT_EQ(body_of(get("/c.js.gz")), "without its file");
    const std::string image = get("/d.png", with("gzip"));
    EXPECT_EQ(body_of(image), "plain") << "a type that is compressed already";
    EXPECT_EQ(field_of(image, "Vary"), "");
    const std::string plain = get("/a.js");
    EXPECT_EQ(body_of(plain), "plain");
    EXPECT_EQ(field_of(plain, "Content-Encoding"), "");
    EXPECT_EQ(field_of(plain, "Vary"), "Accept-Encoding") << "others get another one";

    // Each variant has a tag of its own, and ranges are of the variant.
    const std::string tag = field_of(br, "ETag");
    EXPECT_NE(tag, field_of(plain, "ETag"));
    EXPECT_EQ(status("/a.js", with("br") + "If-None-Match: " + tag + "\r\n"), 304);
    EXPECT_EQ(status("/a.js", "If-None-Match: " + tag + "\r\n"), 200);
    const std::string part =
        get("/a.js", with("br") + "Range: bytes=0-1\r\nIf-Range: " + tag + "\r\n");
    EXPECT_EQ(status_of(part), 206);
    EXPECT_EQ(body_of(part), "as");
    EXPECT_EQ(field_of(part, "Content-Encoding"), "br");
    EXPECT_EQ(status("/a.js", "Range: bytes=0-1\r\nIf-Range: " + tag + "\r\n"), 200);

    static_options options;
    options.precompressed = false;
    serve(options);
    const std::string off = get("/a.js", with("br"));
    EXPECT_EQ(body_of(off), "plain");
    EXPECT_EQ(field_of(off, "Vary"), "");
}

TEST_P(http_static_fields, a_variant_that_leads_out_is_none) {
    write("a.js", "plain");
    std::ofstream(folder_.file("secret")) << "secret";
    std::filesystem::create_symlink("../secret", root() + "/a.js.br");
    ASSERT_EQ(::mkfifo((root() + "/a.js.gz").c_str(), 0666), 0);
    for (const std::size_t cache : {std::size_t{0}, std::size_t{100'000}}) {
        static_options options;
        options.cache_bytes = cache;
        serve(options);
        EXPECT_EQ(body_of(get("/a.js", "Accept-Encoding: br, gzip\r\n")), "plain");
    }
}

TEST_P(http_static_fields, a_folder_without_its_index_is_listed_on_request) {
    write("sub/b <&>.txt", "12345");
    write("sub/folder/x", "");
    write("sub/.hidden", "");
    write("indexed/index.html", "index");
    std::ofstream(folder_.file("secret")) << "a secret";
    std::filesystem::create_symlink("../../secret", root() + "/sub/out");
    std::filesystem::create_symlink("../indexed/index.html", root() + "/sub/link");
    ASSERT_EQ(::mkfifo((root() + "/sub/fifo").c_str(), 0666), 0);
    serve();
    EXPECT_EQ(status("/sub/", ""), 404) << "off at first";
    static_options options;
    options.listing = true;
    serve(options);
    const std::string answer = get("/sub/");
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_EQ(field_of(answer, "Content-Type"), "text/html; charset=utf-8");
    for (const char* part :
         {"href=\"b%20%3C%26%3E.txt\">b &lt;&amp;&gt;.txt</a></td><td title=\"5 bytes\">5 B</td>",
          "href=\"folder/\"", "href=\"link\">link</a></td><td title=\"5 bytes\">5 B</td>",
          "href=\"../\""})
        EXPECT_NE(answer.find(part), answer.npos) << part << "\n" << answer;
    for (const char* part : {"hidden", "out", "fifo", "index.html"})
        EXPECT_EQ(answer.find(part), answer.npos) << part;
    EXPECT_NE(get("/").find("href=\"sub/\""), std::string::npos);
    EXPECT_EQ(body_of(get("/indexed/")), "index");
    EXPECT_EQ(status("/none/", ""), 404);
    EXPECT_EQ(status("/sub", ""), 301);
    EXPECT_EQ(status("/../", ""), 404);
    EXPECT_EQ(body_of(get("/sub/", "", "HEAD")), "");
}

TEST_P(http_static_fields, a_listing_is_sorted_and_has_pages) {
    const auto count = [](const std::string& page) {
        std::size_t rows = 0;
        for (auto at = page.find("href=\"f"); at != page.npos; at = page.find("href=\"f", at + 1))
            ++rows;
        return rows;
    };
    for (std::size_t i = 0; i < static_files::listing_limit; ++i)
        write("f" + std::to_string(i), "");
    static_options options;
    options.listing = true;
    options.listed_entries = static_files::listing_limit + 1;
    serve(options);
    const std::string full = get("/");
    EXPECT_EQ(count(full), static_files::listing_limit);
    EXPECT_LT(full.find("\"f9\""), full.find("\"f10\"")) << "natural order";
    EXPECT_EQ(full.find("Next page"), full.npos);
    write("f_one_more", "longer");
    const std::string first = get("/");
    EXPECT_EQ(count(first), static_files::listing_limit);
    EXPECT_EQ(first.find("f_one_more"), first.npos);
    EXPECT_NE(first.find("Next page"), first.npos);
    EXPECT_EQ(first.find("more entries"), first.npos);
    const std::string second = get("/?page=2");
    EXPECT_EQ(count(second), 1u);
    EXPECT_NE(second.find("href=\"f_one_more\""), second.npos);
    const std::string by_size = get("/?sort=size&order=desc");
    EXPECT_LT(by_size.find("f_one_more"), by_size.find("href=\"f0\""));
    write("f_beyond", "");
    EXPECT_NE(get("/").find("The folder has more entries; these are the first 1,001 that"),
              std::string::npos);
}

TEST_P(http_static_fields, listings_wait_for_one_another) {
    loop_options narrow;
    narrow.file_threads = 1;
    narrow.max_file_queue = 2;  // more at a time are refused
    make_loop(narrow);
    write("sub/a.txt", "");
    static_options options;
    options.listing = true;
    options.index = "";
    serve(options);
    limits_.request_time = limits_.read_time = limits_.idle_time = std::chrono::seconds(60);
    const auto list = [this](std::string& answer) -> task<void> {
        eddy::testing::connection both = co_await connect();
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(http::serve(std::move(both.server), handler_, limits_));
            testing::must(co_await both.client.write_all(
                std::string_view("GET /sub/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
            co_await read_all(both.client, answer);
            both.client.close();
        });
    };
    std::vector<std::string> answers(20);
    run([&]() -> task<void> {
        co_await join_scope([&](scope& clients) -> task<void> {
            for (std::string& each : answers) clients.spawn(list(each));
            co_return;
        });
    });
    for (const std::string& each : answers) EXPECT_EQ(status_of(each), 200) << each;
}

TEST_P(http_static_fields, a_listing_that_waits_is_not_made_for_a_client_that_has_left) {
    if (simulated()) GTEST_SKIP() << "its files need no thread";
    loop_options narrow;
    narrow.file_threads = 1;
    make_loop(narrow);
    write("sub/a.txt", "");
    static_options options;
    options.listing = true;
    options.index = "";
    serve(options);
    limits_.request_time = limits_.read_time = limits_.idle_time = std::chrono::seconds(60);
    std::map<std::string, int, std::less<>> answered;
    handler_.answer = [&](request& incoming) -> task<response> {
        const std::string client(incoming.query("client").value_or(""));
        response made = co_await files_->serve(incoming, incoming.path());
        answered[client] = made.status;
        co_return made;
    };
    run([&]() -> task<void> {
        std::latch gate(1);
        std::vector<eddy::testing::connection> clients;
        std::vector<int> sockets;
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(wait_on_thread(here(), gate));
            for (int i = 0; i < 4; ++i) {
                clients.push_back(co_await connect());
                sockets.push_back(clients.back().server.native_handle());
                serving.spawn(http::serve(std::move(clients.back().server), handler_, limits_));
                const std::string asked = "GET /sub/?client=" + std::to_string(i) +
                                          " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                testing::must(co_await clients.back().client.write_all(asked));
                while (handler_.requests <= i) co_await here().yield();
            }
            clients[2].client.close();
            while (!has_hung_up(sockets[2])) co_await here().yield();
            gate.count_down();
            for (int i : {0, 1, 3}) {
                std::string answer;
                co_await read_all(clients[static_cast<std::size_t>(i)].client, answer);
                clients[static_cast<std::size_t>(i)].client.close();
                EXPECT_EQ(status_of(answer), 200);
            }
        });
    });
    EXPECT_EQ(answered, (std::map<std::string, int, std::less<>>{
                            {"0", 200}, {"1", 200}, {"2", 503}, {"3", 200}}));
}

TEST_P(http_static_fields, a_fallback_answers_for_any_path_without_a_file) {
    write("app.html", "the application");
    write(".hidden", "secret");
    write("a.txt", "a file");
    static_options options;
    options.fallback = "app.html";
    serve(options);
    for (const char* path :
         {"/users/7", "/a%2Fb", "/.settings", "/.hidden", "/100%", "/%zz", "/a%00b", "/users/7/"}) {
        const std::string answer = get(path);
        EXPECT_EQ(status_of(answer), 200) << path;
        EXPECT_EQ(body_of(answer), "the application") << path;
    }
    EXPECT_EQ(body_of(get("/a.txt")), "a file");
    for (const char* path : {"/x/..", "/%2e%2e/x", "/./x"})
        EXPECT_EQ(status(path, ""), 404) << path << " is no route";
    serve();
    for (const char* path : {"/a%2Fb", "/.hidden", "/100%"})
        EXPECT_EQ(status(path, ""), 404) << path;
}

}  // namespace
}  // namespace eddy::http
