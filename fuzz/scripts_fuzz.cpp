// Fuzz target of scripts and their decoders, with any bytes: the engine lives, and replies.
//
// The first byte chooses: a script's text, or bytes for one of the decoders.
#include <eddy/base/assert.hpp>
#include <eddy/wire/resp.hpp>

#include "cache/engine/engine.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace eddy;

constexpr std::array<std::string_view, 11> scripts{
    "",  // the bytes themselves
    "return cjson.encode(cjson.decode(ARGV[1]))",
    "return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))",
    "return {cmsgpack.unpack_limit(ARGV[1], 3, 1)}",
    "return {struct.unpack(ARGV[1], ARGV[1])}",
    "return struct.pack(ARGV[1], 1, 'two', 3, 4, 'five')",
    "return {struct.size(ARGV[1]), cjson.encode(ARGV[1])}",
    "return string.format(ARGV[1], 1, 'two', 3.5, ARGV[1], 5, 'six', -7.25)",
    "return {loadstring(ARGV[1]), load(function() return ARGV[1] end)}",
    // An arbitrary order, which also changes the table's end.
    "local t, n = {ARGV[1]:byte(1, 200)}, 0 "
    "table.sort(t, function(a, b) n = n + 1 local c = ARGV[1]:byte(n % #ARGV[1] + 1) "
    "if c == 7 then t[#t] = nil end if c > 128 then return (a or 0) < (b or 0) end "
    "return c % 2 == 0 end) return t",
    "return {ARGV[1]:rep(#ARGV[1]), table.concat({ARGV[1]:byte(1, 200)}, ARGV[1]), "
    "ARGV[1]:find(ARGV[1]), ARGV[1]:gsub(ARGV[1], ARGV[1])}",
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    cache::engine_options options;
    options.seed = 1;
    options.busy_reply_ms = 20;
    options.max_script_memory = 8U << 20;
    options.max_text = options.max_reply = 1U << 20;
    cache::engine engine(options);
    {
        cache::client_session session(engine);
        const std::string_view script = scripts[data[0] % scripts.size()];
        const std::array<std::string_view, 4> args{"EVAL", script.empty() ? bytes : script, "0",
                                                   bytes};
        const resp::command one{args.data(), args.size()};
        byte_buffer out;
        EDDY_ASSERT(engine.execute(session, {&one, 1}, out) == 1);
        // A late script ends with its session.
        EDDY_ASSERT(session.blocked || !out.empty());
    }
    return 0;
}
