// Tests of the registry: look-up, owners, membership, and what it publishes.
#include "daemon/runtimes/runtime_registry.hpp"

#include "daemon/runtimes/registry_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class runtime_registry_test : public testing::registry_fixture {
protected:
    std::string owner_fault(std::string_view owner, std::string_view of) const {
        const auto valid = registry_.check_owner(owner, of);
        return valid ? std::string() : valid.error().message;
    }
};

TEST_F(runtime_registry_test, finds_by_name_id_and_pattern) {
    const runtime_ref web1 = add(record("web1", {}, "front"));
    const runtime_ref web2 = add(record("web2"));
    EXPECT_EQ(*registry_.find("web1"), web1);
    EXPECT_EQ(*registry_.find("id-web2"), web2);
    EXPECT_EQ(registry_.get("web1"), web1);
    EXPECT_EQ(registry_.get("id-web1"), nullptr) << "by name alone";
    EXPECT_THAT(registry_.match("web*"), ElementsAre(web1, web2));
    EXPECT_THAT(registry_.match("@front"), ElementsAre(web1));
    EXPECT_THAT(registry_.all(), ElementsAre(web1, web2));
    EXPECT_EQ(registry_.find("web3").error().status, 404);
    EXPECT_THAT(registry_.find("webb1").error().message, HasSubstr("did you mean \"web1\"?"));
}

TEST_F(runtime_registry_test, is_full_at_its_limit) {
    for (std::size_t i = 0; i < limit; ++i) {
        EXPECT_FALSE(registry_.is_full());
        add(record("r" + std::to_string(i)));
    }
    EXPECT_TRUE(registry_.is_full());
    const runtime_ref gone = registry_.get("r0");
    gone->is_removed = true;
    registry_.remove(*gone);
    EXPECT_FALSE(registry_.is_full());
}

TEST_F(runtime_registry_test, names_the_type_that_was_meant) {
    EXPECT_EQ(*registry_.find_type("fake"), types_.data());
    EXPECT_THAT(registry_.find_type("fakes").error().message, HasSubstr("did you mean \"fake\"?"));
    EXPECT_THAT(registry_.find_type("zzzzzz").error().message, HasSubstr("there are fake"));
}

TEST_F(runtime_registry_test, derives_type_and_options_and_says_what_is_wrong_with_them) {
    const runtime_ref good = add(record("good"));
    EXPECT_EQ(good->desired.type, types_.data());
    EXPECT_EQ(good->desired.options->number("port"), 1000);
    EXPECT_EQ(good->running.status(), runtime_status::created);

    runtime_record strange = record("strange");
    strange.type = "teleporter";
    const runtime_ref unknown = add(strange);
    EXPECT_EQ(unknown->running.status(), runtime_status::failed);
    EXPECT_THAT(unknown->running.reason(), HasSubstr("teleporter"));

    runtime_record wrong = record("wrong");
    wrong.options = {{"port", "many"}};
    const runtime_ref invalid = add(wrong);
    EXPECT_EQ(invalid->running.status(), runtime_status::failed);
    EXPECT_FALSE(invalid->desired.options);
}

TEST_F(runtime_registry_test, knows_children_by_their_present_owner) {
    const runtime_ref top = add(record("top"));
    const runtime_ref child = add(record("child", "top"));
    const runtime_ref leaf = add(record("leaf", "child"));
    registry_.rename(*child, "kid");
    EXPECT_THAT(registry_.children_of("top"), ElementsAre(child));
    EXPECT_THAT(registry_.children_of("child"), IsEmpty());
    EXPECT_THAT(registry_.children_of("kid"), ElementsAre(leaf));
    runtime_record fresh = leaf->desired.record;
    fresh.owner = "top";
    registry_.set_record(*leaf, fresh);
    EXPECT_THAT(registry_.children_of("top"), ElementsAre(child, leaf));
    registry_.set_owner(*leaf, "");
    registry_.forget(*child);
    EXPECT_THAT(registry_.children_of("top"), IsEmpty());
    EXPECT_THAT(registry_.children_of("kid"), IsEmpty());
}

TEST_F(runtime_registry_test, knows_children_and_refuses_owners_that_cannot_be) {
    add(record("top"));
    const runtime_ref middle = add(record("middle", "top"));
    const runtime_ref leaf = add(record("leaf", "middle"));
    EXPECT_THAT(registry_.children_of("top"), ElementsAre(middle));
    EXPECT_THAT(registry_.children_of("leaf"), IsEmpty());
    EXPECT_EQ(owner_fault("leaf", "new"), "");
    EXPECT_EQ(owner_fault("", "top"), "") << "none";
    EXPECT_THAT(owner_fault("top", "top"), HasSubstr("it would own itself"));
    EXPECT_THAT(owner_fault("leaf", "top"), HasSubstr("it would own itself"));
    EXPECT_THAT(owner_fault("nobody", "top"), HasSubstr("--owner: there is no runtime \"nobody\""));
    EXPECT_THAT(registry_.owner_circles(), IsEmpty());
}

TEST_F(runtime_registry_test, reports_a_circle_of_owners_once_for_each_in_it) {
    add(record("a", "b"));
    add(record("b", "a"));
    add(record("c", "a"));
    EXPECT_THAT(registry_.owner_circles(),
                ElementsAre(HasSubstr("\"a\" owns its own owner \"b\""),
                            HasSubstr("\"b\" owns its own owner \"a\"")));
    EXPECT_THAT(owner_fault("a", "new"), HasSubstr("own each other"));
}

TEST_F(runtime_registry_test, publishes_what_it_holds) {
    const auto published = registry_.published();
    EXPECT_EQ(published->resolve("a").error().status, 404);
    const runtime_ref a = add(record("a"));
    EXPECT_TRUE(published->resolve("a"));
    EXPECT_FALSE(published->resolve("@g"));
    runtime_record grouped = a->desired.record;
    grouped.group = "g";
    registry_.set_record(*a, grouped);
    EXPECT_EQ(a->desired.record.group, "g");
    EXPECT_TRUE(published->resolve("@g"));
    a->is_removed = true;
    registry_.remove(*a);
    EXPECT_EQ(published->resolve("a").error().status, 404);
    EXPECT_EQ(registry_.size(), 0U);
}

TEST_F(runtime_registry_test, logs_removals_but_not_what_never_was) {
    const runtime_ref early = add(record("early"));
    const runtime_ref late = add(record("late"));
    const runtime_ref never = add(record("never"));
    early->is_removed = true;
    registry_.remove(*early);
    {
        const removal_log removed(registry_);
        late->is_removed = true;
        registry_.remove(*late);
        registry_.forget(*never);
        EXPECT_TRUE(removed.contains("late"));
        EXPECT_FALSE(removed.contains("early"));
        EXPECT_FALSE(removed.contains("never"));
    }
    EXPECT_FALSE(removal_log(registry_).contains("late"));
}

using runtime_registry_death_test = runtime_registry_test;

TEST_F(runtime_registry_death_test, aborts_where_its_names_would_no_longer_be_right) {
    const runtime_ref a = add(record("a"));
    EXPECT_DEATH(add(record("a")), "is_new");
    runtime_record renamed = a->desired.record;
    renamed.name = "b";
    EXPECT_DEATH(registry_.set_record(*a, renamed), "fresh.name == record.name");
    EXPECT_DEATH(registry_.remove(*a), "is_removed");
    EXPECT_DEATH(registry_.publish_running(*a, true), "runtime_status::running");
    a->is_removed = true;
    registry_.remove(*a);
    EXPECT_DEATH(registry_.remove(*a), "has");
}

}  // namespace
}  // namespace eddy::daemon
