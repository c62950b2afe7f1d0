// Tests of messages between scripts: order, loops, limits, and the end of subscriptions.
#include "runtime/scripting/bus_library.hpp"

#include "runtime/testing.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

/// Publishes what its clients say.
constexpr std::string_view publisher =
    "function on_message(c, text) self.send(c, eddy.publish('news', text)) end";
/// Sends its clients what is published.
constexpr std::string_view subscriber =
    "eddy.subscribe('news', function(text, channel) self.broadcast(channel .. ' ' .. text) end)";

class script_bus_test : public on_io_backend {
protected:
    subject make(std::string name, std::string_view script, json options = json::object()) {
        const std::string file = write(name, script);
        return subject("server", with(std::move(options), with({{"lua", file}})), name, among_);
    }
    std::string write(const std::string& name, std::string_view script) {
        const std::string file = folder_.file(name + ".lua");
        std::ofstream(file) << script;
        return file;
    }
    static task<talker> join(subject& s) {
        const std::uint64_t before = s->count().connections_now;
        talker made = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now > before; });
        co_return made;
    }
    static task<std::string> say(talker& to, std::string text) {
        co_await to.say(text + "\n");
        co_return co_await to.line();
    }

    temporary_folder folder_;
    neighbours among_;
};

INSTANTIATE_TEST_SUITE_P(io, script_bus_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

class script_bus_kernel_test : public script_bus_test {};
INSTANTIATE_TEST_SUITE_P(io, script_bus_kernel_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(script_bus_test, messages_reach_other_runtimes_in_order) {
    run([this]() -> task<void> {
        subject a = make("a", publisher);
        subject b = make("b", subscriber);
        co_await a.start();
        co_await b.start();
        talker from = co_await join(a);
        talker to = co_await join(b);
        for (int i = 0; i < 100; ++i) co_await from.say(std::to_string(i) + "\n");
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(co_await from.line(), "1");
            EXPECT_EQ(co_await to.line(), "news " + std::to_string(i));
        }
        EXPECT_EQ(sample_of(*a, "script_published_total"), 100.0);
        EXPECT_EQ(sample_of(*b, "script_received_total"), 100.0);
        EXPECT_EQ(sample_of(*b, "script_missed_total"), 0.0);
        co_await b->stop(0s);
        EXPECT_EQ(co_await say(from, "x"), "0") << "its subscription has ended";
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_kernel_test, messages_reach_the_states_of_all_loops) {
    run([this]() -> task<void> {
        subject a = make("a", publisher, {{"threads", 2}});
        subject b = make("b", subscriber, {{"threads", 3}});
        co_await a.start();
        co_await b.start();
        talker one = co_await join(a);
        talker two = co_await join(a);
        talker to = co_await join(b);
        EXPECT_EQ(co_await say(one, "x"), "3");
        EXPECT_EQ(co_await say(two, "y"), "3");
        // Each of the three states broadcasts to the clients of all.
        for (const std::string_view each : {"news x", "news x", "news x"})
            EXPECT_THAT(co_await to.line(), ::testing::AnyOf(each, "news y"));
        for (int i = 0; i < 3; ++i)
            EXPECT_THAT(co_await to.line(), ::testing::AnyOf("news x", "news y"));
        co_await until([&] { return sample_of(*b, "script_received_total") == 6.0; });
        co_await a->stop(0s);
        co_await b->stop(0s);
    });
}

TEST_P(script_bus_test, a_stop_waits_for_subscriptions_once) {
    if (GetParam() != io_backend_kind::sim) GTEST_SKIP() << "it would take seconds";
    run([this]() -> task<void> {
        subject a = make("a", R"(
            eddy.subscribe("news", function() eddy.sleep(1000) end)
            function on_message(c, text) self.send(c, eddy.publish("news", text)) end)");
        co_await a.start();
        talker from = co_await join(a);
        EXPECT_EQ(co_await say(from, "x"), "1");
        const time_point began = loop::current().now();
        co_await a->stop(1s);
        EXPECT_LT(loop::current().now() - began, 1100ms);
    });
}

/// Each message makes two more, which take a while.
constexpr std::string_view storm = R"(
    local function burn(s) local e = os.clock() + s while os.clock() < e do end end
    for i = 1, 10 do
        eddy.subscribe("storm", function(text)
            burn(0.002)
            eddy.publish("storm", text)
            eddy.publish("storm", text)
        end)
    end
    function on_start() for i = 1, 1024 do eddy.publish("storm", "x") end end
    function on_send(text) return text .. "!" end
    function on_message(client, text) self.send(client, text) end
    function on_stop() self.log("stops") end)";

// The simulator's time stands still while there is work.
TEST_P(script_bus_kernel_test, a_storm_leaves_other_callbacks_and_the_end_their_turn) {
    run([this]() -> task<void> {
        subject a = make("a", storm);
        co_await a.start();
        talker client = co_await join(a);
        const double before = sample_of(*a, "script_received_total").value_or(0);
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(must_do(co_await a->send("sent")), 1U);
            EXPECT_EQ(co_await client.line(), "sent!");
            EXPECT_EQ(co_await say(client, "said"), "said");
        }
        // Ten subscriptions have their turn before each of ten callbacks.
        EXPECT_LT(sample_of(*a, "script_received_total").value_or(0) - before, 1000.0);
        const double received = sample_of(*a, "script_received_total").value_or(0);
        co_await a->stop(0s);
        EXPECT_TRUE(a.events.has("stops"));
        // Ten thousand are queued.
        EXPECT_LT(sample_of(*a, "script_received_total").value_or(0) - received, 100.0);
    });
}

TEST_P(script_bus_test, delivers_some_messages_in_a_turn) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            for i = 1, 100 do eddy.subscribe("many", function() end) end
            function on_message(client, text) for i = 1, 500 do eddy.publish("many", "x") end end)",
                         {{"lua_slice", "1s"}});
        co_await a.start();
        talker from = co_await join(a);
        co_await from.say("go\n");
        double most = 0;
        double last = 0;
        while (last < 50'000) {
            co_await loop::current().yield();
            const double now = sample_of(*a, "script_received_total").value_or(0);
            most = std::max(most, now - std::exchange(last, now));
        }
        EXPECT_LE(most, 2.0 * 100 * max_deliveries_a_turn);
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, unsubscribe_ends_a_subscription) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            local first = eddy.subscribe("news", function(text) eddy.publish("got", "first " .. text) end)
            local once
            once = eddy.subscribe("news", function(text)
                eddy.publish("got", "once " .. text)
                self.log(tostring(eddy.unsubscribe(once)) .. tostring(eddy.unsubscribe(once)))
            end)
            eddy.subscribe("got", function(text) self.broadcast(text) end)
            function on_message(c, text)
                if text == "end" then return self.send(c, tostring(eddy.unsubscribe(first))) end
                eddy.publish("news", text)
            end)");
        co_await a.start();
        talker one = co_await join(a);
        co_await one.say("x\n");
        EXPECT_EQ(co_await one.line(), "first x");
        EXPECT_EQ(co_await one.line(), "once x");
        EXPECT_TRUE(a.events.has("script: truefalse"));
        EXPECT_EQ(co_await say(one, "y"), "first y");
        EXPECT_EQ(co_await say(one, "end"), "true");
        EXPECT_EQ(co_await say(one, "end"), "false");
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, a_message_waits_for_the_one_before) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            local under_way = 0
            eddy.subscribe("news", function(text)
                under_way = under_way + 1
                self.sleep(0.01)
                self.broadcast(text .. " " .. under_way)
                under_way = under_way - 1
            end)
            function on_message(c, text) eddy.publish("news", text) end)");
        co_await a.start();
        talker one = co_await join(a);
        co_await one.say("x\ny\nz\n");
        for (const std::string_view each : {"x 1", "y 1", "z 1"})
            EXPECT_EQ(co_await one.line(), each);
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, what_finds_a_full_queue_is_dropped_and_counted) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            local is_open = false
            eddy.subscribe("news", function(text)
                while not is_open do self.sleep(0.01) end
            end)
            function on_message(c, text)
                local taken = 0
                for i = 1, tonumber(text) do taken = taken + eddy.publish("news", i) end
                is_open = taken < tonumber(text)
                self.send(c, taken)
            end)");
        co_await a.start();
        talker one = co_await join(a);
        EXPECT_EQ(co_await say(one, "1"), "1");
        co_await until([&] { return sample_of(*a, "script_received_total") == 1.0; });
        const auto most = static_cast<double>(max_queued_messages);
        EXPECT_EQ(co_await say(one, std::to_string(max_queued_messages + 7)),
                  std::to_string(max_queued_messages));
        co_await until([&] { return sample_of(*a, "script_received_total") == most + 1; });
        EXPECT_EQ(co_await say(one, "1"), "1");
        co_await until([&] { return sample_of(*a, "script_received_total") == most + 2; });
        EXPECT_EQ(sample_of(*a, "script_missed_total"), 7.0);
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, a_reload_loses_and_doubles_none) {
    run([this]() -> task<void> {
        subject a = make("a", publisher);
        const std::string counting = R"(
            eddy.subscribe("news", function(text)
                self.sleep(0.001)
                self.broadcast(text)
            end))";
        subject b = make("b", counting);
        co_await a.start();
        co_await b.start();
        talker from = co_await join(a);
        talker to = co_await join(b);
        constexpr int all = 60;
        for (int i = 0; i < all; ++i) {
            EXPECT_EQ(co_await say(from, std::to_string(i)), "1") << i;
            if (i % 20 == 10) must_do(co_await b->reload_script());
        }
        std::vector<int> got;
        for (int i = 0; i < all; ++i) got.push_back(std::stoi(co_await to.line()));
        std::ranges::sort(got);
        for (int i = 0; i < all; ++i) EXPECT_EQ(got.at(static_cast<std::size_t>(i)), i);
        co_await a->stop(0s);
        co_await b->stop(0s);
    });
}

