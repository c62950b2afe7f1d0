// Tests of recursion through functions of C: an error at its limit, however a script is run.
#include "cache/engine/engine.hpp"
#include "cache/script/hook_script.hpp"
#include "cache/testing/test_client.hpp"
#include "lua/fiber.hpp"
#include "lua/native_stack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::test_client;

/// A script that nests callbacks. `@` counts the calls of f in n, and returns at `depth`.
struct recursion {
    const char* through;
    const char* script;
};

// In other software that runs Lua some of these overflowed the native stack, without an end: a
// coroutine, or a caught error, restarts the count of levels. So each ends by itself, a few levels
// above a limit that is low here.
constexpr std::size_t low_limit = 16;

// Each uses native stack for each level of f, and ends with the error of the deepest level.
constexpr recursion of_all[] = {
    {"gsub, function", "local function f() @ string.gsub('a', 'a', f) end f()"},
    {"gsub, method", "local function f() @ return (('a'):gsub('.', f)) end f()"},
    {"gsub, __index",
     "return (string.gsub('hello', 'l', setmetatable({}, {__index = function(t, k) @ "
     "return string.gsub(k, 'l', t) end})))"},
    {"sort, order", "local function f() @ table.sort({2, 1}, f) end f()"},
    {"sort, __lt",
     "local m = {} function m.__lt() @ "
     "table.sort({setmetatable({}, m), setmetatable({}, m)}) end m.__lt()"},
    {"coroutine.wrap, beside a caught error",
     "local function f() @ pcall(error) coroutine.wrap(f)() end f()"},
    {"coroutine.wrap", "local function f() @ coroutine.wrap(f)() end f()"},
    {"coroutine.resume",
     "local function f() @ local ok, why = coroutine.resume(coroutine.create(f)) "
     "if not ok then error(why, 0) end end f()"},
    {"coroutine.resume, one that has yielded",
     "local function f() coroutine.yield() @ local c = coroutine.create(f) coroutine.resume(c) "
     "local ok, why = coroutine.resume(c) if not ok then error(why, 0) end end "
     "local c = coroutine.wrap(f) c() c()"},
    {"gsub, sort, load and coroutines",
     "local f local function g() table.sort({2, 1}, function() load(function() "
     "coroutine.wrap(function() f() end)() end) return false end) end "
     "function f() @ string.gsub('a', 'a', g) end f() "
     "if n < depth then error('C stack overflow') end"},
    {"metamethods and coroutines",
     "local m = {} local function f() @ return setmetatable({}, m) .. 'x' end "
     "m.__concat = function(a) return a.x end "
     "m.__index = function(a) return a + 1 end m.__add = function(a) return a() end "
     "m.__call = function() return coroutine.wrap(f)() end f()"},
};

// Hooks have LuaJIT's own pcall, and a load written in Lua: neither uses native stack, nor counts.
constexpr recursion of_sandbox[] = {
    {"load, reader",
     "local function f() @ local ok, why = load(f) if not ok then error(why, 0) end end f()"},
    {"load, reader within nested text",
     "local f f = function() @ local at = 0 local ok, why = load(function() at = at + 1 "
     "if at == 1 then return 'return ' .. ('('):rep(20) end return f() end) "
     "if not ok then error(why, 0) end end f()"},
    {"pcall",
     "local function f() @ local ok, why = pcall(f) if not ok then error(why, 0) end end f()"},
    {"pcall in coroutines",
     "local function f() @ local ok, why = pcall(coroutine.wrap(f)) "
     "if not ok then error(why, 0) end end f()"},
    {"xpcall",
     "local function f() @ local ok, why = xpcall(f, function(e) return e end) "
     "if not ok then error(why, 0) end end f()"},
    {"xpcall's handler, in coroutines",
     // An error in a handler has Lua's own text: xpcall() returns it at the overflow.
     "local text local function f() @ "
     "local _, why = xpcall(error, function() return coroutine.wrap(f)() end) "
     "text = text or why end f() "
     "if text == 'error in error handling' then error('C stack overflow') end return text"},
};

