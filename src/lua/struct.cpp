// The library struct: values as bytes, by a format.
#include "lua/conversions.hpp"
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace eddy::lua {
namespace {

constexpr std::size_t max_integer = 32;
constexpr int usual_alignment = 8;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Goes through a format, and knows what has been set in it.
class format_reader {
public:
    format_reader(lua_State* in, const char* format) noexcept
        : in_(in), machine_(sandbox::of(in)), at_(format) {}

    bool next() {
        constexpr std::size_t steps_an_option = 3;
        machine_.count_steps(in_, steps_an_option);
        if (*at_ == '\0') return false;
        option = *at_++;
        size = size_of_option();
        return true;
    }
    // Bytes that must come before the option, at that place.
    std::size_t padding(std::size_t place) const noexcept {
        if (size == 0 || option == 'c') return 0;
        const std::size_t to = size < align_ ? size : align_;
        return (to - (place & (to - 1))) & (to - 1);
    }
    void control() {
        switch (option) {
            case ' ': return;
            case '>': big_endian = true; return;
            case '<': big_endian = false; return;
            case '!': {
                const int wanted = number(usual_alignment);
                if (wanted == 0 || (wanted & (wanted - 1)) != 0) {
                    luaL_error(in_, "alignment %d is not a power of 2", wanted);
                }
                align_ = static_cast<std::size_t>(wanted);
                return;
            }
            default:
                luaL_argerror(in_, 1, lua_pushfstring(in_, "invalid format option '%c'", option));
        }
    }

    char option = '\0';
    std::size_t size = 0;
    bool big_endian = std::endian::native == std::endian::big;

private:
    int number(int usual) {
        if (!is_digit(*at_)) return usual;
        constexpr int most = std::numeric_limits<int>::max();
        int value = 0;
        do {
            const int digit = *at_ - '0';
            if (value > most / 10 || value * 10 > most - digit) {
                luaL_error(in_, "integral size overflow");
            }
            value = value * 10 + digit;
            machine_.count_steps(in_, 1);
            ++at_;
        } while (is_digit(*at_));
        return value;
    }
    std::size_t size_of_option() {
        switch (option) {
            case 'b':
            case 'B':
            case 'x': return 1;
            case 'h':
            case 'H': return sizeof(short);
            case 'l':
            case 'L': return sizeof(long);
            case 'T': return sizeof(std::size_t);
            case 'f': return sizeof(float);
            case 'd': return sizeof(double);
            case 'c': return static_cast<std::size_t>(number(1));
            case 'i':
            case 'I': {
                const auto wanted = static_cast<std::size_t>(number(sizeof(int)));
                if (wanted > max_integer) {
                    luaL_error(in_, "integral size %d is larger than limit of %d",
                               static_cast<int>(wanted), static_cast<int>(max_integer));
                }
                return wanted;
            }
            default: return 0;
        }
    }

    lua_State* in_;
    sandbox& machine_;
    const char* at_;
    std::size_t align_ = 1;
};

bool is_integer(char option) noexcept {
    return std::string_view("bBhHlLTiI").find(option) != std::string_view::npos;
}

void append_bytes(byte_buffer& to, std::uint64_t value, std::size_t size, bool big_endian) {
    char bytes[max_integer];
    for (std::size_t i = 0; i < size; ++i) {
        bytes[big_endian ? size - 1 - i : i] = i < 8 ? static_cast<char>(value >> 8 * i) : '\0';
    }
    to.append(std::string_view(bytes, size));
}

std::uint64_t read_bytes(std::string_view from, bool big_endian) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        value = value << 8 | static_cast<unsigned char>(from[big_endian ? i : from.size() - 1 - i]);
    }
    return value;
}

int pack(lua_State* in) {
    format_reader format(in, luaL_checkstring(in, 1));
    sandbox& of = sandbox::of(in);
    byte_buffer& out = of.scratch();
    out.clear();
    int arg = 2;
    lua_pushnil(in);  // what is missing is said to be nil
    while (format.next()) {
        of.check_scratch(in);
        for (std::size_t i = format.padding(out.size()); i > 0; --i) out.append('\0');
        if (is_integer(format.option)) {
            append_bytes(out, to_unsigned(luaL_checknumber(in, arg++)), format.size,
                         format.big_endian);
            continue;
        }
        switch (format.option) {
            case 'x': out.append('\0'); break;
            case 'f': {
                const auto value = static_cast<float>(luaL_checknumber(in, arg++));
                append_bytes(out, std::bit_cast<std::uint32_t>(value), 4, format.big_endian);
                break;
            }
            case 'd': {
                const double value = luaL_checknumber(in, arg++);
                append_bytes(out, std::bit_cast<std::uint64_t>(value), 8, format.big_endian);
                break;
            }
            case 'c':
            case 's': {
                std::size_t size = 0;
                const char* const text = luaL_checklstring(in, arg++, &size);
                const std::size_t wanted = format.size != 0 ? format.size : size;
                luaL_argcheck(in, size >= wanted, arg, "string too short");
                of.count_steps(in, wanted / bytes_a_step);
                out.append(std::string_view(text, wanted));
                if (format.option == 's') out.append('\0');
                break;
            }
            default: format.control(); break;
        }
    }
    lua_pushlstring(in, out.text().data(), out.size());
    return 1;
}

