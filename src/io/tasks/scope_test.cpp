// Scopes: children never outlive them, and failures and cancellations go the right way.
#include <eddy/io/scope.hpp>

#include <eddy/io/event.hpp>

#include "io/testing.hpp"

#include <stdexcept>
#include <string>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(scope_io);

struct tally {
    int begun = 0;
    int cancelled = 0;
    int finished = 0;
};

task<void> sleeper(tally& seen, duration time) {
    ++seen.begun;
    const auto slept = co_await loop::current().sleep_for(time);
    if (slept)
        ++seen.finished;
    else if (slept.error() == errc::cancelled)
        ++seen.cancelled;
}

task<void> fail_after(duration time, const char* what) {
    static_cast<void>(co_await loop::current().sleep_for(time));
    throw std::runtime_error(what);
}

task<void> fail_at_once(const char* what) {
    throw std::runtime_error(what);
    co_return;
}

TEST_P(scope_io, with_scope_cancels_and_awaits_its_children) {
    run([]() -> task<> {
        tally seen;
        co_await with_scope([&seen](scope& children) -> task<> {
            for (int i = 0; i < 1000; ++i) children.spawn(sleeper(seen, 1h));
            EXPECT_EQ(children.children(), 1000u);
            co_return;
        });
        EXPECT_EQ(seen.begun, 1000);
        EXPECT_EQ(seen.cancelled, 1000);
    });
}

TEST_P(scope_io, join_scope_lets_the_children_finish) {
    run([]() -> task<> {
        tally seen;
        co_await join_scope([&seen](scope& children) -> task<> {
            for (int i = 0; i < 100; ++i) children.spawn(sleeper(seen, 1ms));
            co_return;
        });
        EXPECT_EQ(seen.finished, 100);
    });
}

TEST_P(scope_io, a_failing_child_cancels_its_siblings_and_comes_out) {
    run([]() -> task<> {
        tally seen;
        std::string failure;
        try {
            co_await join_scope([&seen](scope& children) -> task<> {
                children.spawn(sleeper(seen, 1h));
                children.spawn(fail_after(1ms, "first"));
                children.spawn(sleeper(seen, 1h));
                children.spawn(fail_after(1h, "second"));
                co_return;
            });
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "first");
        EXPECT_EQ(seen.cancelled, 2);
    });
}

TEST_P(scope_io, a_failing_body_cancels_its_children_and_comes_out) {
    run([]() -> task<> {
        for (bool joining : {false, true}) {
            tally seen;
            std::string failure;
            const auto body = [&seen](scope& children) -> task<> {
                children.spawn(sleeper(seen, 1h));
                throw std::runtime_error("body");
                co_return;
            };
            try {
                if (joining)
                    co_await join_scope(body);
                else
                    co_await with_scope(body);
            } catch (const std::runtime_error& caught) {
                failure = caught.what();
            }
            EXPECT_EQ(failure, "body");
            EXPECT_EQ(seen.cancelled, 1);
        }
    });
}

TEST_P(scope_io, a_child_that_fails_before_its_first_wait_does_not_break_spawn) {
    run([]() -> task<> {
        scope children(co_await current_source());
        children.spawn(fail_at_once("early"));
        tally seen;
        children.spawn(sleeper(seen, 1h));
        std::string failure;
        try {
            co_await children.join();
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "early");
        EXPECT_EQ(seen.cancelled, 1);
    });
}

task<void> nest(tally& seen, int levels) {
    co_await join_scope([&seen, levels](scope& children) -> task<> {
        children.spawn(sleeper(seen, 1h));
        if (levels > 0) children.spawn(nest(seen, levels - 1));
        co_return;
    });
}

TEST_P(scope_io, cancelling_an_outer_scope_reaches_every_level) {
    run([]() -> task<> {
        tally seen;
        scope outer(co_await current_source());
        outer.spawn(nest(seen, 20));
        EXPECT_EQ(seen.begun, 21);
        outer.cancel();
        EXPECT_EQ(seen.cancelled, 0) << "operations end from the loop, not inside cancel()";
        co_await outer.join();
        EXPECT_EQ(seen.cancelled, 21);
    });
}

TEST_P(scope_io, cancelling_an_inner_scope_does_not_affect_the_outer) {
    run([]() -> task<> {
        tally inside, outside;
        co_await join_scope([&](scope& outer) -> task<> {
            outer.spawn(sleeper(outside, 1ms));
            co_await with_scope([&](scope& inner) -> task<> {
                inner.spawn(sleeper(inside, 1h));
                co_return;
            });
        });
        EXPECT_EQ(inside.cancelled, 1);
        EXPECT_EQ(outside.finished, 1);
    });
}

TEST_P(scope_io, a_child_of_a_cancelled_scope_ends_at_its_first_wait) {
    run([]() -> task<> {
        tally seen;
        scope children(co_await current_source());
        children.cancel();
        children.spawn(sleeper(seen, 1h));
        EXPECT_EQ(seen.cancelled, 1);
        co_await children.join();
    });
}

task<void> grow(scope& children, tally& seen, int more) {
    ++seen.begun;
    co_await loop::current().yield();
    if (more > 0) children.spawn(grow(children, seen, more - 1));
}

TEST_P(scope_io, children_may_add_children) {
    run([]() -> task<> {
        tally seen;
        co_await join_scope([&seen](scope& children) -> task<> {
            children.spawn(grow(children, seen, 99));
            co_return;
        });
        EXPECT_EQ(seen.begun, 100);
    });
}

TEST_P(scope_io, a_child_under_a_source_of_its_own_is_cancelled_by_that_one) {
    run([]() -> task<> {
        tally seen;
        cancel_source own;
        scope children(co_await current_source());
        children.spawn(sleeper(seen, 1h).under(own));
        children.spawn(sleeper(seen, 1h));
        children.cancel();
        while (children.children() > 1) co_await loop::current().yield();
        EXPECT_EQ(seen.cancelled, 1);
        own.request();
        co_await children.join();
        EXPECT_EQ(seen.cancelled, 2);
    });
}

task<void> stop_the_others(scope& children, tally& seen) {
    co_await loop::current().yield();
    children.cancel();
    co_await sleeper(seen, 1h);
}

TEST_P(scope_io, a_child_may_cancel_its_own_scope) {
    run([]() -> task<> {
        tally seen;
        co_await join_scope([&seen](scope& children) -> task<> {
            children.spawn(sleeper(seen, 1h));
            children.spawn(stop_the_others(children, seen));
            co_return;
        });
        EXPECT_EQ(seen.cancelled, 2);
    });
}

}  // namespace
}  // namespace eddy::testing
