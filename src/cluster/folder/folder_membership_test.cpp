// Members that share a folder: on the simulator in virtual time, with the machine's real files, and
// on kernels. Files are also written by hand, as another daemon or a stranger would.
#include "cluster/folder/folder_membership.hpp"

#include "cluster/beats/testing.hpp"
#include "cluster/folder/testing.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class folder_members : public clusters<folder_membership> {
protected:
    void SetUp() override {
        clusters::SetUp();
        if (!simulated()) options.rules = quick_rules<beat_rules>();
    }
    std::unique_ptr<folder_membership> make_engine(observer& reports) override {
        return std::make_unique<folder_membership>(folder.path(), reports, options);
    }

    /// Time in which each member polls several times.
    task<void> some_polls() { return pass(5 * options.rules.poll); }
    /// A member that beats until the scope ends.
    static task<void> keep_beating(hand_member& which, duration interval) {
        for (;;) {
            which.beat();
            const result<> slept = co_await sleep_for(interval);
            if (!slept) co_return;
        }
    }

    test_folder folder;
    folder_options options;
};
INSTANTIATE_TEST_SUITE_P(cluster, folder_members,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(folder_members, see_each_other_and_their_changes) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        node& b = add("b");
        co_await join_all({&a, &b});
        co_await wait_until([&] { return a.names() == "a b" && b.names() == "a b"; });
        EXPECT_EQ(*a.find("b"), b.info);
        b.info.runtimes.push_back(simple_runtime("another", "db"));
        b.info.is_leaving = true;
        b.its->publish(b.info);
        sort_runtimes(b.info);
        co_await wait_until([&] { return a.find("b") && *a.find("b") == b.info; });
        const std::uint64_t known = a.its->current()->number;
        co_await b.its->end();
        const result<> changed = co_await a.its->changed(known);
        EXPECT_TRUE(changed);
        co_await wait_until([&] { return a.names() == "a"; });
        EXPECT_EQ(folder.count(), 2U) << "b has left nothing";
        EXPECT_THAT(a.reports.troubles, IsEmpty());
        EXPECT_THAT(b.reports.troubles, IsEmpty());
    });
    EXPECT_EQ(folder.count(), 0U);
}

TEST_P(folder_members, stay_while_they_beat_and_go_when_they_are_silent) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member b(folder, "b");
        b.show();
        co_await with_scope([&](scope& beats) -> task<void> {
            beats.spawn(keep_beating(b, options.rules.beat));
            co_await wait_until([&] { return a.names() == "a b"; });
            if (!simulated()) co_return;
            const std::uint64_t before = a.its->current()->number;
            co_await pass(1min);
            EXPECT_EQ(a.its->current()->number, before);
        });
        const time_point silent = here().now();
        co_await wait_until([&] { return a.names() == "a"; });
        if (simulated()) EXPECT_LE(here().now() - silent, 3s);
        EXPECT_TRUE(folder.has("b.beat")) << "its remains";
        EXPECT_THAT(a.reports.troubles, IsEmpty());
    });
}

TEST_P(folder_members, notice_changes_on_their_machine_before_they_poll) {
    if (simulated()) GTEST_SKIP() << "it has no inotify";
    options.rules.poll = 10min;
    options.rules.silence = 10min;
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        node& b = add("b");
        co_await join_all({&a, &b});
        // The first watch may begin behind the first change: so they are repeated.
        std::uint64_t changes = 0;
        while (!a.find("b") || a.find("b")->runtimes[0].connections == 0) {
            b.info.runtimes[0].connections = ++changes;
            b.its->publish(b.info);
            co_await pass(options.rules.beat);
        }
    });
}

TEST_P(folder_members, are_judged_by_no_time_of_a_file) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member b(folder, "b");
        b.show();
        b.beat();
        co_await wait_until([&] { return a.names() == "a b"; });
        for (const std::int64_t seconds : {0L, 4'000'000'000L}) {
            b.beat();
            const timespec times[2] = {{seconds, 0}, {seconds, 0}};
            EXPECT_EQ(::utimensat(AT_FDCWD, folder.file("b.beat").c_str(), times, 0), 0);
            if (!simulated()) continue;
            co_await pass(2 * options.rules.poll);
            EXPECT_EQ(a.names(), "a b");
        }
        co_await wait_until([&] { return a.names() == "a"; });
    });
}

