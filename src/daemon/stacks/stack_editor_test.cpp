// Tests of stacks: all or none of the changes, over a folder of state.
#include "daemon/stacks/stack_editor.hpp"

#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

stack_member member(std::string name, json options = json::object(), std::string owner = {}) {
    stack_member made;
    made.name = std::move(name);
    made.type = "fake";
    made.owner = std::move(owner);
    made.options = std::move(options);
    return made;
}

stack_request stack(std::vector<stack_member> members) {
    stack_request made;
    made.name = "web";
    made.members = std::move(members);
    made.accepted = {"*"};
    return made;
}

std::vector<std::string> steps(const stack_plan& plan) {
    std::vector<std::string> all;
    for (const stack_change& each : plan.changes)
        all.push_back(std::string(to_string(each.step)) + " " + each.name);
    return all;
}

task<std::vector<std::string>> up(runtime_parts& runtimes, std::vector<stack_member> members) {
    auto done = co_await runtimes.stacks.apply(stack(std::move(members)));
    EXPECT_TRUE(done) << (done ? "" : done.error().why.message);
    co_return done ? steps(*done) : std::vector<std::string>();
}

task<std::string> refusal(runtime_parts& runtimes, std::vector<stack_member> members) {
    auto done = co_await runtimes.stacks.apply(stack(std::move(members)));
    EXPECT_FALSE(done);
    co_return done ? "" : done.error().why.message;
}

using stack_editor_test = testing::runtime_parts_fixture;

TEST_F(stack_editor_test, creates_edits_and_removes) {
    live([](runtime_parts& runtimes) -> task<void> {
        const auto other = co_await testing::make(runtimes, testing::wanted("other"));
        EXPECT_THAT(co_await up(runtimes, {member("b", {}, "a"), member("a")}),
                    ElementsAre("create a", "create b"));
        EXPECT_EQ(runtimes.registry.get("a")->running.status(), runtime_status::running);
        EXPECT_EQ(runtimes.registry.get("b")->desired.record.owner, "a");
        EXPECT_TRUE((co_await up(runtimes, {member("a"), member("b", {}, "a")})).empty());
        EXPECT_THAT(co_await up(runtimes, {member("a", {{"level", 7}}), member("b", {}, "a")}),
                    ElementsAre("edit a"));
        EXPECT_THAT(co_await up(runtimes, {}), ElementsAre("remove b", "remove a"));
        EXPECT_EQ(runtimes.registry.size(), 1U);
        EXPECT_FALSE(other->is_removed);
    });
}

TEST_F(stack_editor_test, is_stored_in_one_step_and_comes_back) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a", {{"level", 3}}), member("b")}));
    });
    EXPECT_EQ(saved("a")["stack"], "web");
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_TRUE((co_await up(runtimes, {member("a", {{"level", 3}}), member("b")})).empty());
    });
}

TEST_F(stack_editor_test, undoes_all_when_a_step_fails) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a"), member("gone")}));
        // Port 666 is found taken by the start alone.
        const std::string why = co_await refusal(
            runtimes, {member("a", {{"level", 9}}), member("b"), member("c", {{"port", 666}})});
        EXPECT_THAT(why, HasSubstr("port 666 is taken"));
        EXPECT_THAT(why, HasSubstr("All is as it was before"));
        EXPECT_EQ(runtimes.registry.size(), 2U);
        EXPECT_EQ(runtimes.registry.get("gone")->running.status(), runtime_status::running);
        EXPECT_FALSE(runtimes.registry.get("a")->desired.options->given("level"));
        EXPECT_TRUE((co_await up(runtimes, {member("a"), member("gone")})).empty());
    });
    EXPECT_FALSE(std::filesystem::exists(file("b")));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/change.json"));
}

TEST_F(stack_editor_test, refuses_with_all_faults_before_the_first_change) {
    live([](runtime_parts& runtimes) -> task<void> {
        auto done = co_await runtimes.stacks.apply(
            stack({member("a", {{"nothing", 1}}), member("b", {}, "c"), member("c", {}, "b"),
                   member("d", {}, "nowhere"), member("e"), member("e")}));
        EXPECT_FALSE(done);
        if (done) co_return;
        std::vector<std::string> names;
        for (const stack_fault& each : done.error().faults) names.push_back(each.name);
        EXPECT_THAT(names, ElementsAre("e", "b", "c", "d", "a"));
        EXPECT_EQ(runtimes.registry.size(), 0U);
        // The limit of this fixture.
        std::vector<stack_member> many;
        for (int i = 0; i < 9; ++i) many.push_back(member("m" + std::to_string(i)));
        EXPECT_THAT(co_await refusal(runtimes, std::move(many)), HasSubstr("at most 8"));
    });
}

TEST_F(stack_editor_test, names_risks_and_leaves_others_alone) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await testing::make(runtimes, testing::wanted("other")));
        EXPECT_THAT(co_await refusal(runtimes, {member("other")}), HasSubstr("--adopt"));
        static_cast<void>(co_await up(runtimes, {member("a")}));
        stack_request none = stack({});
        none.accepted = {"b"};
        auto done = co_await runtimes.stacks.apply(none);
        EXPECT_FALSE(done);
        if (!done) EXPECT_EQ(done.error().risks.at(0).name, "a");
        EXPECT_EQ(runtimes.registry.get("a")->running.status(), runtime_status::running);
        none.accepted = {"a"};
        EXPECT_TRUE(co_await runtimes.stacks.apply(none));
        stack_request adopting = stack({member("other")});
        adopting.adopts = true;
        EXPECT_TRUE(co_await runtimes.stacks.apply(adopting));
        EXPECT_EQ(runtimes.registry.get("other")->desired.record.stack, "web");
    });
}

