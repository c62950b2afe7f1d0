// Versions of a script: their calls, timers and ticks, and their succession.
#include "runtime/scripting/loop_script.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/scripting/common_library.hpp"
#include "runtime/scripting/script_names.hpp"
#include "script/control_prelude.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime {
namespace {

/// The text of a failure without one is that of its reason.
std::string text_of(const script::call_end& end) {
    return end.text.empty() ? std::string(end.reason) : end.text;
}

bool has_failed(const script::call_end& end) noexcept {
    return end.what == script::call_end::kind::failed;
}

}  // namespace

// --- Calls ------------------------------------------------------------------------------------

script_call::script_call(script_version& of) : call(of.host(), unbound()), version_(of) {}

void script_call::prepare(std::size_t callback,
                          std::span<const script_argument> arguments) noexcept {
    EDDY_ASSERT(arguments.size() <= max_arguments);
    reuse(callback);
    count_ = arguments.size();
    for (std::size_t i = 0; i < count_; ++i) arguments_[i] = arguments[i];
}

void script_call::prepare_with(std::size_t callback, const pushed_arguments& arguments) noexcept {
    reuse(callback);
    count_ = 0;
    pushed_ = &arguments;
}

void script_call::prepare(std::shared_ptr<script::kept_function> function, std::string_view name,
                          std::span<const script_argument> arguments) noexcept {
    EDDY_ASSERT(arguments.size() <= max_arguments);
    function_ = std::move(function);
    reuse(*function_, name);
    count_ = arguments.size();
    for (std::size_t i = 0; i < count_; ++i) arguments_[i] = arguments[i];
}

void script_call::own() {
    if (pushed_ != nullptr) {
        owned_pushed_ = pushed_->copy();
        pushed_ = owned_pushed_.get();
    }
    for (std::size_t i = 0; i < count_; ++i) {
        if (const auto* const text = std::get_if<std::string_view>(&arguments_[i])) {
            texts_[i] = *text;
            arguments_[i] = std::string_view(texts_[i]);
        }
        EDDY_ASSERT(!std::holds_alternative<const script::value*>(arguments_[i]) ||
                    std::get<const script::value*>(arguments_[i]) == &owned_);
    }
}

int script_call::push_arguments(lua::stack in) {
    if (pushed_ != nullptr) return pushed_->push(in);
    for (std::size_t i = 0; i < count_; ++i) {
        const script_argument& each = arguments_[i];
        if (const double* const number = std::get_if<double>(&each))
            in.pushnumber(*number);
        else if (const auto* const text = std::get_if<std::string_view>(&each))
            in.pushstring(*text);
        else if (const auto* const whole = std::get_if<const script::value*>(&each))
            script::push_value(in, **whole);
        else
            in.pushnil();
    }
    return static_cast<int>(count_);
}

// --- One version ------------------------------------------------------------------------------

const script::call_end script_version::no_memory_end = [] {
    script::call_end end;
    end.what = script::call_end::kind::failed;
    end.reason = script::no_memory;
    return end;
}();

script::host_options script_version::options_of(const script_type& type,
                                                const script_config& budgets) {
    script::host_options made;
    made.limits.bytes = budgets.memory;
    made.limits.slice = std::chrono::duration_cast<std::chrono::microseconds>(budgets.slice);
    made.limits.run = std::chrono::duration_cast<std::chrono::milliseconds>(budgets.time);
    made.callbacks.assign(common_callbacks.begin(), common_callbacks.end());
    made.callbacks.insert(made.callbacks.end(), type.callbacks.begin(), type.callbacks.end());
    made.libraries = common_libraries(lines_, timers_, type.fields, type.table_name);
    made.libraries.insert(made.libraries.end(), type.libraries.begin(), type.libraries.end());
    made.libraries.push_back(requests_.functions("self"));
    made.libraries.push_back(blocking_.functions("self"));
    made.libraries.push_back(sockets_.functions());
    made.libraries.push_back(modules_.functions());
    made.libraries.push_back(caches_.functions());
    made.libraries.push_back(bus_.functions());
    made.libraries.push_back(meters_.functions());
    made.libraries.push_back(admin_.functions());
    made.preludes = {{"sockets", script::socket_prelude()},
                     {"http", script::http_prelude()},
                     {"print", print_prelude()},
                     {"caches", cache_prelude()},
                     {"meters", meter_prelude()},
                     {"control", script::control_prelude()},
                     {"modules", script::module_prelude()}};
    made.plain_globals = true;
    return made;
}

