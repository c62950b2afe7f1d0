// Effects of the options of a server's script. A program without scripts refuses them instead.
#include "runtime/options/option_effects.hpp"
#include "runtime/scripting/limit_probes.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::testing {
namespace {

using ::testing::HasSubstr;

/// A server with a script, and a client of it.
struct scripted {
    scripted(const std::string& type, std::string_view script, json more) {
        std::ofstream(file) << script;
        more["lua"] = file;
        its.emplace(type, with(std::move(more)), "subject", neighbours());
    }
    /// False if the program is built without scripts.
    task<bool> has_started() {
        auto started = co_await (*its)->start();
        if (started) co_return true;
        EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
        co_return false;
    }
    task<std::string> answer(std::string text) {
        if (!client.socket) client = co_await talker::to((*its)->local());
        co_return co_await ask(client, std::move(text));
    }

    temporary_folder folder;
    const std::string file = folder.file("s.lua");
    std::optional<subject> its;
    talker client;
};

task<void> the_script_answers(std::string type) {
    scripted s(type, "function on_message(c, text) self.send(c, text:upper()) end", json::object());
    if (!co_await s.has_started()) co_return;
    EXPECT_EQ(co_await s.answer("hello"), "HELLO");
    co_await (*s.its)->stop(0s);
    subject nowhere(type, with({{"lua", s.folder.file("missing.lua")}}));
    EXPECT_THAT(co_await nowhere.failure_to_start(), HasSubstr("--lua: "));
}

task<void> modules_are_found_in_a_folder(std::string type) {
    temporary_folder modules;
    std::ofstream(modules.file("loud.lua")) << "return string.upper";
    for (const bool is_named : {true, false}) {
        scripted s(type,
                   "local is_there, loud = pcall(require, 'loud')\n"
                   "function on_message(c, text) self.send(c, is_there and loud(text) or 'none') "
                   "end",
                   {{"lua_path", json::array({is_named ? modules.path() : "/nowhere"})}});
        co_await s.its->start();
        EXPECT_EQ(co_await s.answer("hello"), is_named ? "HELLO" : "none");
        co_await (*s.its)->stop(0s);
    }
}

/// True if a callback may have so many bytes.
task<std::string> fate_of_a_large_value(std::string type, std::string memory) {
    scripted s(type,
               "function on_message(c, text)\n"
               "  self.send(c, tostring(pcall(function() return #(('x'):rep(4e6)) end)))\nend",
               {{"lua_memory", memory}});
    if (!co_await s.has_started()) co_return "absent";
    std::string fate = co_await s.answer("x");
    co_await (*s.its)->stop(0s);
    co_return fate;
}
task<void> memory_of_a_script_is_limited(std::string type) {
    const std::string small = co_await fate_of_a_large_value(type, "2M");
    if (small == "absent") co_return;
    EXPECT_EQ(small, "false");
    EXPECT_EQ(co_await fate_of_a_large_value(type, "32M"), "true");
}

/// Calls that were left in the middle of a computation of some milliseconds.
task<std::string> fate_of_a_slice(std::string type, std::string slice) {
    scripted s(type,
               "function on_message(c, text)\n"
               "  for i = 1, 2e6 do end self.send(c, text)\nend",
               {{"lua_slice", slice}, {"lua_time", "1h"}});
    if (!co_await s.has_started()) co_return "absent";
    s.client = co_await talker::to((*s.its)->local());
    co_await s.client.say("x\n");
    bool was_under_way = false;
    co_await until([&] {
        was_under_way |= sample_of(**s.its, "script_calls") == 1;
        return sample_of(**s.its, "script_calls_total") == 1;
    });
    co_await (*s.its)->stop(0s);
    co_return was_under_way ? "left" : "at once";
}
task<void> slices_let_others_have_their_turn(std::string type) {
    const std::string brief = co_await fate_of_a_slice(type, "50us");
    if (brief == "absent") co_return;
    EXPECT_EQ(brief, "left");
    EXPECT_EQ(co_await fate_of_a_slice(type, "1s"), "at once");
}

task<std::string> fate_of_a_computation(std::string type, std::string time) {
    scripted s(type,
               "function on_message(c, text)\n"
               "  if text == 'x' then for i = 1, 4e6 do end end self.send(c, text)\nend",
               {{"lua_time", time}});
    if (!co_await s.has_started()) co_return "absent";
    std::string fate = co_await s.answer("x\nend");
    co_await (*s.its)->stop(0s);
    co_return fate;
}
task<void> time_of_a_callback_is_limited(std::string type) {
    const std::string brief = co_await fate_of_a_computation(type, "1ms");
    if (brief == "absent") co_return;
    EXPECT_EQ(brief, "end");
    EXPECT_EQ(co_await fate_of_a_computation(type, "1h"), "x");
}

task<void> content_of_a_request_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        scripted s(type, "function on_http_request(r) return 200, r.body end",
                   {{"lua_body", is_small ? "4" : "5"}});
        if (!co_await s.has_started()) co_return;
        const std::string line =
            co_await s.answer("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
        EXPECT_THAT(line, HasSubstr(is_small ? " 413 " : " 200 "));
        co_await (*s.its)->stop(0s);
    }
}

