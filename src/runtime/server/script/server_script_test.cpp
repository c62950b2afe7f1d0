// Scripts of servers: what clients see of callbacks and functions, their order, renewal, and
// scripts that go wrong.
#include "runtime/server/script/server_script.hpp"

#include "runtime/scripting/common_library.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/server/script/server_callbacks.hpp"
#include "runtime/server/script/server_library.hpp"
#include "runtime/server/script/upstream_library.hpp"
#include "runtime/testing.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class scripted_server : public on_io_backend {
protected:
    void write(std::string_view script) { std::ofstream(file_) << script; }
    subject make(std::string_view script, json more = {}) {
        write(script);
        return subject("server", with(std::move(more), with({{"lua", file_}})));
    }
    static task<talker> join(subject& s) {
        const std::uint64_t before = s->count().connections_now;
        talker made = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now > before; });
        co_return made;
    }
    static double errors(subject& s, std::string_view reason) {
        for (const metric_sample& each : s->count().samples)
            if (each.of->name == "script_errors_total" && each.labels.at(0) == reason)
                return std::get<double>(each.value);
        return -1;
    }
    static task<void> has_line(subject& s, std::string line) {
        co_await until([&] { return s.events.has(line); });
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("chat.lua");
};

INSTANTIATE_TEST_SUITE_P(io, scripted_server,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

constexpr std::string_view echo = "function on_message(client, text) self.send(client, text) end";

TEST_P(scripted_server, decides_what_happens_with_messages) {
    run([this]() -> task<void> {
        subject s = make(echo);
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await a.say("one\ntwo\r\n\nthree\n");
        for (const std::string_view each : {"one", "two", "", "three"})
            EXPECT_EQ(co_await a.line(), each);
        co_await b.say("four\n");
        EXPECT_EQ(co_await b.line(), "four") << "no other's message came before";
        const metrics counted = s->count();
        EXPECT_EQ(counted.messages_in, 5U);
        EXPECT_EQ(counted.messages_out, 5U);
        EXPECT_EQ(sample_of(*s, "script_calls_total"), 5);
        EXPECT_EQ(errors(s, "script_failed"), 0);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, refuses_names_that_are_none) {
    run([this]() -> task<void> {
        subject s = make("function on_message(c, text) self.send(c, text) end");
        co_await s.start();
        talker a = co_await join(s);
        for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
                 {"\nfunction on_mesage() end",
                  "--lua: chat.lua:2: there is no callback on_mesage; did you mean on_message?"},
                 {"function on_message(c, t)\nself.brodcast(t) end",
                  "--lua: chat.lua:2: there is no function self.brodcast; did you mean "
                  "self.broadcast?"},
                 {"server.upstream_sent(1, 'x')", "did you mean server.upstream_send?"},
                 {"socketley.json.encod(1)", "did you mean socketley.json.encode?"},
                 {"on_mesage = 1 self.brodcast(", "chat.lua:1: "}}) {
            write(text);
            const auto reloaded = co_await s->reload_script();
            EXPECT_FALSE(reloaded.has_value()) << text;
            EXPECT_THAT(reloaded.error().message, HasSubstr(why));
        }
        co_await a.say("still\n");
        EXPECT_EQ(co_await a.line(), "still");
        // Each function that a page names is there, by any name of the table.
        write(
            "if false then eddy.http() eddy.tcp() eddy.udp() eddy.cache() eddy.counter() "
            "eddy.gauge() eddy.blocking() eddy.create() eddy.send_to() eddy.sleep() "
            "socketley.log() server.clients() self.timer.after() self.route() end");
        must_do(co_await s->reload_script());
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, refuses_a_tick_that_is_no_time) {
    run([this]() -> task<void> {
        for (const std::string ms : {"0", "-1", "9", "0/0", "1e300", "86400001", "'often'", "{}"}) {
            subject s = make("function on_tick() end tick_ms = " + ms);
            const auto started = co_await s->start();
            EXPECT_FALSE(started.has_value()) << ms;
            EXPECT_THAT(started.error().message,
                        HasSubstr("--lua: tick_ms must be a number of milliseconds from 10 to "
                                  "86400000"));
        }
        subject s = make("function on_tick() end function on_start() tick_ms = 50.5 end");
        co_await s.start();
        write("function on_tick() end function on_start() tick_ms = 0 end");
        EXPECT_FALSE((co_await s->reload_script()).has_value());
        write("tick_ms = 0");
        must_do(co_await s->reload_script());
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, starts_while_a_timer_computes) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local function burn(s) local e = os.clock() + s while os.clock() < e do end end
            for i = 1, 5 do self.set_interval(1, function() burn(0.01) end) end
            function on_start() self.sleep(0.002) end
            function on_tick() end)");
        co_await s.start();
        for (int i = 0; i < 3; ++i) must_do(co_await s->reload_script());
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, without_on_message_passes_messages_on) {
    run([this]() -> task<void> {
        subject s = make("function on_connect(c) self.send(c, 'welcome ' .. c) end");
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        EXPECT_EQ(co_await a.line(), "welcome 1");
        EXPECT_EQ(co_await b.line(), "welcome 2");
        co_await a.say("hello\n");
        EXPECT_EQ(co_await b.line(), "hello");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, leaves_commands_to_the_server) {
    run([this]() -> task<void> {
        subject s = make(echo, {{"mode", "master"}, {"master_password", "secret"}});
        co_await s.start();
        talker a = co_await join(s);
        co_await a.say("one\ntwo\nmaster wrong\nthree\nmaster secret\nfour\n");
        for (const std::string_view each :
             {"one", "two", "master: denied", "three", "master: ok", "four"})
            EXPECT_EQ(co_await a.line(), each);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, runs_scripts_of_the_form_with_a_text_alone) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_start() socketley.log("Server started on port " .. self.port) end
            function on_message(msg) self.broadcast("Echo: " .. msg) end
            function on_connect(client_id) self.send(client_id, "Welcome!") end)");
        co_await s.start();
        EXPECT_TRUE(
            s.events.has("script: Server started on port " + std::to_string(s->local().port())));
        talker a = co_await join(s);
        talker b = co_await join(s);
        EXPECT_EQ(co_await a.line(), "Welcome!");
        EXPECT_EQ(co_await b.line(), "Welcome!");
        co_await a.say("x\n");
        EXPECT_EQ(co_await a.line(), "Echo: x");
        EXPECT_EQ(co_await b.line(), "Echo: x");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, prints_to_the_journal) {
    run([this]() -> task<void> {
        subject s = make(R"(
            print("loads", 1, nil, true)
            function on_start() print() print("port", self.port) end)");
        co_await s.start();
        EXPECT_TRUE(s.events.has("script: loads 1 nil true"));
        EXPECT_TRUE(s.events.has("script: port " + std::to_string(s->local().port())));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, has_functions_for_its_clients) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_client_message(c, text)
                local word, rest = text:match("^(%S+) ?(.*)$")
                if word == "all" then self.broadcast(rest)
                elseif word == "some" then self.send(c, "to " .. self.multicast({1, 3, 77}, rest))
                elseif word == "who" then
                    self.send(c, table.concat(self.clients(), ",") .. " of " .. self.connections())
                elseif word == "ip" then self.send(c, self.peer_ip(c) .. tostring(self.peer_ip(99)))
                elseif word == "keep" then
                    self.set_data(c, "name", rest) self.set_data(c, "list", {1, {a = rest}})
                elseif word == "kept" then
                    self.send(c, tostring(self.get_data(c, "name")) ..
                        tostring((self.get_data(c, "list") or {0, {a = 0}})[2].a))
                elseif word == "forget" then
                    self.set_data(c, "name", nil) self.del_data(c, "list")
                elseif word == "join" then self.join_group(c, rest)
                elseif word == "part" then self.send(c, tostring(self.leave_group(c, rest)))
                elseif word == "room" then
                    self.group_send("room", rest)
                    self.send(c, "members " .. table.concat(self.group_members("room"), ","))
                elseif word == "rooms" then self.send(c, "in " .. table.concat(self.groups(c), ","))
                elseif word == "json" then
                    self.send(c, eddy.json.encode(eddy.json.decode(rest)) ..
                        tostring(eddy == self and self == socketley and self == server) ..
                        self.name .. self.type .. self.state .. self.protocol)
                elseif word == "bye" then self.send(c, "bye") self.disconnect(c) self.send(c, "late")
                end
            end)");
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        talker c = co_await join(s);
        co_await a.say("all x\n");
        for (talker* each : {&a, &b, &c}) EXPECT_EQ(co_await each->line(), "x");
        co_await b.say("some y\n");
        EXPECT_EQ(co_await b.line(), "to 2");
        EXPECT_EQ(co_await a.line(), "y");
        EXPECT_EQ(co_await c.line(), "y");
        EXPECT_EQ(co_await ask(a, "who"), "1,2,3 of 3");
        EXPECT_EQ(co_await ask(a, "ip"), "127.0.0.1nil");
        EXPECT_EQ(co_await ask(a, "keep me\nkept"), "meme");
        EXPECT_EQ(co_await ask(a, "forget\nkept"), "nil0");
        co_await b.say("join room\n");
        EXPECT_EQ(co_await ask(b, "rooms"), "in room");
        EXPECT_EQ(co_await ask(c, "join room\nrooms"), "in room");
        EXPECT_EQ(co_await ask(a, "room hi"), "members 2,3");
        EXPECT_EQ(co_await b.line(), "hi");
        EXPECT_EQ(co_await c.line(), "hi");
        EXPECT_EQ(co_await ask(b, "part room"), "true");
        EXPECT_EQ(co_await ask(b, "part room"), "false");
        EXPECT_EQ(co_await ask(a, "json [1,{\"a\":null}]"),
                  "[1,{\"a\":null}]truesubjectserverrunningtcp");
        co_await c.say("bye\nwho\n");
        EXPECT_EQ(co_await c.rest(), "bye\n");
        co_await until([&] { return s->count().connections_now == 2; });
        EXPECT_EQ(co_await ask(a, "room hi"), "members ");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, keeps_the_order_of_what_it_sends) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                self.send(c, "1") self.broadcast("2") self.multicast({c}, "3") self.send(c, "4")
                self.send(c, "5") self.broadcast("6")
            end)");
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await a.say("x\ny\n");
        for (int round = 0; round < 2; ++round) {
            for (const std::string_view each : {"1", "2", "3", "4", "5", "6"})
                EXPECT_EQ(co_await a.line(), each);
            for (const std::string_view each : {"2", "6"}) EXPECT_EQ(co_await b.line(), each);
        }
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, refuses_clients) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local count = 0
            function on_auth(c) count = count + 1 return count ~= 1 end
            function on_connect(c)
                if count == 2 then return false, "no room" end
                if count == 3 then return "try later" end
                if count == 4 then error("spoilt") end
                if count == 5 then eddy.sleep(0.001) return false end
                self.send(c, "in")
            end
            function on_disconnect(c) self.log("left " .. c) end)");
        co_await s.start();
        for (const std::string_view each : {"", "no room\n", "try later\n", "", ""}) {
            talker refused = co_await talker::to(s->local());
            EXPECT_EQ(co_await refused.rest(), each);
        }
        {
            talker taken = co_await talker::to(s->local());
            EXPECT_EQ(co_await taken.line(), "in");
        }
        co_await has_line(s, "script: left 6");
        EXPECT_FALSE(s.events.has("script: left 5"));
        EXPECT_EQ(s->count().connections_refused, 5U);
        EXPECT_TRUE(s.events.has("the script failed: chat.lua:7: spoilt"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, has_one_callback_of_a_client_at_a_time) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_connect(c) eddy.sleep(0.02) self.send(c, "connected") end
            function on_message(c, text)
                self.send(c, "begin " .. text)
                eddy.sleep(0.005)
                self.send(c, "end " .. text)
            end
            function on_disconnect(c) self.log("left") end)");
        co_await s.start();
        {
            talker a = co_await join(s);
            co_await a.say("1\n2\n3\n");
            EXPECT_EQ(co_await a.line(), "connected");
            for (const std::string_view each :
                 {"begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"})
                EXPECT_EQ(co_await a.line(), each);
            // Others are served while a callback of it waits.
            talker b = co_await join(s);
            co_await a.say("slow\n");
            EXPECT_EQ(co_await a.line(), "begin slow");
            EXPECT_EQ(co_await b.line(), "connected");
        }
        co_await has_line(s, "script: left");
        co_await s->stop(1s);
    });
}

