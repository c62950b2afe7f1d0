// Static files from memory: what is cached, for how long, and within which limits.
#include <eddy/http/static_files.hpp>

#include "http/files/testing.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::long_text;

class http_static_cache : public testing::with_files {
protected:
    void serve_cached(duration time = 24h, std::size_t bytes = 10'000'000) {
        static_options options;
        options.cache_bytes = bytes;
        options.cache_time = time;
        serve(options);
    }

    /// Asks again until the answer is as expected; false when it never is.
    bool comes_to(std::string_view target, std::function<bool(const std::string&)> expected,
                  std::string_view fields = {}) {
        for (int i = 0; i < 4000; ++i) {
            if (expected(get(target, fields))) return true;
            run([]() -> task<> { static_cast<void>(co_await loop::current().sleep_for(5ms)); });
        }
        return false;
    }
};

EDDY_HTTP_ON_EVERY_BACKEND(http_static_cache);

TEST_P(http_static_cache, a_cached_file_is_served_as_any_other) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{5}, static_files::whole_limit, static_files::whole_limit + 1,
          static_files::cached_file_limit, static_files::cached_file_limit + 1}) {
        const std::string content = long_text(size);
        write("a.bin", content);
        // Not within this second, up to which Last-Modified goes at most.
        std::filesystem::last_write_time(root() + "/a.bin",
                                         std::filesystem::file_time_type::clock::now() - 1h);
        serve();
        const std::string fresh = get("/a.bin");
        serve_cached();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(get("/a.bin") == fresh) << size;
        EXPECT_EQ(files_->cached_bytes() > size, size <= static_files::cached_file_limit);
        EXPECT_EQ(get("/a.bin", {}, "HEAD"), fresh.substr(0, fresh.size() - size));
        if (size < 100) continue;
        EXPECT_TRUE(body_of(get("/a.bin", "Range: bytes=7-\r\n")) == content.substr(7));
        const std::string parts = get("/a.bin", "Range: bytes=0-9,20-\r\n");
        EXPECT_NE(parts.find("\r\n\r\n" + content.substr(20) + "\r\n--"), parts.npos);
        const std::string tag = field_of(fresh, "ETag");
        EXPECT_EQ(status_of(get("/a.bin", "If-None-Match: " + tag + "\r\n")), 304);
    }
}

TEST_P(http_static_cache, variants_are_cached_one_by_one) {
    write("a.js", "plain");
    write("a.js.gz", "as gzip");
    write("a.js.br", "as br");
    serve_cached();
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(body_of(get("/a.js")), "plain");
        EXPECT_EQ(body_of(get("/a.js", "Accept-Encoding: gzip\r\n")), "as gzip");
        const std::string br = get("/a.js", "Accept-Encoding: gzip, zstd, br\r\n");
        EXPECT_EQ(body_of(br), "as br");
        EXPECT_EQ(field_of(br, "Vary"), "Accept-Encoding");
    }
}

TEST_P(http_static_cache, a_hot_file_needs_no_file_system) {
    write("index.html", "hello");
    serve_cached();
    EXPECT_EQ(body_of(get("/")), "hello");
    std::filesystem::remove(root() + "/index.html");
    EXPECT_EQ(body_of(get("/")), "hello");
}

TEST_P(http_static_cache, what_has_gone_is_dropped_after_its_time) {
    write("a.txt", "hello");
    serve_cached(10ms);
    EXPECT_EQ(body_of(get("/a.txt")), "hello");
    EXPECT_GT(files_->cached_bytes(), 0u);
    std::filesystem::remove(root() + "/a.txt");
    EXPECT_TRUE(comes_to("/a.txt", [](const std::string& a) { return status_of(a) == 404; }));
    EXPECT_EQ(files_->cached_bytes(), 0u);
}

TEST_P(http_static_cache, changes_of_files_are_seen) {
    write("a.js", "first");
    serve_cached(10ms);
    EXPECT_EQ(body_of(get("/a.js", "Accept-Encoding: br\r\n")), "first");
    write("a.js", "other");
    EXPECT_TRUE(comes_to("/a.js", [](const std::string& a) { return body_of(a) == "other"; }));
    // A variant that was not there, and goes again.
    write("a.js.br", "as br");
    EXPECT_TRUE(comes_to(
        "/a.js", [](const std::string& a) { return body_of(a) == "as br"; },
        "Accept-Encoding: br\r\n"));
    std::filesystem::remove(root() + "/a.js.br");
    EXPECT_TRUE(comes_to(
        "/a.js", [](const std::string& a) { return body_of(a) == "other"; },
        "Accept-Encoding: br\r\n"));
    // One that takes its place by a rename.
    write("new.js", "third");
    std::filesystem::rename(root() + "/new.js", root() + "/a.js");
    EXPECT_TRUE(comes_to("/a.js", [](const std::string& a) { return body_of(a) == "third"; }));
    std::filesystem::remove(root() + "/a.js");
    EXPECT_TRUE(comes_to("/a.js", [](const std::string& a) { return status_of(a) == 404; }));
    std::filesystem::create_directory(root() + "/a.js");
    EXPECT_TRUE(comes_to("/a.js", [](const std::string& a) { return status_of(a) == 301; }));
}

TEST_P(http_static_cache, a_file_that_may_no_longer_be_read_is_not_served) {
    write("a.txt", "hello");
    serve_cached(10ms);
    EXPECT_EQ(body_of(get("/a.txt")), "hello");
    std::filesystem::permissions(root() + "/a.txt", std::filesystem::perms::none);
    const testing::unprivileged as_other_user;
    EXPECT_TRUE(comes_to("/a.txt", [](const std::string& a) { return status_of(a) == 403; }));
}

TEST_P(http_static_cache, it_stays_below_its_limit) {
    const std::size_t limit = 50'000;
    serve_cached(24h, limit);
    for (int i = 0; i < 30; ++i) {
        const std::string name = "f" + std::to_string(i);
        write(name, long_text(5000));
        EXPECT_EQ(body_of(get("/" + name)).size(), 5000u);
        EXPECT_LE(files_->cached_bytes(), limit);
    }
    EXPECT_GT(files_->cached_bytes(), limit / 2);
    write("large", long_text(limit));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(body_of(get("/large")).size(), limit);
    EXPECT_LE(files_->cached_bytes(), limit);
}

}  // namespace
}  // namespace eddy::http
