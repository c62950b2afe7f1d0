// Effects of the options of a site's script. A program without scripts refuses them instead.
#include "runtime/http/script/options_test.hpp"

#include "runtime/http/script/testing.hpp"
#include "runtime/scripting/limit_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace eddy::runtime::http {
namespace {

using testing::scripted_site;
using namespace runtime::testing;

task<void> the_script_answers(std::string type) {
    scripted_site s("function on_http_request(r) return 200, r.path end", json::object(), type);
    if (!co_await s.has_started()) co_return;
    EXPECT_EQ(co_await s.ask("GET /a.txt"), "200 /a.txt");
    co_await s->stop(0s);
}

task<void> modules_are_found_in_a_folder(std::string type) {
    temporary_folder modules;
    std::ofstream(modules.file("page.lua")) << "return 418";
    for (const bool is_named : {true, false}) {
        scripted_site s(
            "local is_there, status = pcall(require, 'page')\n"
            "function on_http_request(r) return is_there and status or 404 end",
            {{"lua_path", json::array({is_named ? modules.path() : "/nowhere"})}}, type);
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /"), is_named ? "418 " : "404 ");
        co_await s->stop(0s);
    }
}

task<void> memory_of_a_script_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        scripted_site s(
            "function on_http_request(r)\n"
            "  return pcall(function() return #(('x'):rep(4e6)) end) and 404 or 418\nend",
            {{"lua_memory", is_small ? "2M" : "32M"}}, type);
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.ask("GET /"), is_small ? "418 " : "404 ");
        co_await s->stop(0s);
    }
}

/// A computation of some milliseconds is left in the middle, or not.
task<void> slices_let_others_have_their_turn(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted_site s("function on_http_request(r) for i = 1, 2e6 do end return 200 end",
                        {{"lua_slice", is_brief ? "50us" : "1s"}, {"lua_time", "1h"}}, type);
        if (!co_await s.has_started()) co_return;
        talker client = co_await s.client();
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        bool was_under_way = false;
        co_await until([&] {
            was_under_way |= sample_of(**s, "script_calls") == 1;
            return sample_of(**s, "script_calls_total") == 1;
        });
        EXPECT_EQ(was_under_way, is_brief);
        co_await s->stop(0s);
    }
}

task<void> time_of_a_callback_is_limited(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted_site s("function on_http_request(r) for i = 1, 4e6 do end return 204 end",
                        {{"lua_time", is_brief ? "1ms" : "1h"}}, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("GET /");
        EXPECT_EQ(answer.substr(0, 3), is_brief ? "500" : "204");
        co_await s->stop(0s);
    }
}

task<void> content_of_a_request_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        scripted_site s("function on_http_request(r) return 200, r.body end",
                        {{"lua_body", is_small ? "4" : "5"}}, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("POST /", "hello");
        EXPECT_EQ(answer.substr(0, 3), is_small ? "413" : "200");
        co_await s->stop(0s);
    }
}

task<void> functions_that_block_need_the_flag(std::string type) {
    for (const bool is_unsafe : {true, false}) {
        scripted_site s(
            "function on_http_request(r)\n"
            "  local _, why = pcall(eddy.blocking, function() return os.getenv('HOME') end)\n"
            "  return tostring(why):find('--lua-unsafe', 1, true) and 403 or 204\nend",
            {{"lua_unsafe", is_unsafe}}, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("GET /");
        EXPECT_EQ(answer.substr(0, 3), is_unsafe ? "204" : "403");
        co_await s->stop(0s);
    }
}

/// Without a daemon: the flag decides which refusal it is.
task<void> runtimes_are_changed_with_the_flag_alone(std::string type) {
    for (const bool may : {true, false}) {
        scripted_site s(
            "function on_http_request(r)\n"
            "  local _, why = pcall(eddy.stop, 'x')\n"
            "  return why:find('no daemon') and 404 or 403\nend",
            {{"lua_admin", may}}, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("GET /");
        EXPECT_EQ(answer.substr(0, 3), may ? "404" : "403");
        co_await s->stop(0s);
    }
}

/// Done three times, in one call.
template <const limit_probe& Probe>
task<void> count_is_limited(std::string type) {
    for (const int most : probed_limits) {
        std::string script(limit_probes);
        script.append("function on_http_request(r) return 420 + ").append(Probe.call);
        scripted_site s(script + " end", {{std::string(Probe.option), most}}, type);
        if (!co_await s.has_started()) co_return;
        const std::string answer = co_await s.ask("GET /");
        EXPECT_EQ(answer.substr(0, 3), std::to_string(420 + most));
        co_await s->stop(0s);
    }
}

}  // namespace

void add_script_effects(effect_table& to) {
    const effect_table all = {
        {{"http", "lua"}, {the_script_answers}},
        {{"http", "lua-body"}, {content_of_a_request_is_limited}},
        {{"http", "lua-memory"}, {memory_of_a_script_is_limited}},
        {{"http", "lua-path"}, {modules_are_found_in_a_folder}},
        {{"http", "lua-slice"}, {slices_let_others_have_their_turn, seen_on::kernel}},
        {{"http", "lua-time"}, {time_of_a_callback_is_limited}},
        {{"http", "lua-unsafe"}, {functions_that_block_need_the_flag}},
        {{"http", "lua-admin"}, {runtimes_are_changed_with_the_flag_alone}},
        {{"http", "lua-max-timers"}, {count_is_limited<timers_probe>}},
        {{"http", "lua-max-sockets"}, {count_is_limited<sockets_probe>}},
        {{"http", "lua-max-queue"}, {count_is_limited<queue_probe>}},
    };
    to.insert(all.begin(), all.end());
}

}  // namespace eddy::runtime::http
