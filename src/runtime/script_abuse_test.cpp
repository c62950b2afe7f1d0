// Scripts of each type whose callbacks fail, one after the other and in each way: the failure is
// counted and logged, and the runtime serves further, is loaded again, and stops.
#include "runtime/client/testing.hpp"
#include "runtime/http/script/testing.hpp"
#include "runtime/http_testing.hpp"
#include "runtime/proxy/script/testing.hpp"
#include "runtime/scripting/callback_names.hpp"
#include "runtime/testing.hpp"
#include "runtime/type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct attack {
    std::string_view name;
    std::string_view statements;
    std::string_view why;
};
constexpr std::array<attack, 6> attacks = {{
    {"throws", "error('spoilt')", "spoilt"},
    {"loops", "while true do pcall(function() while true do end end) end",
     "it computes for too long"},
    {"allocates", "local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end",
     "not enough memory"},
    {"recurses", "local function f() return (('x'):gsub('x', f)) end f()", "overflow"},
    {"waits within C", "table.sort({2, 1}, function() eddy.sleep(1) end)",
     "attempt to yield across C-call boundary"},
    {"yields", "coroutine.yield(1)", "may not yield"},
}};

class spoilt_callback : public on_io_backend {
protected:
    /// All on the simulator; where time passes, the first ones.
    void each_of(std::initializer_list<std::string_view> callbacks,
                 task<void> (*test)(const attack& by, std::string callback)) {
        const std::size_t count = GetParam() == io_backend_kind::sim ? attacks.size() : 2;
        for (const attack& by : std::span(attacks).first(count))
            for (const std::string_view each : callbacks) {
                SCOPED_TRACE(std::string(each) + " " + std::string(by.name));
                run([&]() -> task<void> { return test(by, std::string(each)); });
            }
    }
};

