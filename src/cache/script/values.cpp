// Conversion in both directions, recursively; the depth is limited by Lua's stack and by the native
// one.
#include "cache/script/values.hpp"

#include "lua/conversions.hpp"
#include "lua/errors.hpp"
#include "lua/native_stack.hpp"
#include "lua/sandbox.hpp"

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

// Parser of a trusted reply.
class reply_pusher {
public:
    reply_pusher(lua::stack in, std::string_view reply) noexcept
        : in_(in), machine_(lua::sandbox::of(in)), left_(reply) {}

    // True for an error.
    bool value() {
        in_.checkstack(8, "the reply is nested too deeply");
        lua::check_native_stack(in_);
        machine_.count_steps(in_, steps_a_value);
        const std::size_t end = left_.find('\r', 1);
        const char type = left_[0];
        const std::string_view head = left_.substr(1, end - 1);
        left_.remove_prefix(end + 2);
        switch (type) {
            case ':': in_.pushnumber(static_cast<double>(number(head))); return false;
            case '$': text(head); return false;
            case '+': field("ok", head); return false;
            case '-': error(head); return true;
            case '*': array(number(head)); return false;
            case '_': in_.pushnil(); return false;
            case '#': in_.pushboolean(head == "t"); return false;
            case ',': real(head); return false;
            case '(': field("big_number", head); return false;
            case '=': verbatim(head); return false;
            case '%': map(number(head)); return false;
            case '~': set(number(head)); return false;
            case '|': attribute(number(head)); return value();
            default: in_.pushnil(); return false;
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
            in_.pushboolean(false);
        } else {
            in_.pushstring(take(head));
        }
    }
    // A table with one field.
    void field(const char* name, std::string_view value) {
        in_.createtable(0, 1);
        in_.set_text(name, value);
    }
    void error(std::string_view line) {
        in_.createtable(0, 4);
        if (line.find(' ') == std::string_view::npos) {
            in_.pushstring("ERR ");
            in_.pushstring(line);
            in_.concat(2);
        } else {
            in_.pushstring(line);
        }
        in_.setfield(-2, "err");
        in_.set_boolean(counted_already, true);
    }
    void array(std::int64_t count) {
        if (count < 0) return in_.pushboolean(false);
        in_.createtable(size_hint(count), 0);
        for (std::int64_t i = 1; i <= count; ++i) {
            value();
            in_.rawseti(-2, static_cast<int>(i));
        }
    }
    void real(std::string_view head) {
        in_.createtable(0, 1);
        char digits[64];
        const std::size_t size = head.copy(digits, sizeof digits - 1);
        digits[size] = '\0';
        in_.set_number("double", std::strtod(digits, nullptr));
    }
    void verbatim(std::string_view head) {
        const std::string_view all = take(head);
        in_.createtable(0, 1);
        in_.createtable(0, 2);
        in_.set_text("string", all.substr(4));
        in_.set_text("format", all.substr(0, 3));
        in_.setfield(-2, "verbatim_string");
    }
    void map(std::int64_t pairs) {
        in_.createtable(0, 1);
        in_.createtable(0, size_hint(pairs));
        for (std::int64_t i = 0; i < pairs; ++i) {
            value();
            value();
            in_.rawset(-3);
        }
        in_.setfield(-2, "map");
    }
    // Scripts do not get it.
    void attribute(std::int64_t pairs) {
        for (std::int64_t i = 0; i < 2 * pairs; ++i) {
            value();
            in_.pop();
        }
    }
    void set(std::int64_t count) {
        in_.createtable(0, 1);
        in_.createtable(0, size_hint(count));
        for (std::int64_t i = 0; i < count; ++i) {
            value();
            in_.pushboolean(true);
            in_.rawset(-3);
        }
        in_.setfield(-2, "set");
    }
    static int size_hint(std::int64_t count) noexcept {
        constexpr std::int64_t most = 1 << 20;
        return static_cast<int>(count < most ? count : most);
    }

    lua::stack in_;
    lua::sandbox& machine_;
    std::string_view left_;
};

// Lines end at a NUL, as in Redis.
std::string_view to_nul(std::string_view text) noexcept { return text.substr(0, text.find('\0')); }

// Pushes t[name] of the table on top; true if it has that type, else it is popped.
bool push_field(lua::stack in, std::string_view name, lua::value_type type) {
    in.rawgetfield(-1, name);
    if (in.type(-1) == type) return true;
    in.pop();
    return false;
}

// False when the reply was refused as too large: it holds the error, and nothing may follow. A
// table may contain itself many times, so the rest is skipped then.
[[nodiscard]] bool reply_with(call& c, lua::stack in, bool has_booleans);

// Number of pairs in the table on top.
std::size_t count_pairs(lua::stack in) {
    lua::sandbox& machine = lua::sandbox::of(in);
    machine.count_largest(in);
    std::size_t pairs = 0;
    for (in.pushnil(); in.next(-2); in.pop()) {
        machine.count_steps(in, 2);
        ++pairs;
    }
    return pairs;
}

