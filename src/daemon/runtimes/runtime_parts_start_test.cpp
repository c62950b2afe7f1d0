// The start of a daemon's runtimes while requests come, and the end of starts that take long.
#include <eddy/io/scope.hpp>

#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace eddy::daemon {
namespace {

using testing::describe;
using ::testing::HasSubstr;
using testing::make;
using testing::wanted;

runtime_record running_record(const std::string& name, json options) {
    runtime_record record;
    record.id = "id-" + name;
    record.name = name;
    record.type = "fake";
    record.running = true;
    record.options = std::move(options);
    return record;
}

class runtime_parts_start_test : public testing::runtime_parts_fixture {
protected:
    /// One that was running when the daemon before ended.
    void keep(const std::string& name, json options = json::object()) {
        ASSERT_TRUE(store_->save(running_record(name, std::move(options))));
    }
};

runtime_ref find(runtime_parts& runtimes, std::string_view name) {
    auto found = runtimes.registry.find(name);
    EXPECT_TRUE(found) << name;
    return found ? *found : nullptr;
}

task<void> until(runtime_ref which, runtime_status status) {
    while (which->running.status() != status)
        static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
}

task<void> start_one(runtime_parts& runtimes, runtime_ref which, int& ended) {
    static_cast<void>(co_await runtimes.lifecycle.start(which));
    ++ended;
}

TEST_F(runtime_parts_start_test, others_run_and_change_while_one_takes_long) {
    keep("long", {{"patient", true}});
    keep("quick");
    keep("wrong", {{"port", 666}});
    live_meanwhile([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref slow = find(runtimes, "long");
        EXPECT_EQ(slow->running.status(), runtime_status::starting);
        EXPECT_EQ(describe(*slow).at("status"), "starting");
        EXPECT_TRUE(describe(*slow).at("uptime_s").is_null());
        co_await until(find(runtimes, "quick"), runtime_status::running);
        co_await until(find(runtimes, "wrong"), runtime_status::failed);
        const runtime_ref fresh = co_await make(runtimes, wanted("fresh"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(fresh));
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(find(runtimes, "quick")));
        EXPECT_EQ(slow->running.status(), runtime_status::starting);
    });
    EXPECT_TRUE(saved("long").at("running")) << "it starts with the next daemon";
    EXPECT_TRUE(saved("wrong").at("running"));
    EXPECT_FALSE(saved("quick").at("running"));
}

TEST_F(runtime_parts_start_test, what_starts_is_not_changed_and_says_so) {
    keep("long", {{"patient", true}});
    live_meanwhile([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref slow = find(runtimes, "long");
        const auto edited = co_await runtimes.editor.edit(slow, {.options = {{"level", 2}}});
        EXPECT_FALSE(edited);
        EXPECT_EQ(edited.error().status, 409);
        EXPECT_THAT(edited.error().message, HasSubstr("\"long\" is still starting"));
        EXPECT_THAT(edited.error().message, HasSubstr("eddy stop long"));
        const auto reloaded = co_await runtimes.lifecycle.reload(slow);
        EXPECT_FALSE(reloaded);
        EXPECT_THAT(reloaded.error().message, HasSubstr("is still starting"));
        const auto sent = co_await runtimes.lifecycle.send(slow, "hello");
        EXPECT_FALSE(sent);
        EXPECT_THAT(sent.error().message, HasSubstr("is still starting"));
        EXPECT_EQ(slow->running.status(), runtime_status::starting);
    });
}

TEST_F(runtime_parts_start_test, a_stop_ends_it_and_it_can_be_started_again) {
    keep("long", {{"patient", true}});
    live_meanwhile([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref slow = find(runtimes, "long");
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(slow));
        EXPECT_EQ(slow->running.status(), runtime_status::stopped);
        EXPECT_EQ(slow->running.reason(), "");
        EXPECT_TRUE(co_await runtimes.editor.edit(slow, {.options = {{"patient", false}}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(slow));
        EXPECT_EQ(slow->running.status(), runtime_status::running);
    });
}

TEST_F(runtime_parts_start_test, a_second_start_waits_for_the_first) {
    keep("long", {{"patient", true}});
    live_meanwhile([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref slow = find(runtimes, "long");
        int ended = 0;
        scope second(co_await current_source());
        second.spawn(start_one(runtimes, slow, ended));
        static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(20)));
        EXPECT_EQ(ended, 0);
        EXPECT_TRUE(co_await runtimes.editor.remove(slow));
        co_await second.join();
        EXPECT_EQ(ended, 1);
        EXPECT_TRUE(runtimes.registry.all().empty());
    });
}

// After a crash the kernel may still close the sockets of the daemon before.
TEST_F(runtime_parts_start_test, a_pause_before_the_next_attempt_is_ended_too) {
    address_grace_ = std::chrono::hours(1);
    keep("stopped", {{"port", 666}});
    keep("removed", {{"port", 666}});
    keep("left", {{"port", 666}});
    live_meanwhile([](runtime_parts& runtimes) -> task<void> {
        // Longer and longer ones: waits for one that no test could sit out.
        static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(200)));
        const runtime_ref stopped = find(runtimes, "stopped");
        EXPECT_EQ(stopped->running.status(), runtime_status::starting);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(stopped));
        EXPECT_EQ(stopped->running.status(), runtime_status::stopped);
        EXPECT_TRUE(co_await runtimes.editor.remove(find(runtimes, "removed")));
        EXPECT_EQ(runtimes.registry.all().size(), 2U);
    });
    EXPECT_TRUE(saved("left").at("running"));
}

TEST_F(runtime_parts_start_test, nothing_starts_once_the_daemon_stops) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref late = co_await make(runtimes, wanted("late"));
        EXPECT_TRUE(co_await runtimes.lifecycle.shut_down(std::chrono::seconds(1)));
        const auto started = co_await runtimes.lifecycle.start(late);
        EXPECT_FALSE(started);
        EXPECT_THAT(started.error().message, HasSubstr("the daemon is stopping"));
    });
}

}  // namespace
}  // namespace eddy::daemon
