// Tests of remote calls: values, a loop that does not answer, and a process that was stopped.
#include "daemon/runtimes/remote.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace eddy::daemon {
namespace {

using namespace std::chrono_literals;

/// A flag that blocks a thread until it is set.
struct gate {
    void open() {
        is_open = true;
        is_open.notify_all();
    }
    std::atomic<bool> is_open{false};
};

task<int> answer_behind(std::shared_ptr<gate> at) {
    at->is_open.wait(false);
    co_return 7;
}

task<int> throw_at_once() {
    throw std::runtime_error("lost");
    co_return 0;
}

class remote_calls : public ::testing::Test {
protected:
    remote_calls() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        home_ = std::move(*loop::create(options));
        loop_group_options others;
        others.threads = 1;
        others.loop.kind = io_backend_kind::epoll;
        others_ = std::move(*loop_group::start(others));
    }
    ~remote_calls() override { gate_->open(); }

    outcome<int> call(task<int> work, duration patience) {
        outcome<int> got = refuse(500, "nothing came");
        home_->run(keep(std::move(work), patience, got));
        return got;
    }
    task<void> keep(task<int> work, duration patience, outcome<int>& into) {
        into = co_await run_on(*others_, 0, std::move(work), patience);
    }

    const std::shared_ptr<gate> gate_ = std::make_shared<gate>();
    std::unique_ptr<loop> home_;
    std::unique_ptr<loop_group> others_;
};

TEST_F(remote_calls, bring_the_value_or_the_exception_home) {
    gate_->open();
    EXPECT_EQ(call(answer_behind(gate_), 60s), 7);
    const auto failed = call(throw_at_once(), 60s);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().status, 500);
    EXPECT_NE(failed.error().message.find("lost"), std::string::npos);
}

TEST_F(remote_calls, take_functions_that_return_at_once) {
    outcome<std::thread::id> got;
    home_->run([](loop_group& others, outcome<std::thread::id>& into) -> task<void> {
        const auto name_thread = [] { return std::this_thread::get_id(); };
        into = co_await run_on(others, 0, name_thread, 60s);
    }(*others_, got));
    ASSERT_TRUE(got);
    EXPECT_NE(*got, std::this_thread::get_id());
}

TEST_F(remote_calls, end_when_the_loop_does_not_answer) {
    for (const duration patience : {duration(0s), duration(30ms)}) {
        const auto failed = call(answer_behind(gate_), patience);
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().status, 503);
    }
}

task<void> stop_the_process(std::shared_ptr<gate> others) {
    static_cast<void>(co_await loop::current().yield());
    std::this_thread::sleep_for(3s);
    others->open();
}

/// As SIGSTOP and SIGCONT do: no thread runs until the patience is long over.
TEST_F(remote_calls, take_a_process_that_was_stopped_for_no_loop_that_does_not_answer) {
    outcome<int> got = refuse(500, "nothing came");
    home_->run(with_scope([&](scope& children) -> task<void> {
        children.spawn(stop_the_process(gate_));
        co_await keep(answer_behind(gate_), 2500ms, got);
    }));
    EXPECT_EQ(got, 7);
}

}  // namespace
}  // namespace eddy::daemon
