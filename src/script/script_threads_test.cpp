// Tests of threads of scripts: order, limits, faults, and the end while threads are at work.
#include "script/script_threads.hpp"

#include <eddy/io/event.hpp>

#include "io/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::Contains;
using ::testing::IsEmpty;

// Threads of the system: not on the simulator.
EDDY_ON_EVERY_KERNEL_IO_BACKEND(script_threads_io);

constexpr std::array<const char*, 2> names = {"answer", "other"};

/// Recorder of the threads' notifications, with a wait for them.
class recorder final : public script_threads_observer {
public:
    void thread_loaded(std::expected<std::vector<bool>, std::string> outcome) override {
        ++loaded;
        if (outcome)
            defined = std::move(*outcome);
        else
            fault = std::move(outcome.error());
        changed.set();
    }
    void thread_printed(std::string line) override {
        lines.push_back(std::move(line));
        changed.set();
    }
    void thread_began(std::expected<void, std::string> outcome) override {
        ++begun;
        if (!outcome) fault = std::move(outcome.error());
        changed.set();
    }
    void thread_ticked(std::string why) override {
        ++ticks;
        lines.push_back(std::move(why));
        changed.set();
    }
    void thread_ended() override {
        ++ended;
        changed.set();
    }

    task<void> until(std::function<bool()> is_true) {
        while (!is_true()) {
            changed.reset();
            must(co_await with_timeout(30s, changed.wait()));
        }
    }

    std::size_t loaded = 0;
    std::size_t begun = 0;
    std::size_t ticks = 0;
    std::size_t ended = 0;
    std::vector<bool> defined;
    std::string fault;
    std::vector<std::string> lines;
    std::vector<std::string> answers;
    event changed;
};

/// Calls answer(number) and notes its text, or its error.
class question final : public job {
public:
    question(recorder& to, double number, std::chrono::nanoseconds limit = 30s)
        : to_(to), number_(number), limit_(limit) {}

    void run(lua::blocking_state& in) override {
        if (number_ < 0) throw std::bad_alloc();
        const auto called = in.call(
            0, limit_,
            [&](lua::stack of) {
                of.pushnumber(number_);
                return 1;
            },
            1, [&](lua::stack of) { text_ = of.tostring(1); });
        if (!called) text_ = called.error();
    }
    void fail_without_memory() noexcept override { text_ = "no memory"; }
    void complete() override {
        to_.answers.push_back(text_);
        to_.changed.set();
    }

private:
    recorder& to_;
    double number_;
    std::chrono::nanoseconds limit_;
    std::string text_;
};

/// Job whose script prints more lines than the queue of output holds.
class loud_job final : public job {
public:
    loud_job(recorder& to, std::atomic<bool>& has_run) : to_(to), has_run_(has_run) {}

    void run(lua::blocking_state& in) override {
        const auto called = in.call(
            0, 30s,
            [](lua::stack of) {
                of.pushnumber(script_threads::max_lines + 100.0);
                return 1;
            },
            0, [](lua::stack) {});
        EXPECT_TRUE(called.has_value()) << called.error();
        has_run_ = true;
        has_run_.notify_all();
    }
    void fail_without_memory() noexcept override {}
    void complete() override {
        to_.answers.emplace_back();
        to_.changed.set();
    }

private:
    recorder& to_;
    std::atomic<bool>& has_run_;
};

/// Keeps its thread until it is released.
class hanging_job final : public job {
public:
    struct flags {
        std::atomic<bool> runs{false};
        std::atomic<bool> released{false};
    };
    explicit hanging_job(std::shared_ptr<flags> with) : flags_(std::move(with)) {}
    void run(lua::blocking_state&) override {
        flags_->runs = true;
        flags_->released.wait(false);
    }
    void fail_without_memory() noexcept override {}
    void complete() override {}

private:
    std::shared_ptr<flags> flags_;
};

script_threads_options options_of(std::string text, std::size_t threads = 1) {
    script_threads_options made;
    made.threads = threads;
    made.text = std::move(text);
    made.name = "own.lua";
    made.functions = names;
    return made;
}

