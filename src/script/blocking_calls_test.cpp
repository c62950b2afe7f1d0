// Functions on worker threads: what goes there and back, what does not, limits, and threads that
// are at work at the end.
#include "script/blocking_calls.hpp"

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"
#include "script/coroutine_host.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(blocking_calls_io);

class plain_call final : public call {
public:
    using call::call;

private:
    int push_arguments(lua::stack /*in*/) override { return 0; }
};

class subject {
public:
    explicit subject(std::string_view statements, blocking_options options = {.is_allowed = true})
        : calls(std::move(options)), host(made()) {
        const auto loaded =
            host.load("function handle()\n" + std::string(statements) + "\nend", "own.lua");
        EXPECT_TRUE(loaded) << loaded.error();
    }

    task<std::string> text() {
        plain_call one(host);
        const call_end end = co_await host.run(one);
        if (end.what == call_end::kind::gone) co_return "gone";
        if (end.what == call_end::kind::failed) co_return "failed: " + end.text;
        co_return end.results.at(0).text() != nullptr ? *end.results[0].text() : "no text";
    }

    blocking_calls calls;
    coroutine_host host;

private:
    host_options made() {
        host_options its;
        its.callbacks = {{.name = "handle", .is_required = true, .results = 1}};
        its.libraries = {calls.functions("eddy")};
        return its;
    }
};

TEST(blocking_calls, have_a_documented_row) {
    blocking_calls calls({});
    testing::expect_documented(calls.functions("eddy"));
}

TEST_P(blocking_calls_io, values_go_there_and_back) {
    run([]() -> task<void> {
        subject s(R"(
            local factor, names, nothing = 3, {"a", deep = {true}}, nil
            local a, b, c, d, e = eddy.blocking(function(x, list)
                return x * factor, #list .. names[1], names.deep[1], nothing, {io.open ~= nil, n = nothing}
            end, 7, {1, 2})
            return table.concat({a, b, tostring(c), tostring(d), tostring(e[1])}, " "))");
        EXPECT_EQ(co_await s.text(), "21 2a true nil true");
        subject none("return tostring(select('#', eddy.blocking(function() end)))");
        EXPECT_EQ(co_await none.text(), "0");
    });
}

TEST_P(blocking_calls_io, what_is_no_value_stays) {
    run([]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"local f = tostring return eddy.blocking(function() return f(1) end)",
             "its local variable f is a function, which stays on this thread"},
            {"return eddy.blocking(function() end, function() end)", "cannot pass a function"},
            {"return eddy.blocking(cjson.encode)", "takes a function of the script's"},
            {"return eddy.blocking(7)", "blocking() takes a function and up to five values"},
            {"return eddy.blocking(function() return print end)", "returned a function"},
            {"return eddy.blocking(function()\n error('spoilt') end)", "own.lua:3: spoilt"},
            {"return eddy.blocking(function() return eddy.blocking end)", "global 'eddy'"},
            {"return eddy.blocking(function() return ('x'):rep(1e9) end)", "not enough memory"},
        };
        for (const auto& [statements, why] : all) {
            subject s(statements);
            EXPECT_THAT(co_await s.text(), HasSubstr(why)) << statements;
        }
        subject refused("return eddy.blocking(function() end)", {});
        EXPECT_THAT(co_await refused.text(), HasSubstr("for scripts with --lua-unsafe"));
    });
}

TEST_P(blocking_calls_io, others_run_meanwhile_and_few_wait) {
    run([]() -> task<void> {
        blocking_options options{.is_allowed = true};
        options.limits.threads = 1;
        options.limits.waiting = 2;
        subject s(
            "return eddy.blocking(function() local e = os.clock() + 0.05 "
            "while os.clock() < e do end return 'done' end)",
            options);
        std::size_t done = 0;
        std::size_t refused = 0;
        std::size_t turns = 0;
        co_await with_scope([&](scope& all) -> task<> {
            for (int i = 0; i < 5; ++i)
                all.spawn([](subject& its, std::size_t& good, std::size_t& bad) -> task<void> {
                    const std::string got = co_await its.text();
                    good += got == "done" ? 1 : 0;
                    bad += got.find("2 calls wait already") != std::string::npos ? 1 : 0;
                }(s, done, refused));
            while (done + refused < 5) {
                ++turns;
                must(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
            }
            co_await all.join();
        });
        EXPECT_EQ(done, 3U);
        EXPECT_EQ(refused, 2U);
        EXPECT_GT(turns, 10U);
    });
}

TEST_P(blocking_calls_io, time_is_limited_and_an_end_waits_for_none) {
    run([]() -> task<void> {
        blocking_options options{.is_allowed = true};
        options.limits.time = std::chrono::seconds(1);
        subject s("return eddy.blocking(function() while true do end end)", options);
        EXPECT_THAT(co_await s.text(), HasSubstr("it took longer than it may"));
        // A call that is ended leaves its thread at work.
        subject stuck("return eddy.blocking(function() while true do end end)", options);
        scope cut;
        std::string got;
        cut.spawn([](subject& its, std::string& to) -> task<void> { to = co_await its.text(); }(
                                                        stuck, got));
        must(co_await loop::current().sleep_for(std::chrono::milliseconds(10)));
        cut.cancel();
        co_await cut.join();
        EXPECT_EQ(got, "gone");
    });
    EXPECT_TRUE(script_threads::await_all(std::chrono::seconds(20)).empty());
}

}  // namespace
}  // namespace eddy::script
