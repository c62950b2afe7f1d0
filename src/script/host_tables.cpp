// Tables of a new state: the libraries of a script, whose functions are those of host_calls.cpp.
#include <eddy/base/assert.hpp>

#include "script/host_bridge.hpp"

#include <cstring>

namespace eddy::script {
namespace {

constexpr std::string_view pair_text =
    "local begin, finish = ... return function(...) return finish(begin(...)) end";

}  // namespace

void coroutine_host::bridge::furnish(const host_options& options, lua::stack in) {
    // Tables by their names, and those within them, until all are complete.
    in.createtable();
    for (const library& each : options.libraries) {
        push_table(in, each.name);
        for (const library_function& row : each.functions) {
            push_function(in, each, row);
            in.setfield(-2, row.name);
        }
        for (const library_constant& constant : each.constants) {
            if (const double* const number = std::get_if<double>(&constant.is))
                in.pushnumber(*number);
            else
                in.pushstring(std::get<std::string>(constant.is));
            in.setfield(-2, constant.name);
        }
        in.settop(tables);
    }
    for (const library& each : options.libraries) {
        const char* const dot = std::strchr(each.name, '.');
        if (dot == nullptr) continue;
        seal_inner(in, each.name, dot);
    }
    for (const library& each : options.libraries)
        if (*each.name != '\0' && std::strchr(each.name, '.') == nullptr) seal(in, each);
    in.settop(1);
    lua::sandbox::push_time_library(in);
    lua::sandbox::protect(in);
    in.setfield(1, "os");
    in.pushvalue(1);
    in.pushcclosure(require, 1);
    in.setfield(1, "require");
    // LuaJIT's own can be suspended, the sandbox's cannot.
    in.getglobal("pcall");
    lua::sandbox::wrap_in_lua(in);
    in.setfield(1, "pcall");
}

int coroutine_host::bridge::require(lua_State* raw) {
    const lua::stack in(raw);
    in.settop(1);
    if (!in.isstring(1)) in.error("require() takes the name of a module");
    const std::string_view name = in.tostring(1);
    for (const std::string_view each :
         {"bit", "cjson", "cmsgpack", "math", "os", "string", "struct", "table"}) {
        if (name != each) continue;
        in.pushvalue(lua::stack::upvalueindex(1));
        in.rawgetfield(2, name);
        return 1;
    }
    in.error(
        "there is no such module: scripts have bit, cjson, cmsgpack, math, os, string, "
        "struct and table");
}

void coroutine_host::bridge::push_table(lua::stack in, const char* name) {
    if (*name == '\0') return in.pushvalue(1);
    const char* const dot = std::strchr(name, '.');
    const std::string_view whole(name);
    const std::string_view first =
        dot == nullptr ? whole : whole.substr(0, static_cast<std::size_t>(dot - name));
    push_field(in, tables, first);
    if (dot == nullptr) return;
    push_field(in, in.gettop(), dot + 1);
    in.remove(-2);
}

void coroutine_host::bridge::push_field(lua::stack in, int of, std::string_view name) {
    in.rawgetfield(of, name);
    if (!in.isnil(-1)) return;
    in.pop();
    in.createtable();
    in.pushstring(name);
    in.pushvalue(-2);
    in.rawset(of);
}

void coroutine_host::bridge::seal_inner(lua::stack in, const char* name, const char* dot) {
    push_field(in, tables, std::string_view(name, static_cast<std::size_t>(dot - name)));
    push_field(in, in.gettop(), dot + 1);
    lua::sandbox::protect(in);
    in.setfield(-2, dot + 1);
    in.settop(tables);
}

void coroutine_host::bridge::seal(lua::stack in, const library& of) {
    in.rawgetfield(1, of.name);
    if (!in.isnil(-1)) return in.settop(tables);
    push_field(in, tables, of.name);
    lua::sandbox::protect(in);
    for (const char* const name : of.other_names) {
        in.pushvalue(-1);
        in.setfield(1, name);
    }
    in.setfield(1, of.name);
    in.settop(tables);
}

void coroutine_host::bridge::push_function(lua::stack in, const library& of,
                                           const library_function& row) {
    if (row.run == nullptr) {
        in.rawgetfield(1, row.existing[0]);
        in.getfield(-1, row.existing[1]);
        return in.remove(-2);
    }
    EDDY_ASSERT(row.waits || row.failure != on_failure::ends);
    if (is_pair(row)) {
        in.getglobal("loadstring");
        in.pushstring(pair_text);
        in.pushstring("=[library]");
        in.call(2, 1);
    }
    in.pushlightuserdata(const_cast<library_function*>(&row));
    in.pushlightuserdata(const_cast<library*>(&of));
    in.pushcclosure(enter, 2);
    if (!is_pair(row)) return;
    in.pushcclosure(finish);
    in.call(2, 1);
}

}  // namespace eddy::script