TEST_P(script_threads_io, jobs_complete_in_the_order_of_their_submission) {
    run_with_threads([]() -> task<> {
        recorder seen;
        script_threads all(options_of("print('here') function answer(n) return n + 1 end"), seen);
        co_await seen.until([&] { return seen.loaded == 1; });
        EXPECT_EQ(seen.defined, (std::vector<bool>{true, false}));
        EXPECT_EQ(seen.lines, std::vector<std::string>{"here"});
        EXPECT_TRUE(all.has_free());
        std::vector<std::string> expected;
        for (int i = 0; i < 100; ++i) {
            must(all.submit(std::make_unique<question>(seen, i)));
            expected.push_back(std::to_string(i + 1));
        }
        EXPECT_FALSE(all.has_free());
        co_await seen.until([&] { return seen.answers.size() == 100; });
        EXPECT_EQ(seen.answers, expected);
        EXPECT_EQ(all.unfinished(), 0U);
        all.end();
        co_await seen.until([&] { return seen.ended == 1; });
    });
}

TEST_P(script_threads_io, a_job_beyond_the_limit_is_refused) {
    run_with_threads([]() -> task<> {
        recorder seen;
        script_threads_options chosen = options_of("function answer(n) return n end", 2);
        chosen.max_waiting = 3;
        script_threads all(std::move(chosen), seen);
        // The loop has not been back yet, so none can complete.
        for (int i = 0; i < 5; ++i) must(all.submit(std::make_unique<question>(seen, i)));
        EXPECT_EQ(error_of(all.submit(std::make_unique<question>(seen, 5))), errc::limit_reached);
        EXPECT_EQ(all.unfinished(), 5U);
        co_await seen.until([&] { return seen.answers.size() == 5; });
        must(all.submit(std::make_unique<question>(seen, 6)));
        co_await seen.until([&] { return seen.answers.size() == 6; });
        EXPECT_EQ(seen.answers.back(), "6");
    });
}

TEST_P(script_threads_io, a_job_that_fails_leaves_its_thread_at_work) {
    run_with_threads([]() -> task<> {
        recorder seen;
        script_threads all(options_of("function answer(n) if n == 1 then error('no', 0) end "
                                      "while n == 2 do end return n end"),
                           seen);
        must(all.submit(std::make_unique<question>(seen, 1)));
        must(all.submit(std::make_unique<question>(seen, 2, 10ms)));
        must(all.submit(std::make_unique<question>(seen, -1)));
        must(all.submit(std::make_unique<question>(seen, 3)));
        co_await seen.until([&] { return seen.answers.size() == 4; });
        EXPECT_EQ(seen.answers,
                  (std::vector<std::string>{"no", "own.lua:1: it took longer than it may",
                                            "no memory", "3"}));
    });
}

TEST_P(script_threads_io, a_script_that_does_not_load_ends_each_thread) {
    run_with_threads([]() -> task<> {
        recorder seen;
        script_threads all(options_of("answer = 5", 3), seen);
        co_await seen.until([&] { return seen.ended == 3; });
        EXPECT_EQ(seen.loaded, 3U);
        EXPECT_EQ(seen.fault, "answer must be a function");
    });
}

TEST_P(script_threads_io, lines_beyond_the_limit_are_dropped) {
    run_with_threads([]() -> task<> {
        recorder seen;
        script_threads all(
            options_of("function answer(n) for i = 1, n do print(i) end return n end"), seen);
        co_await seen.until([&] { return seen.loaded == 1; });
        std::atomic<bool> has_run = false;
        must(all.submit(std::make_unique<loud_job>(seen, has_run)));
        // Meanwhile the loop takes nothing.
        has_run.wait(false);
        co_await seen.until([&] { return seen.answers.size() == 1; });
        EXPECT_EQ(seen.lines.size(), script_threads::max_lines);
        EXPECT_EQ(seen.lines.front(), "1");
    });
}

