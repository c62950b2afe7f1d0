// Tests of what the threads of a cache's script call by themselves: on_start, on_tick and on_stop.
#include "base/files/temporary_folder.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

// Scripts on real threads: not on the simulator.
EDDY_ON_EVERY_KERNEL_IO_BACKEND(hook_ticks);

/// A script with note(line), which appends to a file.
class ticking_script {
public:
    explicit ticking_script(const std::string& text) { write(text); }

    void write(const std::string& text) const {
        std::ofstream(path()) << "function note(line)\n local f = assert(io.open('" << notes()
                              << "', 'a')) f:write(line, '\\n') f:close()\nend\n"
                              << text;
    }
    json options(json more = json::object()) const {
        more.update({{"hooks", path()}});
        return with(more);
    }
    std::string noted() const { return content(notes()); }
    std::string path() const { return folder_.file("hooks.lua"); }

private:
    std::string notes() const { return folder_.file("notes"); }
    temporary_folder folder_;
};

bool begins(const std::string& text, std::string_view with) { return text.starts_with(with); }

TEST_P(hook_ticks, a_script_starts_ticks_and_stops) {
    run([&]() -> task<void> {
        const ticking_script script(R"(
            tick_ms = 10
            function on_start() note('start') end
            function on_tick(dt) if dt >= 10 then note('tick') end end
            function on_stop() note('stop') end)");
        subject cache("cache", script.options());
        co_await cache.start();
        EXPECT_TRUE(begins(script.noted(), "start\n"));
        co_await until([&] { return begins(script.noted(), "start\ntick\ntick\n"); });
        co_await until([&] { return sample_of(*cache, "hook_ticks_total").value_or(0) >= 2; });
        EXPECT_EQ(sample_of(*cache, "hook_tick_errors_total"), 0.0);
        co_await cache->stop(1s);
        const std::string all = script.noted();
        EXPECT_TRUE(all.ends_with("\nstop\n")) << all;
        EXPECT_EQ(all.find("start", 1), std::string::npos);
        EXPECT_EQ(all.find("stop"), all.size() - 5);
    });
}

