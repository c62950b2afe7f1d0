// The library cjson, as Redis has it: texts, options, limits and errors.
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

namespace eddy::lua {
namespace {

constexpr int most = std::numeric_limits<int>::max();

// Settings: one for each table that cjson.new() makes, an upvalue of its functions.
struct options {
    int sparse_convert = 0;
    int sparse_ratio = 2;
    int sparse_safe = 10;
    int encode_max_depth = 1000;
    int decode_max_depth = 1000;
    int precision = 14;
    int keep_buffer = 1;
    int encode_invalid = 0;  // 0: an error, 1: as they are, 2: null
    int decode_invalid = 1;
};

options& options_of(lua_State* in) {
    return *static_cast<options*>(lua_touserdata(in, lua_upvalueindex(1)));
}

// --- Encoding ----------------------------------------------------------------------------------

class encoder {
public:
    encoder(lua_State* in, const options& chosen)
        : in_(in), chosen_(chosen), of_(sandbox::of(in)), out_(of_.scratch()) {
        out_.clear();
    }

    // Encodes the value on top.
    void value(int depth) {
        constexpr std::size_t steps_a_value = 5;
        of_.count_steps(in_, steps_a_value);
        of_.check_scratch(in_);
        switch (lua_type(in_, -1)) {
            case LUA_TSTRING: text(); break;
            case LUA_TNUMBER: number(); break;
            case LUA_TBOOLEAN:
                out_.append(std::string_view(lua_toboolean(in_, -1) != 0 ? "true" : "false"));
                break;
            case LUA_TTABLE: table(depth + 1); break;
            case LUA_TNIL: out_.append(std::string_view("null")); break;
            case LUA_TLIGHTUSERDATA:
                if (lua_touserdata(in_, -1) == nullptr) {
                    out_.append(std::string_view("null"));
                    break;
                }
                [[fallthrough]];
            default: fail("type not supported");
        }
    }

private:
    void fail(const char* why) {
        luaL_error(in_, "Cannot serialise %s: %s", luaL_typename(in_, -1), why);
    }

    void text() {
        std::size_t size = 0;
        const char* const bytes = lua_tolstring(in_, -1, &size);
        out_.append('"');
        constexpr std::size_t most_plain = 4096;
        std::size_t plain = 0;
        for (std::size_t i = 0; i < size; ++i) {
            char escape[8];
            const std::string_view with = escaped(bytes[i], escape);
            if (with.empty() && i - plain < most_plain) continue;
            const std::size_t end = with.empty() ? i + 1 : i;
            out_.append(std::string_view(bytes + plain, end - plain));
            out_.append(with);
            of_.count_steps(in_, 5 + (end - plain) / 4);
            of_.check_scratch(in_);
            plain = i + 1;
        }
        out_.append(std::string_view(bytes + plain, size - plain));
        out_.append('"');
    }

    // Escape sequence of a byte; empty for a byte that is written as it is.
    static std::string_view escaped(char byte, char (&room)[8]) noexcept {
        switch (byte) {
            case '"': return "\\\"";
            case '\\': return "\\\\";
            case '/': return "\\/";
            case '\b': return "\\b";
            case '\t': return "\\t";
            case '\n': return "\\n";
            case '\f': return "\\f";
            case '\r': return "\\r";
            default: break;
        }
        const auto code = static_cast<unsigned char>(byte);
        if (code >= 32 && code != 127) return {};
        constexpr char digits[] = "0123456789abcdef";
        const char made[] = {'\\', 'u', '0', '0', digits[code >> 4], digits[code & 15]};
        std::memcpy(room, made, sizeof made);
        return {room, sizeof made};
    }

    void number() {
        const double value = lua_tonumber(in_, -1);
        if (!std::isfinite(value)) {
            switch (chosen_.encode_invalid) {
                case 0: return fail("must not be NaN or Inf");
                case 1:
                    out_.append(std::string_view(std::isnan(value) ? "nan"
                                                 : value > 0       ? "inf"
                                                                   : "-inf"));
                    return;
                default: out_.append(std::string_view("null")); return;
            }
        }
        constexpr std::size_t steps_a_number = 50;
        of_.count_steps(in_, steps_a_number);
        char digits[40];
        char* end = digits + sizeof digits;
        if (is_short_integer(value))
            end = std::to_chars(digits, end, static_cast<std::int64_t>(value)).ptr;
        else  // as "%.*g" of printf()
            end = std::to_chars(digits, end, value, std::chars_format::general, chosen_.precision)
                      .ptr;
        out_.append(std::string_view(digits, static_cast<std::size_t>(end - digits)));
    }

