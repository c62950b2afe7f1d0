// Hooks of a cache at work: one task assigns jobs and takes results, in turns of the loop.
#include "runtime/cache/cache_hooks.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/cache_metrics.hpp"
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

/// A hook's own time: what waits for it gives up earlier, but a late answer is still of use.
constexpr int patience_factor = 4;
constexpr std::chrono::seconds change_limit{30};
/// How long a stop waits for threads that have nothing more to do.
constexpr duration end_patience = std::chrono::seconds(1);
constexpr duration longest_pause = std::chrono::seconds(60);
constexpr std::size_t lost_keys_shown = 5;

task<outcome<script_file>> read_file(const hook_config& chosen) {
    return read_script_in_background("--hooks", chosen.file, cache_hooks::max_script_bytes);
}

std::string shown(std::string_view key) {
    constexpr std::size_t most = 64;
    std::string text;
    for (const char each : key.substr(0, most)) text += each >= ' ' && each <= '~' ? each : '?';
    if (key.size() > most) text += "...";
    return text;
}

}  // namespace

/// Call of one hook by a worker.
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

cache_hooks::cache_hooks(hook_config chosen, journal& events)
    : config_(std::move(chosen)), events_(events) {}

cache_hooks::~cache_hooks() = default;

task<outcome<>> cache_hooks::check() const {
    const outcome<script_file> read = co_await read_file(config_);
    if (!read) co_return std::unexpected(read.error());
    const auto compiled =
        lua::blocking_state({}, [](std::string_view) {}).compile(read->text, read->name);
    if (!compiled)
        co_return refuse(400, fmt::format("--hooks {}: {}", config_.file, compiled.error()));
    co_return outcome<>();
}

task<outcome<>> cache_hooks::prepare() {
    outcome<script_file> read = co_await read_file(config_);
    if (!read) co_return std::unexpected(read.error());
    try {
        script::worker_options chosen;
        chosen.threads = config_.threads;
        chosen.text = std::move(read->text);
        chosen.name = std::move(read->name);
        chosen.functions = eddy::cache::hook_names;
        script::workers_observer& observer = *this;
        workers_ = std::make_unique<script::workers>(std::move(chosen), observer);
    } catch (const std::system_error& failure) {
        co_return refuse(500,
                         fmt::format("the threads of --hooks cannot be made: {}", failure.what()));
    }
    const time_point end = loop::current().now() + load_patience;
    while (loaded_ < workers_->threads() && load_fault_.empty()) {
        progress_.reset();
        const duration left = end - loop::current().now();
        const result<> woken = left <= duration::zero()
                                   ? fail(errc::timed_out)
                                   : co_await with_timeout(left, progress_.wait());
        if (woken) continue;
        if (woken.error() != errc::timed_out) co_return refuse(503, "the cache is stopping");
        load_fault_ =
            fmt::format("it was not loaded within {} s",
                        std::chrono::duration_cast<std::chrono::seconds>(load_patience).count());
    }
    if (!load_fault_.empty()) {
        workers_.reset();
        co_return refuse(400, fmt::format("--hooks {}: {}", config_.file, load_fault_));
    }
    if (!functions_.any())
        co_return refuse(400,
                         fmt::format("--hooks {} defines none of on_miss, on_write, on_delete and "
                                     "on_expire",
                                     config_.file));
    co_return outcome<>();
}

void cache_hooks::attach(cache_context& to) {
    eddy::cache::hook_options options = config_.options;
    options.has_miss = functions_.miss;
    options.has_write = functions_.write;
    options.has_delete = functions_.erase;
    options.has_expire = functions_.expire;
    context_ = &to;
    hooks_ = &read_through::attach(to.engine, options, *this);
}

void cache_hooks::worker_loaded(std::expected<std::vector<bool>, std::string> defined) {
    ++loaded_;
    functions_ = {};
    if (defined)
        functions_ = eddy::cache::hooks_of(*defined);
    else
        load_fault_ = std::move(defined.error());
    notify();
}

void cache_hooks::worker_printed(std::string line) {
    note(std::move(line));
    notify();
}

void cache_hooks::worker_ended() {
    ++left_;
    notify();
}

void cache_hooks::finish(hook_answer&& answer) {
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
        hook_job job;
        while (workers_->has_free() && hooks_->take(job)) {
            const duration limit = job.what == hook_job::kind::miss
                                       ? duration(std::chrono::microseconds(
                                             config_.options.deadline_us * patience_factor))
                                       : duration(change_limit);
            const result<> submitted =
                workers_->submit(std::make_unique<call>(*this, std::move(job), limit));
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
    workers_->end();
    const time_point left_end = loop::current().now() + end_patience;
    while (left_ < workers_->threads()) {
        progress_.reset();
        const duration left = left_end - loop::current().now();
        if (left <= duration::zero()) break;
        if (!co_await with_timeout(left, progress_.wait())) break;
    }
    if (left_ < workers_->threads())
        events_.write(fmt::format(
            "hooks: {} of {} threads still run the script; the stop does not wait for them",
            workers_->threads() - left_, workers_->threads()));
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
    if (hooks_ != nullptr) add_samples(into, hooks_->counts());
}

}  // namespace eddy::runtime::cache
