// table.sort(), concat(), insert() and maxn(): functions that process whole tables. Lua's own run
// within one instruction, however long they take, so that a script could not be left there or
// killed. These count their steps and check the clock, as the interpreter does.
//
// Errors are Lua 5.1's. Lua leaves these functions for an error without running destructors:
// nothing here has any.
#include "lua/libraries.hpp"

#include <lua.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace eddy::lua {
namespace {

// --- sort ----------------------------------------------------------------------------------------

/// Quicksort as Lua 5.1 has it, comparison for comparison: equal elements end in the same order,
/// and the same wrong order functions are detected. A range that has been split too often for its
/// size is heap-sorted instead, so that no order of the elements makes it quadratic.
///
/// The table is at index 1 of Lua's stack, the order or nil at 2. The elements stay in the table: a
/// comparison of the script's may change it.
class sorter {
public:
    explicit sorter(lua_State* in)
        : in_(in), machine_(sandbox::of(in)), has_order_(!lua_isnil(in, 2)) {}

    void sort(int count) {
        // The larger part of each split waits, so the parts that wait halve.
        constexpr int most_waiting = 32;
        range waiting[most_waiting];
        int waits = 0;
        range now{1, count, splits_of(count)};
        for (;;) {
            range larger{};
            if (now.splits == 0) {
                sort_heap(now.first, now.last);
            } else if (split(now, larger)) {
                waiting[waits++] = larger;
                continue;
            }
            if (waits == 0) return;
            now = waiting[--waits];
        }
    }

private:
    struct range {
        int first;
        int last;
        int splits;  // that may follow
    };
    // Twice the splits that most ranges of random elements need.
    static int splits_of(int count) noexcept {
        return 4 * static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(count, 0))));
    }

    // Sorts up to three elements. Of more it makes two parts: the smaller one comes into `of`, and
    // it returns true. An element between them is in its place.
    bool split(range& of, range& larger) {
        const int first = of.first;
        const int last = of.last;
        if (first >= last) return false;
        order(first, last);
        if (last - first == 1) return false;
        const int middle = first + (last - first) / 2;
        if (!order(first, middle)) order(middle, last);
        if (last - first == 2) return false;
        get(middle);  // the pivot, at index 3
        get(last - 1);
        set(middle);
        lua_pushvalue(in_, 3);
        set(last - 1);
        measure(3);
        int low = first;
        int high = last - 1;
        for (;;) {
            for (get(++low); is_less(4, 3); get(++low)) {
                if (low > last) fail();
                lua_settop(in_, 3);
            }
            for (get(--high); is_less(3, 5); get(--high)) {
                if (high < first) fail();
                lua_settop(in_, 4);
            }
            if (high < low) break;
            set(low);
            set(high);
        }
        lua_settop(in_, 4);
        set(last - 1);
        set(low);
        const range below{first, low - 1, of.splits - 1};
        const range above{low + 1, last, of.splits - 1};
        const bool below_is_smaller = low - first < last - low;
        of = below_is_smaller ? below : above;
        larger = below_is_smaller ? above : below;
        return true;
    }

    // Sorts two elements; true when they change places.
    bool order(int low, int high) {
        get(low);
        get(high);
        measure(3);
        const bool changes = is_less(4, 3);
        if (changes) {
            set(low);
            set(high);
        }
        lua_settop(in_, 2);
        return changes;
    }

    void sort_heap(int first, int last) {
        const int count = last - first + 1;
        for (int at = count / 2; at-- > 0;) {
            get(first + at);
            sink(first, at, count);
        }
        for (int left = count - 1; left > 0; --left) {
            get(first + left);
            get(first);
            set(first + left);
            sink(first, 0, left);
        }
    }

    // Puts the element at index 3, which is popped, where it belongs in the heap below place `at`,
    // which is free; the largest is on top.
    void sink(int first, int at, int count) {
        for (;;) {
            int child = 2 * at + 1;
            if (child >= count) break;
            get(first + child);
            if (child + 1 < count) {
                get(first + child + 1);
                measure(4);
                if (is_less(4, 5)) {
                    ++child;
                    lua_remove(in_, 4);
                }
                lua_settop(in_, 4);
            }
            measure(3);
            if (!is_less(3, 4)) break;
            set(first + at);
            at = child;
        }
        lua_settop(in_, 3);
        set(first + at);
    }

    void get(int at) { lua_rawgeti(in_, 1, at); }
    void set(int at) { lua_rawseti(in_, 1, at); }

    // The element there is about to be compared: with texts it takes as long as it is.
    void measure(int at) {
        constexpr std::size_t least = 5;
        const std::size_t bytes = lua_type(in_, at) == LUA_TSTRING ? lua_objlen(in_, at) : 0;
        steps_a_comparison_ = least + bytes / bytes_a_step;
    }

    bool is_less(int a, int b) {
        machine_.count_steps(in_, steps_a_comparison_);
        if (has_order_) {
            lua_pushvalue(in_, 2);
            lua_pushvalue(in_, a);
            lua_pushvalue(in_, b);
            lua_call(in_, 2, 1);
            const bool is = lua_toboolean(in_, -1) != 0;
            lua_pop(in_, 1);
            return is;
        }
        return lua_lessthan(in_, a, b) != 0;
    }

    void fail() { luaL_error(in_, "invalid order function for sorting"); }

    lua_State* in_;
    sandbox& machine_;
    bool has_order_;
    std::size_t steps_a_comparison_ = 0;
};