    /// True for a number whose digits are those of an integer; not for -0.
    bool is_short_integer(double value) const noexcept {
        constexpr double limit = 1e14;
        return chosen_.precision >= 14 && value > -limit && value < limit &&
               value == static_cast<double>(static_cast<std::int64_t>(value)) &&
               (value != 0 || !std::signbit(value));
    }

    void table(int depth) {
        check_native_stack(in_);
        if (depth > chosen_.encode_max_depth || lua_checkstack(in_, 4) == 0) {
            luaL_error(in_, "Cannot serialise, excessive nesting (%d)", depth);
        }
        const int size = array_size();
        if (size <= 0) return object(depth);
        out_.append('[');
        for (int i = 1; i <= size; ++i) {
            if (i > 1) out_.append(',');
            lua_rawgeti(in_, -1, i);
            value(depth);
            lua_pop(in_, 1);
        }
        out_.append(']');
    }

    // The largest index when all keys are indexes; 0 for an empty table, -1 for an object.
    int array_size() {
        int largest = 0;
        int items = 0;
        of_.count_largest(in_);
        for (lua_pushnil(in_); lua_next(in_, -2) != 0; lua_pop(in_, 1)) {
            of_.count_steps(in_, 3);
            const double at = lua_type(in_, -2) == LUA_TNUMBER ? lua_tonumber(in_, -2) : 0;
            if (at < 1 || std::floor(at) != at || at > most) {
                lua_pop(in_, 2);
                return -1;
            }
            if (at > largest) largest = static_cast<int>(at);
            ++items;
        }
        const bool sparse = chosen_.sparse_ratio > 0 &&
                            largest > std::int64_t{items} * chosen_.sparse_ratio &&
                            largest > chosen_.sparse_safe;
        if (!sparse) return largest;
        if (chosen_.sparse_convert == 0) fail("excessively sparse array");
        return -1;
    }

    void object(int depth) {
        out_.append('{');
        bool is_first = true;
        lua_pushnil(in_);
        while (lua_next(in_, -2) != 0) {
            if (!is_first) out_.append(',');
            is_first = false;
            lua_pushvalue(in_, -2);
            switch (lua_type(in_, -1)) {
                case LUA_TNUMBER:
                    out_.append('"');
                    number();
                    out_.append('"');
                    break;
                case LUA_TSTRING: text(); break;
                default: fail("table key must be a number or string");
            }
            lua_pop(in_, 1);
            out_.append(':');
            value(depth);
            lua_pop(in_, 1);
        }
        out_.append('}');
    }

    lua_State* in_;
    const options& chosen_;
    sandbox& of_;
    byte_buffer& out_;
};

int encode(lua_State* in) {
    luaL_argcheck(in, lua_gettop(in) == 1, 1, "expected 1 argument");
    encoder(in, options_of(in)).value(0);
    const std::string_view made = sandbox::of(in).scratch().text();
    lua_pushlstring(in, made.data(), made.size());
    return 1;
}

// --- Decoding ----------------------------------------------------------------------------------

enum class kind : std::uint8_t {
    object_begin,
    object_end,
    array_begin,
    array_end,
    text,
    number,
    boolean,
    null,
    colon,
    comma,
    end,
    fault
};
constexpr const char* kind_names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                      "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                      "T_COLON",     "T_COMMA",   "T_END"};

class decoder {
public:
    // `text` is followed by a NUL, which counts as its end, as any other one does.
    decoder(lua_State* in, const options& chosen, std::string_view text)
        : in_(in), chosen_(chosen), begin_(text.data()), at_(text.data()), of_(sandbox::of(in)) {}

    void document() {
        next();
        value(0);
        next();
        if (kind_ != kind::end) fail("the end");
    }

private:
    void fail(const char* expected) {
        const char* const found = kind_ == kind::fault ? why_ : kind_names[static_cast<int>(kind_)];
        luaL_error(in_, "Expected %s but found %s at character %d", expected, found,
                   static_cast<int>(token_ - begin_) + 1);
    }

