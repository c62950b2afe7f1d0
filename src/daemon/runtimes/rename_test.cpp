// Tests of renaming: what follows the new name, and what a crash in the middle leaves.
#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

using rename_test = runtime_parts_fixture;

TEST_F(rename_test, the_instance_runs_on_and_owned_ones_follow) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        runtime_request owned = wanted("b");
        owned.owner = "a";
        const runtime_ref b = co_await make(runtimes, std::move(owned));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const std::uint64_t number = a->running.number();
        EXPECT_TRUE(co_await runtimes.editor.rename(a, "c"));
        EXPECT_EQ(a->name(), "c");
        EXPECT_EQ(a->running.number(), number);
        EXPECT_EQ(a->running.host()->name(), "c");
        EXPECT_EQ(b->desired.record.owner, "c");
        EXPECT_EQ(runtimes.registry.get("a"), nullptr);
        EXPECT_EQ(runtimes.registry.get("c"), a);
        EXPECT_TRUE(runtimes.registry.published()->resolve("c"));
        EXPECT_FALSE(runtimes.registry.published()->resolve("a"));
        EXPECT_FALSE(runtimes.registry.is_reserved("a"));
    });
    EXPECT_EQ(saved("c").at("renamed_from"), "a");
    EXPECT_EQ(saved("b").at("owner"), "c");
    EXPECT_FALSE(std::filesystem::exists(file("a")));
}

TEST_F(rename_test, names_that_cannot_be_are_refused) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        co_await make(runtimes, wanted("b"));
        EXPECT_EQ((co_await runtimes.editor.rename(a, "b")).error().status, 409);
        EXPECT_EQ((co_await runtimes.editor.rename(a, ".x")).error().status, 400);
        EXPECT_TRUE(co_await runtimes.editor.rename(a, "a"));
        {
            const auto held = runtimes.registry.reserve("z");
            EXPECT_EQ((co_await runtimes.editor.rename(a, "z")).error().status, 409);
            EXPECT_EQ((co_await runtimes.editor.create(wanted("z"))).error().status, 409);
        }
        EXPECT_TRUE(co_await runtimes.editor.rename(a, "z"));
    });
}

TEST_F(rename_test, a_crash_in_the_middle_leaves_the_new_one) {
    json before;
    live([](runtime_parts& runtimes) -> task<void> { co_await make(runtimes, wanted("a")); });
    before = saved("a");
    live([](runtime_parts& runtimes) -> task<void> {
        runtime_request owned = wanted("b");
        owned.owner = "a";
        co_await make(runtimes, std::move(owned));
        EXPECT_TRUE(co_await runtimes.editor.rename(runtimes.registry.get("a"), "c"));
    });
    std::ofstream(file("a")) << before.dump();
    json child = saved("b");
    child["owner"] = "a";
    std::ofstream(file("b")) << child.dump();
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ(runtimes.registry.size(), 2U);
        EXPECT_EQ(runtimes.registry.get("a"), nullptr);
        EXPECT_EQ(runtimes.registry.get("b")->desired.record.owner, "c");
        co_return;
    });
    EXPECT_FALSE(std::filesystem::exists(file("a")));
}

}  // namespace
}  // namespace eddy::daemon
