// Calls between a script and the program: a callback's arguments and results, and the functions
// that it calls.
#include <eddy/base/assert.hpp>

#include "lua/errors.hpp"
#include "script/host_bridge.hpp"

#include <new>
#include <optional>
#include <utility>

namespace eddy::script {
namespace {

/// A call of a function, in instructions of a script: some microseconds.
constexpr std::size_t steps_a_call = 500;

// First result of a function that has failed, where another one raises its error: scripts can make
// no such pointer.
constexpr char mark = 0;
void* mark_pointer() noexcept { return const_cast<char*>(&mark); }

}  // namespace

int coroutine_host::bridge::begin(lua_State* raw) {
    const lua::stack in(raw);
    coroutine_host& me = host_of(in);
    call& of = *me.running_;
    if (me.idle_.empty()) {
        const lua::stack made = in.newthread();
        of.kept_ = in.ref();
        of.at_ = made;
        ++me.kept_;
    } else {
        of.kept_ = me.idle_.back().kept;
        of.at_ = me.idle_.back().at;
        me.idle_.pop_back();
    }
    in.getref(of.function_);
    const int arguments = of.push_arguments(in);
    EDDY_ASSERT(arguments >= 0 && arguments <= static_cast<int>(max_values));
    in.xmove(of.at_, arguments + 1);
    me.arguments_ = arguments;
    return 0;
}

int coroutine_host::bridge::push_answer(lua_State* raw) {
    const lua::stack in(raw);
    host_job& todo = *static_cast<host_job*>(in.touserdata(1));
    call& of = *todo.of;
    in.settop(0);
    todo.arguments = push_results(in, of.answer_, *of.row_);
    in.xmove(of.at_, todo.arguments);
    return 0;
}

int coroutine_host::bridge::read_results(lua_State* raw) {
    const lua::stack in(raw);
    host_job& todo = *static_cast<host_job*>(in.touserdata(1));
    call& of = *todo.of;
    const int count = static_cast<int>(of.results_);
    in.settop(0);
    in.checkstack(count + read_slots, "too many results");
    of.at_.settop(count);
    of.at_.xmove(in, count);
    try {
        of.host_.end_.results.reserve(static_cast<std::size_t>(count));
        for (int i = 1; i <= count && todo.failure.empty(); ++i) {
            auto result = read_value(in, i);
            if (result)
                of.host_.end_.results.push_back(std::move(*result));
            else
                todo.failure = std::string(of.name_) + "() returned " + result.error();
        }
    } catch (const std::bad_alloc&) {
        todo.lacks_memory = true;
    }
    return 0;
}

int coroutine_host::bridge::read_failure(lua_State* raw) {
    const lua::stack in(raw);
    host_job& todo = *static_cast<host_job*>(in.touserdata(1));
    describe(todo.of->at_, in, todo);
    return 0;
}

coroutine_host& coroutine_host::bridge::host_of(lua::stack in) noexcept {
    return static_cast<coroutine_host&>(lua::sandbox::of(in).supervised_by());
}

int coroutine_host::bridge::enter(lua_State* raw) {
    const lua::stack in(raw);
    coroutine_host& me = host_of(in);
    const auto& row =
        *static_cast<const library_function*>(in.touserdata(lua::stack::upvalueindex(1)));
    const auto& of = *static_cast<const library*>(in.touserdata(lua::stack::upvalueindex(2)));
    if (const char* const fault = misplaced(in, me, row)) return raise(in, row, fault);
    if (!take_arguments(in, row)) return raise(in, row, misuse_text(me, row));
    // May leave the script in the middle, or end it.
    me.machine_.count_steps(in, steps_a_call);
    take_function(in, me, row);
    std::size_t steps = 0;
    const bool is_done = invoke(in, me, row, of, steps);
    // The same.
    if (steps > 0) me.machine_.count_steps(in, steps);
    if (is_done) return leave(in, me, row);
    if (!row.waits) return raise(in, row, no_memory_text);
    me.end_ = lack_of_memory();
    return suspend(in, me, row, call::state::over);
}

const char* coroutine_host::bridge::misplaced(lua::stack in, const coroutine_host& me,
                                              const library_function& row) noexcept {
    if (!row.waits) return nullptr;
    if (me.running_ == nullptr) return me.outside_text_.c_str();
    if (me.running_->at_.raw() != in.raw()) return me.nested_text_.c_str();
    return in.isyieldable() ? nullptr : "attempt to yield across C-call boundary";
}

bool coroutine_host::bridge::take_arguments(lua::stack in, const library_function& row) {
    int count = 0;
    bool is_copied = false;
    for (const argument& each : row.arguments) {
        if (each.name.empty()) break;
        ++count;
        if (each.kind == argument_kind::text && in.type(count) == lua::value_type::number)
            static_cast<void>(in.tostring(count));
        is_copied |= each.kind == argument_kind::any || each.kind == argument_kind::table;
        if (!is_of(in, count, each)) return false;
    }
    in.settop(count);
    // It would make the stack of each coroutine larger.
    if (is_copied) in.checkstack(read_slots, "too many values");
    return true;
}

bool coroutine_host::bridge::is_of(lua::stack in, int which, const argument& wanted) noexcept {
    const lua::value_type found = in.type(which);
    if (found == lua::value_type::none || found == lua::value_type::nil) return wanted.is_optional;
    switch (wanted.kind) {
        case argument_kind::any: return true;
        case argument_kind::text: return found == lua::value_type::string;
        case argument_kind::number: return in.isnumber(which);
        case argument_kind::boolean: return found == lua::value_type::boolean;
        case argument_kind::table: return found == lua::value_type::table;
        case argument_kind::function: return found == lua::value_type::function;
    }
    return false;
}

void coroutine_host::bridge::take_function(lua::stack in, coroutine_host& me,
                                           const library_function& row) {
    int count = 0;
    for (const argument& each : row.arguments) {
        if (each.name.empty()) return;
        ++count;
        if (each.kind != argument_kind::function || in.isnil(count)) continue;
        if (!me.try_reserve_drops()) in.error(no_memory_text);
        in.pushvalue(count);
        const int kept = in.ref();
        ++me.kept_;
        me.given_ = kept_function(me, kept);
        return;
    }
}

const char* coroutine_host::bridge::misuse_text(coroutine_host& me,
                                                const library_function& row) noexcept {
    try {
        me.text_ = std::string(row.name) + "() takes " + std::string(row.takes);
    } catch (const std::bad_alloc&) {
        return no_memory_text;
    }
    return me.text_.c_str();
}

bool coroutine_host::bridge::invoke(lua::stack in, coroutine_host& me, const library_function& row,
                                    const library& of, std::size_t& steps) noexcept {
    invocation made(in, me.running_, of.context, me.given_);
    bool is_done = true;
    try {
        me.answer_ = row.run(made);
    } catch (const std::bad_alloc&) {
        me.answer_ = answer();
        is_done = false;
    }
    steps = made.steps();
    me.is_pause_ = made.is_pause();
    if (me.given_) [[unlikely]]
        me.given_ = kept_function();
    return is_done;
}

int coroutine_host::bridge::leave(lua::stack in, coroutine_host& me, const library_function& row) {
    if (const auto* const why = std::get_if<answer::misuse>(&me.answer_.is_))
        return raise(in, row, why->text.empty() ? misuse_text(me, row) : why->text.c_str());
    if (std::holds_alternative<task<function_result>>(me.answer_.is_))
        return suspend(in, me, row, call::state::waits);
    const bool has_failed = std::holds_alternative<answer::failure>(me.answer_.is_);
    if (has_failed && row.failure == on_failure::ends)
        return suspend(in, me, row, call::state::gone);
    // The lock of the state goes to the next call in line.
    if (row.waits && me.has_used_slice_ && !me.queue_.empty())
        return suspend(in, me, row, call::state::ready);
    if (has_failed && row.failure == on_failure::raises)
        return raise(in, row, std::get<answer::failure>(me.answer_.is_).text.c_str());
    in.settop(0);
    return push_results(in, me.answer_, row);
}

int coroutine_host::bridge::suspend(lua::stack in, coroutine_host& me, const library_function& row,
                                    call::state why) {
    EDDY_ASSERT(row.waits);
    call& of = *me.running_;
    of.state_ = why;
    of.row_ = &row;
    of.answer_ = std::move(me.answer_);
    of.has_paused_ = why == call::state::ready || me.is_pause_;
    return in.yield(0);
}

int coroutine_host::bridge::raise(lua::stack in, const library_function& row, const char* why) {
    if (!is_pair(row)) in.error(why);
    in.settop(0);
    in.pushlightuserdata(mark_pointer());
    in.pushstring(why);
    return 2;
}

int coroutine_host::bridge::push_results(lua::stack in, const answer& from,
                                         const library_function& row) {
    if (const auto* const why = std::get_if<answer::failure>(&from.is_)) {
        if (row.failure == on_failure::raises)
            in.pushlightuserdata(mark_pointer());
        else
            in.pushnil();
        in.pushstring(why->text);
        return 2;
    }
    if (const bool* const truth = std::get_if<bool>(&from.is_)) {
        in.pushboolean(*truth);
        return 1;
    }
    const values& all = std::get<values>(from.is_);
    EDDY_ASSERT(all.size() <= max_values);
    for (const value& each : all) push_value(in, each);
    return static_cast<int>(all.size());
}

int coroutine_host::bridge::finish(lua_State* raw) {
    const lua::stack in(raw);
    if (in.gettop() == 2 && in.type(1) == lua::value_type::lightuserdata &&
        in.touserdata(1) == mark_pointer())
        in.error(in.tostring(2).data());
    return in.gettop();
}

void coroutine_host::bridge::describe(lua::stack failed, lua::stack in, host_job& to) noexcept {
    try {
        to.failure = lua::describe_failure(failed, in, to.options->limits.error);
    } catch (const std::bad_alloc&) {
        to.lacks_memory = true;
    }
}

call_end lack_of_memory() noexcept {
    call_end end;
    end.what = call_end::kind::failed;
    end.reason = no_memory;
    return end;
}

}  // namespace eddy::script