    // Pushes the value that begins with the current token.
    void value(int depth) {
        switch (kind_) {
            case kind::text: {
                const std::string_view made = of_.scratch().text();
                lua_pushlstring(in_, made.data(), made.size());
                break;
            }
            case kind::number: lua_pushnumber(in_, number_); break;
            case kind::boolean: lua_pushboolean(in_, boolean_ ? 1 : 0); break;
            case kind::null: lua_pushlightuserdata(in_, nullptr); break;
            case kind::array_begin: array(depth + 1); break;
            case kind::object_begin: object(depth + 1); break;
            default: fail("value");
        }
    }

    void descend(int depth) {
        check_native_stack(in_);
        if (depth <= chosen_.decode_max_depth && lua_checkstack(in_, 4) != 0) return;
        luaL_error(in_, "Found too many nested data structures (%d) at character %d", depth,
                   static_cast<int>(at_ - begin_));
    }

    void array(int depth) {
        descend(depth);
        lua_newtable(in_);
        next();
        if (kind_ == kind::array_end) return;
        for (int i = 1;; ++i) {
            value(depth);
            lua_rawseti(in_, -2, i);
            next();
            if (kind_ == kind::array_end) return;
            if (kind_ != kind::comma) fail("comma or array end");
            next();
        }
    }

    void object(int depth) {
        descend(depth);
        lua_newtable(in_);
        next();
        if (kind_ == kind::object_end) return;
        for (;;) {
            if (kind_ != kind::text) fail("object key string");
            value(depth);
            next();
            if (kind_ != kind::colon) fail("colon");
            next();
            value(depth);
            lua_rawset(in_, -3);
            next();
            if (kind_ == kind::object_end) return;
            if (kind_ != kind::comma) fail("comma or object end");
            next();
        }
    }

    void set_fault(const char* why, const char* at) noexcept {
        kind_ = kind::fault;
        why_ = why;
        token_ = at;
    }
    void take(kind is, int size = 1) noexcept {
        kind_ = is;
        at_ += size;
    }

    void next() {
        constexpr std::size_t steps_a_token = 10;
        of_.count_steps(in_, steps_a_token);
        while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r') {
            of_.count_steps(in_, 1);
            ++at_;
        }
        token_ = at_;
        switch (*at_) {
            case '{': return take(kind::object_begin);
            case '}': return take(kind::object_end);
            case '[': return take(kind::array_begin);
            case ']': return take(kind::array_end);
            case ':': return take(kind::colon);
            case ',': return take(kind::comma);
            case '\0': kind_ = kind::end; return;
            case '"': return take_text();
            default: break;
        }
        if (*at_ == '-' || (*at_ >= '0' && *at_ <= '9')) {
            if (chosen_.decode_invalid == 0 && is_odd_number())
                return set_fault("invalid number", at_);
            return take_number();
        }
        if (std::strncmp(at_, "true", 4) == 0 || std::strncmp(at_, "false", 5) == 0) {
            boolean_ = *at_ == 't';
            return take(kind::boolean, boolean_ ? 4 : 5);
        }
        if (std::strncmp(at_, "null", 4) == 0) return take(kind::null, 4);
        constexpr std::string_view odd = "+iInN";
        if (odd.find(*at_) != std::string_view::npos && chosen_.decode_invalid != 0 &&
            is_odd_number()) {
            return take_number();
        }
        set_fault("invalid token", at_);
    }

    // True for numbers that strtod() would accept and JSON does not have.
    bool is_odd_number() const noexcept {
        const char* p = at_;
        if (*p == '+') return true;
        if (*p == '-') ++p;
        if (*p == '0') return (p[1] | 32) == 'x' || (p[1] >= '0' && p[1] <= '9');
        if (*p <= '9') return false;
        return is_word(p, "inf") || is_word(p, "nan");
    }
    static bool is_word(const char* p, std::string_view lower) noexcept {
        for (std::size_t i = 0; i < lower.size(); ++i) {
            if ((p[i] | 32) != lower[i]) return false;
        }
        return true;
    }

