// Hooks of a cache at work: one task assigns jobs and takes results, in turns of the loop.
#include "runtime/cache/cache_hooks.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/cache_metrics.hpp"
#include "runtime/cache/hook_check.hpp"
#include "runtime/scripting/script_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <system_error>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::hook_answer;
using eddy::cache::hook_job;
using eddy::cache::read_through;

/// Factor from the deadline of a waiting command to a hook's own: a late answer is still of use.
constexpr int patience_factor = 4;
/// Longest wait of a stop for threads that have nothing more to do.
constexpr duration end_patience = std::chrono::seconds(1);
constexpr duration longest_pause = std::chrono::seconds(60);
constexpr std::size_t lost_keys_shown = 5;

constexpr metric hook_ticks_total{.name = "hook_ticks_total",
                                  .kind = metric_kind::counter,
                                  .help = "Calls of on_tick that have ended."};
constexpr metric hook_tick_errors_total{.name = "hook_tick_errors_total",
                                        .kind = metric_kind::counter,
                                        .help = "Calls of on_tick that failed."};

task<outcome<script_file>> read_file(const hook_config& chosen) {
    return read_script_in_background("--hooks", chosen.file, max_hook_script_bytes);
}

bool have_same(const eddy::cache::hook_functions& a,
               const eddy::cache::hook_functions& b) noexcept {
    return a.miss == b.miss && a.write == b.write && a.erase == b.erase && a.expire == b.expire;
}

std::string shown(std::string_view key) {
    constexpr std::size_t most = 64;
    std::string text;
    for (const char each : key.substr(0, most)) text += each >= ' ' && each <= '~' ? each : '?';
    if (key.size() > most) text += "...";
    return text;
}

}  // namespace

/// Call of one hook on a thread of the script.
class cache_hooks::call final : public script::job {
public:
    call(cache_hooks& of, hook_job&& what, duration limit)
        : of_(of), what_(std::move(what)), limit_(limit) {}

    void run(lua::blocking_state& in) override {
        answer_ = eddy::cache::run_hook(in, what_, limit_);
    }
    void fail_without_memory() noexcept override { lacks_memory_ = true; }
    void complete() override {
        if (lacks_memory_) {
            answer_ = {};
            answer_.result.id = what_.id;
            answer_.result.failed = true;
            answer_.error = "not enough memory";
        }
        of_.finish(std::move(answer_));
    }

private:
    cache_hooks& of_;
    hook_job what_;
    duration limit_;
    hook_answer answer_;
    bool lacks_memory_ = false;
};

/// Threads that have loaded one version of the script.
class cache_hooks::crew final : script::script_threads_observer {
public:
    crew(cache_hooks& of, script::script_threads_options options)
        : of_(of),
          threads_(std::move(options), static_cast<script::script_threads_observer&>(*this)) {}

    script::script_threads& threads() noexcept { return threads_; }
    const eddy::cache::hook_functions& functions() const noexcept { return functions_; }
    bool has_loaded() const noexcept { return loaded_ == threads_.threads(); }
    bool has_begun() const noexcept { return begun_ == threads_.threads(); }
    bool has_ended() const noexcept { return ended_ == threads_.threads(); }
    std::size_t at_work() const noexcept { return threads_.threads() - ended_; }
    /// Why it cannot be loaded; empty while it can.
    const std::string& fault() const noexcept { return fault_; }

private:
    void thread_loaded(std::expected<std::vector<bool>, std::string> defined) override {
        ++loaded_;
        if (defined)
            functions_ = eddy::cache::hooks_of(*defined);
        else
            fault_ = std::move(defined.error());
        of_.notify();
    }
    void thread_began(std::expected<void, std::string> begun) override {
        ++begun_;
        if (!begun) fault_ = std::move(begun.error());
        of_.notify();
    }
    void thread_ticked(std::string fault) override {
        ++of_.ticks_;
        of_.note_end(!fault.empty());
        if (fault.empty()) return;
        ++of_.failed_ticks_;
        of_.note(std::move(fault));
    }
    void thread_printed(std::string line) override {
        of_.note(std::move(line));
        of_.notify();
    }
    void thread_ended() override {
        ++ended_;
        of_.notify();
    }

    cache_hooks& of_;
    std::size_t loaded_ = 0;
    std::size_t begun_ = 0;
    std::size_t ended_ = 0;
    std::string fault_;
    eddy::cache::hook_functions functions_;
    script::script_threads threads_;
};

cache_hooks::cache_hooks(hook_config chosen, std::string owner, serving::journal& events)
    : config_(std::move(chosen)), owner_(std::move(owner)), events_(events) {}

cache_hooks::~cache_hooks() = default;

