// Compression of responses: which ones, by which coding, with which fields, and when they go out.
#include "http/codings/compression.hpp"

#include <eddy/base/random.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "http/codings/testing.hpp"
#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

using testing::answer;
using testing::must;
using testing::parsed;
using testing::sample_text;

response text_of(body content) { return {200, "text/plain", std::move(content)}; }

task<void> count_turns(int& count, const bool& is_done) {
    while (!is_done) {
        ++count;
        co_await loop::current().yield();
    }
}

class http_compression : public testing::with_server {
protected:
    http_compression() {
        handler_.answer = [this](request& incoming) { return compressed(incoming); };
    }

    task<response> compressed(request& incoming) {
        response made = make_();
        compress_response(incoming, made);
        co_return made;
    }

    /// The answer to a request with these field lines.
    answer ask(std::function<response()> make, std::string fields, std::string method = "GET",
               std::string version = "1.1") {
        make_ = std::move(make);
        return parsed(talk(method + " / HTTP/" + version + "\r\nHost: x\r\nConnection: close\r\n" +
                           fields + "\r\n"),
                      method);
    }

    std::function<response()> make_;
};

const std::string gzip_line = "Accept-Encoding: gzip\r\n";

TEST_P(http_compression, the_coding_is_what_the_client_likes_best) {
    const std::string content = sample_text(4000);
    const auto make = [&] { return json(content); };
    for (const auto& [accepted, coding] : {std::pair{"gzip", "gzip"},
                                           {"gzip, br", "br"},
                                           {"gzip, deflate, br, zstd", "zstd"},
                                           {"deflate", "deflate"},
                                           {"br;q=0.5, gzip;q=0.8", "gzip"},
                                           {"*", "zstd"}}) {
        const answer got = ask(make, "Accept-Encoding: " + std::string(accepted) + "\r\n");
        EXPECT_EQ(got.field("Content-Encoding"), coding);
        EXPECT_EQ(got.plain, content);
        EXPECT_LT(got.content.size(), content.size() / 4);
        EXPECT_EQ(got.field("Content-Length"), std::to_string(got.content.size()));
        EXPECT_EQ(got.field("Vary"), "Accept-Encoding");
    }
    for (const char* accepted :
         {"", "Accept-Encoding: identity\r\n", "Accept-Encoding: \r\n",
          "Accept-Encoding: gzip;q=0, snappy\r\n", "Accept-Encoding: gzip;q=0.5, identity\r\n"}) {
        const answer got = ask(make, accepted);
        EXPECT_EQ(got.field("Content-Encoding"), "") << accepted;
        EXPECT_EQ(got.content, content);
        EXPECT_EQ(got.field("Vary"), "Accept-Encoding") << "it could have been another";
    }
}

TEST_P(http_compression, what_would_not_gain_by_it_is_sent_as_it_is) {
    const std::string content = sample_text(2000);
    const auto is_left = [&](response made, std::string fields = gzip_line,
                             std::string version = "1.1") {
        auto kept = std::make_shared<response>(std::move(made));
        const answer got = ask([&] { return std::move(*kept); }, fields, "GET", version);
        return got.fields.find("Content-Encoding").value_or("identity") != "gzip";
    };
    EXPECT_FALSE(is_left(text(content)));
    EXPECT_FALSE(is_left(text(content, 404)));
    EXPECT_FALSE(is_left(text(content.substr(0, 1024))));
    EXPECT_TRUE(is_left(text(content.substr(0, 1023))));
    EXPECT_TRUE(is_left(text("")));
    EXPECT_TRUE(is_left(response(200, "image/png", content)));
    EXPECT_TRUE(is_left(response(200, "application/octet-stream", content)));
    response untyped;
    untyped.body = content;
    EXPECT_TRUE(is_left(std::move(untyped)));
    EXPECT_TRUE(is_left(std::move(text(content).add("Content-Encoding", "br"))));
    EXPECT_TRUE(is_left(std::move(text(content).add("Cache-Control", "public, No-Transform"))));
    EXPECT_TRUE(is_left(std::move(text(content, 206).add("Content-Range", "bytes 0-1999/9999"))));
    EXPECT_TRUE(is_left(text(content, 204)));
    EXPECT_TRUE(is_left(text(content), gzip_line, "1.0")) << "HTTP/1.0 has no chunks";
    for (const char* type :
         {"image/svg+xml", "application/vnd.api+json; charset=utf-8", "APPLICATION/JAVASCRIPT",
          "application/wasm", "application/xml ;a=b", "text/event-stream", "font/ttf", "image/bmp"})
        EXPECT_FALSE(is_left(response(200, type, content))) << type;
}