TEST_P(hook_ticks, what_a_script_keeps_is_written_by_its_ticks_and_at_the_stop) {
    run([&]() -> task<void> {
        // One state has all, without --hook-threads.
        const ticking_script script(R"(
            tick_ms = 60 * 60 * 1000
            local pending = {}
            function on_start() note('start') end
            function on_write(key, value) pending[#pending + 1] = key .. '=' .. value end
            function on_tick() for _, each in ipairs(pending) do note(each) end pending = {} end)");
        subject cache("cache", script.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        for (const char* const key : {"a", "b", "c"})
            EXPECT_EQ(co_await ask(c, std::string("SET ") + key + " 1"), "+OK");
        co_await until([&] { return sample_of(*cache, "hook_changes_total") == 3.0; });
        EXPECT_EQ(script.noted(), "start\n");
        // A changed script begins once the one before has written what it has kept.
        script.write(
            "function on_write(key, value) note('new ' .. key) end\n"
            "function on_start() note('again') end");
        EXPECT_TRUE(must_do(co_await cache->reread()));
        EXPECT_EQ(co_await ask(c, "SET d 1"), "+OK");
        co_await until([&] { return script.noted().ends_with("new d\n"); });
        const std::string all = script.noted();
        for (const char* const line : {"\na=1\n", "\nb=1\n", "\nc=1\n", "\nagain\n"})
            EXPECT_THAT(all, HasSubstr(line));
        co_await cache->stop(1s);
    });
}

TEST_P(hook_ticks, each_thread_has_its_own_calls) {
    run([&]() -> task<void> {
        const ticking_script script(
            "function on_start() note('start') end\nfunction on_stop() note('stop') end\n"
            "tick_ms = 3600000 function on_tick() note('tick') end");
        subject cache("cache", script.options({{"hook_threads", 3}}));
        co_await cache.start();
        EXPECT_EQ(script.noted(), "start\nstart\nstart\n");
        co_await cache->stop(1s);
        std::string all = script.noted();
        for (const char* const word : {"tick\n", "stop\n"}) {
            int count = 0;
            for (std::size_t at = all.find(word); at != std::string::npos;
                 at = all.find(word, at + 1))
                ++count;
            EXPECT_EQ(count, 3) << word;
        }
    });
}

TEST_P(hook_ticks, a_failing_tick_is_noted_and_the_next_one_comes) {
    run([&]() -> task<void> {
        const ticking_script script(R"(
            tick_ms = 10
            local n = 0
            function on_tick()
                n = n + 1
                if n == 1 then error('it is down', 0) end
                if n == 2 then return nil, 'it is still down' end
                note('up')
            end)");
        subject cache("cache", script.options());
        co_await cache.start();
        co_await until([&] { return begins(script.noted(), "up\n"); });
        co_await until([&] { return sample_of(*cache, "hook_ticks_total").value_or(0) >= 3; });
        EXPECT_EQ(sample_of(*cache, "hook_tick_errors_total"), 2.0);
        EXPECT_TRUE(cache.events.has("on_tick failed: it is down"));
        EXPECT_TRUE(cache.events.has("on_tick failed: it is still down"));
        co_await cache->stop(1s);
    });
}

TEST_P(hook_ticks, a_start_that_fails_keeps_the_cache_from_starting) {
    run([&]() -> task<void> {
        const auto failure = [](const std::string& text) -> task<std::string> {
            const ticking_script script("function on_stop() note('stop') end\n" + text);
            subject cache("cache", script.options());
            std::string said = co_await cache.failure_to_start();
            EXPECT_EQ(script.noted(), "");
            co_return said;
        };
        EXPECT_THAT(co_await failure("function on_start() error('no database', 0) end"),
                    HasSubstr("on_start failed: no database"));
        EXPECT_THAT(co_await failure("function on_start() return false, 'no table' end"),
                    HasSubstr("on_start failed: no table"));
        EXPECT_THAT(co_await failure("function on_tick() end tick_ms = 'often'"),
                    HasSubstr("tick_ms must be a number"));
        EXPECT_THAT(co_await failure("function on_tick() end tick_ms = 9"),
                    HasSubstr("from 10 on"));
        EXPECT_THAT(co_await failure("on_tick = 5"), HasSubstr("on_tick must be a function"));
    });
}

TEST_P(hook_ticks, a_reload_whose_start_fails_keeps_the_script_before) {
    run([&]() -> task<void> {
        const ticking_script script("tick_ms = 10 function on_tick() note('old') end");
        subject cache("cache", script.options());
        co_await cache.start();
        script.write(
            "function on_start() error('no database', 0) end\n"
            "function on_tick() note('new') end");
        const auto reloaded = co_await cache->reread();
        EXPECT_THAT(reloaded.error().message, HasSubstr("no database"));
        const double before = sample_of(*cache, "hook_ticks_total").value_or(0);
        co_await until([&] { return sample_of(*cache, "hook_ticks_total").value_or(0) > before; });
        co_await cache->stop(1s);
        EXPECT_EQ(script.noted().find("new"), std::string::npos);
    });
}

TEST_P(hook_ticks, the_script_alone_is_loaded_again) {
    run([&]() -> task<void> {
        const ticking_script script("tick_ms = 10 function on_tick() note('old') end");
        subject cache("cache", script.options());
        co_await cache.start();
        script.write("tick_ms = 10 function on_tick() note('new') end");
        must_do(co_await cache->reload_script());
        co_await until([&] { return script.noted().contains("new"); });
        script.write("function on_write() end");
        const auto refused = co_await cache->reload_script();
        EXPECT_THAT(refused.error().message, HasSubstr("`eddy reload subject` restarts the cache"));
        co_await cache->stop(1s);
    });
}

TEST_P(hook_ticks, a_cache_without_a_script_says_how_it_gets_one) {
    run([&]() -> task<void> {
        subject cache("cache", with(json::object()));
        co_await cache.start();
        const auto refused = co_await cache->reload_script();
        EXPECT_EQ(refused.error().status, 409);
        EXPECT_THAT(refused.error().message, HasSubstr("`eddy edit subject --lua FILE`"));
        co_await cache->stop(1s);
    });
}

TEST_P(hook_ticks, a_trial_of_the_script_starts_nothing) {
    run([&]() -> task<void> {
        const ticking_script script(
            "function on_start() note('start') end\n"
            "function on_stop() note('stop') end");
        subject cache("cache", script.options({{"hook_threads", 1}}));
        co_await cache.start();
        must_do(co_await cache->check_restart(cache.parse(script.options({{"hook_threads", 2}})),
                                              false));
        EXPECT_EQ(script.noted(), "start\n");
        co_await cache->stop(1s);
        EXPECT_EQ(script.noted(), "start\nstop\n");
    });
}

TEST_P(hook_ticks, lua_is_another_name_of_the_option) {
    run([&]() -> task<void> {
        const ticking_script script("function on_miss(key) return 'from ' .. key end");
        subject cache("cache", with({{"lua", script.path()}}));
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(c, "GET k"), "$6");
        EXPECT_EQ(co_await line_of(c), "from k");
        co_await cache->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