/// Threads that load the script.
outcome<std::unique_ptr<cache_hooks::crew>> cache_hooks::make_crew(const std::string& text,
                                                                   const std::string& name,
                                                                   std::size_t threads) {
    try {
        script::script_threads_options chosen;
        chosen.threads = threads;
        chosen.text = with_hook_functions(text, owner_);
        chosen.name = name;
        chosen.owner = owner_;
        chosen.functions = eddy::cache::hook_names;
        chosen.limits.bytes = config_.memory;
        // The threads may outlive this.
        const duration limit = config_.time;
        chosen.own_calls = {
            [limit](lua::blocking_state& in) { return eddy::cache::run_start(in, limit); },
            [limit](lua::blocking_state& in, duration since_last) {
                return eddy::cache::run_tick(in, since_last, limit);
            },
            [limit](lua::blocking_state& in) { return eddy::cache::run_stop(in, limit); }};
        return std::make_unique<crew>(*this, std::move(chosen));
    } catch (const std::system_error& failure) {
        return refuse(500,
                      fmt::format("the threads of --hooks cannot be made: {}", failure.what()));
    }
}

/// Waits until all threads have loaded the script, or begun.
task<outcome<>> cache_hooks::await_all_of(crew& one, bool (crew::*are_there)() const noexcept) {
    const time_point end = loop::current().now() + load_patience;
    std::string fault;
    while (!(one.*are_there)() && one.fault().empty() && fault.empty()) {
        progress_.reset();
        const duration left = end - loop::current().now();
        const result<> woken = left <= duration::zero()
                                   ? fail(errc::timed_out)
                                   : co_await with_timeout(left, progress_.wait());
        if (load_given_up_) co_return refuse(503, "the cache is being stopped");
        if (woken) continue;
        if (woken.error() != errc::timed_out) co_return refuse(503, "the cache is stopping");
        fault =
            fmt::format("it was not loaded within {} s",
                        std::chrono::duration_cast<std::chrono::seconds>(load_patience).count());
    }
    if (fault.empty()) fault = one.fault();
    if (!fault.empty()) co_return refuse(400, fmt::format("--hooks {}: {}", config_.file, fault));
    co_return outcome<>();
}

task<outcome<std::unique_ptr<cache_hooks::crew>>> cache_hooks::load() {
    auto script = co_await read_file(config_);
    if (!script) co_return std::unexpected(script.error());
    if (auto named = co_await check_hook_names(*script); !named)
        co_return std::unexpected(named.error());
    auto made = make_crew(script->text, script->name, config_.threads);
    if (!made) co_return std::unexpected(made.error());
    if (auto all = co_await await_all_of(**made, &crew::has_loaded); !all)
        co_return std::unexpected(all.error());
    const eddy::cache::hook_functions defined = (*made)->functions();
    if (!defined.any())
        co_return refuse(400,
                         fmt::format("--hooks {} defines none of on_miss, on_write, on_delete, "
                                     "on_expire, on_start, on_tick and on_stop",
                                     config_.file));
    // Values that on_write() keeps for on_tick() are in one state: of several, the later value of a
    // key could be written first.
    if (defined.tick && config_.threads > 1 && !config_.has_threads) {
        made = make_crew(script->text, script->name, 1);
        if (!made) co_return std::unexpected(made.error());
        if (auto all = co_await await_all_of(**made, &crew::has_loaded); !all)
            co_return std::unexpected(all.error());
    }
    co_return made;
}

/// Calls on_start() in each thread, and on_tick() from then on.
task<outcome<>> cache_hooks::begin(crew& loaded) {
    EDDY_ASSERT(loaded.has_loaded());
    if (!loaded.functions().has_own()) co_return outcome<>();
    loaded.threads().begin();
    co_return co_await await_all_of(loaded, &crew::has_begun);
}

task<outcome<>> cache_hooks::check() {
    EDDY_ASSERT(!crew_);
    config_.threads = 1;
    const auto loaded = co_await load();
    if (!loaded) co_return std::unexpected(loaded.error());
    co_return outcome<>();
}

task<outcome<>> cache_hooks::prepare() {
    auto loaded = co_await load();
    if (!loaded) co_return std::unexpected(loaded.error());
    if (auto begun = co_await begin(**loaded); !begun) co_return begun;
    crew_ = std::move(*loaded);
    co_return outcome<>();
}

task<outcome<bool>> cache_hooks::reload() {
    EDDY_ASSERT(crew_ && hooks_ != nullptr);
    load_given_up_ = false;
    auto loaded = co_await load();
    if (!loaded) co_return std::unexpected(loaded.error());
    if (!have_same(crew_->functions(), (*loaded)->functions())) co_return false;
    if (auto begun = co_await begin(**loaded); !begun) co_return std::unexpected(begun.error());
    retired_at_ = loop::current().now();
    retired_.push_back(std::exchange(crew_, std::move(*loaded)));
    calls_.errors_in_a_row = 0;
    notify();
    co_return true;
}

/// Ends the threads of earlier versions of the script once their calls have ended.
void cache_hooks::end_retired() {
    std::erase_if(retired_, [](const auto& each) { return each->has_ended(); });
    for (const auto& each : retired_)
        if (each->threads().unfinished() == 0) each->threads().end();
}

/// False while the threads of an earlier version may still write what they have kept: newer changes
/// must not be written before. For the time of one call at most.
bool cache_hooks::may_take_jobs() noexcept {
    if (loop::current().now() - retired_at_ >= config_.time) return true;
    return std::ranges::none_of(retired_,
                                [](const auto& each) { return each->functions().has_own(); });
}

