// Tests of scripts with several clients and at their limits: time, memory, depth, the cache; and of
// forbidden operations. Replies are tested in differential_scripting_test.cpp.
#include "cache/script/scripts.hpp"

#include "cache/engine/engine.hpp"
#include "cache/script/scripts_fixture.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::bulk;
using testing::busy;
using ::testing::HasSubstr;
using testing::scripting;
using ::testing::StartsWith;
using testing::test_client;

TEST_F(scripting, others_are_told_busy_while_a_script_is_late_and_can_kill_it) {
    EXPECT_EQ(eval("while true do end"), "");
    EXPECT_TRUE(a_.who().blocked);
    EXPECT_TRUE(engine_.script_is_late());
    EXPECT_TRUE(engine_.script_is_late(a_.who()));
    EXPECT_EQ(b_("GET x"), busy);
    EXPECT_EQ(b_("EVAL return 0"), busy);
    EXPECT_EQ(b_("SCRIPT EXISTS x"), busy);
    EXPECT_EQ(b_("SET x"), "-ERR wrong number of arguments for 'set' command\r\n");
    EXPECT_EQ(b_("MULTI"), "+OK\r\n");
    EXPECT_EQ(b_("SET x 1"), busy);
    EXPECT_THAT(b_("EXEC"), StartsWith("-EXECABORT"));
    engine_.go_on();
    EXPECT_TRUE(engine_.script_is_late());
    EXPECT_EQ(b_("CLIENT UNBLOCK " + std::to_string(a_.who().id)), busy);
    EXPECT_EQ(b_("FUNCTION KILL"), busy);
    EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n");
    finish();
    EXPECT_TRUE(a_.woken());
    EXPECT_THAT(a_.pushed(), StartsWith("-ERR Script killed by user with SCRIPT KILL. script: "));
    EXPECT_EQ(a_("SET x 1"), "+OK\r\n");
    EXPECT_EQ(b_("GET x"), bulk("1"));
    EXPECT_EQ(b_("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.\r\n");
}

// Features beyond Redis, as in docs/cache-details.md.
TEST_F(scripting, takes_what_luajit_has_beyond_lua_5_1) {
    EXPECT_EQ(eval("goto l do return 0 end ::l:: return 1"), ":1\r\n");
    EXPECT_EQ(eval("return {tostring(5LL), tostring(5ULL), tostring(5i), 0b11, tonumber('0b11')}"),
              "*5\r\n" + bulk("5LL") + bulk("5ULL") + bulk("0+5i") + ":3\r\n:3\r\n");
    EXPECT_EQ(eval("return '\\x41\\z   \\u{42}'"), bulk("AB"));
    EXPECT_EQ(eval("return {math.log(8, 2), type(os.clock())}"), "*2\r\n:3\r\n" + bulk("number"));
    // Extensions of LuaJIT's own functions that are not available.
    EXPECT_EQ(eval("return string.rep('a', 2, ',')"), bulk("aa"));
    EXPECT_THAT(eval("return ('%a'):format(1)"), HasSubstr("invalid option"));
    EXPECT_THAT(eval("return load('return x')()"), HasSubstr("function expected"));
    EXPECT_EQ(eval("return select(2, xpcall(function(a) return a end, error, 7))"), "$-1\r\n");
}

TEST_F(scripting, a_script_may_do_what_its_caller_may) {
    EXPECT_EQ(b_("ACL SETUSER small on nopass ~mine:* +eval +get +lpush"), "+OK\r\n");
    EXPECT_EQ(b_("SET yours:1 secret"), "+OK\r\n");
    EXPECT_EQ(a_("AUTH small x"), "+OK\r\n");
    EXPECT_EQ(eval("return redis.call('GET', 'mine:1')"), "$-1\r\n");
    EXPECT_THAT(
        eval("return redis.call('GET', 'yours:1')"),
        ::testing::HasSubstr("NOPERM ACL failure in script: No permissions to access a key"));
    EXPECT_THAT(eval("return redis.call('SET', 'mine:1', 'x')"),
                ::testing::HasSubstr("User small has no permissions to run the 'set' command"));
    EXPECT_EQ(eval("return {redis.acl_check_cmd('get', 'mine:1') and 1 or 0, "
                   "redis.acl_check_cmd('get', 'yours:1') and 1 or 0, "
                   "redis.acl_check_cmd('flushall') and 1 or 0}"),
              "*3\r\n:1\r\n:0\r\n:0\r\n");
    // Permissions of one user do not apply to the next.
    EXPECT_EQ(eval(b_, "return redis.call('GET', 'yours:1')"), "$6\r\nsecret\r\n");
    EXPECT_THAT(eval("return redis.call('GET', 'yours:1')"), ::testing::HasSubstr("NOPERM"));
}

TEST_F(scripting, may_not_call_a_subcommand_that_scripts_may_not) {
    EXPECT_EQ(eval("return redis.call('cluster', 'reset')").substr(0, 51),
              "-ERR This Redis command is not allowed from script ");
}

TEST_F(scripting, those_who_track_hear_of_what_their_scripts_read) {
    EXPECT_EQ(b_("SET x 1"), "+OK\r\n");
    a_("HELLO 3");
    EXPECT_EQ(a_("CLIENT TRACKING ON"), "+OK\r\n");
    EXPECT_EQ(eval("return redis.call('GET', 'x')"), "$1\r\n1\r\n");
    EXPECT_EQ(b_("SET x 2"), "+OK\r\n");
    EXPECT_THAT(a_.pushed(), ::testing::HasSubstr("invalidate"));
}

TEST_F(scripting, is_killed_wherever_it_is) {
    for (int i = 0; i < 1000; ++i) b_("RPUSH list an element");
    for (const char* const script :
         {"while true do pcall(function() while true do end end) end",
          "table.sort({3,1,2}, function() while true do end end)",
          "string.gsub('x', '.', function() while true do end end)",
          "coroutine.wrap(function() while true do end end)()",
          "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
          "xpcall(function() while true do end end, function() while true do end end)",
          "local function f() return f() end f()", "for i = 1, 1e300 do redis.call('PING') end",
          "local f = loadstring('while true do end') f()",
          "while true do local ok = pcall(redis.call, 'NOSUCH') end",
          "while true do redis.pcall('GET') string.rep('x', 1000) end",
          "string.find(('a'):rep(40), ('a-'):rep(40) .. 'b')",
          "string.match(('a'):rep(100000), '.-.-.-.-b')",
          "for _ in string.gmatch(('a'):rep(100000), '.-.-.-b') do end",
          "string.gsub(('a'):rep(100000), '.*.*.*b', 'x')",
          "string.gsub(('('):rep(1000000), '%b()', 'x')",
          "local s = ('a'):rep(1000000) while true do s:find(s .. 'b', 1, true) s:find('b', 1, "
          "true) end",
          "local s = ('a'):rep(1000000) while true do s:find('[' .. s .. ']$') end",
          "while true do ('x'):rep(1000000) end",
          "local s = ('x'):rep(1000000) while true do s:upper() s:lower() s:reverse() end",
          "local t = {} for i = 1, 1000 do t[i] = i end while true do table.insert(t, 1, nil) end",
          "local t = {} while true do pcall(table.insert, t, -2147483648, 1) end",
          // Loops in a single instruction.
          "local t = {} for i = 1, 4e5 do t[i] = math.random() end while true do table.sort(t) end",
          "local t = {} for i = 1, 4e5 do t[i] = '' end while true do table.concat(t) end",
          "local t = {} for i = 1, 4e5 do t[i] = i end for i = 1, 4e5 do t[i] = nil end "
          "while true do next(t) table.maxn(t) cjson.encode({t, t, t}) end",
          "local a = ('x'):rep(3e6) local b = a .. 'y' while true do local c = a .. 'y' end",
          "local a = ('x'):rep(3e6) local b, c = a .. 'y', a .. 'z' while true do local d = b < c "
          "end",
          "local a = ('0'):rep(5e6) while true do local b = a + 1 tonumber(a, 16) end",
          "local a = ('x'):rep(3e6) local b = a:sub(2) while true do a:sub(2) end",
          "local f, t = ('%99.99f'):rep(7000), {} for i = 1, 7000 do t[i] = 1e308 end "
          "while true do string.format(f, unpack(t)) end",
          "local s = ('\\0'):rep(1e6) while true do string.format('%q', s) end",
          "local t = 'x' for i = 1, 9 do t = {t, t, t, t} end while true do cjson.encode(t) end",
          "local t = 'x' for i = 1, 9 do t = {t, t, t, t} end while true do cmsgpack.pack(t) end",
          "local s = ('\1'):rep(1e6) while true do cjson.encode(s) end",
          "local s = '[' .. ('1,'):rep(2e5) .. '1]' while true do cjson.decode(s) end",
          "local s = '\\220\\255\\255' .. ('\\1'):rep(65535) while true do cmsgpack.unpack(s) end",
          "local s = ('x'):rep(1e6) while true do struct.pack(s) struct.size(s) struct.unpack(s, "
          "s) end",
          "local s = ('x'):rep(3e6) while true do redis.sha1hex(s) pcall(error, s) end",
          "local s = ('x={} '):rep(50000) while true do loadstring(s) end",
          "local f = loadstring('return {' .. ('\"a\",1.5,'):rep(20000) .. '}') "
          "while true do string.dump(f) end",
          "local t = {} for i = 1, 5e4 do t[i] = {} end "
          "while true do collectgarbage() collectgarbage('step', 1e6) end",
          "for i = 1, 1e9 do redis.call('LRANGE', KEYS[1], 0, -1) end"}) {
        EXPECT_EQ(eval(a_, script, {"1", "list"}), "") << script;
        EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n") << script;
        for (int i = 0; i < 10 && engine_.script_is_late(); ++i) engine_.go_on();
        ASSERT_FALSE(engine_.script_is_late()) << script;
        EXPECT_THAT(a_.pushed(), HasSubstr("Script killed by user")) << script;
    }
}

TEST_F(scripting, is_left_within_a_call_that_takes_long) {
    constexpr std::size_t many = 200'000;
    arguments list{"0"};
    for (std::size_t i = 0; i < many; ++i) list.push_back(std::to_string(i * 7919 % many));
    const auto text = [](std::string_view piece, std::size_t times) {
        std::string all;
        for (std::size_t i = 0; i < times; ++i) all += piece;
        return arguments{"0", all};
    };
    const std::pair<const char*, arguments> calls[] = {
        {"table.sort(ARGV)", list},
        {"table.sort(ARGV, rawequal)", list},
        {"return #table.concat(ARGV, ', ')", list},
        {"return #cjson.encode(ARGV)", list},
        {"return #cmsgpack.pack(ARGV)", list},
        {"return ARGV", list},
        {"return {set = ARGV}", list},
        {"collectgarbage()", list},
        {"return #cjson.decode('[' .. ARGV[1] .. '1]')", text("1,", many)},
        {"return cjson.encode(ARGV[1])", text("\1", 1'000'000)},
        {"return #cmsgpack.unpack('\\221\\0\\3\\13\\64' .. ARGV[1])", text("\1", many)},
        {"return struct.size(ARGV[1])", text("b", 2'000'000)},
        {"return #struct.pack(ARGV[1])", text("x", 1'000'000)},
        {"return struct.unpack(ARGV[1], ARGV[1])", text("x", 1'000'000)},
        {"return redis.sha1hex(ARGV[1])", text("x", 4'000'000)},
        {"return #string.format(ARGV[1])", text("%%", 1'000'000)},
        {"return #string.format('%q', ARGV[1])", text("\r", 2'000'000)},
        {"return type(loadstring(ARGV[1]))", text("x=y ", 50'000)},
        {"return type(loadstring(ARGV[1]))", text("--\n", 1'000'000)},
        {"return #redis.call('LRANGE', KEYS[1], 0, -1)", {"1", "list"}}};
    for (std::size_t i = 0; i < many; i += 1000) {
        arguments push{"RPUSH", "list"};
        push.insert(push.end(), list.begin() + 1, list.begin() + 1001);
        b_.ask(push);
    }
    for (const auto& [script, args] : calls) {
        const std::string reply = eval(a_, script, args);
        EXPECT_EQ(reply.substr(0, 100), "") << script;
        if (!reply.empty()) continue;
        EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n") << script;
        finish();
        EXPECT_THAT(a_.pushed(), StartsWith("-ERR Script killed by user")) << script;
    }
}

TEST_F(scripting, a_collection_of_garbage_frees_what_nobody_has) {
    const std::string reply = run(a_,
                                  "local before = collectgarbage('count') "
                                  "local t = {} for i = 1, 3e4 do t[i] = {i} end "
                                  "local with = collectgarbage('count') t = nil "
                                  "local first = collectgarbage() "
                                  "local after = collectgarbage('count') "
                                  "local steps = 0 repeat steps = steps + 1 until "
                                  "collectgarbage('step') or steps > 1e6 "
                                  "return {with > before + 1000, after < before + 100, first, "
                                  "steps > 1, steps < 1e6, collectgarbage('step', 1e6)}");
    EXPECT_EQ(reply, "*6\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n:1\r\n");
}

TEST_F(scripting, what_one_leaves_behind_is_collected_while_others_are_served) {
    std::string reply = eval(a_,
                             "local a, b, t = ARGV[1] .. 'a', ARGV[1] .. 'b', {} "
                             "for i = 1, 1000 do t[i] = {i} end return #a + #b + #t",
                             {"0", std::string(3'200'000, 'x')});
    finish();
    reply += a_.pushed();
    EXPECT_EQ(reply, ":6401002\r\n");
    EXPECT_LE(std::stoull(info("used_memory_vm_eval")), 8U << 20);
}

TEST_F(scripting, a_text_that_takes_too_long_to_compile_is_refused) {
    // Each x is searched in all enclosing functions.
    std::string text;
    constexpr int functions = 150;
    for (int f = 0; f < functions; ++f) {
        text += "local function f() local a0";
        for (int i = 1; i < 190; ++i) text += ",a" + std::to_string(i);
        text += ' ';
    }
    for (int i = 0; i < 1'000'000; ++i) text += "x=x ";
    for (int f = 0; f < functions; ++f) text += " end";
    EXPECT_EQ(eval(text),
              "-ERR Error compiling script (new function): to compile it takes too long\r\n");
    EXPECT_EQ(a_.ask(arguments{"FUNCTION", "LOAD", "#!lua name=x\n" + text}),
              "-ERR Error compiling function: to compile it takes too long\r\n");
    EXPECT_EQ(eval("return 1"), ":1\r\n");
}

TEST_F(scripting, a_text_beyond_the_limit_is_refused) {
    const std::string text = "return 1 --" + std::string(script_cache::max_bytes - 11, 'x');
    EXPECT_EQ(eval(text), ":1\r\n");
    const std::string why = "-ERR the script is longer than the cache of scripts may be\r\n";
    EXPECT_EQ(eval(text + 'x'), why);
    EXPECT_EQ(a_.ask(arguments{"SCRIPT", "LOAD", text + 'x'}), why);
}

TEST_F(scripting, a_late_script_that_wrote_is_not_killed_and_comes_to_its_end) {
    EXPECT_EQ(eval("redis.call('SET', 'x', 'half') for i = 1, 1e6 do math.abs(i) end "
                   "redis.call('SET', 'x', 'whole') return redis.call('GET', 'x')"),
              "");
    EXPECT_THAT(b_("SCRIPT KILL"), StartsWith("-UNKILLABLE Sorry"));
    EXPECT_EQ(b_("GET x"), busy);
    finish();
    EXPECT_EQ(a_.pushed(), bulk("whole"));
    EXPECT_EQ(b_("GET x"), bulk("whole"));
}

TEST_F(scripting, a_client_that_is_served_from_a_late_script_gets_its_reply_afterwards) {
    EXPECT_EQ(b_("BLPOP list 0"), "");
    EXPECT_EQ(eval("redis.call('RPUSH', 'list', 'v') for i = 1, 1e6 do math.abs(i) end return 7"),
              "");
    EXPECT_EQ(b_.pushed(), "");
    finish();
    EXPECT_EQ(a_.pushed(), ":7\r\n");
    EXPECT_EQ(b_.pushed(), "*2\r\n" + bulk("list") + bulk("v"));
}

TEST_F(scripting, a_transaction_goes_on_behind_its_late_script) {
    a_("MULTI");
    a_("SET x 1");
    a_.ask(
        arguments{"EVAL", "for i = 1, 1e6 do math.abs(i) end return redis.call('INCR', 'x')", "0"});
    a_.ask(
        arguments{"EVAL", "for i = 1, 1e6 do math.abs(i) end return redis.call('INCR', 'x')", "0"});
    a_("SELECT 1");
    a_("SET y 1");
    EXPECT_EQ(a_("EXEC"), "");
    EXPECT_EQ(b_("GET x"), busy);
    finish();
    EXPECT_EQ(a_.pushed(), "*5\r\n+OK\r\n:2\r\n:3\r\n+OK\r\n+OK\r\n");
    EXPECT_EQ(b_("GET x"), bulk("3"));
    EXPECT_EQ(a_("GET y"), bulk("1"));
}

TEST_F(scripting, ends_with_its_client) {
    auto gone = std::make_unique<test_client>(engine_);
    EXPECT_EQ(eval(*gone, "redis.call('SET', 'x', '1') while true do end"), "");
    EXPECT_THAT(b_("SCRIPT KILL"), StartsWith("-UNKILLABLE"));
    gone.reset();
    EXPECT_FALSE(engine_.script_is_late());
    EXPECT_EQ(b_("GET x"), bulk("1"));
    // The same within a transaction, with two scripts.
    gone = std::make_unique<test_client>(engine_);
    (*gone)("MULTI");
    for (int i = 0; i < 2; ++i) gone->ask(arguments{"EVAL", "while true do end", "0"});
    (*gone)("SET y 1");
    EXPECT_EQ((*gone)("EXEC"), "");
    gone.reset();
    EXPECT_EQ(b_("GET y"), bulk("1"));
    EXPECT_EQ(eval(b_, "return 1"), ":1\r\n");
}

TEST_F(scripting, its_time_stands_still_and_no_key_expires_within_it) {
    using namespace std::chrono;
    engine_.set_time(seconds(1000));
    b_("SET x 1 PX 5");
    EXPECT_EQ(eval("for i = 1, 1e6 do math.abs(i) end return redis.call('GET', 'x')"), "");
    engine_.set_time(seconds(2000));
    engine_.upkeep();
    finish();
    EXPECT_EQ(a_.pushed(), bulk("1"));
    EXPECT_EQ(b_("GET x"), "$-1\r\n");
}

TEST_F(scripting, a_skipped_reply_of_a_late_script_is_not_sent) {
    EXPECT_EQ(a_("CLIENT REPLY SKIP"), "");
    EXPECT_EQ(eval("for i = 1, 1e6 do math.abs(i) end return 7"), "");
    finish();
    EXPECT_EQ(a_.pushed(), "");
    EXPECT_EQ(a_("PING"), "+PONG\r\n");
}

TEST_F(scripting, one_that_takes_too_much_memory_fails_alone) {
    for (const char* const script :
         {"local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
          "return string.rep('x', 1e9)", "local s = 'x' while true do s = s .. s end",
          "local t = {} for i = 1, 1e9 do t[i] = i end",
          "local t = 'x' for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
          "local t = 'x' for i = 1, 15 do t = {t, t, t, t} end return cmsgpack.pack(t)",
          "redis.call('SETRANGE', 'big', 30000000, 'x') return redis.call('GET', 'big')",
          "local function f(...) return f(1, ...) end f()",
          "return loadstring(string.rep('x = {}; ', 2000000))"}) {
        EXPECT_THAT(run(b_, script), StartsWith("-ERR ")) << script;
        EXPECT_EQ(run(a_, "return 'alive'"), bulk("alive")) << script;
        EXPECT_LE(std::stoull(info("used_memory_vm_eval")), 16U << 20) << script;
    }
    EXPECT_THAT(run(b_, "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end"),
                HasSubstr("not enough memory"));
    // A script that hides the error from itself becomes late.
    EXPECT_EQ(eval("while true do pcall(string.rep, 'x', 1e9) end"), "");
    EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n");
    finish();
    EXPECT_THAT(a_.pushed(), HasSubstr("Script killed by user"));
}

TEST_F(scripting, nesting_ends_with_an_error) {
    EXPECT_THAT(run(a_, "local t = {} t[1] = t return t"),
                HasSubstr("*1\r\n*1\r\n-ERR reached lua stack limit\r\n"));
    EXPECT_THAT(run(a_, "local t = {} t.map = t return t"),
                ::testing::EndsWith("-ERR reached lua stack limit\r\n"));
    EXPECT_THAT(run(a_, "local t = {} for i = 1, 1100 do t = {t} end return cjson.encode(t)"),
                HasSubstr("Cannot serialise, excessive nesting"));
    EXPECT_THAT(run(a_, "return cjson.decode(string.rep('[', 1100))"),
                HasSubstr("Found too many nested data structures"));
    EXPECT_THAT(run(a_, "return loadstring('return ' .. string.rep('(', 300))"), StartsWith("$-1"));
    EXPECT_THAT(run(a_, "return string.find(string.rep('a', 100), string.rep('(a)', 40))"),
                StartsWith("-ERR "));
    EXPECT_THAT(run(a_, "local function f() return pcall(f) end return f()"), ::testing::Not(""));
    EXPECT_EQ(run(a_, "return 'alive'"), bulk("alive"));
}

TEST(script_replies, one_beyond_the_limit_is_an_error_and_nothing_else) {
    engine_options options;
    options.max_reply = 10'000;
    engine home(options);
    test_client c(home);
    const auto run = [&](std::string script) { return c({"EVAL", std::move(script), "0"}); };
    const std::string big =
        "local s = string.rep('x', 3000) local t = {} for i = 1, 10 do t[i] = s end ";
    for (const std::string& script :
         {big + "return t", big + "return {t, 1, 2}", big + "return {map = {a = t, b = 1, c = 2}}",
          big + "return {set = {[t] = true, a = true, b = true}}",
          std::string("return string.rep('x', 20000)"),
          // As a tree it has 2^60 leaves.
          std::string("local t = {} for i = 1, 60 do t = {t, t} end return t"),
          std::string("local t = {} t[1] = t t[2] = t return t")}) {
        const std::string reply = run(script);
        EXPECT_THAT(reply, StartsWith("-ERR the reply is larger than the limit")) << script;
        EXPECT_EQ(reply.find("\r\n"), reply.size() - 2) << script;
    }
    EXPECT_EQ(run("return {1, {2}}"), "*2\r\n:1\r\n*1\r\n:2\r\n");
}

TEST_F(scripting, nothing_is_left_to_the_next_script) {
    for (const char* const script : {"x = 1",
                                     "_G.x = 1",
                                     "rawset(_G, 'x', 1)",
                                     "redis.call = nil",
                                     "redis.x = 1",
                                     "rawset(redis, 'x', 1)",
                                     "string.x = 1",
                                     "table.insert(redis, 'x')",
                                     "table.insert(string, 1, 'x')",
                                     "getmetatable('').__index = nil",
                                     "getmetatable('').__len = function() return 7 end",
                                     "setmetatable(_G, nil)",
                                     "setmetatable(redis, {})",
                                     "getmetatable(_G).x = 1",
                                     "getmetatable(redis).call = 1",
                                     "getmetatable(redis).__metatable = 1",
                                     "for k, v in pairs(redis) do redis[k] = nil end",
                                     "local n, t = pairs(redis) t.call = nil error('only a copy')",
                                     "local n, t = pairs(_G) t.redis = nil error('only a copy')",
                                     "loadstring('x = 1')()",
                                     "coroutine.wrap(function() x = 1 end)()",
                                     "KEYS = nil",
                                     "redis.call.x = 1",
                                     "math.random = nil",
                                     "cjson.encode = nil",
                                     "cjson.null.x = 1",
                                     "table.sort(redis, function() end) table.insert(redis, 1)",
                                     "bit.band = nil"}) {
        EXPECT_THAT(eval(script), StartsWith("-ERR ")) << script;
        EXPECT_EQ(
            eval("return {type(redis.call), type(string.upper), #redis, #string, ('x'):upper(), "
                 "type(cjson.encode), #'abc', type(math.random), type(bit.band), #_G, "
                 "tostring(rawget(_G, 'x')), type(pairs)}"),
            "*12\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n:0\r\n:0\r\n$1\r\nX\r\n$8\r\nfunction\r\n"
            ":3\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n:0\r\n$3\r\nnil\r\n$8\r\nfunction\r\n")
            << script;
    }
    for (const char* const name : {"io", "require", "package", "debug", "jit", "ffi", "dofile",
                                   "loadfile", "setfenv", "getfenv", "newproxy", "module", "print",
                                   "os.execute", "os.exit", "string.buffer", "os.getenv"}) {
        const std::string reply = eval("return type(" + std::string(name) + ")");
        if (reply != bulk("nil"))
            EXPECT_THAT(reply, HasSubstr("nonexistent global variable")) << name;
    }
}

TEST_F(scripting, takes_no_compiled_code) {
    EXPECT_THAT(eval("return loadstring(string.dump(function() return 1 end))()"),
                StartsWith("-ERR "));
    EXPECT_THAT(eval("local s = string.dump(function() return 1 end) local n = 0 "
                     "return load(function() n = n + 1 if n == 1 then return s end end)()"),
                StartsWith("-ERR "));
    EXPECT_THAT(eval("\x1bLJ\2"), StartsWith("-ERR Error compiling script"));
    EXPECT_THAT(a_.ask(arguments{"FUNCTION", "LOAD", "#!lua name=x\n\x1bLJ\2"}),
                StartsWith("-ERR Error compiling function"));
}

TEST_F(scripting, the_cache_forgets_what_was_not_used_and_keeps_what_was_loaded) {
    const auto big = [](int number) {
        return "return " + std::to_string(number) + " --" + std::string(1 << 20, 'x');
    };
    const std::string loaded = a_.ask(arguments{"SCRIPT", "LOAD", big(-1)}).substr(5, 40);
    for (int i = 0; i < 60; ++i) EXPECT_EQ(run(a_, big(i)), ":" + std::to_string(i) + "\r\n");
    EXPECT_LE(std::stoull(info("used_memory_scripts_eval")), script_cache::max_bytes);
    EXPECT_GE(std::stoull(info("number_of_cached_scripts")), 30U);
    EXPECT_EQ(a_("EVALSHA " + loaded + " 0"), ":-1\r\n");
    std::string refused;
    for (int i = 0; i < 60 && refused.empty(); ++i) {
        const std::string reply = a_.ask(arguments{"SCRIPT", "LOAD", big(100 + i)});
        if (reply[0] == '-') refused = reply;
    }
    EXPECT_EQ(refused, "-ERR the cache of scripts is full: SCRIPT FLUSH empties it\r\n");
    EXPECT_EQ(a_("SCRIPT FLUSH"), "+OK\r\n");
    EXPECT_EQ(info("number_of_cached_scripts"), "0");
    EXPECT_THAT(a_("EVALSHA " + loaded + " 0"), StartsWith("-NOSCRIPT"));
    EXPECT_EQ(eval("return 1"), ":1\r\n");
}

TEST_F(scripting, acts_on_watched_keys_and_subscribers_as_commands_do) {
    a_("WATCH x");
    EXPECT_EQ(eval(b_, "return redis.call('SET', 'x', 1)"), "+OK\r\n");
    a_("MULTI");
    EXPECT_EQ(a_("EXEC"), "*-1\r\n");
    b_("CONFIG SET notify-keyspace-events KEA");
    a_("SUBSCRIBE __keyevent@0__:set");
    EXPECT_EQ(eval(b_, "redis.call('SELECT', 0) return redis.call('SET', 'x', 1)"), "+OK\r\n");
    EXPECT_EQ(a_.pushed(), "*3\r\n" + bulk("message") + bulk("__keyevent@0__:set") + bulk("x"));
    test_client c(engine_);
    EXPECT_EQ(c("BLPOP l 0"), "");
    EXPECT_EQ(eval(b_, "redis.call('RPUSH', 'l', 'a') return redis.call('LLEN', 'l')"), ":1\r\n");
    EXPECT_EQ(c.pushed(), "*2\r\n" + bulk("l") + bulk("a"));
}

TEST_F(scripting, monitors_see_the_commands_that_scripts_call) {
    a_("MONITOR");
    EXPECT_EQ(eval(b_, "return redis.call('SET', 'x', 1)"), "+OK\r\n");
    EXPECT_THAT(a_.pushed(), HasSubstr("[0 lua] \"SET\" \"x\" \"1\""));
}

TEST_F(scripting, blocking_commands_do_not_wait_in_scripts) {
    EXPECT_EQ(eval("return redis.call('BLMPOP', 0, 1, 'none', 'LEFT')"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BLPOP', 'none', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BRPOP', 'none', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BLMOVE', 'none', 'to', 'LEFT', 'LEFT', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BRPOPLPUSH', 'none', 'to', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BZPOPMIN', 'none', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BZPOPMAX', 'none', 0)"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('BZMPOP', 0, 1, 'none', 'MIN')"), "$-1\r\n");
    EXPECT_EQ(eval("return redis.call('WAIT', 1, 0)"), ":0\r\n");
    EXPECT_THAT(eval("return redis.call('WAITAOF', 0, 1, 0)"),
                StartsWith("-ERR This Redis command is not allowed from script"));
    EXPECT_FALSE(a_.who().blocked);
    a_("RPUSH l a b");
    EXPECT_EQ(eval("return redis.call('BLPOP', 'none', 'l', 0)"), "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
    EXPECT_EQ(eval("return redis.call('BRPOPLPUSH', 'l', 'm', 0)"), "$1\r\nb\r\n");
}

TEST_F(scripting, numbers_become_arguments_with_the_fewest_digits) {
    const auto text_of = [this](const std::string& number) {
        return eval("return redis.call('ECHO', " + number + ")");
    };
    EXPECT_EQ(text_of("0.1"), bulk("0.1"));
    EXPECT_EQ(text_of("-2.5"), bulk("-2.5"));
    EXPECT_EQ(text_of("3"), bulk("3"));
    EXPECT_EQ(text_of("-0"), bulk("0"));
    EXPECT_EQ(text_of("2^53"), bulk("9007199254740992"));
    EXPECT_EQ(text_of("1e18"), bulk("1000000000000000000"));
    EXPECT_EQ(text_of("1e20"), bulk("1e+20"));
    EXPECT_EQ(text_of("1e100"), bulk("1e+100"));
    EXPECT_EQ(text_of("1/0"), bulk("inf"));
    EXPECT_EQ(text_of("0.30000000000000004"), bulk("0.30000000000000004"));
}

TEST(scripting_modes, writes_are_refused_where_nothing_may_be_written) {
    engine_options readonly;
    readonly.mode = access_mode::readonly;
    engine home(readonly);
    test_client a(home);
    EXPECT_EQ(a.ask(arguments{"EVAL", "return redis.call('GET', 'x')", "0"}), "$-1\r\n");
    EXPECT_THAT(a.ask(arguments{"EVAL", "return redis.call('SET', 'x', 1)", "0"}),
                StartsWith("-READONLY This cache is in readonly mode"));
    EXPECT_THAT(a.ask(arguments{"EVAL", "#!lua\nreturn 1", "0"}), StartsWith("-READONLY "));
    EXPECT_EQ(a.ask(arguments{"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}), ":1\r\n");
}

TEST(scripting_modes, without_memory_scripts_may_not_add_to_it) {
    engine home;
    test_client a(home);
    a.ask(arguments{"SET", "x", "1"});
    a("CONFIG SET maxmemory 1");
    const std::string oom = "-OOM command not allowed when used memory > 'maxmemory'. script: ";
    EXPECT_THAT(a.ask(arguments{"EVAL", "return redis.call('SET', 'x', 1)", "0"}), StartsWith(oom));
    EXPECT_EQ(a.ask(arguments{"EVAL", "return redis.pcall('SET', 'x', 1)", "0"}),
              "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    EXPECT_EQ(a.ask(arguments{"EVAL", "return redis.call('DEL', 'x')", "0"}), ":1\r\n");
    // A script that has written may continue to write.
    EXPECT_EQ(
        a.ask(arguments{"EVAL", "redis.call('DEL', 'x') return redis.call('SET', 'x', 1)", "0"}),
        "+OK\r\n");
    // Subcommands that add.
    EXPECT_THAT(a("XGROUP CREATE s g $ MKSTREAM"), StartsWith("-OOM"));
    EXPECT_THAT(a("XGROUP CREATECONSUMER s g c"), StartsWith("-OOM"));
    EXPECT_THAT(a("XGROUP DESTROY s g"), StartsWith("-ERR The XGROUP subcommand requires"));
    EXPECT_THAT(a({"FUNCTION", "LOAD", "x"}), StartsWith("-OOM"));
    EXPECT_EQ(a("FUNCTION LIST"), "*0\r\n");
    EXPECT_EQ(a.ask(arguments{"EVAL", "#!lua\nreturn 1", "0"}),
              "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    EXPECT_EQ(
        a.ask(arguments{"EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', 'x', 2)", "0"}),
        "+OK\r\n");
    EXPECT_EQ(a.ask(arguments{"EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'x')", "0"}),
              bulk("2"));
}

TEST_F(scripting, functions_are_late_and_killed_as_scripts_are) {
    const std::string code =
        "#!lua name=lib\nredis.register_function('f', function() while true do end end)";
    EXPECT_EQ(a_.ask(arguments{"FUNCTION", "LOAD", code}), bulk("lib"));
    EXPECT_EQ(a_("FCALL f 0"), "");
    EXPECT_THAT(b_("GET x"), HasSubstr("You can only call FUNCTION KILL"));
    EXPECT_THAT(b_("SCRIPT KILL"), HasSubstr("You can only call FUNCTION KILL"));
    EXPECT_THAT(b_("FUNCTION STATS"), HasSubstr("*3\r\n" + bulk("FCALL") + bulk("f") + bulk("0")));
    EXPECT_EQ(b_("FUNCTION KILL"), "+OK\r\n");
    finish();
    EXPECT_THAT(a_.pushed(),
                StartsWith("-ERR Script killed by user with FUNCTION KILL. script: f"));
    EXPECT_THAT(a_.ask(arguments{"FUNCTION", "LOAD", "#!lua name=x\nwhile true do end"}),
                HasSubstr("FUNCTION LOAD timeout"));
    EXPECT_EQ(info("number_of_functions"), "1");
}

TEST_F(scripting, changes_of_a_late_script_are_broadcast_when_they_happen) {
    test_client reader{engine_};
    reader("HELLO 3");
    reader("CLIENT TRACKING ON BCAST");
    EXPECT_EQ(eval("for i = 1, 1e6 do end redis.call('SET', 'x', 1) for i = 1, 1e7 do end"), "");
    std::string got;
    while (got.empty() && engine_.script_is_late()) {
        engine_.go_on();
        got = reader.pushed();
    }
    EXPECT_EQ(got, ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("x"));
    EXPECT_TRUE(engine_.script_is_late());
    finish();
}

TEST_F(scripting, random_numbers_come_from_a_seed) {
    EXPECT_EQ(eval("math.randomseed(42) return {math.random(1000), math.random(1000), "
                   "math.random(5, 10)}"),
              "*3\r\n:745\r\n:343\r\n:5\r\n");
}

}  // namespace
}  // namespace eddy::cache