constexpr recursion of_hooks[] = {
    {"format, __tostring",
     "local m = {} function m.__tostring() @ return string.format('%s', setmetatable({}, m)) end "
     "pcall(string.format, '%s', setmetatable({}, m)) "
     "if n < depth then error('C stack overflow') end"},
    {"require", "local function f() @ package.preload['m' .. n] = f require('m' .. n) end f()"},
    {"module", "local module = module local function f() @ module('m' .. n, f) end f()"},
    {"collectgarbage, __gc",
     "local function f() @ local u = newproxy(true) getmetatable(u).__gc = f u = nil "
     "collectgarbage() end f() if n < depth then error('C stack overflow') end"},
};

// The script in which f calls itself at most depth - 1 times.
std::string nested(const char* script, std::size_t depth) {
    std::string text = "local n, depth = 0, " + std::to_string(depth) + " " + script;
    constexpr std::string_view count = "n = n + 1 if n >= depth then return end";
    for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;)
        text.replace(at, 1, count);
    return text;
}

class callbacks : public ::testing::Test {
protected:
    void SetUp() override { lua::native_stack::set_limits({.levels = low_limit}); }
    void TearDown() override { lua::native_stack::set_limits({}); }

    // Without busy_reply_ms: the only other error would be one of memory, which must not come
    // first.
    static engine_options options() {
        engine_options made;
        made.busy_reply_ms = 0;
        return made;
    }
    std::string run(const char* command, std::string_view script) {
        return client_({command, std::string(script), "0"});
    }
    std::string load(std::string_view code) {
        return client_({"FUNCTION", "LOAD", "REPLACE", "#!lua name=l\n" + std::string(code)});
    }
    void expect_overflow(const std::string& reply, const char* of) {
        EXPECT_THAT(reply.substr(0, 400), StartsWith("-ERR")) << of;
        EXPECT_THAT(reply.substr(0, 4000), HasSubstr("stack overflow")) << of;
        EXPECT_EQ(client_({"EVAL", "return 'alive'", "0"}), "$5\r\nalive\r\n") << of;
    }
    void expect_overflow_everywhere(const recursion& each) {
        EXPECT_THAT(run("EVAL", nested(each.script, 2)), Not(HasSubstr("overflow")))
            << each.through;
        const std::string script = nested(each.script, low_limit + 2);
        expect_overflow(run("EVAL", script), each.through);
        expect_overflow(run("EVAL_RO", script), each.through);
        const std::string function = "redis.register_function('f', function() " + script + " end)";
        EXPECT_EQ(load(function), "$1\r\nl\r\n");
        expect_overflow(client_({"FCALL", "f", "0"}), each.through);
        EXPECT_EQ(client_("MULTI"), "+OK\r\n");
        EXPECT_EQ(client_({"EVAL", script, "0"}), "+QUEUED\r\n");
        EXPECT_EQ(client_("FCALL f 0"), "+QUEUED\r\n");
        EXPECT_THAT(client_("EXEC").substr(0, 400), StartsWith("*2\r\n-ERR")) << each.through;
    }
    void expect_overflow_in_hooks(const recursion& each) {
        // The error of a wrapped coroutine has the positions of all levels before its text.
        const std::string body = "local ok, why = pcall(function() " +
                                 nested(each.script, low_limit + 2) +
                                 " end) if not ok then error(tostring(why):sub(-60), 0) end";
        const std::string text =
            "function on_miss(key) if key == 'go' then return 'v' end " + body + " end";
        lua::blocking_state script({}, [](std::string_view) {});
        const auto ready = script.load(text, "hooks.lua", hook_names);
        ASSERT_TRUE(ready.has_value()) << ready.error();
        hook_job job;
        job.key = "k";
        const hook_answer answer = run_hook(script, job, std::chrono::minutes(5));
        EXPECT_TRUE(answer.result.failed) << each.through;
        EXPECT_THAT(answer.error, HasSubstr("stack overflow")) << each.through;
        job.key = "go";
        EXPECT_EQ(run_hook(script, job, std::chrono::minutes(5)).result.value, "v") << each.through;
        lua::blocking_state other({}, [](std::string_view) {});
        const auto loaded = other.load(body, "hooks.lua", hook_names);
        ASSERT_FALSE(loaded.has_value()) << each.through;
        EXPECT_THAT(loaded.error(), HasSubstr("stack overflow")) << each.through;
    }

