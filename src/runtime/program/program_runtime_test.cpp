// Tests of a program's end beside its stop.
#include "runtime/program/program_runtime.hpp"

#include "runtime/testing.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>
#include <string>

namespace eddy::runtime::program {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(program_runtime_io);

int pid_of(const instance& its) {
    const std::string detail = its.detail();  // "process 4711"
    return std::stoi(detail.substr(detail.find(' ')));
}

TEST_P(program_runtime_io, an_end_that_comes_before_the_stop_is_its_own) {
    run([]() -> task<void> {
        const auto host = std::make_shared<test_host>(neighbours(), "subject");
        subject ended("program", {{"command", "/bin/true"}}, "subject", host);
        co_await ended.start();
        // The thread of the loop waits: the runtime has not seen the end.
        siginfo_t found{};
        EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_of(*ended)), &found, WEXITED | WNOWAIT), 0);
        co_await ended->stop(0s);
        EXPECT_EQ(host->stop_requests, 1);

        const auto other = std::make_shared<test_host>(neighbours(), "subject");
        subject stopped("program", {{"command", "/bin/sleep"}, {"arg", {"1000"}}}, "subject",
                        other);
        co_await stopped.start();
        co_await stopped->stop(0s);
        EXPECT_EQ(other->stop_requests, 0);

        const auto always = std::make_shared<test_host>(neighbours(), "subject");
        subject again("program", {{"command", "/bin/true"}, {"restart", "always"}}, "subject",
                      always);
        co_await again.start();
        EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_of(*again)), &found, WEXITED | WNOWAIT), 0);
        co_await again->stop(0s);
        EXPECT_EQ(always->stop_requests, 0);
    });
}

}  // namespace
}  // namespace eddy::runtime::program
