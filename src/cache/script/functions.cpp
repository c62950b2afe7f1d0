// Loading libraries.
#include "cache/script/functions.hpp"

#include "cache/script/script_text.hpp"
#include "cache/script/scripts.hpp"

#include <lua.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace eddy::cache {
namespace {

constexpr const char* bad_name =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
    "character long";

bool is_name(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

std::string_view text_at(lua_State* in, int index) {
    std::size_t size = 0;
    const char* const text = lua_tolstring(in, index, &size);
    return {text, size};
}

// Called protected, with the library's code as a function in the registry.
int run_library(lua_State* in) {
    const int reference = *static_cast<int*>(lua_touserdata(in, 1));
    lua_settop(in, 0);
    lua_pushcfunction(in, note_error);
    lua_rawgeti(in, LUA_REGISTRYINDEX, reference);
    if (lua_pcall(in, 0, 0, 1) == 0) return 0;
    if (lua_istable(in, -1)) lua_getfield(in, -1, "err");
    return lua_error(in);
}

}  // namespace

libraries::libraries(scripts& of)
    : owner_(of), vm_(of, vm::purpose::functions, of.state().options.max_script_memory) {}

std::string libraries::load(std::string_view code, bool replace, std::string& why) {
    const script_head head = take_script_head(code, true);
    if (!head.refusal.empty()) {
        why = head.refusal;
        return {};
    }
    if (!head.has_name) {
        why = "Library name was not given";
        return {};
    }
    if (!is_name(head.name)) {
        why = bad_name;
        return {};
    }
    library* const old = find_library(head.name);
    if (old != nullptr && !replace) {
        why = "Library '" + std::string(head.name) + "' already exists";
        return {};
    }
    if (text_bytes() + code.size() > max_text_bytes) {
        why = "too many libraries: delete some first";
        return {};
    }
    int body = vm_.compile(head.rest, "@user_function", why);
    if (body == 0) {
        why = "Error compiling function: " + why;
        return {};
    }
    auto made = std::make_unique<library>();
    made->name = head.name;
    made->code = code;
    loading_ = made.get();
    owner_.limit_load(true);
    use_load_library(vm_.state(), true);
    const bool failed = lua_cpcall(vm_.state(), run_library, &body) != 0;
    owner_.limit_load(false);
    use_load_library(vm_.state(), false);
    loading_ = nullptr;
    vm_.forget(body);
    if (failed) {
        const char* const text = lua_tostring(vm_.state(), -1);
        why = "Error registering functions: " + std::string(text != nullptr ? text : "unknown");
        lua_pop(vm_.state(), 1);
    } else if (made->functions.empty()) {
        why = "No functions registered";
    }
    for (const auto& each : made->functions) {
        if (!why.empty()) break;
        for (const auto& other : all_) {
            if (other.get() == old) continue;
            if (std::ranges::none_of(other->functions,
                                     [&](const auto& f) { return f->name == each->name; }))
                continue;
            why = "Function " + each->name + " already exists";
        }
    }
    if (!why.empty()) {
        forget(*made);
        return {};
    }
    if (old != nullptr) remove(head.name);
    all_.push_back(std::move(made));
    return all_.back()->name;
}

libraries::library* libraries::find_library(std::string_view name) noexcept {
    for (const auto& each : all_) {
        if (each->name == name) return each.get();
    }
    return nullptr;
}

const libraries::function* libraries::find(std::string_view name) const noexcept {
    for (const auto& each : all_) {
        for (const auto& one : each->functions) {
            if (one->name == name) return one.get();
        }
    }
    return nullptr;
}

void libraries::forget(const library& gone) noexcept {
    for (const auto& each : gone.functions) vm_.forget(each->reference);
}

bool libraries::remove(std::string_view name) {
    const auto at =
        std::ranges::find_if(all_, [&](const auto& each) { return each->name == name; });
    if (at == all_.end()) return false;
    forget(**at);
    all_.erase(at);
    return true;
}

void libraries::flush() {
    all_.clear();
    vm_.reset();
}

std::size_t libraries::function_count() const noexcept {
    std::size_t count = 0;
    for (const auto& each : all_) count += each->functions.size();
    return count;
}

std::size_t libraries::text_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const auto& each : all_) bytes += each->code.size();
    return bytes;
}

