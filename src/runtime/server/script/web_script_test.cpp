// Scripts of servers that decide: about requests of HTTP and for a WebSocket, about what is sent
// from outside, and about the master.
#include "runtime/http_testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::server {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class web_script : public on_io_backend {
protected:
    void write(std::string_view script) { std::ofstream(file_) << script; }
    subject make(std::string_view script, json more = json::object()) {
        write(script);
        more["lua"] = file_;
        return subject("server", with(std::move(more)));
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("web.lua");
};

INSTANTIATE_TEST_SUITE_P(io, web_script,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(web_script, answers_requests_beside_messages) {
    run([this]() -> task<void> {
        subject s = make(R"(
            count = 0
            function on_message(c, text) count = count + 1 self.send(c, text) end
            function on_http_request(r)
                if r.path == "/count" then return 200, {messages = count} end
                if r.path == "/error" then error("spoilt") end
            end)");
        co_await s.start();
        talker raw = co_await talker::to(s->local());
        EXPECT_EQ(co_await ask(raw, "hello"), "hello");
        talker web = co_await talker::to(s->local());
        EXPECT_EQ((co_await get(web, "/count")).content, "{\"messages\":1}");
        EXPECT_EQ((co_await get(web, "/error")).status(), "500");
        EXPECT_TRUE(s.events.has("web.lua:6: spoilt"));
        EXPECT_EQ((co_await get(web, "/none")).status(), "426") << "it serves no files";
        co_await s->stop(0s);
    });
}

TEST_P(web_script, leaves_requests_to_the_files) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("a.txt")) << "the file";
        subject s = make(R"(
            function on_http_request(r)
                if r.method == "POST" then return 201, r.body, {["X-Path"] = r.path} end
            end)",
                         {{"http", folder_.path()}});
        co_await s.start();
        talker web = co_await talker::to(s->local());
        EXPECT_EQ((co_await get(web, "/a.txt")).content, "the file");
        co_await web.say("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        const answer made = co_await next_answer(web);
        EXPECT_EQ(made.status(), "201");
        EXPECT_THAT(made.head, HasSubstr("\nX-Path: /b\n"));
        EXPECT_EQ(made.content, "abc");
        EXPECT_EQ((co_await get(web, "/none")).status(), "404");
        co_await s->stop(0s);
    });
}

/// The request of a client for a WebSocket.
std::string upgrade(const std::string& target, const std::string& fields = {}) {
    return "GET " + target +
           " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
           fields + "\r\n";
}
task<answer> open(subject& s, std::string request) {
    talker web = co_await talker::to(s->local());
    co_await web.say(std::move(request));
    co_return co_await next_answer(web);
}

TEST_P(web_script, decides_about_websockets) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_websocket(c, r)
                local what = r.path:sub(2)
                if what == "true" then return true end
                if what == "false" then return false end
                if what == "reason" then return false, "no more " .. c end
                if what == "error" then error("spoilt") end
                if what == "table" then return {} end
                if what == "wait" then eddy.sleep(0.001) return 403 end
                if what == "named" then return r:header("Sec-WebSocket-Protocol"):match("b%.%d") end
                return tonumber(what)
            end)");
        co_await s.start();
        for (const char* const each : {"/", "/true"})
            EXPECT_EQ((co_await open(s, upgrade(each))).status(), "101") << each;
        EXPECT_EQ((co_await open(s, upgrade("/false"))).content,
                  "403 Forbidden: the request is refused\n");
        EXPECT_THAT((co_await open(s, upgrade("/reason"))).content,
                    StartsWith("403 Forbidden: no more "));
        EXPECT_EQ((co_await open(s, upgrade("/401"))).status(), "401");
        EXPECT_EQ((co_await open(s, upgrade("/wait"))).status(), "403");
        for (const char* const each : {"/error", "/table", "/200", "/600"})
            EXPECT_EQ((co_await open(s, upgrade(each))).status(), "500") << each;
        EXPECT_TRUE(s.events.has("web.lua:7: spoilt"));
        const std::string offered = "Sec-WebSocket-Protocol: a, b.1, b.2\r\n";
        EXPECT_THAT((co_await open(s, upgrade("/named", offered))).head,
                    HasSubstr("\nSec-WebSocket-Protocol: b.1\n"));
        EXPECT_THAT((co_await open(s, upgrade("/", offered))).head,
                    Not(HasSubstr("Sec-WebSocket-Protocol")));
        co_await s->stop(0s);
    });
}

