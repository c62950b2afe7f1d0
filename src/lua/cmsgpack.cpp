// The library cmsgpack: MessagePack, as Redis has it (without binary and extension types).
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace eddy::lua {
namespace {

// A table within so many others is packed as nil.
constexpr int max_depth = 16;

class packer {
public:
    explicit packer(lua_State* in) : in_(in), of_(sandbox::of(in)), out_(of_.scratch()) {}

    // Packs the value on top, and pops it.
    void value(int depth) {
        constexpr std::size_t steps_a_value = 5;
        of_.count_steps(in_, steps_a_value);
        of_.check_scratch(in_);
        switch (lua_type(in_, -1)) {
            case LUA_TSTRING: text(); break;
            case LUA_TBOOLEAN: byte(lua_toboolean(in_, -1) != 0 ? 0xc3 : 0xc2); break;
            case LUA_TNUMBER: number(lua_tonumber(in_, -1)); break;
            case LUA_TTABLE:
                if (depth == max_depth)
                    byte(0xc0);
                else
                    table(depth);
                break;
            default: byte(0xc0); break;
        }
        lua_pop(in_, 1);
    }

private:
    void byte(unsigned value) { out_.append(static_cast<char>(value)); }
    // `type` and the value's bytes, the highest first.
    void tagged(unsigned type, std::uint64_t value, int bytes) {
        byte(type);
        for (int i = bytes - 1; i >= 0; --i) byte(static_cast<unsigned>(value >> 8 * i & 0xff));
    }

    void text() {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in_, -1, &size);
        if (size < 32)
            byte(0xa0 | static_cast<unsigned>(size));
        else if (size <= 0xff)
            tagged(0xd9, size, 1);
        else if (size <= 0xffff)
            tagged(0xda, size, 2);
        else
            tagged(0xdb, size, 4);
        of_.count_steps(in_, size / bytes_a_step);
        out_.append(std::string_view(bytes, size));
    }

    void number(double value) {
        constexpr double limit = 9223372036854775808.0;
        if (value >= -limit && value < limit && value == std::trunc(value)) {
            return integer(static_cast<std::int64_t>(value));
        }
        const auto shorter = static_cast<float>(value);
        if (static_cast<double>(shorter) == value) {
            tagged(0xca, std::bit_cast<std::uint32_t>(shorter), 4);
        } else {
            tagged(0xcb, std::bit_cast<std::uint64_t>(value), 8);
        }
    }

    void integer(std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        if (value >= 0) {
            if (value <= 127)
                byte(static_cast<unsigned>(value));
            else if (value <= 0xff)
                tagged(0xcc, bits, 1);
            else if (value <= 0xffff)
                tagged(0xcd, bits, 2);
            else if (value <= 0xffff'ffffLL)
                tagged(0xce, bits, 4);
            else
                tagged(0xcf, bits, 8);
        } else if (value >= -32) {
            byte(static_cast<unsigned>(bits & 0xff));
        } else if (value >= -128) {
            tagged(0xd0, bits, 1);
        } else if (value >= -32768) {
            tagged(0xd1, bits, 2);
        } else if (value >= std::numeric_limits<std::int32_t>::min()) {
            tagged(0xd2, bits, 4);
        } else {
            tagged(0xd3, bits, 8);
        }
    }

    void table(int depth) {
        check_native_stack(in_);
        luaL_checkstack(in_, 4, "in function cmsgpack.pack");
        std::uint64_t items = 0;
        double largest = 0;
        bool is_array = true;
        of_.count_largest(in_);
        for (lua_pushnil(in_); lua_next(in_, -2) != 0; lua_pop(in_, 1)) {
            of_.count_steps(in_, 3);
            ++items;
            const double at = lua_type(in_, -2) == LUA_TNUMBER ? lua_tonumber(in_, -2) : 0;
            is_array = is_array && at >= 1 && at == std::floor(at);
            largest = at > largest ? at : largest;
        }
        if (is_array && largest == static_cast<double>(items)) {
            if (items < 16)
                byte(0x90 | static_cast<unsigned>(items));
            else if (items <= 0xffff)
                tagged(0xdc, items, 2);
            else
                tagged(0xdd, items, 4);
            for (std::uint64_t i = 1; i <= items; ++i) {
                lua_rawgeti(in_, -1, static_cast<int>(i));
                value(depth + 1);
            }
            return;
        }
        if (items < 16)
            byte(0x80 | static_cast<unsigned>(items));
        else if (items <= 0xffff)
            tagged(0xde, items, 2);
        else
            tagged(0xdf, items, 4);
        lua_pushnil(in_);
        while (lua_next(in_, -2) != 0) {
            lua_pushvalue(in_, -2);
            value(depth + 1);  // the key
            value(depth + 1);
        }
    }

    lua_State* in_;
    sandbox& of_;
    byte_buffer& out_;
};

int pack(lua_State* in) {
    const int count = lua_gettop(in);
    if (count == 0) return luaL_argerror(in, 0, "MessagePack pack needs input.");
    luaL_checkstack(in, 1, "Too many arguments for MessagePack pack.");
    sandbox::of(in).scratch().clear();
    packer to(in);
    for (int i = 1; i <= count; ++i) {
        lua_pushvalue(in, i);
        to.value(0);
    }
    const std::string_view made = sandbox::of(in).scratch().text();
    lua_pushlstring(in, made.data(), made.size());
    return 1;
}

class unpacker {
public:
    unpacker(lua_State* in, std::string_view bytes) noexcept
        : in_(in), machine_(sandbox::of(in)), left_(bytes) {}

    bool at_end() const noexcept { return left_.empty(); }
    std::size_t left() const noexcept { return left_.size(); }

    // Pushes one value.
    void value() {
        constexpr std::size_t steps_a_value = 5;
        machine_.count_steps(in_, steps_a_value);
        const auto type = static_cast<unsigned char>(take(1)[0]);
        if (type <= 0x7f) return lua_pushnumber(in_, type);
        if (type >= 0xe0) return lua_pushnumber(in_, static_cast<signed char>(type));
        if (type <= 0x8f) return map(type & 0x0fU);
        if (type <= 0x9f) return array(type & 0x0fU);
        if (type <= 0xbf) return text(type & 0x1fU);
        switch (type) {
            case 0xc0: return lua_pushnil(in_);
            case 0xc2: return lua_pushboolean(in_, 0);
            case 0xc3: return lua_pushboolean(in_, 1);
            case 0xca:
                return lua_pushnumber(in_,
                                      std::bit_cast<float>(static_cast<std::uint32_t>(bits(4))));
            case 0xcb: return lua_pushnumber(in_, std::bit_cast<double>(bits(8)));
            case 0xcc: return lua_pushnumber(in_, static_cast<double>(bits(1)));
            case 0xcd: return lua_pushnumber(in_, static_cast<double>(bits(2)));
            case 0xce: return lua_pushnumber(in_, static_cast<double>(bits(4)));
            // Also what is above 2^63 comes as Redis has it.
            case 0xcf:
            case 0xd3:
                return lua_pushnumber(in_, static_cast<double>(static_cast<std::int64_t>(bits(8))));
            case 0xd0: return lua_pushnumber(in_, static_cast<std::int8_t>(bits(1)));
            case 0xd1: return lua_pushnumber(in_, static_cast<std::int16_t>(bits(2)));
            case 0xd2: return lua_pushnumber(in_, static_cast<std::int32_t>(bits(4)));
            case 0xd9: return text(bits(1));
            case 0xda: return text(bits(2));
            case 0xdb: return text(bits(4));
            case 0xdc: return array(bits(2));
            case 0xdd: return array(bits(4));
            case 0xde: return map(bits(2));
            case 0xdf: return map(bits(4));
            default: luaL_error(in_, "Bad data format in input.");
        }
    }

private:
    std::string_view take(std::uint64_t size) {
        if (size > left_.size()) luaL_error(in_, "Missing bytes in input.");
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    std::uint64_t bits(std::size_t bytes) {
        std::uint64_t value = 0;
        for (const char each : take(bytes)) value = value << 8 | static_cast<unsigned char>(each);
        return value;
    }
    void text(std::uint64_t size) {
        const std::string_view bytes = take(size);
        machine_.count_steps(in_, bytes.size() / bytes_a_step);
        lua_pushlstring(in_, bytes.data(), bytes.size());
    }
    void array(std::uint64_t count) {
        check_native_stack(in_);
        luaL_checkstack(in_, 4, "in function cmsgpack.unpack");
        lua_newtable(in_);
        for (std::uint64_t i = 1; i <= count; ++i) {
            value();
            lua_rawseti(in_, -2, static_cast<int>(i));
        }
    }
    void map(std::uint64_t pairs) {
        check_native_stack(in_);
        luaL_checkstack(in_, 4, "in function cmsgpack.unpack");
        lua_newtable(in_);
        for (std::uint64_t i = 0; i < pairs; ++i) {
            value();
            value();
            lua_settable(in_, -3);
        }
    }

    lua_State* in_;
    sandbox& machine_;
    std::string_view left_;
};

// `limit` values from `offset` on; both 0: all of them.
int unpack_some(lua_State* in, lua_Integer limit, lua_Integer offset) {
    std::size_t size = 0;
    const char* const bytes = luaL_checklstring(in, 1, &size);
    const bool all = limit == 0 && offset == 0;
    const auto length = static_cast<lua_Integer>(size);
    if (offset < 0 || limit < 0) {
        return luaL_error(in, "Invalid request to unpack with offset of %d and limit of %d.",
                          static_cast<int>(offset), static_cast<int>(size));
    }
    if (offset > length) {
        return luaL_error(in, "Start offset %d greater than input length %d.",
                          static_cast<int>(offset), static_cast<int>(size));
    }
    unpacker from(in, std::string_view(bytes, size).substr(static_cast<std::size_t>(offset)));
    int count = 0;
    for (; !from.at_end() && (all || count < limit); ++count) {
        luaL_checkstack(in, 4,
                        "too many return values at once; use unpack_one or unpack_limit instead.");
        from.value();
    }
    if (all) return count;
    lua_pushinteger(in, from.at_end() ? -1 : static_cast<lua_Integer>(size - from.left()));
    lua_insert(in, 2);
    return count + 1;
}

int unpack(lua_State* in) {
    lua_settop(in, 1);
    return unpack_some(in, 0, 0);
}
int unpack_one(lua_State* in) {
    const lua_Integer offset = luaL_optinteger(in, 2, 0);
    lua_settop(in, 1);
    return unpack_some(in, 1, offset);
}
int unpack_limit(lua_State* in) {
    const lua_Integer limit = luaL_checkinteger(in, 2);
    const lua_Integer offset = luaL_optinteger(in, 3, 0);
    lua_settop(in, 1);
    return unpack_some(in, limit, offset);
}

}  // namespace

void push_cmsgpack_library(lua_State* in) {
    constexpr luaL_Reg functions[] = {{"pack", pack},
                                      {"unpack", unpack},
                                      {"unpack_one", unpack_one},
                                      {"unpack_limit", unpack_limit}};
    lua_newtable(in);
    for (const luaL_Reg& each : functions) {
        lua_pushcfunction(in, each.func);
        lua_setfield(in, -2, each.name);
    }
    lua_pushliteral(in, "cmsgpack");
    lua_setfield(in, -2, "_NAME");
    lua_pushliteral(in, "lua-cmsgpack 0.4.0");
    lua_setfield(in, -2, "_VERSION");
}

}  // namespace eddy::lua