    /// Takes an integer of a few digits, which most numbers are. False for others.
    bool take_short_integer() {
        constexpr std::ptrdiff_t most_digits = 15;
        const bool is_negative = *at_ == '-';
        const char* const first = at_ + (is_negative ? 1 : 0);
        const char* p = first;
        std::int64_t value = 0;
        while (*p >= '0' && *p <= '9' && p - first < most_digits) value = value * 10 + (*p++ - '0');
        const char next = *p | 32;
        const bool is_whole = p > first && next != '.' && next != 'e' && next != 'x' &&
                              next != 'p' && (*p < '0' || *p > '9');
        if (!is_whole) return false;
        number_ = is_negative ? -static_cast<double>(value) : static_cast<double>(value);
        kind_ = kind::number;
        of_.count_steps(in_, static_cast<std::size_t>(p - at_));
        at_ = p;
        return true;
    }

    void take_number() {
        if (take_short_integer()) return;
        char* end = nullptr;
        number_ = std::strtod(at_, &end);
        if (end == at_) return set_fault("invalid number", at_);
        of_.count_steps(in_, static_cast<std::size_t>(end - at_));
        kind_ = kind::number;
        at_ = end;
    }

    void take_text() {
        byte_buffer& out = of_.scratch();
        out.clear();
        ++at_;
        for (;;) {
            const char* const plain = at_;
            while (*at_ != '"' && *at_ != '\\' && *at_ != '\0') ++at_;
            out.append(std::string_view(plain, static_cast<std::size_t>(at_ - plain)));
            of_.count_steps(in_, 2 + static_cast<std::size_t>(at_ - plain) / 4);
            if (*at_ == '"') break;
            if (*at_ == '\0') return set_fault("unexpected end of string", at_);
            switch (at_[1]) {
                case '"':
                case '\\':
                case '/': out.append(at_[1]); break;
                case 'b': out.append('\b'); break;
                case 'f': out.append('\f'); break;
                case 'n': out.append('\n'); break;
                case 'r': out.append('\r'); break;
                case 't': out.append('\t'); break;
                case 'u':
                    if (!take_code_point(out)) return set_fault("invalid unicode escape code", at_);
                    continue;
                default: return set_fault("invalid escape code", at_);
            }
            at_ += 2;
        }
        ++at_;
        kind_ = kind::text;
    }

    // Four hexadecimal digits, or -1.
    static int hexadecimal(const char* p) noexcept {
        int value = 0;
        for (int i = 0; i < 4; ++i) {
            const char c = static_cast<char>(p[i] | 32);
            if (p[i] >= '0' && p[i] <= '9')
                value = value << 4 | (p[i] - '0');
            else if (c >= 'a' && c <= 'f')
                value = value << 4 | (c - 'a' + 10);
            else
                return -1;
        }
        return value;
    }

    bool take_code_point(byte_buffer& out) {
        constexpr int surrogate = 0xd800;
        int code = hexadecimal(at_ + 2);
        if (code < 0) return false;
        int size = 6;
        if ((code & 0xf800) == surrogate) {
            if ((code & 0x400) != 0 || at_[6] != '\\' || at_[7] != 'u') return false;
            const int low = hexadecimal(at_ + 8);
            if (low < 0 || (low & 0xfc00) != 0xdc00) return false;
            code = ((code & 0x3ff) << 10 | (low & 0x3ff)) + 0x10000;
            size = 12;
        }
        const auto put = [&out](int byte) { out.append(static_cast<char>(byte)); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xc0 | code >> 6);
            put(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            put(0xe0 | code >> 12);
            put(0x80 | (code >> 6 & 0x3f));
            put(0x80 | (code & 0x3f));
        } else {
            put(0xf0 | code >> 18);
            put(0x80 | (code >> 12 & 0x3f));
            put(0x80 | (code >> 6 & 0x3f));
            put(0x80 | (code & 0x3f));
        }
        at_ += size;
        return true;
    }

