// Rounds over a folder: what is read again, what is reported, and the bounds.
#include "cluster/folder/folder_reader.hpp"

#include "cluster/folder/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class folder_reader_test : public ::testing::Test {
protected:
    /// A round; its names, with `?` behind each that cannot be read.
    std::string round(folder_reader& by) {
        auto read = by.read();
        if (!read) return read.error().message;
        view = std::move(*read);
        std::string names;
        for (const auto& each : view.seen)
            names += (names.empty() ? "" : " ") + each->name + (each->info ? "" : "?");
        return names;
    }
    std::string round() { return round(reader); }

    const test_folder folder;
    const trusted_owners owners{{}};
    folder_reader reader{folder.path(), owners};
    store_view view;
};

TEST_F(folder_reader_test, reads_a_member_again_when_its_beat_says_so) {
    hand_member a(folder, "a");
    a.show();
    EXPECT_EQ(round(), "") << "without a beat it is none yet";
    a.beat();
    EXPECT_EQ(round(), "a");
    const auto first = view.seen.front();
    EXPECT_EQ(*first->info, a.info);
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front(), first) << "the same object, while nothing changes";
    a.beat();
    folder.put("a.member", "this is not read");
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front()->its.count, 2U);
    EXPECT_EQ(view.seen.front()->info, first->info);
    EXPECT_THAT(view.troubles, IsEmpty());
    a.info.label = "new";
    a.show();
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front()->info->label, "") << "the beat comes behind it";
    a.beat();
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front()->info->label, "new");
    EXPECT_THAT(view.troubles, IsEmpty());
}

TEST_F(folder_reader_test, reports_damage_once_until_it_changes) {
    hand_member a(folder, "a");
    folder.put("a.member", "[");
    a.beat();
    EXPECT_EQ(round(), "a?");
    EXPECT_THAT(view.troubles,
                ElementsAre(AllOf(HasSubstr("a.member is ignored"), HasSubstr("valid JSON"))));
    for (int i = 0; i < 3; ++i) {
        a.beat();
        EXPECT_EQ(round(), "a?");
        EXPECT_THAT(view.troubles, IsEmpty());
    }
    folder.put("a.member", "[[[[[[[[[[[[[[[[[[[[[");
    EXPECT_EQ(round(), "a?");
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("nests deeper")));
    folder.put("a.member", a.text());
    EXPECT_EQ(round(), "a") << "without a new beat";
    EXPECT_THAT(view.recoveries, ElementsAre(HasSubstr("a.member can be read again")));
    EXPECT_EQ(round(), "a");
    EXPECT_THAT(view.recoveries, IsEmpty());
}

TEST_F(folder_reader_test, keeps_the_last_good_content_of_a_start) {
    hand_member a(folder, "a");
    a.show();
    a.beat();
    EXPECT_EQ(round(), "a");
    ++a.its.sequence;
    folder.put("a.member", "{}");
    a.beat();
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(*view.seen.front()->info, a.info);
    EXPECT_EQ(view.troubles.size(), 1U);
    hand_member other(folder, "a", 8);
    folder.put("a.member", "{}");
    other.beat();
    EXPECT_EQ(round(), "a?") << "it says nothing about another start";
}

TEST_F(folder_reader_test, wants_the_name_and_the_start_of_the_beat) {
    hand_member a(folder, "a");
    hand_member b(folder, "b", 9);
    folder.put("a.member", b.text());
    a.beat();
    EXPECT_EQ(round(), "a?");
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("a member with the name \"b\"")));
    hand_member next(folder, "a", 10);
    next.show();
    EXPECT_EQ(round(), "a?") << "the file of a start whose beat is to come";
    EXPECT_THAT(view.troubles, IsEmpty());
    next.beat();
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front()->info->id, next.info.id);
}

TEST_F(folder_reader_test, a_damaged_beat_is_a_silent_one) {
    hand_member a(folder, "a");
    a.show();
    a.beat();
    EXPECT_EQ(round(), "a");
    const auto before = view.seen.front();
    folder.put("a.beat", "garbage");
    EXPECT_EQ(round(), "a");
    EXPECT_EQ(view.seen.front(), before);
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("a.beat is ignored: it is no beat")));
    a.beat();
    EXPECT_EQ(round(), "a");
    EXPECT_THAT(view.recoveries, ElementsAre(HasSubstr("a.beat")));
    fs::remove(folder.file("a.beat"));
    EXPECT_EQ(round(), "") << "an absent one has left";
}

