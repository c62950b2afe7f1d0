// Loading libraries.
#include "cache/script/functions.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"
#include "cache/script/redis_library.hpp"
#include "cache/script/script_text.hpp"
#include "lua/errors.hpp"

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

using lua::raise_error;

bool has_function(const libraries::library& in, std::string_view name) noexcept {
    return std::ranges::any_of(
        in.functions, [name](const auto& each) { return equal_in_any_case(each->name, name); });
}

// Protected call; the library's code is a function in the registry.
int run_library(lua_State* raw) {
    const lua::stack in(raw);
    const int function = *static_cast<int*>(in.touserdata(1));
    in.settop(0);
    in.pushcclosure(lua::note_error);
    in.getref(function);
    if (in.pcall(0, 0, 1)) return 0;
    if (in.istable(-1)) in.getfield(-1, "err");
    in.error();
}

// Protected call; the table of globals is in the registry, or 0 for the usual ones.
int show_globals(lua_State* raw) {
    const lua::stack in(raw);
    const int table = *static_cast<int*>(in.touserdata(1));
    if (table == 0) {
        in.pushnil();
    } else {
        in.getref(table);
    }
    lua::sandbox::show_globals(in);
    return 0;
}

}  // namespace

libraries::libraries(script_runner& runner)
    : runner_(runner),
      sandbox_(runner, runner.state().settings.options.max_script_memory,
               [this](lua::stack in) { furnish(in); }) {}

void libraries::furnish(lua::stack in) {
    runner_.seed_random(in);
    push_redis_library(in, true);
    set_redis_library(in);
    in.pushlightuserdata(this);
    in.pushcclosure(register_function, 1);
    push_load_globals(in);
    load_globals_ = in.ref();
}

void libraries::use_globals(int table) {
    const bool done = sandbox_.call_protected(show_globals, &table);
    EDDY_ASSERT(done);
}

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
    if (!is_word(head.engine, "lua")) {
        why = "Engine '" + head.engine + "' not found";
        return {};
    }
    library* const old = find_library(head.name);
    if (old != nullptr && !replace) {
        why = "Library '" + head.name + "' already exists";
        return {};
    }
    if (text_bytes() + code.size() > max_text_bytes) {
        why = "too many libraries: delete some first";
        return {};
    }
    int body = sandbox_.compile(head.rest, "@user_function", why);
    if (body == 0) {
        why = "Error compiling function: " + why;
        return {};
    }
    auto made = std::make_unique<library>();
    made->name = head.name;
    made->code = code;
    loading_ = made.get();
    runner_.begin_load(sandbox_, max_load_ms);
    use_globals(load_globals_);
    const bool failed = !sandbox_.call_protected(run_library, &body);
    runner_.end_load(sandbox_);
    use_globals(0);
    loading_ = nullptr;
    sandbox_.forget(body);
    if (failed) {
        const lua::stack in = sandbox_.values();
        std::string_view text = "unknown";
        if (in.isstring(-1)) text = in.tostring(-1);
        why = "Error registering functions: " + std::string(text.substr(0, text.find('\0')));
        in.pop();
    } else if (made->functions.empty()) {
        why = "No functions registered";
    }
    for (const auto& each : made->functions) {
        if (!why.empty()) break;
        for (const auto& other : all_) {
            if (other.get() == old) continue;
            if (!has_function(*other, each->name)) continue;
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
            if (equal_in_any_case(one->name, name)) return one.get();
        }
    }
    return nullptr;
}

