// Tests of the state folder: saving, loading, and damaged files.
#include "daemon/state/state_folder.hpp"

#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace eddy::daemon {
namespace {

namespace fs = std::filesystem;

class state_folder_test : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(store().prepare()); }

    state_folder store() const { return state_folder(folder_ + "/state"); }
    std::string file(const std::string& name) const { return folder_ + "/state/runtimes/" + name; }
    std::string damaged(const std::string& name) const {
        return folder_ + "/state/damaged/" + name;
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(file(name)) << text;
    }
    static runtime_record record(const std::string& name) {
        runtime_record r;
        r.id = "0123456789ab";
        r.name = name;
        r.type = "cache";
        r.owner = "boss";
        r.group = "web";
        r.created = *parse_time("2026-11-21T21:22:04Z");
        r.running = true;
        r.options = {{"port", 6379}, {"mode", "readonly"}};
        return r;
    }

    const eddy::testing::temporary_folder temporary_;
    const std::string folder_ = temporary_.path();
};

TEST_F(state_folder_test, gives_back_what_was_saved) {
    ASSERT_TRUE(store().save(record("db")));
    const auto loaded = store().load();
    ASSERT_TRUE(loaded);
    ASSERT_EQ(loaded->records.size(), 1U);
    EXPECT_EQ(loaded->records[0], record("db"));
    EXPECT_TRUE(loaded->complaints.empty());
}

TEST_F(state_folder_test, replaces_a_record) {
    ASSERT_TRUE(store().save(record("db")));
    runtime_record changed = record("db");
    changed.running = false;
    ASSERT_TRUE(store().save(changed));
    EXPECT_EQ(store().load()->records.at(0), changed);
}

TEST_F(state_folder_test, keeps_the_order_of_creation) {
    runtime_record younger = record("a");
    younger.created = *parse_time("2027-01-01T00:00:00Z");
    ASSERT_TRUE(store().save(younger));
    ASSERT_TRUE(store().save(record("z")));
    const auto loaded = store().load();
    EXPECT_EQ(loaded->records.at(0).name, "z");
    EXPECT_EQ(loaded->records.at(1).name, "a");
}

TEST_F(state_folder_test, erases_a_record_and_does_not_mind_its_absence) {
    ASSERT_TRUE(store().save(record("db")));
    EXPECT_TRUE(store().erase("db"));
    EXPECT_TRUE(store().erase("db"));
    EXPECT_TRUE(store().load()->records.empty());
}