// --- Names ------------------------------------------------------------------------------------

TEST_P(folder_members, refuse_a_name_that_a_living_one_has) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        node& second = add("a");
        const std::string refused = co_await refusal_of_join(second);
        EXPECT_THAT(refused, AllOf(StartsWith("409 "), HasSubstr("at a.example")));
        co_await some_polls();
        EXPECT_THAT(folder.get("a.member"), HasSubstr(a.info.id));
        EXPECT_THAT(a.reports.troubles, IsEmpty());
    });
}

TEST_P(folder_members, take_over_the_remains_of_a_kill) {
    run_cluster([this]() -> task<void> {
        hand_member old(folder, "a");
        old.its.term = 7;
        old.show();
        old.beat();
        folder.put("." + old.info.id + ".new", "half of a file");
        node& a = add("a");
        const time_point begun = here().now();
        co_await join(a);
        EXPECT_GE(here().now() - begun, options.rules.silence);
        const auto there = parse_beat(folder.get("a.beat"));
        EXPECT_TRUE(there);
        if (!there) co_return;
        EXPECT_EQ(there->id, a.info.id);
        EXPECT_EQ(there->term, 8U);
        EXPECT_FALSE(folder.has("." + old.info.id + ".new"));
        EXPECT_EQ(a.names(), "a");
    });
}

TEST_P(folder_members, yield_to_a_later_start_and_come_back) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member other(folder, "a");
        other.info.host = "other.example";
        other.its.term = 9;
        other.show();
        co_await with_scope([&](scope& beats) -> task<void> {
            beats.spawn(keep_beating(other, options.rules.beat));
            co_await wait_until([&] { return !a.reports.troubles.empty(); });
            EXPECT_THAT(a.reports.troubles, ElementsAre(AllOf(HasSubstr("at other.example"),
                                                              HasSubstr("the name \"a\""))));
            co_await some_polls();
            EXPECT_THAT(folder.get("a.beat"), HasSubstr(other.info.id));
            EXPECT_THAT(folder.get("a.member"), HasSubstr(other.info.id));
            EXPECT_EQ(a.find("a")->id, other.info.id);
        });
        co_await wait_until([&] { return !a.reports.recoveries.empty(); });
        co_await wait_until([&] { return a.find("a") && a.find("a")->id == a.info.id; });
        EXPECT_THAT(folder.get("a.member"), HasSubstr(a.info.id));
    });
}

TEST_P(folder_members, write_over_an_earlier_start_that_wakes) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member earlier(folder, "a");
        earlier.its.term = 0;
        earlier.show();
        earlier.beat();
        co_await wait_until([&] {
            return folder.get("a.beat").find(a.info.id) != std::string::npos &&
                   folder.get("a.member").find(a.info.id) != std::string::npos;
        });
        EXPECT_THAT(a.reports.troubles, IsEmpty());
        EXPECT_EQ(a.find("a")->id, a.info.id);
    });
}

TEST_P(folder_members, have_names_that_fit_into_those_of_files) {
    run_cluster([this]() -> task<void> {
        node& longest = add(std::string(248, 'x'));
        co_await join(longest);
        EXPECT_EQ(longest.its->current()->members.size(), 1U);
        node& longer = add(std::string(249, 'x'));
        EXPECT_THAT(co_await refusal_of_join(longer),
                    AllOf(StartsWith("400 "), HasSubstr("at most 248")));
    });
}

// --- The folder -------------------------------------------------------------------------------