void cache_hooks::attach(cache_context& to) {
    eddy::cache::hook_options options = config_.options;
    options.has_miss = crew_->functions().miss;
    options.has_write = crew_->functions().write;
    options.has_delete = crew_->functions().erase;
    options.has_expire = crew_->functions().expire;
    context_ = &to;
    hooks_ = &read_through::attach(to.engine, options, *this);
}

void cache_hooks::note_end(bool has_failed) noexcept {
    if (has_failed)
        calls_.note_error(script::script_failed);
    else
        calls_.errors_in_a_row = 0;
}

void cache_hooks::finish(hook_answer&& answer) {
    note_end(answer.result.failed);
    if (answer.result.failed) note("failed: " + answer.error);
    answers_.push_back(std::move(answer.result));
    notify();
}

void cache_hooks::notify() noexcept {
    something_.set();
    progress_.set();
}

/// To the journal, unless there is too much of it.
void cache_hooks::note(std::string line) {
    const time_point now = loop::current().now();
    if (now - second_began_ >= std::chrono::seconds(1)) {
        if (lines_ > max_lines_a_second)
            events_.write(fmt::format("hooks: {} more lines in one second were left out",
                                      lines_ - max_lines_a_second));
        second_began_ = now;
        lines_ = 0;
    }
    if (++lines_ > max_lines_a_second) return;
    for (char& each : line) {
        if (static_cast<unsigned char>(each) < ' ') each = ' ';
    }
    events_.write("hooks: " + line);
}

task<result<>> cache_hooks::wait_for_something() {
    const std::int64_t due_us = hooks_->next_due_us();
    if (due_us == INT64_MAX) co_return co_await something_.wait();
    const std::int64_t now_us = hooks_->now_us();
    const duration pause = std::min<duration>(
        std::chrono::microseconds(std::max<std::int64_t>(due_us - now_us, 1000)), longest_pause);
    const result<> woken = co_await with_timeout(pause, something_.wait());
    if (!woken && woken.error() == errc::timed_out) co_return result<>();
    co_return woken;
}

task<void> cache_hooks::run() {
    for (;;) {
        something_.reset();
        context_->update_time();
        while (!answers_.empty()) {
            eddy::cache::hook_result next = std::move(answers_.front());
            answers_.pop_front();
            try {
                hooks_->finish(std::move(next));
            } catch (const std::bad_alloc&) {
                note("there is no memory for the values of on_miss");
            }
        }
        hooks_->tick();
        end_retired();
        hook_job job;
        while (crew_->threads().has_free() && may_take_jobs() && hooks_->take(job)) {
            const duration limit = job.what == hook_job::kind::miss
                                       ? duration(std::chrono::microseconds(
                                             config_.options.deadline_us * patience_factor))
                                       : config_.time;
            const result<> submitted =
                crew_->threads().submit(std::make_unique<call>(*this, std::move(job), limit));
            EDDY_ASSERT(submitted);
        }
        progress_.set();
        if (!co_await wait_for_something()) co_return;
    }
}

task<void> cache_hooks::flush() {
    const time_point end = loop::current().after(config_.flush);
    while (!hooks_->flushed()) {
        progress_.reset();
        const duration left = end - loop::current().now();
        if (left <= duration::zero()) break;
        if (!co_await with_timeout(left, progress_.wait())) break;
    }
    report_lost();
    crew_->threads().end();
    for (const auto& each : retired_) each->threads().end();
    co_await await_end(std::max(loop::current().now() + end_patience,
                                crew_->functions().has_own() ? end : time_point{}));
}

/// Awaits the end of all threads, which make their last calls.
task<void> cache_hooks::await_end(time_point end) {
    const auto at_work = [this] {
        std::size_t sum = crew_->at_work();
        for (const auto& each : retired_) sum += each->at_work();
        return sum;
    };
    while (at_work() > 0) {
        progress_.reset();
        const duration left = end - loop::current().now();
        if (left <= duration::zero()) break;
        if (!co_await with_timeout(left, progress_.wait())) break;
    }
    if (at_work() > 0)
        events_.write(fmt::format(
            "hooks: {} threads still run the script; the stop does not wait for them", at_work()));
}

void cache_hooks::report_lost() {
    if (hooks_->flushed()) return;
    std::size_t count = 0;
    std::string keys;
    hooks_->queue().for_each([&](std::string_view key, const eddy::cache::key_change&) {
        if (count++ < lost_keys_shown) keys += " " + shown(key.substr(1));
    });
    events_.write(
        fmt::format("hooks: {} changes were not passed to the script within {} s and are "
                    "lost:{}{}",
                    count, std::chrono::duration<double>(config_.flush).count(), keys,
                    count > lost_keys_shown ? " ..." : ""));
}

void cache_hooks::count(metrics& into) const {
    if (hooks_ == nullptr) return;
    add_samples(into, hooks_->counts());
    into.add_sample(hook_ticks_total, static_cast<double>(ticks_));
    into.add_sample(hook_tick_errors_total, static_cast<double>(failed_ticks_));
}

}  // namespace eddy::runtime::cache