script_version::script_version(const script_type& type, const script_config& budgets,
                               serving::journal& lines, script_tallies& counted,
                               failure_log& failures)
    : type_(type),
      lines_(lines),
      counted_(counted),
      failures_(failures),
      sockets_({.sockets = budgets.max_sockets}),
      modules_(budgets.modules),
      blocking_({.is_allowed = budgets.is_unsafe,
                 .owner = budgets.file.name,
                 .modules = budgets.modules}),
      caches_(type.daemon),
      meters_(counted.own),
      admin_(type.daemon, budgets.admin),
      host_(options_of(type, budgets)),
      timers_(*this, budgets.max_timers),
      bus_(type.daemon, *this, tasks_, counted, budgets.max_queue) {
    no_tasks_.set();
}

script_version::~script_version() { EDDY_ASSERT(task_count_ == 0 && guests_ == 0); }

outcome<> script_version::load(const script_file& from) {
    if (auto named = check_script_names(type_, from); !named) {
        // A text that is no Lua has that error.
        if (auto is_lua = host_.check(from.text, from.name)) return named;
    }
    auto loaded = host_.load(from.text, from.name);
    if (!loaded) return refuse(400, fmt::format("--lua: {}", loaded.error()));
    return {};
}

task<outcome<>> script_version::load_in_slices(script_file from) {
    if (auto named = co_await check_script_names_in_background(type_, from); !named) {
        if (auto is_lua = host_.check(from.text, from.name)) co_return named;
    }
    auto loaded = co_await host_.load_in_slices(std::move(from.text), std::move(from.name));
    if (!loaded) co_return refuse(400, fmt::format("--lua: {}", loaded.error()));
    co_return outcome<>();
}

std::unique_ptr<script_call> script_version::take() {
    if (spare_.empty()) {
        spare_.reserve(max_spare);
        return std::make_unique<script_call>(*this);
    }
    std::unique_ptr<script_call> one = std::move(spare_.back());
    spare_.pop_back();
    return one;
}

void script_version::give_back(std::unique_ptr<script_call> call) noexcept {
    EDDY_ASSERT(call != nullptr && &call->version() == this);
    call->function_.reset();
    call->owned_ = {};
    call->pushed_ = nullptr;
    call->owned_pushed_.reset();
    if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(call));
}

std::unique_ptr<script_call> script_version::begin(std::size_t callback,
                                                   std::span<const script_argument> arguments,
                                                   const script::call_end*& end,
                                                   script::call_order order) {
    std::unique_ptr<script_call> call = take();
    call->prepare(callback, arguments);
    end = host_.try_run(*call, order);
    if (end == nullptr) {
        call->own();
        return call;
    }
    note(*call, *end);
    give_back(std::move(call));
    return nullptr;
}

std::unique_ptr<script_call> script_version::begin_with(std::size_t callback,
                                                        const pushed_arguments& arguments,
                                                        const script::call_end*& end) {
    std::unique_ptr<script_call> call = take();
    call->prepare_with(callback, arguments);
    end = host_.try_run(*call);
    if (end == nullptr) {
        call->own();
        return call;
    }
    note(*call, *end);
    give_back(std::move(call));
    return nullptr;
}

std::unique_ptr<script_call> script_version::make_call(std::size_t callback,
                                                       std::span<const script_argument> arguments) {
    std::unique_ptr<script_call> call = take();
    call->prepare(callback, arguments);
    call->own();
    return call;
}

task<script::call_end> script_version::finish(std::unique_ptr<script_call> call) {
    EDDY_ASSERT(call != nullptr && &call->version_ == this);
    struct counting {
        script_version& of;
        explicit counting(script_version& its) noexcept : of(its) {
            ++of.task_count_;
            ++of.counted_.under_way;
            of.no_tasks_.reset();
        }
        ~counting() {
            of.counted_.under_way = of.counted_.under_way - 1;
            if (--of.task_count_ == 0) of.no_tasks_.set();
        }
    } const counted(*this);
    script::call_end end = co_await host_.run(*call);
    note(*call, end);
    give_back(std::move(call));
    co_return end;
}

