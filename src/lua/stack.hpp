// Face of Lua's C API: values of a running function of Lua, or of a state between calls, by index.
// The other layers use it in the place of Lua's headers.
//
// Index 1 is the lowest value, -1 the one on top, as in Lua's manual. Functions that raise an error
// leave the frames of C++ between here and the protected call without destroying their variables:
// objects with destructors live outside of it, or in Lua. Each function that may raise documents
// it; all that make a value or a copy of a text may, with "not enough memory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

struct lua_State;

// Functions of Lua's C API that are called for each value, as Lua's header declares them: stack.cpp
// includes that, too, and the compiler compares. What uses stack calls none of them itself.
extern "C" {
int lua_gettop(lua_State* in);
void lua_settop(lua_State* in, int height);
void lua_pushvalue(lua_State* in, int index);
void lua_insert(lua_State* in, int index);
void lua_replace(lua_State* in, int index);
void lua_remove(lua_State* in, int index);
int lua_checkstack(lua_State* in, int slots);
int lua_type(lua_State* in, int index);
int lua_isstring(lua_State* in, int index);
int lua_toboolean(lua_State* in, int index);
double lua_tonumber(lua_State* in, int index);
const char* lua_tolstring(lua_State* in, int index, std::size_t* size);
void* lua_touserdata(lua_State* in, int index);
void lua_pushnil(lua_State* in);
void lua_pushboolean(lua_State* in, int value);
void lua_pushnumber(lua_State* in, double value);
void lua_pushlstring(lua_State* in, const char* text, std::size_t size);
void lua_pushcclosure(lua_State* in, int (*run)(lua_State* in), int values);
void lua_createtable(lua_State* in, int elements, int fields);
void lua_rawget(lua_State* in, int index);
void lua_rawgeti(lua_State* in, int index, int which);
void lua_rawset(lua_State* in, int index);
void lua_rawseti(lua_State* in, int index, int which);
void lua_setfield(lua_State* in, int index, const char* name);
int lua_next(lua_State* in, int index);
int lua_pcall(lua_State* in, int arguments, int results, int handler);
void luaL_checkstack(lua_State* in, int slots, const char* why);
}

namespace eddy::lua {

/// Function that Lua can call: its arguments are the values from index 1. Returns how many results
/// it has left on top.
using function = int (*)(lua_State* in);

/// Type of a value; `none` is beyond the top.
enum class value_type : std::int8_t {
    none = -1,
    nil,
    boolean,
    lightuserdata,
    number,
    string,
    table,
    function,
    userdata,
    thread
};

struct named_function {
    const char* name;
    function run;
};

/// State of a coroutine after stack::resume().
enum class progress : std::uint8_t {
    ended,      ///< its results are its values
    suspended,  ///< what it has left to stack::yield() are its values
    failed,     ///< the error is on top of its values; it cannot be resumed
};

/// Handle, as cheap as a pointer; valid as long as the running function, or as the state between
/// calls. The state's thread.
class stack {
public:
    stack(lua_State* in) noexcept : in_(in) {}

    lua_State* raw() const noexcept { return in_; }

    /// Index of a value that the running function was closed over, from 1 on.
    static int upvalueindex(int which) noexcept;

    // Height and order.
    int gettop() const noexcept { return lua_gettop(in_); }
    void settop(int height) const noexcept { lua_settop(in_, height); }
    void pop(int count = 1) const noexcept { lua_settop(in_, -count - 1); }
    void pushvalue(int index) const noexcept { lua_pushvalue(in_, index); }
    /// The value on top goes below the one at `index`, or takes its place.
    void insert(int index) const noexcept { lua_insert(in_, index); }
    void replace(int index) const noexcept { lua_replace(in_, index); }
    void remove(int index) const noexcept { lua_remove(in_, index); }
    /// Room for so many more values; false at Lua's limit, or raises.
    [[nodiscard]] bool checkstack(int slots) const { return lua_checkstack(in_, slots) != 0; }
    /// The same; at the limit it raises "stack overflow (why)".
    void checkstack(int slots, const char* why) const { luaL_checkstack(in_, slots, why); }

    // Reading. None raises but tostring() of a number.
    value_type type(int index) const noexcept {
        return static_cast<value_type>(lua_type(in_, index));
    }
    const char* type_name(int index) const noexcept;
    bool isnil(int index) const noexcept { return type(index) == value_type::nil; }
    bool istable(int index) const noexcept { return type(index) == value_type::table; }
    bool isfunction(int index) const noexcept { return type(index) == value_type::function; }
    /// A text, or a number, which tostring() makes one of.
    bool isstring(int index) const noexcept { return lua_isstring(in_, index) != 0; }
    /// A number, or a text that is one.
    bool isnumber(int index) const noexcept;
    bool toboolean(int index) const noexcept { return lua_toboolean(in_, index) != 0; }
    double tonumber(int index) const noexcept { return lua_tonumber(in_, index); }
    /// Valid as long as the value stands there. Empty when it has none.
    std::string_view tostring(int index) const {
        std::size_t size = 0;
        const char* const text = lua_tolstring(in_, index, &size);
        return {text, size};
    }
    /// Its type; a text is stored in `text`, too.
    value_type read_text(int index, std::string_view& text) const noexcept {
        const value_type what = type(index);
        if (what == value_type::string) text = tostring(index);
        return what;
    }
    void* touserdata(int index) const noexcept { return lua_touserdata(in_, index); }

