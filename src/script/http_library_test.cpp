// eddy.http(), beside a server that the test is: what is sent, what a script gets, and failures.
#include "script/http_library.hpp"

#include <eddy/net/tcp.hpp>

#include "io/testing.hpp"
#include "script/coroutine_host.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(http_library);

class handle_call final : public call {
public:
    handle_call(coroutine_host& in, std::string origin) : call(in), origin_(std::move(origin)) {}

private:
    int push_arguments(lua::stack in) override {
        in.pushstring(origin_);
        return 1;
    }
    std::string origin_;
};

/// A script whose handle(origin) has these statements, and a server that answers each request with
/// `response`.
struct subject {
    explicit subject(std::string_view statements, http_limits limits = {})
        : requests(limits),
          host({.callbacks = {{.name = "handle", .is_required = true, .results = 1}},
                .libraries = {requests.functions()},
                .preludes = {{"http", http_prelude()}}}) {
        const auto loaded =
            host.load("function handle(origin)\n" + std::string(statements) + "\nend", "s.lua");
        EXPECT_TRUE(loaded) << loaded.error();
    }

    /// The text that handle() returns, or its failure.
    task<std::string> text(std::string response) {
        scope peers;
        peers.spawn(serve(std::move(response)));
        handle_call made(host, "http://127.0.0.1:" + std::to_string(listens.local().port()));
        call_end end = co_await host.run(made);
        listens.close();
        peers.cancel();
        co_await peers.join();
        if (end.what == call_end::kind::returned && end.results[0].text() != nullptr)
            co_return *end.results[0].text();
        co_return std::string(end.reason) + ": " + end.text;
    }

    task<void> serve(std::string response) {
        for (;;) {
            auto accepted = co_await listens.accept();
            if (!accepted) co_return;
            auto got = co_await accepted->read();
            if (got) seen += got->text();
            if (response.empty()) static_cast<void>(co_await accepted->read());
            result<> written = co_await accepted->write_all(response);
            while (is_endless && written) {
                written = co_await accepted->write_all(as_bytes("5\r\nhello\r\n"));
                co_await loop::current().yield();
            }
            if (stalls) static_cast<void>(co_await loop::current().sleep_for(1h));
            ++ended;
        }
    }

    listener listens = must(tcp::listen("127.0.0.1", 0));
    std::string seen;
    bool is_endless = false;
    bool stalls = false;
    std::size_t ended = 0;  // connections
    http_requests requests;
    coroutine_host host;
};

constexpr std::string_view found =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\nConnection: close\r\n\r\nhello";

TEST(http_library, has_documented_rows) {
    http_requests all;
    testing::expect_documented(all.functions());
}

TEST_P(http_library, gets_a_url) {
    run([]() -> task<void> {
        subject s(R"(
            local got = assert(eddy.http(origin .. "/x"))
            return got.status .. got.body .. got.headers["x-a"] .. got.url)");
        const std::string text = co_await s.text(std::string(found));
        EXPECT_THAT(text, StartsWith("200hello1, 2http://127.0.0.1:"));
        EXPECT_THAT(text, EndsWith("/x"));
        EXPECT_THAT(s.seen, StartsWith("GET /x HTTP/1.1\r\n"));
    });
}

TEST_P(http_library, sends_what_a_table_says) {
    run([]() -> task<void> {
        subject s(R"(
            local got = assert(eddy.http{url = origin, method = "PUT", body = "text",
                                         headers = {["X-Number"] = 7}, timeout = 5000})
            return got.body)");
        EXPECT_EQ(co_await s.text(std::string(found)), "hello");
        EXPECT_THAT(s.seen, StartsWith("PUT / HTTP/1.1\r\n"));
        EXPECT_THAT(s.seen, HasSubstr("\r\nX-Number: 7\r\n"));
        EXPECT_THAT(s.seen, HasSubstr("\r\nContent-Length: 4\r\n"));
    });
}

TEST_P(http_library, failures_are_returned) {
    run([]() -> task<void> {
        const std::string_view statements = R"(
            local got, why = eddy.http{url = origin, timeout = 50}
            return tostring(got) .. ": " .. why)";
        subject silent(statements);
        EXPECT_EQ(co_await silent.text(""), "nil: " + make_error_code(errc::timed_out).message());
        subject large(statements, {.content = 4});
        EXPECT_EQ(co_await large.text(std::string(found)),
                  "nil: " + make_error_code(errc::limit_reached).message());
        subject misused(R"(
            local words = {}
            for i, given in ipairs({1, "", {}, {url = true}, {url = "x", headers = {"a"}},
                                    {url = "x", timeout = -1}}) do
                words[i] = select(2, pcall(eddy.http, given))
            end
            return table.concat(words, "|"))");
        EXPECT_EQ(
            co_await misused.text(""),
            "http() takes a URL, or a table with url, and method, headers, body, stream and "
            "timeout in milliseconds|there is no url|there is no url|url is no text|headers is no "
            "table of texts by name|timeout is no number of milliseconds");
    });
}

constexpr std::string_view endless =
    "HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_P(http_library, reads_a_response_in_pieces) {
    run([]() -> task<void> {
        subject s(R"(
            local got = assert(eddy.http{url = origin, stream = true})
            local pieces = {got.status, got.headers["x-a"], tostring(got.body)}
            for _ = 1, 3 do pieces[#pieces + 1] = got:read(2) end
            pieces[#pieces + 1] = tostring(got:read())
            pieces[#pieces + 1] = tostring(got:read(1))
            return table.concat(pieces, " "))");
        EXPECT_EQ(co_await s.text(std::string(found)), "200 1, 2 nil he ll o nil nil");
        EXPECT_EQ(s.requests.streams(), 0U);
    });
}

TEST_P(http_library, leaves_an_endless_response) {
    run([]() -> task<void> {
        for (const std::string leave :
             {"", "assert(got:close() and not got:close())", "error('spoilt')"}) {
            subject s(R"(
                local got, bytes = assert(eddy.http{url = origin, stream = true}), 0
                while bytes < 5e3 do bytes = bytes + #assert(got:read(1000)) end
                )" + leave +
                      " return got:close() and 'left' or tostring(got:read())");
            s.is_endless = true;
            EXPECT_THAT(co_await s.text(std::string(endless)),
                        HasSubstr(leave.empty()                ? "left"
                                  : leave.starts_with("error") ? "spoilt"
                                                               : "nil"));
            EXPECT_EQ(s.requests.streams(), 0U);
        }
    });
}

TEST_P(http_library, limits_responses_in_pieces) {
    run([]() -> task<void> {
        subject s(R"(
            local all = {}
            for i = 1, 2 do all[i] = assert(eddy.http{url = origin, stream = true, timeout = 50}) end
            local none, why = eddy.http{url = origin, stream = true}
            local words = {tostring(none), why, tostring(all[1].read), select(2, all[1]:read())}
            words[3] = select(2, pcall(all[1].read, all[2], 0))
            return table.concat(words, "|"))",
                  {.streams = 2});
        EXPECT_EQ(co_await s.text(std::string(endless)),
                  "nil|too many responses are read in pieces|http_read() takes a size of 1 to "
                  "16777216|" +
                      make_error_code(errc::truncated).message());
        subject slow(R"(
            local got = assert(eddy.http{url = origin, stream = true, timeout = 50})
            return select(2, got:read()))");
        slow.stalls = true;
        EXPECT_EQ(co_await slow.text(std::string(endless)),
                  make_error_code(errc::timed_out).message());
        EXPECT_EQ(slow.requests.streams(), 0U);
    });
}

}  // namespace
}  // namespace eddy::script