task<script::call_end> script_version::run_guest(script::call& of) {
    EDDY_ASSERT(&of.host() == &host_);
    struct counting {
        script_version& in;
        explicit counting(script_version& its) noexcept : in(its) {
            ++in.guests_;
            ++in.counted_.under_way;
        }
        ~counting() {
            in.counted_.under_way = in.counted_.under_way - 1;
            if (--in.guests_ == 0) in.no_guests_.set();
        }
    } const counted(*this);
    script::call_end end = co_await host_.run(of);
    note(of, end);
    co_return end;
}

task<void> script_version::await_guests() {
    while (guests_ > 0) {
        no_guests_.reset();
        if (!co_await no_guests_.wait()) co_return;
    }
}

void script_version::note(const script::call& of, const script::call_end& end) noexcept {
    ++counted_.calls;
    if (!has_failed(end)) [[likely]] {
        if (end.what == script::call_end::kind::returned && counted_.errors_in_a_row > 0)
            counted_.errors_in_a_row = 0;
        return;
    }
    counted_.note_error(end.reason);
    try {
        failures_.write(of.name(), text_of(end));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): metrics have it
    }
}

task<void> script_version::end(duration limit) {
    end_timers();
    const time_point last = loop::current().after(limit);
    const time_point least =
        loop::current().after(std::max<duration>(limit, script_least_farewell));
    if (limit > duration{}) co_await bus_.drain(last);
    if (task_count_ > 0 && last > loop::current().now())
        static_cast<void>(co_await with_deadline(last, no_tasks_.wait()));
    // Calls that come later are none of them: a storm of messages has no end.
    const std::uint64_t queued = host_.queued();
    while (host_.unqueued() < queued && loop::current().now() < least)
        co_await loop::current().yield();
    co_await abandon();
}

task<void> script_version::abandon() {
    end_timers();
    tasks_.cancel();
    co_await tasks_.join();
}

// --- Messages ---------------------------------------------------------------------------------

task<void> script_version::deliver(std::shared_ptr<script::kept_function> function,
                                   std::string_view channel, std::string_view text) {
    const std::array<script_argument, 2> arguments = {text, channel};
    std::unique_ptr<script_call> call = take();
    call->prepare(std::move(function), "a subscription", arguments);
    if (const script::call_end* const end = host_.try_run(*call)) {
        note(*call, *end);
        give_back(std::move(call));
        co_return;
    }
    call->own();
    static_cast<void>(co_await finish(std::move(call)));
}

// --- Timers -----------------------------------------------------------------------------------

void script_version::end_timers() noexcept {
    timers_.clear();
    ticker_.stop();
}

void script_version::run(script_timers& from, std::uint64_t id,
                         std::shared_ptr<script::kept_function> function) {
    std::unique_ptr<script_call> call = take();
    call->prepare(std::move(function), "a timer");
    if (const script::call_end* const end = host_.try_run(*call)) {
        note(*call, *end);
        give_back(std::move(call));
        return from.ended(id);
    }
    tasks_.spawn(finish_timer(std::move(call), id));
}

task<void> script_version::finish_timer(std::unique_ptr<script_call> call, std::uint64_t id) {
    static_cast<void>(co_await finish(std::move(call)));
    timers_.ended(id);
}

task<outcome<>> script_version::read_ticks() {
    using milliseconds = std::chrono::duration<double, std::milli>;
    if (!host_.defines(callback_tick)) co_return outcome<>();
    const script::value chosen = co_await host_.global_later("tick_ms");
    if (chosen.is_nil()) co_return outcome<>();
    const double* const given = chosen.number();
    if (given == nullptr ||
        !(milliseconds(*given) >= least_tick && milliseconds(*given) <= longest_tick))
        co_return refuse(
            400, fmt::format("--lua: tick_ms must be a number of milliseconds from {} to "
                             "{}, those of a day",
                             least_tick.count(), std::chrono::milliseconds(longest_tick).count()));
    every_tick_ = std::chrono::duration_cast<duration>(milliseconds(*given));
    co_return outcome<>();
}

