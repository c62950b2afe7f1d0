// Loading of a script, its calls, and what Lua calls.
#include "script/coroutine_host.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "lua/errors.hpp"

#include <time.h>

#include <new>
#include <optional>
#include <utility>

namespace eddy::script {
namespace {

/// Time that the thread has had the processor. What others take of a busy machine is not the
/// script's.
std::chrono::nanoseconds processor_time() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// A call of a function, in instructions of a script: some microseconds.
constexpr std::size_t steps_a_call = 500;

constexpr const char* no_memory_text = "not enough memory";

// First result of a function that has failed, where another one raises its error: scripts can make
// no such pointer.
constexpr char mark = 0;
void* mark_pointer() noexcept { return const_cast<char*>(&mark); }

/// A suspended coroutine is resumed with results, never with an error. So a function whose failures
/// are errors, and may come after a wait, is two: the second one raises what the first has
/// returned. The tail call leaves no frame, so the error's place is the script's.
constexpr std::string_view pair_text =
    "local begin, finish = ... return function(...) return finish(begin(...)) end";
bool is_pair(const library_function& row) noexcept {
    return row.waits && row.failure == on_failure::raises;
}

/// "a(), b() and c()".
std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
        text += names[i] + "()";
    }
    return text;
}

/// Names of waiting functions for an error's text: a few, not dozens.
std::string names_of_waits(const std::vector<library>& all) {
    constexpr std::size_t most = 4;
    std::vector<std::string> names;
    for (const library& each : all)
        for (const library_function& row : each.functions)
            if (row.waits)
                names.push_back(std::string(each.name) + (*each.name == '\0' ? "" : ".") +
                                row.name);
    return names.size() > most ? "functions that wait" : listed(names);
}

std::string names_of_callbacks(const std::vector<callback>& all) {
    std::vector<std::string> names;
    for (const callback& each : all) names.emplace_back(each.name);
    return listed(names);
}

call_end lack_of_memory() noexcept {
    call_end end;
    end.what = call_end::kind::failed;
    end.reason = no_memory;
    return end;
}

bool is_requested(const cancel_source* source) noexcept {
    return source != nullptr && source->requested();
}

/// Input and output of a protected function; its failure has a text.
struct job {
    const host_options* options = nullptr;
    call* of = nullptr;
    lua::stack at = nullptr;
    int kept = 0;
    int chunk = 0;
    int arguments = 0;
    std::vector<int> functions = {};
    std::string failure = {};
    bool lacks_memory = false;
};

void describe(lua::stack failed, lua::stack in, job& to) noexcept {
    try {
        to.failure = lua::describe_failure(failed, in, to.options->limits.error);
    } catch (const std::bad_alloc&) {
        to.lacks_memory = true;
    }
}

}  // namespace

/// Functions of Lua.
class coroutine_host::bridge {
public:
    /// Adds the libraries to a new state.
    static void furnish(const host_options& options, lua::stack in) {
        for (const library& each : options.libraries) {
            const bool is_table = *each.name != '\0';
            if (is_table)
                in.createtable();
            else
                in.pushvalue(1);
            for (const library_function& row : each.functions) {
                push_function(in, each, row);
                in.setfield(-2, row.name);
            }
            if (!is_table) {
                in.pop();
                continue;
            }
            lua::sandbox::protect(in);
            in.setfield(1, each.name);
        }
        // LuaJIT's own can be suspended, the sandbox's cannot.
        in.getglobal("pcall");
        in.setfield(1, "pcall");
    }

