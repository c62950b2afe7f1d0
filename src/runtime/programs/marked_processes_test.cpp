// Tests of the search for processes by a variable of their environment.
#include "runtime/programs/marked_processes.hpp"

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace eddy::runtime {
namespace {

std::string mark(std::size_t number) {
    return "EDDY_PROGRAM=test-" + std::to_string(::getpid()) + "-" + std::to_string(number);
}

/// A process that does nothing, with a mark.
class marked_process {
public:
    explicit marked_process(std::string mark, std::string command = "/bin/sleep") {
        std::string time = "1000";
        std::string before = "A=b";
        char* const words[] = {command.data(), time.data(), nullptr};
        char* const variables[] = {before.data(), mark.data(), nullptr};
        EXPECT_EQ(::posix_spawn(&pid_, command.c_str(), nullptr, nullptr, words, variables), 0);
        // posix_spawn() returns within the exec, before the kernel shows the environment.
        const std::string path = "/proc/" + std::to_string(pid_) + "/environ";
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (std::ifstream(path).get() < 0 && std::chrono::steady_clock::now() < deadline)
            std::this_thread::yield();
    }
    marked_process(const marked_process&) = delete;
    marked_process& operator=(const marked_process&) = delete;
    ~marked_process() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    int pid() const noexcept { return pid_; }
    /// Number of the signal that has ended it.
    int await_end() {
        int status = 0;
        EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
        pid_ = 0;
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    bool is_alive() const noexcept { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

private:
    int pid_ = 0;
};

TEST(marked_processes, are_found_for_all_that_search_at_once) {
    constexpr std::size_t marks = 6;
    std::vector<std::unique_ptr<marked_process>> all;
    for (std::size_t i = 0; i < 2 * marks; ++i)
        all.push_back(std::make_unique<marked_process>(mark(i / 2)));
    const marked_process other(mark(marks));
    std::array<std::size_t, marks> killed{};
    {
        std::vector<std::jthread> searching;
        for (std::size_t i = 0; i < marks; ++i)
            searching.emplace_back([&killed, i] { killed.at(i) = kill_marked(mark(i)); });
    }
    for (const std::size_t each : killed) EXPECT_EQ(each, 2U);
    for (const auto& each : all) EXPECT_EQ(each->await_end(), SIGKILL);
    EXPECT_TRUE(other.is_alive());
}

/// Each exec hides the environment for a moment.
TEST(marked_processes, are_found_while_they_execute_programs_without_end) {
    const testing::temporary_folder folder;
    const std::string program = folder.file("program");
    std::ofstream(program) << "#!/bin/sh\nexec \"$0\"\n";
    ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
    for (std::size_t i = 0; i < 50; ++i) {
        marked_process one(mark(0), program);
        ASSERT_EQ(kill_marked(mark(0)), 1U);
        EXPECT_EQ(one.await_end(), SIGKILL);
    }
}

TEST(marked_processes, are_left_while_they_are_exempt) {
    marked_process one(mark(0));
    exempt_process(one.pid());
    EXPECT_EQ(kill_marked(mark(0)), 0U);
    EXPECT_TRUE(one.is_alive());
    include_process(one.pid());
    EXPECT_EQ(kill_marked(mark(0)), 1U);
    EXPECT_EQ(one.await_end(), SIGKILL);
}

}  // namespace
}  // namespace eddy::runtime
