// Signals that the test sends to its own process.
#include <eddy/io/signals.hpp>

#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>

#include "io/testing.hpp"

#include <signal.h>
#include <unistd.h>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(signals_io);

TEST_P(signals_io, come_in_the_order_of_their_numbers_and_once_each) {
    run([]() -> task<> {
        signal_set signals = must(signal_set::take({SIGUSR1, SIGUSR2}));
        ::kill(::getpid(), SIGUSR2);
        ::kill(::getpid(), SIGUSR1);
        ::kill(::getpid(), SIGUSR1);
        EXPECT_EQ(must(co_await signals.next()), SIGUSR1);
        EXPECT_EQ(must(co_await signals.next()), SIGUSR2);
        const auto none = co_await with_timeout(10ms, signals.next());
        EXPECT_EQ(error_of(none), errc::timed_out);
    });
}

TEST_P(signals_io, wake_a_coroutine_that_waits) {
    run([]() -> task<> {
        signal_set signals = must(signal_set::take({SIGUSR1}));
        const auto send = []() -> task<> {
            co_await loop::current().yield();
            ::kill(::getpid(), SIGUSR1);
        };
        const auto [got, sent] = co_await when_all(signals.next(), send());
        EXPECT_EQ(must(got), SIGUSR1);
    });
}

TEST_P(signals_io, are_not_lost_by_a_cancelled_wait) {
    run([]() -> task<> {
        signal_set signals = must(signal_set::take({SIGUSR1}));
        EXPECT_EQ(error_of(co_await with_timeout(1ms, signals.next())), errc::timed_out);
        ::kill(::getpid(), SIGUSR1);
        EXPECT_EQ(must(co_await signals.next()), SIGUSR1);
    });
}

TEST_P(signals_io, that_cannot_be_taken_are_refused) {
    EXPECT_EQ(error_of(signal_set::take({SIGKILL})), errno_code(EINVAL));
    EXPECT_EQ(error_of(signal_set::take({SIGUSR1, -1})), errno_code(EINVAL));
}

}  // namespace
}  // namespace eddy::testing