/// Pushes an integer, of `b` to `i` with its sign.
void push_integer(lua_State* in, char option, std::string_view bytes, bool big_endian) {
    std::uint64_t value = read_bytes(bytes, big_endian);
    if (option < 'a' || option > 'z') {
        lua_pushnumber(in, static_cast<double>(value));
        return;
    }
    const std::uint64_t mask = ~std::uint64_t{0} << ((bytes.size() * 8 - 1) & 63);
    if ((value & mask) != 0) value |= mask;
    lua_pushnumber(in, static_cast<double>(static_cast<std::int64_t>(value)));
}

/// Takes the size of a text of `c0` from the stack, where the value before it is.
std::size_t pop_size(lua_State* in, int count) {
    if (count == 0 || lua_isnumber(in, -1) == 0)
        luaL_error(in, "format 'c0' needs a previous size");
    const double before = lua_tonumber(in, -1);
    constexpr double most = 1 << 30;
    lua_pop(in, 1);
    return before >= 0 && before <= most ? static_cast<std::size_t>(before)
                                         : std::numeric_limits<std::size_t>::max();
}

int unpack(lua_State* in) {
    format_reader format(in, luaL_checkstring(in, 1));
    std::size_t size = 0;
    const char* const bytes = luaL_checklstring(in, 2, &size);
    const std::string_view data(bytes, size);
    const lua_Integer offset = luaL_optinteger(in, 3, 1);
    luaL_argcheck(in, offset > 0, 3, "offset must be 1 or greater");
    std::size_t at = static_cast<std::size_t>(offset) - 1;
    int count = 0;
    const auto need = [&](std::size_t wanted) {
        luaL_argcheck(in, wanted <= size && at <= size - wanted, 2, "data string too short");
    };
    lua_settop(in, 2);
    while (format.next()) {
        std::size_t taken = format.size;
        at += format.padding(at);
        need(taken);
        luaL_checkstack(in, 3, "too many results");
        if (is_integer(format.option)) {
            push_integer(in, format.option, data.substr(at, taken), format.big_endian);
            ++count;
            at += taken;
            continue;
        }
        switch (format.option) {
            case 'x': break;
            case 'f': {
                const std::uint64_t bits = read_bytes(data.substr(at, 4), format.big_endian);
                lua_pushnumber(in, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
                ++count;
                break;
            }
            case 'd':
                lua_pushnumber(
                    in, std::bit_cast<double>(read_bytes(data.substr(at, 8), format.big_endian)));
                ++count;
                break;
            case 'c':
                if (taken == 0) {
                    taken = pop_size(in, count);
                    --count;
                    need(taken);
                }
                lua_pushlstring(in, bytes + at, taken);
                ++count;
                break;
            case 's': {
                const std::size_t end = data.find('\0', at);
                if (end == std::string_view::npos) luaL_error(in, "unfinished string in data");
                lua_pushlstring(in, bytes + at, end - at);
                taken = end - at + 1;
                ++count;
                break;
            }
            default: format.control(); break;
        }
        at += taken;
    }
    lua_pushinteger(in, static_cast<lua_Integer>(at) + 1);
    return count + 1;
}

int size(lua_State* in) {
    format_reader format(in, luaL_checkstring(in, 1));
    std::size_t at = 0;
    while (format.next()) {
        at += format.padding(at);
        if (format.option == 's') luaL_argerror(in, 1, "option 's' has no fixed size");
        if (format.option == 'c' && format.size == 0) {
            luaL_argerror(in, 1, "option 'c0' has no fixed size");
        }
        if (!is_letter(format.option) && !is_digit(format.option)) format.control();
        at += format.size;
    }
    lua_pushinteger(in, static_cast<lua_Integer>(at));
    return 1;
}

}  // namespace

void push_struct_library(lua_State* in) {
    constexpr luaL_Reg functions[] = {{"pack", pack}, {"unpack", unpack}, {"size", size}};
    lua_newtable(in);
    for (const luaL_Reg& each : functions) {
        lua_pushcfunction(in, each.func);
        lua_setfield(in, -2, each.name);
    }
}

}  // namespace eddy::lua