void libraries::forget(const library& gone) noexcept {
    for (const auto& each : gone.functions) sandbox_.forget(each->reference);
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
    sandbox_.reset();
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

namespace {

/// Arguments of redis.register_function() besides the name and the function, which are at 1 and 2
/// on Lua's stack. The description's text is on the stack, too.
struct registration {
    std::uint32_t flags = 0;
    std::string_view description;
    bool is_described = false;
};

/// Reads the flags in the table on top.
std::uint32_t read_function_flags(lua::stack in) {
    if (!in.istable(-1)) {
        raise_error(in,
                    "flags argument to redis.register_function must be a table representing "
                    "function flags");
    }
    std::uint32_t flags = 0;
    for (int i = 1;; ++i) {
        in.rawgeti(-1, i);
        if (in.isnil(-1)) break;
        const std::uint32_t bit =
            in.type(-1) == lua::value_type::string ? script_flag_named(in.tostring(-1)) : 0;
        if (bit == 0) raise_error(in, "unknown flag given");
        flags |= bit;
        in.pop();
    }
    in.pop();
    return flags;
}

/// Reads the named argument whose value is on top, for read_named().
void read_argument(lua::stack in, std::string_view key, registration& into) {
    if (key == "function_name") {
        if (!in.isstring(-1)) {
            raise_error(in,
                        "function_name argument given to redis.register_function must be a string");
        }
        in.pushvalue(-1);
        static_cast<void>(in.tostring(-1));
        in.replace(2);
    } else if (key == "description") {
        if (!in.isstring(-1)) {
            raise_error(in,
                        "description argument given to redis.register_function must be a string");
        }
        in.pushvalue(-1);
        into.description = in.tostring(-1);
        into.is_described = true;
        in.replace(4);
    } else if (key == "callback") {
        if (!in.isfunction(-1)) {
            raise_error(in,
                        "callback argument given to redis.register_function must be a function");
        }
        in.pushvalue(-1);
        in.replace(3);
    } else if (key == "flags") {
        into.flags |= read_function_flags(in);
    } else {
        raise_error(in, "unknown argument given to redis.register_function");
    }
}

/// The only argument is a table with names: replaces it by the name and the function.
void read_named(lua::stack in, registration& into) {
    in.settop(1);
    in.pushnil();  // 2: the name
    in.pushnil();  // 3: the function
    in.pushnil();  // 4: the description
    in.pushnil();
    while (in.next(1)) {
        if (in.type(-2) != lua::value_type::string) {
            raise_error(in, "named argument key given to redis.register_function is not a string");
        }
        read_argument(in, in.tostring(-2), into);
        in.pop();
    }
    if (in.isnil(2)) {
        raise_error(in, "redis.register_function must get a function name argument");
    }
    if (in.isnil(3)) raise_error(in, "redis.register_function must get a callback argument");
    in.remove(1);
}

/// Checks the two arguments, a name and a function.
void check_unnamed(lua::stack in) {
    if (!in.isstring(1)) {
        raise_error(in, "first argument to redis.register_function must be a string");
    }
    if (!in.isfunction(2)) {
        raise_error(in, "second argument to redis.register_function must be a function");
    }
}

}  // namespace

// Takes two arguments, a name and a function, or a table with names.
int libraries::register_function(lua_State* raw) {
    const lua::stack in(raw);
    libraries& me = *static_cast<libraries*>(in.touserdata(lua::stack::upvalueindex(1)));
    if (me.loading_ == nullptr) {
        raise_error(in, "redis.register_function can only be called on FUNCTION LOAD command");
    }
    const int count = in.gettop();
    if (count < 1 || count > 2)
        raise_error(in, "wrong number of arguments to redis.register_function");
    if (count == 1 && !in.istable(1)) {
        raise_error(
            in,
            "calling redis.register_function with a single argument is only applicable to Lua "
            "table (representing named arguments).");
    }
    registration given;
    if (count == 1)
        read_named(in, given);
    else
        check_unnamed(in);
    const std::string_view name = in.tostring(1);
    if (!is_name(name)) raise_error(in, bad_name);
    if (has_function(*me.loading_, name)) raise_error(in, "Function already exists in the library");
    in.pushvalue(2);
    const int reference = in.ref();
    auto made = std::make_unique<function>();
    made->name = name;
    made->description = given.description;
    made->is_described = given.is_described;
    made->reference = reference;
    made->flags = given.flags;
    me.loading_->functions.push_back(std::move(made));
    return 0;
}

}  // namespace eddy::cache