    engine engine_{options()};
    test_client client_{engine_};
};

TEST_F(callbacks, recursion_of_scripts_ends_at_the_limit) {
    for (const recursion& each : of_all) expect_overflow_everywhere(each);
    for (const recursion& each : of_sandbox) expect_overflow_everywhere(each);
}

TEST_F(callbacks, recursion_of_hooks_ends_at_the_limit) {
    for (const recursion& each : of_all) expect_overflow_in_hooks(each);
    for (const recursion& each : of_hooks) expect_overflow_in_hooks(each);
}

TEST_F(callbacks, recursion_of_a_library_that_is_loaded_ends_at_the_limit) {
    const std::string script =
        nested("local function f() @ ('a'):gsub('a', f) end f()", low_limit + 2);
    expect_overflow(load(script), "a method");
    expect_overflow(load("local function f() return 1 + f() end f()"), "itself");
}

TEST_F(callbacks, the_first_overflow_is_named_as_redis_names_it) {
    for (const char* const script :
         {"local function f() @ string.gsub('a', 'a', f) end f()",
          "local function f() @ coroutine.wrap(f)() end f()",
          "return (string.gsub('hello', 'l', setmetatable({}, {__index = function(t, k) @ "
          "return string.gsub(k, 'l', t) end})))"}) {
        EXPECT_THAT(run("EVAL", nested(script, low_limit + 2)), HasSubstr("C stack overflow"))
            << script;
    }
}

TEST_F(callbacks, the_limit_is_exact) {
    for (const char* const script :
         {"local function f() @ string.gsub('a', 'a', f) end f() return 'whole'",
          "local function f() @ table.sort({2, 1}, f) end f() return 'whole'",
          "local function f() @ coroutine.wrap(f)() end f() return 'whole'"}) {
        EXPECT_EQ(run("EVAL", nested(script, low_limit + 1)), "$5\r\nwhole\r\n") << script;
        expect_overflow(run("EVAL", nested(script, low_limit + 2)), script);
    }
}

TEST_F(callbacks, as_many_levels_as_redis_has_are_there) {
    lua::native_stack::set_limits({});
    EXPECT_EQ(run("EVAL",
                  "local n = 0 local function f() n = n + 1 if n < 190 then "
                  "string.gsub('a', 'a', f) end end f() return n"),
              ":190\r\n");
    EXPECT_EQ(run("EVAL",
                  "local n = 0 local function f() n = n + 1 if n < 190 then "
                  "return coroutine.wrap(f)() end return n end return f()"),
              ":190\r\n");
}

TEST_F(callbacks, a_script_goes_on_after_an_overflow_that_it_catches) {
    EXPECT_EQ(run("EVAL",
                  "local depth, caught = 0, 0 local function f() depth = depth + 1 "
                  "if depth < 20 then string.gsub('a', 'a', f) end end "
                  "for i = 1, 10 do depth = 0 if not pcall(f) then caught = caught + 1 end end "
                  "return caught"),
              ":10\r\n");
}

// The other limit: bytes of native stack, for values within values.
TEST_F(callbacks, nesting_of_values_ends_where_the_stack_does) {
    const auto takes = [&](const std::string& script, std::size_t bytes) {
        lua::native_stack::set_limits({.bytes = bytes});
        const std::string reply = run("EVAL", script);
        lua::native_stack::set_limits({});
        return !reply.starts_with("-") && !reply.contains("stack limit");
    };
    for (const std::string script :
         {"local t = 1 for i = 1, % do t = {t} end return #cjson.encode(t)",
          "return type(cjson.decode(('['):rep(%) .. (']'):rep(%)))",
          "local t = 1 for i = 1, % do t = {t} end return #cmsgpack.pack(t)",
          "return type(cmsgpack.unpack(('\\145'):rep(%) .. '\\1'))",
          "local t = 1 for i = 1, % do t = {t} end return t"}) {
        const auto nested_by = [&](const char* levels) {
            std::string text = script;
            for (std::size_t at = 0; (at = text.find('%')) != std::string::npos;)
                text.replace(at, 1, levels);
            return text;
        };
        std::size_t bytes = 128;
        while (!takes(nested_by("1"), bytes) && bytes < lua::fiber::stack_bytes) bytes += 64;
        EXPECT_FALSE(takes(nested_by("12"), bytes)) << script;
        EXPECT_TRUE(takes(nested_by("12"), SIZE_MAX)) << script;
    }
}

