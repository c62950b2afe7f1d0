// Strands, mutexes and semaphores: one at a time, in order, and leaving the queue when cancelled.
#include <eddy/io/strand.hpp>

#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/semaphore.hpp>

#include "io/testing.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(strand_io);

std::unique_ptr<loop_group> start_loops(io_backend_kind kind, std::size_t threads) {
    loop_group_options options;
    options.threads = threads;
    options.loop.kind = kind;
    return must(loop_group::start(options));
}

// ---- semaphore, async_mutex

task<void> enter(semaphore& limit, std::string& order, char name, event& leave) {
    const result<permit> inside = co_await limit.acquire();
    if (!inside) {
        order += '!';
        co_return;
    }
    order += name;
    static_cast<void>(co_await leave.wait());
}

TEST_P(strand_io, a_semaphore_admits_so_many_in_the_order_of_asking) {
    run([this]() -> task<> {
        semaphore limit(2);
        event leave;
        std::string order;
        co_await join_scope([&](scope& children) -> task<> {
            for (char name : {'a', 'b', 'c', 'd'}) children.spawn(enter(limit, order, name, leave));
            co_await here().yield();
            EXPECT_EQ(order, "ab");
            EXPECT_EQ(limit.available(), 0u);
            EXPECT_FALSE(limit.try_acquire());
            leave.set();
        });
        EXPECT_EQ(spoken(order), "abcd");
        EXPECT_EQ(limit.available(), 2u);
        {
            const permit taken = limit.try_acquire();
            EXPECT_TRUE(taken);
            EXPECT_EQ(limit.available(), 1u);
        }
        EXPECT_EQ(limit.available(), 2u);
    });
}

TEST_P(strand_io, a_cancelled_waiter_leaves_the_queue_and_takes_no_place) {
    run([]() -> task<> {
        semaphore limit(1);
        event leave;
        std::string order;
        scope first(co_await current_source());
        scope second(co_await current_source());
        first.spawn(enter(limit, order, 'a', leave));
        second.spawn(enter(limit, order, 'b', leave));
        first.spawn(enter(limit, order, 'c', leave));
        second.cancel();
        co_await second.join();
        EXPECT_EQ(order, "a!");
        leave.set();
        co_await first.join();
        EXPECT_EQ(order, "a!c");
        EXPECT_EQ(limit.available(), 1u);
    });
}

TEST_P(strand_io, a_place_passed_on_is_not_lost_to_a_cancellation) {
    run([this]() -> task<> {
        semaphore limit(1);
        for (int round = 0; round < 50; ++round) {
            permit held = limit.try_acquire();
            EXPECT_TRUE(held);
            event leave;
            leave.set();
            std::string order;
            scope children(co_await current_source());
            children.spawn(enter(limit, order, 'a', leave));
            if (random().below(2) == 0) {
                held.release();
                children.cancel();
            } else {
                children.cancel();
                held.release();
            }
            co_await children.join();
            EXPECT_EQ(order.size(), 1u);
            EXPECT_EQ(limit.available(), 1u);
        }
    });
}

TEST_P(strand_io, a_mutex_spans_waits) {
    run([this]() -> task<> {
        async_mutex lock;
        int inside = 0;
        int most = 0;
        co_await join_scope([&](scope& children) -> task<> {
            for (int i = 0; i < 20; ++i)
                children.spawn([](async_mutex& by, int& now, int& top) -> task<> {
                    const permit held = must(co_await by.lock());
                    top = std::max(top, ++now);
                    co_await loop::current().yield();
                    --now;
                }(lock, inside, most));
            EXPECT_TRUE(lock.locked());
            co_return;
        });
        EXPECT_EQ(most, 1);
        EXPECT_FALSE(lock.locked());
        EXPECT_TRUE(lock.try_lock());
        co_await here().yield();
    });
}

// ---- strand

/// State shared by the pieces of one strand, without any lock of its own: tsan sees two at once.
struct account {
    int inside = 0;
    int most = 0;
    long sum = 0;
    std::vector<int> order;
};

task<long> deposit(account& to, int amount) {
    to.most = std::max(to.most, ++to.inside);
    const long before = to.sum;
    for (int i = 0; i < amount % 3; ++i) co_await loop::current().yield();
    to.sum = before + amount;
    to.order.push_back(amount);
    --to.inside;
    co_return to.sum;
}

