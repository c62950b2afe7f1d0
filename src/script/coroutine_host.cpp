// Calls of a script's callbacks: their order, their beginning, their waits and their ends.
#include "script/coroutine_host.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/processor_time.hpp"
#include "script/host_bridge.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

namespace eddy::script {
namespace {

/// Time of the processor that a call is charged for each function that waited for nothing: it takes
/// the loop that long at least, while the clock of the call's own computing stands still.
constexpr std::chrono::microseconds pause_cost{20};

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

}  // namespace

kept_function::~kept_function() {
    if (host_ != nullptr) host_->drop(kept_);
}

call::call(coroutine_host& in, std::size_t callback) noexcept : host_(in) { reuse(callback); }

call::~call() {
    EDDY_ASSERT(!midway_);
    host_.drop(*this);
}

void call::reuse(std::size_t callback) noexcept {
    EDDY_ASSERT(host_.defines(callback) && (state_ == state::begins || state_ >= state::gone));
    host_.drop(*this);
    function_ = host_.functions_[callback];
    name_ = host_.options_.callbacks[callback].name;
    results_ = host_.options_.callbacks[callback].results;
    begin_anew();
}

void call::reuse(const kept_function& function, std::string_view name) noexcept {
    EDDY_ASSERT(function.host_ == &host_ && (state_ == state::begins || state_ >= state::gone));
    host_.drop(*this);
    function_ = function.kept_;
    name_ = name;
    results_ = 0;
    begin_anew();
}

coroutine_host::coroutine_host(host_options options)
    : options_(std::move(options)),
      outside_text_(names_of_waits(options_.libraries) + " can be called within " +
                    names_of_callbacks(options_.callbacks) + " alone"),
      nested_text_(names_of_waits(options_.libraries) +
                   " cannot be called within a coroutine of the script's"),
      machine_(*this, options_.limits.bytes,
               [this](lua::stack in) { bridge::furnish(options_, in); }),
      functions_(options_.callbacks.size()),
      parameters_(options_.callbacks.size()) {
    for (const callback& each : options_.callbacks) EDDY_ASSERT(each.results <= max_values);
    idle_.reserve(max_idle);
    for (const library& each : options_.libraries)
        if (each.ended != nullptr) watching_.push_back(&each);
}

coroutine_host::~coroutine_host() {
    EDDY_ASSERT(!fiber_.is_suspended() && kept_ == idle_.size());
    if (armed()) loop::current().disarm(*this);
}

call_end* coroutine_host::try_run(call& of, call_order order) {
    EDDY_ASSERT(&of.host_ == this && of.state_ == call::state::begins);
    permit lock = try_lock_state(order);
    if (!lock) return nullptr;
    running_ = &of;
    begin_turn();
    begin_run(&of);
    const bool is_over = fiber_.start(
        [](void* self) {
            coroutine_host& me = *static_cast<coroutine_host*>(self);
            me.go(*me.running_);
        },
        this);
    if (!is_over) [[unlikely]] {
        of.midway_ = std::move(lock);
        return nullptr;
    }
    release(std::move(lock));
    return end_round_trip(of);
}

/// The lock, or an empty permit when cancelled. Calls have it in their order, as many in one turn
/// of the loop as a slice has time for.
task<permit> coroutine_host::lock_state() {
    permit lock = try_lock_state(call_order::in_order);
    if (lock) co_return lock;
    const auto own = queue_.emplace(queue_.end());
    ++queued_;
    are_woken_ = false;
    result<> woken;
    while (woken && !lock) {
        woken = co_await own->woken.wait();
        own->woken.reset();
        are_woken_ = false;
        if (woken && !is_round_over_) lock = state_lock_.try_lock();
    }
    queue_.erase(own);
    if (!lock) wake();
    co_return lock;
}

permit coroutine_host::try_lock_state(call_order order) noexcept {
    const bool must_wait = order == call_order::in_order && !queue_.empty();
    return is_round_over_ || must_wait ? permit() : state_lock_.try_lock();
}

void coroutine_host::release(permit lock) noexcept {
    lock.release();
    wake();
}

/// Wakes the first calls of the queue, if one can run.
void coroutine_host::wake() noexcept {
    if (are_woken_ || is_round_over_ || state_lock_.locked()) return;
    std::size_t count = 0;
    for (waiter& each : queue_) {
        if (++count > max_woken) break;
        each.woken.set();
    }
    are_woken_ = true;
}

/// A turn's calls are timed together.
void coroutine_host::begin_turn() noexcept {
    if (const time_point now = loop::current().now(); now != turn_) {
        turn_ = now;
        round_begun_ = not_read;
    }
}

/// The next turn after a round was over.
void coroutine_host::fire() noexcept {
    is_round_over_ = false;
    round_begun_ = not_read;
    wake();
}

/// After the fiber's body has returned: the call's end, if it has ended.
call_end* coroutine_host::end_round_trip(call& of) noexcept {
    running_ = nullptr;
    if (!ending_.empty()) [[unlikely]] {
        machine_.check_always(false);
        ending_ = {};
    }
    if (of.state_ == call::state::gone) end_ = call_end();
    if (of.state_ < call::state::gone) return nullptr;
    // Its sockets are closed now, not when the object is used again.
    drop(of);
    return &end_;
}

void coroutine_host::end_gone(call& of) noexcept {
    of.state_ = call::state::gone;
    of.answer_ = answer();
    drop(of);
}

task<call_end> coroutine_host::run(call& of) {
    EDDY_ASSERT(&of.host_ == this && of.state_ < call::state::gone);
    cancel_source* const source = co_await current_source();
    for (;;) {
        if (of.state_ != call::state::waits && !co_await run_until_wait(of, source)) {
            end_gone(of);
            co_return call_end();
        }
        // No other call has run since, so end_ is of this call.
        if (of.state_ == call::state::over) co_return std::exchange(end_, call_end());
        if (of.state_ == call::state::ready) {
            // Calls that wait for the lock have it first.
            co_await loop::current().yield();
            continue;
        }
        EDDY_ASSERT(of.state_ == call::state::waits);
        const time_point begun = loop::current().now();
        try {
            // The task stays where it is, until its results take its place.
            function_result got =
                co_await std::get<task<function_result>>(std::move(of.answer_.is_));
            if (is_requested(source) || (!got && of.row_->failure == on_failure::ends)) {
                end_gone(of);
                co_return call_end();
            }
            of.answer_ = got ? answer(std::move(*got)) : answer::failed(std::move(got.error()));
        } catch (const std::bad_alloc&) {
            end_gone(of);
            co_return lack_of_memory();
        }
        of.state_ = call::state::ready;
        // A function that is done in the same turn has waited for nothing.
        of.has_paused_ |= loop::current().now() == begun;
        if (of.has_paused_)
            of.used_ += pause_cost;
        else
            of.used_ = {};
    }
}

/// Runs the call alone, until it waits or ends. False when it must end as gone. Apart from run(),
/// whose frame exists as long as the call waits.
[[gnu::noinline]] task<bool> coroutine_host::run_until_wait(call& of, cancel_source* source) {
    permit lock = std::move(of.midway_);
    bool is_over = false;
    if (!lock) {
        lock = co_await lock_state();
        if (lock && is_requested(source)) release(std::move(lock));
        if (!lock) co_return false;
        running_ = &of;
        begin_turn();
        begin_run(&of);
        is_over = fiber_.start(
            [](void* self) {
                coroutine_host& me = *static_cast<coroutine_host*>(self);
                me.go(*me.running_);
            },
            this);
    }
    while (!is_over) {
        co_await loop::current().yield();
        if (is_requested(source)) ending_ = script_killed;
        begin_further_slice();
        begin_turn();
        is_over = fiber_.resume();
    }
    static_cast<void>(end_round_trip(of));
    release(std::move(lock));
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
    reserve_drops();
    const lua::stack in = machine_.values();
    in.pushvalue(begin_place);
    if (!in.pcall(0, 0)) {
        in.pop();
        fail(of, "not enough memory for another " + std::string(options_.call_name));
        return false;
    }
    arguments = arguments_;
    return true;
}

/// So that drop() never allocates, after one more is kept.
void coroutine_host::reserve_drops() {
    const std::size_t most = kept_ + dropped_.size() + 1;
    if (dropped_.capacity() < most) dropped_.reserve(2 * most + 16);
}

bool coroutine_host::try_reserve_drops() noexcept {
    try {
        reserve_drops();
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

/// Pushes the result of the function that the coroutine was suspended in.
bool coroutine_host::push_answer(call& of, int& arguments) {
    of.at_.settop(0);
    const auto* const results = std::get_if<values>(&of.answer_.is_);
    if (results != nullptr && results->empty()) return true;
    host_job todo;
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
    if (of.state_ != call::state::runs) {
        of.used_ = used_;
        if (slice_begun_ != not_read) of.used_ += processor_time() - slice_begun_;
        return;
    }
    fail(of, std::string(of.name_) + "() may not yield; it waits by sleep()");
}

void coroutine_host::end_returned(call& of) {
    of.state_ = call::state::over;
    // Its memory is used again.
    end_.what = call_end::kind::returned;
    end_.results.clear();
    end_.text.clear();
    end_.reason = {};
    if (of.results_ > 0) read_results(of);
    if (idle_.size() >= max_idle || of.state_ != call::state::over) return;
    note_end(of);
    of.at_.settop(0);
    idle_.push_back({std::exchange(of.kept_, 0), of.at_});
}

/// Once for each call that has begun.
void coroutine_host::note_end(const call& of) const noexcept {
    EDDY_ASSERT(&of.host_ == this);
    for (const library* const each : watching_) each->ended(each->context, of);
}

void coroutine_host::read_results(call& of) {
    if (of.at_.gettop() == 0) {
        end_.results.resize(of.results_);
        return;
    }
    host_job todo;
    todo.options = &options_;
    todo.of = &of;
    const bool is_read = machine_.call_protected(bridge::read_results, &todo);
    if (!is_read) machine_.values().pop();
    if (!is_read || todo.lacks_memory) todo.failure = no_memory_text;
    if (!todo.failure.empty()) fail(of, std::move(todo.failure));
}

void coroutine_host::end_failed(call& of) {
    host_job todo;
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
    note_end(of);
    drop(std::exchange(of.kept_, 0));
}

void coroutine_host::drop(int kept) noexcept {
    // Another call may be left in the middle: the state is touched by the next that runs.
    EDDY_ASSERT(kept_ > 0 && dropped_.size() < dropped_.capacity());
    dropped_.push_back(kept);
    --kept_;
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

}  // namespace eddy::script
