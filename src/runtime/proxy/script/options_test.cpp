// Effects of the options of a proxy's script. A program without scripts refuses them instead.
#include "runtime/proxy/http_options_test.hpp"
#include "runtime/proxy/script/testing.hpp"
#include "runtime/scripting/limit_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace eddy::runtime::proxy {
namespace {

using testing::scripted_proxy;
using namespace runtime::testing;

task<void> the_script_chooses(std::string type) {
    scripted_proxy s("function on_route(request) return '$1' end", {{"backup", "$1"}}, 2, type);
    if (!co_await s.has_started()) co_return;
    EXPECT_EQ(co_await s.ask("/a"), "200 1/a");
    co_await s.stop();
}

task<void> modules_are_found_in_a_folder(std::string type) {
    temporary_folder modules;
    std::ofstream(modules.file("gate.lua")) << "return 418";
    for (const bool is_named : {true, false}) {
        scripted_proxy s(
            "local is_there, status = pcall(require, 'gate')\n"
            "function on_route(request) return is_there and status or 404 end",
            {{"lua_path", json::array({is_named ? modules.path() : "/nowhere"})}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/");
        EXPECT_EQ(answer.substr(0, 3), is_named ? "418" : "404");
        co_await s.stop();
    }
}

task<void> memory_of_a_script_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        scripted_proxy s(
            "function on_route(request)\n"
            "  return pcall(function() return #(('x'):rep(4e6)) end) and 404 or 418\nend",
            {{"lua_memory", is_small ? "2M" : "32M"}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/");
        EXPECT_EQ(answer.substr(0, 3), is_small ? "418" : "404");
        co_await s.stop();
    }
}

/// A computation of some milliseconds is left in the middle, or not.
task<void> slices_let_others_have_their_turn(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted_proxy s("function on_route(request) for i = 1, 2e6 do end end",
                         {{"lua_slice", is_brief ? "50us" : "1s"}, {"lua_time", "1h"}}, 1, type);
        if (!co_await s.has_started()) co_return;
        auto its = co_await s.client();
        co_await its.say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        bool was_under_way = false;
        co_await until([&] {
            was_under_way |= sample_of(**s, "script_calls") == 1;
            return sample_of(**s, "script_calls_total") == 1;
        });
        EXPECT_EQ(was_under_way, is_brief);
        co_await s.stop();
    }
}

task<void> time_of_a_callback_is_limited(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted_proxy s("function on_route(request) for i = 1, 4e6 do end end",
                         {{"lua_time", is_brief ? "1ms" : "1h"}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/a");
        EXPECT_EQ(answer.substr(0, 3), is_brief ? "500" : "200");
        co_await s.stop();
    }
}

task<void> functions_that_block_need_the_flag(std::string type) {
    for (const bool is_unsafe : {true, false}) {
        scripted_proxy s(
            "function on_route(request)\n"
            "  local _, why = pcall(eddy.blocking, function() return os.getenv('HOME') end)\n"
            "  return tostring(why):find('--lua-unsafe', 1, true) and 404 or 418\nend",
            {{"lua_unsafe", is_unsafe}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/a");
        EXPECT_EQ(answer.substr(0, 3), is_unsafe ? "418" : "404");
        co_await s.stop();
    }
}

/// Without a daemon: the flag decides which refusal it is.
task<void> runtimes_are_changed_with_the_flag_alone(std::string type) {
    for (const bool may : {true, false}) {
        scripted_proxy s(
            "function on_route(request)\n"
            "  local _, why = pcall(eddy.stop, 'x')\n"
            "  return why:find('no daemon') and 404 or why:find('--lua-admin', 1, true) and 403\n"
            "end",
            {{"lua_admin", may}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/a");
        EXPECT_EQ(answer.substr(0, 3), may ? "404" : "403");
        co_await s.stop();
    }
}

/// Done three times, in one call.
template <const limit_probe& Probe>
task<void> count_is_limited(std::string type) {
    for (const int most : probed_limits) {
        std::string script(limit_probes);
        script.append("function on_route(request) return 420 + ").append(Probe.call);
        scripted_proxy s(script + " end", {{std::string(Probe.option), most}}, 1, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("/");
        EXPECT_EQ(answer.substr(0, 3), std::to_string(420 + most));
        co_await s.stop();
    }
}

}  // namespace

void add_script_effects(effect_table& to) {
    const effect_table all = {
        {{"proxy", "lua"}, {the_script_chooses}},
        {{"proxy", "lua-memory"}, {memory_of_a_script_is_limited}},
        {{"proxy", "lua-path"}, {modules_are_found_in_a_folder}},
        {{"proxy", "lua-slice"}, {slices_let_others_have_their_turn, seen_on::kernel}},
        {{"proxy", "lua-time"}, {time_of_a_callback_is_limited}},
        {{"proxy", "lua-unsafe"}, {functions_that_block_need_the_flag}},
        {{"proxy", "lua-admin"}, {runtimes_are_changed_with_the_flag_alone}},
        {{"proxy", "lua-max-timers"}, {count_is_limited<timers_probe>}},
        {{"proxy", "lua-max-sockets"}, {count_is_limited<sockets_probe>}},
        {{"proxy", "lua-max-queue"}, {count_is_limited<queue_probe>}},
    };
    to.insert(all.begin(), all.end());
}

}  // namespace eddy::runtime::proxy
