// Tests of the files of journals: what a restart finds, the limit, and disks that refuse.
#include "daemon/journal/journal_files.hpp"

#include <eddy/io/loop.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace eddy::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds deadline{60};

/// Asks until it is true, or the deadline.
template <class Condition>
bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

class journal_files_test : public ::testing::Test {
protected:
    journal_files_test() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        loop_ = std::move(*loop::create(options));
    }

    /// A journal of that name, as a daemon has it that has just started.
    std::shared_ptr<runtime_journal> open(journal_files& files, const std::string& name = "db") {
        auto made = std::make_shared<runtime_journal>(*loop_);
        made->keep(files, name, files.load(name));
        return made;
    }
    static std::vector<std::string> texts(const runtime_journal& of) {
        std::vector<std::string> all;
        for (const journal_line& each : of.read(0, 100'000)) all.push_back(each.text);
        return all;
    }
    std::string content(const std::string& name = "db") const {
        std::ifstream file(folder_.file(name + ".log"), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }

    const eddy::testing::temporary_folder folder_;
    std::unique_ptr<loop> loop_;
};

TEST_F(journal_files_test, the_next_daemon_finds_the_lines_and_their_times) {
    std::vector<journal_line> before;
    {
        journal_files files(folder_.path());
        const auto journal = open(files);
        journal->write("one");
        journal->write("two \x1b and\nthree");
        files.stop();
        before = journal->read(0, 10);
        EXPECT_EQ(fs::status(folder_.file("db.log")).permissions(),
                  fs::perms::owner_read | fs::perms::owner_write);
    }
    journal_files files(folder_.path());
    const auto journal = open(files);
    EXPECT_EQ(texts(*journal), (std::vector<std::string>{"one", "two \\x1b and", "three"}));
    const auto after = journal->read(0, 10);
    for (std::size_t i = 0; i < after.size(); ++i) {
        EXPECT_EQ(format_journal_line(after[i]), format_journal_line(before.at(i)));
        EXPECT_EQ(after[i].number, i + 1);
    }
    journal->write("four");
    files.flush();
    EXPECT_EQ(files.load("db").size(), 4U);
    EXPECT_TRUE(files.load("other").empty());
}

TEST_F(journal_files_test, a_file_stays_within_its_limit_and_keeps_the_newest_lines) {
    journal_files files(folder_.path());
    const auto journal = open(files);
    const std::string text(3000, 'x');
    for (int i = 0; i < 400; ++i) {
        journal->write(std::to_string(i) + text);
        if (i % 20 == 0) {
            files.flush();
            EXPECT_LE(fs::file_size(folder_.file("db.log")), journal_files::file_limit);
        }
    }
    files.flush();
    EXPECT_LE(fs::file_size(folder_.file("db.log")), journal_files::file_limit);
    const auto next = open(files);
    EXPECT_EQ(texts(*next), texts(*journal));
}

TEST_F(journal_files_test, more_lines_than_memory_has_between_two_rounds_leave_no_gap) {
    journal_files files(folder_.path());
    const auto journal = open(files);
    journal->write("first");
    files.flush();
    for (std::size_t i = 0; i < 3 * runtime_journal::line_limit; ++i)
        journal->write(std::to_string(i));
    files.flush();
    EXPECT_EQ(texts(*open(files)), texts(*journal));
}

TEST_F(journal_files_test, what_is_no_line_is_left_out) {
    std::ofstream(folder_.file("db.log")) << "nonsense\n\n2026-11-21T21:22:04.123Z good\n"
                                          << "2026-13-21T21:22:04.123Z no month\nZ \n2026-11-2";
    journal_files files(folder_.path());
    const auto journal = open(files);
    EXPECT_EQ(texts(*journal), std::vector<std::string>{"good"});
    journal->write("next");
    files.flush();
    EXPECT_TRUE(content().starts_with("2026-11-21T21:22:04.123Z good\n2")) << content();
}

TEST_F(journal_files_test, a_file_goes_with_its_runtime_and_the_next_one_begins_anew) {
    journal_files files(folder_.path());
    {
        const auto journal = open(files);
        journal->write("of the first");
        files.flush();
        journal->write("removed");
        journal->discard();
        journal->write("too late");
    }
    const auto next = std::make_shared<runtime_journal>(*loop_);
    next->keep(files, "db", {});
    next->write("of the second");
    files.flush();
    EXPECT_EQ(content().find("first"), std::string::npos);
    EXPECT_NE(content().find("of the second"), std::string::npos);
    next->discard();
    files.flush();
    EXPECT_FALSE(fs::exists(folder_.file("db.log")));
}

TEST_F(journal_files_test, a_folder_that_cannot_be_made_costs_no_line_in_memory) {
    const std::string parent = folder_.file("state");
    journal_files files(parent + "/journals");
    const auto journal = open(files);
    journal->write("one");
    files.flush();
    EXPECT_EQ(texts(*journal), std::vector<std::string>{"one"});
    fs::create_directory(parent);
    journal->write("two");
    files.flush();
    EXPECT_EQ(texts(*open(files)), (std::vector<std::string>{"one", "two"}));
}

TEST_F(journal_files_test, a_removed_folder_is_made_anew_for_this_user_alone) {
    const std::string folder = folder_.file("journals");
    journal_files files(folder);
    const auto journal = open(files);
    journal->write("one");
    files.flush();
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
    fs::remove_all(folder);
    journal->write("two");
    files.flush();
    EXPECT_EQ(texts(*open(files)), (std::vector<std::string>{"one", "two"}));
}

TEST_F(journal_files_test, what_could_not_be_written_is_tried_again_by_itself) {
    const std::string parent = folder_.file("state");
    journal_files files(parent + "/journals", std::chrono::milliseconds(10));
    const auto journal = open(files);
    const auto removed = open(files, "removed");
    journal->write("one");
    removed->write("of a runtime that is gone");
    files.flush();
    removed->discard();
    fs::create_directory(parent);
    EXPECT_TRUE(eventually([&] { return files.load("db").size() == 1; }));
    files.flush();
    EXPECT_TRUE(files.load("removed").empty());
}

TEST_F(journal_files_test, the_end_tries_once_more_what_could_not_be_written) {
    const std::string parent = folder_.file("state");
    journal_files files(parent + "/journals", std::chrono::hours(1));
    const auto journal = open(files);
    journal->write("one");
    files.flush();
    fs::create_directory(parent);
    files.stop();
    EXPECT_EQ(files.load("db").size(), 1U);
}

TEST_F(journal_files_test, a_file_that_is_whole_is_gone_on_with) {
    journal_files files(folder_.path());
    const auto inode = [&] {
        struct stat about{};
        EXPECT_EQ(::stat(folder_.file("db.log").c_str(), &about), 0);
        return about.st_ino;
    };
    {
        const auto journal = open(files);
        // More than memory has; the file has them all.
        for (std::size_t i = 0; i < 3 * runtime_journal::line_limit / 2; ++i) {
            journal->write(std::to_string(i));
            if (i % 500 == 0) files.flush();
        }
        files.flush();
    }
    const auto before = inode();
    const std::string kept = content();
    const auto journal = open(files);
    journal->write("after the start");
    files.flush();
    EXPECT_EQ(inode(), before);
    EXPECT_TRUE(content().starts_with(kept));
    EXPECT_TRUE(content().ends_with("Z after the start\n"));
}

TEST_F(journal_files_test, a_file_that_others_cut_or_remove_is_written_anew) {
    journal_files files(folder_.path());
    const auto journal = open(files);
    journal->write("one");
    files.flush();
    fs::resize_file(folder_.file("db.log"), 10);
    journal->write("two");
    files.flush();
    EXPECT_EQ(texts(*open(files)), (std::vector<std::string>{"one", "two"}));
    fs::remove(folder_.file("db.log"));
    journal->write("three");
    files.flush();
    EXPECT_EQ(texts(*open(files)), (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(journal_files_test, of_a_file_that_is_too_large_the_end_counts) {
    {
        std::ofstream file(folder_.file("db.log"));
        const std::string line = "2026-11-21T21:22:04.123Z " + std::string(1000, 'x') + '\n';
        for (std::size_t size = 0; size < 8 * journal_files::file_limit; size += line.size())
            file << line;
        file << "2026-11-21T21:22:05.123Z last\n";
    }
    journal_files files(folder_.path());
    const auto journal = open(files);
    ASSERT_GT(texts(*journal).size(), 100U);
    EXPECT_EQ(texts(*journal).back(), "last");
    EXPECT_EQ(texts(*journal).front(), std::string(1000, 'x'));
    journal->write("next");
    files.flush();
    EXPECT_LE(fs::file_size(folder_.file("db.log")), journal_files::file_limit);
    EXPECT_EQ(texts(*open(files)), texts(*journal));
}

TEST_F(journal_files_test, nothing_is_written_once_it_is_stopped) {
    journal_files files(folder_.path());
    const auto journal = open(files);
    journal->write("one");
    files.stop();
    const std::string before = content();
    EXPECT_NE(before, "");
    journal->write("two");
    journal->discard();
    files.flush();
    EXPECT_EQ(content(), before);
}

}  // namespace
}  // namespace eddy::daemon