TEST_F(stack_editor_test, removes_what_a_removed_runtime_owns) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a"), member("b")}));
        runtime_request owned = testing::wanted("made-by-a-script");
        owned.owner = "a";
        static_cast<void>(co_await testing::make(runtimes, std::move(owned)));
        auto planned = co_await runtimes.stacks.plan(stack({member("b")}));
        EXPECT_TRUE(planned);
        if (planned) EXPECT_EQ(planned->changes.at(0).removed_with, "a");
        EXPECT_EQ(runtimes.registry.size(), 3U) << "a plan changes nothing";
        EXPECT_THAT(co_await up(runtimes, {member("b")}),
                    ElementsAre("remove made-by-a-script", "remove a"));
    });
}

TEST_F(stack_editor_test, what_a_removed_runtime_owns_and_is_to_be_kept_goes_on) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a")}));
        runtime_request by_hand = testing::wanted("c", {{"port", 3}});
        by_hand.owner = "a";
        by_hand.policy = on_parent_stop::keep;
        const runtime_ref kept = co_await testing::make(runtimes, by_hand);
        EXPECT_TRUE(co_await runtimes.lifecycle.start(kept));
        EXPECT_THAT(co_await up(runtimes, {}), ElementsAre("edit c", "remove a"));
        EXPECT_FALSE(kept->is_removed);
        EXPECT_EQ(kept->running.status(), runtime_status::running);
        EXPECT_EQ(kept->desired.record.owner, "");
    });
    EXPECT_EQ(saved("c")["owner"], "");
}

TEST_F(stack_editor_test, policies_are_changed_and_kept) {
    live([](runtime_parts& runtimes) -> task<void> {
        stack_member owned = member("b", {}, "a");
        static_cast<void>(co_await up(runtimes, {member("a"), owned}));
        owned.policy = on_parent_stop::keep;
        EXPECT_THAT(co_await up(runtimes, {member("a"), owned}), ElementsAre("edit b"));
        EXPECT_EQ(runtimes.registry.get("b")->desired.record.policy, on_parent_stop::keep);
        EXPECT_TRUE((co_await up(runtimes, {member("a"), owned})).empty());
    });
    EXPECT_EQ(saved("b")["on_parent_stop"], "keep");
}

TEST_F(stack_editor_test, a_type_changes_and_a_failure_puts_it_back_with_its_data) {
    types_.push_back(types_.front());
    types_.back().name = "other";
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a"), member("b", {}, "a")}));
        const runtime_ref a = runtimes.registry.get("a");
        EXPECT_TRUE(co_await runtimes.lifecycle.send(a, "keep this"));
        stack_member changed = member("a", {{"port", 666}});
        changed.type = "other";
        auto planned = co_await runtimes.stacks.plan(stack({changed, member("b", {}, "a")}));
        EXPECT_TRUE(planned);
        if (planned) EXPECT_THAT(planned->changes.at(0).risk, HasSubstr("its type becomes other"));
        EXPECT_THAT(co_await refusal(runtimes, {changed, member("b", {}, "a")}),
                    HasSubstr("port 666 is taken"));
        EXPECT_EQ(a->desired.record.type, "fake");
        EXPECT_EQ(a->desired.type->name, "fake");
        EXPECT_EQ(a->running.status(), runtime_status::running);
        changed.options = json::object();
        EXPECT_THAT(co_await up(runtimes, {changed, member("b", {}, "a")}), ElementsAre("edit a"));
        EXPECT_EQ(a->desired.record.type, "other");
        EXPECT_EQ(a->desired.type->name, "other");
        EXPECT_EQ(a->running.status(), runtime_status::running);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a));
        EXPECT_EQ(a->running.lost(), "") << "the data was of the other type";
        // One that does not run.
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(runtimes.registry.get("b")));
        stack_request both = stack({changed, member("b", {}, "a")});
        both.members[1].type = "other";
        both.starts = false;
        EXPECT_TRUE(co_await runtimes.stacks.apply(both));
        EXPECT_EQ(runtimes.registry.get("b")->desired.record.type, "other");
        EXPECT_EQ(runtimes.registry.get("b")->running.status(), runtime_status::stopped);
    });
    EXPECT_EQ(saved("a")["type"], "other");
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ(runtimes.registry.get("a")->desired.type->name, "other");
        co_return;
    });
}

TEST_F(stack_editor_test, a_change_that_a_kill_cut_off_is_finished_at_the_next_start) {
    live([](runtime_parts& runtimes) -> task<void> {
        static_cast<void>(co_await up(runtimes, {member("a"), member("b")}));
    });
    state_change change;
    change.saved.push_back(*record_from_json(saved("a")));
    change.saved.back().options = {{"level", 5}};
    change.erased = {"b"};
    ASSERT_TRUE(store_->stage(change));
    // First step of the commit.
    std::filesystem::rename(folder_ + "/change.new", folder_ + "/change.json");
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ(runtimes.registry.size(), 1U);
        EXPECT_EQ(runtimes.registry.get("a")->desired.options->number("level"), 5);
        co_return;
    });
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/change.json"));
    // Before it, nothing has happened.
    change.erased = {"a"};
    change.saved.clear();
    ASSERT_TRUE(store_->stage(change));
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ(runtimes.registry.size(), 1U);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::daemon