TEST_F(state_folder_test, sets_damaged_files_aside_and_loads_the_rest) {
    ASSERT_TRUE(store().save(record("good")));
    write("empty.json", "");
    write("cut.json", R"({"version": 1, "name": "cut)");
    write("list.json", "[1, 2]");
    write("other.json", dump_json(to_json(record("another"))));
    write("noversion.json", R"({"name": "noversion"})");
    write("future.json", R"({"version": 99, "name": "future"})");
    write("deep.json", std::string(100'000, '['));
    json no_type = to_json(record("untyped"));
    no_type["type"] = "";
    write("untyped.json", dump_json(no_type));
    json bad_name = to_json(record("x"));
    bad_name["name"] = 7;
    write("x.json", dump_json(bad_name));
    write("binary.json", std::string("\0\xff\xfe", 3));

    const auto loaded = store().load();
    ASSERT_TRUE(loaded);
    ASSERT_EQ(loaded->records.size(), 1U);
    EXPECT_EQ(loaded->records[0].name, "good");
    EXPECT_EQ(loaded->complaints.size(), 10U);
    for (const char* name : {"empty", "cut", "list", "other", "noversion", "future", "deep",
                             "untyped", "x", "binary"}) {
        const std::string file_name = std::string(name) + ".json";
        EXPECT_TRUE(fs::exists(damaged(file_name))) << name;
        EXPECT_FALSE(fs::exists(file(file_name))) << name;
    }
    EXPECT_TRUE(store().load()->complaints.empty());
}

TEST_F(state_folder_test, keeps_every_damaged_version_of_a_file) {
    for (int i = 0; i < 3; ++i) {
        write("db.json", "no JSON " + std::to_string(i));
        EXPECT_EQ(store().load()->complaints.size(), 1U);
    }
    EXPECT_TRUE(fs::exists(damaged("db.json")));
    EXPECT_TRUE(fs::exists(damaged("db.json.2")));
    EXPECT_TRUE(fs::exists(damaged("db.json.3")));
}

TEST_F(state_folder_test, forgets_what_a_killed_daemon_was_writing) {
    ASSERT_TRUE(store().save(record("db")));
    write(".db.json.new", "half a rec");
    const auto loaded = store().load();
    EXPECT_EQ(loaded->records.size(), 1U);
    EXPECT_TRUE(loaded->complaints.empty());
    EXPECT_FALSE(fs::exists(file(".db.json.new")));
}

TEST_F(state_folder_test, ignores_files_of_others) {
    write("README", "hello");
    write("notes.txt", "hello");
    const auto loaded = store().load();
    EXPECT_TRUE(loaded->records.empty());
    EXPECT_TRUE(loaded->complaints.empty());
    EXPECT_TRUE(fs::exists(file("README")));
}

TEST_F(state_folder_test, refuses_a_huge_file_without_reading_it) {
    write("huge.json", std::string(2 * 1024 * 1024, ' '));
    EXPECT_EQ(store().load()->complaints.size(), 1U);
}

TEST_F(state_folder_test, does_not_hang_on_a_pipe) {
    ASSERT_EQ(::mkfifo(file("pipe.json").c_str(), 0600), 0);
    EXPECT_EQ(store().load()->complaints.size(), 1U);
}

TEST_F(state_folder_test, without_descriptors_nothing_is_moved) {
    ASSERT_TRUE(store().save(record("db")));
    // UBSan checks a type at its first use by a pipe: here, while descriptors are left.
    EXPECT_FALSE(std::make_error_code(std::errc::too_many_files_open).message().empty());
    EXPECT_FALSE(std::error_code(EMFILE, std::system_category()).message().empty());
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const unique_fd last(::dup(STDIN_FILENO));
    ASSERT_TRUE(last);
    const rlimit few{static_cast<rlim_t>(last.get() + 1), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto loaded = store().load();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("Too many open files"), std::string::npos);
    EXPECT_TRUE(fs::exists(file("db.json")));
}

TEST_F(state_folder_test, a_file_that_cannot_be_read_is_not_damaged) {
    ASSERT_TRUE(store().save(record("db")));
    write("cut.json", "{");
    // A link to itself fails for root as well, which may read everything.
    fs::create_symlink("loop.json", file("loop.json"));
    const auto loaded = store().load();
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().status, 500);
    EXPECT_NE(loaded.error().message.find(file("loop.json")), std::string::npos);
    EXPECT_TRUE(fs::is_symlink(file("loop.json")));
    EXPECT_TRUE(fs::exists(file("cut.json"))) << "nothing was changed";
    fs::remove(file("loop.json"));
    EXPECT_EQ(store().load()->records.size(), 1U);
    EXPECT_TRUE(fs::exists(damaged("cut.json")));
}

TEST_F(state_folder_test, a_file_without_permission_is_not_damaged) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
    ASSERT_TRUE(store().save(record("db")));
    ASSERT_EQ(::chmod(file("db.json").c_str(), 0), 0);
    EXPECT_FALSE(store().load());
    ASSERT_EQ(::chmod(file("db.json").c_str(), 0600), 0);
    EXPECT_EQ(store().load()->records.size(), 1U);
}

TEST_F(state_folder_test, files_are_for_their_owner_alone) {
    ASSERT_TRUE(store().save(record("db")));
    struct stat info{};
    ASSERT_EQ(::stat(file("db.json").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    ASSERT_EQ(::stat((folder_ + "/state").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(state_folder_test, a_failed_save_leaves_the_old_file) {
    ASSERT_TRUE(store().save(record("db")));
    // A folder in the place of the new file makes writing fail, for root as well.
    fs::create_directory(file(".db.json.new"));
    runtime_record changed = record("db");
    changed.running = false;
    const auto saved = store().save(changed);
    ASSERT_FALSE(saved);
    EXPECT_NE(saved.error().message.find(".db.json.new"), std::string::npos);
    EXPECT_EQ(store().load()->records.at(0), record("db"));
}

TEST_F(state_folder_test, a_state_folder_that_is_a_file_is_refused_with_advice) {
    std::ofstream(folder_ + "/taken") << "x";
    const auto ready = state_folder(folder_ + "/taken").prepare();
    ASSERT_FALSE(ready);
    EXPECT_NE(ready.error().message.find("--state"), std::string::npos);
}

TEST(record_json, survives_a_round_trip_of_odd_texts) {
    runtime_record record;
    record.id = "id";
    record.name = "n";
    record.type = "t";
    record.created = *parse_time("1999-12-31T23:59:59Z");
    record.options = {{"text", "quote \" backslash \\ ü \u2028"}};
    const auto parsed = parse_json(dump_json(to_json(record)), "it");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*record_from_json(*parsed), record);
}

// --- Changes of several records ----------------------------------------------------------------

TEST_F(state_folder_test, a_change_is_made_in_one_step) {
    const state_folder all(folder_ + "/state");
    ASSERT_TRUE(all.save(record("old")));
    const state_change change{{record("a"), record("b")}, {"old", "never"}};
    ASSERT_TRUE(all.stage(change));
    ASSERT_TRUE(store().load(unfinished::kept));
    EXPECT_EQ(store().load(unfinished::kept)->records.size(), 1U) << "nothing has changed yet";
    ASSERT_TRUE(all.commit(change));
    EXPECT_TRUE(fs::exists(file("a.json")) && fs::exists(file("b.json")));
    EXPECT_FALSE(fs::exists(file("old.json")));
    EXPECT_FALSE(fs::exists(folder_ + "/state/change.json"));
    EXPECT_EQ(fs::status(file("a.json")).permissions(), fs::perms(0600));
    ASSERT_TRUE(all.stage({{record("c")}, {"a"}}));
    all.discard({{record("c")}, {"a"}});
    EXPECT_EQ(store().load()->records.size(), 2U);
    EXPECT_EQ(std::distance(fs::directory_iterator(file("")), {}), 2);
}

TEST_F(state_folder_test, a_stage_that_fails_leaves_nothing) {
    // A folder is in the way of the second record.
    fs::create_directory(file(".b.json.new"));
    const auto staged = store().stage({{record("a"), record("b")}, {}});
    ASSERT_FALSE(staged);
    EXPECT_FALSE(fs::exists(file(".a.json.new")));
    EXPECT_FALSE(fs::exists(folder_ + "/state/change.new"));
}

TEST_F(state_folder_test, a_change_that_cannot_be_read_is_set_aside) {
    ASSERT_TRUE(store().save(record("a")));
    const std::string change = folder_ + "/state/change.json";
    std::ofstream(change) << "{\"saved\": 1}";
    auto loaded = store().load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->records.size(), 1U);
    EXPECT_EQ(loaded->complaints.size(), 1U);
    EXPECT_TRUE(fs::exists(damaged("change.json")));
    ASSERT_EQ(::mkfifo(change.c_str(), 0600), 0);
    loaded = store().load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->complaints.size(), 1U);
    ASSERT_EQ(::symlink("/nowhere", change.c_str()), 0);
    loaded = store().load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->complaints.size(), 1U);
    std::ofstream(change) << R"({"version": 1, "saved": [], "erased": ["../x"]})";
    EXPECT_EQ(store().load()->complaints.size(), 1U);
    EXPECT_EQ(store().load()->records.size(), 1U);
}

TEST_F(state_folder_test, a_change_that_was_cut_off_is_finished_before_the_next_save) {
    const state_folder all(folder_ + "/state");
    ASSERT_TRUE(all.save(record("old")));
    // Folders are in the places of a record that goes, and of one that is saved.
    fs::create_directory(file("gone.json"));
    fs::create_directory(file("a.json"));
    const state_change change{{record("a")}, {"old", "gone"}};
    ASSERT_TRUE(all.stage(change));
    ASSERT_TRUE(all.commit(change)) << "it is made all the same";
    EXPECT_TRUE(fs::exists(folder_ + "/state/change.json"));
    EXPECT_FALSE(all.save(record("b"))) << "which the next start would undo";
    fs::remove(file("a.json"));
    EXPECT_FALSE(all.save(record("b"))) << "the other one is in the way";
    fs::remove(file("gone.json"));
    EXPECT_TRUE(all.save(record("b")));
    EXPECT_FALSE(fs::exists(folder_ + "/state/change.json"));
    EXPECT_EQ(store().load()->records.size(), 2U);
}

}  // namespace
}  // namespace eddy::daemon
