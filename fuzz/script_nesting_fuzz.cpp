// Fuzz target of recursion through functions of C: programs of nested callbacks, in which the
// innermost one calls the outermost again. The engine survives, and keeps running scripts.
//
// The first byte chooses how the program is run; each byte behind it is one piece of the program.
// The limit of levels is low, so that few calls pass it: no program nests so deep that it would
// overflow the stack of software without such a limit.
#include <eddy/base/assert.hpp>
#include <eddy/wire/resp.hpp>

#include "cache/engine/engine.hpp"
#include "cache/script/hook_script.hpp"
#include "lua/native_stack.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace eddy;

// `@` is where the next piece goes; behind the last one f() is called.
constexpr std::array<std::string_view, 32> pieces{
    "string.gsub('a', 'a', function() @ end)",
    "string.gsub('ab', '.', setmetatable({}, {__index = function() @ end}))",
    "table.sort({2, 1}, function() @ end)",
    "local m = {__lt = function() @ end} table.sort({setmetatable({}, m), setmetatable({}, m)})",
    "pcall(function() @ end)",
    "local ok, why = pcall(function() @ end) if not ok then error(why, 0) end",
    "xpcall(function() @ end, function() return f() end)",
    "xpcall(error, function() @ end)",
    "coroutine.wrap(function() @ end)()",
    "coroutine.resume(coroutine.create(function() @ end))",
    "local c = coroutine.wrap(function() coroutine.yield() @ end) c() c()",
    "load(function() @ end)",
    "load(function() if n % 2 == 0 then return 'return ((((((((' end @ end)",
    "loadstring('local f = ... return f()')(f) @",
    "local t = setmetatable({}, {__index = function() @ end}) t = t.x",
    "setmetatable({}, {__newindex = function() @ end}).x = 1",
    "setmetatable({}, {__call = function() @ end})()",
    "local t = setmetatable({}, {__concat = function() @ end}) .. ''",
    "local m = {__lt = function() @ end} local t = setmetatable({}, m) < setmetatable({}, m)",
    "local m = {__eq = function() @ end} local t = setmetatable({}, m) == setmetatable({}, m)",
    "local t = setmetatable({}, {__add = function() @ return 1 end}) + 1",
    "tostring(setmetatable({}, {__tostring = function() @ return '' end}))",
    "pcall(string.format, '%s', setmetatable({}, {__tostring = function() @ return '' end}))",
    "table.foreach({1}, function() @ end)",
    "for _ in function() @ end do break end",
    "for i = 1, 2 do @ end",
    "if n % 5 == 3 then return end @",
    "if n % 50 == 49 then error({err = 'ERR no'}) end @",
    "redis.pcall('RPUSH', 'l', n) @",
    "cjson.encode(cjson.decode('[[[[{\"a\":[]}]]]]')) cmsgpack.unpack('\\145\\145\\145\\1') @",
    "string.rep('x', 1000):find(('x?'):rep(50) .. 'y') @",
    "f() @",
};

std::string program_of(std::string_view bytes) {
    constexpr std::size_t most_pieces = 16;
    std::string body = "@";
    for (const char each : bytes.substr(0, most_pieces)) {
        const std::string_view piece = pieces[static_cast<unsigned char>(each) % pieces.size()];
        body.replace(body.find('@'), 1, piece);
    }
    body.replace(body.find('@'), 1, "f()");
    return "local n, f = 0 f = function() n = n + 1 if n > 100 then return end " + body +
           " end f()";
}

void run_hook(const std::string& program) {
    // LuaJIT's own patterns ignore the time limit.
    lua::blocking_state script({}, [](std::string_view) {});
    const auto loaded = script.load(
        "string.find = type local redis = {pcall = pcall} local cjson, cmsgpack = "
        "{encode = type, decode = type}, {unpack = type} "
        "function on_miss() " +
            program + " end",
        "hooks.lua", cache::hook_names);
    // A program may have too many levels for the compiler.
    if (!loaded) return;
    cache::hook_job job;
    job.key = "k";
    static_cast<void>(cache::run_hook(script, job, std::chrono::milliseconds(200)));
}

class client {
public:
    client() : engine_(options()) {}

    bool ask(const std::vector<std::string_view>& args) {
        const resp::command one{args.data(), args.size()};
        out_.clear();
        EDDY_ASSERT(engine_.execute(session_, {&one, 1}, out_) == 1);
        constexpr int most_slices = 40;
        for (int i = 0; i < most_slices && engine_.script_is_late(); ++i) engine_.go_on();
        engine_.take_output(session_, out_);
        // A script that still runs ends with its session.
        EDDY_ASSERT(session_.blocked || !out_.empty());
        return !session_.blocked;
    }

private:
    static cache::engine_options options() {
        cache::engine_options made;
        made.seed = 1;
        made.max_script_memory = 64U << 20;
        return made;
    }
    cache::engine engine_;
    cache::client_session session_{engine_};
    byte_buffer out_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    lua::native_stack::set_limits({.levels = 24});
    const std::string program = program_of({reinterpret_cast<const char*>(data) + 1, size - 1});
    const std::string library = "#!lua name=l\n" + program;
    const std::string function =
        "#!lua name=l\nredis.register_function('f', function() " + program + " end)";
    constexpr unsigned ways = 6;
    const unsigned way = data[0] % ways;
    if (way == 5) {
        run_hook(program);
        return 0;
    }
    client by;
    bool has_ended = true;
    switch (way) {
        case 0: has_ended = by.ask({"EVAL", program, "0"}); break;
        case 1: has_ended = by.ask({"EVAL_RO", program, "0"}); break;
        case 2: has_ended = by.ask({"FUNCTION", "LOAD", library}); break;
        case 3:
            has_ended = by.ask({"FUNCTION", "LOAD", function}) && by.ask({"FCALL", "f", "0"});
            break;
        default:
            has_ended = by.ask({"MULTI"}) && by.ask({"EVAL", program, "0"}) &&
                        by.ask({"EVAL", program, "0"}) && by.ask({"EXEC"});
            break;
    }
    if (has_ended) EDDY_ASSERT(by.ask({"EVAL", "return 1", "0"}));
    return 0;
}
