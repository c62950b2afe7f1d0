// Scripts of HTTP proxies: where requests go, waits, renewal, and scripts that go wrong.
#include "runtime/proxy/script/proxy_script.hpp"

#include "runtime/proxy/script/proxy_callbacks.hpp"
#include "runtime/proxy/script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(scripted_proxy_test);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(scripted_proxy_kernel);

TEST_P(scripted_proxy_test, knows_the_backends_of_its_options) {
    run([]() -> task<void> {
        scripted_proxy s(R"lua(
            function on_route(request)
                local to = request.path:match("^/to(%d)")
                if to == "1" then return "$1" end
                if to == "2" then return ("$1"):match("//(.*)$") end
                if to == "3" then return "/api" end
                if to == "4" then return "/old" end
                if to == "5" then return "/" end
                if to == "6" then return "unknown" end
                if request.path == "/api/own" then return "/" end
            end)lua",
                         {{"route", json::array({"/api>/=$1"})},
                          {"redirect", json::array({"/old=https://a.example"})}});
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_EQ(co_await s.ask("/usual"), "200 0/usual");
        EXPECT_EQ(co_await s.ask("/api/a"), "200 1/a");
        EXPECT_EQ(co_await s.ask("/to1?a=b"), "200 1/to1?a=b");
        EXPECT_EQ(co_await s.ask("/to2"), "200 1/to2") << "as --backend has it";
        EXPECT_EQ(co_await s.ask("/to3"), "200 1/to3") << "its prefix is not there";
        EXPECT_THAT(co_await s.ask("/to4"), StartsWith("308"));
        EXPECT_EQ(co_await s.ask("/to5"), "200 0/to5");
        EXPECT_EQ(co_await s.ask("/api/own"), "200 0/api/own");
        EXPECT_EQ(co_await s.ask("http://x/to1"), "200 1/to1");
        EXPECT_THAT(co_await s.ask("/to6"), StartsWith("500"));
        EXPECT_TRUE((*s).events.has("has chosen \"unknown\", which is no backend or route"));
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, answers_by_itself) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_route(request)
                local what = request.path:sub(2)
                if what == "false" then return false end
                if what == "error" then error("spoilt") end
                if what == "table" then return {} end
                if what == "true" then return true end
                if what == "empty" then return "" end
                return tonumber(what)
            end)",
                         json::object());
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_EQ(co_await s.ask("/false"), "403 403 Forbidden\nthe request is refused\n");
        EXPECT_EQ(co_await s.ask("/404"), "404 404 Not Found\nthe request is refused\n");
        EXPECT_EQ(co_await s.ask("/503"), "503 503 Service Unavailable\n");
        EXPECT_EQ(co_await s.ask("/204"), "204 ");
        EXPECT_EQ(co_await s.ask("/200"), "200 ");
        for (const char* const each : {"/error", "/table", "/true", "/empty", "/600", "/199", "/0"})
            EXPECT_EQ(co_await s.ask(each), "500 500 Internal Server Error\n") << each;
        EXPECT_EQ(co_await s.ask("/nothing"), "200 0/nothing");
        EXPECT_TRUE((*s).events.has("gate.lua:5: spoilt"));
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, shows_the_script_the_request) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_route(r)
                self.log(table.concat({r.method, r.host, r.path, r.query, tostring(r.client),
                    tostring(r.secure), r.headers["x-a"], r.headers.cookie, r.headers.host}, " "))
            end)",
                         json::object());
        EXPECT_TRUE(co_await s.has_started());
        co_await s.ask("/a%20b?q=1&r",
                       "Host: A.Example:80\r\nX-A: 1\r\nCookie: a=b\r\nx-a: 2\r\n"
                       "Cookie: c=d\r\n");
        EXPECT_TRUE((*s).events.has(
            "script: GET a.example /a%20b q=1&r 127.0.0.1 false 1, 2 a=b; c=d A.Example:80"));
        co_await s.ask("/");
        EXPECT_FALSE((*s).events.has("script: GET x")) << "a list ends at nil";
        EXPECT_TRUE((*s).events.has("the script failed"));
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, refuses_statuses_that_are_none) {
    run([]() -> task<void> {
        for (const std::string status :
             {"404.5", "199", "600", "0/0", "1e300", "{status = 404.5}"}) {
            for (const std::string callback :
                 {"on_route", "on_proxy_request", "on_proxy_response"}) {
                scripted_proxy s("function " + callback + "() return " + status + " end",
                                 json::object());
                EXPECT_TRUE(co_await s.has_started());
                EXPECT_THAT(co_await s.ask("/a"), StartsWith("500")) << callback << status;
                co_await s.stop();
            }
        }
    });
}

