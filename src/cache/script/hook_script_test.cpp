// Tests of scripts with hooks: their arguments, their results, and their isolation from the
// process.
#include "cache/script/hook_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using lua::blocking_state;
using namespace std::chrono_literals;

std::vector<std::string> said;

std::unique_ptr<blocking_state> load(std::string_view text, blocking_state::limits most = {}) {
    said.clear();
    auto made = std::make_unique<blocking_state>(
        most, [](std::string_view line) { said.emplace_back(line); });
    const auto loaded = made->load(text, "hooks.lua", hook_names);
    EXPECT_TRUE(loaded.has_value()) << loaded.error();
    return made;
}

std::string error_of(std::string_view text) {
    blocking_state made({}, [](std::string_view) {});
    const auto loaded = made.load(text, "hooks.lua", hook_names);
    return loaded ? "" : loaded.error();
}

hook_answer miss(blocking_state& in, std::string key = "k", std::chrono::nanoseconds limit = 30s) {
    hook_job job;
    job.id = 7;
    job.key = std::move(key);
    job.database = 2;
    return run_hook(in, job, limit);
}

hook_answer write(blocking_state& in, std::string key, std::string value, std::int64_t ttl_ms = 0) {
    hook_job job;
    job.what = hook_job::kind::write;
    job.key = std::move(key);
    job.value = std::make_shared<const std::string>(std::move(value));
    job.ttl_ms = ttl_ms;
    return run_hook(in, job, 30s);
}

/// The error of on_miss with this body.
std::string failure(const std::string& body, std::chrono::nanoseconds limit = 30s,
                    blocking_state::limits most = {}) {
    auto script = load("function on_miss(key) " + body + " end", most);
    const hook_answer answer = miss(*script, "k", limit);
    EXPECT_TRUE(answer.result.failed) << body;
    EXPECT_EQ(answer.result.id, 7);
    // The script is still usable.
    EXPECT_EQ(miss(*script, "k", limit).result.failed, answer.result.failed);
    return answer.error;
}