TEST_P(script_threads_io, an_end_leaves_threads_at_work_alone) {
    run_with_threads([]() -> task<> {
        recorder seen;
        {
            script_threads all(
                options_of("function answer(n) print('begun') while true do end end"), seen);
            must(all.submit(std::make_unique<question>(seen, 1, 50ms)));
            must(all.submit(std::make_unique<question>(seen, 2)));
            co_await seen.until([&] { return seen.lines.size() == 1; });
        }
        EXPECT_TRUE(seen.answers.empty());
        EXPECT_EQ(seen.ended, 0U);
    });
}

/// Calls of a script's own, counted.
struct own_calls {
    std::atomic<int> begun{0};
    std::atomic<int> ticks{0};
    std::atomic<int> ended{0};
    std::atomic<bool> is_within{false};

    script_own_calls with(duration pause, std::string fault = "") {
        return {[this, pause, fault](lua::blocking_state&) -> std::expected<duration, std::string> {
                    EXPECT_FALSE(is_within.exchange(true)) << "one after another";
                    ++begun;
                    is_within = false;
                    if (!fault.empty()) return std::unexpected(fault);
                    return pause;
                },
                [this](lua::blocking_state&, duration since_last) {
                    EXPECT_GE(since_last, duration{});
                    return "tick " + std::to_string(++ticks);
                },
                [this](lua::blocking_state&) {
                    ++ended;
                    return std::string("ended");
                }};
    }
};

TEST_P(script_threads_io, threads_begin_tick_and_end) {
    run_with_threads([]() -> task<> {
        own_calls own;
        recorder seen;
        {
            script_threads_options chosen = options_of("function answer(n) return n end", 3);
            chosen.own_calls = own.with(1ms);
            script_threads all(std::move(chosen), seen);
            co_await seen.until([&] { return seen.loaded == 3; });
            EXPECT_EQ(own.begun, 0);
            all.begin();
            co_await seen.until([&] { return seen.begun == 3 && seen.ticks >= 10; });
            EXPECT_EQ(own.begun, 3);
            must(all.submit(std::make_unique<question>(seen, 7)));
            co_await seen.until([&] { return seen.answers.size() == 1; });
            EXPECT_EQ(own.ended, 0);
            all.end();
            co_await seen.until([&] { return seen.ended == 3; });
        }
        EXPECT_EQ(own.ended, 3);
        EXPECT_THAT(seen.lines, Contains("ended"));
        EXPECT_THAT(seen.lines, Contains("tick 1"));
    });
}

TEST_P(script_threads_io, threads_that_do_not_begin_make_no_calls_of_their_own) {
    run_with_threads([]() -> task<> {
        for (const bool begins : {false, true}) {
            own_calls own;
            recorder seen;
            script_threads_options chosen = options_of("function answer(n) return n end", 2);
            chosen.own_calls = own.with(1ms, "no database");
            script_threads all(std::move(chosen), seen);
            co_await seen.until([&] { return seen.loaded == 2; });
            if (begins) {
                all.begin();
                co_await seen.until([&] { return seen.begun == 2; });
                EXPECT_EQ(seen.fault, "no database");
            }
            all.end();
            co_await seen.until([&] { return seen.ended == 2; });
            EXPECT_EQ(own.ticks, 0);
            EXPECT_EQ(own.ended, 0);
        }
    });
}

TEST_P(script_threads_io, a_thread_that_does_not_return_is_known_by_its_owner) {
    run([&]() -> task<void> {
        const auto its = std::make_shared<hanging_job::flags>();
        {
            recorder heard;
            script_threads_options chosen = options_of("function answer(n) return n end");
            chosen.owner = "stuck";
            script_threads crew(std::move(chosen), heard);
            must(crew.submit(std::make_unique<hanging_job>(its)));
            // Else the end of the threads would drop it.
            while (!its->runs) must(co_await loop::current().sleep_for(1ms));
        }
        EXPECT_THAT(script_threads::await_all({}), Contains("stuck"));
        its->released = true;
        its->released.notify_all();
        EXPECT_THAT(script_threads::await_all(30s), IsEmpty());
    });
}

}  // namespace
}  // namespace eddy::script