TEST_P(scripted_proxy_test, changes_requests) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_proxy_request(r)
                local what = r.path:sub(2)
                if what == "set" then return {headers = {["X-User"] = "ann", ["X-Other"] = false}} end
                if what == "number" then return {headers = {["x-user"] = 5}} end
                if what == "rule" then return {headers = {["X-Ruled"] = "script"}} end
                if what == "wait" then eddy.sleep(0.001) return {headers = {["X-User"] = "late"}} end
                if what == "false" then return false end
                if what == "true" then return true end
                if what == "status" then return {status = 418} end
                if what == "error" then error("spoilt") end
                if what == "host" then return {headers = {Host = "b"}} end
                if what == "length" then return {headers = {["Content-Length"] = "5"}} end
                if what == "split" then return {headers = {["X-User"] = "a\r\nX-Other: b"}} end
                if what == "list" then return {headers = {"X-User"}} end
                if what == "text" then return "text" end
                return tonumber(what)
            end)",
                         json::object());
        EXPECT_TRUE(co_await s.has_started());
        const std::string fields = "Host: x\r\nX-User: eve\r\nX-Other: 1\r\n";
        EXPECT_EQ(co_await s.ask("/", fields), "200 0/ X-User: eve X-Other: 1");
        EXPECT_EQ(co_await s.ask("/true", fields), "200 0/true X-User: eve X-Other: 1");
        EXPECT_EQ(co_await s.ask("/set", fields), "200 0/set X-User: ann");
        EXPECT_EQ(co_await s.ask("/wait", fields), "200 0/wait X-User: late X-Other: 1");
        EXPECT_EQ(co_await s.ask("/false", fields), "403 403 Forbidden\nthe request is refused\n");
        EXPECT_THAT(co_await s.ask("/status"), StartsWith("418"));
        EXPECT_THAT(co_await s.ask("/204"), StartsWith("204"));
        for (const char* const each :
             {"/host", "/error", "/length", "/split", "/list", "/text", "/600"})
            EXPECT_EQ(co_await s.ask(each), "500 500 Internal Server Error\n") << each;
        EXPECT_TRUE((*s).events.has("on_proxy_request: the proxy decides about the header Host"));
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, changes_take_the_place_of_rules) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_route(r) if r.path == "/other" then return "$1" end end
            function on_proxy_request(r)
                if r:header("X-Who") then return {headers = {["X-User"] = r:header("X-Who")}} end
            end)",
                         {{"backup", "$1"}, {"request_field", json::array({"X-User: rule"})}});
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_EQ(co_await s.ask("/a"), "200 0/a X-User: rule");
        EXPECT_EQ(co_await s.ask("/a", "Host: x\r\nX-Who: ann\r\n"), "200 0/a X-User: ann");
        EXPECT_EQ(co_await s.ask("/other", "Host: x\r\nX-Who: bob\r\n"), "200 1/other X-User: bob");
        EXPECT_EQ(co_await s.ask("/a"), "200 0/a X-User: rule");
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, changes_responses) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_proxy_response(r)
                local what = r.path:sub(2)
                if what == "set" then
                    return {status = 201, headers = {["X-A"] = r.method .. r.status, Server = false}}
                end
                if what == "named" then return {headers = {["X-A"] = r.backend .. r:header("SERVER")}} end
                if what == "wait" then eddy.sleep(0.001) return 202 end
                if what == "false" then return false end
                if what == "error" then error("spoilt") end
                if what == "split" then return {headers = {["X-A"] = "a\r\nX-B: b"}} end
                return tonumber(what)
            end)",
                         json::object());
        EXPECT_TRUE(co_await s.has_started());
        const auto head = [&](std::string target) -> task<std::string> {
            text_peer its = co_await s.client();
            co_await its.say("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
            co_return co_await its.head();
        };
        EXPECT_EQ(co_await s.ask("/"), "200 0/");
        EXPECT_EQ(co_await s.ask("/wait"), "202 0/wait");
        EXPECT_EQ(co_await s.ask("/404"), "404 0/404");
        EXPECT_EQ(co_await s.ask("/set"), "201 0/set");
        const std::string changed = co_await head("/set");
        EXPECT_THAT(changed, HasSubstr("\r\nX-A: GET200\r\n"));
        EXPECT_THAT(changed, ::testing::Not(HasSubstr("Server")));
        EXPECT_THAT(co_await head("/named"), HasSubstr("test\r\n"));
        EXPECT_EQ(co_await s.ask("/false"), "502 502 Bad Gateway\n");
        EXPECT_EQ(co_await s.ask("/error"), "500 500 Internal Server Error\n");
        EXPECT_EQ(co_await s.ask("/split"), "500 500 Internal Server Error\n");
        EXPECT_EQ(co_await s.ask("/600"), "500 500 Internal Server Error\n");
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, ends_edits_whose_request_has_gone) {
    for (const char* const name : {"on_proxy_request", "on_proxy_response"}) {
        run([&]() -> task<void> {
            scripted_proxy s(std::string("function ") + name + "(r) eddy.sleep(1000) end",
                             {{"total_timeout", "50ms"}});
            EXPECT_TRUE(co_await s.has_started());
            EXPECT_THAT(co_await s.ask("/"), StartsWith("504")) << name;
            co_await until([&] { return sample_of(**s, "script_calls") == 0; });
            text_peer late = co_await s.client();
            co_await late.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            co_await until([&] { return sample_of(**s, "script_calls") == 1; });
            co_await s.stop(10ms);
        });
    }
}