TEST_F(callbacks, what_calls_nothing_runs_on_the_reserve) {
    lua::native_stack::set_limits({});
    // LuaJIT's parser uses most of the stack for a level; the leaf comes after the overflow.
    const std::string deepest =
        "local function deepest(leaf) local n, has_run, result, level = 0, false "
        "level = function() n = n + 1 if n > 220 then return end local is_first = true local ok, "
        "why = load(function() "
        "if is_first then is_first = false return 'return ' .. ('{'):rep(190) end "
        "level() end) "
        "if not has_run then has_run = true "
        "assert(string.find(why, 'C stack overflow', 1, true), why) result = leaf() end end "
        "level() return result end ";
    client_({"EVAL",
             "for i = 1, 2000 do redis.call('RPUSH', 'list', i * 7919 % 2000) "
             "redis.call('ZADD', 'zset', i, 'm' .. i) redis.call('SADD', 'set', 'm' .. i) "
             "redis.call('HSET', 'hash', 'f' .. i, i) redis.call('XADD', 'stream', '*', 'f', i) "
             "redis.call('GEOADD', 'geo', i % 180, i % 80, i) redis.call('PFADD', 'hll', i) end "
             "redis.call('SET', 'text', ('ab'):rep(2000))",
             "0"});
    const std::vector<const char*> leaves = {
        "redis.call('SORT', 'list', 'BY', 'w_*', 'GET', '#', 'STORE', 'sorted')",
        "redis.call('SORT', 'list', 'ALPHA', 'DESC')",
        "redis.call('GEOSEARCH', 'geo', 'FROMLONLAT', 1, 1, 'BYRADIUS', 9999, 'km', 'WITHDIST')",
        "redis.call('GEOSEARCHSTORE', 'near', 'geo', 'FROMMEMBER', 7, 'BYBOX', 999, 999, 'km')",
        "redis.call('ZUNIONSTORE', 'u', 2, 'zset', 'set', 'WEIGHTS', 1, 2)",
        "redis.call('ZINTERSTORE', 'u', 2, 'zset', 'set')",
        "redis.call('ZRANGESTORE', 'u', 'zset', 0, -1)",
        "redis.call('LCS', 'text', 'text', 'IDX')",
        "redis.call('SINTER', 'set', 'set')",
        "redis.call('SUNIONSTORE', 'u', 'set', 'set')",
        "redis.call('SRANDMEMBER', 'set', -500)",
        "redis.call('HRANDFIELD', 'hash', -500, 'WITHVALUES')",
        "redis.call('XRANGE', 'stream', '-', '+')",
        "redis.call('XINFO', 'STREAM', 'stream', 'FULL')",
        "redis.call('XAUTOCLAIM', 'stream', 'g', 'c', 0, '0')",
        "redis.call('PFCOUNT', 'hll')",
        "redis.call('BITFIELD', 'bits', 'SET', 'u8', 100, 255, 'GET', 'i64', 0)",
        "redis.call('BITOP', 'XOR', 'bits', 'text', 'text')",
        "redis.call('INCRBYFLOAT', 'float', '1e300')",
        "redis.call('HINCRBYFLOAT', 'hash', 'float', '1.1e4000')",
        "redis.call('SCAN', 0, 'MATCH', '*a*b', 'COUNT', 1000)",
        "redis.call('KEYS', '*a*b')",
        "redis.call('COPY', 'stream', 'stream2')",
        "redis.call('RENAME', 'list', 'list')",
        "redis.call('OBJECT', 'ENCODING', 'zset')",
        "redis.call('DUMP', 'stream')",
        "redis.call('RESTORE', 'other', 0, redis.call('DUMP', 'zset'))",
        "redis.call('COMMAND')",
        "redis.call('PUBLISH', 'c', ('x'):rep(1e5))",
        "redis.call('SET', 'new', ('x'):rep(1e6), 'PX', 100000)",
        "redis.call('FLUSHALL', 'ASYNC')",
        "redis.call('NOSUCH', 1)",
        "redis.call('GET')",
        "redis.log(redis.LOG_DEBUG, ('x'):rep(1e5))",
        "redis.sha1hex(('x'):rep(1e5))",
        "cjson.encode({1, 2, {a = 'b', c = 1.5}})",
        "cjson.decode('{\"a\":[1,2,{\"b\":1e300}]}')",
        "cmsgpack.pack({1, 2, {a = 'b', c = 1.5}})",
        "cmsgpack.unpack(cmsgpack.pack({1, 2, {a = 'b', c = 1.5}}))",
        "struct.unpack('>I4dfs', struct.pack('>I4dfs', 1, 2, 3, 'four'))",
        "string.format(('%99.99f'):rep(50):gsub('%%', '%%'), unpack({1e308, 1e308}))",
        "string.format('%99.99f', 1e308)",
        "string.find(('a'):rep(300), ('a?'):rep(150) .. ('a'):rep(150))",
        "string.find(('a'):rep(300), ('('):rep(30) .. 'a' .. (')'):rep(30))",
        "string.match(('a'):rep(300), ('a*'):rep(190))",
        "loadstring('return ' .. ('('):rep(190) .. '1' .. (')'):rep(190))",
        "loadstring('return ' .. ('{'):rep(190) .. (\"}\"):rep(190))",
        "loadstring('return ' .. ('not '):rep(1000) .. '1')",
        "loadstring('return ' .. ('1 .. '):rep(190) .. '1')",
        "loadstring(('do '):rep(190) .. ('end '):rep(190))",
        "loadstring(('return function() '):rep(99) .. ('end '):rep(99))",
        "table.concat({1, 2, 3}, ',')",
        "table.sort({3, 1, 2})",
        "collectgarbage()",
        "error({err = 'ERR ' .. ('x'):rep(1e4)})",
        "error(('x'):rep(1e4))",
        "local function f() return 1 + f() end f()",
        "return {1, 2, {3, {4}}}",
    };
    for (const char* const leaf : leaves) {
        const std::string reply =
            run("EVAL", deepest + "return deepest(function() " + leaf + " end)");
        EXPECT_NE(reply, "") << leaf;
        EXPECT_THAT(reply.substr(0, 400), Not(HasSubstr("assert"))) << leaf;
        EXPECT_EQ(run("EVAL", "return 'alive'"), "$5\r\nalive\r\n") << leaf;
    }
}