// Two arguments, a name and a function, or a table with names.
int libraries::register_function(lua_State* in) {
    if (loading_ == nullptr) {
        raise(in, "redis.register_function can only be called on FUNCTION LOAD command");
    }
    const int count = lua_gettop(in);
    if (count < 1 || count > 2) raise(in, "wrong number of arguments to redis.register_function");
    if (count == 1 && !lua_istable(in, 1)) {
        raise(in,
              "calling redis.register_function with a single argument is only applicable to Lua "
              "table (representing named arguments).");
    }
    // On Lua's stack: 1 the name, 2 the function; flags and description below the table's fields.
    std::uint32_t flags = 0;
    std::string_view description;
    bool is_described = false;
    if (count == 1) {
        lua_settop(in, 1);
        lua_pushnil(in);  // 2: the name
        lua_pushnil(in);  // 3: the function
        lua_pushnil(in);  // 4: the description
        lua_pushnil(in);
        while (lua_next(in, 1) != 0) {
            if (lua_type(in, -2) != LUA_TSTRING) {
                raise(in, "named argument key given to redis.register_function is not a string");
            }
            const std::string_view key = text_at(in, -2);
            if (key == "function_name") {
                if (lua_isstring(in, -1) == 0) {
                    raise(
                        in,
                        "function_name argument given to redis.register_function must be a string");
                }
                lua_pushvalue(in, -1);
                lua_tostring(in, -1);
                lua_replace(in, 2);
            } else if (key == "description") {
                if (lua_isstring(in, -1) == 0) {
                    raise(in,
                          "description argument given to redis.register_function must be a string");
                }
                lua_pushvalue(in, -1);
                description = text_at(in, -1);
                is_described = true;
                lua_replace(in, 4);
            } else if (key == "callback") {
                if (!lua_isfunction(in, -1)) {
                    raise(in,
                          "callback argument given to redis.register_function must be a function");
                }
                lua_pushvalue(in, -1);
                lua_replace(in, 3);
            } else if (key == "flags") {
                if (!lua_istable(in, -1)) {
                    raise(in,
                          "flags argument to redis.register_function must be a table representing "
                          "function flags");
                }
                for (int i = 1;; ++i) {
                    lua_rawgeti(in, -1, i);
                    if (lua_isnil(in, -1)) break;
                    const std::uint32_t bit =
                        lua_type(in, -1) == LUA_TSTRING ? script_flag_named(text_at(in, -1)) : 0;
                    if (bit == 0) raise(in, "unknown flag given");
                    flags |= bit;
                    lua_pop(in, 1);
                }
                lua_pop(in, 1);
            } else {
                raise(in, "unknown argument given to redis.register_function");
            }
            lua_pop(in, 1);
        }
        if (lua_isnil(in, 2)) {
            raise(in, "redis.register_function must get a function name argument");
        }
        if (lua_isnil(in, 3)) raise(in, "redis.register_function must get a callback argument");
        lua_remove(in, 1);
    } else {
        if (lua_isstring(in, 1) == 0) {
            raise(in, "first argument to redis.register_function must be a string");
        }
        if (!lua_isfunction(in, 2)) {
            raise(in, "second argument to redis.register_function must be a function");
        }
    }
    const std::string_view name = text_at(in, 1);
    if (!is_name(name)) raise(in, bad_name);
    for (const auto& each : loading_->functions) {
        if (each->name == name) raise(in, "Function already exists in the library");
    }
    lua_pushvalue(in, 2);
    const int reference = luaL_ref(in, LUA_REGISTRYINDEX);
    auto made = std::make_unique<function>();
    made->name = name;
    made->description = description;
    made->is_described = is_described;
    made->reference = reference;
    made->flags = flags;
    loading_->functions.push_back(std::move(made));
    return 0;
}

int register_function(lua_State* in) {
    return vm::of(in).owner().functions().register_function(in);
}

}  // namespace eddy::cache