bool reply_with_map(call& c, lua::stack in, bool has_booleans) {
    const std::size_t pairs = count_pairs(in);
    c.reply.map(pairs);
    in.pushnil();
    while (in.next(-2)) {
        in.pushvalue(-2);
        // The key, then the value.
        if (!reply_with(c, in, has_booleans)) return in.pop(2), false;
        if (!reply_with(c, in, has_booleans)) return in.pop(), false;
    }
    return true;
}

bool reply_with_set(call& c, lua::stack in, bool has_booleans) {
    const std::size_t count = count_pairs(in);
    c.reply.set(count);
    in.pushnil();
    while (in.next(-2)) {
        in.pop();
        in.pushvalue(-1);
        if (!reply_with(c, in, has_booleans)) return in.pop(), false;
    }
    return true;
}

bool reply_with_array(call& c, lua::stack in, bool has_booleans) {
    lua::sandbox& machine = lua::sandbox::of(in);
    int count = 0;
    for (;; ++count) {
        machine.count_steps(in, 2);
        in.rawgeti(-1, count + 1);
        const bool is_end = in.isnil(-1);
        in.pop();
        if (is_end) break;
    }
    c.reply.array(static_cast<std::size_t>(count));
    for (int i = 1; i <= count; ++i) {
        in.rawgeti(-1, i);
        if (!reply_with(c, in, has_booleans)) return false;
    }
    return true;
}

bool reply_with_table(call& c, lua::stack in, bool has_booleans) {
    if (push_field(in, "err", lua::value_type::string)) {
        in.pushvalue(-2);
        const bool is_counted = is_counted_error(in);
        in.pop();
        reply_with_script_error(c, std::string(to_nul(in.tostring(-1))), is_counted);
        return in.pop(), true;
    }
    if (push_field(in, "ok", lua::value_type::string)) {
        c.reply.simple(to_nul(in.tostring(-1)));
        return in.pop(), true;
    }
    if (push_field(in, "double", lua::value_type::number)) {
        c.reply.number(in.tonumber(-1));
        return in.pop(), true;
    }
    if (push_field(in, "map", lua::value_type::table)) {
        const bool whole = reply_with_map(c, in, has_booleans);
        in.pop();
        return whole;
    }
    if (push_field(in, "set", lua::value_type::table)) {
        const bool whole = reply_with_set(c, in, has_booleans);
        in.pop();
        return whole;
    }
    if (push_field(in, "big_number", lua::value_type::string)) {
        std::string digits(to_nul(in.tostring(-1)));
        for (char& each : digits) {
            if (each == '\r' || each == '\n') each = ' ';
        }
        c.reply.big_number(digits);
        return in.pop(), true;
    }
    if (push_field(in, "verbatim_string", lua::value_type::table)) {
        if (push_field(in, "string", lua::value_type::string)) {
            in.insert(-2);
            if (push_field(in, "format", lua::value_type::string)) {
                std::string format(in.tostring(-1).substr(0, 3));
                format.resize(3, ' ');
                c.reply.verbatim(format, in.tostring(-3));
                return in.pop(3), true;
            }
            in.remove(-2);
        }
        in.pop();
    }
    return reply_with_array(c, in, has_booleans);
}

// Pops the value.
bool reply_with(call& c, lua::stack in, bool has_booleans) {
    lua::sandbox::of(in).count_steps(in, in.istable(-1) ? 3 * steps_a_value : steps_a_value);
    if (c.reply_is_too_large()) return in.pop(), false;
    if (!in.checkstack(6) || !lua::native_stack::has_room()) {
        in.pop();
        c.error("ERR reached lua stack limit");
        return true;
    }
    bool whole = true;
    switch (in.type(-1)) {
        case lua::value_type::string: c.reply.bulk(in.tostring(-1)); break;
        case lua::value_type::number: c.reply.integer(lua::to_signed(in.tonumber(-1))); break;
        case lua::value_type::boolean:
            if (has_booleans) {
                c.reply.boolean(in.toboolean(-1));
            } else if (in.toboolean(-1)) {
                c.reply.integer(1);
            } else {
                c.reply.null();
            }
            break;
        case lua::value_type::table: whole = reply_with_table(c, in, has_booleans); break;
        default: c.reply.null(); break;
    }
    in.pop();
    return whole;
}

}  // namespace

bool push_reply(lua::stack in, std::string_view reply) { return reply_pusher(in, reply).value(); }

void reply_with_value(call& c, lua::stack in, bool has_booleans) {
    // The last value may exceed the limit.
    if (reply_with(c, in, has_booleans)) static_cast<void>(c.reply_is_too_large());
}

bool is_counted_error(lua::stack in) {
    if (!push_field(in, counted_already, lua::value_type::boolean)) return false;
    const bool is_counted = in.toboolean(-1);
    in.pop();
    return is_counted;
}

void mark_counted(lua::stack in) { in.set_boolean(counted_already, true); }

void reply_with_script_error(call& c, std::string text, bool is_counted) {
    text.erase(text.find_last_not_of("\r\n") + 1);
    std::ranges::replace_if(text, [](char each) { return each == '\r' || each == '\n'; }, ' ');
    is_counted ? c.pass_on_error(text) : c.error(text);
}

}  // namespace eddy::cache
