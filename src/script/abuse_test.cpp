// Scripts that misbehave in every way that is known: each call fails, or ends, within its limits,
// and the calls after it are not affected.
#include <eddy/io/scope.hpp>

#include "base/files/temporary_folder.hpp"
#include "io/testing.hpp"
#include "script/coroutine_host.hpp"
#include "script/modules.hpp"
#include "script/time_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(script_abuse);

task<function_result> wait_once() {
    co_await loop::current().yield();
    co_return values_of("waited");
}
answer pause(invocation& /*of*/) { return wait_once(); }
constexpr std::array<library_function, 1> rows = {
    {{.name = "pause", .help = "", .waits = true, .failure = on_failure::raises, .run = pause}}};

class text_call final : public call {
public:
    text_call(coroutine_host& in, std::string text) : call(in), text_(std::move(text)) {}

private:
    int push_arguments(lua::stack in) override {
        in.pushstring(text_);
        return 1;
    }
    std::string text_;
};

/// A host whose script has handle(text): "ok" is answered, another text names one of the
/// functions that the test gives.
class abused {
public:
    explicit abused(std::string_view functions) : modules_({folder_.path()}), host_(options()) {
        const std::string text = std::string(functions) + R"(
            function handle(text)
                if text == "ok" then return "fine" end
                return tostring(bad[text]())
            end)";
        const auto loaded = host_.load(text, "bad.lua");
        EXPECT_TRUE(loaded) << loaded.error();
    }

    /// Result of a call, or "REASON: TEXT".
    task<std::string> run(std::string text) {
        text_call made(host_, std::move(text));
        const call_end end = co_await host_.run(made);
        if (end.what == call_end::kind::failed) co_return std::string(end.reason) + ": " + end.text;
        if (end.what == call_end::kind::gone) co_return "gone";
        co_return end.results.at(0).text() != nullptr ? *end.results[0].text() : "no text";
    }
    /// It fails by that text, or without one by any, and the next call does not.
    task<void> fails(std::string name, std::string why) {
        const std::string got = co_await run(name);
        EXPECT_THAT(got, HasSubstr(why)) << name;
        EXPECT_EQ(co_await run("ok"), "fine") << name;
    }
    void write(const std::string& module, std::string_view text) const {
        std::ofstream(folder_.file(module + ".lua")) << text;
    }
    coroutine_host& host() noexcept { return host_; }

private:
    host_options options() {
        host_options made;
        made.limits.bytes = std::size_t{8} << 20;
        made.limits.run = std::chrono::milliseconds(30);
        made.callbacks = {
            {.name = "handle", .arguments = "text", .is_required = true, .results = 1}};
        made.libraries = {
            {.name = "eddy", .functions = rows}, time_library(), modules_.functions()};
        made.preludes = {{"modules", module_prelude()}};
        made.plain_globals = true;
        return made;
    }

    temporary_folder folder_;
    modules modules_;
    coroutine_host host_;
};

using attack = std::pair<std::string, std::string>;  // a function's statements, and why they fail

task<void> each_fails(const std::vector<attack>& all) {
    std::string functions = "bad = {}\n";
    for (std::size_t i = 0; i < all.size(); ++i)
        functions += "bad['" + std::to_string(i) + "'] = function()\n" + all[i].first + "\nend\n";
    abused s(functions);
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(all[i].first);
        co_await s.fails(std::to_string(i), all[i].second);
    }
    // All that they had is garbage.
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await s.run("ok"), "fine");
    EXPECT_LT(s.host().used_bytes(), std::size_t{8} << 20);
}

