// Effects of the options of a client's script. A program without scripts refuses them instead.
#include "runtime/client/testing.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/scripting/limit_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::testing {
namespace {

using ::testing::HasSubstr;

/// A client with a script, and its server.
struct scripted {
    scripted(const std::string& type, std::string_view script, json more) {
        std::ofstream(file) << script;
        more["lua"] = file;
        its.emplace(type, client::testing::to(server, std::move(more)), "subject", neighbours());
    }
    /// False if the program is built without scripts.
    task<bool> has_started() {
        auto started = co_await (*its)->start();
        if (!started) {
            EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
            co_return false;
        }
        peer = co_await client::testing::accept(server);
        co_return true;
    }
    task<std::string> answer(std::string text) {
        std::string said = co_await ask(peer, std::move(text));
        co_await (*its)->stop(0s);
        co_return said;
    }

    temporary_folder folder;
    const std::string file = folder.file("s.lua");
    listener server = client::testing::any_server();
    std::optional<subject> its;
    talker peer;
};

task<void> the_script_answers(std::string type) {
    scripted s(type, "function on_message(text) self.send(text:upper()) end", json::object());
    if (!co_await s.has_started()) co_return;
    EXPECT_EQ(co_await s.answer("hello"), "HELLO");
}

task<void> modules_are_found_in_a_folder(std::string type) {
    temporary_folder modules;
    std::ofstream(modules.file("loud.lua")) << "return string.upper";
    for (const bool is_named : {true, false}) {
        scripted s(type,
                   "local is_there, loud = pcall(require, 'loud')\n"
                   "function on_message(text) self.send(is_there and loud(text) or 'none') end",
                   {{"lua_path", json::array({is_named ? modules.path() : "/nowhere"})}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("hello"), is_named ? "HELLO" : "none");
    }
}

task<void> memory_of_a_script_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        scripted s(type,
                   "function on_message(text)\n"
                   "  self.send(tostring(pcall(function() return #(('x'):rep(4e6)) end)))\nend",
                   {{"lua_memory", is_small ? "2M" : "32M"}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), is_small ? "false" : "true");
    }
}

/// A computation of some milliseconds is left in the middle, or not.
task<void> slices_let_others_have_their_turn(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted s(type, "function on_message(text)\n  for i = 1, 2e6 do end self.send(text)\nend",
                   {{"lua_slice", is_brief ? "50us" : "1s"}, {"lua_time", "1h"}});
        if (!co_await s.has_started()) co_return;
        co_await s.peer.say("x\n");
        bool was_under_way = false;
        co_await until([&] {
            was_under_way |= sample_of(**s.its, "script_calls") == 1;
            return sample_of(**s.its, "script_calls_total") == 1;
        });
        EXPECT_EQ(was_under_way, is_brief);
        co_await (*s.its)->stop(0s);
    }
}

task<void> time_of_a_callback_is_limited(std::string type) {
    for (const bool is_brief : {true, false}) {
        scripted s(type,
                   "function on_message(text)\n"
                   "  if text == 'x' then for i = 1, 4e6 do end end self.send(text)\nend",
                   {{"lua_time", is_brief ? "1ms" : "1h"}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x\nend"), is_brief ? "end" : "x");
    }
}

task<void> functions_that_block_need_the_flag(std::string type) {
    for (const bool is_unsafe : {true, false}) {
        scripted s(
            type,
            "function on_message(text)\n"
            "  local _, why = pcall(eddy.blocking, function() return os.getenv('HOME') end)\n"
            "  self.send(tostring(why):find('--lua-unsafe', 1, true) and 'no' or 'yes')\nend",
            {{"lua_unsafe", is_unsafe}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), is_unsafe ? "yes" : "no");
    }
}

/// Without a daemon: the flag decides which refusal it is.
task<void> runtimes_are_changed_with_the_flag_alone(std::string type) {
    for (const bool may : {true, false}) {
        scripted s(type,
                   "function on_message(text)\n"
                   "  local _, why = pcall(eddy.stop, text)\n"
                   "  self.send(why:match('no daemon') or why:match('--lua.admin') or why)\nend",
                   {{"lua_admin", may}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), may ? "no daemon" : "--lua-admin");
    }
}

/// Done three times, in one call.
template <const limit_probe& Probe>
task<void> count_is_limited(std::string type) {
    for (const int most : probed_limits) {
        std::string script(limit_probes);
        script.append("function on_message(text) self.send(").append(Probe.call);
        scripted s(type, script + ") end", {{std::string(Probe.option), most}});
        if (!co_await s.has_started()) co_return;
        EXPECT_EQ(co_await s.answer("x"), std::to_string(most));
    }
}

}  // namespace

effect_table client_script_effects() {
    return {
        {{"client", "lua"}, {the_script_answers}},
        {{"client", "lua-memory"}, {memory_of_a_script_is_limited}},
        {{"client", "lua-path"}, {modules_are_found_in_a_folder}},
        {{"client", "lua-slice"}, {slices_let_others_have_their_turn, seen_on::kernel}},
        {{"client", "lua-time"}, {time_of_a_callback_is_limited}},
        {{"client", "lua-unsafe"}, {functions_that_block_need_the_flag}},
        {{"client", "lua-admin"}, {runtimes_are_changed_with_the_flag_alone}},
        {{"client", "lua-max-timers"}, {count_is_limited<timers_probe>}},
        {{"client", "lua-max-sockets"}, {count_is_limited<sockets_probe>}},
        {{"client", "lua-max-queue"}, {count_is_limited<queue_probe>}},
    };
}

}  // namespace eddy::runtime::testing
