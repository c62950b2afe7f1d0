// Lua source: what clients see of a script, and the limits of one that goes wrong.
#include "runtime/stream/sources/lua_source.hpp"

#include "runtime/scripting/script_limits.hpp"
#include "runtime/stream/sources/stream_library.hpp"
#include "runtime/stream/testing.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class scripted_streams : public on_io_backend {
protected:
    json options(std::string_view script, json more = {}) {
        std::ofstream(folder_.file("answer.lua")) << script;
        return with(std::move(more), {{"handoff", "unix://" + folder_.file("handoff.sock")},
                                      {"source", "lua"},
                                      {"lua", folder_.file("answer.lua")}});
    }
    subject make(std::string_view script, json more = {}) {
        return subject("stream", options(script, std::move(more)));
    }
    /// The events that a client of the runtime gets.
    static task<std::string> events_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        const std::string answer = co_await client.rest();
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
        co_return answer.substr(answer.find("\r\n\r\n") + 4);
    }
    static double faults(subject& s, std::string_view reason) {
        return count_of(s, "stream_errors_total", reason);
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, scripted_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(scripted_streams, are_what_the_script_sends) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle(request)
                send("hello " .. request.user_id .. ": " .. request.prompt)
                sleep(1)
                event("note", "two\nlines")
                for i, each in ipairs(request.messages) do send(i .. each.content) end
                send(request.top_p)
                send(request.model)
            end)");
        co_await s.start();
        EXPECT_EQ(co_await events_of(s, R"({"user_id":7,"prompt":"\"hi\"","top_p":0.5,)"
                                        R"("messages":[{"content":"a"},{"content":"b"}]})"),
                  "data: {\"content\":\"hello 7: \\\"hi\\\"\"}\n\n"
                  "event: note\ndata: two\ndata: lines\n\n"
                  "data: {\"content\":\"1a\"}\n\n"
                  "data: {\"content\":\"2b\"}\n\n"
                  "data: {\"content\":\"0.5\"}\n\n"
                  "data: {\"content\":\"\"}\n\n"
                  "data: [DONE]\n\n");
        EXPECT_EQ(sample_of(*s, "streams_total"), 1);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, run_beside_each_other_and_share_what_the_script_keeps) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local count = 0
            function handle(request)
                count = count + 1
                while count < 200 do sleep(1) end
                send(request.prompt .. " of " .. count)
            end)");
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 200; ++i)
            clients.push_back(make_client(s, "{\"prompt\":\"" + std::to_string(i) + "\"}"));
        for (int i = 0; i < 200; ++i) {
            const std::string answer = co_await clients[static_cast<std::size_t>(i)].rest();
            EXPECT_THAT(answer, EndsWith("data: {\"content\":\"" + std::to_string(i) +
                                         " of 200\"}\n\ndata: [DONE]\n\n"));
        }
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, end_with_the_reason_when_the_script_fails) {
    run([this]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"error('spoilt')", "answer.lua:3: spoilt"},
            {"error({})", "answer.lua:3: an error that is a table"},
            {"local x = nil + 1", "answer.lua:3: attempt to perform arithmetic"},
            {"return nothing()", "answer.lua:3: attempt to call global 'nothing'"},
            {"send({})", "answer.lua:3: send() takes a text"},
            {"send(('x'):rep(262145))", "answer.lua:3: the text is larger than 256 KiB"},
            {"event('a\\nb', '')", "answer.lua:3: the name of an event has no line ends"},
            {"event('a')", "answer.lua:3: event() takes a name and a text"},
            {"sleep(-1)", "answer.lua:3: sleep() takes milliseconds"},
            {"sleep(0 / 0)", "answer.lua:3: sleep() takes milliseconds"},
            {"sleep(86400001)", "answer.lua:3: sleep() takes milliseconds"},
            {"coroutine.yield('a', 1, 2)", "handle() may not yield"},
            {"coroutine.wrap(function() send('a') end)()",
             "answer.lua:3: functions that wait cannot be called within a coroutine"},
            {"table.sort({2, 1}, function() sleep(1) end)", "answer.lua:3: "},
            {"local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end",
             "not enough memory"},
            {"local function f() return 1 + f() end f()", "stack overflow"},
        };
        for (const auto& [statement, text] : all) {
            subject s = make("function handle(request)\nsend('a')\n" + statement + "\nend");
            co_await s.start();
            EXPECT_EQ(co_await events_of(s, "{}"),
                      "data: {\"content\":\"a\"}\n\ndata: {\"error\":\"script_failed\"}\n\n")
                << statement;
            EXPECT_EQ(faults(s, "script_failed"), 1);
            EXPECT_TRUE(s.events.has("the script failed: ")) << statement;
            EXPECT_TRUE(s.events.has(text)) << statement;
            co_await s->stop(0s);
        }
    });
}