TEST(hook_script, gives_values_and_times) {
    auto script = load(R"(
        function on_miss(key, db)
            if key == 'none' then return nil end
            if key == 'none for a while' then return nil, 2.5 end
            if key == 'number' then return 42, 10 end
            return key .. '\0\255' .. db, 0.25
        end)");
    const hook_functions has = hooks_of(script->defined());
    EXPECT_TRUE(has.miss && !has.write && !has.erase && !has.expire);
    const hook_answer a = miss(*script, std::string("a\0b", 3));
    EXPECT_FALSE(a.result.failed) << a.error;
    EXPECT_EQ(a.result.value, std::string("a\0b\0\xff"
                                          "2",
                                          6));
    EXPECT_EQ(a.result.ttl_ms, 250);
    EXPECT_EQ(miss(*script, "number").result.value, "42");
    EXPECT_EQ(miss(*script, "number").result.ttl_ms, 10'000);
    EXPECT_EQ(miss(*script, "none").result.value, std::nullopt);
    EXPECT_EQ(miss(*script, "none").result.ttl_ms, std::nullopt);
    EXPECT_EQ(miss(*script, "none for a while").result.ttl_ms, 2500);
}

TEST(hook_script, is_told_of_changes) {
    auto script = load(R"(
        function on_write(key, value, ttl, db) print('write', key, value, ttl, db) end
        function on_delete(key, db) print('delete', key, db) return true end
        function on_expire(key, db) print('expire', key, db) return nil end)");
    EXPECT_FALSE(write(*script, "a", "1").result.failed);
    EXPECT_FALSE(write(*script, "a", "2", 1500).result.failed);
    hook_job job;
    job.key = "a";
    job.what = hook_job::kind::erase;
    EXPECT_FALSE(run_hook(*script, job, 1s).result.failed);
    job.what = hook_job::kind::expire;
    job.database = 3;
    EXPECT_FALSE(run_hook(*script, job, 1s).result.failed);
    EXPECT_EQ(said, (std::vector<std::string>{"write\ta\t1\tnil\t0", "write\ta\t2\t1.5\t0",
                                              "delete\ta\t0", "expire\ta\t3"}));
}

TEST(hook_script, says_what_failed) {
    EXPECT_EQ(failure("error('no route')"), "hooks.lua:1: no route");
    EXPECT_EQ(failure("error('no place', 0)"), "no place");
    EXPECT_EQ(failure("return nil, 'the backend is down'"), "the backend is down");
    EXPECT_EQ(failure("return false"), "it returned false");
    EXPECT_EQ(failure("return {}"), "it returned a value of type table, not a string");
    EXPECT_EQ(failure("return 'v', 'soon'"), failure("return 'v', -1"));
    EXPECT_EQ(failure("return 'v', 0/0"), failure("return 'v', 1/0"));
    EXPECT_EQ(failure("error({code = 5})"), "an error that is no text but of type table");
    EXPECT_EQ(failure("error(nil)"), "an error that is no text but of type nil");
    EXPECT_EQ(failure("error(setmetatable({}, {__tostring = function() os.exit() end}))"),
              "an error that is no text but of type table");
    EXPECT_NE(failure("return key.a.b").find("attempt to index"), std::string::npos);
    EXPECT_LE(failure("error(('x'):rep(100000))").size(), blocking_state::max_error);
    EXPECT_EQ(failure("error('a\\nb\\27', 0)"), "a b ");
    auto script = load("function on_write(key, value) return value == 'good', 'it is bad' end");
    EXPECT_FALSE(write(*script, "a", "good").result.failed);
    EXPECT_EQ(write(*script, "a", "evil").error, "it is bad");
}

TEST(hook_script, does_not_take_all_memory) {
    // A small limit is reached sooner.
    blocking_state::limits little;
    little.bytes = 16 << 20;
    for (const char* const body : {"local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e5) .. i end",
                                   "return assert(load(function() return '\\27LJ' end))"})
        EXPECT_EQ(failure(body, 30s, little), "not enough memory") << body;
    EXPECT_EQ(failure("return ('x'):rep(1e9)"), "not enough memory");
    auto script = load("function on_miss(key) return #key end");
    EXPECT_EQ(miss(*script, std::string(300 << 20, 'x')).error, "not enough memory");
    EXPECT_EQ(miss(*script, "abc").result.value, "3");
    // Garbage does not count.
    auto busy = load("function on_miss(key) return ('x'):rep(4e6) end", little);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(miss(*busy).result.failed) << i;
}

TEST(hook_script, does_not_run_for_ever) {
    for (const char* const body :
         {"while true do end", "while true do pcall(function() while true do end end) end",
          "local function f() return f() end f()",
          "coroutine.wrap(function() while true do end end)()",
          "repeat local ok = pcall(error) until false",
          "xpcall(function() while true do end end, function() while true do end end)",
          "while true do xpcall(error, function() while true do end end) end",
          "load(function() while true do end end) while true do end",
          "while true do loadstring(function() while true do end end) end",
          "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
          "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true "
          "do "
          "pcall(function() return t[1] end) end"}) {
        auto script = load("function on_miss(key) if key == 'go' then return 'v' end " +
                           std::string(body) + " end");
        EXPECT_THAT(miss(*script, "k", 20ms).error,
                    ::testing::StartsWith("hooks.lua:1: it took longer than it may"))
            << body;
        EXPECT_EQ(miss(*script, "go").result.value, "v");
    }
    // Finalizers run to their end, too.
    auto script = load(R"(
        local p = newproxy(true)
        getmetatable(p).__gc = function() error('no') end
        function on_miss() return p and 'v' end)");
    EXPECT_EQ(miss(*script).result.value, "v");
}

TEST(hook_script, recursion_without_end_is_an_error) {
    EXPECT_NE(failure("local function f() return 1 + f() end f()").find("stack overflow"),
              std::string::npos);
    EXPECT_FALSE(failure("local t = {} for i = 1, 1e5 do t = {t} end "
                         "local s = ('('):rep(300) assert(loadstring('return ' .. s))")
                     .empty());
    EXPECT_FALSE(
        failure("return ('x'):rep(1e5):gsub('.', function(c) return c:gsub('.', error) end)")
            .empty());
}

TEST(hook_script, cannot_end_or_change_the_process) {
    for (const char* const name :
         {"os.exit", "os.setlocale", "package.loadlib", "string.dump", "debug.sethook",
          "debug.getregistry", "debug.setmetatable", "jit", "package.loaded.ffi",
          "package.preload.ffi", "package.loaded.jit"}) {
        auto script = load("function on_miss() return tostring(" + std::string(name) + ") end");
        EXPECT_EQ(miss(*script).result.value, "nil") << name;
    }
    EXPECT_NE(failure("return require('ffi')").find("module 'ffi' not found"), std::string::npos);
    EXPECT_NE(failure("return require('jit.util')").find("not found"), std::string::npos);
    // Bytecode is not verified by LuaJIT.
    EXPECT_NE(failure("return assert(loadstring('\\27LJ\\2\\0'))").find("attempt to load"),
              std::string::npos);
    EXPECT_NE(failure("return assert(load('\\27LJ\\2\\0', 'x', 'b'))").find("attempt to load"),
              std::string::npos);
    // In pieces, the last one empty.
    EXPECT_NE(failure("local pieces, next = {'\\27LJ', '\\2\\0'}, 0 "
                      "return assert(load(function() next = next + 1 return pieces[next] end))")
                  .find("attempt to load"),
              std::string::npos);
}

TEST(hook_script, may_use_the_libraries) {
    auto script = load(R"(
        local loaded = assert(loadstring("return 'from text'"))
        function on_miss(key)
            if key == 'time' then return os.time() > 0 and 'yes' end
            if key == 'env' then return load('return a', 'x', 't', {a = 'b'})() end
            if key == 'pieces' then
                local pieces, next = {'return ', '1', ' + 1'}, 0
                return load(function() next = next + 1 return pieces[next] end)()
            end
            if key == 'fault' then return load(function() error('no piece', 0) end) end
            if key == 'table' then return load(function() return {} end) end
            if key == 'file' then return io.open('/nowhere/at/all') end
            return loaded()
        end)");
    EXPECT_EQ(miss(*script).result.value, "from text");
    EXPECT_EQ(miss(*script, "time").result.value, "yes");
    EXPECT_EQ(miss(*script, "env").result.value, "b");
    EXPECT_EQ(miss(*script, "pieces").result.value, "2");
    EXPECT_EQ(miss(*script, "fault").error, "no piece");
    EXPECT_EQ(miss(*script, "table").error, "reader function must return a string");
    EXPECT_NE(miss(*script, "file").error.find("No such file"), std::string::npos);
}

TEST(hook_script, a_bad_text_is_refused) {
    EXPECT_NE(error_of("function on_miss(").find("hooks.lua:1:"), std::string::npos);
    EXPECT_EQ(error_of("error('no backend', 0)"), "no backend");
    EXPECT_EQ(error_of("on_miss = 5"), "on_miss must be a function");
    EXPECT_NE(error_of("require 'no.such.library'").find("no.such.library"), std::string::npos);
    EXPECT_NE(error_of("\x1bLJ\x02").size(), 0);
    EXPECT_EQ(error_of(""), "");
    auto nothing = load("x = 1");
    EXPECT_FALSE(hooks_of(nothing->defined()).any());
}

TEST(hook_script, calls_of_its_own_succeed_where_they_are_not_defined) {
    auto script = load("x = 1");
    EXPECT_EQ(run_start(*script, 30s), 0ns);
    EXPECT_EQ(run_tick(*script, 5ms, 30s), "");
    EXPECT_EQ(run_stop(*script, 30s), "");
}

TEST(hook_script, ticks_have_a_pause_and_get_the_time) {
    const auto pause_of = [](const std::string& text) {
        auto script = load("function on_tick() end " + text);
        const auto made = run_start(*script, 30s);
        return made ? std::to_string(made->count() / 1'000'000) : made.error();
    };
    EXPECT_EQ(pause_of(""), "100");
    EXPECT_EQ(pause_of("tick_ms = 10"), "10");
    EXPECT_EQ(pause_of("function on_start() tick_ms = 2000 end"), "2000");
    for (const char* const wrong :
         {"tick_ms = 9.9", "tick_ms = -1", "tick_ms = 0/0", "tick_ms = 1e9", "tick_ms = math.huge"})
        EXPECT_NE(pause_of(wrong).find("from 10 on"), std::string::npos) << wrong;
    EXPECT_EQ(pause_of("tick_ms = 'x'"), "tick_ms must be a number");
    auto script = load("function on_tick(ms) print(ms) end");
    EXPECT_EQ(run_tick(*script, 1500us, 30s), "");
    EXPECT_EQ(said, std::vector<std::string>{"1.5"});
}

TEST(hook_script, failures_of_its_own_calls_name_the_function) {
    auto script = load(
        "function on_start() error('down', 0) end\n"
        "function on_tick() return nil, 'no disk' end\n"
        "function on_stop() return false end");
    EXPECT_EQ(run_start(*script, 30s).error(), "on_start failed: down");
    EXPECT_EQ(run_tick(*script, 1ms, 30s), "on_tick failed: no disk");
    EXPECT_EQ(run_stop(*script, 30s), "on_stop failed: it returned false");
    auto endless = load("function on_tick() while true do end end");
    EXPECT_EQ(run_tick(*endless, 1ms, 10ms),
              "on_tick failed: hooks.lua:1: it took longer than it may");
}

}  // namespace
}  // namespace eddy::cache
