// Both ways, recursively; the depth is bounded by Lua's stack and by the native one.
#include "cache/script/values.hpp"

#include "cache/script/conversions.hpp"
#include "cache/script/native_stack.hpp"
#include "cache/script/scripts.hpp"
#include "cache/script/vm.hpp"

#include <lua.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace eddy::cache {
namespace {

// The name is Redis's; scripts can see it.
constexpr const char* counted_already = "ignore_error_stats_update";

constexpr std::size_t steps_a_value = 10;

void push(lua_State* in, std::string_view text) { lua_pushlstring(in, text.data(), text.size()); }

// Takes a reply apart which is known to be right.
class reply_pusher {
public:
    reply_pusher(lua_State* in, std::string_view reply) noexcept
        : in_(in), machine_(vm::of(in)), left_(reply) {}

    // True for an error.
    bool value() {
        luaL_checkstack(in_, 8, "the reply is nested too deeply");
        check_native_stack(in_);
        machine_.count_steps(in_, steps_a_value);
        const std::size_t end = left_.find('\r', 1);
        const char type = left_[0];
        const std::string_view head = left_.substr(1, end - 1);
        left_.remove_prefix(end + 2);
        switch (type) {
            case ':': lua_pushnumber(in_, static_cast<double>(number(head))); return false;
            case '$': text(head); return false;
            case '+': field("ok", head); return false;
            case '-': error(head); return true;
            case '*': array(number(head)); return false;
            case '_': lua_pushnil(in_); return false;
            case '#': lua_pushboolean(in_, head == "t" ? 1 : 0); return false;
            case ',': real(head); return false;
            case '(': field("big_number", head); return false;
            case '=': verbatim(head); return false;
            case '%': map(number(head)); return false;
            case '~': set(number(head)); return false;
            default: lua_pushnil(in_); return false;
        }
    }

private:
    static std::int64_t number(std::string_view digits) noexcept {
        std::int64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    }
    std::string_view take(std::string_view head) noexcept {
        const auto size = static_cast<std::size_t>(number(head));
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size + 2);
        return taken;
    }

    void text(std::string_view head) {
        if (head[0] == '-') {
            lua_pushboolean(in_, 0);
        } else {
            push(in_, take(head));
        }
    }
    // A table with one field.
    void field(const char* name, std::string_view value) {
        lua_createtable(in_, 0, 1);
        push(in_, value);
        lua_setfield(in_, -2, name);
    }
    void error(std::string_view line) {
        lua_createtable(in_, 0, 4);
        if (line.find(' ') == std::string_view::npos) {
            lua_pushliteral(in_, "ERR ");
            push(in_, line);
            lua_concat(in_, 2);
        } else {
            push(in_, line);
        }
        lua_setfield(in_, -2, "err");
        lua_pushboolean(in_, 1);
        lua_setfield(in_, -2, counted_already);
    }
    void array(std::int64_t count) {
        if (count < 0) return lua_pushboolean(in_, 0);
        lua_createtable(in_, size_hint(count), 0);
        for (std::int64_t i = 1; i <= count; ++i) {
            value();
            lua_rawseti(in_, -2, static_cast<int>(i));
        }
    }
    void real(std::string_view head) {
        lua_createtable(in_, 0, 1);
        char digits[64];
        const std::size_t size = head.copy(digits, sizeof digits - 1);
        digits[size] = '\0';
        lua_pushnumber(in_, std::strtod(digits, nullptr));
        lua_setfield(in_, -2, "double");
    }
    void verbatim(std::string_view head) {
        const std::string_view all = take(head);
        lua_createtable(in_, 0, 1);
        lua_createtable(in_, 0, 2);
        push(in_, all.substr(4));
        lua_setfield(in_, -2, "string");
        push(in_, all.substr(0, 3));
        lua_setfield(in_, -2, "format");
        lua_setfield(in_, -2, "verbatim_string");
    }
    void map(std::int64_t pairs) {
        lua_createtable(in_, 0, 1);
        lua_createtable(in_, 0, size_hint(pairs));
        for (std::int64_t i = 0; i < pairs; ++i) {
            value();
            value();
            lua_rawset(in_, -3);
        }
        lua_setfield(in_, -2, "map");
    }
    void set(std::int64_t count) {
        lua_createtable(in_, 0, 1);
        lua_createtable(in_, 0, size_hint(count));
        for (std::int64_t i = 0; i < count; ++i) {
            value();
            lua_pushboolean(in_, 1);
            lua_rawset(in_, -3);
        }
        lua_setfield(in_, -2, "set");
    }
    static int size_hint(std::int64_t count) noexcept {
        constexpr std::int64_t most = 1 << 20;
        return static_cast<int>(count < most ? count : most);
    }

    lua_State* in_;
    vm& machine_;
    std::string_view left_;
};

std::string_view text_at(lua_State* in, int index) {
    std::size_t size = 0;
    const char* const text = lua_tolstring(in, index, &size);
    return {text, size};
}

// Lines end with a NUL, as in Redis.
std::string_view to_nul(std::string_view text) noexcept { return text.substr(0, text.find('\0')); }

// Pushes t[name] of the table on top; true when it is of that type, else it is popped.
bool push_field(lua_State* in, std::string_view name, int type) {
    push(in, name);
    lua_rawget(in, -2);
    if (lua_type(in, -1) == type) return true;
    lua_pop(in, 1);
    return false;
}

// False when the reply has been refused as too large: its error stands there, and nothing may come
// behind it. A table may stand in many places of itself, so no more of it is looked at then.
[[nodiscard]] bool reply_with(call& c, lua_State* in);

