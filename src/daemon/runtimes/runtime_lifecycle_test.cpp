// Tests of the lifecycle by itself: a registry, two loops, and a store in memory.
#include "daemon/runtimes/runtime_lifecycle.hpp"

#include "base/files/temporary_folder.hpp"
#include "daemon/runtimes/registry_fixture.hpp"
#include "daemon/state/memory_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::memory_store;
using ::testing::StartsWith;

class runtime_lifecycle_test : public testing::registry_fixture {
public:
    void TearDown() override { EXPECT_EQ(testing::instances.load(), 0) << "instances were lost"; }

    using steps = task<void> (*)(runtime_lifecycle_test&);
    void live(steps body) { loop_->run(lead(*this, body)); }

    static std::vector<std::string> journal_of(const managed_runtime& which) {
        std::vector<std::string> texts;
        for (const journal_line& each : which.journal->read(0, 100)) texts.push_back(each.text);
        return texts;
    }

    const eddy::testing::temporary_folder folder_;
    memory_store store_;
    blocking_pool disk_;
    const state_access state_{store_, disk_};
    const std::unique_ptr<loop_group> loops_ = std::move(*loop_group::start(two_loops()));
    std::vector<std::uint64_t> hosted_;
    runtime_lifecycle lifecycle_{registry_,
                                 state_,
                                 disk_,
                                 *loops_,
                                 {duration::zero(), folder_.path()},
                                 [this](const std::string&, std::uint64_t number) {
                                     hosted_.push_back(number);
                                     return nullptr;
                                 }};

private:
    static loop_group_options two_loops() {
        loop_group_options options;
        options.threads = 2;
        options.loop.kind = io_backend_kind::epoll;
        return options;
    }
    static task<void> lead(runtime_lifecycle_test& with, steps body) {
        co_await body(with);
        EXPECT_TRUE(co_await with.lifecycle_.shut_down(std::chrono::seconds(1)));
    }
};

TEST_F(runtime_lifecycle_test, a_start_and_a_stop_are_stored) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        EXPECT_TRUE(with.store_.at("a").running);
        EXPECT_EQ(a->running.status(), runtime_status::running);
        EXPECT_TRUE(with.registry_.published()->resolve("a"));
        EXPECT_TRUE(co_await with.lifecycle_.stop(a, unsaved::kept));
        EXPECT_FALSE(with.store_.at("a").running);
        EXPECT_THAT(journal_of(*a),
                    ElementsAre("level 1", "started on 127.0.0.1:1000", "prepared", "stopped"));
    });
}

TEST_F(runtime_lifecycle_test, a_start_that_cannot_be_stored_is_none) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        with.store_.is_full = true;
        const auto started = co_await with.lifecycle_.start(a);
        EXPECT_FALSE(started);
        EXPECT_EQ(started.error().message, "\"a\" could not be started: the store is full");
        EXPECT_EQ(a->running.status(), runtime_status::created);
        EXPECT_FALSE(a->desired.record.running);
        EXPECT_THAT(with.hosted_, ElementsAre());
    });
}

TEST_F(runtime_lifecycle_test, what_does_not_start_is_not_to_run) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        runtime_record taken = with.record("a");
        taken.options = {{"port", 666}};
        const runtime_ref a = with.add(taken);
        EXPECT_FALSE(co_await with.lifecycle_.start(a));
        EXPECT_EQ(a->running.status(), runtime_status::failed);
        EXPECT_FALSE(with.store_.at("a").running);
        EXPECT_FALSE(a->desired.record.running);
    });
}

TEST_F(runtime_lifecycle_test, a_stop_that_cannot_be_stored_stops_and_says_so) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        with.store_.is_full = true;
        const auto stopped = co_await with.lifecycle_.stop(a, unsaved::kept);
        EXPECT_FALSE(stopped);
        EXPECT_THAT(stopped.error().message, HasSubstr("is stopped, but will run again"));
        EXPECT_EQ(a->running.status(), runtime_status::stopped);
        EXPECT_TRUE(a->desired.record.running);
    });
}

/// A start, and an end of the instance by itself that cannot be stored.
task<runtime_ref> end_unsaved(runtime_lifecycle_test& with, std::string name) {
    const runtime_ref made = with.add(with.record(std::move(name)));
    EXPECT_TRUE(co_await with.lifecycle_.start(made));
    with.store_.is_full = true;
    const auto ended = co_await with.lifecycle_.end_instance(
        made, {made->running.number(), "exited with status 3", true});
    EXPECT_FALSE(ended);
    if (!ended)
        EXPECT_THAT(ended.error().message,
                    AllOf(HasSubstr("will run again with the next daemon: the store is full"),
                          HasSubstr("tried again")));
    EXPECT_EQ(made->running.status(), runtime_status::failed);
    EXPECT_EQ(made->running.reason(), "exited with status 3");
    EXPECT_TRUE(made->has_unsaved_end());
    EXPECT_TRUE(with.store_.at(made->name()).running);
    co_return made;
}