task<void> functions_that_block_need_the_flag(std::string type) {
    for (const bool is_unsafe : {true, false}) {
        scripted s(
            type,
            "function on_message(c, text)\n"
            "  local _, why = pcall(eddy.blocking, function() return os.getenv('HOME') end)\n"
            "  self.send(c, tostring(why):find('--lua-unsafe', 1, true) and 'no' or 'yes')\nend",
            {{"lua_unsafe", is_unsafe}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), is_unsafe ? "yes" : "no");
        co_await (*s.its)->stop(0s);
    }
}

/// Without a daemon: the flag decides which refusal it is.
task<void> runtimes_are_changed_with_the_flag_alone(std::string type) {
    for (const bool may : {true, false}) {
        scripted s(type,
                   "function on_message(c, text)\n"
                   "  local function stop() eddy.stop(text) end\n"
                   "  self.send(c, select(2, pcall(stop)))\nend",
                   {{"lua_admin", may}});
        if (!co_await s.has_started()) co_return;
        const std::string why = co_await s.answer("x");
        EXPECT_THAT(why, HasSubstr(may ? "there is no daemon here" : ":2: the script may not"));
        EXPECT_THAT(why, HasSubstr(may ? "" : "give its runtime --lua-admin"));
        co_await (*s.its)->stop(0s);
    }
}

/// Done three times, in one call.
template <const limit_probe& Probe>
task<void> count_is_limited(std::string type) {
    for (const int most : probed_limits) {
        std::string script(limit_probes);
        script.append("function on_message(c, text) self.send(c, ").append(Probe.call);
        scripted s(type, script + ") end", {{std::string(Probe.option), most}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), std::to_string(most));
        co_await (*s.its)->stop(0s);
    }
}

}  // namespace

effect_table script_effects() {
    return {
        {{"server", "lua"}, {the_script_answers}},
        {{"server", "lua-body"}, {content_of_a_request_is_limited}},
        {{"server", "lua-memory"}, {memory_of_a_script_is_limited}},
        {{"server", "lua-path"}, {modules_are_found_in_a_folder}},
        {{"server", "lua-slice"}, {slices_let_others_have_their_turn, seen_on::kernel}},
        {{"server", "lua-time"}, {time_of_a_callback_is_limited}},
        {{"server", "lua-unsafe"}, {functions_that_block_need_the_flag}},
        {{"server", "lua-admin"}, {runtimes_are_changed_with_the_flag_alone}},
        {{"server", "lua-max-timers"}, {count_is_limited<timers_probe>}},
        {{"server", "lua-max-sockets"}, {count_is_limited<sockets_probe>}},
        {{"server", "lua-max-queue"}, {count_is_limited<queue_probe>}},
    };
}

}  // namespace eddy::runtime::testing
