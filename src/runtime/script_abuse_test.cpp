// Scripts of each type whose callbacks fail, one after the other and in each way: the failure is
// counted and logged, and the runtime serves further, is loaded again, and stops.
#include "runtime/client/testing.hpp"
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

const json budgets = {{"lua_time", "3ms"}, {"lua_memory", "4M"}};

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
        function on_route() trap("on_route") end)"),
                                     budgets);
    if (callback == "on_start") {
        EXPECT_TRUE(co_await start_fails(*(*s), by, callback));
        co_return;
    }
    EXPECT_TRUE(co_await s.has_started());
    EXPECT_THAT(co_await s.ask("/a"), StartsWith(callback == "on_route" ? "500" : "200 0/a"));
    if (callback == "on_reload") co_await reload_fails(*(*s), by);
    if (callback != "on_stop") co_await until([&] { return errors(*(*s)) >= 1; });
    EXPECT_EQ(co_await s.ask("/b"), "200 0/b");
    co_await s.stop(10s);
    EXPECT_TRUE(callback == "on_reload" || (*s).events.has(by.why));
}

TEST_P(spoilt_callback, of_a_proxy) {
    each_of({"on_start", "on_stop", "on_tick", "on_reload", "on_route"}, spoil_proxy);
}

TEST(script_names, are_those_of_all_types) {
    std::set<std::string_view> found;
    for (const type& each : types())
        found.insert(each.script_callbacks.begin(), each.script_callbacks.end());
    EXPECT_EQ(found, std::set<std::string_view>(all_callbacks.begin(), all_callbacks.end()));
    for (const type& each : types()) {
        if (each.script_functions == nullptr) continue;
        const std::vector<std::string> functions = each.script_functions();
        for (const char* const name : {"log", "name", "json.encode", "timer.after", "http", "tcp",
                                       "cache", "publish", "create", "reload_lua"})
            EXPECT_THAT(functions, ::testing::Contains(name)) << each.name;
        EXPECT_EQ(std::ranges::find(functions, "http_read"), functions.end());
    }
}

}  // namespace
}  // namespace eddy::runtime
