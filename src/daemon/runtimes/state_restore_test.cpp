// Tests of restoration from a store that is no folder: what becomes of records in memory.
#include "daemon/runtimes/state_restore.hpp"

#include <eddy/io/loop.hpp>

#include "base/files/temporary_folder.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/state/memory_store.hpp"
#include "daemon/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class state_restore_test : public ::testing::Test {
protected:
    void TearDown() override { EXPECT_EQ(testing::instances.load(), 0) << "instances were lost"; }

    void keep(const std::string& name, bool is_running) {
        runtime_record record;
        record.id = "id-" + name;
        record.name = name;
        record.type = "fake";
        record.running = is_running;
        ASSERT_TRUE(store_.save(record));
    }

    using steps = task<void> (*)(runtime_parts&, testing::memory_store&);
    /// Runs `body` with parts that have loaded the store and started what is to run.
    void live(steps body) {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        const auto control = std::move(*loop::create(options));
        loop_group_options group;
        group.threads = 1;
        group.loop = options;
        const auto loops = std::move(*loop_group::start(group));
        blocking_pool disk;
        const eddy::testing::temporary_folder folder;
        runtime_parts_options how;
        how.types = types_;
        how.journal_folder = folder.path();
        how.handover_folder = folder.path();
        how.drain = duration::zero();
        how.runtimes = 3;
        runtime_parts runtimes(store_, disk, *loops, how);
        control->run(lead(runtimes, store_, body));
    }

    const std::vector<runtime::type> types_ = testing::fake_types();
    testing::memory_store store_;

private:
    static task<void> lead(runtime_parts& runtimes, testing::memory_store& store, steps body) {
        EXPECT_TRUE(co_await runtimes.restore.load());
        co_await runtimes.restore.start_loaded();
        co_await body(runtimes, store);
        EXPECT_TRUE(co_await runtimes.lifecycle.shut_down(std::chrono::seconds(1)));
    }
};

TEST_F(state_restore_test, starts_what_is_stored_as_running) {
    keep("a", true);
    keep("b", false);
    live([](runtime_parts& runtimes, testing::memory_store& store) -> task<void> {
        EXPECT_EQ((*runtimes.registry.find("a"))->running.status(), runtime_status::running);
        EXPECT_EQ((*runtimes.registry.find("b"))->running.status(), runtime_status::stopped);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(*runtimes.registry.find("a")));
        EXPECT_FALSE(store.at("a").running);
    });
}

TEST_F(state_restore_test, a_reread_follows_the_store) {
    keep("a", true);
    keep("b", false);
    live([](runtime_parts& runtimes, testing::memory_store& store) -> task<void> {
        runtime_record changed = store.at("a");
        changed.options = {{"port", 99}};
        EXPECT_TRUE(store.save(changed));
        runtime_record added = store.at("b");
        added.name = "c";
        added.id = "id-c";
        added.running = true;
        EXPECT_TRUE(store.save(added));
        EXPECT_TRUE(store.erase("b"));

        const auto summary = co_await runtimes.restore.reread();
        EXPECT_TRUE(summary);
        if (!summary) co_return;
        EXPECT_EQ(summary->changed, 1U);
        EXPECT_EQ(summary->created, 1U);
        EXPECT_THAT(summary->problems,
                    ElementsAre(HasSubstr("\"b\" was gone and is written anew")));
        EXPECT_EQ((*runtimes.registry.find("a"))->desired.options->number("port"), 99);
        EXPECT_EQ((*runtimes.registry.find("c"))->running.status(), runtime_status::running);
        EXPECT_TRUE(store.contains("b"));
    });
}

TEST_F(state_restore_test, a_reread_keeps_the_limit_and_what_a_runtime_keeps_for_life) {
    for (const char* const name : {"a", "b", "c"}) keep(name, false);
    live([](runtime_parts& runtimes, testing::memory_store& store) -> task<void> {
        runtime_record over = store.at("a");
        over.name = "d";
        EXPECT_TRUE(store.save(over));
        runtime_record other = store.at("b");
        other.id = "another";
        EXPECT_TRUE(store.save(other));
        const auto summary = co_await runtimes.restore.reread();
        EXPECT_THAT(summary->problems, ElementsAre(HasSubstr("\"b\" changes its type or id"),
                                                   HasSubstr("\"d\" is one runtime too many")));
        EXPECT_EQ(runtimes.registry.all().size(), 3U);
    });
}

TEST_F(state_restore_test, a_store_that_cannot_be_read_changes_nothing) {
    keep("a", true);
    live([](runtime_parts& runtimes, testing::memory_store& store) -> task<void> {
        store.is_full = true;
        const auto summary = co_await runtimes.restore.reread();
        EXPECT_FALSE(summary);
        EXPECT_THAT(summary.error().message, HasSubstr("cannot be read"));
        EXPECT_EQ((*runtimes.registry.find("a"))->running.status(), runtime_status::running);
        store.is_full = false;
        const auto again = co_await runtimes.restore.reread();
        EXPECT_THAT(again->problems, IsEmpty());
        EXPECT_EQ(again->unchanged, 1U);
    });
}

}  // namespace
}  // namespace eddy::daemon