TEST_F(callbacks, coroutines_are_those_of_lua) {
    const std::string reply = run(
        "EVAL",
        "local c = coroutine.create(function(a, b) local d = coroutine.yield(a + b) error(d) end) "
        "local r = {select('#', coroutine.resume(c, 1, 2)), coroutine.status(c)} "
        "local ok, why = coroutine.resume(c, 'end') r[3], r[4] = ok and 1 or 0, why "
        "ok, r[5] = coroutine.resume(c) r[6] = coroutine.status(c) "
        "local w w = coroutine.wrap(function() w() end) ok, r[7] = pcall(w) "
        "ok, r[8] = pcall(coroutine.wrap(function() error({err = 'a table'}) end)) "
        "local n = 0 for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end "
        "end) do n = n + i end r[9] = n "
        "ok, r[10] = pcall(coroutine.resume, 1) ok, r[11] = pcall(coroutine.wrap, 1) "
        "r[12] = select('#', coroutine.resume(coroutine.create(function() end))) return r");
    // As in redis-server, except the type that wrap() requires.
    EXPECT_THAT(reply, StartsWith("*12\r\n:2\r\n$9\r\nsuspended\r\n:0\r\n"));
    for (const char* const part :
         {"user_script:1: end\r\n", "\r\ncannot resume dead coroutine\r\n", "\r\ndead\r\n",
          "user_script:1: cannot resume running coroutine\r\n", "\r\na table\r\n:6\r\n",
          "bad argument #1 to '?' (coroutine expected)\r\n",
          "bad argument #1 to '?' (function expected, got number)\r\n"}) {
        EXPECT_THAT(reply, HasSubstr(part));
    }
    EXPECT_THAT(reply, ::testing::EndsWith(":1\r\n"));
}

}  // namespace
}  // namespace eddy::cache