TEST_P(scripted_proxy_test, waits_for_its_choice) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            released = false
            function on_route(request)
                if request.path == "/quick" then released = true end
                while not released do eddy.sleep(0.001) end
                return "$0"
            end
            function on_stop() self.log("stop") end)",
                         json::object());
        EXPECT_TRUE(co_await s.has_started());
        text_peer slow = co_await s.client();
        co_await slow.say("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        EXPECT_EQ(co_await s.ask("/quick"), "200 0/quick");
        EXPECT_THAT(co_await slow.until("/slow"), HasSubstr("200 OK"));
        co_await s.stop(1h);
        EXPECT_TRUE((*s).events.has("script: stop"));
    });
}

TEST_P(scripted_proxy_test, ends_calls_whose_request_has_gone) {
    run([]() -> task<void> {
        scripted_proxy s("function on_route(request) eddy.sleep(1000) end",
                         {{"total_timeout", "50ms"}});
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_THAT(co_await s.ask("/"), StartsWith("504"));
        co_await until([&] { return sample_of(**s, "script_calls") == 0; });
        EXPECT_EQ(sample_of(**s, "script_calls_total"), 1);
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, ends_while_requests_wait) {
    run([]() -> task<void> {
        scripted_proxy s("function on_route(request) eddy.sleep(1000) end", json::object());
        EXPECT_TRUE(co_await s.has_started());
        text_peer late = co_await s.client();
        co_await late.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        co_await s.stop(10ms);
        EXPECT_EQ(co_await late.rest(), "");
    });
}

TEST_P(scripted_proxy_test, is_loaded_again_under_its_clients) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            count = 0
            function on_route(request)
                count = count + 1
                if request.path == "/slow" then eddy.sleep(0.05) end
                return 404
            end)",
                         json::object());
        EXPECT_EQ((co_await s->reload_script()).error().status, 409);
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_THAT(co_await s.ask("/"), StartsWith("404"));
        text_peer slow = co_await s.client();
        co_await slow.say("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        s.write("function on_route(");
        EXPECT_THAT((co_await s->reload_script()).error().message, HasSubstr("gate.lua:1: "));
        EXPECT_THAT(co_await s.ask("/"), StartsWith("404"));
        s.write(R"(function on_reload(old) count = old.count end
                   function on_route(request) return 400 + count end)");
        must_do(co_await s->reload_script());
        EXPECT_THAT(co_await s.ask("/"), StartsWith("403"));
        EXPECT_THAT(co_await slow.head(), HasSubstr("404 Not Found"));
        s.write("function on_tick() end");
        EXPECT_TRUE(must_do(co_await s->reread()));
        EXPECT_EQ(co_await s.ask("/usual"), "200 0/usual");
        EXPECT_EQ(sample_of(**s, "script_reloads_total"), 2);
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_test, fails_to_start_by_its_script) {
    run([]() -> task<void> {
        scripted_proxy s("function on_start() error('no') end", json::object());
        EXPECT_THAT(co_await (*s).failure_to_start(), HasSubstr("--lua: gate.lua:1: no"));
        s.write("function on_start() end");
        EXPECT_TRUE(co_await s.has_started());
        EXPECT_EQ(co_await s.ask("/a"), "200 0/a");
        co_await s.stop();
    });
}

/// A call that does not begin at once has what it is about.
TEST_P(scripted_proxy_kernel, keeps_responses_that_wait_for_their_turn) {
    run([]() -> task<void> {
        scripted_proxy s(R"(
            function on_proxy_response(r)
                if r.path == "/long" then for i = 1, 3e6 do end end
                return {headers = {["X-A"] = r.method .. r.path .. r:header("Server")}}
            end)",
                         {{"lua_slice", "50us"}, {"lua_time", "1h"}});
        EXPECT_TRUE(co_await s.has_started());
        text_peer slow = co_await s.client();
        co_await slow.say("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return sample_of(**s, "script_calls") == 1; });
        text_peer quick = co_await s.client();
        co_await quick.say("GET /quick HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(co_await quick.head(), HasSubstr("\r\nX-A: GET/quicktest\r\n"));
        EXPECT_THAT(co_await slow.head(), HasSubstr("\r\nX-A: GET/longtest\r\n"));
        co_await s.stop();
    });
}

TEST_P(scripted_proxy_kernel, runs_on_several_threads) {
    run([]() -> task<void> {
        scripted_proxy s("function on_route(request) return '$1' end", {{"threads", 2}});
        EXPECT_TRUE(co_await s.has_started());
        for (int i = 0; i < 8; ++i)
            EXPECT_THAT(co_await s.ask("/a"), StartsWith("500")) << "it is no backend of it";
        s.write("function on_route(request) return '$0' end");
        must_do(co_await s->reload_script());
        for (int i = 0; i < 8; ++i) EXPECT_EQ(co_await s.ask("/a"), "200 0/a");
        EXPECT_EQ(sample_of(**s, "script_calls_total"), 16);
        co_await s.stop();
    });
}

TEST(proxy_callback_rows, are_documented) {
    const std::string page = content("docs/scripting.md");
    for (const script::callback& each : proxy_callbacks())
        EXPECT_THAT(page, HasSubstr("\n| `" + std::string(each.name) + "(" +
                                    std::string(each.arguments) + ")` | "));
}

}  // namespace
}  // namespace eddy::runtime::proxy