TEST_F(folder_reader_test, reports_foreign_files_once) {
    folder.put("README", "what this is");
    folder.put(".hidden", "x");
    folder.put("orphan.member", "x");
    folder.put("a\nb.beat", "x");
    folder.put(std::string(200, 'x') + "\xff.beat", "x");
    EXPECT_EQ(round(), "");
    EXPECT_THAT(view.troubles, ElementsAre(AllOf(HasSubstr("README"), HasSubstr("is ignored")),
                                           AllOf(HasSubstr("a?b.beat"), HasSubstr("name")),
                                           AllOf(HasSubstr("x?.beat"), HasSubstr("name"))));
    for (const std::string& each : view.troubles)
        EXPECT_EQ(each.find_first_of("\n\xff"), std::string::npos) << "safe for a log";
    EXPECT_EQ(round(), "");
    EXPECT_THAT(view.troubles, IsEmpty());
    fs::remove(folder.file("README"));
    round();
    folder.put("README", "another one");
    round();
    EXPECT_EQ(view.troubles.size(), 1U);
}

TEST_F(folder_reader_test, warns_of_a_folder_that_every_user_may_write_to) {
    ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
    round();
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("every user may write to the folder")));
    round();
    EXPECT_THAT(view.troubles, IsEmpty());
    ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
    folder_reader other(folder.path(), owners);
    round(other);
    EXPECT_THAT(view.troubles, IsEmpty()) << "with the sticky bit others remove nothing";
}

TEST_F(folder_reader_test, knows_another_folder_at_its_place) {
    round();
    const auto before = view.place;
    round();
    EXPECT_EQ(view.place, before);
    fs::rename(folder.path(), folder.away());
    EXPECT_THAT(round(), AllOf(HasSubstr("cannot be read"), HasSubstr("No such file")));
    folder.make();
    round();
    EXPECT_NE(view.place, before);
}

// --- Bounds -----------------------------------------------------------------------------------

TEST_F(folder_reader_test, bounds_the_members) {
    for (std::size_t i = 0; i < max_members; ++i) {
        hand_member each(folder, "m" + std::to_string(10'000 + i));
        each.beat();
    }
    round();
    EXPECT_EQ(view.seen.size(), max_members);
    EXPECT_THAT(view.troubles, IsEmpty());
    hand_member more(folder, "more");
    more.beat();
    round();
    EXPECT_EQ(view.seen.size(), max_members);
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("more than 4096 members")));
    fs::remove(folder.file("m10007.beat"));
    round();
    round();
    EXPECT_EQ(view.seen.size(), max_members) << "one that was ignored has room now";
    EXPECT_EQ(view.seen.back()->name, "more");
}

TEST_F(folder_reader_test, bounds_the_entries) {
    folder_limits limits;
    limits.entries = 10;
    folder_reader bounded(folder.path(), owners, limits);
    for (int i = 0; i < 11; ++i) folder.put("x" + std::to_string(i) + ".member", "");
    round(bounded);
    EXPECT_THAT(view.troubles, ElementsAre(HasSubstr("has 10 files or more")));
}

TEST_F(folder_reader_test, bounds_the_bytes_of_all) {
    hand_member a(folder, "a");
    hand_member b(folder, "b");
    a.show();
    b.show();
    a.beat();
    b.beat();
    folder_limits limits;
    limits.bytes = a.text().size() + b.text().size() - 1;
    folder_reader bounded(folder.path(), owners, limits);
    EXPECT_EQ(round(bounded), "a b?");
    EXPECT_THAT(view.troubles, ElementsAre(AllOf(HasSubstr("b.member"), HasSubstr("more than"))));
    a.info.host.clear();
    a.show();
    a.beat();
    EXPECT_EQ(round(bounded), "a b?") << "b's is tried again when it changes";
    b.show();
    b.beat();
    EXPECT_EQ(round(bounded), "a b");
    fs::remove(folder.file("a.beat"));
    EXPECT_EQ(round(bounded), "b");
    a.beat();
    EXPECT_EQ(round(bounded), "a b") << "what has left takes no bytes";
}

TEST_F(folder_reader_test, bounds_the_reports) {
    folder_limits limits;
    limits.reports = 5;
    limits.reports_a_round = 3;
    folder_reader bounded(folder.path(), owners, limits);
    for (int i = 0; i < 10; ++i) folder.put("x" + std::to_string(i), "");
    std::size_t reports = 0;
    for (const std::size_t expected : {3U, 2U, 0U}) {
        round(bounded);
        EXPECT_EQ(view.troubles.size(), expected);
        reports += view.troubles.size();
    }
    EXPECT_EQ(reports, 5U);
}

}  // namespace
}  // namespace eddy::cluster
