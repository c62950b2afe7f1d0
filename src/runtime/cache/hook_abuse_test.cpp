// Scripts of caches whose callbacks go wrong, one after the other and in each way: the call is
// ended, its failure is in the journal with file and line, and the cache serves, calls the script
// again, and stops.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Scripts on real threads: not on the simulator.
EDDY_ON_EVERY_KERNEL_IO_BACKEND(spoilt_hook);

struct attack {
    std::string_view name;
    std::string_view statements;
    /// In the journal; the line of the statements is 2.
    std::string_view why;
};
constexpr std::array<attack, 4> attacks = {{
    {"loops", "while true do pcall(function() while true do end end) end",
     "hooks.lua:2: it took longer than it may; called from hooks.lua:"},
    {"throws", "error('spoilt')", "hooks.lua:2: spoilt; called from hooks.lua:"},
    {"allocates", "local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end",
     "not enough memory"},
    {"recurses", "local function f() return (('x'):gsub('x', f)) end f()", "overflow"},
}};

/// Each callback goes wrong once, if it is `in`, and after that notes its name in the journal.
std::string script_of(const attack& by, std::string_view in) {
    std::string text = "local its = '" + std::string(in) + "' local bad = its ";
    text += "local function trap(name) if name ~= its then return end ";
    text += "if not bad then print(name) return end bad = nil\n";
    text += std::string(by.statements) + "\nend\n";
    text += R"(tick_ms = 10
        function on_start() local _ = trap('on_start') end
        function on_stop() local _ = trap('on_stop') end
        function on_tick() local _ = trap('on_tick') end
        function on_miss(key) local _ = trap('on_miss') return 'fine' end
        function on_write() local _ = trap('on_write') end
        function on_delete() local _ = trap('on_delete') end
        function on_expire() local _ = trap('on_expire') end)";
    return text;
}

/// Commands that lead to each callback of clients.
task<void> change_all(talker& c, std::string key) {
    EXPECT_EQ(co_await ask(c, "SET written-" + key + " 1"), "+OK");
    EXPECT_EQ(co_await ask(c, "DEL deleted-" + key), ":0");
    EXPECT_EQ(co_await ask(c, "SET brief-" + key + " 1 PX 1"), "+OK");
    while (co_await ask(c, "EXISTS brief-" + key) != ":0")
        must(co_await loop::current().sleep_for(1ms));
}

task<void> read_until_there(talker& c, std::string key) {
    for (;;) {
        const std::string said = co_await ask(c, "GET " + key);
        if (said.starts_with('-')) continue;  // after the call that failed, or was too slow
        EXPECT_EQ(said, "$4");
        EXPECT_EQ(co_await line_of(c), "fine");
        co_return;
    }
}

task<void> spoil(const attack& by, std::string callback) {
    const temporary_folder folder;
    std::ofstream(folder.file("hooks.lua")) << script_of(by, callback);
    // Calls that are well have time enough on a busy machine.
    const bool is_endless = by.name == "loops";
    subject s("cache", with({{"hooks", folder.file("hooks.lua")},
                             {"hook_time", is_endless ? "500ms" : "10s"},
                             {"hook_deadline", is_endless ? "200ms" : "1m"},
                             {"hook_memory", "4M"},
                             {"hook_threads", 1}}));
    if (callback == "on_start") {
        EXPECT_THAT(co_await s.failure_to_start(),
                    AllOf(HasSubstr("on_start failed: "), HasSubstr(by.why)));
        co_return;
    }
    co_await s.start();
    talker c = co_await talker::to(s->local());
    if (callback == "on_miss") {
        EXPECT_THAT(co_await ask(c, "GET missing"), ::testing::StartsWith("-ERR on_miss "));
    } else if (callback != "on_stop") {
        co_await change_all(c, "a");
    }
    // Others are served meanwhile.
    EXPECT_EQ(co_await ask(c, "PING"), "+PONG");
    if (callback != "on_stop") {
        co_await until([&] { return s.events.has(std::string(by.why)); });
        co_await change_all(c, "b");
        co_await read_until_there(c, "missing");
        co_await until([&] { return s.events.has("hooks: " + callback); });
        EXPECT_EQ(sample_of(*s, "hook_lost_total"), 0.0);
    }
    co_await s->stop(10s);
    EXPECT_TRUE(s.events.has(std::string(by.why)));
}

TEST_P(spoilt_hook, of_a_cache) {
    for (const attack& by : attacks)
        for (const std::string_view each :
             {"on_start", "on_stop", "on_tick", "on_miss", "on_write", "on_delete", "on_expire"}) {
            SCOPED_TRACE(std::string(each) + " " + std::string(by.name));
            run([&]() -> task<void> { return spoil(by, std::string(each)); });
        }
}

}  // namespace
}  // namespace eddy::runtime