TEST_P(script_bus_test, names_messages_and_subscriptions_are_limited) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            function on_message(c, text)
                local name = ("x"):rep(201)
                if text == "many" then
                    local count = 0
                    while pcall(eddy.subscribe, "c", function() end) do count = count + 1 end
                    local _, why = pcall(eddy.subscribe, "c", function() end)
                    return self.send(c, count .. " " .. why)
                end
                local tries = {
                    name = function() eddy.publish(name, "") end,
                    sub = function() eddy.subscribe(name, function() end) end,
                    none = function() eddy.publish("", "") end,
                    large = function() eddy.publish("c", ("x"):rep(1048577)) end,
                }
                self.send(c, select(2, pcall(tries[text])))
            end)");
        co_await a.start();
        talker one = co_await join(a);
        EXPECT_THAT(co_await say(one, "name"), HasSubstr("has at most 200 bytes"));
        EXPECT_THAT(co_await say(one, "sub"), HasSubstr("has at most 200 bytes"));
        EXPECT_THAT(co_await say(one, "none"), HasSubstr("a channel needs a name"));
        EXPECT_THAT(co_await say(one, "large"), HasSubstr("at most 1048576 are possible"));
        EXPECT_THAT(co_await say(one, "many"),
                    HasSubstr("100 the script has 100 subscriptions, which is the limit"));
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, ended_subscriptions_count_while_their_functions_run) {
    run([this]() -> task<void> {
        subject a = make("a", R"(
            function on_message(c, text)
                for i = 1, 100 do
                    local id
                    id = eddy.subscribe("c", function() eddy.unsubscribe(id) eddy.sleep(1000) end)
                end
                eddy.publish("c", "x")
                eddy.sleep(0.01)
                self.send(c, select(2, pcall(eddy.subscribe, "c", function() end)))
            end)");
        co_await a.start();
        talker one = co_await join(a);
        EXPECT_THAT(co_await say(one, "x"), HasSubstr("has 100 subscriptions"));
        co_await a->stop(0s);
    });
}

TEST_P(script_bus_test, a_script_that_does_not_load_leaves_no_subscription) {
    run([this]() -> task<void> {
        subject a = make("a", publisher);
        co_await a.start();
        talker one = co_await join(a);
        write("a", std::string(subscriber) + "\nerror('no')");
        EXPECT_FALSE((co_await a->reload_script()).has_value());
        EXPECT_EQ(co_await say(one, "x"), "0");
        co_await a->stop(0s);
    });
}

TEST(script_bus_rows, are_documented) {
    class none final : public script_bus::runner {
        task<void> deliver(std::shared_ptr<script::kept_function>, std::string_view,
                           std::string_view) override {
            co_return;
        }
    } runner;
    scope tasks;
    script_tallies counted;
    script_bus bus(nullptr, runner, tasks, counted);
    const std::string page = content("docs/scripting.md");
    const script::library all = bus.functions();
    script::testing::expect_documented(all);
    for (const script::library_function& row : all.functions)
        EXPECT_THAT(page, HasSubstr("\n" + script::testing::documented_row(all, row)));
}

}  // namespace
}  // namespace eddy::runtime