TEST_P(scripted_streams, go_on_behind_an_error_that_the_script_catches) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle()
                local ok, why = pcall(function() send("a") sleep(1) error("b", 0) end)
                send(tostring(ok) .. why)
            end)");
        co_await s.start();
        EXPECT_EQ(co_await events_of(s, std::string(1, 0)),
                  "data: {\"content\":\"a\"}\n\ndata: {\"content\":\"falseb\"}\n\n"
                  "data: [DONE]\n\n");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, that_compute_without_end_are_ended_and_hold_up_no_other) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle(request)
                if request.prompt == "fast" then return send("quick") end
                while true do pcall(function() while true do end end) end
            end)");
        co_await s.start();
        talker slow = make_client(s, "{}");
        // The loop runs meanwhile: clients come and go.
        talker gone = make_client(s, R"({"prompt":"fast"})");
        EXPECT_THAT(co_await gone.line(), StartsWith("HTTP/1.1 200"));
        gone.socket = {};
        co_await until([&] { return faults(s, "client_hung_up") == 1; });
        EXPECT_EQ(s->count().connections_now, 1U);
        talker fast = make_client(s, R"({"prompt":"fast"})");
        EXPECT_THAT(co_await slow.rest(),
                    EndsWith("\r\n\r\ndata: {\"error\":\"script_too_long\"}\n\n"));
        EXPECT_THAT(co_await fast.rest(), HasSubstr("quick"));
        EXPECT_TRUE(s.events.has("answer.lua:4: it computes for too long"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, whose_client_leaves_stop_computing) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle(request)
                if request.prompt == "fast" then return send("quick") end
                send("begun")
                while true do end
            end)");
        co_await s.start();
        talker leaving = make_client(s, "{}");
        while (!(co_await leaving.line()).starts_with("data:")) {
        }
        leaving.socket = {};
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_THAT(co_await events_of(s, R"({"prompt":"fast"})"), HasSubstr("quick"));
        EXPECT_EQ(faults(s, "script_too_long"), 0);
        // Another one computes as the runtime stops.
        talker cut = make_client(s, "{}");
        while (!(co_await cut.line()).starts_with("data:")) {
        }
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("1 streams were cut off"));
    });
}

