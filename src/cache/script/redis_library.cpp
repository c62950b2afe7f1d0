// redis.call(), and the other functions of the table "redis".
#include "cache/script/redis_library.hpp"

#include <eddy/base/log.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "base/sha1.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/version.hpp"
#include "cache/script/runner.hpp"
#include "cache/script/values.hpp"
#include "cache/types/number.hpp"
#include "lua/errors.hpp"
#include "lua/sandbox.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {
namespace {

using lua::raise_error;

// Replaces the number at `index` by its text. Lua's own text has 14 digits.
void make_text(lua::stack in, int index) {
    char digits[1 + resp::max_number_text];
    char* to = digits;
    // As in Redis, zero has no sign here, and NaN may have one.
    const double value = in.tonumber(index) + 0.0;
    if (std::isnan(value) && std::signbit(value)) *to++ = '-';
    const char* const end = resp::write_number(to, value);
    in.pushstring({digits, static_cast<std::size_t>(end - digits)});
    in.replace(index);
}

int give_error(lua::stack in, std::string_view text, bool raises) {
    if (raises) raise_error(in, text);
    lua::push_error(in, text);
    return 1;
}

// The arguments as texts, which are valid while they are on Lua's stack; null if one is neither
// text nor number.
const std::string_view* take_arguments(lua::stack in, int count, std::string_view* few,
                                       int few_size) {
    std::string_view* args = few;
    if (count > few_size) {
        // There is room on Lua's stack: a function of C has some beyond its arguments.
        args = static_cast<std::string_view*>(
            in.newuserdata(static_cast<std::size_t>(count) * sizeof(std::string_view)));
    }
    for (int i = 0; i < count; ++i) {
        const lua::value_type type = in.read_text(i + 1, args[i]);
        if (type == lua::value_type::string) [[likely]]
            continue;
        if (type != lua::value_type::number) return nullptr;
        make_text(in, i + 1);
        args[i] = in.tostring(i + 1);
    }
    return args;
}

int call_command(lua::stack in, bool raises) {
    script_runner& of = script_runner::of(in);
    const int count = in.gettop();
    if (count == 0) {
        return give_error(in, "Please specify at least one argument for this redis lib call",
                          raises);
    }
    // A library's function, called while the library is loaded.
    if (!of.is_running()) {
        return give_error(in, "redis.call/pcall can only be called inside a script invocation",
                          raises);
    }
    constexpr int few_size = 16;
    std::string_view few[few_size];
    const std::string_view* const args = take_arguments(in, count, few, few_size);
    if (args == nullptr) {
        return give_error(in, "Lua redis lib command arguments must be strings or integers",
                          raises);
    }
    std::string_view refusal;
    const std::string_view reply = of.execute(args, static_cast<std::size_t>(count), refusal);
    // Many arguments would leave no room for the reply on the stack.
    in.settop(0);
    if (!refusal.empty()) {
        lua::push_error(in, refusal);
        mark_counted(in);
        if (raises) in.error();
        return 1;
    }
    const bool is_error = push_reply(in, reply);
    of.count_executed(in);
    if (is_error && raises) in.error();
    return 1;
}

int redis_call(lua_State* in) { return call_command(in, true); }
int redis_pcall(lua_State* in) { return call_command(in, false); }

int redis_sha1hex(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() != 1) raise_error(in, "wrong number of arguments");
    std::string_view left = in.tostring(1);
    constexpr std::size_t piece = 1024 * sha1_sum::block_bytes;
    constexpr std::size_t hashed_bytes_a_step = 4;
    sha1_sum sum;
    for (; left.size() > piece; left.remove_prefix(piece)) {
        sum.add(left.substr(0, piece));
        lua::sandbox::of(in).count_steps(in, piece / hashed_bytes_a_step);
    }
    const sha1_digest of = sum.end(left);
    char digits[2 * std::tuple_size_v<sha1_digest>];
    char* to = digits;
    for (const std::uint8_t each : of) {
        *to++ = "0123456789abcdef"[each >> 4];
        *to++ = "0123456789abcdef"[each & 15];
    }
    in.pushstring({digits, sizeof digits});
    return 1;
}

int redis_error_reply(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() != 1 || in.type(1) != lua::value_type::string) {
        lua::push_error(in, "wrong number or type of arguments");
        return 1;
    }
    if (!in.tostring(1).starts_with('-')) {
        in.pushstring("-");
        in.insert(1);
        in.concat(2);
    }
    lua::push_error(in, in.tostring(1));
    return 1;
}

int redis_status_reply(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() != 1 || in.type(1) != lua::value_type::string) {
        lua::push_error(in, "wrong number or type of arguments");
        return 1;
    }
    in.createtable(0, 1);
    in.pushvalue(1);
    in.setfield(-2, "ok");
    return 1;
}

constexpr int most_log_level = 3;