TEST_P(http_compression, fields_speak_of_the_encoded_content) {
    const auto make = [] {
        response made = text(sample_text(2000));
        made.add("ETag", "\"a\"").add("Accept-Ranges", "bytes").add("Vary", "Cookie");
        return made;
    };
    const answer got = ask(make, gzip_line);
    EXPECT_EQ(got.field("ETag"), "W/\"a\"");
    EXPECT_FALSE(got.fields.contains("Accept-Ranges"));
    EXPECT_TRUE(got.fields.contains_token("Vary", "cookie"));
    EXPECT_TRUE(got.fields.contains_token("Vary", "accept-encoding"));
    const answer plain = ask(make, "");
    EXPECT_EQ(plain.field("ETag"), "\"a\"");
    EXPECT_TRUE(plain.fields.contains("Accept-Ranges"));
}

TEST_P(http_compression, a_confirmed_tag_is_the_one_that_the_client_has) {
    const auto make = [] {
        return std::move(response(304).add("ETag", "\"a\"").add("X-Other", "1"));
    };
    EXPECT_EQ(ask(make, "If-None-Match: W/\"a\"\r\n").field("ETag"), "W/\"a\"");
    EXPECT_EQ(ask(make, "If-None-Match: \"b\", W/\"a\"\r\n").field("ETag"), "W/\"a\"");
    EXPECT_EQ(ask(make, "If-None-Match: \"a\"\r\n").field("ETag"), "\"a\"");
    EXPECT_EQ(ask(make, "If-None-Match: W/\"a\", \"a\"\r\n").field("ETag"), "\"a\"");
    EXPECT_EQ(ask(make, "").field("ETag"), "\"a\"");
}