void script_version::start_ticks() {
    if (host_.defines(callback_tick)) ticker_.start(every_tick_);
}

void script_version::ticker::start(duration every) noexcept {
    EDDY_ASSERT(!armed() && every >= least_tick);
    every_ = every;
    last_ = loop::current().now();
    again();
}

void script_version::ticker::stop() noexcept {
    every_ = duration{};
    if (armed()) loop::current().disarm(*this);
}

void script_version::ticker::again() noexcept {
    if (every_ > duration{}) loop::current().arm(*this, loop::current().after(every_));
}

void script_version::ticker::fire() noexcept {
    const time_point now = loop::current().now();
    const std::chrono::duration<double, std::milli> passed = now - std::exchange(last_, now);
    try {
        of_.tick(passed.count());
    } catch (const std::bad_alloc&) {
        again();
    }
}

void script_version::tick(double milliseconds) {
    const script_argument passed = milliseconds;
    const script::call_end* ended = nullptr;
    std::unique_ptr<script_call> call = begin(callback_tick, std::span(&passed, 1), ended);
    if (!call) return ticker_.again();
    tasks_.spawn(finish_tick(std::move(call)));
}

task<void> script_version::finish_tick(std::unique_ptr<script_call> call) {
    static_cast<void>(co_await finish(std::move(call)));
    ticker_.again();
}

// --- Succession -------------------------------------------------------------------------------

loop_script::loop_script(script_type type, const script_config& budgets, serving::journal& lines)
    : type_(std::move(type)),
      budgets_(budgets),
      lines_(lines),
      failures_(lines, script_failure_interval,
                {.one = "the script failed", .many = "times the script failed in"}) {}

loop_script::~loop_script() { EDDY_ASSERT(now_ == nullptr || !now_->has_tasks()); }

outcome<> loop_script::load(const script_file& from) {
    EDDY_ASSERT(now_ == nullptr);
    auto made = std::make_unique<script_version>(type_, budgets_, lines_, counted_, failures_);
    if (auto loaded = made->load(from); !loaded) return loaded;
    now_ = std::move(made);
    note_memory();
    return {};
}

task<outcome<>> loop_script::load_in_slices(script_file from) {
    EDDY_ASSERT(now_ == nullptr);
    auto made = std::make_unique<script_version>(type_, budgets_, lines_, counted_, failures_);
    auto loaded = co_await made->load_in_slices(std::move(from));
    if (!loaded) {
        co_await made->abandon();
        co_return loaded;
    }
    now_ = std::move(made);
    note_memory();
    co_return outcome<>();
}

void loop_script::note_memory() noexcept { counted_.memory = now_->host().used_bytes(); }

void loop_script::note_misuse(std::string_view callback, std::string_view why) noexcept {
    counted_.note_error(script::script_failed);
    try {
        failures_.write(callback, fmt::format("{}: {}", callback, why));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): metrics have it
    }
}

task<void> loop_script::set_at_end(script_version& of, std::unique_ptr<script_call> call,
                                   std::shared_ptr<script::call_end> to,
                                   std::shared_ptr<event> done) {
    *to = co_await of.finish(std::move(call));
    done->set();
}

/// Runs on_start() or on_reload() of a version. It continues where it takes longer.
task<outcome<>> loop_script::run_first(script_version& of, std::size_t callback,
                                       script::value argument) {
    auto call = of.make_call(callback, {});
    call->owned_ = std::move(argument);
    if (callback == callback_reload) {
        call->arguments_[0] = &call->owned_;
        call->count_ = 1;
    }
    auto end = std::make_shared<script::call_end>();
    auto done = std::make_shared<event>();
    of.tasks().spawn(set_at_end(of, std::move(call), end, done));
    const auto ended =
        co_await with_deadline(loop::current().after(script_start_patience), done->wait());
    if (ended && has_failed(*end)) co_return refuse(400, fmt::format("--lua: {}", text_of(*end)));
    co_return outcome<>();
}

