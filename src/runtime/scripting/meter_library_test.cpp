// Tests of a script's own counters and gauges: sums over threads, reloads, limits.
#include "runtime/scripting/meter_library.hpp"

#include "runtime/scripting/script_metrics.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

/// Runs what its clients say.
constexpr std::string_view shell = R"(
    messages = eddy.counter("messages")
    function on_message(c, text)
        messages:add()
        local is_good, why = pcall(assert(loadstring("local eddy = ... " .. text)), eddy)
        self.send(c, is_good and tostring(why) or "failed: " .. why)
    end)";

class script_meters_test : public on_io_backend {
protected:
    subject make(json options = json::object()) {
        std::ofstream(file_) << shell;
        return subject("server", with(std::move(options), with({{"lua", file_}})));
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
    static std::optional<double> value_of(subject& s, std::string_view metric,
                                          std::string_view name) {
        for (const metric_sample& each : s->count().samples)
            if (each.of->name == metric && each.labels.at(0) == name)
                return std::get<double>(each.value);
        return std::nullopt;
    }
    static std::optional<double> counter(subject& s, std::string_view name) {
        return value_of(s, "script_counter_total", name);
    }
    static std::optional<double> gauge(subject& s, std::string_view name) {
        return value_of(s, "script_gauge", name);
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("s.lua");
};

INSTANTIATE_TEST_SUITE_P(io, script_meters_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

class script_meters_kernel_test : public script_meters_test {};
INSTANTIATE_TEST_SUITE_P(io, script_meters_kernel_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(script_meters_test, count_and_outlast_a_reload) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        EXPECT_EQ(counter(s, "messages"), 0.0);
        talker one = co_await join(s);
        EXPECT_EQ(co_await say(one, "eddy.gauge('level'):set(2.5)"), "nil");
        EXPECT_EQ(co_await say(one, "eddy.gauge('level'):add(-1)"), "nil");
        EXPECT_EQ(co_await say(one, "eddy.counter('bytes'):add(10)"), "nil");
        EXPECT_EQ(co_await say(one, "return eddy.counter('bytes'):value()"), "10");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await say(one, "eddy.counter('bytes'):add(1)"), "nil");
        EXPECT_EQ(counter(s, "messages"), 5.0);
        EXPECT_EQ(counter(s, "bytes"), 11.0);
        EXPECT_EQ(gauge(s, "level"), 1.5);
        co_await s->stop(0s);
        co_await s.start();
        EXPECT_EQ(counter(s, "messages"), 5.0) << "the instance is the same";
        EXPECT_EQ(gauge(s, "level"), std::nullopt);
        co_await s->stop(0s);
    });
}

TEST_P(script_meters_kernel_test, are_summed_over_threads) {
    run([this]() -> task<void> {
        subject s = make({{"threads", 2}});
        co_await s.start();
        talker one = co_await join(s);
        talker two = co_await join(s);
        EXPECT_EQ(co_await say(one, "eddy.gauge('level'):set(1)"), "nil");
        EXPECT_EQ(co_await say(two, "eddy.gauge('level'):set(10)"), "nil");
        EXPECT_EQ(counter(s, "messages"), 2.0);
        EXPECT_EQ(gauge(s, "level"), 11.0);
        co_await s->stop(0s);
    });
}

TEST_P(script_meters_test, refuse_what_they_cannot_be) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker one = co_await join(s);
        EXPECT_THAT(co_await say(one, "eddy.counter('a b')"), HasSubstr("letters, digits and '_'"));
        EXPECT_THAT(co_await say(one, "eddy.counter('1a')"), HasSubstr("letters, digits and '_'"));
        EXPECT_THAT(co_await say(one, "eddy.counter(('x'):rep(65))"), HasSubstr("at most 64"));
        EXPECT_THAT(co_await say(one, "eddy.gauge('messages')"), HasSubstr("is a counter"));
        EXPECT_THAT(co_await say(one, "eddy.counter('x'):add(-1)"), HasSubstr("only grows"));
        EXPECT_THAT(co_await say(one, "eddy.counter('x'):add(0/0)"), HasSubstr("takes a counter"));
        EXPECT_THAT(co_await say(one, "eddy.gauge('g'):set('high')"), HasSubstr("takes a gauge"));
        EXPECT_THAT(co_await say(one, "for i = 1, 101 do eddy.counter('c' .. i) end"),
                    HasSubstr("has 100 counters and gauges, which is the limit"));
        EXPECT_EQ(co_await say(one, "eddy.counter('c1'):add(1)"), "nil");
        co_await s->stop(0s);
    });
}

TEST(script_meters, have_valid_metrics) {
    EXPECT_TRUE(script_counter_total.is_valid());
    EXPECT_TRUE(script_gauge.is_valid());
}

}  // namespace
}  // namespace eddy::runtime
