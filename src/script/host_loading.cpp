// Load of a script: its statements, the functions that it defines, and its globals.
#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "lua/errors.hpp"
#include "script/host_bridge.hpp"

#include <new>
#include <utility>

namespace eddy::script {

int coroutine_host::bridge::load(lua_State* raw) {
    const lua::stack in(raw);
    host_job& todo = *static_cast<host_job*>(in.touserdata(1));
    in.settop(0);
    // Its own globals are a table in front of the sandbox's, which cannot be changed.
    in.createtable();
    in.createtable();
    if (todo.options->plain_globals)
        push_plain_globals(in);
    else
        in.getglobal("_G");
    in.setfield(-2, "__index");
    in.setmetatable(-2);
    in.pushvalue(1);
    todo.globals = in.ref();
    for (const int each : todo.chunks)
        if (!run_chunk(in, todo, each)) return 0;
    for (std::size_t i = 0; i < todo.functions.size(); ++i) keep_callback(in, todo, i);
    in.pushcclosure(begin);
    todo.begin = in.ref();
    return 0;
}

int coroutine_host::bridge::read_global(lua_State* raw) {
    const lua::stack in(raw);
    host_global_job& todo = *static_cast<host_global_job*>(in.touserdata(1));
    in.settop(0);
    in.checkstack(read_slots, "too many values");
    in.getref(todo.from);
    in.rawgetfield(1, todo.name);
    try {
        if (auto read = read_value(in, 2)) todo.one = std::move(*read);
    } catch (const std::bad_alloc&) {
        todo.lacks_memory = true;
    }
    return 0;
}

int coroutine_host::bridge::read_globals(lua_State* raw) {
    const lua::stack in(raw);
    host_global_job& todo = *static_cast<host_global_job*>(in.touserdata(1));
    in.settop(0);
    in.checkstack(read_slots, "too many values");
    in.getref(todo.from);
    in.pushnil();
    while (in.next(1)) {
        std::string_view name;
        const bool is_named = in.read_text(-2, name) == lua::value_type::string;
        try {
            if (is_named)
                if (auto read = read_value(in, in.gettop()))
                    todo.all.fields.emplace_back(name, std::move(*read));
        } catch (const std::bad_alloc&) {
            todo.lacks_memory = true;
            return 0;
        }
        in.pop();
    }
    return 0;
}

void coroutine_host::bridge::push_plain_globals(lua::stack in) {
    in.getglobal("pairs");
    in.getglobal("_G");
    in.call(1, 3);
    in.pop();
    in.remove(-2);
    in.pushvalue(1);
    in.setfield(-2, "_G");
}

bool coroutine_host::bridge::run_chunk(lua::stack in, host_job& todo, int chunk) {
    EDDY_ASSERT(in.gettop() == 1 && in.istable(1));
    const lua::stack at = in.newthread();
    in.getref(chunk);
    in.pushvalue(1);
    in.setfenv(-2);
    in.pushvalue(1);
    in.pushcclosure(share_globals, 1);
    in.pushcclosure(extend);
    in.xmove(at, 3);
    switch (at.resume(2)) {
        case lua::progress::ended: break;
        case lua::progress::suspended: in.error("the file's own statements may not yield");
        case lua::progress::failed: describe(at, in, todo); return false;
    }
    in.settop(1);
    return true;
}

int coroutine_host::bridge::share_globals(lua_State* raw) {
    const lua::stack in(raw);
    in.settop(1);
    if (!in.isfunction(1)) in.error("a function expected");
    in.pushvalue(lua::stack::upvalueindex(1));
    in.setfenv(1);
    return 1;
}

int coroutine_host::bridge::extend(lua_State* raw) {
    const lua::stack in(raw);
    in.settop(3);
    if (!in.istable(1) || !in.isstring(2)) in.error("a table and a name expected");
    lua::sandbox::extend(in, 1, in.tostring(2));
    return 0;
}

void coroutine_host::bridge::keep_callback(lua::stack in, host_job& to, std::size_t which) {
    const callback& row = to.options->callbacks[which];
    in.rawgetfield(1, row.name);
    if (in.isfunction(-1)) {
        to.parameters[which] = lua::sandbox::parameters_of(in);
        if (!row.wrapper.empty()) wrap(in, row);
        to.functions[which] = in.ref();
        return;
    }
    if (row.is_required) {
        in.pushstring("it defines no function ");
        in.pushstring(row.name);
        in.pushstring("(");
        in.pushstring(row.arguments);
        in.pushstring(")");
        in.concat(5);
        in.error();
    }
    if (!in.isnil(-1)) {
        in.pushstring("its ");
        in.pushstring(row.name);
        in.pushstring(" is no function");
        in.concat(3);
        in.error();
    }
    in.pop();
}

void coroutine_host::bridge::wrap(lua::stack in, const callback& row) {
    EDDY_ASSERT(in.isfunction(-1));
    in.getglobal("loadstring");
    in.pushstring(row.wrapper);
    in.pushstring("=results");
    in.call(2, 1);
    in.insert(-2);
    in.call(1, 1);
    if (!in.isfunction(-1)) in.error("the wrapper of a callback makes no function");
}

std::expected<void, std::string> coroutine_host::load(std::string_view text,
                                                      std::string_view name) {
    EDDY_ASSERT(!is_loaded_);
    begin_run(nullptr);
    host_job todo;
    todo.options = &options_;
    todo.functions.resize(functions_.size());
    todo.parameters.resize(functions_.size());
    std::string why;
    bool is_compiled = true;
    for (const prelude& each : options_.preludes)
        is_compiled = is_compiled && compile(each.text, each.name, todo.chunks, why);
    if (!is_compiled || !compile(text, name, todo.chunks, why))
        return std::unexpected(why.substr(0, options_.limits.error));
    const bool is_good = machine_.call_protected(bridge::load, &todo);
    machine_.check_always(false);
    ending_ = {};
    if (!is_good) {
        const lua::stack in = machine_.values();
        if (todo.failure.empty() && in.isstring(-1))
            todo.failure = std::string(name) + ": " + std::string(in.tostring(-1));
        in.pop();
    }
    if (todo.lacks_memory) return std::unexpected(no_memory_text);
    if (!todo.failure.empty()) return std::unexpected(todo.failure);
    functions_ = std::move(todo.functions);
    parameters_ = std::move(todo.parameters);
    globals_ = todo.globals;
    machine_.values().getref(todo.begin);
    EDDY_ASSERT(machine_.values().gettop() == begin_place);
    is_loaded_ = true;
    return {};
}

std::expected<void, std::string> coroutine_host::check(std::string_view text,
                                                       std::string_view name) {
    std::vector<int> chunk;
    std::string why;
    if (!compile(text, name, chunk, why))
        return std::unexpected(why.substr(0, options_.limits.error));
    machine_.forget(chunk.front());
    return {};
}

bool coroutine_host::compile(std::string_view text, std::string_view name, std::vector<int>& to,
                             std::string& why) {
    const std::string chunk_name = "@" + std::string(name);
    const int chunk = machine_.compile(text, chunk_name.c_str(), why);
    to.push_back(chunk);
    return chunk != 0;
}

value coroutine_host::global(const char* name) {
    EDDY_ASSERT(!state_lock_.locked());
    return read_global(name);
}

task<value> coroutine_host::global_later(const char* name) {
    permit lock = co_await lock_state();
    if (!lock) co_return value();
    value found = read_global(name);
    release(std::move(lock));
    co_return found;
}

value coroutine_host::read_global(const char* name) {
    EDDY_ASSERT(is_loaded_);
    host_global_job todo;
    todo.from = globals_;
    todo.name = name;
    if (!machine_.call_protected(bridge::read_global, &todo)) machine_.values().pop();
    if (todo.lacks_memory) throw std::bad_alloc();
    return std::move(todo.one);
}

task<table> coroutine_host::globals() {
    EDDY_ASSERT(is_loaded_);
    permit lock = co_await lock_state();
    if (!lock) co_return table();
    host_global_job todo;
    todo.from = globals_;
    if (!machine_.call_protected(bridge::read_globals, &todo)) machine_.values().pop();
    release(std::move(lock));
    if (todo.lacks_memory) throw std::bad_alloc();
    co_return std::move(todo.all);
}

task<std::expected<void, std::string>> coroutine_host::load_in_slices(std::string text,
                                                                      std::string name) {
    struct loading {
        coroutine_host& me;
        const std::string& text;
        const std::string& name;
        std::expected<void, std::string> done = {};
    } todo{*this, text, name};
    cancel_source* const source = co_await current_source();
    permit lock = state_lock_.try_lock();
    EDDY_ASSERT(lock);
    begin_turn();
    bool is_over = fiber_.start(
        [](void* of) {
            auto& its = *static_cast<loading*>(of);
            try {
                its.done = its.me.load(its.text, its.name);
            } catch (const std::bad_alloc&) {
                its.done = std::unexpected(no_memory_text);
            }
        },
        &todo);
    while (!is_over) {
        co_await loop::current().yield();
        if (is_requested(source)) ending_ = script_killed;
        begin_further_slice();
        begin_turn();
        is_over = fiber_.resume();
    }
    release(std::move(lock));
    co_return std::move(todo.done);
}

}  // namespace eddy::script