TEST_P(scripted_server, ends_the_callback_of_a_client_that_has_gone_before_its_on_disconnect) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                eddy.sleep(0.05)
                self.log("sent " .. tostring(self.send(c, "late")) .. #self.clients())
                self.disconnect(c)
            end
            function on_disconnect(c)
                self.log("left " .. c .. tostring(self.send(c, "x")) .. tostring(self.peer_ip(c)))
            end)");
        co_await s.start();
        {
            talker a = co_await join(s);
            co_await a.say("x\n");
            co_await until([&] { return sample_of(*s, "script_calls") == 1; });
        }
        s->end_drain();
        co_await has_line(s, "script: left 1falsenil");
        std::string all;
        for (const std::string& each : s.events.lines) all += each + "\n";
        EXPECT_THAT(all, HasSubstr("script: sent "));
        EXPECT_LT(all.find("script: sent"), all.find("script: left"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, has_timers_and_ticks) {
    run([this]() -> task<void> {
        subject s = make(R"(
            tick_ms = 10
            local ticks, beats, id = 0, 0
            function on_tick(ms) ticks = ticks + 1 end
            function on_start()
                id = self.set_interval(1, function() beats = beats + 1
                    if beats == 3 then self.clear_interval(id) self.log("three") end end)
                eddy.timer.after(0.01, function() eddy.sleep(0.001) self.log("after") end)
                local gone = self.set_timeout(5, function() self.log("never") end)
                self.log("cleared " .. tostring(self.clear_timeout(gone)))
                self.log("again " .. tostring(eddy.timer.cancel(gone)))
                eddy.timer.every(0.005, function() error("in a timer") end)
            end
            function on_message(c, text) self.send(c, beats .. " " .. tostring(ticks > 2)) end)");
        co_await s.start();
        co_await has_line(s, "script: three");
        co_await has_line(s, "script: after");
        co_await has_line(s, "the script failed: chat.lua:12: in a timer");
        EXPECT_TRUE(s.events.has("script: cleared true"));
        EXPECT_TRUE(s.events.has("script: again false"));
        EXPECT_FALSE(s.events.has("script: never"));
        talker a = co_await join(s);
        must(co_await loop::current().sleep_for(100ms));
        EXPECT_EQ(co_await ask(a, "x"), "3 true");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, limits_timers) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                for i = 1, 10000 do self.set_timeout(1e6, function() end) end
                self.send(c, "full")
                self.set_timeout(1e6, function() end)
            end)");
        co_await s.start();
        talker a = co_await join(s);
        EXPECT_EQ(co_await ask(a, "x"), "full");
        co_await has_line(s,
                          "chat.lua:5: there are 10000 timers already, which is --lua-max-timers");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, runs_on_stop_while_clients_are_there) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_stop() self.broadcast("closing") eddy.sleep(0.001) self.broadcast("now") end
            function on_disconnect(c) self.log("left " .. c) end)");
        co_await s.start();
        talker a = co_await join(s);
        co_await a.say("x\n");
        co_await until([&] { return s->count().messages_in == 1; });
        co_await s->stop(1s);
        EXPECT_EQ(co_await a.rest(), "closing\nnow\n");
        EXPECT_TRUE(s.events.has("script: left 1"));
    });
}