TEST_P(folder_members, need_a_folder_that_can_be_written_to) {
    run_cluster([this]() -> task<void> {
        fs::remove(folder.path());
        node& a = add("a");
        EXPECT_THAT(co_await refusal_of_join(a),
                    AllOf(StartsWith("503 "), HasSubstr("does not exist: make it")));
        folder.make();
        if (::geteuid() != 0) {
            EXPECT_EQ(::chmod(folder.path().c_str(), 0500), 0);
            EXPECT_THAT(co_await refusal_of_join(a), StartsWith("400 "));
            EXPECT_EQ(::chmod(folder.path().c_str(), 0700), 0);
        }
        co_await join(a);
        EXPECT_EQ(a.names(), "a");
        co_await a.its->end();
        fs::remove(folder.path());
        std::ofstream(folder.path()) << "a file";
        node& b = add("b");
        EXPECT_THAT(co_await refusal_of_join(b),
                    AllOf(StartsWith("400 "), HasSubstr("cannot be used")));
        fs::remove(folder.path());
    });
}

TEST_P(folder_members, stay_as_known_last_while_the_folder_is_away) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        node& b = add("b");
        co_await join_all({&a, &b});
        co_await wait_until([&] { return a.names() == "a b" && b.names() == "a b"; });
        fs::rename(folder.path(), folder.away());
        co_await wait_until(
            [&] { return a.its->current()->is_stale && b.its->current()->is_stale; });
        EXPECT_THAT(a.its->current()->stale_reason, HasSubstr(folder.path()));
        co_await pass(simulated() ? 1h : options.rules.silence);
        EXPECT_EQ(a.names(), "a b");
        fs::rename(folder.away(), folder.path());
        co_await wait_until(
            [&] { return !a.its->current()->is_stale && !b.its->current()->is_stale; });
        for (const node* const each : {&a, &b}) {
            EXPECT_EQ(each->names(), "a b");
            EXPECT_THAT(each->reports.troubles,
                        ElementsAre(HasSubstr("The members of the cluster stay as known last")));
            EXPECT_THAT(each->reports.recoveries, ElementsAre(HasSubstr("can be used again")));
        }
    });
}

TEST_P(folder_members, fill_a_folder_that_was_removed_and_made_again) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        node& b = add("b");
        co_await join_all({&a, &b});
        co_await wait_until([&] { return a.names() == "a b" && b.names() == "a b"; });
        const bool has_gap = !simulated();
        // The members write meanwhile.
        std::error_code error;
        while (fs::exists(folder.path())) fs::remove_all(folder.path(), error);
        co_await wait_until([&] { return a.its->current()->is_stale; });
        folder.make();
        co_await wait_until(
            [&] { return !a.its->current()->is_stale && !b.its->current()->is_stale; });
        if (!has_gap) EXPECT_EQ(a.names(), "a b");
        co_await wait_until([&] { return folder.count() == 4; });
        co_await wait_until([&] { return a.names() == "a b" && b.names() == "a b"; });
    });
}

TEST_P(folder_members, drop_none_while_they_cannot_write) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        node& b = add("b");
        co_await join_all({&a, &b});
        co_await wait_until([&] { return a.names() == "a b" && b.names() == "a b"; });
        // Root may write to any folder, so the name of its next file is taken.
        const std::string in_the_way = folder.file("." + a.info.id + ".new");
        std::error_code error;
        while (!fs::create_directory(in_the_way, error)) co_await pass(1ms);
        co_await wait_until([&] { return a.its->current()->is_stale; });
        EXPECT_THAT(a.its->current()->stale_reason, HasSubstr("cannot be written to"));
        co_await wait_until([&] { return b.names() == "b"; });
        b.its->publish([&] {
            b.info.label = "seen";
            return b.info;
        }());
        co_await wait_until([&] { return a.find("b") && a.find("b")->label == "seen"; });
        co_await b.its->end();
        co_await some_polls();
        EXPECT_EQ(a.names(), "a b") << "it cannot know why";
        EXPECT_EQ(a.reports.troubles.size(), 1U);
        fs::remove(in_the_way);
        co_await wait_until([&] { return !a.its->current()->is_stale && a.names() == "a"; });
        EXPECT_EQ(a.reports.recoveries.size(), 1U);
    });
}

