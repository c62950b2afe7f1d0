// Tests of appending received messages to a file.
#include "runtime/line_log.hpp"

#include "runtime/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

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
                EXPECT_TRUE(log.append(line));
                expected += line;
                if (i % 100 == 0) static_cast<void>(co_await loop::current().sleep_for(1ms));
            }
            log.finish();
            co_await tasks.join();
            log.close();
        }
        EXPECT_TRUE(contents(path) == expected);
        EXPECT_TRUE(events_.lines.empty());
    });
}

TEST_F(line_logs, what_the_disk_cannot_take_in_time_is_dropped_at_the_limit) {
    run([&]() -> task<void> {
        line_log log(events_);
        must_do(log.open(folder_.file("log")));
        const std::string megabyte(1 << 20, 'x');
        for (std::size_t size = 0; size < line_log::max_waiting; size += megabyte.size())
            EXPECT_TRUE(log.append(megabyte));
        EXPECT_FALSE(log.append("x"));
        EXPECT_FALSE(log.append("y"));
        EXPECT_TRUE(events_.has("the disk is too slow"));
        EXPECT_EQ(events_.lines.size(), 1U);

        // There is room again once it is written.
        scope tasks;
        tasks.spawn(log.run());
        co_await until([&] { return log.append("z"); });
        log.finish();
        co_await tasks.join();
        log.close();
        EXPECT_EQ(contents(folder_.file("log")).size(), line_log::max_waiting + 1);
    });
}

TEST_F(line_logs, a_full_disk_is_told_once_and_the_messages_go_on) {
    run([&]() -> task<void> {
        line_log log(events_);
        must_do(log.open("/dev/full"));
        scope tasks;
        tasks.spawn(log.run());
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(log.append("line\n"));
            co_await until([&] { return !events_.lines.empty(); });
        }
        log.finish();
        co_await tasks.join();
        log.close();
        EXPECT_EQ(events_.lines.size(), 1U);
        EXPECT_TRUE(events_.has("cannot append to /dev/full: No space left on device"));
    });
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