TEST_P(scripted_server, is_renewed_while_clients_stay) {
    run([this]() -> task<void> {
        subject s = make(R"(
            count, names, f = 0, {"a", b = {true}}, function() end
            function on_start() self.log("start") end
            function on_message(c, text)
                count = count + 1
                self.set_data(c, "kept", text) self.join_group(c, "room")
                if text == "slow" then eddy.sleep(2) end
                self.send(c, "old " .. count)
            end)");
        co_await s.start();
        talker a = co_await join(s);
        EXPECT_EQ(co_await ask(a, "x"), "old 1");
        co_await a.say("slow\nnext\n");
        co_await until([&] { return sample_of(*s, "script_calls") == 1; });
        write("function on_message(c, text) self.send(c, 'broken'");
        const auto refused = co_await s->reload_script();
        EXPECT_FALSE(refused.has_value());
        EXPECT_THAT(refused.error().message, HasSubstr("--lua: chat.lua:1: "));
        write("function on_reload(old) error('not now') end");
        const auto failed = co_await s->reload_script();
        EXPECT_FALSE(failed.has_value());
        EXPECT_EQ(failed.error().message, "--lua: chat.lua:1: not now");
        write(R"(
            local before
            function on_start() self.log("never") end
            function on_reload(old) before = old end
            function on_message(c, text)
                self.send(c, "new " .. before.count .. before.names[1] ..
                    tostring(before.names.b[1]) .. tostring(before.f) .. self.get_data(c, "kept") ..
                    self.group_members("room")[1])
            end)");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await a.line(), "old 2");
        EXPECT_EQ(co_await a.line(), "new 2atruenilslow1");
        EXPECT_FALSE(s.events.has("script: never"));
        EXPECT_EQ(sample_of(*s, "script_reloads_total"), 1);
        EXPECT_EQ(s->count().connections_total, 1U);
        // Without an on_reload it begins anew.
        write("function on_start() self.log('anew') end");
        must_do(co_await s->reload_script());
        EXPECT_TRUE(s.events.has("script: anew"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, has_the_same_memory_after_many_renewals) {
    run([this]() -> task<void> {
        subject s = make(echo);
        co_await s.start();
        talker a = co_await join(s);
        EXPECT_EQ(co_await ask(a, "x"), "x");
        const double before = *sample_of(*s, "script_memory_bytes");
        for (int i = 0; i < 50; ++i) {
            must_do(co_await s->reload_script());
            EXPECT_EQ(co_await ask(a, "y"), "y");
        }
        EXPECT_EQ(sample_of(*s, "script_reloads_total"), 50);
        EXPECT_LT(*sample_of(*s, "script_memory_bytes"), before + 4096);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, goes_on_when_the_script_fails) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                if text == "throw" then error("spoilt") end
                if text == "loop" then while true do end end
                if text == "eat" then local t = {} while true do t[#t + 1] = ("x"):rep(1e5) .. #t end end
                if text == "deep" then local function f() return 1 + f() end f() end
                if text == "yield" then coroutine.yield() end
                if text == "within" then coroutine.wrap(function() eddy.sleep(1) end)() end
                if text == "wrong" then self.send({}, "x") end
                if text == "large" then self.send(c, ("x"):rep(600000)) end
                if text == "keys" then for i = 1, 1001 do self.set_data(c, "k" .. i, i) end end
                self.send(c, text)
            end)",
                         {{"lua_memory", "4M"}, {"lua_time", "50ms"}});
        co_await s.start();
        talker a = co_await join(s);
        const std::vector<std::pair<std::string, std::string>> all = {
            {"throw", "chat.lua:3: spoilt"},
            {"loop", "chat.lua:4: it computes for too long"},
            {"eat", "not enough memory"},
            {"deep", "stack overflow"},
            {"yield", "on_message() may not yield"},
            {"within", "cannot be called within a coroutine"},
            {"wrong", "chat.lua:9: send() takes a client and a text"},
            {"large", "chat.lua:10: the text is longer than half of --max-queue"},
            {"keys", "chat.lua:11: the client has 1000 keys already"},
        };
        for (const auto& [word, why] : all) {
            must(co_await loop::current().sleep_for(1s + 1ms));
            EXPECT_EQ(co_await ask(a, word + "\nok"), "ok") << word;
            EXPECT_TRUE(s.events.has(why)) << word;
        }
        EXPECT_EQ(errors(s, "script_too_long"), 1);
        EXPECT_EQ(errors(s, "script_failed"), 8);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, is_degraded_while_its_script_only_fails) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                self.send(c, text)
                if text == "bad" then error("spoilt") end
                if text == "loop" then while true do end end
            end)",
                         {{"lua_time", "2ms"}});
        co_await s.start();
        talker a = co_await join(s);
        for (std::uint64_t i = 0; i < script_errors_until_degraded; ++i) {
            EXPECT_EQ(s->fault(), "") << i;
            EXPECT_EQ(co_await ask(a, i % 2 == 0 ? "bad" : "loop"), i % 2 == 0 ? "bad" : "loop");
        }
        co_await until([&] { return !s->fault().empty(); });
        EXPECT_EQ(s->fault(),
                  "the last 10 calls of its script failed, or more: `eddy logs subject` has the "
                  "errors");
        EXPECT_EQ(co_await ask(a, "good"), "good");
        EXPECT_EQ(s->fault(), "");
        // So does another version.
        for (std::uint64_t i = 0; i < script_errors_until_degraded; ++i)
            EXPECT_EQ(co_await ask(a, "bad"), "bad");
        co_await until([&] { return !s->fault().empty(); });
        write(echo);
        EXPECT_TRUE(co_await s->reload_script());
        EXPECT_EQ(s->fault(), "");
        co_await s->stop(0s);
        EXPECT_EQ(s->fault(), "");
    });
}