task<void> deposit_many(strand to, account& where, int first, int count, std::atomic<int>& done) {
    for (int i = 0; i < count; ++i) must(co_await to.run(deposit(where, first + i)));
    ++done;
    done.notify_one();
}

TEST_P(strand_io, pieces_from_many_loops_run_one_after_another) {
    run_with_threads([]() -> task<> {
        auto group = start_loops(GetParam(), 3);
        strand one(group->executor(0));
        account shared;
        std::atomic<int> done{0};
        constexpr int each = 200;
        for (std::size_t i = 0; i < 3; ++i)
            must(group->post(i, deposit_many(one, shared, static_cast<int>(i) * 1000, each, done)));
        co_await deposit_many(one, shared, 3000, each, done);
        for (int seen = 0; (seen = done.load()) < 4;) done.wait(seen);
        group->stop();
        long expected = 0;
        for (int first : {0, 1000, 2000, 3000})
            for (int i = 0; i < each; ++i) expected += first + i;
        EXPECT_EQ(shared.most, 1);
        EXPECT_EQ(shared.sum, expected);
        EXPECT_EQ(one.waiting(), 0u);
        int last[4] = {-1, -1, -1, -1};
        for (int amount : shared.order) {
            EXPECT_GT(amount, last[amount / 1000]) << "what one coroutine submits stays in order";
            last[amount / 1000] = amount;
        }
    });
}

TEST_P(strand_io, posted_pieces_keep_the_order_of_their_thread) {
    run_with_threads([]() -> task<> {
        auto group = start_loops(GetParam(), 1);
        strand one(group->executor(0));
        account shared;
        for (int i = 0; i < 300; ++i)
            must(one.post([](account& to, int amount) -> task<void> {
                static_cast<void>(co_await deposit(to, amount));
            }(shared, i)));
        // It comes after all of them.
        EXPECT_EQ(must(co_await one.run(deposit(shared, 300))), 300 * 301 / 2);
        for (int i = 0; i <= 300; ++i) EXPECT_EQ(shared.order[static_cast<std::size_t>(i)], i);
        EXPECT_EQ(shared.most, 1);
    });
}

TEST_P(strand_io, results_and_exceptions_come_back) {
    run([]() -> task<> {
        strand one(executor::current());
        const result<> nothing = co_await one.run([]() -> task<void> { co_return; }());
        EXPECT_TRUE(nothing);
        const result<int> refused =
            co_await one.run([]() -> task<result<int>> { co_return fail_errno(ENOSPC); }());
        EXPECT_EQ(error_of(refused), errno_code(ENOSPC));
        bool caught = false;
        try {
            static_cast<void>(co_await one.run([]() -> task<int> {
                co_await loop::current().yield();
                throw std::runtime_error("on purpose");
            }()));
        } catch (const std::runtime_error&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
        const result<int> after = co_await one.run([]() -> task<int> { co_return 3; }());
        EXPECT_EQ(must(after), 3);
    });
}

task<void> hold(event& gate, event& runs) {
    runs.set();
    static_cast<void>(co_await gate.wait());
}
task<void> submit(strand to, std::string& order, char name, std::error_code& error) {
    error = error_of(co_await to.run([](std::string& seen, char letter) -> task<void> {
        seen += letter;
        co_return;
    }(order, name)));
}

TEST_P(strand_io, cancelling_withdraws_a_piece_that_waits_at_once) {
    run([this]() -> task<> {
        strand one(executor::current());
        event gate;
        event runs;
        std::string order;
        std::error_code first, second = errc::closed;
        must(one.post(hold(gate, runs)));
        must(co_await runs.wait());
        scope leaving(co_await current_source());
        scope staying(co_await current_source());
        leaving.spawn(submit(one, order, 'a', first));
        staying.spawn(submit(one, order, 'b', second));
        while (one.waiting() < 2) co_await here().yield();
        leaving.cancel();
        co_await leaving.join();  // though what runs has not ended
        EXPECT_EQ(first, errc::cancelled);
        EXPECT_EQ(one.waiting(), 1u);
        gate.set();
        co_await staying.join();
        EXPECT_FALSE(second);
        EXPECT_EQ(order, "b");
    });
}

task<result<>> wait_for_ever(event& runs) {
    runs.set();
    event never;
    co_return co_await never.wait();
}
task<> request_when(event& set, cancel_source& source) {
    must(co_await set.wait());
    source.request();
}

TEST_P(strand_io, a_pieces_own_source_cancels_it) {
    run([]() -> task<> {
        strand one(executor::current());
        event runs;
        cancel_source own;
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(request_when(runs, own));
            const auto ended = co_await one.run(wait_for_ever(runs).under(own));
            EXPECT_EQ(error_of(ended), errc::cancelled);
        });
        // One that waits is withdrawn at once.
        event gate, holds, unused;
        must(one.post(hold(gate, holds)));
        must(co_await holds.wait());
        const auto withdrawn = co_await one.run(wait_for_ever(unused).under(own));
        EXPECT_EQ(error_of(withdrawn), errc::cancelled);
        EXPECT_FALSE(unused.is_set());
        gate.set();
    });
}

