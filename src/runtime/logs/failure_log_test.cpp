// Logs of failures: one line a kind and interval, and the number of those between.
#include "runtime/logs/failure_log.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::ElementsAre;

/// On the simulator, whose time the tests control.
class stream_failure_log : public on_io_backend {
protected:
    static task<void> wait(duration time) { must(co_await loop::current().sleep_for(time)); }
    recorder journal_;
};

INSTANTIATE_TEST_SUITE_P(runtime, stream_failure_log, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(stream_failure_log, has_a_line_of_a_kind_in_each_interval) {
    run([this]() -> task<void> {
        {
            failure_log log(journal_, 10s);
            EXPECT_TRUE(log.is_due("a"));
            log.write("a", "first of a");
            EXPECT_FALSE(log.is_due("a"));
            EXPECT_TRUE(log.is_due("b"));
            log.write("b", "first of b");
            co_await wait(9s);
            log.write("a", "second of a");
            log.write("a", "third of a");
            log.write("b", "second of b");
            co_await wait(1s);
            EXPECT_TRUE(log.is_due("a"));
            log.write("a", "fourth of a");
            log.write("a", "fifth of a");
        }
        EXPECT_THAT(journal_.lines,
                    ElementsAre("a stream failed: first of a", "a stream failed: first of b",
                                "a stream failed: fourth of a; so did 2 before",
                                "1 more streams failed by a since the last report",
                                "1 more streams failed by b since the last report"));
    });
}

TEST_P(stream_failure_log, counts_so_many_kinds_apart) {
    run([this]() -> task<void> {
        failure_log log(journal_, 10s);
        for (std::size_t i = 0; i < failure_log::max_kinds; ++i)
            log.write(std::to_string(i), "of a kind");
        EXPECT_TRUE(log.is_due("more"));
        log.write("more", "of another kind");
        EXPECT_FALSE(log.is_due("more"));
        EXPECT_FALSE(log.is_due("and more")) << "further kinds are one";
        EXPECT_EQ(journal_.lines.size(), failure_log::max_kinds + 1);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::runtime