TEST_P(scripted_server, serves_others_while_a_callback_computes) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "no time passes while there is work";
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                if text == "loop" then local n = 0 while true do n = n + 1 end end
                self.send(c, text)
            end)",
                         {{"lua_time", "200ms"}});
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await a.say("loop\nend\n");
        co_await until([&] { return sample_of(*s, "script_calls") == 1; });
        // The loop runs: connections come.
        talker c = co_await join(s);
        co_await b.say("x\n");
        EXPECT_EQ(co_await b.line(), "x");
        EXPECT_EQ(co_await a.line(), "end");
        EXPECT_EQ(errors(s, "script_too_long"), 1);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, stops_within_a_callback) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "no time passes while there is work";
    run([this]() -> task<void> {
        for (const std::string_view body :
             {"eddy.sleep(1000)", "while true do end", "self.disconnect(c) eddy.sleep(1000)"}) {
            subject s = make("function on_message(c, text) " + std::string(body) + " end");
            co_await s.start();
            talker a = co_await join(s);
            co_await a.say("x\n");
            co_await until([&] { return sample_of(*s, "script_calls") == 1; });
            co_await s->stop(0s);
            co_await a.rest();
        }
    });
}

TEST_P(scripted_server, does_not_start_with_a_script_that_does_not_load) {
    run([this]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"\nfunction on_message( end", "--lua: chat.lua:2: "},
            {"\nerror('no')", "--lua: chat.lua:2: no"},
            {"on_message = 1", "its on_message is no function"},
            {"while true do end", "chat.lua:1: it computes for too long"},
            {"eddy.sleep(1)", "chat.lua:1: functions that wait can be called within"},
            {"function on_start() error('not today') end", "--lua: chat.lua:1: not today"},
            {"function on_start() nothing() end", "attempt to call global 'nothing' (a nil value)"},
            {"self.x = 1", "readonly table"},
        };
        for (const auto& [text, why] : all) {
            subject s = make(text);
            EXPECT_THAT(co_await s.failure_to_start(), HasSubstr(why)) << text;
        }
    });
}