TEST_P(strand_io, pieces_beyond_the_limit_are_refused) {
    run([this]() -> task<> {
        strand one(executor::current(), 2);
        event gate;
        event runs;
        std::string order;
        must(one.post(hold(gate, runs)));
        must(co_await runs.wait());
        std::error_code errors[3];
        co_await join_scope([&](scope& children) -> task<> {
            for (std::error_code& error : errors) children.spawn(submit(one, order, 'x', error));
            co_await here().yield();
            EXPECT_EQ(errors[2], errc::limit_reached);
            EXPECT_EQ(error_of(one.post(hold(gate, runs))), errc::limit_reached);
            gate.set();
        });
        EXPECT_EQ(order, "xx");
        EXPECT_FALSE(errors[0]);
        EXPECT_FALSE(errors[1]);
        EXPECT_EQ(one.waiting(), 0u);
    });
}

TEST_P(strand_io, its_pieces_keep_it_alive) {
    run([this]() -> task<> {
        event gate;
        std::string order;
        event runs;
        {
            strand one(executor::current());
            must(one.post(hold(gate, runs)));
            must(co_await runs.wait());
            must(one.post([](std::string& seen) -> task<void> {
                seen += 'b';
                co_return;
            }(order)));
        }
        co_await here().yield();
        EXPECT_EQ(order, "");
        gate.set();
        while (order.empty()) co_await here().yield();
    });
}

TEST_P(strand_io, a_strand_whose_loop_has_gone_is_closed) {
    run_with_threads([]() -> task<> {
        auto group = start_loops(GetParam(), 1);
        strand one(group->executor(0));
        group->stop();
        std::string order;
        std::error_code error;
        co_await submit(one, order, 'a', error);
        EXPECT_EQ(error, errc::closed);
        event gate;
        event runs;
        EXPECT_EQ(error_of(one.post(hold(gate, runs))), errc::closed);
        EXPECT_EQ(one.waiting(), 0u);
        EXPECT_EQ(order, "");
    });
}

TEST_P(strand_io, cancelling_and_stopping_race_with_every_piece) {
    run_with_threads([this]() -> task<> {
        for (int round = 0; round < 30; ++round) {
            auto group = start_loops(GetParam(), 1);
            strand one(group->executor(0));
            account shared;
            int ended = 0;
            scope children(co_await current_source());
            for (int i = 0; i < 20; ++i)
                children.spawn([](strand on, account& to, int amount, int& count) -> task<> {
                    static_cast<void>(co_await on.run(deposit(to, amount)));
                    ++count;
                }(one, shared, i, ended));
            for (std::uint64_t i = random().below(10); i > 0; --i) co_await here().yield();
            std::thread stopper([&] {
                if (round % 2 == 0) group->stop();
            });
            children.cancel();
            co_await children.join();
            stopper.join();
            EXPECT_EQ(ended, 20);
            EXPECT_EQ(shared.inside, 0);
            EXPECT_LE(shared.most, 1);
            EXPECT_EQ(one.waiting(), 0u);
        }
    });
}

}  // namespace
}  // namespace eddy::testing
