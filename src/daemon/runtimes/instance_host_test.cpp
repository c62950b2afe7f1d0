// Tests of hosts: watches of other runtimes' addresses and groups, and messages between runtimes.
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make;
using testing::wanted;

class instance_host_test : public testing::runtime_parts_fixture {};

task<void> start(runtime_parts& runtimes, runtime_ref which) {
    auto started = co_await runtimes.lifecycle.start(which);
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
}

std::vector<std::string> texts(const outcome<runtime::served_addresses>& found) {
    if (!found) return {found.error().message};
    std::vector<std::string> all;
    for (const runtime::served_address& each : *found)
        all.push_back(each.runtime + " " + each.where.to_string());
    return all;
}

/// Addresses after the next change that is observed; others may come before it.
task<std::vector<std::string>> next(runtime::address_watch& watch) {
    const auto changed = co_await watch.changed();
    EXPECT_TRUE(changed);
    co_return texts(watch.addresses());
}

TEST_F(instance_host_test, a_watch_sees_start_restart_stop_and_removal) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref asking = co_await make(runtimes, wanted("asking", {{"port", 7}}));
        co_await start(runtimes, asking);
        auto watch = asking->running.host()->watch("site");
        EXPECT_TRUE(watch);
        EXPECT_THAT(co_await next(*watch), ElementsAre(HasSubstr("no runtime \"site\"")));

        const runtime_ref site = co_await make(runtimes, wanted("site", {{"port", 80}}));
        EXPECT_THAT(co_await next(*watch), IsEmpty());
        co_await start(runtimes, site);
        EXPECT_THAT(co_await next(*watch), ElementsAre("site tcp://127.0.0.1:80"));
        EXPECT_THAT(texts(asking->running.host()->resolve(site->desired.record.id)),
                    ElementsAre("site tcp://127.0.0.1:80"));

        const auto edited = co_await runtimes.editor.edit(site, {.options = {{"port", 81}}});
        EXPECT_TRUE(edited && *edited == edit_effect::restarted);
        EXPECT_THAT(co_await next(*watch), ElementsAre("site tcp://127.0.0.1:81"));

        EXPECT_TRUE(co_await runtimes.lifecycle.stop(site));
        EXPECT_THAT(co_await next(*watch), IsEmpty());
        EXPECT_TRUE(co_await runtimes.editor.remove(site));
        EXPECT_THAT(co_await next(*watch), ElementsAre(HasSubstr("no runtime \"site\"")));
    });
}

TEST_F(instance_host_test, groups_change_with_their_members) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref asking = co_await make(runtimes, wanted("asking", {{"port", 7}}));
        co_await start(runtimes, asking);
        runtime_request request = wanted("web1", {{"port", 81}});
        request.group = "front";
        const runtime_ref web1 = co_await make(runtimes, request);
        const runtime_ref web2 = co_await make(runtimes, wanted("web2", {{"port", 82}}));
        co_await start(runtimes, web1);
        co_await start(runtimes, web2);
        auto watch = asking->running.host()->watch("@front");
        EXPECT_TRUE(watch);
        EXPECT_THAT(co_await next(*watch), ElementsAre("web1 tcp://127.0.0.1:81"));
        EXPECT_TRUE(co_await runtimes.editor.edit(web2, {.group = "front"}));
        EXPECT_THAT(co_await next(*watch),
                    ElementsAre("web1 tcp://127.0.0.1:81", "web2 tcp://127.0.0.1:82"));
        EXPECT_THAT(texts(asking->running.host()->resolve("web*")),
                    ElementsAre("web1 tcp://127.0.0.1:81", "web2 tcp://127.0.0.1:82"));
        EXPECT_TRUE(co_await runtimes.editor.edit(web1, {.group = ""}));
        EXPECT_THAT(co_await next(*watch), ElementsAre("web2 tcp://127.0.0.1:82"));
    });
}

TEST_F(instance_host_test, messages_cross_loops_until_their_instance_stops) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref one = co_await make(runtimes, wanted("one", {{"port", 1001}}));
        const runtime_ref two = co_await make(runtimes, wanted("two", {{"port", 1002}}));
        co_await start(runtimes, one);
        co_await start(runtimes, two);
        EXPECT_NE(one->running.where(), two->running.where()) << "they share a loop";
        auto mine = one->running.host()->subscribe("tricks");
        EXPECT_TRUE(mine);
        const auto taken = co_await runtimes.lifecycle.send(two, "publish hello");
        EXPECT_TRUE(taken && *taken == 1U);
        const auto got = co_await mine->next();
        EXPECT_TRUE(got && *got->bytes == "hello");

        EXPECT_TRUE(co_await runtimes.lifecycle.stop(one));
        EXPECT_EQ((co_await mine->next()).error(), errc::closed);
        const auto late = co_await runtimes.lifecycle.send(two, "publish late");
        EXPECT_TRUE(late && *late == 0U);
    });
}