TEST_P(script_abuse, endless_loops_are_ended) {
    run([]() -> task<void> {
        const std::string late = "script_too_long: bad.lua:";
        const std::vector<attack> all = {
            {"while true do end", late},
            {"repeat until false", late},
            {"for i = 1, math.huge do end", late},
            {"local function f() return f() end return f()", ""},
            {"while true do pcall(error, 'x') end", late},
            {"while true do pcall(function() while true do end end) end", late},
            {"while true do xpcall(function() while true do end end, function() while true do end "
             "end) end",
             late},
            {"local t = setmetatable({}, {__index = function(t, k) while true do end end}) "
             "return t.x",
             late},
            {"local t = setmetatable({}, {__eq = function() while true do end end}) "
             "return t == setmetatable({}, getmetatable(t))",
             late},
            {"return ('x'):gsub('x', function() while true do end end)", late},
            {"table.sort({1, 2, 3}, function() while true do end end)", late},
            {"local n = 0 table.sort({1, 2, 3}, function() n = n + 1 pcall(pcall) "
             "while true do pcall(pcall) end end)",
             late},
            {"coroutine.wrap(function() while true do end end)()", late},
            {"local co = coroutine.wrap(function() while true do coroutine.yield() end end) "
             "while true do co() end",
             late},
            {"local t = ('a'):rep(30000) return t:find(('.-'):rep(30) .. 'b')", late},
            {"while true do loadstring('return 1')() end", late},
            {"local s = ('x'):rep(100000) while true do local _ = s:upper() end", late},
            {"local s = ('x,'):rep(100000) while true do s:gsub(',', '.') end", late},
            {"local t = {} for i = 1, 10000 do t[i] = i end while true do table.concat(t) end",
             late},
            {"local t = {} for i = 1, 10000 do t[i] = i end while true do cjson.encode(t) end",
             late},
            {"for i = 1, math.huge do tostring(i) end", late},
            {"local t = {} while true do table.insert(t, 1, 1) if #t > 20000 then t = {} end end",
             late},
            {"return (''):rep(1e15) .. error('end')", ""},
            {"return table.concat({}, 'x', 1, 1e15)", ""},
            {"return table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, "
             "1e15)",
             ""},
            {"return unpack({}, 1, 1e15)", ""},
            {"return ('x'):byte(-1e15, 1e15) .. error('end')", ""},
            {"return string.format('%1000000000d', 1)", ""},
            {"return tonumber(('1'):rep(1e6), 36) .. error('end')", ""},
            {"return os.date(('%c'):rep(1e5)) .. error('end')", ""},
            {"return os.date('%Y', 1e300) .. error('end')", ""},
            {"return os.time({year = 1e300, month = 1, day = 1}) .. error('end')", ""},
            {"return struct.pack('i99999999', 1) .. error('end')", ""},
            {"return struct.pack('c0', ('x'):rep(1e6)) .. error('end')", ""},
            {"return math.random(0)", ""},
            {"return table.maxn({[1e300] = 1}) .. error('end')", ""},
            {"local t = {} t[1e15] = 1 for i = 1, 50 do t[2^i] = 1 end while true do local _ = #t "
             "end",
             late},
            {"for k in next, {}, 'none' do end", ""},
            {"while true do string.gmatch('', '')() end", late},
            {"for _ in (('x'):rep(1e6)):gmatch('') do end while true do end", late},
        };
        co_await each_fails(all);
    });
}

TEST_P(script_abuse, what_allocates_without_end_meets_the_limit) {
    run([]() -> task<void> {
        const std::string full = "not enough memory";
        const std::vector<attack> all = {
            {"local t = {} while true do t[#t + 1] = {} end", full},
            {"local s = 'x' while true do s = s .. s end", full},
            {"return ('x'):rep(1e9)", ""},
            {"return ('x'):rep(2^53)", ""},
            {"local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end", full},
            {"local t = {} while true do t[#t + 1] = function() return t end end", full},
            {"local t = {} while true do t[#t + 1] = coroutine.create(function() end) end", full},
            {"local t = {} for i = 1, 1e9 do t['k' .. i] = i end", ""},
            {"return ('x'):rep(1e6):gsub('x', ('y'):rep(1e4))", ""},
            {"return table.concat({('x'):rep(3e6), ('y'):rep(3e6), ('z'):rep(3e6)})", full},
            {"return unpack({}, 1, 1e7)", ""},
            {"return select('#', ('x'):rep(1e5):byte(1, -1))", ""},
            {"return string.format(('%s'):rep(200), unpack((function() local t = {} for i = 1, 200 "
             "do t[i] = ('x'):rep(1e5) end return t end)()))",
             full},
            {"local t = {} t[1] = t return cjson.encode(t)", ""},
            {"local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)", ""},
            {"return cjson.decode(('['):rep(1e6))", ""},
            {"local t = {} for i = 1, 1e5 do t = {t} end return cmsgpack.pack(t)", ""},
            {"local f = {} for i = 1, 1e9 do f[i] = loadstring('return ' .. i) end", ""},
        };
        co_await each_fails(all);
    });
}