    // New values on top.
    void pushnil() const noexcept { lua_pushnil(in_); }
    void pushboolean(bool value) const noexcept { lua_pushboolean(in_, value ? 1 : 0); }
    void pushnumber(double value) const noexcept { lua_pushnumber(in_, value); }
    void pushinteger(std::int64_t value) const noexcept;
    void pushlightuserdata(void* value) const;
    void pushstring(std::string_view text) const { lua_pushlstring(in_, text.data(), text.size()); }
    /// A list of texts.
    void pushstrings(const std::string_view* texts, std::size_t count) const;
    /// The upper `values` values are popped, and are what it is closed over.
    void pushcclosure(function run, int values = 0) const { lua_pushcclosure(in_, run, values); }
    /// Bytes that the collector frees. Their type must have no destructor.
    void* newuserdata(std::size_t bytes) const;
    /// A table with room for so many elements and fields.
    void createtable(int elements = 0, int fields = 0) const {
        lua_createtable(in_, elements, fields);
    }
    /// The upper `count` texts become one.
    void concat(int count) const;

    // Tables. Functions with "raw" in their name ignore metatables; the others may raise.
    void getfield(int index, const char* name) const;
    /// `index` is not that of a closed-over value.
    void rawgetfield(int index, std::string_view name) const {
        pushstring(name);
        lua_rawget(in_, index < 0 ? index - 1 : index);
    }
    void rawgeti(int index, int which) const noexcept { lua_rawgeti(in_, index, which); }
    /// Sets the field of the table at `index` to the value on top, which is popped.
    void setfield(int index, const char* name) const { lua_setfield(in_, index, name); }
    /// Sets a field of the table on top.
    void set_text(const char* name, std::string_view text) const {
        pushstring(text);
        setfield(-2, name);
    }
    void set_boolean(const char* name, bool value) const {
        pushboolean(value);
        setfield(-2, name);
    }
    void set_number(const char* name, double value) const {
        pushnumber(value);
        setfield(-2, name);
    }
    void set_functions(std::initializer_list<named_function> all) const;
    /// The key on top becomes its value in the table at `index`.
    void rawget(int index) const { lua_rawget(in_, index); }
    /// The table at `index` gets the value on top as its element, or the two on top as key and
    /// value.
    void rawseti(int index, int which) const { lua_rawseti(in_, index, which); }
    void rawset(int index) const { lua_rawset(in_, index); }
    /// The pair behind the key on top, which is popped: pushes both, or nothing at the end. Begins
    /// with nil. Raises for a key that is not there.
    bool next(int index) const { return lua_next(in_, index) != 0; }
    /// Sets the metatable of the value at `index` to the table on top, which is popped.
    void setmetatable(int index) const;
    void getglobal(const char* name) const;

    // Values that the state keeps. Any number but 0 or less means one.
    /// Pops the value on top. Raises.
    int ref() const;
    void getref(int kept) const noexcept;
    void unref(int kept) const noexcept;

    // Calls of the function below its arguments; both are popped.
    /// Raises the function's error.
    void call(int arguments, int results) const;
    /// Protected: true, or false with the error on top. The value at `handler` makes the error of
    /// what was raised, unless it is 0.
    [[nodiscard]] bool pcall(int arguments, int results, int handler = 0) const {
        return lua_pcall(in_, arguments, results, handler) == 0;
    }

    // Coroutines, each with values of its own.
    /// A new one, pushed here, which lives as long as its value is referred to. May raise.
    stack newthread() const;
    /// Moves the upper `count` values to another coroutine of the same state, which has room.
    void xmove(stack other, int count) const noexcept;
    /// Runs this coroutine: it begins with the function below its `arguments`, or continues and
    /// gets them as results of yield(). Protected. Before the next call, the caller drops the
    /// values that yield() has left.
    progress resume(int arguments) const noexcept;
    /// `return in.yield(n)` of a function suspends the running coroutine: resume() returns, with
    /// the upper `count` values. Raises within functions of C that call back, such as pcall().
    int yield(int count) const;
    /// True if yield() would not raise here.
    bool isyieldable() const noexcept;
    /// Sets the table of globals of the function at `index` to the one on top, which is popped.
    void setfenv(int index) const noexcept;

    // Errors.
    /// The value on top.
    [[noreturn]] void error() const;
    /// A text, with the place in Lua that has called the running function.
    [[noreturn]] void error(const char* text) const;

private:
    lua_State* in_;
};

}  // namespace eddy::lua