INSTANTIATE_TEST_SUITE_P(io, spoilt_callback,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

/// The memory is used up well within the time, also on a busy machine.
const json budgets = {{"lua_time", "50ms"}, {"lua_memory", "4M"}};

/// A script with these callbacks, of which one goes wrong once: trap(NAME) comes last in each.
std::string script_of(const attack& by, std::string_view in, std::string_view callbacks) {
    std::string text = "local bad = '" + std::string(in) + "'\nlocal function trap(name)\n";
    text += "if name ~= bad then return end bad = nil " + std::string(by.statements) + "\nend\n";
    return text + std::string(callbacks);
}

double errors(instance& of) {
    double sum = 0;
    for (const metric_sample& each : of.count().samples)
        if (each.of->name == "script_errors_total") sum += std::get<double>(each.value);
    return sum;
}

/// Starts the subject; true if that fails as it must.
task<bool> start_fails(instance& of, const attack& by, std::string_view callback) {
    auto started = co_await of.start();
    EXPECT_EQ(started.has_value(), callback != "on_start");
    if (!started) EXPECT_THAT(started.error().message, HasSubstr(by.why));
    co_return !started;
}

task<void> reload_fails(instance& of, const attack& by) {
    auto reloaded = co_await of.reload_script();
    EXPECT_FALSE(reloaded);
    if (!reloaded) EXPECT_THAT(reloaded.error().message, HasSubstr(by.why));
}

task<void> spoil_server(const attack& by, std::string callback) {
    const temporary_folder folder;
    const std::string file = folder.file("chat.lua");
    std::ofstream(file) << script_of(by, callback, R"(
        tick_ms = 10
        function on_start() trap("on_start") end
        function on_stop() trap("on_stop") end
        function on_tick() trap("on_tick") end
        function on_reload() trap("on_reload") end
        function on_auth() trap("on_auth") end
        function on_connect() trap("on_connect") end
        function on_client_message() trap("on_client_message") end
        function on_message(client, text)
            if text == "timer" then self.set_timeout(0, function() trap("timer") end) end
            self.send(client, text)
            trap("on_message")
        end
        function on_disconnect() trap("on_disconnect") end)");
    subject s("server", with(with({{"lua", file}}), budgets));
    if (co_await start_fails(*s, by, callback)) co_return;
    const bool refuses = callback == "on_auth" || callback == "on_connect";
    {
        talker a = co_await talker::to(s->local());
        co_await a.say("timer\n");
        if (refuses)
            EXPECT_EQ(co_await a.rest(), "");
        else
            EXPECT_EQ(co_await a.line(), "timer");
        if (callback == "on_reload") co_await reload_fails(*s, by);
    }
    if (callback != "on_stop") co_await until([&] { return errors(*s) >= 1; });
    talker b = co_await talker::to(s->local());
    co_await b.say("well\n");
    EXPECT_EQ(co_await b.line(), "well");
    co_await s->stop(10s);
    EXPECT_TRUE(callback == "on_reload" || s.events.has(by.why));
}

TEST_P(spoilt_callback, of_a_server) {
    each_of({"on_start", "on_stop", "on_tick", "on_reload", "on_auth", "on_connect",
             "on_client_message", "on_message", "on_disconnect", "timer"},
            spoil_server);
}

/// The callbacks of a server that decide about requests, claims, and what is sent from outside.
task<void> spoil_decisions(const attack& by, std::string callback) {
    const temporary_folder folder;
    const std::string file = folder.file("doors.lua");
    std::ofstream(file) << script_of(by, callback, R"(
        function on_http_request() trap("on_http_request") return 200, "well" end
        function on_websocket() trap("on_websocket") end
        function on_master_auth() trap("on_master_auth") return true end
        function on_send() trap("on_send") end)");
    subject s("server", with(with({{"lua", file}, {"mode", "master"}}), budgets));
    co_await s.start();
    const std::string upgrade =
        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    for (const bool is_first : {true, false}) {
        const auto fails = [&](std::string_view which) { return is_first && callback == which; };
        {
            talker web = co_await talker::to(s->local());
            EXPECT_EQ((co_await get(web, "/", upgrade)).status(),
                      fails("on_websocket") ? "500" : "101");
            auto sent = co_await s->send("news");
            EXPECT_EQ(sent.has_value(), !fails("on_send"));
            EXPECT_EQ((co_await get_from(s, "/")).status(),
                      fails("on_http_request") ? "500" : "200");
            talker claims = co_await talker::to(s->local());
            co_await claims.say("master sesame\n");
            EXPECT_EQ(co_await claims.line(),
                      fails("on_master_auth") ? "master: denied" : "master: ok");
        }
        co_await until([&] { return sample_of(*s, "master") == 0.0; });
        EXPECT_EQ(errors(*s), 1) << "that of the first round";
    }
    co_await s->stop(10s);
    EXPECT_TRUE(s.events.has(by.why));
}

TEST_P(spoilt_callback, of_a_servers_decisions) {
    each_of({"on_http_request", "on_websocket", "on_master_auth", "on_send"}, spoil_decisions);
}

task<void> spoil_upstream(const attack& by, std::string callback) {
    const temporary_folder folder;
    const std::string file = folder.file("feed.lua");
    std::ofstream(file) << script_of(by, callback, R"(
        function on_upstream(n, text) self.broadcast(text) trap("on_upstream") end
        function on_upstream_connect() trap("on_upstream_connect") end
        function on_upstream_disconnect() trap("on_upstream_disconnect") end
        function on_message(client, text) self.send(client, text) end)");
    subject source("server", any_port);
    co_await source.start();
    subject s("server",
              with(with({{"lua", file}, {"upstream", {source->local().to_string()}}}), budgets));
    co_await s.start();
    talker a = co_await talker::to(s->local());
    co_await a.say("well\n");
    EXPECT_EQ(co_await a.line(), "well");
    co_await until([&] { return sample_of(*s, "upstreams_connected") == 1; });
    for (const std::string_view each : {"first", "second"}) {
        must_do(co_await source->send(std::string(each)));
        EXPECT_EQ(co_await a.line(), each);
    }
    co_await source->stop(0s);
    co_await until([&] { return errors(*s) >= 1; });
    co_await a.say("well\n");
    EXPECT_EQ(co_await a.line(), "well");
    co_await s->stop(10s);
    EXPECT_TRUE(s.events.has(by.why));
}

TEST_P(spoilt_callback, of_a_servers_upstreams) {
    each_of({"on_upstream", "on_upstream_connect", "on_upstream_disconnect"}, spoil_upstream);
}

task<void> spoil_client(const attack& by, std::string callback) {
    const temporary_folder folder;
    const std::string file = folder.file("feed.lua");
    std::ofstream(file) << script_of(by, callback, R"(
        tick_ms = 10
        function on_start() trap("on_start") end
        function on_stop() trap("on_stop") end
        function on_tick() trap("on_tick") end
        function on_reload() trap("on_reload") end
        function on_connect() self.send("hello") trap("on_connect") end
        function on_message(text) self.send(text) trap("on_message") end
        function on_disconnect() trap("on_disconnect") end
        function on_send(text) trap("on_send") end)");
    listener server = client::testing::any_server();
    subject s("client", with(client::testing::to(server, {{"lua", file}}), budgets));
    if (co_await start_fails(*s, by, callback)) co_return;
    {
        talker peer = co_await client::testing::accept(server);
        EXPECT_EQ(co_await peer.line(), "hello");
        co_await peer.say("well\n");
        EXPECT_EQ(co_await peer.line(), "well");
        auto sent = co_await s->send("sent");
        EXPECT_EQ(sent.has_value(), callback != "on_send");
        if (callback == "on_reload") co_await reload_fails(*s, by);
    }
    if (callback != "on_stop") co_await until([&] { return errors(*s) >= 1; });
    talker peer = co_await client::testing::accept(server);
    EXPECT_EQ(co_await peer.line(), "hello");
    must_do(co_await s->send("sent"));
    EXPECT_EQ(co_await peer.line(), "sent");
    co_await s->stop(10s);
    EXPECT_TRUE(callback == "on_reload" || s.events.has(by.why));
}

TEST_P(spoilt_callback, of_a_client) {
    each_of({"on_start", "on_stop", "on_tick", "on_reload", "on_connect", "on_message",
             "on_disconnect", "on_send"},
            spoil_client);
}

task<void> spoil_proxy(const attack& by, std::string callback) {
    proxy::testing::scripted_proxy s(script_of(by, callback, R"(
        tick_ms = 10
        function on_start() trap("on_start") end
        function on_stop() trap("on_stop") end
        function on_tick() trap("on_tick") end
        function on_reload() trap("on_reload") end
        function on_route() trap("on_route") end
        function on_proxy_request() trap("on_proxy_request") end
        function on_proxy_response() trap("on_proxy_response") end)"),
                                     budgets);
    if (callback == "on_start") {
        EXPECT_TRUE(co_await start_fails(*(*s), by, callback));
        co_return;
    }
    EXPECT_TRUE(co_await s.has_started());
    const bool is_of_requests = callback == "on_route" || callback.starts_with("on_proxy_");
    EXPECT_THAT(co_await s.ask("/a"), StartsWith(is_of_requests ? "500" : "200 0/a"));
    if (callback == "on_reload") co_await reload_fails(*(*s), by);
    if (callback != "on_stop") co_await until([&] { return errors(*(*s)) >= 1; });
    EXPECT_EQ(co_await s.ask("/b"), "200 0/b");
    co_await s.stop(10s);
    EXPECT_TRUE(callback == "on_reload" || (*s).events.has(by.why));
}

TEST_P(spoilt_callback, of_a_proxy) {
    each_of({"on_start", "on_stop", "on_tick", "on_reload", "on_route", "on_proxy_request",
             "on_proxy_response"},
            spoil_proxy);
}

task<void> spoil_site(const attack& by, std::string callback) {
    http::testing::scripted_site s(script_of(by, callback, R"(
        tick_ms = 10
        function on_start() trap("on_start") end
        function on_stop() trap("on_stop") end
        function on_tick() trap("on_tick") end
        function on_reload() trap("on_reload") end
        function on_http_request() trap("on_http_request") end)"),
                                   budgets);
    if (callback == "on_start") {
        EXPECT_TRUE(co_await start_fails(*(*s), by, callback));
        co_return;
    }
    EXPECT_TRUE(co_await s.has_started());
    EXPECT_THAT(co_await s.ask("GET /a.txt"),
                StartsWith(callback == "on_http_request" ? "500" : "200 the file"));
    if (callback == "on_reload") co_await reload_fails(*(*s), by);
    if (callback != "on_stop") co_await until([&] { return errors(*(*s)) >= 1; });
    EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 the file");
    co_await s->stop(10s);
    EXPECT_TRUE(callback == "on_reload" || (*s).events.has(by.why));
}

TEST_P(spoilt_callback, of_a_site) {
    each_of({"on_start", "on_stop", "on_tick", "on_reload", "on_http_request"}, spoil_site);
}

TEST(script_names, are_those_of_all_types) {
    std::set<std::string_view> found;
    for (const type& each : types())
        found.insert(each.script_callbacks.begin(), each.script_callbacks.end());
    EXPECT_EQ(found, std::set<std::string_view>(all_callbacks.begin(), all_callbacks.end()));
    for (const type& each : types()) {
        if (each.script_functions == nullptr) continue;
        const std::vector<std::string> functions = each.script_functions();
        if (each.name == "cache") {  // its scripts run on threads, without a loop's functions
            EXPECT_THAT(functions, ::testing::ElementsAre("log", "name", "state", "type"));
            continue;
        }
        for (const char* const name : {"log", "name", "json.encode", "timer.after", "http", "tcp",
                                       "cache", "publish", "create", "reload_lua"})
            EXPECT_THAT(functions, ::testing::Contains(name)) << each.name;
        EXPECT_EQ(std::ranges::find(functions, "http_read"), functions.end());
    }
}

}  // namespace
}  // namespace eddy::runtime
