// string.format(), as Lua 5.1 has it, since Redis's replies depend on its treatment of zero bytes
// and quotes. It counts its steps; Lua's own would not check the clock.
//
// Lua leaves it for an error without running destructors: nothing here has any.
#include "lua/conversions.hpp"
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

namespace eddy::lua {
namespace {

constexpr char escape = '%';
constexpr std::string_view flags = "-+ #0";
/// Flags, width and precision, an "l", and what surrounds them.
constexpr std::size_t max_form = 16;
/// Longest text of one item: a number with 308 digits, and 99 behind the point.
constexpr std::size_t max_item = 512;
/// A longer text without a precision is taken as it is.
constexpr std::size_t max_formatted_text = 100;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

class formatter {
public:
    explicit formatter(lua_State* in)
        : in_(in), machine_(sandbox::of(in)), out_(machine_.scratch()) {
        out_.clear();
    }

    int run() {
        const int top = lua_gettop(in_);
        std::size_t size = 0;
        const char* at = luaL_checklstring(in_, 1, &size);
        const char* const end = at + size;
        int arg = 1;
        while (at < end) {
            const auto* const item = static_cast<const char*>(
                std::memchr(at, escape, static_cast<std::size_t>(end - at)));
            const char* const plain_end = item == nullptr ? end : item;
            add({at, static_cast<std::size_t>(plain_end - at)});
            if (item == nullptr) break;
            at = item + 1;
            if (*at == escape) {
                add({at++, 1});
                continue;
            }
            if (++arg > top) luaL_argerror(in_, arg, "no value");
            at = read_form(at);
            add_item(*at++, arg);
        }
        const std::string_view made = out_.text();
        lua_pushlstring(in_, made.data(), made.size());
        return 1;
    }

private:
    void add(std::string_view text) {
        machine_.count_steps(in_, 1 + text.size() / bytes_a_step);
        out_.append(text);
        machine_.check_scratch(in_);
    }

    // Flags, width and precision from `p` on; returns the place behind them.
    const char* read_form(const char* p) {
        const char* const begin = p;
        while (*p != '\0' && flags.find(*p) != std::string_view::npos) ++p;
        if (static_cast<std::size_t>(p - begin) > flags.size())
            luaL_error(in_, "invalid format (repeated flags)");
        const auto number = [&p] {
            int value = 0;
            for (int i = 0; i < 2 && is_digit(*p); ++i) value = value * 10 + (*p++ - '0');
            return value;
        };
        static_cast<void>(number());
        has_no_width_ = p == begin;
        precision_ = -1;
        if (*p == '.') {
            ++p;
            precision_ = number();
        }
        if (is_digit(*p)) luaL_error(in_, "invalid format (width or precision too long)");
        form_[0] = escape;
        form_size_ = static_cast<std::size_t>(p - begin) + 1;
        std::memcpy(form_ + 1, begin, form_size_ - 1);
        return p;
    }

    void add_item(char conversion, int arg) {
        constexpr std::size_t steps_an_item = 20;
        machine_.count_steps(in_, steps_an_item);
        switch (conversion) {
            case 'c': return print("c", to_int(luaL_checknumber(in_, arg)));
            case 'd':
            case 'i': {
                const std::int64_t value = to_signed(luaL_checknumber(in_, arg));
                if (form_size_ == 1) return add_integer(value);
                return print("ld", value);
            }
            case 'o': return print("lo", to_unsigned(luaL_checknumber(in_, arg)));
            case 'u': return print("lu", to_unsigned(luaL_checknumber(in_, arg)));
            case 'x': return print("lx", to_unsigned(luaL_checknumber(in_, arg)));
            case 'X': return print("lX", to_unsigned(luaL_checknumber(in_, arg)));
            case 'f':
                if (has_no_width_ && precision_ >= 0) return add_fixed(luaL_checknumber(in_, arg));
                [[fallthrough]];
            case 'e':
            case 'E':
            case 'g':
            case 'G': {
                const char text[] = {conversion, '\0'};
                return print(text, luaL_checknumber(in_, arg));
            }
            case 'q': return add_quoted(arg);
            case 's': {
                std::size_t size = 0;
                const char* const text = luaL_checklstring(in_, arg, &size);
                if (precision_ < 0 && size >= max_formatted_text) return add({text, size});
                if (form_size_ == 1) return add(text);
                return print("s", text);
            }
            default: {
                const char text[] = {conversion, '\0'};
                luaL_error(in_, "invalid option '%%%s' to 'format'", text);
            }
        }
    }

    // As the hardware of x86 converts, too.
    static int to_int(double value) noexcept {
        using limits = std::numeric_limits<int>;
        return value > limits::min() - 1.0 && value < limits::max() + 1.0 ? static_cast<int>(value)
                                                                          : limits::min();
    }

    void add_integer(std::int64_t value) {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        out_.append(std::string_view(digits, static_cast<std::size_t>(end - digits)));
    }

    // The digits that print() would write, in less time.
    void add_fixed(double value) {
        if (!std::isfinite(value)) return print("f", value);
        char item[max_item];
        const auto end =
            std::to_chars(item, item + sizeof item, value, std::chars_format::fixed, precision_)
                .ptr;
        add({item, static_cast<std::size_t>(end - item)});
    }

    // Text behind a zero byte is cut off.
    template <class T>
    void print(const char* conversion, T value) {
        std::strcpy(form_ + form_size_, conversion);
        char item[max_item];
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
        std::snprintf(item, sizeof item, form_, value);
#pragma clang diagnostic pop
        const std::string_view text(item);
        // Many digits take long.
        machine_.count_steps(in_, 2 * text.size());
        out_.append(text);
        machine_.check_scratch(in_);
    }

    // As Lua reads it.
    void add_quoted(int arg) {
        std::size_t size = 0;
        const char* const text = luaL_checklstring(in_, arg, &size);
        out_.append('"');
        for (std::size_t i = 0; i < size; ++i) {
            machine_.count_steps(in_, 1);
            switch (text[i]) {
                case '"':
                case '\\':
                case '\n':
                    out_.append('\\');
                    out_.append(text[i]);
                    break;
                case '\r': out_.append(std::string_view("\\r")); break;
                case '\0': out_.append(std::string_view("\\000")); break;
                default: out_.append(text[i]); break;
            }
        }
        machine_.check_scratch(in_);
        out_.append('"');
    }

    lua_State* in_;
    sandbox& machine_;
    byte_buffer& out_;
    char form_[max_form];
    std::size_t form_size_ = 0;
    bool has_no_width_ = true;  // and no flags
    int precision_ = -1;        // negative: none is given
};

int own_format(lua_State* in) { return formatter(in).run(); }

}  // namespace

void set_format_function(lua_State* in) {
    lua_pushcfunction(in, own_format);
    lua_setfield(in, -2, "format");
}

}  // namespace eddy::lua