TEST_P(web_script, shows_the_headers_of_websockets) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_connect(c) self.log("before " .. tostring(self.ws_headers(c))) end
            function on_websocket(c, r) self.send(c, "welcome") end
            function on_disconnect(c) self.log("had " .. self.ws_headers(c)["x-name"]) end)");
        co_await s.start();
        {
            talker web = co_await talker::to(s->local());
            co_await web.say(upgrade("/", "X-Name: Ann\r\n"));
            EXPECT_EQ((co_await next_answer(web)).status(), "101");
            EXPECT_EQ(co_await web.bytes(9), "\x81\x07welcome");
        }
        co_await until([&] { return s.events.has("script: had Ann"); });
        EXPECT_TRUE(s.events.has("script: before nil"));
        co_await s->stop(0s);
    });
}

TEST_P(web_script, ends_while_a_websocket_waits) {
    run([this]() -> task<void> {
        subject s = make("function on_websocket(c, r) eddy.sleep(1000) end");
        co_await s.start();
        talker web = co_await talker::to(s->local());
        co_await web.say(upgrade("/"));
        co_await until([&] { return sample_of(*s, "script_calls") == 1; });
        co_await s->stop(10ms);
        EXPECT_EQ(co_await web.rest(), "");
    });
}

TEST_P(web_script, decides_about_what_is_sent_from_outside) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_send(text)
                if text == "drop" then return false end
                if text == "error" then error("spoilt") end
                if text == "wait" then eddy.sleep(0.001) return "waited" end
                if text == "same" then return end
                return "<" .. text .. ">"
            end)");
        co_await s.start();
        talker raw = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now == 1; });
        EXPECT_EQ(must_do(co_await s->send("a")), 1U);
        EXPECT_EQ(must_do(co_await s->send("drop")), 0U);
        EXPECT_EQ(must_do(co_await s->send("wait")), 1U);
        EXPECT_EQ(must_do(co_await s->send("same")), 1U);
        const auto failed = co_await s->send("error");
        EXPECT_FALSE(failed.has_value());
        EXPECT_THAT(failed.error().message, HasSubstr("on_send has failed: web.lua:4: spoilt"));
        for (const char* const each : {"<a>", "waited", "same"})
            EXPECT_EQ(co_await raw.line(), each);
        co_await s->stop(0s);
    });
}

TEST_P(web_script, decides_who_is_the_master) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_master_auth(c, password)
                if password == "wait" then eddy.sleep(0.001) return true end
                if password == "error" then error("spoilt") end
                return password == "open " .. c
            end
            function on_disconnect(c) end)",
                         {{"mode", "master"}});
        co_await s.start();
        talker a = co_await talker::to(s->local());
        EXPECT_EQ(co_await ask(a, "master open 2"), "master: denied");
        EXPECT_EQ(co_await ask(a, "master error"), "master: denied");
        talker b = co_await talker::to(s->local());
        EXPECT_EQ(co_await ask(b, "master open 2"), "master: ok");
        EXPECT_EQ(co_await ask(a, "master wait\nmaster open 1"),
                  "master: denied: there is a master");
        EXPECT_EQ(co_await a.line(), "master: denied: there is a master");
        co_await b.say("to all\n");
        EXPECT_EQ(co_await a.line(), "to all");
        b.socket.abort();
        co_await until([&] { return sample_of(*s, "master") == 0.0; });
        EXPECT_EQ(co_await ask(a, "master wait"), "master: ok");
        co_await s->stop(0s);
    });
}

TEST_P(web_script, locks_guesses_out_that_it_decides_about) {
    run([this]() -> task<void> {
        subject s = make("function on_master_auth(c, password) return password == 'open' end",
                         {{"mode", "master"}, {"master_password", "sesame"}});
        co_await s.start();
        talker a = co_await talker::to(s->local());
        EXPECT_EQ(co_await ask(a, "master sesame"), "master: denied") << "the script's is another";
        for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await ask(a, "master x"), "master: denied");
        EXPECT_THAT(co_await ask(a, "master open"), HasSubstr("too many wrong passwords"));
        EXPECT_EQ(sample_of(*s, "script_calls_total"), 5);
        co_await s->stop(0s);
    });
}

TEST_P(web_script, ends_while_requests_wait) {
    run([this]() -> task<void> {
        subject s = make("function on_http_request(r) eddy.sleep(1000) end");
        co_await s.start();
        talker web = co_await talker::to(s->local());
        co_await web.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(*s, "script_calls") == 1; });
        co_await s->stop(10ms);
        EXPECT_EQ(co_await web.rest(), "");
    });
}

}  // namespace
}  // namespace eddy::runtime::server