TEST_P(scripted_server, takes_messages_without_lines) {
    run([this]() -> task<void> {
        subject s = make("function on_message(c, text) self.send(c, #text .. text) end",
                         {{"framing", "raw"}});
        co_await s.start();
        talker a = co_await join(s);
        co_await a.say("a\nb");
        EXPECT_EQ(co_await a.bytes(4), "3a\nb");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, works_on_datagrams) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_connect(c) self.log("new " .. c .. self.protocol) end
            function on_message(c, text)
                if text == "all" then self.broadcast("to all") end
                if text == "slow" then eddy.sleep(0.01) end
                if text == "bye" then self.disconnect(c) end
                self.send(c, text)
            end
            function on_disconnect(c) self.log("left " .. c) end)",
                         {{"udp", true}});
        co_await s.start();
        datagram a = must(here().bind_datagram(loopback()));
        const auto say = [&](std::string_view text) {
            must(a.send_to(as_bytes(text), s->local()));
        };
        const auto hear = [](datagram& of) -> task<std::string> {
            auto got = must(co_await of.receive());
            co_return std::string(got.payload.text());
        };
        say("first");
        EXPECT_EQ(co_await hear(a), "first") << "an answer no longer than what came";
        EXPECT_TRUE(s.events.has("script: new 1udp"));
        say("all");
        EXPECT_EQ(co_await hear(a), "to all");
        EXPECT_EQ(co_await hear(a), "all");
        say("slow");
        say("next");
        EXPECT_EQ(co_await hear(a), "slow");
        EXPECT_EQ(co_await hear(a), "next");
        write(
            "function on_message(c, text) self.send(c, 'new ' .. text) self.disconnect(c) end\n"
            "function on_disconnect(c) self.log('left ' .. c) end");
        must_do(co_await s->reload_script());
        say("x");
        EXPECT_EQ(co_await hear(a), "new x");
        co_await has_line(s, "script: left 1");
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, shares_the_time_of_a_stop_among_its_callbacks) {
    if (GetParam() != io_backend_kind::sim) GTEST_SKIP() << "it would take seconds";
    run([this]() -> task<void> {
        subject s = make(
            "function on_stop() eddy.sleep(1000) end\n"
            "function on_disconnect() eddy.sleep(1000) end\n"
            "function on_message(c, text) self.send(c, text) end",
            {{"udp", true}});
        co_await s.start();
        datagram a = must(here().bind_datagram(loopback()));
        must(a.send_to(as_bytes("x"), s->local()));
        co_await until([&] { return s->count().connections_now == 1; });
        const time_point began = loop::current().now();
        co_await s->stop(1s);
        EXPECT_LT(loop::current().now() - began, 1100ms);
    });
}

