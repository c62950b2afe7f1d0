// Lua's patterns: string.find, match, gmatch and gsub, and other functions that process whole
// strings. Lua's own run within one instruction, however long they take, so that a script could not
// be left there or killed. These count their steps and check the clock, as the interpreter does.
//
// Matches and error texts are Lua 5.1's, with LuaJIT's limit on depth. Lua leaves these functions
// for an error without running destructors: nothing here has any.
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::lua {
namespace {

constexpr char escape = '%';
/// Nesting of matches, which `?`, `*`, `-` and captures cause: it takes native stack.
constexpr int max_depth = 200;

// Lua's characters are those of the locale C, whatever the process has.
constexpr bool is_lower(unsigned char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(unsigned char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_alpha(unsigned char c) noexcept { return is_lower(c) || is_upper(c); }
constexpr bool is_digit(unsigned char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_alnum(unsigned char c) noexcept { return is_alpha(c) || is_digit(c); }
constexpr bool is_control(unsigned char c) noexcept { return c < ' ' || c == 0x7f; }
constexpr bool is_space(unsigned char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_graphic(unsigned char c) noexcept { return c > ' ' && c < 0x7f; }
constexpr unsigned char lower(unsigned char c) noexcept {
    return is_upper(c) ? static_cast<unsigned char>(c + ('a' - 'A')) : c;
}

/// True if `c` is in the class of `%` with this letter; other letters stand for themselves.
constexpr bool is_of_class(unsigned char c, unsigned char letter) noexcept {
    bool is = false;
    switch (lower(letter)) {
        case 'a': is = is_alpha(c); break;
        case 'c': is = is_control(c); break;
        case 'd': is = is_digit(c); break;
        case 'l': is = is_lower(c); break;
        case 'p': is = is_graphic(c) && !is_alnum(c); break;
        case 's': is = is_space(c); break;
        case 'u': is = is_upper(c); break;
        case 'w': is = is_alnum(c); break;
        case 'x': is = is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f'); break;
        case 'z': is = c == 0; break;
        default: return letter == c;
    }
    return is != is_upper(letter);
}

/// One call of one of the functions. A pattern ends at its first zero byte, as each Lua string has
/// one behind it.
class matcher {
public:
    matcher(lua_State* in, const char* subject, std::size_t size) noexcept
        : in_(in), machine_(sandbox::of(in)), begin_(subject), end_(subject + size) {}

    const char* end() const noexcept { return end_; }

    /// Where a match that begins at `s` ends, or null.
    const char* match_at(const char* s, const char* pattern) {
        level_ = depth_ = 0;
        return match(s, pattern);
    }

    /// Pushes the captures of the last match; with `whole`, a match without captures counts as one,
    /// from `s` to `e`. Returns their number.
    int push_captures(const char* s, const char* e, bool whole) {
        const int count = level_ == 0 && whole ? 1 : level_;
        luaL_checkstack(in_, count, "too many captures");
        for (int i = 0; i < count; ++i) push_capture(i, s, e);
        return count;
    }

    void push_capture(int i, const char* s, const char* e) {
        if (i >= level_) {
            if (i != 0) fail("invalid capture index");
            return push_text(s, static_cast<std::size_t>(e - s));
        }
        const capture& of = captures_[i];
        if (of.size == unfinished) fail("unfinished capture");
        if (of.size == position)
            lua_pushinteger(in_, of.begin - begin_ + 1);
        else
            push_text(of.begin, static_cast<std::size_t>(of.size));
    }

    void count(std::size_t steps) { machine_.count_steps(in_, steps); }

private:
    struct capture {
        const char* begin;
        std::ptrdiff_t size;
    };
    // In the place of a size.
    static constexpr std::ptrdiff_t unfinished = -1;
    static constexpr std::ptrdiff_t position = -2;

    [[noreturn]] void fail(const char* why) {
        luaL_error(in_, "%s", why);
        __builtin_unreachable();
    }

    void push_text(const char* at, std::size_t size) {
        count(size / bytes_a_step);
        lua_pushlstring(in_, at, size);
    }

    // A set may be as long as a text.
    void count_set(const char* begin, const char* end) {
        constexpr std::size_t chars_a_step = 8;
        count(static_cast<std::size_t>(end - begin) / chars_a_step);
    }

    // Behind the pattern's item that begins at `p`.
    const char* item_end(const char* p) {
        const char first = *p++;
        if (first == escape) {
            if (*p == '\0') fail("malformed pattern (ends with '%')");
            return p + 1;
        }
        if (first != '[') return p;
        const char* const set = p;
        if (*p == '^') ++p;
        do {
            if (*p == '\0') fail("malformed pattern (missing ']')");
            if (*p++ == escape && *p != '\0') ++p;
        } while (*p != ']');
        count_set(set, p);
        return p + 1;
    }

    // True if the set from '[' at `p` to ']' at `last` has `c`.
    bool is_in_set(unsigned char c, const char* p, const char* last) {
        count_set(p, last);
        bool found = true;
        if (p[1] == '^') {
            found = false;
            ++p;
        }
        while (++p < last) {
            if (*p == escape) {
                ++p;
                if (is_of_class(c, static_cast<unsigned char>(*p))) return found;
            } else if (p[1] == '-' && p + 2 < last) {
                p += 2;
                if (static_cast<unsigned char>(p[-2]) <= c && c <= static_cast<unsigned char>(*p))
                    return found;
            } else if (static_cast<unsigned char>(*p) == c) {
                return found;
            }
        }
        return !found;
    }

    bool matches_item(const char* s, const char* p, const char* after) {
        if (s >= end_) return false;
        const auto c = static_cast<unsigned char>(*s);
        switch (*p) {
            case '.': return true;
            case escape: return is_of_class(c, static_cast<unsigned char>(p[1]));
            case '[': return is_in_set(c, p, after - 1);
            default: return static_cast<unsigned char>(*p) == c;
        }
    }

    const char* match(const char* s, const char* p) {
        if (++depth_ > max_depth) fail("pattern too complex");
        s = match_items(s, p);
        --depth_;
        return s;
    }

    const char* match_items(const char* s, const char* p) {
        for (;;) {
            count(1);
            switch (*p) {
                case '\0': return s;
                case '(':
                    return p[1] == ')' ? begin_capture(s, p + 2, position)
                                       : begin_capture(s, p + 1, unfinished);
                case ')': return end_capture(s, p + 1);
                case '$':
                    if (p[1] == '\0') return s == end_ ? s : nullptr;
                    break;
                case escape:
                    if (p[1] == 'b') {
                        s = match_balance(s, p + 2);
                        if (s == nullptr) return nullptr;
                        p += 4;
                        continue;
                    }
                    if (p[1] == 'f') {
                        p += 2;
                        if (!is_frontier(s, p)) return nullptr;
                        p = item_end(p);
                        continue;
                    }
                    if (is_digit(static_cast<unsigned char>(p[1]))) {
                        s = match_again(s, p[1]);
                        if (s == nullptr) return nullptr;
                        p += 2;
                        continue;
                    }
                    break;
                default: break;
            }
            const char* const after = item_end(p);
            const bool matches = matches_item(s, p, after);
            switch (*after) {
                case '?':
                    if (matches) {
                        const char* const found = match(s + 1, after + 1);
                        if (found != nullptr) return found;
                    }
                    p = after + 1;
                    continue;
                case '*': return match_most(s, p, after);
                case '+': return matches ? match_most(s + 1, p, after) : nullptr;
                case '-': return match_least(s, p, after);
                default: break;
            }
            if (!matches) return nullptr;
            ++s;
            p = after;
        }
    }

    // As many as there are, or fewer.
    const char* match_most(const char* s, const char* p, const char* after) {
        std::ptrdiff_t i = 0;
        for (; matches_item(s + i, p, after); ++i) count(1);
        for (; i >= 0; --i) {
            const char* const found = match(s + i, after + 1);
            if (found != nullptr) return found;
        }
        return nullptr;
    }

    // None, or more.
    const char* match_least(const char* s, const char* p, const char* after) {
        for (;; ++s) {
            const char* const found = match(s, after + 1);
            if (found != nullptr) return found;
            if (!matches_item(s, p, after)) return nullptr;
        }
    }

    // %bxy
    const char* match_balance(const char* s, const char* p) {
        if (p[0] == '\0' || p[1] == '\0') fail("unbalanced pattern");
        if (*s != p[0]) return nullptr;
        std::size_t open = 1;
        while (++s < end_) {
            count(1);
            if (*s == p[1]) {
                if (--open == 0) return s + 1;
            } else if (*s == p[0]) {
                ++open;
            }
        }
        return nullptr;
    }

    // %f[set]
    bool is_frontier(const char* s, const char* p) {
        if (*p != '[') fail("missing '[' after '%f' in pattern");
        const char* const last = item_end(p) - 1;
        const char before = s == begin_ ? '\0' : s[-1];
        return !is_in_set(static_cast<unsigned char>(before), p, last) &&
               is_in_set(static_cast<unsigned char>(*s), p, last);
    }

    const char* begin_capture(const char* s, const char* p, std::ptrdiff_t what) {
        if (level_ >= LUA_MAXCAPTURES) fail("too many captures");
        captures_[level_++] = {s, what};
        const char* const found = match(s, p);
        if (found == nullptr) --level_;
        return found;
    }

    const char* end_capture(const char* s, const char* p) {
        int open = level_ - 1;
        while (open >= 0 && captures_[open].size != unfinished) --open;
        if (open < 0) fail("invalid pattern capture");
        captures_[open].size = s - captures_[open].begin;
        const char* const found = match(s, p);
        if (found == nullptr) captures_[open].size = unfinished;
        return found;
    }

    // %1
    const char* match_again(const char* s, char digit) {
        const int i = digit - '1';
        if (i < 0 || i >= level_ || captures_[i].size == unfinished) fail("invalid capture index");
        // A position is longer than any rest.
        const auto size = static_cast<std::size_t>(captures_[i].size);
        if (static_cast<std::size_t>(end_ - s) < size) return nullptr;
        count(size / bytes_a_step);
        return std::memcmp(captures_[i].begin, s, size) == 0 ? s + size : nullptr;
    }

    lua_State* in_;
    sandbox& machine_;
    const char* begin_;
    const char* end_;
    int level_ = 0;
    int depth_ = 0;
    capture captures_[LUA_MAXCAPTURES];
};

constexpr auto is_special = [] {
    std::array<bool, 256> made{};
    for (const char c : std::string_view("^$*+?.([%-")) made[static_cast<unsigned char>(c)] = true;
    return made;
}();

bool has_specials(lua_State* in, std::string_view pattern) {
    constexpr std::size_t chars_a_step = 8;
    sandbox::of(in).count_steps(in, pattern.size() / chars_a_step);
    return std::ranges::any_of(pattern,
                               [](char c) { return is_special[static_cast<unsigned char>(c)]; });
}

// Search in pieces, between which it checks the clock: memmem() takes time in proportion to its
// texts.
const char* find_text(lua_State* in, const char* s, std::size_t size, const char* what,
                      std::size_t length) {
    constexpr std::size_t piece = 256 * 1024;
    while (size >= length) {
        const std::size_t part = std::min(size, std::max(piece, length) + length);
        const void* const found = ::memmem(s, part, what, length);
        if (found != nullptr) return static_cast<const char*>(found);
        sandbox::of(in).count_steps(in, part / bytes_a_step);
        const std::size_t passed = part - length + 1;
        s += passed;
        size -= passed;
    }
    return nullptr;
}

int find_or_match(lua_State* in, bool finds) {
    std::size_t size = 0;
    std::size_t length = 0;
    const char* const subject = luaL_checklstring(in, 1, &size);
    const char* pattern = luaL_checklstring(in, 2, &length);
    const auto most = static_cast<lua_Integer>(size);
    lua_Integer first = luaL_optinteger(in, 3, 1);
    first = std::clamp<lua_Integer>(first < 0 ? first + most : first - 1, 0, most);
    const char* s = subject + first;
    if (finds && (lua_toboolean(in, 4) != 0 || !has_specials(in, {pattern, length}))) {
        const char* const found =
            find_text(in, s, size - static_cast<std::size_t>(first), pattern, length);
        if (found == nullptr) {
            lua_pushnil(in);
            return 1;
        }
        lua_pushinteger(in, found - subject + 1);
        lua_pushinteger(in, found - subject + static_cast<std::ptrdiff_t>(length));
        return 2;
    }
    const bool is_anchored = *pattern == '^';
    if (is_anchored) ++pattern;
    matcher by(in, subject, size);
    do {
        const char* const e = by.match_at(s, pattern);
        if (e == nullptr) continue;
        if (!finds) return by.push_captures(s, e, true);
        lua_pushinteger(in, s - subject + 1);
        lua_pushinteger(in, e - subject);
        return by.push_captures(s, e, false) + 2;
    } while (s++ < by.end() && !is_anchored);
    lua_pushnil(in);
    return 1;
}

int own_find(lua_State* in) { return find_or_match(in, true); }
int own_match(lua_State* in) { return find_or_match(in, false); }

// Upvalues: the subject, the pattern, and the offset of the next search.
int next_match(lua_State* in) {
    std::size_t size = 0;
    const char* const subject = lua_tolstring(in, lua_upvalueindex(1), &size);
    const char* const pattern = lua_tostring(in, lua_upvalueindex(2));
    matcher by(in, subject, size);
    for (const char* s = subject + lua_tointeger(in, lua_upvalueindex(3)); s <= by.end(); ++s) {
        const char* const e = by.match_at(s, pattern);
        if (e == nullptr) continue;
        // An empty match is not found twice.
        lua_pushinteger(in, e - subject + (e == s ? 1 : 0));
        lua_replace(in, lua_upvalueindex(3));
        return by.push_captures(s, e, true);
    }
    return 0;
}

int own_gmatch(lua_State* in) {
    luaL_checkstring(in, 1);
    luaL_checkstring(in, 2);
    lua_settop(in, 2);
    lua_pushinteger(in, 0);
    lua_pushcclosure(in, next_match, 3);
    return 1;
}

// The replacement's text, with what its % say.
void add_text(lua_State* in, matcher& by, luaL_Buffer& to, const char* s, const char* e) {
    std::size_t size = 0;
    const char* const text = lua_tolstring(in, 3, &size);
    by.count(size);
    for (std::size_t i = 0; i < size; ++i) {
        if (text[i] != escape) {
            luaL_addchar(&to, text[i]);
            continue;
        }
        ++i;
        if (!is_digit(static_cast<unsigned char>(text[i]))) {
            luaL_addchar(&to, text[i]);
        } else if (text[i] == '0') {
            by.count(static_cast<std::size_t>(e - s) / bytes_a_step);
            luaL_addlstring(&to, s, static_cast<std::size_t>(e - s));
        } else {
            by.push_capture(text[i] - '1', s, e);
            luaL_addvalue(&to);
        }
    }
}

// Adds the replacement of a match.
void add_replacement(lua_State* in, matcher& by, luaL_Buffer& to, const char* s, const char* e) {
    switch (lua_type(in, 3)) {
        case LUA_TFUNCTION: {
            lua_pushvalue(in, 3);
            lua_call(in, by.push_captures(s, e, true), 1);
            break;
        }
        case LUA_TTABLE:
            by.push_capture(0, s, e);
            lua_gettable(in, 3);
            break;
        default: return add_text(in, by, to, s, e);
    }
    if (lua_toboolean(in, -1) == 0) {
        lua_pop(in, 1);
        lua_pushlstring(in, s, static_cast<std::size_t>(e - s));
    } else if (lua_isstring(in, -1) == 0) {
        luaL_error(in, "invalid replacement value (a %s)", luaL_typename(in, -1));
    }
    luaL_addvalue(&to);
}

int own_gsub(lua_State* in) {
    std::size_t size = 0;
    const char* s = luaL_checklstring(in, 1, &size);
    const char* pattern = luaL_checkstring(in, 2);
    const int type = lua_type(in, 3);
    const lua_Integer most = luaL_optinteger(in, 4, static_cast<lua_Integer>(size) + 1);
    const bool is_anchored = *pattern == '^';
    if (is_anchored) ++pattern;
    luaL_argcheck(
        in,
        type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE,
        3, "string/function/table expected");
    if (type == LUA_TFUNCTION || type == LUA_TTABLE) enter_callback(in);
    luaL_Buffer made;
    luaL_buffinit(in, &made);
    matcher by(in, s, size);
    lua_Integer count = 0;
    while (count < most) {
        const char* const e = by.match_at(s, pattern);
        if (e != nullptr) {
            ++count;
            add_replacement(in, by, made, s, e);
        }
        if (e != nullptr && e > s) {
            s = e;
        } else if (s < by.end()) {
            luaL_addchar(&made, *s++);
        } else {
            break;
        }
        if (is_anchored) break;
    }
    luaL_addlstring(&made, s, static_cast<std::size_t>(by.end() - s));
    luaL_pushresult(&made);
    lua_pushinteger(in, count);
    return 2;
}

// Calls Lua's own function, the upvalue, with all arguments. The caller checks them before: errors
// of Lua's own would not name the function.
int call_original(lua_State* in, std::size_t bytes) {
    constexpr std::size_t chars_a_step = 8;
    sandbox::of(in).count_steps(in, bytes / chars_a_step + 1);
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_insert(in, 1);
    lua_call(in, lua_gettop(in) - 1, LUA_MULTRET);
    return lua_gettop(in);
}

int own_rep(lua_State* in) {
    std::size_t size = 0;
    const char* const text = luaL_checklstring(in, 1, &size);
    const lua_Integer times = luaL_checkinteger(in, 2);
    sandbox& machine = sandbox::of(in);
    std::size_t bytes = 0;
    // More than there is memory for is refused at once.
    if (times > 0 && (__builtin_mul_overflow(size, static_cast<std::size_t>(times), &bytes) ||
                      bytes > machine.max_bytes()))
        return luaL_error(in, "not enough memory");
    byte_buffer& out = machine.scratch();
    out.clear();
    out.reserve(bytes);
    out.append(std::string_view(text, std::min(size, bytes)));
    // Doubles the text, in pieces between which it checks the clock.
    constexpr std::size_t most = std::size_t{1} << 20;
    while (out.size() < bytes) {
        const std::size_t whole =
            size * std::max<std::size_t>(1, std::min(out.size(), most) / size);
        const std::size_t more = std::min({whole, out.size(), bytes - out.size()});
        std::memcpy(out.reserve(more), out.text().data(), more);
        out.commit(more);
        machine.count_steps(in, 1 + more / bytes_a_step);
    }
    lua_pushlstring(in, out.text().data(), out.size());
    return 1;
}

// The upvalue is Lua's own.
int own_dump(lua_State* in) {
    luaL_checktype(in, 1, LUA_TFUNCTION);
    if (lua_iscfunction(in, 1) != 0) return luaL_error(in, "unable to dump given function");
    lua_settop(in, 1);
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_insert(in, 1);
    lua_call(in, 1, 1);
    constexpr std::size_t dumped_bytes_a_step = 4;
    sandbox::of(in).count_steps(in, lua_objlen(in, -1) / dumped_bytes_a_step);
    return 1;
}

int through_bytes(lua_State* in) {
    std::size_t size = 0;
    luaL_checklstring(in, 1, &size);
    return call_original(in, size);
}

}  // namespace

void set_string_functions(lua_State* in, int from) {
    const auto set = [in](const char* name, lua_CFunction function) {
        lua_pushcfunction(in, function);
        lua_setfield(in, -2, name);
    };
    set("find", own_find);
    set("match", own_match);
    set("gmatch", own_gmatch);
    set("gfind", own_gmatch);
    set("gsub", own_gsub);
    set("rep", own_rep);
    const auto wrap = [in, from](const char* name, lua_CFunction function) {
        lua_getfield(in, from, name);
        lua_pushcclosure(in, function, 1);
        lua_setfield(in, -2, name);
    };
    wrap("dump", own_dump);
    wrap("lower", through_bytes);
    wrap("upper", through_bytes);
    wrap("reverse", through_bytes);
}

}  // namespace eddy::lua
