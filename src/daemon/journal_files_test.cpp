// Tests of the files of journals: what a restart finds, the limit, and disks that refuse.
#include "daemon/journal_files.hpp"

#include <eddy/io/loop.hpp>

#include "base/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace eddy::daemon {
namespace {

namespace fs = std::filesystem;

class journal_files_test : public ::testing::Test {
protected:
    journal_files_test() {
        loop_options options;
        options.kind = backend_kind::epoll;
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

TEST_F(journal_files_test, a_folder_that_is_missing_costs_no_line_in_memory) {
    const std::string folder = folder_.file("journals");
    journal_files files(folder);
    const auto journal = open(files);
    journal->write("one");
    files.flush();
    EXPECT_EQ(texts(*journal), std::vector<std::string>{"one"});
    fs::create_directory(folder);
    journal->write("two");
    files.flush();
    EXPECT_EQ(texts(*open(files)), (std::vector<std::string>{"one", "two"}));
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