int redis_log(lua_State* raw) {
    const lua::stack in(raw);
    const int count = in.gettop();
    if (count < 2) raise_error(in, "redis.log() requires two arguments or more.");
    if (!in.isnumber(1)) raise_error(in, "First argument must be a number (log level).");
    const auto level = static_cast<int>(in.tonumber(1));
    if (level < 0 || level > most_log_level) raise_error(in, "Invalid debug level.");
    constexpr log_level levels[] = {log_level::debug, log_level::debug, log_level::info,
                                    log_level::warn};
    // Arguments other than texts and numbers are left out. The line is built on Lua's stack.
    in.pushstring("");
    for (int i = 2; i <= count; ++i) {
        if (!in.isstring(i)) continue;
        in.pushstring(" ");
        in.pushvalue(i);
        in.concat(3);
    }
    std::string_view line = in.tostring(-1);
    if (!line.empty()) line.remove_prefix(1);
    log(levels[level], "script", line);
    return 0;
}

int redis_setresp(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() != 1) raise_error(in, "redis.setresp() requires one argument.");
    const auto version = static_cast<int>(in.tonumber(1));
    if (version != 2 && version != 3) raise_error(in, "RESP version must be 2 or 3.");
    script_runner::of(in).own_session().protocol = static_cast<std::uint8_t>(version);
    return 0;
}

constexpr int replicate_aof = 1;
constexpr int replicate_replica = 2;

int redis_set_repl(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() != 1) raise_error(in, "redis.set_repl() requires one argument.");
    const auto flags = static_cast<int>(in.tonumber(1));
    if ((flags & ~(replicate_aof | replicate_replica)) != 0) {
        raise_error(
            in, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    }
    return 0;
}

int redis_replicate_commands(lua_State* raw) {
    const lua::stack in(raw);
    in.pushboolean(true);
    return 1;
}

int redis_breakpoint(lua_State* raw) {
    const lua::stack in(raw);
    in.pushboolean(false);
    return 1;
}

int redis_debug(lua_State*) { return 0; }

int redis_acl_check_cmd(lua_State* raw) {
    const lua::stack in(raw);
    const int count = in.gettop();
    if (count == 0) raise_error(in, "Please specify at least one argument for this redis lib call");
    constexpr int few_size = 16;
    std::string_view few[few_size];
    const std::string_view* const args = take_arguments(in, count, few, few_size);
    if (args == nullptr) {
        raise_error(in,
                    "redis.acl_check_cmd() require command arguments to be strings or integers");
    }
    const command_spec* const what = script_runner::of(in).find_named_command(args[0]);
    if (what == nullptr || !arity_fits(*what, static_cast<std::size_t>(count)))
        raise_error(in, "Invalid command passed to redis.acl_check_cmd()");
    const std::span<const std::string_view> all(args, static_cast<std::size_t>(count));
    in.pushboolean(script_runner::of(in).may_run(*what, all));
    return 1;
}

// Fills the table on top.
void set_version_and_levels(lua::stack in, std::string_view version) {
    in.set_number("LOG_DEBUG", 0);
    in.set_number("LOG_VERBOSE", 1);
    in.set_number("LOG_NOTICE", 2);
    in.set_number("LOG_WARNING", most_log_level);
    in.set_text("REDIS_VERSION", version);
    in.set_number("REDIS_VERSION_NUM", version_number(version).value_or(0));
}

}  // namespace

void push_redis_library(lua::stack in, bool for_functions) {
    in.createtable();
    in.set_functions({{"log", redis_log},
                      {"call", redis_call},
                      {"pcall", redis_pcall},
                      {"sha1hex", redis_sha1hex},
                      {"error_reply", redis_error_reply},
                      {"status_reply", redis_status_reply},
                      {"setresp", redis_setresp},
                      {"set_repl", redis_set_repl},
                      {"acl_check_cmd", redis_acl_check_cmd}});
    if (!for_functions) {
        in.set_functions({{"replicate_commands", redis_replicate_commands},
                          {"breakpoint", redis_breakpoint},
                          {"debug", redis_debug}});
    }
    set_version_and_levels(in, script_runner::of(in).state().settings.options.redis_version);
    in.set_number("REPL_NONE", 0);
    in.set_number("REPL_AOF", replicate_aof);
    in.set_number("REPL_SLAVE", replicate_replica);
    in.set_number("REPL_REPLICA", replicate_replica);
    in.set_number("REPL_ALL", replicate_aof | replicate_replica);
    lua::sandbox::protect(in);
}

void set_redis_library(lua::stack in) {
    in.pushvalue(-1);
    in.setfield(1, "redis");
    in.setfield(1, "server");
}

void push_load_globals(lua::stack in) {
    const auto refuse_others = [in] {
        in.createtable();
        in.set_functions({{"__index", lua::sandbox::refuse_unknown_global}});
        in.setmetatable(-2);
    };
    in.createtable();
    in.createtable();
    in.set_functions({{"log", redis_log}});
    in.pushvalue(-3);
    in.setfield(-2, "register_function");
    set_version_and_levels(in, script_runner::of(in).state().settings.options.redis_version);
    refuse_others();
    lua::sandbox::protect(in);
    in.pushvalue(-1);
    in.setfield(-3, "redis");
    in.setfield(-2, "server");
    refuse_others();
    in.remove(-2);
}

}  // namespace eddy::cache