TEST_P(folder_members, write_their_files_again_when_these_are_changed) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        const std::string good = folder.get("a.member");
        for (const bool is_removed : {true, false}) {
            if (is_removed)
                fs::remove(folder.file("a.member"));
            else
                folder.put("a.member", "[[[[");
            co_await wait_until([&] { return folder.get("a.member") == good; });
        }
        fs::remove(folder.file("a.beat"));
        co_await wait_until([&] { return folder.has("a.beat"); });
        EXPECT_EQ(a.names(), "a");
    });
}

TEST_P(folder_members, remove_remains_after_their_time) {
    options.rules.memory = options.rules.silence / 2;
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member b(folder, "b");
        b.show();
        b.beat();
        folder.put("." + b.info.id + ".new", "half of a file");
        co_await wait_until([&] { return a.names() == "a b"; });
        co_await wait_until([&] { return folder.count() == 2; });
        EXPECT_EQ(a.names(), "a");
    });
}

// --- Hostile files ----------------------------------------------------------------------------

class hostile_files : public folder_members {
protected:
    /// Makes a file of the member "evil" beside a good member that reads it: it is ignored and
    /// reported once, until a good one takes its place.
    void expect_ignored(const std::string& file, std::string reason, std::function<void()> make) {
        run_cluster([&]() -> task<void> {
            node& a = add("a");
            co_await join(a);
            hand_member evil(folder, "evil");
            evil.its.sequence = 2;
            make();
            const bool is_beat = file == "evil.beat";
            if (!is_beat) evil.beat();
            co_await wait_until([&] { return !a.reports.troubles.empty(); });
            co_await some_polls();
            EXPECT_THAT(a.reports.troubles,
                        ElementsAre(AllOf(HasSubstr(file + " is ignored"), HasSubstr(reason))));
            EXPECT_EQ(a.names(), "a");
            EXPECT_FALSE(a.its->current()->is_stale);
            // A folder cannot be replaced: it may be seen to be gone before the good file is there.
            const bool was_folder = fs::is_directory(fs::symlink_status(folder.file(file)));
            if (was_folder) fs::remove(folder.file(file));
            evil.show();
            evil.beat();
            co_await wait_until([&] { return a.names() == "a evil"; });
            if (!was_folder) EXPECT_THAT(a.reports.recoveries, ElementsAre(HasSubstr(file)));
            EXPECT_EQ(a.reports.troubles.size(), 1U);
        });
    }
    std::string member() const { return hand_member(folder, "evil").text(); }
};
INSTANTIATE_TEST_SUITE_P(cluster, hostile_files,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(hostile_files, a_huge_one) {
    expect_ignored("evil.member", "at most 8388608", [&] {
        folder.put("evil.member", member());
        ASSERT_EQ(::truncate(folder.file("evil.member").c_str(), 1'000'000'000'000), 0);
    });
}

TEST_P(hostile_files, a_huge_beat) {
    expect_ignored("evil.beat", "at most 256",
                   [&] { folder.put("evil.beat", std::string(257, 'x')); });
}

TEST_P(hostile_files, deep_json) {
    expect_ignored("evil.member", "nests deeper",
                   [&] { folder.put("evil.member", std::string(1'000'000, '[')); });
}

TEST_P(hostile_files, a_cut_one) {
    expect_ignored("evil.member", "not valid JSON",
                   [&] { folder.put("evil.member", member().substr(0, 100)); });
}

TEST_P(hostile_files, bytes_that_are_no_text) {
    expect_ignored("evil.member", "not valid JSON", [&] {
        folder.put("evil.member", std::string("\0\xff\xfe{\"format\":1}\x1b[2J", 20));
    });
}

TEST_P(hostile_files, a_name_of_another_member) {
    expect_ignored("evil.member", "a member with the name \"a\"",
                   [&] { folder.put("evil.member", hand_member(folder, "a").text()); });
}

TEST_P(hostile_files, a_newer_format) {
    expect_ignored("evil.member", "its format is 2",
                   [&] { folder.put("evil.member", R"({"format":2,"name":"evil","id":"1f"})"); });
}

TEST_P(hostile_files, a_link_to_a_good_file) {
    expect_ignored("evil.member", "is a symbolic link", [&] {
        folder.put("orphan.member", member());
        fs::create_symlink("orphan.member", folder.file("evil.member"));
    });
}

TEST_P(hostile_files, a_link_to_an_endless_device) {
    expect_ignored("evil.beat", "is a symbolic link",
                   [&] { fs::create_symlink("/dev/zero", folder.file("evil.beat")); });
}

TEST_P(hostile_files, a_second_name_of_a_file) {
    expect_ignored("evil.member", "has another name", [&] {
        folder.put("orphan.member", member());
        fs::create_hard_link(folder.file("orphan.member"), folder.file("evil.member"));
    });
}

TEST_P(hostile_files, a_fifo) {
    expect_ignored("evil.member", "is a FIFO",
                   [&] { ASSERT_EQ(::mkfifo(folder.file("evil.member").c_str(), 0600), 0); });
}

TEST_P(hostile_files, a_fifo_as_a_beat) {
    expect_ignored("evil.beat", "is a FIFO",
                   [&] { ASSERT_EQ(::mkfifo(folder.file("evil.beat").c_str(), 0600), 0); });
}

TEST_P(hostile_files, a_folder) {
    expect_ignored("evil.member", "is a folder",
                   [&] { fs::create_directory(folder.file("evil.member")); });
}

TEST_P(hostile_files, a_folder_as_a_beat) {
    expect_ignored("evil.beat", "is a folder",
                   [&] { fs::create_directory(folder.file("evil.beat")); });
}

TEST_P(hostile_files, one_that_every_user_may_write) {
    expect_ignored("evil.beat", "may be written by every user", [&] {
        hand_member(folder, "evil").beat();
        ASSERT_EQ(::chmod(folder.file("evil.beat").c_str(), 0666), 0);
    });
}

TEST_P(hostile_files, one_of_another_user) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    expect_ignored("evil.member", "belongs to user id 4321, which is not trusted", [&] {
        folder.put("evil.member", member());
        ASSERT_EQ(::chown(folder.file("evil.member").c_str(), 4321, 4321), 0);
    });
}