task<outcome<>> loop_script::start() {
    EDDY_ASSERT(now_ != nullptr);
    if (now_->host().defines(callback_start)) {
        auto begun = co_await run_first(*now_, callback_start, {});
        if (!begun) co_return begun;
    }
    if (auto good = co_await now_->read_ticks(); !good) co_return good;
    now_->start_ticks();
    now_->begin_messages(0);
    note_memory();
    co_return outcome<>();
}

std::uint64_t loop_script::last_message() const {
    return type_.daemon == nullptr ? 0 : type_.daemon->last_message();
}

task<outcome<>> loop_script::replace(script_file by) {
    auto prepared = co_await prepare(std::move(by));
    if (prepared) adopt();
    co_return prepared;
}

task<outcome<>> loop_script::prepare(script_file by) {
    if (now_ == nullptr)
        co_return refuse(409, "--lua: the script is being loaded; try again later");
    if (is_replacing_ || old_ >= max_old_scripts)
        co_return refuse(503,
                         "--lua: the script is being replaced, and calls of earlier versions "
                         "still wait; try again later");
    is_replacing_ = true;
    struct ended {
        bool& is;
        ~ended() { is = false; }
    } const at_the_end{is_replacing_};
    discard();
    auto made = std::make_unique<script_version>(type_, budgets_, lines_, counted_, failures_);
    outcome<> begun = co_await made->load_in_slices(std::move(by));
    const bool carries = begun && made->host().defines(callback_reload);
    if (carries)
        begun = co_await run_first(*made, callback_reload, co_await now_->host().globals());
    else if (begun && made->host().defines(callback_start))
        begun = co_await run_first(*made, callback_start, {});
    if (begun) begun = co_await made->read_ticks();
    if (!begun) {
        co_await made->abandon();
        co_return begun;
    }
    next_ = std::move(made);
    co_return outcome<>();
}

void loop_script::adopt() {
    if (next_ == nullptr) return;
    std::unique_ptr<script_version> old = std::exchange(now_, std::move(next_));
    old->end_timers();
    now_->start_ticks();
    // Each message is for one of the two.
    const std::uint64_t last = last_message();
    old->end_messages(last);
    now_->begin_messages(last);
    ++counted_.reloads;
    counted_.errors_in_a_row = 0;
    background_.spawn(retire(std::move(old)));
    note_memory();
}

void loop_script::discard() {
    if (next_ != nullptr) background_.spawn(abandon(std::move(next_)));
}

task<void> loop_script::abandon(std::unique_ptr<script_version> unused) {
    co_await unused->abandon();
}

/// The version's calls may end; then it is freed.
task<void> loop_script::retire(std::unique_ptr<script_version> old) {
    ++old_;
    co_await old->end(script_farewell);
    co_await old->await_guests();
    old.reset();
    --old_;
}

task<void> loop_script::stop(duration limit) {
    if (now_ == nullptr) co_return;
    now_->end_timers();
    now_->end_messages(last_message());
    if (!now_->host().defines(callback_stop)) co_return;
    const script::call_end* ended = nullptr;
    auto call = now_->begin(callback_stop, {}, ended);
    if (!call) co_return;
    auto end = std::make_shared<script::call_end>();
    auto done = std::make_shared<event>();
    const script_call& its = *call;
    now_->tasks().spawn(set_at_end(*now_, std::move(call), end, done));
    const time_point least = loop::current().after(script_least_farewell);
    while (!done->is_set() && !its.has_begun() && loop::current().now() < least)
        co_await loop::current().yield();
    if (limit > duration{})
        static_cast<void>(co_await with_deadline(loop::current().after(limit), done->wait()));
}

task<void> loop_script::end(duration limit) {
    if (now_ == nullptr) co_return;
    discard();
    co_await now_->end(limit);
    background_.cancel();
    co_await background_.join();
}

task<void> loop_script::abandon() {
    if (now_ != nullptr) co_await now_->abandon();
}

outcome<> try_script(const script_type& type, const script_config& from) {
    no_journal lines;
    return loop_script(type, from, lines).load(from.file);
}

task<outcome<>> try_script_in_slices(script_type type, script_config from) {
    no_journal lines;
    loop_script tried(std::move(type), from, lines);
    auto loaded = co_await tried.load_in_slices(std::move(from.file));
    co_await tried.abandon();
    co_return loaded;
}

}  // namespace eddy::runtime