    static int load(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.touserdata(1));
        in.settop(0);
        // Its own globals are a table in front of the sandbox's, which cannot be changed.
        in.createtable();
        in.createtable();
        in.getglobal("_G");
        in.setfield(-2, "__index");
        in.setmetatable(-2);
        const lua::stack at = in.newthread();
        in.getref(todo.chunk);
        in.pushvalue(1);
        in.setfenv(-2);
        in.xmove(at, 1);
        switch (at.resume(0)) {
            case lua::progress::ended: break;
            case lua::progress::suspended: in.error("the file's own statements may not yield");
            case lua::progress::failed: describe(at, in, todo); return 0;
        }
        for (std::size_t i = 0; i < todo.functions.size(); ++i) keep_callback(in, todo, i);
        return 0;
    }

    static int begin(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.touserdata(1));
        call& of = *todo.of;
        in.settop(0);
        todo.at = in.newthread();
        in.getref(of.host_.functions_[of.callback_]);
        const int arguments = of.push_arguments(in);
        EDDY_ASSERT(arguments >= 0 && arguments <= static_cast<int>(max_values));
        in.xmove(todo.at, arguments + 1);
        todo.kept = in.ref();
        todo.arguments = arguments;
        return 0;
    }

    /// The results of the function that the call is suspended in.
    static int push_answer(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.touserdata(1));
        call& of = *todo.of;
        in.settop(0);
        todo.arguments = push_results(in, of.answer_, *of.row_);
        in.xmove(of.at_, todo.arguments);
        return 0;
    }

    /// Reads the results of the callback.
    static int read_results(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.touserdata(1));
        call& of = *todo.of;
        const int count = static_cast<int>(todo.options->callbacks[of.callback_].results);
        in.settop(0);
        in.checkstack(count + read_slots, "too many results");
        of.at_.settop(count);
        of.at_.xmove(in, count);
        try {
            for (int i = 1; i <= count && todo.failure.empty(); ++i) {
                auto result = read_value(in, i);
                if (result)
                    of.host_.end_.results.push_back(std::move(*result));
                else
                    todo.failure = std::string(todo.options->callbacks[of.callback_].name) +
                                   "() returned " + result.error();
            }
        } catch (const std::bad_alloc&) {
            todo.lacks_memory = true;
        }
        return 0;
    }

    static int read_failure(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.touserdata(1));
        describe(todo.of->at_, in, todo);
        return 0;
    }

