// Tests of the lengths of pauses.
#include "io/tasks/backoff.hpp"

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

namespace eddy {
namespace {

using namespace std::chrono_literals;
using eddy::testing::seed_of_this_run;

TEST(backoff, pauses_double_up_to_the_longest_and_begin_anew_after_success) {
    backoff pauses(100ms, 10s, seed_of_this_run());
    for (int round = 0; round < 2; ++round) {
        for (const duration length :
             {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 10000ms, 10000ms, 10000ms}) {
            const duration pause = pauses.next();
            EXPECT_GE(pause, length / 2);
            EXPECT_LT(pause, length);
        }
        pauses.reset();
    }
}

TEST(backoff, two_do_not_keep_step) {
    backoff one(10s, 10s, 1);
    backoff other(10s, 10s, 2);
    EXPECT_NE(one.next(), other.next());
}

}  // namespace
}  // namespace eddy
