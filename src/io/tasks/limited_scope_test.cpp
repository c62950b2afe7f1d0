// Limited scopes: the limit, the order of the waits for a place, and the ends of such a wait.
#include <eddy/io/limited_scope.hpp>

#include <eddy/io/event.hpp>

#include "io/testing.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(limited_scope_io);

struct counts {
    int now = 0;
    int most = 0;
    int ended = 0;
};

task<> work(counts& seen, duration time) {
    seen.most = std::max(seen.most, ++seen.now);
    static_cast<void>(co_await sleep_for(time));
    --seen.now;
    ++seen.ended;
}

TEST_P(limited_scope_io, no_more_children_than_its_limit_run_at_a_time) {
    run([this]() -> task<> {
        for (const int limit : {1, 2, 7}) {
            counts seen;
            co_await join_scope(
                static_cast<std::size_t>(limit), [&](limited_scope& children) -> task<> {
                    EXPECT_EQ(children.limit(), static_cast<std::size_t>(limit));
                    for (int i = 0; i < 50; ++i) {
                        const auto time = std::chrono::microseconds(random().below(500));
                        must(co_await children.spawn(work(seen, time)));
                        EXPECT_LE(children.children(), children.limit());
                    }
                });
            EXPECT_EQ(seen.most, limit);
            EXPECT_EQ(seen.ended, 50);
        }
    });
}

task<> wait_on(event& awaited) { static_cast<void>(co_await awaited.wait()); }

task<> note(std::vector<int>& order, int number) {
    order.push_back(number);
    co_await loop::current().yield();
}

task<> spawn_note(limited_scope& into, std::vector<int>& order, int number) {
    must(co_await into.spawn(note(order, number)));
}

TEST_P(limited_scope_io, those_that_wait_for_a_place_get_it_in_their_order) {
    run([]() -> task<> {
        event go;
        std::vector<int> order;
        co_await join_scope(1, [&](limited_scope& children) -> task<> {
            must(co_await children.spawn(wait_on(go)));
            co_await join_scope([&](scope& spawning) -> task<> {
                for (int i = 0; i < 5; ++i) spawning.spawn(spawn_note(children, order, i));
                co_await loop::current().yield();
                EXPECT_TRUE(order.empty());
                go.set();
            });
        });
        EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
    });
}

task<> keep(std::shared_ptr<int> held, bool& began) {
    began = true;
    static_cast<void>(held);
    co_return;
}

TEST_P(limited_scope_io, a_cancelled_wait_destroys_its_child_unrun) {
    run([]() -> task<> {
        event never;
        const auto held = std::make_shared<int>(1);
        bool began = false;
        co_await with_scope(1, [&](limited_scope& children) -> task<> {
            must(co_await children.spawn(wait_on(never)));
            const auto late = co_await with_timeout(1ms, children.spawn(keep(held, began)));
            EXPECT_EQ(error_of(late), errc::timed_out);
            EXPECT_EQ(held.use_count(), 1);
            cancel_source own;
            own.request();
            const auto cancelled = co_await children.spawn(keep(held, began)).under(own);
            EXPECT_EQ(error_of(cancelled), errc::cancelled);
            EXPECT_EQ(children.children(), 1U);
        });
        EXPECT_FALSE(began);
        EXPECT_EQ(held.use_count(), 1);
    });
}

task<> fail_after(duration time) {
    static_cast<void>(co_await sleep_for(time));
    throw std::runtime_error("a child");
}

TEST_P(limited_scope_io, an_exception_of_a_child_ends_the_wait_and_comes_out) {
    run([]() -> task<> {
        event never;
        std::string failure;
        std::error_code error;
        bool began = false;
        try {
            co_await join_scope(2, [&](limited_scope& children) -> task<> {
                must(co_await children.spawn(wait_on(never)));
                must(co_await children.spawn(fail_after(1ms)));
                error = error_of(co_await children.spawn(keep(nullptr, began)));
            });
        } catch (const std::runtime_error& caught) {
            failure = caught.what();
        }
        EXPECT_EQ(failure, "a child");
        EXPECT_EQ(error, errc::cancelled);
        EXPECT_FALSE(began);
    });
}

TEST_P(limited_scope_io, a_cancelled_scope_starts_no_child) {
    run([]() -> task<> {
        bool began = false;
        co_await join_scope(2, [&](limited_scope& children) -> task<> {
            children.cancel();
            EXPECT_EQ(error_of(co_await children.spawn(keep(nullptr, began))), errc::cancelled);
        });
        EXPECT_FALSE(began);
    });
}

TEST_P(limited_scope_io, leaving_it_cancels_the_children_or_awaits_them) {
    run([]() -> task<> {
        counts seen;
        const time_point begin = loop::current().now();
        co_await with_scope(3, [&](limited_scope& children) -> task<> {
            for (int i = 0; i < 3; ++i) must(co_await children.spawn(work(seen, 1h)));
        });
        EXPECT_LT(loop::current().now() - begin, 30min);
        EXPECT_EQ(seen.ended, 3);
        co_await join_scope(3, [&](limited_scope& children) -> task<> {
            for (int i = 0; i < 3; ++i) must(co_await children.spawn(work(seen, 1ms)));
        });
        EXPECT_EQ(seen.ended, 6);
    });
}

TEST_P(limited_scope_io, a_child_keeps_the_source_that_it_was_put_under) {
    run([]() -> task<> {
        cancel_source own;
        counts seen;
        co_await join_scope(1, [&](limited_scope& children) -> task<> {
            must(co_await children.spawn(work(seen, 1h).under(own)));
            own.request();
            must(co_await children.spawn(work(seen, 1ms)));
        });
        EXPECT_EQ(seen.ended, 2);
    });
}

task<> spread(limited_scope& among, counts& seen, int more) {
    co_await work(seen, 1ms);
    // The place of this child is free once it has ended: with a limit of two there is one.
    if (more > 0) must(co_await among.spawn(spread(among, seen, more - 1)));
}

TEST_P(limited_scope_io, children_may_add_children_after_the_body) {
    run([]() -> task<> {
        counts seen;
        co_await join_scope(2, [&](limited_scope& children) -> task<> {
            must(co_await children.spawn(spread(children, seen, 20)));
        });
        EXPECT_EQ(seen.ended, 21);
    });
}

}  // namespace
}  // namespace eddy::testing