TEST_P(hostile_files, one_of_another_user_is_good_when_that_is_trusted) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    options.trusted = {4321};
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member other(folder, "other");
        other.show();
        EXPECT_EQ(::chown(folder.file("other.member").c_str(), 4321, 4321), 0);
        other.beat();
        EXPECT_EQ(::chown(folder.file("other.beat").c_str(), 4321, 4321), 0);
        co_await wait_until([&] { return a.names() == "a other"; });
    });
}

TEST_P(hostile_files, foreign_ones) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        folder.put("notes.txt", "buy milk");
        co_await wait_until([&] { return !a.reports.troubles.empty(); });
        co_await some_polls();
        EXPECT_THAT(a.reports.troubles, ElementsAre(HasSubstr("notes.txt is ignored")));
    });
}

TEST_P(hostile_files, in_the_way_of_an_own_one) {
    run_cluster([this]() -> task<void> {
        for (const std::string file : {"a.beat", "a.member"}) {
            node& a = add("a");
            fs::create_directory(folder.file(file));
            EXPECT_THAT(co_await refusal_of_join(a),
                        AllOf(StartsWith("400 "), HasSubstr(file + " is in the way")));
            fs::remove(folder.file(file));
            EXPECT_EQ(::mkfifo(folder.file(file).c_str(), 0600), 0);
            EXPECT_THAT(co_await refusal_of_join(a),
                        AllOf(StartsWith("400 "), HasSubstr("it is a FIFO")));
            fs::remove(folder.file(file));
        }
        EXPECT_EQ(folder.count(), 0U) << "a join that was refused leaves nothing";
    });
}

TEST_P(hostile_files, an_older_member_is_good) {
    run_cluster([this]() -> task<void> {
        node& a = add("a");
        co_await join(a);
        hand_member old(folder, "old");
        folder.put("old.member", R"({"format":1,"name":"old","id":")" + old.info.id + "\"}");
        old.beat();
        co_await wait_until([&] { return a.names() == "a old"; });
        EXPECT_EQ(a.find("old")->host, "");
        EXPECT_THAT(a.reports.troubles, IsEmpty());
    });
}

}  // namespace
}  // namespace eddy::cluster
