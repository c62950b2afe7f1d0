// Scripts of sites: their answers, requests that are left to the files, waits, renewal, and scripts
// that go wrong.
#include "runtime/http/script/site_script.hpp"

#include "runtime/http/script/site_callbacks.hpp"
#include "runtime/http/script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::http {
namespace {

using namespace http::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(scripted_site_test);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(scripted_site_kernel);

/// A script of one function, which is given the request `r`.
std::string answering(const std::string& body) {
    return "function on_http_request(r)\n" + body + "\nend";
}

TEST_P(scripted_site_test, answers_before_the_files) {
    run([]() -> task<void> {
        scripted_site s(answering(R"(
            if r.path == "/a.txt" then return 200, "the script" end
            if r.path == "/number" then return 201, 7 end
            if r.path == "/empty" then return 204 end
            if r.path == "/json" then return 200, {list = {1, 2}} end
            if r.path == "/table" then return {status = 418, body = {a = true}} end
            if r.path == "/usual" then return {body = "x"} end
            return 404, "none")"));
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 the script");
        EXPECT_EQ(co_await s.ask("GET /number"), "201 7");
        EXPECT_EQ(co_await s.ask("GET /empty"), "204 ");
        EXPECT_EQ(co_await s.ask("GET /json"), "200 {\"list\":[1,2]}");
        EXPECT_EQ(co_await s.ask("GET /table"), "418 {\"a\":true}");
        EXPECT_EQ(co_await s.ask("GET /usual"), "200 x");
        EXPECT_EQ(co_await s.ask("GET /b.txt"), "404 none");
        EXPECT_THAT(co_await s.head("/json"), HasSubstr("\nContent-Type: application/json\n"));
        EXPECT_THAT(co_await s.head("/a.txt"),
                    HasSubstr("\nContent-Type: text/plain; charset=utf-8\n"));
        EXPECT_THAT(co_await s.head("/empty"), Not(HasSubstr("Content-Type")));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, leaves_requests_to_the_files) {
    run([]() -> task<void> {
        scripted_site s(answering("if r.path == '/false' then return false end"));
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 the file");
        EXPECT_THAT(co_await s.ask("GET /false"), StartsWith("404 "));
        EXPECT_THAT(co_await s.ask("POST /a.txt", "content"), StartsWith("405 "));
        s.write("function on_tick() end");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 the file");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, needs_no_folder) {
    run([]() -> task<void> {
        scripted_site s(answering("if r.path == '/a' then return 200, 'a' end"), {{"root", ""}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /a"), "200 a");
        EXPECT_EQ(co_await s.ask("GET /a.txt"), "404 404 Not Found: there is nothing here\n");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, shows_the_script_the_request) {
    run([]() -> task<void> {
        scripted_site s(answering(R"(
            return 200, {r.method, r.host, r.path, r.query, tostring(r.client), tostring(r.secure),
                r.headers["x-a"], r.headers.cookie, r:header("X-A"), tostring(r:header("none")),
                tostring(getmetatable(r)), r.body})"));
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("POST /a%20b?q=1&r", "hello",
                                 "X-A: 1\r\nCookie: a=b\r\nx-a: 2\r\nCookie: c=d\r\n"),
                  R"(200 ["POST","x","\/a%20b","q=1&r","127.0.0.1","false","1, 2","a=b; c=d",)"
                  R"("1, 2","nil","false","hello"])");
        s.write(answering("return 200, r.host .. r.path .. r.body"));
        must_do(co_await s->reload_script());
        talker client = co_await s.client();
        co_await client.say(
            "POST http://Y.Example:8/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
        EXPECT_EQ((co_await next_answer(client)).content, "y.example/hello world");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, sends_headers) {
    run([]() -> task<void> {
        scripted_site s(answering(R"(
            local which = r.path:sub(2)
            local all = {
                good = {["X-A"] = "1", ["Set-Cookie"] = {"a=b", "c=d"}, ["X-N"] = 5,
                    ["content-type"] = "text/html", ["Content-Length"] = "999"},
                split = {["X-A"] = "1\r\nX-B: 2"}, feed = {["X-A"] = "1\nX-B: 2"},
                name = {["X A"] = "1"}, colon = {["X-A: 1\r\nX-B"] = "2"}, truth = {["X-A"] = true},
                list = {"X-A"}, nested = {["X-A"] = {{}}}, text = "X-A: 1"}
            return 200, "body", all[which])"));
        if (!co_await s.has_started()) co_return;
        const std::string head = co_await s.head("/good");
        for (const char* const each :
             {"\nX-A: 1\n", "\nSet-Cookie: a=b\n", "\nSet-Cookie: c=d\n", "\nX-N: 5\n",
              "\ncontent-type: text/html\n", "\nContent-Length: 4\n"})
            EXPECT_THAT(head, HasSubstr(each));
        EXPECT_THAT(head, Not(HasSubstr("999")));
        EXPECT_THAT(head, Not(HasSubstr("text/plain")));
        for (const char* const each :
             {"/split", "/feed", "/name", "/colon", "/truth", "/list", "/nested", "/text"}) {
            const std::string refused = co_await s.head(each);
            EXPECT_THAT(refused, StartsWith("HTTP/1.1 500 ")) << each;
            EXPECT_THAT(refused, Not(HasSubstr("X-B"))) << each;
        }
        EXPECT_TRUE((*s).events.has("on_http_request: the header X-A cannot be sent"));
        EXPECT_EQ(s.errors("script_failed"), 8);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, answers_a_failure_without_its_words) {
    run([]() -> task<void> {
        scripted_site s(answering(R"(
            local what = r.path:sub(2)
            if what == "error" then error("secret") end
            if what == "true" then return true end
            if what == "text" then return "text" end
            if what == "none" then return {} end
            if what == "body" then return 200, true end
            if what == "deep" then local t = {} t.t = t return 200, t end
            if what == "function" then return 200, pairs end
            if what == "fraction" then return 200.5 end
            return tonumber(what))"));
        if (!co_await s.has_started()) co_return;
        talker client = co_await s.client();
        for (const char* const each : {"error", "true", "text", "none", "body", "deep", "function",
                                       "fraction", "199", "600", "101", "0"})
            EXPECT_EQ(co_await scripted_site::ask(client, std::string("GET /") + each),
                      "500 500 Internal Server Error\n")
                << each;
        EXPECT_TRUE((*s).events.has("site.lua:4: secret"));
        EXPECT_EQ(co_await scripted_site::ask(client, "GET /599"), "599 ");
        EXPECT_EQ(s.errors("script_failed"), 12);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, limits_the_content) {
    run([]() -> task<void> {
        scripted_site s(answering("return 200, #r.body"), {{"lua_body", "2M"}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("POST /", std::string(2U << 20, 'x')), "200 2097152");
        talker client = co_await s.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\n\r\n");
        EXPECT_THAT((co_await next_answer(client)).head, StartsWith("HTTP/1.1 413 "));
        talker chunks = co_await s.client();
        co_await chunks.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200001\r\n");
        EXPECT_THAT((co_await next_answer(chunks)).head, StartsWith("HTTP/1.1 413 "));
        EXPECT_EQ(sample_of(**s, "script_calls_total"), 1);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, answers_heads_and_pipelined_requests) {
    run([]() -> task<void> {
        scripted_site s(
            answering("if r.query == 'wait' then eddy.sleep(0.01) end\n"
                      "return 200, r.method .. r.path"));
        if (!co_await s.has_started()) co_return;
        talker client = co_await s.client();
        co_await client.say(
            "HEAD /a?wait HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        const answer head = co_await next_answer(client, false);
        EXPECT_THAT(head.head, HasSubstr("\nContent-Length: 6\n"));
        EXPECT_EQ((co_await next_answer(client)).content, "GET/b");
        EXPECT_EQ(co_await scripted_site::ask(client, "DELETE /c"), "200 DELETE/c");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, waits_while_others_are_answered) {
    run([]() -> task<void> {
        scripted_site s(R"(
            released = false
            function on_http_request(r)
                if r.path == "/quick" then released = true end
                while not released do eddy.sleep(0.001) end
                return 200, r.path
            end
            function on_stop() self.log("stop") end)");
        if (!co_await s.has_started()) co_return;
        talker slow = co_await s.client();
        co_await slow.say("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        EXPECT_EQ(co_await s.ask("GET /quick"), "200 /quick");
        EXPECT_EQ((co_await next_answer(slow)).content, "/slow");
        co_await s->stop(1h);
        EXPECT_TRUE((*s).events.has("script: stop"));
    });
}

TEST_P(scripted_site_test, sends_what_it_has_begun_before_a_stop) {
    run([]() -> task<void> {
        scripted_site s(answering("eddy.sleep(0.05) return 200, 'late'"));
        if (!co_await s.has_started()) co_return;
        talker client = co_await s.client();
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        co_await s->stop(1h);
        EXPECT_EQ((co_await next_answer(client)).content, "late");
    });
}

TEST_P(scripted_site_test, ends_while_requests_wait) {
    run([]() -> task<void> {
        scripted_site s(answering("eddy.sleep(1000)"));
        if (!co_await s.has_started()) co_return;
        talker client = co_await s.client();
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        co_await s->stop(10ms);
        EXPECT_EQ(co_await client.rest(), "");
    });
}

TEST_P(scripted_site_test, is_loaded_again_under_its_clients) {
    run([]() -> task<void> {
        scripted_site s(R"(
            count = 0
            function on_http_request(r)
                count = count + 1
                if r.path == "/slow" then eddy.sleep(0.05) end
                return 200, "old"
            end)");
        EXPECT_EQ((co_await s->reload_script()).error().status, 409);
        if (!co_await s.has_started()) co_return;
        talker slow = co_await s.client();
        co_await slow.say("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        s.write("function on_http_request(");
        EXPECT_THAT((co_await s->reload_script()).error().message, HasSubstr("site.lua:1: "));
        talker quick = co_await s.client();
        EXPECT_EQ(co_await scripted_site::ask(quick, "GET /"), "200 old");
        s.write(R"(function on_reload(old) count = old.count end
                   function on_http_request() return 200, count end)");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await scripted_site::ask(quick, "GET /"), "200 2");
        EXPECT_EQ((co_await next_answer(slow)).content, "old");
        EXPECT_TRUE(must_do(co_await s->reread()));
        EXPECT_EQ(co_await scripted_site::ask(slow, "GET /"), "200 2");
        EXPECT_EQ(sample_of(**s, "script_reloads_total"), 2);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_test, fails_to_start_by_its_script) {
    run([]() -> task<void> {
        scripted_site s("function on_start() error('no') end");
        EXPECT_THAT(co_await (*s).failure_to_start(), HasSubstr("--lua: "));
        s.write("on_http_request = 5");
        EXPECT_THAT(co_await (*s).failure_to_start(), HasSubstr("--lua: "));
        s.write("function on_start() end");
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 the file");
        co_await s->stop(0s);
    });
}

/// A reset is noticed while the handler works.
TEST_P(scripted_site_kernel, ends_calls_whose_client_has_gone) {
    run([]() -> task<void> {
        scripted_site s(answering("eddy.sleep(1000)"));
        EXPECT_TRUE(co_await s.has_started());
        {
            talker client = co_await s.client();
            co_await client.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            co_await until([&] { return sample_of(**s, "script_calls") == 1; });
            client.socket.abort();
        }
        co_await until([&] { return sample_of(**s, "script_calls") == 0; });
        co_await s->stop(0s);
    });
}

/// A call that does not begin at once has a copy of its request.
TEST_P(scripted_site_kernel, keeps_requests_that_wait_for_their_turn) {
    run([]() -> task<void> {
        scripted_site s(answering("if r.path == '/long' then for i = 1, 3e6 do end end\n"
                                  "return 200, r.method .. r.host .. r.path .. r.query .. "
                                  "(r:header('X-A') or '') .. r.body .. tostring(r.client)"),
                        {{"lua_slice", "50us"}, {"lua_time", "1h"}});
        EXPECT_TRUE(co_await s.has_started());
        talker slow = co_await s.client();
        co_await slow.say("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        talker gone = co_await s.client();
        co_await gone.say("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(co_await s.ask("POST /b?c", "hello", "X-A: a\r\n"),
                  "200 POSTx/bcahello127.0.0.1");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_kernel, compresses_what_scripts_return) {
    run([]() -> task<void> {
        scripted_site s(answering("return 200, ('x'):rep(10000)"), {{"compress", true}});
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_THAT((co_await get_from(*s, "/", "Accept-Encoding: gzip\r\n")).head,
                    HasSubstr("\nContent-Encoding: gzip\n"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_site_kernel, runs_on_several_threads) {
    run([]() -> task<void> {
        scripted_site s(answering("return 200, 'a'"), {{"threads", 2}});
        EXPECT_TRUE(co_await s.has_started());
        for (int i = 0; i < 8; ++i) EXPECT_EQ(co_await s.ask("GET /"), "200 a");
        s.write(answering("return 200, 'b'"));
        must_do(co_await s->reload_script());
        for (int i = 0; i < 8; ++i) EXPECT_EQ(co_await s.ask("GET /"), "200 b");
        EXPECT_EQ(sample_of(**s, "script_calls_total"), 16);
        co_await s->stop(0s);
    });
}

TEST(site_callback_rows, are_documented) {
    const std::string page = content("docs/scripting.md");
    for (const script::callback& each : site_callbacks())
        EXPECT_THAT(page, HasSubstr("\n| `" + std::string(each.name) + "(" +
                                    std::string(each.arguments) + ")` | "));
}

}  // namespace
}  // namespace eddy::runtime::http