int own_sort(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    lua_settop(in, 2);
    if (!lua_isnil(in, 2)) luaL_checktype(in, 2, LUA_TFUNCTION);
    enter_callback(in);
    sorter(in).sort(static_cast<int>(lua_objlen(in, 1)));
    return 0;
}

// --- concat --------------------------------------------------------------------------------------

// Elements that are put together at once: it takes below a millisecond, unless they are long.
constexpr std::int64_t elements_a_part = 4096;

// Pushes what the upvalue, Lua's own function, makes of a part of the table at 1.
void push_part(lua_State* in, std::int64_t from, std::int64_t to) {
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_pushvalue(in, 1);
    lua_pushvalue(in, 2);
    lua_pushinteger(in, from);
    lua_pushinteger(in, to);
    const int status = lua_pcall(in, 4, 1, 0);
    if (status == 0) return;
    // It does not know where in the script it was called.
    if (status == LUA_ERRRUN) luaL_error(in, "%s", lua_tostring(in, -1));
    lua_error(in);
}

int own_concat(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    std::size_t separator_size = 0;
    const char* const separator = luaL_optlstring(in, 2, "", &separator_size);
    const auto from = static_cast<int>(luaL_optinteger(in, 3, 1));
    const int to = lua_isnoneornil(in, 4) ? static_cast<int>(lua_objlen(in, 1))
                                          : static_cast<int>(luaL_checkinteger(in, 4));
    lua_settop(in, 2);
    sandbox& machine = sandbox::of(in);
    byte_buffer* whole = nullptr;
    for (std::int64_t next = from;; next += elements_a_part) {
        const std::int64_t left = std::max<std::int64_t>(0, to - next + 1);
        const bool is_last = left <= elements_a_part;
        push_part(in, next, is_last ? to : next + elements_a_part - 1);
        std::size_t size = 0;
        const char* const part = lua_tolstring(in, -1, &size);
        constexpr std::int64_t steps_an_element = 10;
        const std::int64_t elements = is_last ? left : elements_a_part;
        machine.count_steps(
            in, static_cast<std::size_t>(elements * steps_an_element) + size / bytes_a_step);
        if (is_last && whole == nullptr) return 1;
        if (whole == nullptr) {
            whole = &machine.scratch();
            whole->clear();
        }
        whole->append(std::string_view(part, size));
        if (is_last) break;
        whole->append(std::string_view(separator, separator_size));
        machine.check_scratch(in);
        lua_pop(in, 1);
    }
    const std::string_view made = whole->text();
    lua_pushlstring(in, made.data(), made.size());
    return 1;
}

// --- insert and maxn -----------------------------------------------------------------------------

int own_insert(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    refuse_protected(in, 1);
    const int end = static_cast<int>(lua_objlen(in, 1)) + 1;
    int at = end;
    switch (lua_gettop(in)) {
        case 2: break;
        case 3: {
            at = static_cast<int>(luaL_checkinteger(in, 2));
            sandbox& machine = sandbox::of(in);
            for (int i = at > end ? at : end; i > at; --i) {
                machine.count_steps(in, 1);
                lua_rawgeti(in, 1, i - 1);
                lua_rawseti(in, 1, i);
            }
            break;
        }
        default: return luaL_error(in, "wrong number of arguments to 'insert'");
    }
    lua_rawseti(in, 1, at);
    return 0;
}

// The upvalue is Lua's own.
int own_maxn(lua_State* in) {
    luaL_checktype(in, 1, LUA_TTABLE);
    sandbox::of(in).count_largest(in);
    lua_settop(in, 1);
    lua_pushvalue(in, lua_upvalueindex(1));
    lua_insert(in, 1);
    lua_call(in, 1, 1);
    return 1;
}

}  // namespace

void set_table_functions(lua_State* in, int from) {
    const auto set = [in](const char* name, lua_CFunction function) {
        lua_pushcfunction(in, function);
        lua_setfield(in, -2, name);
    };
    set("sort", own_sort);
    set("insert", own_insert);
    const auto wrap = [in, from](const char* name, lua_CFunction function) {
        lua_getfield(in, from, name);
        lua_pushcclosure(in, function, 1);
        lua_setfield(in, -2, name);
    };
    wrap("concat", own_concat);
    wrap("maxn", own_maxn);
}

}  // namespace eddy::lua
