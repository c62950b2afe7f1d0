// redis.call() and what else the table "redis" has.
#include <eddy/base/log.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/catalog/command_table.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/version.hpp"
#include "cache/script/functions.hpp"
#include "cache/script/scripts.hpp"
#include "cache/script/values.hpp"
#include "cache/script/vm.hpp"
#include "cache/engine/dataset_digest.hpp"
#include "cache/types/number.hpp"

#include <lua.hpp>

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {
namespace {

std::string_view text_at(lua_State* in, int index) {
    std::size_t size = 0;
    const char* const text = lua_tolstring(in, index, &size);
    return {text, size};
}

// Replaces the number at `index` by its text. Lua's own would have 14 digits.
void make_text(lua_State* in, int index) {
    char digits[1 + resp::max_number_text];
    char* to = digits;
    // As in Redis, zero has no sign here, and what is no number may have one.
    const double value = lua_tonumber(in, index) + 0.0;
    if (std::isnan(value) && std::signbit(value)) *to++ = '-';
    const char* const end = resp::write_number(to, value);
    lua_pushlstring(in, digits, static_cast<std::size_t>(end - digits));
    lua_replace(in, index);
}

int give_error(lua_State* in, std::string_view text, bool raises) {
    if (raises) raise(in, text);
    push_error(in, text);
    return 1;
}

// The arguments as texts, which live as long as they stand on Lua's stack; null, when one is
// neither text nor number.
const std::string_view* take_arguments(lua_State* in, int count, std::string_view* few,
                                       int few_size) {
    std::string_view* args = few;
    if (count > few_size) {
        luaL_checkstack(in, 1, nullptr);
        args = static_cast<std::string_view*>(
            lua_newuserdata(in, static_cast<std::size_t>(count) * sizeof(std::string_view)));
    }
    for (int i = 0; i < count; ++i) {
        const int type = lua_type(in, i + 1);
        if (type == LUA_TNUMBER)
            make_text(in, i + 1);
        else if (type != LUA_TSTRING)
            return nullptr;
        args[i] = text_at(in, i + 1);
    }
    return args;
}

int call_command(lua_State* in, bool raises) {
    scripts& of = vm::of(in).owner();
    const int count = lua_gettop(in);
    if (count == 0) {
        return give_error(in, "Please specify at least one argument for this redis lib call",
                          raises);
    }
    // A function of a library that is called while the library is loaded.
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
    if (!refusal.empty()) return give_error(in, refusal, raises);
    const bool is_error = push_reply(in, reply);
    of.count_executed(in);
    if (is_error && raises) return lua_error(in);
    return 1;
}

int redis_call(lua_State* in) { return call_command(in, true); }
int redis_pcall(lua_State* in) { return call_command(in, false); }

int redis_sha1hex(lua_State* in) {
    if (lua_gettop(in) != 1) raise(in, "wrong number of arguments");
    std::string_view left = text_at(in, 1);
    constexpr std::size_t piece = 1024 * sha1_sum::block_bytes;
    constexpr std::size_t hashed_bytes_a_step = 4;
    sha1_sum sum;
    for (; left.size() > piece; left.remove_prefix(piece)) {
        sum.add(left.substr(0, piece));
        vm::of(in).count_steps(in, piece / hashed_bytes_a_step);
    }
    const digest of = sum.end(left);
    char digits[2 * std::tuple_size_v<digest>];
    char* to = digits;
    for (const std::uint8_t each : of) {
        *to++ = "0123456789abcdef"[each >> 4];
        *to++ = "0123456789abcdef"[each & 15];
    }
    lua_pushlstring(in, digits, sizeof digits);
    return 1;
}

int redis_error_reply(lua_State* in) {
    if (lua_gettop(in) != 1 || lua_type(in, 1) != LUA_TSTRING) {
        push_error(in, "wrong number or type of arguments");
        return 1;
    }
    if (*lua_tostring(in, 1) != '-') {
        lua_pushliteral(in, "-");
        lua_insert(in, 1);
        lua_concat(in, 2);
    }
    push_error(in, text_at(in, 1));
    return 1;
}

int redis_status_reply(lua_State* in) {
    if (lua_gettop(in) != 1 || lua_type(in, 1) != LUA_TSTRING) {
        push_error(in, "wrong number or type of arguments");
        return 1;
    }
    lua_createtable(in, 0, 1);
    lua_pushvalue(in, 1);
    lua_setfield(in, -2, "ok");
    return 1;
}

constexpr int most_log_level = 3;

int redis_log(lua_State* in) {
    const int count = lua_gettop(in);
    if (count < 2) raise(in, "redis.log() requires two arguments or more.");
    if (lua_isnumber(in, 1) == 0) raise(in, "First argument must be a number (log level).");
    const auto level = static_cast<int>(lua_tonumber(in, 1));
    if (level < 0 || level > most_log_level) raise(in, "Invalid debug level.");
    constexpr log_level levels[] = {log_level::debug, log_level::debug, log_level::info,
                                    log_level::warn};
    // What is neither text nor number is left out. The line is made on Lua's stack.
    lua_pushliteral(in, "");
    for (int i = 2; i <= count; ++i) {
        if (lua_isstring(in, i) == 0) continue;
        lua_pushliteral(in, " ");
        lua_pushvalue(in, i);
        lua_concat(in, 3);
    }
    std::string_view line = text_at(in, -1);
    if (!line.empty()) line.remove_prefix(1);
    log(levels[level], "script", line);
    return 0;
}

int redis_setresp(lua_State* in) {
    if (lua_gettop(in) != 1) raise(in, "redis.setresp() requires one argument.");
    const auto version = static_cast<int>(lua_tonumber(in, 1));
    if (version != 2 && version != 3) raise(in, "RESP version must be 2 or 3.");
    vm::of(in).owner().own_session().protocol = static_cast<std::uint8_t>(version);
    return 0;
}

constexpr int replicate_aof = 1;
constexpr int replicate_replica = 2;

int redis_set_repl(lua_State* in) {
    if (lua_gettop(in) != 1) raise(in, "redis.set_repl() requires one argument.");
    const auto flags = static_cast<int>(lua_tonumber(in, 1));
    if ((flags & ~(replicate_aof | replicate_replica)) != 0) {
        raise(in, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    }
    return 0;
}

int redis_replicate_commands(lua_State* in) {
    lua_pushboolean(in, 1);
    return 1;
}

int redis_breakpoint(lua_State* in) {
    lua_pushboolean(in, 0);
    return 1;
}

int redis_debug(lua_State*) { return 0; }

int redis_acl_check_cmd(lua_State* in) {
    const int count = lua_gettop(in);
    if (count == 0) raise(in, "Please specify at least one argument for this redis lib call");
    constexpr int few_size = 16;
    std::string_view few[few_size];
    const std::string_view* const args = take_arguments(in, count, few, few_size);
    if (args == nullptr) {
        raise(in, "redis.acl_check_cmd() require command arguments to be strings or integers");
    }
    const command_spec* const what = vm::of(in).owner().find_named_command(args[0]);
    if (what == nullptr || !arity_fits(*what, static_cast<std::size_t>(count)))
        raise(in, "Invalid command passed to redis.acl_check_cmd()");
    const std::span<const std::string_view> all(args, static_cast<std::size_t>(count));
    lua_pushboolean(in, vm::of(in).owner().may_run(*what, all));
    return 1;
}

void set_functions(lua_State* in, std::initializer_list<luaL_Reg> all) {
    for (const luaL_Reg& each : all) {
        lua_pushcfunction(in, each.func);
        lua_setfield(in, -2, each.name);
    }
}

void set_number(lua_State* in, const char* name, int value) {
    lua_pushinteger(in, value);
    lua_setfield(in, -2, name);
}

}  // namespace

void push_error(lua_State* in, std::string_view text) {
    lua_createtable(in, 0, 4);
    std::string_view code = "ERR";
    if (text.starts_with('-')) {
        text.remove_prefix(1);
        const std::size_t end = text.find(' ');
        if (end != std::string_view::npos) {
            code = text.substr(0, end);
            text.remove_prefix(end + 1);
        }
    }
    constexpr std::string_view ends = "\r\n";
    while (!text.empty() && ends.find(text.front()) != std::string_view::npos)
        text.remove_prefix(1);
    while (!text.empty() && ends.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    lua_pushlstring(in, code.data(), code.size());
    lua_pushliteral(in, " ");
    lua_pushlstring(in, text.data(), text.size());
    lua_concat(in, 3);
    lua_setfield(in, -2, "err");
}

void raise(lua_State* in, std::string_view text) {
    push_error(in, text);
    lua_error(in);
    __builtin_unreachable();
}

int note_error(lua_State* in) {
    lua_settop(in, 1);
    lua_Debug where;
    if (!lua_istable(in, 1)) {
        lua_createtable(in, 0, 3);
        lua_pushliteral(in, "ERR ");
        // As tostring() says it, for what has a text.
        switch (lua_type(in, 1)) {
            case LUA_TSTRING:
                // This one LuaJIT says without a place.
                if (text_at(in, 1) == "stack overflow" && lua_getstack(in, 1, &where) != 0) {
                    lua_getinfo(in, "Sl", &where);
                    lua_pushfstring(in, "%s:%d: stack overflow", where.short_src,
                                    where.currentline);
                    break;
                }
                [[fallthrough]];
            case LUA_TNUMBER: lua_pushvalue(in, 1); break;
            case LUA_TBOOLEAN:
                lua_pushstring(in, lua_toboolean(in, 1) != 0 ? "true" : "false");
                break;
            case LUA_TNIL: lua_pushliteral(in, "nil"); break;
            default:
                lua_pushfstring(in, "%s: %p", luaL_typename(in, 1), lua_topointer(in, 1));
                break;
        }
        lua_concat(in, 2);
        lua_setfield(in, -2, "err");
        lua_replace(in, 1);
    }
    for (int level = 1; level <= 2; ++level) {
        if (lua_getstack(in, level, &where) == 0) break;
        lua_getinfo(in, "Sl", &where);
        if (*where.what == 'C') continue;
        lua_pushstring(in, where.source);
        lua_setfield(in, 1, "source");
        lua_pushinteger(in, where.currentline);
        lua_setfield(in, 1, "line");
        break;
    }
    return 1;
}

void push_redis_library(lua_State* in, bool loading) {
    lua_newtable(in);
    set_functions(in, {{"log", redis_log}});
    if (loading) {
        set_functions(in, {{"register_function", register_function}});
    } else {
        set_functions(in, {{"call", redis_call},
                           {"pcall", redis_pcall},
                           {"sha1hex", redis_sha1hex},
                           {"error_reply", redis_error_reply},
                           {"status_reply", redis_status_reply},
                           {"setresp", redis_setresp},
                           {"set_repl", redis_set_repl},
                           {"acl_check_cmd", redis_acl_check_cmd}});
        if (vm::of(in).what() == vm::purpose::eval) {
            set_functions(in, {{"replicate_commands", redis_replicate_commands},
                               {"breakpoint", redis_breakpoint},
                               {"debug", redis_debug}});
        }
    }
    set_number(in, "LOG_DEBUG", 0);
    set_number(in, "LOG_VERBOSE", 1);
    set_number(in, "LOG_NOTICE", 2);
    set_number(in, "LOG_WARNING", most_log_level);
    set_number(in, "REPL_NONE", 0);
    set_number(in, "REPL_AOF", replicate_aof);
    set_number(in, "REPL_SLAVE", replicate_replica);
    set_number(in, "REPL_REPLICA", replicate_replica);
    set_number(in, "REPL_ALL", replicate_aof | replicate_replica);
    lua_pushlstring(in, compatible_version.data(), compatible_version.size());
    lua_setfield(in, -2, "REDIS_VERSION");
    // 7.2.4 is 0x00070204.
    int number = 0;
    int one = 0;
    for (const char each : compatible_version) {
        if (each == '.') {
            number = number << 8 | one;
            one = 0;
        } else {
            one = one * 10 + (each - '0');
        }
    }
    set_number(in, "REDIS_VERSION_NUM", number << 8 | one);
    if (loading) {
        lua_newtable(in);
        set_functions(in, {{"__index", refuse_unknown_global}});
        lua_setmetatable(in, -2);
    }
    protect(in);
}

}  // namespace eddy::cache