// Of the table on top.
std::size_t count_pairs(lua_State* in) {
    vm& machine = vm::of(in);
    machine.count_largest(in);
    std::size_t pairs = 0;
    for (lua_pushnil(in); lua_next(in, -2) != 0; lua_pop(in, 1)) {
        machine.count_steps(in, 2);
        ++pairs;
    }
    return pairs;
}

bool reply_with_map(call& c, lua_State* in) {
    const std::size_t pairs = count_pairs(in);
    c.reply.map(pairs);
    lua_pushnil(in);
    while (lua_next(in, -2) != 0) {
        lua_pushvalue(in, -2);
        // The key, and the value.
        if (!reply_with(c, in)) return lua_pop(in, 2), false;
        if (!reply_with(c, in)) return lua_pop(in, 1), false;
    }
    return true;
}

bool reply_with_set(call& c, lua_State* in) {
    const std::size_t count = count_pairs(in);
    c.reply.set(count);
    lua_pushnil(in);
    while (lua_next(in, -2) != 0) {
        lua_pop(in, 1);
        lua_pushvalue(in, -1);
        if (!reply_with(c, in)) return lua_pop(in, 1), false;
    }
    return true;
}

bool reply_with_array(call& c, lua_State* in) {
    vm& machine = vm::of(in);
    int count = 0;
    for (;; ++count) {
        machine.count_steps(in, 2);
        lua_rawgeti(in, -1, count + 1);
        const bool is_end = lua_isnil(in, -1);
        lua_pop(in, 1);
        if (is_end) break;
    }
    c.reply.array(static_cast<std::size_t>(count));
    for (int i = 1; i <= count; ++i) {
        lua_rawgeti(in, -1, i);
        if (!reply_with(c, in)) return false;
    }
    return true;
}

bool reply_with_table(call& c, lua_State* in) {
    if (push_field(in, "err", LUA_TSTRING)) {
        lua_pushvalue(in, -2);
        const bool is_counted = is_counted_error(in);
        lua_pop(in, 1);
        reply_with_script_error(c, std::string(to_nul(text_at(in, -1))), is_counted);
        return lua_pop(in, 1), true;
    }
    if (push_field(in, "ok", LUA_TSTRING)) {
        c.reply.simple(to_nul(text_at(in, -1)));
        return lua_pop(in, 1), true;
    }
    if (push_field(in, "double", LUA_TNUMBER)) {
        c.reply.number(lua_tonumber(in, -1));
        return lua_pop(in, 1), true;
    }
    if (push_field(in, "map", LUA_TTABLE)) {
        const bool whole = reply_with_map(c, in);
        lua_pop(in, 1);
        return whole;
    }
    if (push_field(in, "set", LUA_TTABLE)) {
        const bool whole = reply_with_set(c, in);
        lua_pop(in, 1);
        return whole;
    }
    if (push_field(in, "big_number", LUA_TSTRING)) {
        std::string digits(to_nul(text_at(in, -1)));
        for (char& each : digits) {
            if (each == '\r' || each == '\n') each = ' ';
        }
        c.reply.big_number(digits);
        return lua_pop(in, 1), true;
    }
    if (push_field(in, "verbatim_string", LUA_TTABLE)) {
        if (push_field(in, "string", LUA_TSTRING)) {
            lua_insert(in, -2);
            if (push_field(in, "format", LUA_TSTRING)) {
                std::string format(text_at(in, -1).substr(0, 3));
                format.resize(3, ' ');
                c.reply.verbatim(format, text_at(in, -3));
                return lua_pop(in, 3), true;
            }
            lua_remove(in, -2);
        }
        lua_pop(in, 1);
    }
    return reply_with_array(c, in);
}

// Pops the value.
bool reply_with(call& c, lua_State* in) {
    vm::of(in).count_steps(in, lua_istable(in, -1) ? 3 * steps_a_value : steps_a_value);
    if (c.reply_is_too_large()) return lua_pop(in, 1), false;
    if (lua_checkstack(in, 6) == 0 || !native_stack::has_room()) {
        lua_pop(in, 1);
        c.error("ERR reached lua stack limit");
        return true;
    }
    bool whole = true;
    switch (lua_type(in, -1)) {
        case LUA_TSTRING: c.reply.bulk(text_at(in, -1)); break;
        case LUA_TNUMBER: c.reply.integer(to_signed(lua_tonumber(in, -1))); break;
        case LUA_TBOOLEAN:
            // Scripts that have asked for RESP3 know of booleans.
            if (vm::of(in).owner().own_session().protocol > 2) {
                c.reply.boolean(lua_toboolean(in, -1) != 0);
            } else if (lua_toboolean(in, -1) != 0) {
                c.reply.integer(1);
            } else {
                c.reply.null();
            }
            break;
        case LUA_TTABLE: whole = reply_with_table(c, in); break;
        default: c.reply.null(); break;
    }
    lua_pop(in, 1);
    return whole;
}

}  // namespace

bool push_reply(lua_State* in, std::string_view reply) { return reply_pusher(in, reply).value(); }

void reply_with_value(call& c, lua_State* in) {
    // The last value may be the one that passes the limit.
    if (reply_with(c, in)) static_cast<void>(c.reply_is_too_large());
}

bool is_counted_error(lua_State* in) {
    if (!push_field(in, counted_already, LUA_TBOOLEAN)) return false;
    const bool is_counted = lua_toboolean(in, -1) != 0;
    lua_pop(in, 1);
    return is_counted;
}

void reply_with_script_error(call& c, std::string text, bool is_counted) {
    text.erase(text.find_last_not_of("\r\n") + 1);
    std::ranges::replace_if(text, [](char each) { return each == '\r' || each == '\n'; }, ' ');
    is_counted ? c.pass_on_error(text) : c.error(text);
}

}  // namespace eddy::cache