TEST_P(http_compression, a_response_to_head_has_the_fields_of_one_to_get) {
    for (const std::size_t size : {2000U, 40'000U}) {
        const auto make = [&] { return text(sample_text(size)); };
        const answer got = ask(make, gzip_line, "HEAD");
        EXPECT_TRUE(got.is_whole);
        const answer to_get = ask(make, gzip_line);
        for (const char* name : {"Content-Encoding", "Content-Length", "Transfer-Encoding", "Vary"})
            EXPECT_EQ(got.field(name), to_get.field(name)) << name;
        EXPECT_EQ(to_get.field("Content-Encoding"), "gzip");
    }
}

TEST_P(http_compression, large_content_is_compressed_while_it_is_sent) {
    const std::string content = sample_text(3'000'000);
    for (const content_coding coding : testing::all_codings) {
        const std::string line = "Accept-Encoding: " + std::string(to_string(coding)) + "\r\n";
        const answer whole = ask([&] { return text(content); }, line);
        EXPECT_EQ(whole.field("Transfer-Encoding"), "chunked");
        EXPECT_EQ(whole.plain, content);
        const auto produce = [&](body_writer& to) -> task<result<>> {
            std::string_view left = content;
            while (!left.empty()) {
                const auto sent = co_await to.write(left.substr(0, 100'000));
                if (!sent) co_return sent;
                left.remove_prefix(100'000);
            }
            co_return result<>();
        };
        const answer produced =
            ask([&] { return text_of(body::streamed(produce, content.size())); }, line);
        EXPECT_EQ(produced.plain, content);
    }
}

TEST_P(http_compression, a_client_that_has_finished_sending_gets_it_whole) {
    const std::string content = sample_text(300'000);
    const auto produce = [&](body_writer& to) -> task<result<>> {
        std::string_view left = content;
        while (!left.empty()) {
            if (auto slept = co_await loop::current().sleep_for(std::chrono::milliseconds(1));
                !slept)
                co_return slept;
            if (auto sent = co_await to.write(left.substr(0, 100'000)); !sent) co_return sent;
            left.remove_prefix(100'000);
        }
        co_return result<>();
    };
    make_ = [&] { return text_of(body::streamed(produce, content.size())); };
    const answer got =
        parsed(talk("GET / HTTP/1.1\r\nHost: x\r\n" + gzip_line + "\r\n", true), "GET");
    EXPECT_EQ(got.field("Transfer-Encoding"), "chunked");
    EXPECT_EQ(got.plain, content);
}

TEST_P(http_compression, a_producer_is_held_to_its_size) {
    for (const std::uint64_t size : {1999U, 2001U}) {
        const auto produce = [](body_writer& to) -> task<result<>> {
            const std::string content = sample_text(2000);
            co_return co_await to.write(content);
        };
        const answer got = ask([&] { return text_of(body::streamed(produce, size)); }, gzip_line);
        EXPECT_EQ(got.status, 200);
        EXPECT_FALSE(got.is_whole) << "the connection is cut";
    }
}

TEST_P(http_compression, what_a_producer_writes_can_be_read_at_once) {
    for (const content_coding coding : testing::all_codings) {
        event go_on;
        make_ = [&] {
            return text_of(body::streamed([&](body_writer& to) -> task<result<>> {
                const auto sent = co_await to.write("data: one\n\n");
                if (!sent) co_return sent;
                must(co_await go_on.wait());
                co_return co_await to.write("data: two\n\n");
            }));
        };
        with_session([&](stream& client) -> task<void> {
            const std::string asked =
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                "Accept-Encoding: " +
                std::string(to_string(coding)) + "\r\n\r\n";
            must(co_await client.write_all(asked));
            http1::response_parser parser;
            auto by = decoder::make(coding);
            byte_buffer plain;
            std::string waiting;
            while (plain.text() != "data: one\n\ndata: two\n\n") {
                auto received = co_await client.read();
                if (!received) break;
                waiting += received->text();
                for (;;) {
                    const http1::step step = parser.parse(waiting);
                    std::string_view piece = step.body;
                    EXPECT_TRUE(by->decode(piece, plain, 1000, 1000, {}));
                    waiting.erase(0, step.consumed);
                    if (step.what != http1::event::head && step.what != http1::event::body) break;
                }
                if (plain.text() == "data: one\n\n") go_on.set();
            }
            EXPECT_EQ(plain.text(), "data: one\n\ndata: two\n\n") << to_string(coding);
        });
    }
}

TEST_P(http_compression, a_slow_reader_slows_the_producer_down) {
    limits_.write_time = std::chrono::milliseconds(100);
    socket_buffer_ = 16 * 1024;
    std::size_t written = 0;
    make_ = [&] {
        return text_of(body::streamed([&](body_writer& to) -> task<result<>> {
            random_generator random(1);
            std::string piece(32 * 1024, '\0');
            for (;;) {
                for (char& c : piece) c = static_cast<char>(random());
                const auto sent = co_await to.write(piece);
                if (!sent) co_return sent;
                written += piece.size();
            }
        }));
    };
    with_session([&](stream& client) -> task<void> {
        const std::string asked = "GET / HTTP/1.1\r\nHost: x\r\n" + gzip_line + "\r\n";
        must(co_await client.write_all(asked));
        must(co_await loop::current().sleep_for(std::chrono::milliseconds(300)));
    });
    EXPECT_LT(written, 4U << 20);
}

TEST_P(http_compression, a_large_response_lets_others_go_on) {
    const std::string content = sample_text(4 << 20);
    make_ = [&] { return text(content); };
    int turns = 0;
    bool is_done = false;
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(serve(std::move(both.server), handler_, limits_));
            serving.spawn(count_turns(turns, is_done));
            const std::string asked =
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + gzip_line + "\r\n";
            must(co_await both.client.write_all(asked));
            std::string got;
            co_await read_all(both.client, got);
            is_done = true;
            EXPECT_EQ(parsed(got).plain, content);
        });
    });
    EXPECT_GE(turns, 250) << "one at least for each 16 KiB";
}

TEST_P(http_compression, small_results_are_kept_by_their_strong_tag) {
    coded_cache results(10'000);
    std::string tag = "\"1\"";
    std::string content = sample_text(2000);
    const auto ask_with = [&](const std::string& coding) {
        handler_.answer = [&](request& incoming) -> task<response> {
            response made = text(content);
            made.add("ETag", tag);
            compress_response(incoming, made, {}, results);
            co_return made;
        };
        return parsed(talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: " +
                           coding + "\r\n\r\n"))
            .plain;
    };
    EXPECT_EQ(ask_with("gzip"), content);
    const std::size_t one = results.bytes();
    EXPECT_GT(one, 0U);
    EXPECT_EQ(ask_with("gzip"), content);
    EXPECT_EQ(results.bytes(), one);
    EXPECT_EQ(ask_with("br"), content);
    EXPECT_GT(results.bytes(), one) << "another coding";
    const std::size_t both = results.bytes();
    tag = "W/\"1\"";
    content = sample_text(1999);
    EXPECT_EQ(ask_with("gzip"), content) << "a weak tag does not name the bytes";
    EXPECT_EQ(results.bytes(), both);
    for (int i = 2; i < 40; ++i) {
        tag = "\"" + std::to_string(i) + "\"";
        content = sample_text(2000 + static_cast<std::size_t>(i));
        EXPECT_EQ(ask_with("gzip"), content);
        EXPECT_LE(results.bytes(), 10'000U);
    }
    coded_cache none(0);
    none.insert("key", "text");
    EXPECT_EQ(none.find("key"), nullptr);
}

TEST_P(http_compression, a_router_has_it_around_its_routes) {
    router routes;
    routes.use(compress({.min_bytes = 10})).get("/", [](request&) -> task<response> {
        co_return text("a text of some length");
    });
    handler_.answer = [&](request& incoming) { return routes.dispatch(incoming); };
    const answer got =
        parsed(talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + gzip_line + "\r\n"));
    EXPECT_EQ(got.field("Content-Encoding"), "gzip");
    EXPECT_EQ(got.plain, "a text of some length");
}

EDDY_HTTP_ON_EVERY_BACKEND(http_compression);

}  // namespace
}  // namespace eddy::http