TEST_P(script_abuse, recursion_through_c_has_an_end) {
    run([]() -> task<void> {
        const std::string deep = "overflow";
        const std::vector<attack> all = {
            {"local function f() return 1 + f() end return f()", deep},
            {"local function f() return (('x'):gsub('x', f)) end return f()", deep},
            {"local function f(a, b) table.sort({1, 2, 3}, f) return a < b end f(1, 2)", deep},
            {"local function f() error((select(2, pcall(f))), 0) end f()", ""},
            {"local function f() return select(2, pcall(f)) end local r = f() error('end')", ""},
            {"local function f(e) return xpcall(error, f) end f() error('end')", ""},
            {"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] "
             "end return t.x",
             deep},
            {"local t = setmetatable({}, {}) getmetatable(t).__tostring = tostring return "
             "tostring(t)",
             "script_too_long"},
            {"local t = setmetatable({}, {}) getmetatable(t).__tostring = pcall "
             "getmetatable(t).__call = tostring return error(tostring(t))",
             ""},
            {"local t = setmetatable({}, {}) getmetatable(t).__tostring = t "
             "getmetatable(t).__call = tostring return tostring(t)",
             ""},
            {"local t = setmetatable({}, {}) getmetatable(t).__call = pcall return error(t())", ""},
            {"local t = setmetatable({}, {}) getmetatable(t).__call = t return t()", ""},
            {"local t = setmetatable({}, {}) getmetatable(t).__call = function(self) return 1 + "
             "self() end return t()",
             deep},
            {"local t = setmetatable({}, {}) getmetatable(t).__concat = function(a, b) return a .. "
             "b end return t .. t",
             deep},
            {"local t = setmetatable({}, {}) getmetatable(t).__lt = function(a, b) return a < b "
             "end return t < t",
             deep},
            {"local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x", ""},
            {"local function f() return coroutine.wrap(f)() end return f()", ""},
            {"local function f() return coroutine.resume(coroutine.create(f)) end f() "
             "error('end')",
             ""},
            {"local function f() return string.format('%s', setmetatable({}, {__tostring = f})) "
             "end return f()",
             ""},
            {"local function f() return load(f) end return f()", ""},
            {"local s = 'return 1' for i = 1, 300 do s = 'return (function() ' .. s .. ' end)()' "
             "end "
             "return loadstring(s)()",
             ""},
            {"return loadstring('return ' .. ('('):rep(1e5) .. '1' .. (')'):rep(1e5))()", ""},
            {"return loadstring('x = ' .. ('{'):rep(1e5) .. ('}'):rep(1e5))()", ""},
            {"local p = ('('):rep(1e5) return ('x'):find(p)", ""},
        };
        co_await each_fails(all);
    });
}

TEST_P(script_abuse, waits_are_refused_where_nothing_can_wait) {
    run([]() -> task<void> {
        const std::string text = R"(
            bad = {
                gsub = function() return (("x"):gsub("x", function() eddy.pause() end)) end,
                sort = function() table.sort({2, 1}, function() eddy.pause() end) end,
                index = function() return setmetatable({}, {__index = function() return eddy.pause() end}).x end,
                tostring = function() return tostring(setmetatable({}, {__tostring = eddy.pause})) end,
                lt = function()
                    local m = {__lt = function() return eddy.pause() == "waited" end}
                    return setmetatable({}, m) < setmetatable({}, m)
                end,
                own = function() return coroutine.wrap(function() return eddy.pause() end)() end,
                yield = function() coroutine.yield(1) end,
                within_gsub = function() return (("x"):gsub("x", coroutine.yield)) end,
                load = function() return select(2, load(function() return eddy.pause() end)) end,
                foreach = function() table.foreach({1}, function() eddy.pause() end) return "end" end,
                module = function() return require("waits") end,
                pcall = function() return select(2, pcall(eddy.pause)) end,
                xpcall = function() return select(2, xpcall(eddy.pause, function(why) return why end)) end,
                iterator = function() for each in eddy.pause do return each end end,
            })";
        abused s(text);
        s.write("waits", "eddy.pause() return 'module'");
        const std::string boundary = "attempt to yield across C-call boundary";
        // As in Lua 5.1: what is called by a function of C.
        for (const std::string name : {"gsub", "sort", "load", "xpcall"})
            EXPECT_THAT(co_await s.run(name), HasSubstr(boundary)) << name;
        EXPECT_THAT(co_await s.run("own"), HasSubstr("within a coroutine of the script's"));
        EXPECT_THAT(co_await s.run("yield"), HasSubstr("handle() may not yield"));
        EXPECT_THAT(co_await s.run("within_gsub"), HasSubstr(boundary));
        // LuaJIT's interpreter runs these without a level of C.
        for (const std::string name : {"index", "pcall", "tostring", "iterator"})
            EXPECT_EQ(co_await s.run(name), "waited") << name;
        EXPECT_EQ(co_await s.run("lt"), "true");
        EXPECT_EQ(co_await s.run("foreach"), "end");
        EXPECT_EQ(co_await s.run("module"), "module") << "a module may wait while it is loaded";
        EXPECT_EQ(co_await s.run("ok"), "fine");
    });
}

