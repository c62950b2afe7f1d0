// Tests of appending received messages to a file.
#include "runtime/logs/line_log.hpp"

#include "runtime/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

class line_logs : public ::testing::Test {
protected:
    template <class Body>
    void run(Body body) {
        auto made = loop::create();
        ASSERT_TRUE(made);
        (*made)->run(body());
    }

    temporary_folder folder_;
    recorder events_;
};

TEST_F(line_logs, everything_appended_is_written_before_it_ends) {
    run([&]() -> task<void> {
        const std::string path = folder_.file("log");
        std::string expected;
        for (int round = 0; round < 2; ++round) {
            line_log log(events_);
            must_do(log.open(path));
            scope tasks;
            tasks.spawn(log.run());
            for (int i = 0; i < 1000; ++i) {
                const std::string line = std::to_string(i) + " " + std::string(1000, 'x') + "\n";
                EXPECT_TRUE(log.append(line, 1));
                expected += line;
                if (i % 100 == 0) static_cast<void>(co_await loop::current().sleep_for(1ms));
            }
            log.finish();
            co_await tasks.join();
            log.close();
        }
        EXPECT_TRUE(content(path) == expected);
        EXPECT_TRUE(events_.lines.empty());
    });
}

TEST_F(line_logs, a_file_that_was_renamed_is_opened_anew) {
    run([&]() -> task<void> {
        const std::string path = folder_.file("log");
        line_log log(events_);
        must_do(log.open(path));
        scope tasks;
        tasks.spawn(log.run());
        EXPECT_TRUE(log.append("one\n", 1));
        while (content(path).empty()) static_cast<void>(co_await loop::current().sleep_for(1ms));
        std::filesystem::rename(path, path + ".1");
        must_do(log.reopen());
        EXPECT_TRUE(log.append("two\n", 1));
        log.finish();
        co_await tasks.join();
        log.close();
        EXPECT_EQ(content(path + ".1"), "one\n");
        EXPECT_EQ(content(path), "two\n");
    });
}

TEST_F(line_logs, what_the_disk_cannot_take_in_time_is_dropped_at_the_limit) {
    run([&]() -> task<void> {
        line_log log(events_);
        must_do(log.open(folder_.file("log")));
        const std::string megabyte(1 << 20, 'x');
        for (std::size_t size = 0; size < line_log::max_waiting; size += megabyte.size())
            EXPECT_TRUE(log.append(megabyte, 1));
        EXPECT_FALSE(log.append("x", 1));
        EXPECT_FALSE(log.append("y", 1));
        EXPECT_TRUE(events_.has("the disk is too slow"));
        EXPECT_EQ(events_.lines.size(), 1U);

        // There is room again once it is written.
        scope tasks;
        tasks.spawn(log.run());
        co_await until([&] { return log.append("z", 1); });
        log.finish();
        co_await tasks.join();
        log.close();
        EXPECT_EQ(content(folder_.file("log")).size(), line_log::max_waiting + 1);
    });
}

TEST_F(line_logs, a_full_disk_is_reported_once_and_the_messages_go_on) {
    run([&]() -> task<void> {
        serving::tally dropped;
        line_log log(events_, &dropped);
        must_do(log.open("/dev/full"));
        scope tasks;
        tasks.spawn(log.run());
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(log.append("line\n", 1));
            co_await until([&] { return !events_.lines.empty(); });
        }
        log.finish();
        co_await tasks.join();
        log.close();
        EXPECT_EQ(dropped.value(), 3U);
        EXPECT_EQ(events_.lines.size(), 1U);
        EXPECT_TRUE(events_.has("cannot append to /dev/full: No space left on device"));
    });
}

/// A limit on the size of this process's files, in the place of a full disk.
class file_size_limit {
public:
    explicit file_size_limit(rlim_t bytes) {
        getrlimit(RLIMIT_FSIZE, &usual_);
        signal_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit low{bytes, usual_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &low);
    }
    ~file_size_limit() { lift(); }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;

    void lift() {
        if (std::exchange(lifted_, true)) return;
        setrlimit(RLIMIT_FSIZE, &usual_);
        std::signal(SIGXFSZ, signal_);
    }

private:
    rlimit usual_{};
    void (*signal_)(int) = nullptr;
    bool lifted_ = false;
};