private:
    static void push_function(lua::stack in, const library& of, const library_function& row) {
        EDDY_ASSERT(row.waits || row.failure != on_failure::ends);
        if (is_pair(row)) {
            in.getglobal("loadstring");
            in.pushstring(pair_text);
            in.pushstring("=library");
            in.call(2, 1);
        }
        in.pushlightuserdata(const_cast<library_function*>(&row));
        in.pushlightuserdata(const_cast<library*>(&of));
        in.pushcclosure(enter, 2);
        if (!is_pair(row)) return;
        in.pushcclosure(finish);
        in.call(2, 1);
    }

    static void keep_callback(lua::stack in, job& to, std::size_t which) {
        const callback& row = to.options->callbacks[which];
        in.rawgetfield(1, row.name);
        if (in.isfunction(-1)) {
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

    static coroutine_host& host_of(lua::stack in) noexcept {
        return static_cast<coroutine_host&>(lua::sandbox::of(in).supervised_by());
    }

    /// A function of a library.
    static int enter(lua_State* raw) {
        const lua::stack in(raw);
        coroutine_host& me = host_of(in);
        const auto& row =
            *static_cast<const library_function*>(in.touserdata(lua::stack::upvalueindex(1)));
        const auto& of = *static_cast<const library*>(in.touserdata(lua::stack::upvalueindex(2)));
        if (const char* const fault = misplaced(in, me, row)) return raise(in, row, fault);
        if (!take_arguments(in, row)) return raise(in, row, misuse_text(me, row));
        // May leave the script in the middle, or end it.
        me.machine_.count_steps(in, steps_a_call);
        if (invoke(in, me, row, of)) return leave(in, me, row);
        if (!row.waits) return raise(in, row, no_memory_text);
        me.end_ = lack_of_memory();
        return suspend(in, me, row, call::state::over);
    }

    /// Why a function that waits cannot do so here; null if it can.
    static const char* misplaced(lua::stack in, const coroutine_host& me,
                                 const library_function& row) noexcept {
        if (!row.waits) return nullptr;
        if (me.running_ == nullptr) return me.outside_text_.c_str();
        if (me.running_->at_.raw() != in.raw()) return me.nested_text_.c_str();
        return in.isyieldable() ? nullptr : "attempt to yield across C-call boundary";
    }

    /// Checks the arguments, and drops further ones.
    static bool take_arguments(lua::stack in, const library_function& row) {
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

    static bool is_of(lua::stack in, int which, const argument& wanted) noexcept {
        const lua::value_type found = in.type(which);
        if (found == lua::value_type::none || found == lua::value_type::nil)
            return wanted.is_optional;
        switch (wanted.kind) {
            case argument_kind::any: return true;
            case argument_kind::text: return found == lua::value_type::string;
            case argument_kind::number: return in.isnumber(which);
            case argument_kind::boolean: return found == lua::value_type::boolean;
            case argument_kind::table: return found == lua::value_type::table;
        }
        return false;
    }

    static const char* misuse_text(coroutine_host& me, const library_function& row) noexcept {
        try {
            me.text_ = std::string(row.name) + "() takes " + std::string(row.takes);
        } catch (const std::bad_alloc&) {
            return no_memory_text;
        }
        return me.text_.c_str();
    }

    /// Runs the code, whose exceptions must not pass Lua's frames. False without memory.
    static bool invoke(lua::stack in, coroutine_host& me, const library_function& row,
                       const library& of) noexcept {
        invocation made(in, me.running_, of.context);
        try {
            me.answer_ = row.run(made);
        } catch (const std::bad_alloc&) {
            me.answer_ = answer();
            return false;
        }
        return true;
    }

    static int leave(lua::stack in, coroutine_host& me, const library_function& row) {
        if (const auto* const why = std::get_if<answer::misuse>(&me.answer_.is_))
            return raise(in, row, why->text.empty() ? misuse_text(me, row) : why->text.c_str());
        if (std::holds_alternative<task<function_result>>(me.answer_.is_))
            return suspend(in, me, row, call::state::waits);
        const bool has_failed = std::holds_alternative<answer::failure>(me.answer_.is_);
        if (has_failed && row.failure == on_failure::ends)
            return suspend(in, me, row, call::state::gone);
        if (row.waits) {
            me.has_waited_ = true;
            // The lock of the state goes to the next call in line.
            if (me.has_used_slice_ && me.queued_ > 0)
                return suspend(in, me, row, call::state::ready);
        }
        if (has_failed && row.failure == on_failure::raises)
            return raise(in, row, std::get<answer::failure>(me.answer_.is_).text.c_str());
        in.settop(0);
        return push_results(in, me.answer_, row);
    }

    static int suspend(lua::stack in, coroutine_host& me, const library_function& row,
                       call::state why) {
        EDDY_ASSERT(row.waits);
        call& of = *me.running_;
        of.state_ = why;
        of.row_ = &row;
        of.answer_ = std::move(me.answer_);
        return in.yield(0);
    }

    static int raise(lua::stack in, const library_function& row, const char* why) {
        if (!is_pair(row)) in.error(why);
        in.settop(0);
        in.pushlightuserdata(mark_pointer());
        in.pushstring(why);
        return 2;
    }

    /// Pushes the script's values and returns their number.
    static int push_results(lua::stack in, const answer& from, const library_function& row) {
        if (const auto* const why = std::get_if<answer::failure>(&from.is_)) {
            if (row.failure == on_failure::raises)
                in.pushlightuserdata(mark_pointer());
            else
                in.pushnil();
            in.pushstring(why->text);
            return 2;
        }
        const values& all = std::get<values>(from.is_);
        EDDY_ASSERT(all.size() <= max_values);
        for (const value& each : all) push_value(in, each);
        return static_cast<int>(all.size());
    }

    /// Second part of a pair.
    static int finish(lua_State* raw) {
        const lua::stack in(raw);
        if (in.gettop() == 2 && in.type(1) == lua::value_type::lightuserdata &&
            in.touserdata(1) == mark_pointer())
            in.error(in.tostring(2).data());
        return in.gettop();
    }
};

call::call(coroutine_host& in, std::size_t callback) noexcept : host_(in), callback_(callback) {
    EDDY_ASSERT(in.defines(callback));
}

call::~call() { host_.drop(*this); }

coroutine_host::coroutine_host(host_options options)
    : options_(std::move(options)),
      outside_text_(names_of_waits(options_.libraries) + " can be called within " +
                    names_of_callbacks(options_.callbacks) + " alone"),
      nested_text_(names_of_waits(options_.libraries) +
                   " cannot be called within a coroutine of the script's"),
      machine_(*this, options_.limits.bytes,
               [this](lua::stack in) { bridge::furnish(options_, in); }),
      functions_(options_.callbacks.size()) {
    for (const callback& each : options_.callbacks) EDDY_ASSERT(each.results <= max_values);
}

coroutine_host::~coroutine_host() { EDDY_ASSERT(!fiber_.is_suspended() && calls_ == 0); }

std::expected<void, std::string> coroutine_host::load(std::string_view text,
                                                      std::string_view name) {
    EDDY_ASSERT(!is_loaded_);
    begin_run();
    job todo;
    todo.options = &options_;
    todo.functions.resize(functions_.size());
    std::string why;
    const std::string chunk_name = "@" + std::string(name);
    todo.chunk = machine_.compile(text, chunk_name.c_str(), why);
    if (todo.chunk == 0) return std::unexpected(why.substr(0, options_.limits.error));
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
    is_loaded_ = true;
    return {};
}

task<call_end> coroutine_host::run(call& of) {
    EDDY_ASSERT(&of.host_ == this && of.state_ == call::state::begins);
    cancel_source* const source = co_await current_source();
    for (;;) {
        if (!co_await run_until_wait(of, source)) co_return call_end();
        // No other call has run since, so end_ is of this call.
        if (of.state_ == call::state::over) co_return std::exchange(end_, call_end());
        if (of.state_ == call::state::ready) continue;
        EDDY_ASSERT(of.state_ == call::state::waits);
        try {
            // The task stays where it is, until its results take its place.
            function_result got =
                co_await std::get<task<function_result>>(std::move(of.answer_.is_));
            if (is_requested(source) || (!got && of.row_->failure == on_failure::ends))
                co_return call_end();
            of.answer_ = got ? answer(std::move(*got)) : answer::failed(std::move(got.error()));
        } catch (const std::bad_alloc&) {
            co_return lack_of_memory();
        }
    }
}

/// Runs the call alone, until it waits or ends. False when it must end as gone. Apart from run(),
/// whose frame exists as long as the call waits.
[[gnu::noinline]] task<bool> coroutine_host::run_until_wait(call& of, cancel_source* source) {
    ++queued_;
    const auto lock = co_await state_lock_.lock();
    --queued_;
    if (!lock || is_requested(source)) co_return false;
    running_ = &of;
    begin_run();
    bool is_over = fiber_.start(
        [](void* self) {
            coroutine_host& me = *static_cast<coroutine_host*>(self);
            me.go(*me.running_);
        },
        this);
    while (!is_over) {
        co_await loop::current().yield();
        if (is_requested(source)) ending_ = script_killed;
        slice_begun_ = processor_time();
        is_over = fiber_.resume();
    }
    running_ = nullptr;
    machine_.check_always(false);
    ending_ = {};
    co_return !is_requested(source) && of.state_ != call::state::gone;
}

/// On the fiber, where time is sliced.
void coroutine_host::go(call& of) noexcept {
    try {
        resume(of);
    } catch (const std::bad_alloc&) {
        of.state_ = call::state::over;
        end_ = lack_of_memory();
    }
}

void coroutine_host::resume(call& of) {
    for (const int each : dropped_) machine_.values().unref(each);
    dropped_.clear();
    collect();
    int arguments = 0;
    const bool is_ready =
        of.state_ == call::state::begins ? begin(of, arguments) : push_answer(of, arguments);
    if (!is_ready) return;
    of.state_ = call::state::runs;
    switch (of.at_.resume(arguments)) {
        case lua::progress::ended: end_returned(of); break;
        case lua::progress::suspended: end_suspended(of); break;
        case lua::progress::failed: end_failed(of); break;
    }
}

bool coroutine_host::begin(call& of, int& arguments) {
    // So that drop() never allocates; it is empty here.
    if (dropped_.capacity() <= calls_) dropped_.reserve(2 * calls_ + 16);
    job todo;
    todo.of = &of;
    if (!machine_.call_protected(bridge::begin, &todo)) {
        machine_.values().pop();
        fail(of, "not enough memory for another " + std::string(options_.call_name));
        return false;
    }
    of.kept_ = todo.kept;
    of.at_ = todo.at;
    arguments = todo.arguments;
    ++calls_;
    return true;
}

/// Pushes the result of the function that the coroutine was suspended in.
bool coroutine_host::push_answer(call& of, int& arguments) {
    of.at_.settop(0);
    const auto* const results = std::get_if<values>(&of.answer_.is_);
    if (results != nullptr && results->empty()) return true;
    job todo;
    todo.of = &of;
    const bool is_pushed = machine_.call_protected(bridge::push_answer, &todo);
    of.answer_ = answer();
    if (!is_pushed) {
        machine_.values().pop();
        fail(of, no_memory_text);
        return false;
    }
    arguments = todo.arguments;
    return true;
}

void coroutine_host::end_suspended(call& of) {
    if (of.state_ != call::state::runs) return;
    fail(of, std::string(options_.callbacks[of.callback_].name) +
                 "() may not yield; it waits by sleep()");
}

void coroutine_host::end_returned(call& of) {
    of.state_ = call::state::over;
    end_ = call_end();
    end_.what = call_end::kind::returned;
    if (options_.callbacks[of.callback_].results == 0) return;
    job todo;
    todo.options = &options_;
    todo.of = &of;
    const bool is_read = machine_.call_protected(bridge::read_results, &todo);
    if (!is_read) machine_.values().pop();
    if (!is_read || todo.lacks_memory) todo.failure = no_memory_text;
    if (!todo.failure.empty()) fail(of, std::move(todo.failure));
}

void coroutine_host::end_failed(call& of) {
    job todo;
    todo.options = &options_;
    todo.of = &of;
    const bool is_read = machine_.call_protected(bridge::read_failure, &todo);
    if (!is_read) machine_.values().pop();
    if (!is_read || todo.lacks_memory) todo.failure = no_memory_text;
    collected_ = 0;  // what it had is garbage as soon as it is dropped
    fail(of, std::move(todo.failure), ending_.empty() ? script_failed : ending_);
}

void coroutine_host::fail(call& of, std::string text, std::string_view reason) {
    of.state_ = call::state::over;
    end_ = call_end();
    end_.what = call_end::kind::failed;
    end_.text = std::move(text);
    end_.reason = reason;
}

void coroutine_host::drop(call& of) noexcept {
    if (of.kept_ == 0) return;
    // Another one may be left in the middle: the state is touched by the next that runs.
    dropped_.push_back(std::exchange(of.kept_, 0));
    --calls_;
}

void coroutine_host::collect() noexcept {
    // Each collection goes through all that is used, so some of it must be new.
    const std::size_t most = options_.limits.bytes;
    const std::size_t used = machine_.used_bytes();
    if (used < collected_) collected_ = used;
    if (used <= most / 2 || used - collected_ < most / 16) return;
    machine_.collect_if_full();
    collected_ = machine_.used_bytes();
}

void coroutine_host::begin_run() noexcept {
    used_ = {};
    has_waited_ = false;
    has_used_slice_ = false;
    slice_begun_ = processor_time();
    ending_ = {};
}

/// Time of the slice so far.
std::chrono::nanoseconds coroutine_host::slice_time() noexcept {
    const std::chrono::nanoseconds elapsed = processor_time() - slice_begun_;
    if (std::exchange(has_waited_, false)) used_ = -elapsed;
    return elapsed;
}

void coroutine_host::check(lua::stack in) {
    const std::chrono::nanoseconds elapsed = slice_time();
    if (ending_.empty() && used_ + elapsed > options_.limits.run) ending_ = script_too_long;
    if (ending_.empty()) leave_after(elapsed);
    if (ending_.empty()) return;
    // From now on at every instruction: no pcall() of the script's keeps it alive.
    lua::sandbox::of(in).check_always(true);
    lua::raise_here(in, ending_ == script_too_long ? "it computes for too long without a wait"
                                                   : "its client has gone");
}

void coroutine_host::check_quietly() { leave_after(slice_time()); }

/// Leaves the script in the middle at the end of its slice.
void coroutine_host::leave_after(std::chrono::nanoseconds elapsed) {
    if (!fiber_.is_inside() || elapsed < options_.limits.slice) return;
    has_used_slice_ = true;
    used_ += elapsed;
    fiber_.suspend();
}

}  // namespace eddy::script