task<void> restart(runtime_parts& runtimes, runtime_ref which) {
    auto restarted = co_await runtimes.lifecycle.restart(which);
    EXPECT_TRUE(restarted) << (restarted ? "" : restarted.error().message);
}

TEST_F(instance_host_test, a_request_of_an_instance_that_was_replaced_stops_nothing) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref which = co_await make(runtimes, wanted("one"));
        co_await start(runtimes, which);
        for (const bool ends : {false, true}) {
            const auto host = which->running.host();
            const std::uint64_t before = which->running.number();
            scope changing(co_await current_source());
            {
                const auto held = co_await which->change_lock.lock();
                EXPECT_TRUE(held);
                changing.spawn(restart(runtimes, which));
                co_await loop::current().yield();
                if (ends)
                    host->request_end("ended", true);
                else
                    host->request_stop();
                // It waits for the lock, behind the restart.
                for (int i = 0; i < 10; ++i) co_await loop::current().yield();
            }
            co_await changing.join();
            const auto behind = co_await which->change_lock.lock();
            EXPECT_TRUE(behind);
            EXPECT_NE(which->running.number(), before);
            EXPECT_EQ(which->running.status(), runtime_status::running);
        }
    });
}

/// As an upgrade of the daemon that fails: it has the lock, and has stopped the instance.
TEST_F(instance_host_test, an_end_that_waits_for_the_lock_counts_once_the_instance_is_gone) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref which = co_await make(runtimes, wanted("one"));
        runtime_request request = wanted("owned", {{"port", 1001}});
        request.owner = "one";
        const runtime_ref owned = co_await make(runtimes, request);
        co_await start(runtimes, which);
        co_await start(runtimes, owned);
        {
            auto held = co_await which->change_lock.lock();
            EXPECT_TRUE(held);
            which->running.host()->request_end("exited with status 0", false);
            while (!which->has_ended()) co_await loop::current().yield();
            auto left = co_await runtimes.lifecycle.depart(which);
            EXPECT_TRUE(left);
            EXPECT_TRUE(which->has_unsaved_end());
            if (left) co_await runtime_lifecycle::abandon(*left);
        }
        while (which->has_unsaved_end() || owned->running.has_instance())
            co_await loop::current().yield();
        EXPECT_EQ(which->running.status(), runtime_status::stopped);
        EXPECT_EQ(which->running.ending(), "exited with status 0");
        EXPECT_FALSE(which->desired.record.running);
    });
    EXPECT_EQ(saved("one")["running"], false);
}

/// As an upgrade of the daemon, on the other side.
TEST_F(instance_host_test, an_end_in_another_process_is_stored_and_stops_what_is_owned) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref which = co_await make(runtimes, wanted("one"));
        runtime_request request = wanted("owned", {{"port", 1001}});
        request.owner = "one";
        const runtime_ref owned = co_await make(runtimes, request);
        co_await start(runtimes, which);
        co_await start(runtimes, owned);
        {
            const auto held = co_await which->change_lock.lock();
            EXPECT_TRUE(co_await runtimes.lifecycle.depart(which));
        }
        EXPECT_TRUE(co_await runtimes.lifecycle.arrive_ended(
            which, {.how = "exited with status 3", .is_failure = true}));
        EXPECT_EQ(which->running.status(), runtime_status::failed);
        EXPECT_EQ(which->running.reason(), "exited with status 3");
        scope saving(co_await current_source());
        saving.spawn(runtimes.lifecycle.save_ends());
        while (which->has_unsaved_end() || owned->desired.record.running)
            co_await loop::current().yield();
        saving.cancel();
        co_await saving.join();
    });
    EXPECT_EQ(saved("one")["running"], false);
    EXPECT_EQ(saved("owned")["running"], false);
}

TEST_F(instance_host_test, what_does_not_start_is_never_resolved) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref asking = co_await make(runtimes, wanted("asking", {{"port", 7}}));
        co_await start(runtimes, asking);
        const runtime_ref bad = co_await make(runtimes, wanted("bad", {{"port", 666}}));
        EXPECT_FALSE(co_await runtimes.lifecycle.start(bad));
        EXPECT_THAT(texts(asking->running.host()->resolve("bad")), IsEmpty());
        EXPECT_EQ(bad->running.host()->subscribe("x").error().status, 409);
    });
}

}  // namespace
}  // namespace eddy::daemon