TEST_F(line_logs, a_line_that_a_full_disk_has_cut_does_not_join_the_next) {
    run([&]() -> task<void> {
        const std::string path = folder_.file("log");
        const std::string line = std::string(999, 'x') + "\n";
        serving::tally dropped;
        line_log log(events_, &dropped);
        must_do(log.open(path));
        scope tasks;
        // Larger than the test's own output, if that is a file.
        constexpr std::size_t room = (std::size_t{3} << 20) + 500;
        file_size_limit full(room);
        std::string lines;
        while (lines.size() <= room) lines += line;
        EXPECT_TRUE(log.append(lines, lines.size() / line.size()));
        tasks.spawn(log.run());
        co_await until([&] { return events_.has("cannot append to"); });
        EXPECT_EQ(dropped.value(), 1U);
        EXPECT_TRUE(log.append("lost as well" + line, 1));
        full.lift();
        EXPECT_TRUE(log.append("whole\n", 1));
        log.finish();
        co_await tasks.join();
        log.close();

        const std::string written = content(path);
        const std::size_t at = room / line.size() * line.size();
        EXPECT_GE(written.size(), at);
        if (written.size() < at) co_return;
        EXPECT_TRUE(written.substr(0, at).ends_with(line));
        EXPECT_TRUE(written.ends_with("\nwhole\n"));
        EXPECT_TRUE(events_.has("appending to " + path + " works again; " +
                                std::to_string(dropped.value()) + " messages were not logged"));
        // Between them stands the line for which there was no room, if there was room again.
        EXPECT_TRUE(written.size() == at + 6 || written.substr(at).starts_with("lost as well"));
    });
}

TEST_F(line_logs, where_nothing_can_be_taken_back_the_next_line_begins_anew) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const unique_fd from(ends[0]);
    const unique_fd to(ends[1]);
    const auto take = [&] {
        std::string text;
        char chunk[4096];
        for (ssize_t got; (got = ::read(from.get(), chunk, sizeof chunk)) > 0;)
            text.append(chunk, static_cast<std::size_t>(got));
        return text;
    };
    bool torn = false;
    std::size_t kept = 1;
    const std::string line = std::string(999, 'x') + "\n";
    std::string lines;
    while (lines.size() <= std::size_t{1} << 20) lines += line;
    EXPECT_EQ(append_lines(to.get(), lines, torn, kept).error(),
              std::errc::resource_unavailable_try_again);
    EXPECT_TRUE(torn);
    EXPECT_GT(kept, 0U);
    EXPECT_EQ(kept % line.size(), 0U);
    EXPECT_FALSE(append_lines(to.get(), "no room\n", torn, kept));
    EXPECT_EQ(kept, 0U);
    EXPECT_TRUE(torn);
    EXPECT_FALSE(take().ends_with('\n'));
    EXPECT_TRUE(append_lines(to.get(), "whole\n", torn, kept));
    EXPECT_EQ(kept, 6U);
    EXPECT_FALSE(torn);
    EXPECT_EQ(take(), "\nwhole\n");
}

TEST_F(line_logs, a_file_that_cannot_be_opened_says_why) {
    line_log log(events_);
    const auto missing = log.open(folder_.file("missing/log"));
    EXPECT_EQ(missing.error().status, 400);
    EXPECT_THAT(missing.error().message, HasSubstr("No such file or directory"));
    const auto directory = log.open(folder_.file(""));
    EXPECT_THAT(directory.error().message, HasSubstr("Is a directory"));
    // Opening it would wait for a reader, and writing to it for as long as that one likes.
    const std::string fifo = folder_.file("fifo");
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const auto blocking = log.open(fifo);
    EXPECT_THAT(blocking.error().message, HasSubstr(fifo + ": it is a FIFO"));
    EXPECT_THAT(log.open("/dev/zero").error().message, HasSubstr("it is a character device"));
    EXPECT_FALSE(log.is_open());
}

TEST_F(line_logs, the_file_is_not_for_everybody) {
    line_log log(events_);
    must_do(log.open(folder_.file("log")));
    struct stat status{};
    ASSERT_EQ(::stat(folder_.file("log").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0137U, 0U);
    log.close();
}

}  // namespace
}  // namespace eddy::runtime