TEST_P(script_abuse, shared_tables_cannot_be_replaced) {
    run([]() -> task<void> {
        const std::string closed = "readonly";
        const std::vector<attack> all = {
            {"string.rep = nil", closed},
            {"table.sort = function() end", closed},
            {"eddy.pause = nil", closed},
            {"eddy.other = 1", closed},
            {"math.random = 1", closed},
            {"cjson.encode = 1", closed},
            {"rawset(string, 'rep', 1)", ""},
            {"rawset(eddy, 'pause', 1)", ""},
            {"setmetatable(string, {})", ""},
            {"setmetatable(eddy, {})", ""},
            {"getmetatable('').__index = nil", ""},
            {"getmetatable('').__index.rep = nil", ""},
            {"getmetatable(eddy).__index = nil", ""},
            {"table.insert(string, 1)", ""},
            {"table.remove(eddy)error('x')", ""},
            {"table.sort(package.loaded)", ""},
            {"setfenv(0, {}) error('x')", ""},
            {"setfenv(handle, {}) setfenv(handle, _G) error('x')", ""},
            {"debug.sethook()", ""},
            {"jit.off()", ""},
            {"io.open('/etc/passwd')", ""},
            {"os.execute('true')", ""},
            {"os.exit()", ""},
            {"require('ffi').C.getpid()", ""},
            {"package.loadlib('libc.so.6', 'system')", ""},
            {"dofile('/etc/passwd')", ""},
            {"loadfile('/etc/passwd')()", ""},
            {"loadstring(string.dump(function() end))()", ""},
            {"load('\\27LJ')()", ""},
            {"newproxy(true) error('x')", ""},
            {"collectgarbage('stop') error('x')", ""},
        };
        co_await each_fails(all);
        // Globals of its own it may change, and what it has lost is its own loss.
        abused s(
            "bad = {lose = function() string = nil eddy = nil table = {} error = nil return "
            "('x'):rep(3) end}");
        EXPECT_EQ(co_await s.run("lose"), "xxx");
        EXPECT_EQ(co_await s.run("ok"), "fine");
    });
}

TEST_P(script_abuse, errors_may_be_anything) {
    run([]() -> task<void> {
        const std::vector<attack> all = {
            {"error()", "script_failed: "},
            {"error(nil)", "script_failed: "},
            {"error({})", "script_failed: "},
            {"error(function() end)", "script_failed: "},
            {"error(setmetatable({}, {__tostring = function() while true do end end}))", ""},
            {"error(setmetatable({}, {__index = function() while true do end end}))", ""},
            {"error(('x'):rep(1e6))", "script_failed: bad.lua:"},
            {"error('a\\nb\\0c', 0)", "a b c"},
            {"error(coroutine.create(function() end))", "script_failed: "},
            {"local t = {err = ('y'):rep(1e6)} error(t)", "script_failed: "},
            {"error(7)", "7"},
            {"error(true)", "script_failed: "},
        };
        co_await each_fails(all);
    });
}

}  // namespace
}  // namespace eddy::script