TEST_P(scripted_server, keeps_few_versions_with_calls_that_wait) {
    run([this]() -> task<void> {
        subject s = make("function on_message(c, text) self.send(c, text) eddy.sleep(1000) end");
        co_await s.start();
        std::vector<talker> clients;
        for (std::size_t i = 0; i < max_old_scripts; ++i) {
            clients.push_back(co_await join(s));
            EXPECT_EQ(co_await ask(clients.back(), "x"), "x");
            must_do(co_await s->reload_script());
        }
        const auto refused = co_await s->reload_script();
        EXPECT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().status, 503);
        EXPECT_THAT(refused.error().message, HasSubstr("calls of earlier versions still wait"));
        // They have five seconds to end.
        if (GetParam() == io_backend_kind::sim) {
            must(co_await loop::current().sleep_for(script_farewell));
            co_await until([&] { return sample_of(*s, "script_calls") == 0; });
            must_do(co_await s->reload_script());
        }
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, keeps_few_datagrams_that_wait) {
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_message(c, text)
                if text == "slow" then eddy.sleep(0.1) end
                self.log("got " .. text)
            end)",
                         {{"udp", true}});
        co_await s.start();
        datagram a = must(here().bind_datagram(loopback()));
        must(a.send_to(as_bytes(std::string_view("slow")), s->local()));
        co_await until([&] { return s->count().messages_in == 1; });
        constexpr std::size_t more = server::max_waiting_messages + 6;
        for (std::size_t i = 1; i <= more; ++i)
            must(a.send_to(as_bytes(std::to_string(i)), s->local()));
        co_await until([&] { return s->count().dropped == 6; });
        co_await has_line(s, "script: got 64");
        EXPECT_FALSE(s.events.has("script: got 65"));
        EXPECT_TRUE(s.events.has("script: got slow"));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, limits_the_data_of_all_clients) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local large = {}
            for i = 1, 10 do large[i] = (i .. "x"):rep(30000) end
            function on_message(c, text)
                local ok, why
                for i = 1, text == "more" and 5 or 0 do ok, why = pcall(self.set_data, c, i, large) end
                if text == "less" then
                    self.set_data(c, 1, nil)
                    self.del_data(c, 2)
                    ok, why = pcall(self.set_data, c, 4, large)
                end
                self.send(c, tostring(ok) .. tostring(why))
            end)",
                         {{"lua_memory", "2MiB"}});
        co_await s.start();
        for (int i = 0; i < 2; ++i) {
            talker a = co_await join(s);
            EXPECT_THAT(co_await ask(a, "more"), HasSubstr("would be larger than --lua-memory"));
            EXPECT_EQ(co_await ask(a, "less"), "truetrue");
            a.socket.close();
            co_await until([&] { return s->count().connections_now == 0; });
        }
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, limits_what_it_keeps_for_a_client_of_http) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local large = ("x"):rep(60000)
            function on_connect(c) if c == 1 then self.join_group(c, "g") end end
            function on_message(c, text)
                local took = {}
                for i = 1, 4 do
                    took[i] = text == "all" and self.group_send("g", large) or tostring(self.send(1, large))
                end
                self.send(c, table.concat(took, " "))
            end)",
                         {{"http", folder_.path()}, {"max_queue", "300KB"}});
        co_await s.start();
        talker page = co_await join(s);
        co_await page.say("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_THAT(co_await page.line(), HasSubstr("404"));
        talker a = co_await join(s);
        EXPECT_EQ(co_await ask(a, "all"), "1 1 0 0");
        EXPECT_EQ(co_await ask(a, "one"), "false false false false");
        EXPECT_EQ(s->count().dropped, 6U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, limits_what_it_keeps_for_a_client) {
    run([this]() -> task<void> {
        subject s = make(R"(
            local function failure(run, ...) local ok, why = pcall(run, ...) return tostring(why) end
            function on_message(c, text)
                local x = ("x"):rep(300)
                for i = 1, 100 do self.join_group(c, "g" .. i) end
                self.send(c, failure(self.join_group, c, "more"))
                self.send(c, failure(self.join_group, c, x))
                self.send(c, failure(self.join_group, c, ""))
                self.send(c, failure(self.set_data, c, x, 1))
                self.send(c, failure(self.set_data, c, "k", ("x"):rep(65537)))
                self.send(c, failure(self.set_data, c, "k", print_))
                self.send(c, tostring(self.join_group(c, "g1")) .. #self.groups(c))
                self.log(("y"):rep(5000))
            end
            function print_() end)");
        co_await s.start();
        talker a = co_await join(s);
        EXPECT_THAT(co_await ask(a, "x"), HasSubstr("is in 100 groups already"));
        EXPECT_THAT(co_await a.line(), HasSubstr("the name of a group has 1 to 256 bytes"));
        EXPECT_THAT(co_await a.line(), HasSubstr("the name of a group has 1 to 256 bytes"));
        EXPECT_THAT(co_await a.line(), HasSubstr("the key is longer than 256 bytes"));
        EXPECT_THAT(co_await a.line(), HasSubstr("the value is longer than 64 KiB"));
        EXPECT_THAT(co_await a.line(), HasSubstr("set_data() cannot keep a function"));
        EXPECT_EQ(co_await a.line(), "true100");
        co_await has_line(s, std::string(max_script_log, 'y'));
        EXPECT_FALSE(s.events.has(std::string(max_script_log + 1, 'y')));
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, runs_on_several_threads) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "it has one thread";
    run([this]() -> task<void> {
        subject s = make(R"(
            function on_connect(c) self.join_group(c, "all") self.send(c, "id " .. c) end
            function on_message(c, text)
                local word, id = text:match("^(%S+) ?(.*)$")
                if word == "tell" then self.send(id, "told")
                elseif word == "some" then self.multicast({1, 2, 3, 4}, "some")
                elseif word == "group" then self.group_send("all", "group")
                elseif word == "all" then self.broadcast("all")
                elseif word == "count" then self.send(c, "count " .. self.connections())
                elseif word == "end" then self.disconnect(id) end
            end)",
                         {{"threads", 2}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 4; ++i) {
            clients.push_back(co_await join(s));
            EXPECT_THAT(co_await clients.back().line(), HasSubstr("id "));
        }
        co_await clients[0].say("count\n");
        EXPECT_EQ(co_await clients[0].line(), "count 4");
        for (const std::string word : {"some", "group", "all"}) {
            co_await clients[0].say(word + "\n");
            for (talker& each : clients) EXPECT_EQ(co_await each.line(), word);
        }
        co_await clients[0].say("tell 2\n");
        co_await clients[0].say("tell 1\n");
        // The numbers of the clients are in the order of their loops.
        write("function on_message(c, text) self.send(c, 'new') end");
        must_do(co_await s->reload_script());
        for (talker& each : clients) co_await each.say("x\n");
        std::size_t told = 0;
        for (talker& each : clients) {
            std::string line = co_await each.line();
            if (line == "told") {
                ++told;
                line = co_await each.line();
            }
            EXPECT_EQ(line, "new");
        }
        EXPECT_EQ(told, 2U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_server, is_renewed_on_all_threads_or_none) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "it has one thread";
    run([this]() -> task<void> {
        subject s = make("function on_message(c, text) self.send(c, 'old') end", {{"threads", 2}});
        co_await s.start();
        talker a = co_await join(s);
        // One of two threads has the client, so each of these fails on another one.
        for (const std::string how : {"== 0", "> 0"}) {
            write("function on_start() if #self.clients() " + how +
                  " then error('this thread fails') end end\n"
                  "function on_message(c, text) self.send(c, 'new') end");
            const auto reloaded = co_await s->reload_script();
            EXPECT_FALSE(reloaded);
            if (!reloaded) EXPECT_THAT(reloaded.error().message, HasSubstr("this thread fails"));
            EXPECT_EQ(co_await ask(a, "x"), "old") << how;
        }
        write("function on_message(c, text) self.send(c, 'new') end");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await ask(a, "x"), "new");
        EXPECT_EQ(sample_of(*s, "script_reloads_total"), 2);
        co_await s->stop(0s);
    });
}

TEST(server_library_rows, are_documented) {
    class none final : public server::script_clients {
        server::script_transport& transport() noexcept override { std::abort(); }
        server::script_client* find(std::uint64_t) noexcept override { return nullptr; }
        bool has_others() const noexcept override { return false; }
        bool is_elsewhere(std::uint64_t) const noexcept override { return false; }
        std::vector<server::script_client*> all() override { return {}; }
        std::vector<server::script_client*> members(std::string_view) override { return {}; }
        void join(server::script_client&, std::string_view) override {}
        void part(server::script_client&, std::string_view) override {}
        std::size_t& data_bytes() noexcept override { std::abort(); }
        std::size_t max_data_bytes() const noexcept override { return 0; }
        host* daemon() const noexcept override { return nullptr; }
        const std::string& own_name() const noexcept override { std::abort(); }
        bool route(server::script_client&, std::shared_ptr<server::client_route>) override {
            return false;
        }
    } all;
    recorder lines;
    class none_runs final : public script_timers::runner {
        void run(script_timers&, std::uint64_t, std::shared_ptr<script::kept_function>) override {}
    } runner;
    script_timers timers(runner, 1);
    std::vector<script::library> libraries = common_libraries(lines, timers, {}, nullptr);
    libraries.push_back(server::server_library(all));
    libraries.push_back(server::upstream_library(nullptr));
    const std::string page = content("docs/scripting.md");
    for (const script::library& each : libraries) {
        script::testing::expect_documented(each);
        for (const script::library_function& row : each.functions)
            EXPECT_THAT(page, HasSubstr("\n" + script::testing::documented_row(each, row)));
    }
    const auto expect_callback = [&](const script::callback& each) {
        EXPECT_THAT(page, HasSubstr("\n| `" + std::string(each.name) + "(" +
                                    std::string(each.arguments) + ")` | "));
    };
    for (const script::callback& each : common_callbacks) expect_callback(each);
    for (const script::callback& each : server::server_callbacks()) expect_callback(each);
}

}  // namespace
}  // namespace eddy::runtime
