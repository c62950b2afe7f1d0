// Tests of lists and events of members' keys.
#include "cluster/etcd/etcd_members.hpp"

#include "base/test_seed.hpp"
#include "cluster/etcd/etcd_value.hpp"
#include "cluster/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace eddy::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class etcd_members_test : public ::testing::Test {
protected:
    std::string text_of(const std::string& name, std::size_t runtimes = 1) {
        const auto made =
            write_etcd_value(testing::simple_member(name, random_, runtimes), 1 << 20);
        return made ? made->text : made.error().message;
    }
    static etcd_entry entry(const std::string& name, std::string value, std::int64_t revision) {
        return {"eddy/members/" + name, std::move(value), revision, revision, 77};
    }
    std::string names() const {
        std::string all;
        for (const auto& each : members_.all()) all += (all.empty() ? "" : " ") + each->name;
        return all;
    }
    void list(std::initializer_list<etcd_entry> entries, bool is_return = false) {
        members_.begin_list();
        for (const etcd_entry& each : entries) members_.put(each);
        members_.end_list(is_return, now_ + 5s);
    }

    random_generator random_{eddy::testing::seed_of_this_run()};
    testing::kept_reports notes_;
    etcd_members members_{"eddy/members/", notes_};
    time_point now_{};
};

TEST_F(etcd_members_test, lists_and_events_make_members) {
    list({entry("b", text_of("b"), 5), entry("a", text_of("a"), 6)});
    EXPECT_EQ(names(), "a b");
    members_.put(entry("c", text_of("c"), 7));
    members_.remove("eddy/members/a");
    members_.remove("eddy/members/unknown");
    EXPECT_EQ(names(), "b c");
    list({entry("c", text_of("c"), 7)});
    EXPECT_EQ(names(), "c");
    EXPECT_THAT(notes_.troubles, IsEmpty());
}

TEST_F(etcd_members_test, a_value_that_is_known_is_not_read_again) {
    const std::string text = text_of("a");
    list({entry("a", text, 5)});
    const auto before = members_.all().front();
    list({entry("a", text, 5)});
    EXPECT_EQ(members_.all().front(), before);
    // An equal one of a later revision keeps its object, too.
    members_.put(entry("a", text, 6));
    EXPECT_EQ(members_.all().front(), before);
    members_.put(entry("a", text_of("a", 3), 7));
    EXPECT_NE(members_.all().front(), before);
}

TEST_F(etcd_members_test, another_key_space_is_read_anew) {
    list({entry("a", text_of("a", 1), 5)});
    members_.distrust_revisions();
    list({entry("a", text_of("a", 2), 5)});
    EXPECT_THAT(members_.all().front()->runtimes, SizeIs(2));
}

TEST_F(etcd_members_test, damaged_values_are_reported_once) {
    list({entry("a", "{", 5), entry("b", text_of("b"), 6), entry("c", text_of("other"), 7)});
    EXPECT_EQ(names(), "b");
    EXPECT_THAT(notes_.troubles, ElementsAre(HasSubstr("eddy/members/a"), HasSubstr("other")));
    list({entry("a", "{", 5), entry("b", text_of("b"), 6), entry("c", text_of("other"), 7)});
    EXPECT_THAT(notes_.troubles, SizeIs(2));
    members_.put(entry("a", "}", 8));
    EXPECT_THAT(notes_.troubles, SizeIs(3));
    members_.put(entry("a", text_of("a"), 9));
    EXPECT_EQ(names(), "a b");
    // A member whose value becomes damaged lives as long as its key.
    members_.put(entry("a", "?", 10));
    EXPECT_EQ(names(), "a b");
    EXPECT_THAT(notes_.troubles, SizeIs(4));
    members_.remove("eddy/members/a");
    EXPECT_EQ(names(), "b");
}

TEST_F(etcd_members_test, foreign_keys_are_reported_once) {
    for (int i = 0; i < 3; ++i)
        list({entry("a/b", "x", 5), entry("", "x", 6), entry(".hidden", "x", 7)});
    EXPECT_EQ(names(), "");
    EXPECT_THAT(notes_.troubles, SizeIs(3));
    for (std::size_t i = 0; i < 2 * etcd_members::max_foreign_keys; ++i)
        members_.put(entry("x/" + std::to_string(i), "", 8));
    EXPECT_THAT(notes_.troubles, SizeIs(etcd_members::max_foreign_keys));
}

TEST_F(etcd_members_test, a_list_that_does_not_end_removes_nothing) {
    list({entry("a", text_of("a"), 5), entry("b", text_of("b"), 5)});
    members_.begin_list();
    members_.put(entry("c", text_of("c"), 6));
    EXPECT_EQ(names(), "a b c");
}

TEST_F(etcd_members_test, the_missing_have_time_to_come_back_after_an_outage) {
    list({entry("a", text_of("a"), 5), entry("b", text_of("b"), 5), entry("c", text_of("c"), 5)});
    list({entry("c", text_of("c"), 5)}, /*is_return*/ true);
    EXPECT_EQ(names(), "a b c");
    EXPECT_EQ(members_.missing(), 2u);
    EXPECT_EQ(members_.next_drop(), now_ + 5s);
    members_.put(entry("a", text_of("a"), 9));
    EXPECT_EQ(members_.missing(), 1u);
    EXPECT_FALSE(members_.drop_missing(now_ + 4s));
    EXPECT_TRUE(members_.drop_missing(now_ + 5s));
    EXPECT_EQ(names(), "a c");
    EXPECT_EQ(members_.missing(), 0u);
    EXPECT_EQ(members_.next_drop(), time_point::max());
    // Without an outage they are gone at once.
    list({});
    EXPECT_EQ(names(), "");
}

TEST_F(etcd_members_test, so_many_members_at_most) {
    const std::string text = text_of("x");
    members_.begin_list();
    for (std::size_t i = 0; i < max_members + 2; ++i)
        members_.put(entry("m" + std::to_string(i), "", 5));
    members_.end_list(false, now_);
    EXPECT_TRUE(members_.is_over_full());
    EXPECT_THAT(notes_.troubles.back(), HasSubstr("more than 4096 members"));
    const std::size_t reports = notes_.troubles.size();
    members_.put(entry("one-more", text, 6));
    EXPECT_EQ(notes_.troubles.size(), reports);
    list({entry("x", text, 7)});
    EXPECT_FALSE(members_.is_over_full());
    EXPECT_EQ(names(), "x");
}

TEST_F(etcd_members_test, a_value_is_cut_to_what_fits) {
    const member_info large = testing::simple_member("large", random_, 1000);
    const auto whole = write_etcd_value(large, 1 << 20);
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(whole->shown, 1000u);
    for (const std::size_t most : {whole->text.size() - 1, whole->text.size() / 3, 2000UZ}) {
        const auto cut = write_etcd_value(large, most);
        ASSERT_TRUE(cut) << cut.error().message;
        EXPECT_LE(cut->text.size(), most);
        EXPECT_LT(cut->shown, 1000u);
        EXPECT_GT(cut->shown, 0u);
        const auto read = read_etcd_value("large", cut->text);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_THAT(read->runtimes, SizeIs(cut->shown));
        EXPECT_EQ(read->runtimes.back(), large.runtimes[cut->shown - 1]);
    }
    const auto exact = write_etcd_value(large, whole->text.size());
    ASSERT_TRUE(exact);
    EXPECT_EQ(exact->shown, 1000u);
    const auto none = write_etcd_value(large, 10);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("without its runtimes"));
}

}  // namespace
}  // namespace eddy::cluster