    lua_State* in_;
    const options& chosen_;
    const char* begin_;
    const char* at_;
    sandbox& of_;
    kind kind_ = kind::end;        // the current token,
    const char* token_ = nullptr;  // where it begins, what it is
    const char* why_ = nullptr;
    double number_ = 0;
    bool boolean_ = false;
};

int decode(lua_State* in) {
    luaL_argcheck(in, lua_gettop(in) == 1, 1, "expected 1 argument");
    std::size_t size = 0;
    const char* const text = luaL_checklstring(in, 1, &size);
    if (size >= 2 && (text[0] == '\0' || text[1] == '\0')) {
        return luaL_error(in, "JSON parser does not support UTF-16 or UTF-32");
    }
    decoder(in, options_of(in), {text, size}).document();
    return 1;
}

// --- Options -----------------------------------------------------------------------------------

void expect(lua_State* in, int count) {
    luaL_argcheck(in, lua_gettop(in) <= count, count + 1, "found too many arguments");
    lua_settop(in, count);
}

// Sets it, if given, and pushes it.
void number_option(lua_State* in, int at, int& option, int low, int high) {
    if (!lua_isnil(in, at)) {
        const lua_Integer value = luaL_checkinteger(in, at);
        char text[64];
        std::snprintf(text, sizeof text, "expected integer between %d and %d", low, high);
        luaL_argcheck(in, low <= value && value <= high, 1, text);
        option = static_cast<int>(value);
    }
    lua_pushinteger(in, option);
}

void word_option(lua_State* in, int at, int& option, const char* const* words) {
    if (!lua_isnil(in, at)) {
        option = lua_isboolean(in, at) ? lua_toboolean(in, at)
                                       : luaL_checkoption(in, at, nullptr, words);
    }
    if (option <= 1)
        lua_pushboolean(in, option);
    else
        lua_pushstring(in, words[option]);
}

constexpr const char* off_on[] = {"off", "on", nullptr};
constexpr const char* off_on_null[] = {"off", "on", "null", nullptr};

int encode_sparse_array(lua_State* in) {
    options& o = options_of(in);
    expect(in, 3);
    word_option(in, 1, o.sparse_convert, off_on);
    number_option(in, 2, o.sparse_ratio, 0, most);
    number_option(in, 3, o.sparse_safe, 0, most);
    return 3;
}
int encode_max_depth(lua_State* in) {
    expect(in, 1);
    number_option(in, 1, options_of(in).encode_max_depth, 1, most);
    return 1;
}
int decode_max_depth(lua_State* in) {
    expect(in, 1);
    number_option(in, 1, options_of(in).decode_max_depth, 1, most);
    return 1;
}
int encode_number_precision(lua_State* in) {
    expect(in, 1);
    number_option(in, 1, options_of(in).precision, 1, 14);
    return 1;
}
int encode_keep_buffer(lua_State* in) {
    expect(in, 1);
    word_option(in, 1, options_of(in).keep_buffer, off_on);
    return 1;
}
int encode_invalid_numbers(lua_State* in) {
    expect(in, 1);
    word_option(in, 1, options_of(in).encode_invalid, off_on_null);
    return 1;
}
int decode_invalid_numbers(lua_State* in) {
    expect(in, 1);
    word_option(in, 1, options_of(in).decode_invalid, off_on);
    return 1;
}

int new_library(lua_State* in) {
    push_cjson_library(in);
    return 1;
}

}  // namespace

void push_cjson_library(lua_State* in) {
    constexpr luaL_Reg functions[] = {{"encode", encode},
                                      {"decode", decode},
                                      {"encode_sparse_array", encode_sparse_array},
                                      {"encode_max_depth", encode_max_depth},
                                      {"decode_max_depth", decode_max_depth},
                                      {"encode_number_precision", encode_number_precision},
                                      {"encode_keep_buffer", encode_keep_buffer},
                                      {"encode_invalid_numbers", encode_invalid_numbers},
                                      {"decode_invalid_numbers", decode_invalid_numbers},
                                      {"new", new_library}};
    lua_newtable(in);
    new (lua_newuserdata(in, sizeof(options))) options;
    for (const luaL_Reg& each : functions) {
        lua_pushvalue(in, -1);
        lua_pushcclosure(in, each.func, 1);
        lua_setfield(in, -3, each.name);
    }
    lua_pop(in, 1);
    lua_pushlightuserdata(in, nullptr);
    lua_setfield(in, -2, "null");
    lua_pushliteral(in, "cjson");
    lua_setfield(in, -2, "_NAME");
    lua_pushliteral(in, "2.1.0");
    lua_setfield(in, -2, "_VERSION");
}

}  // namespace eddy::lua