TEST_P(scripted_streams, wait_for_clients_that_read_slowly) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle()
                for i = 1, 2000 do send(("x"):rep(1000)) end
            end)");
        co_await s.start();
        client_ends ends = socket_pair();
        const int small = 1;
        ::setsockopt(ends.ours.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        hand_over(s->local(), std::move(ends.ours), "{}");
        // Another stream, which is served meanwhile, ends.
        EXPECT_THAT(co_await events_of(s, "{}"), EndsWith("[DONE]\n\n"));
        EXPECT_LT(sample_of(*s, "chunks_sent_total").value(), 2200)
            << "the one that reads nothing is far behind";
        talker late(must(loop::current().adopt(std::move(ends.theirs))));
        const std::string answer = co_await late.rest();
        EXPECT_THAT(answer, EndsWith("data: [DONE]\n\n"));
        EXPECT_GT(answer.size(), 2'000'000U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, that_use_up_the_memory_fail_alone) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function handle(request)
                if request.prompt == "small" then send("a") sleep(1) return send("b") end
                local t = {}
                while true do t[#t + 1] = ("x"):rep(1e5) .. #t end
            end)");
        co_await s.start();
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(co_await events_of(s, "{}"), "data: {\"error\":\"script_failed\"}\n\n");
            EXPECT_EQ(co_await events_of(s, R"({"prompt":"small"})"),
                      "data: {\"content\":\"a\"}\n\ndata: {\"content\":\"b\"}\n\ndata: [DONE]\n\n");
        }
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, that_fail_all_the_time_fill_no_log) {
    run([this]() -> task<void> {
        subject s = make("function handle() error('a') end");
        co_await s.start();
        const time_point begun = loop::current().now();
        for (int i = 0; i < 50; ++i) co_await events_of(s, "{}");
        const auto most = 1 + (loop::current().now() - begun) / script_failure_interval;
        EXPECT_EQ(faults(s, "script_failed"), 50);
        const auto logged = std::ranges::count_if(s.events.lines, [](const std::string& line) {
            return line.find("the script failed") != std::string::npos;
        });
        EXPECT_LE(logged, most);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, need_a_script_that_loads) {
    run([this]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"\nfunction handle( end", "--lua: answer.lua:2: "},
            {"\n\nerror('no')", "--lua: answer.lua:3: no"},
            {"x = 1", "--lua: answer.lua: it defines no function handle(request)"},
            {"handle = 1", "it defines no function handle(request)"},
            {"function handle() end\nwhile true do end", "answer.lua:2: it computes for too long"},
            {"function handle() end\nsend('a')",
             "answer.lua:2: functions that wait can be called within on_start(), on_stop(), "
             "on_tick(), on_reload() and handle() alone"},
            {"function handle() end\nfunction on_start()\nsend('a') end",
             "answer.lua:3: send() and event() can be called within handle() alone"},
            {"function handle() end\ncoroutine.yield()", "the file's own statements may not yield"},
            {"\27Lua", "answer.lua"},
        };
        for (const auto& [text, why] : all) {
            subject s = make(text);
            EXPECT_THAT(co_await s.failure_to_start(), HasSubstr(why)) << text;
        }
        subject s = make("function handle() send('old') end");
        co_await s.start();
        const json broken = options("function handle(");
        const auto refused = co_await s->check_restart(s.parse(broken), false);
        EXPECT_FALSE(refused.has_value());
        EXPECT_THAT(co_await events_of(s, "{}"), HasSubstr("old"));
        EXPECT_THAT((co_await s->reload_script()).error().message, HasSubstr("answer.lua:1: "));
        EXPECT_THAT(co_await events_of(s, "{}"), HasSubstr("old")) << "it goes on as before";
        co_await s->stop(0s);
    });
}

TEST_P(scripted_streams, go_on_in_their_version_when_the_script_is_loaded_again) {
    run([this]() -> task<void> {
        subject s = make(R"(
            is_over = false
            function handle(r)
                send("old begins")
                while not is_over do sleep(1) end
                send("old ends")
            end)");
        co_await s.start();
        talker waiting = make_client(s, "{}");
        while (!(co_await waiting.line()).starts_with("data: ")) {
        }
        static_cast<void>(options(R"(
            count = 0
            function on_reload(old) was_over = old.is_over end
            function handle(r) count = count + 1 send("new " .. count .. tostring(was_over)) end)"));
        must_do(co_await s->reload_script());
        EXPECT_THAT(co_await events_of(s, "{}"), HasSubstr("new 1false"));
        EXPECT_EQ(s->count().connections_now, 1U);
        EXPECT_EQ(sample_of(*s, "script_reloads_total"), 1);
        // A stop ends what waits in either version.
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("1 streams were cut off"));
    });
}

TEST_P(scripted_streams, have_the_functions_of_every_script) {
    run([this]() -> task<void> {
        subject s = make(R"(
            tick_ms = 10
            local started, ticks, fired = false, 0, false
            function on_start() self.sleep(0.001) started = true end
            function on_tick() ticks = ticks + 1 end
            function on_stop() self.log("it stops") end
            eddy.set_timeout(1, function() fired = true end)
            function handle(r)
                while ticks < 2 or not fired do self.sleep(0.001) end
                send(self.json.encode({self.name, self.type, started, fired}))
                local peer = eddy.tcp()
                send(select(2, peer:connect("unix:/nowhere")))
            end)");
        co_await s.start();
        const std::string events = co_await events_of(s, "{}");
        EXPECT_THAT(events, HasSubstr("stream\\\",true,true]"));
        EXPECT_THAT(events, HasSubstr("o such file"));
        EXPECT_EQ(count_of(s, "script_errors_total", "script_failed"), 0);
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("script: it stops"));
        EXPECT_GE(sample_of(*s, "script_calls_total").value(), 4);
    });
}

TEST(stream_library_rows, are_documented) { script::testing::expect_documented(stream_library()); }

}  // namespace
}  // namespace eddy::runtime::stream
