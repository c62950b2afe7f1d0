// Tests of the state machine of a runtime's status.
#include "daemon/runtimes/running_state.hpp"

#include <eddy/io/loop_group.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

using enum runtime_status;

class running_state_test : public ::testing::Test {
protected:
    void begin_start() { state_.begin_start(where_, ++number_, nullptr); }
    void start() {
        begin_start();
        state_.finish_start(time_point{}, *endpoint::ip("127.0.0.1", 80));
    }

    static loop_group_options one_loop() {
        loop_group_options options;
        options.threads = 1;
        options.loop.kind = io_backend_kind::epoll;
        return options;
    }
    const std::unique_ptr<loop_group> loops_ = std::move(*loop_group::start(one_loop()));
    loop_runtimes where_{*loops_, 0};  // never asked for anything
    std::uint64_t number_ = 0;
    running_state state_;
};

TEST_F(running_state_test, one_that_has_lost_an_address_is_degraded_while_it_runs) {
    begin_start();
    state_.finish_start(time_point{}, *endpoint::ip("127.0.0.1", 80));
    EXPECT_FALSE(is_degraded(state_));
    runtime_vitals fresh = state_.vitals();
    fresh.fault = "not listening on tcp://127.0.0.1:80: it is in use";
    state_.refresh(fresh);
    EXPECT_TRUE(is_degraded(state_));
    state_.begin_stop();
    EXPECT_FALSE(is_degraded(state_));
}

TEST_F(running_state_test, a_life_from_start_to_stop) {
    EXPECT_EQ(state_.status(), created);
    EXPECT_FALSE(state_.has_instance());
    begin_start();
    EXPECT_EQ(state_.status(), starting);
    EXPECT_EQ(state_.where(), &where_);
    state_.finish_start(time_point{}, *endpoint::ip("127.0.0.1", 80));
    EXPECT_EQ(state_.status(), running);
    EXPECT_EQ(state_.vitals().local.port(), 80);
    runtime_vitals fresh = state_.vitals();
    fresh.counted.connections_now = 5;
    fresh.counted.connections_total = 9;
    state_.refresh(fresh);
    state_.begin_stop();
    EXPECT_EQ(state_.status(), stopping);
    state_.finish_stop("a list");
    EXPECT_EQ(state_.status(), stopped);
    EXPECT_FALSE(state_.has_instance());
    EXPECT_EQ(state_.lost(), "a list");
    EXPECT_EQ(state_.vitals().counted.connections_now.value(), 0U);
    EXPECT_EQ(state_.vitals().counted.connections_total.value(), 9U);
    EXPECT_EQ(state_.vitals().local.family(), AF_UNSPEC);
    begin_start();
    EXPECT_EQ(state_.lost(), "") << "of the stop before";
}

TEST_F(running_state_test, a_start_that_fails_leaves_a_reason_until_the_next_one) {
    begin_start();
    state_.fail_start("its port is taken");
    EXPECT_EQ(state_.status(), failed);
    EXPECT_FALSE(state_.has_instance());
    EXPECT_EQ(state_.reason(), "its port is taken");
    state_.await_start();
    EXPECT_EQ(state_.status(), starting);
    EXPECT_FALSE(state_.has_instance()) << "it waits for the next attempt";
    state_.give_up_retry();
    EXPECT_EQ(state_.status(), failed);
    EXPECT_EQ(state_.reason(), "its port is taken");
    begin_start();
    EXPECT_EQ(state_.reason(), "");
}

TEST_F(running_state_test, a_stop_that_fails_keeps_the_instance_and_can_be_tried_again) {
    start();
    state_.begin_stop();
    state_.fail_stop("its loop does not answer");
    EXPECT_EQ(state_.status(), failed);
    EXPECT_TRUE(state_.has_instance());
    EXPECT_EQ(state_.number(), 1U);
    state_.begin_stop();
    state_.finish_stop({});
    EXPECT_EQ(state_.status(), stopped);
}

TEST_F(running_state_test, an_instance_that_ends_by_itself_is_stopped_or_has_failed) {
    start();
    state_.note_ending("exited with status 0", false);
    state_.begin_stop();
    state_.finish_stop({});
    EXPECT_EQ(state_.status(), stopped);
    EXPECT_EQ(state_.ending(), "exited with status 0");
    start();
    EXPECT_EQ(state_.ending(), "");
    state_.note_ending("exited with status 3", true);
    state_.begin_stop();
    state_.finish_stop({});
    EXPECT_EQ(state_.status(), failed);
    EXPECT_EQ(state_.reason(), "exited with status 3");
    EXPECT_EQ(state_.ending(), "");
    start();
    EXPECT_EQ(state_.reason(), "");
}

TEST_F(running_state_test, an_end_may_be_noted_after_the_instance_is_gone) {
    state_.await_start();
    state_.finish_ending("exited with status 0", false);
    EXPECT_EQ(state_.status(), stopped);
    EXPECT_EQ(state_.ending(), "exited with status 0");
    state_.finish_ending("exited with status 3", true);
    EXPECT_EQ(state_.status(), failed);
    EXPECT_EQ(state_.reason(), "exited with status 3");
    EXPECT_EQ(state_.ending(), "");
    start();
    EXPECT_EQ(state_.reason(), "");
}

TEST_F(running_state_test, data_for_the_next_instance_stays_until_that_has_started) {
    start();
    state_.begin_stop();
    state_.finish_stop({});
    state_.keep_handover(std::make_shared<runtime::handover>());
    begin_start();
    state_.fail_start("nothing starts");
    EXPECT_NE(state_.handover(), nullptr);
    start();
    EXPECT_EQ(state_.handover(), nullptr);
}

TEST_F(running_state_test, changes_that_may_be) {
    const runtime_status all[] = {created, starting, running, stopping, stopped, failed};
    std::string table;
    for (const runtime_status from : all) {
        for (const runtime_status to : all) table += may_change(from, to) ? 'x' : '.';
        table += '\n';
    }
    EXPECT_EQ(table,
              ".x..xx\n"   // created
              ".xx.xx\n"   // starting
              "...x.x\n"   // running
              "....xx\n"   // stopping
              ".x..xx\n"   // stopped
              ".x.xxx\n")  // failed
        << "columns: created starting running stopping stopped failed";
}

using running_state_death_test = running_state_test;

TEST_F(running_state_death_test, aborts_at_a_change_that_cannot_be) {
    loops_->stop();  // no thread may run beside a fork
    EXPECT_DEATH(state_.begin_stop(), "has_instance");
    EXPECT_DEATH(state_.finish_stop({}), "stopping");
    EXPECT_DEATH(state_.finish_start(time_point{}, {}), "starting");
    EXPECT_DEATH(state_.reject(""), "reason");
    EXPECT_DEATH(state_.begin_start(where_, 0, nullptr), "number > number_");
    start();
    EXPECT_DEATH(begin_start(), "has_instance");
    EXPECT_DEATH(state_.mark_stopped(), "has_instance");
    EXPECT_DEATH(state_.keep_handover(nullptr), "has_instance");
    state_.begin_stop();
    EXPECT_DEATH(state_.begin_stop(), "may_change");
}

}  // namespace
}  // namespace eddy::daemon