task<void> await_saved(const managed_runtime& which) {
    while (which.has_unsaved_end())
        EXPECT_TRUE(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
}

TEST_F(runtime_lifecycle_test, an_end_that_cannot_be_stored_is_stored_later) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        scope saving(co_await current_source());
        saving.spawn(with.lifecycle_.save_ends());
        const runtime_ref a = co_await end_unsaved(with, "a");
        with.store_.is_full = false;
        co_await await_saved(*a);
        EXPECT_FALSE(with.store_.at("a").running);
        EXPECT_EQ(a->running.status(), runtime_status::failed);
        saving.cancel();
        co_await saving.join();
    });
}

TEST_F(runtime_lifecycle_test, a_start_or_a_stop_takes_the_place_of_an_end_that_is_not_stored) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = co_await end_unsaved(with, "a");
        const auto again = co_await with.lifecycle_.stop(a, unsaved::kept);
        EXPECT_FALSE(again);
        EXPECT_TRUE(a->has_unsaved_end());
        with.store_.is_full = false;
        EXPECT_TRUE(co_await with.lifecycle_.stop(a, unsaved::kept));
        EXPECT_FALSE(a->has_unsaved_end());
        EXPECT_FALSE(with.store_.at("a").running);
        const runtime_ref b = co_await end_unsaved(with, "b");
        with.store_.is_full = false;
        EXPECT_TRUE(co_await with.lifecycle_.start(b));
        EXPECT_FALSE(b->has_unsaved_end());
        EXPECT_TRUE(with.store_.at("b").running);
        EXPECT_EQ(b->running.status(), runtime_status::running);
    });
}

TEST_F(runtime_lifecycle_test, the_shutdown_stores_an_end) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = co_await end_unsaved(with, "a");
        with.store_.is_full = false;
        EXPECT_TRUE(co_await with.lifecycle_.prepare_shutdown(std::chrono::seconds(1)));
        EXPECT_FALSE(with.store_.at("a").running);
    });
}

TEST_F(runtime_lifecycle_test, each_start_is_another_instance_on_the_loop_with_the_fewest) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        const runtime_ref b = with.add(with.record("b"));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        EXPECT_TRUE(co_await with.lifecycle_.start(b));
        EXPECT_NE(a->running.where(), b->running.where());
        EXPECT_TRUE(co_await with.lifecycle_.stop(a, unsaved::kept));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        EXPECT_NE(a->running.where(), b->running.where());
        EXPECT_THAT(with.hosted_, ElementsAre(1, 2, 3));
        EXPECT_EQ(a->running.number(), 3U);
    });
}

task<edit_effect> apply(runtime_lifecycle& to, runtime_ref which, json options) {
    const auto held = co_await which->change_lock.lock();
    auto checked = runtime::settings::parse(which->desired.type->options, options);
    auto effect = co_await to.apply(which, std::move(*checked), restart_data::kept);
    EXPECT_TRUE(effect) << (effect ? "" : effect.error().message);
    co_return effect ? *effect : edit_effect::none;
}

TEST_F(runtime_lifecycle_test, options_are_applied_live_or_by_a_restart_with_the_data) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        EXPECT_TRUE(co_await with.lifecycle_.send(a, "keep this"));
        EXPECT_EQ(co_await apply(with.lifecycle_, a, {{"level", 2}}), edit_effect::live);
        EXPECT_EQ(a->desired.options->number("level"), 2);
        EXPECT_EQ(a->running.number(), 1U);
        EXPECT_EQ(co_await apply(with.lifecycle_, a, {{"port", 81}}), edit_effect::restarted);
        EXPECT_EQ(a->desired.options->number("port"), 81);
        EXPECT_EQ(a->running.number(), 2U);
        EXPECT_THAT(journal_of(*a), ::testing::Contains("has this"));
    });
}

TEST_F(runtime_lifecycle_test, after_a_shutdown_nothing_starts_and_what_ran_is_still_to_run) {
    live([](runtime_lifecycle_test& with) -> task<void> {
        const runtime_ref a = with.add(with.record("a"));
        const runtime_ref b = with.add(with.record("b"));
        EXPECT_TRUE(co_await with.lifecycle_.start(a));
        EXPECT_TRUE(co_await with.lifecycle_.shut_down(std::chrono::seconds(1)));
        EXPECT_EQ(a->running.status(), runtime_status::stopped);
        EXPECT_TRUE(with.store_.at("a").running);
        const auto late = co_await with.lifecycle_.start(b);
        EXPECT_FALSE(late);
        EXPECT_THAT(late.error().message, HasSubstr("the daemon is stopping"));
    });
}

}  // namespace
}  // namespace eddy::daemon
