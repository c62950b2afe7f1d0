// Tests of serving on one loop and on several: assignment, limits that hold across loops, the end.
#include "serving/loop_pool.hpp"

#include "serving/acceptor.hpp"
#include "serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::serving {
namespace {

using namespace serving::testing;
using ::testing::HasSubstr;
using ::testing::Not;

EDDY_ON_EVERY_IO_BACKEND(serving_loops);

constexpr std::string_view full = "full\n";

class echo_client final : public connection {
public:
    using connection::connection;
};

/// Echo worker: sends its own and the client's number first.
class echo_worker final : public loop_worker {
public:
    echo_worker(const worker_place& place, std::uint64_t most, std::atomic<int>& moved)
        : loop_worker(place), index_(place.index), moved_(moved) {
        connections::limits limits;
        limits.most = most;
        clients_.set_limits(limits);
    }
    void take(stream accepted, connection_slot slot) override {
        auto c = std::make_unique<echo_client>(clients_, std::move(accepted), tasks_.source(),
                                               std::move(slot));
        cancel_source& cancel = c->cancel;
        if (auto all_there = gate())
            tasks_.spawn(serve_after(std::move(all_there), std::move(c)).under(cancel));
        else
            tasks_.spawn(serve(std::move(c)).under(cancel));
    }
    void take_moved(passed_client from, connection_slot slot) override {
        ++moved_;
        take(must(loop::current().adopt(std::move(from.socket))), std::move(slot));
    }

private:
    task<void> serve_after(std::shared_ptr<event> all_there, std::unique_ptr<echo_client> c) {
        if (!co_await all_there->wait()) co_return;
        const std::string seen = std::to_string(moved_) + " are here\n";
        if (!co_await c->socket.write_all(seen)) co_return;
        co_await serve(std::move(c));
    }
    task<void> serve(std::unique_ptr<echo_client> c) {
        const std::string hello = std::to_string(index_) + " " + std::to_string(c->id()) + "\n";
        if (!co_await c->socket.write_all(hello)) co_return;
        for (;;) {
            c->enter(activity::resting);
            auto got = co_await c->socket.read();
            if (!got) co_return;
            c->enter(activity::working);
            const std::string text(got->text());
            got->reset();
            if (!co_await c->socket.write_all(text)) co_return;
        }
    }

    std::size_t index_;
    std::atomic<int>& moved_;
};

/// A server with nothing but its serving.
struct served {
    explicit served(served_listener opened) : listening(std::move(opened)) {}

    static std::unique_ptr<served> listen() {
        return std::make_unique<served>(
            served_listener{must(transport::listen("tcp://127.0.0.1:0"))});
    }
    task<void> start(std::size_t threads, std::uint64_t most = 1000) {
        must(pool.start_threads(threads, "served"));
        must(co_await pool.make_workers([most, this](const worker_place& place) {
            return std::make_unique<echo_worker>(place, most, moved);
        }));
        accepting.open(listening, full, false);
    }
    task<void> stop(duration limit = {}) {
        co_await accepting.close();
        listening.socket.close();
        co_await pool.drain(limit);
        co_await pool.end([this](loop_worker& last) { counted.add(last.counted()); });
    }
    task<talker> join() { return talker::to(listening.socket.local()); }
    std::uint64_t connected() const {
        std::uint64_t all = pool.here()->counted().connections_now;
        for (const auto& each : pool.others()) all += each.its->counted().connections_now;
        return all;
    }

    std::uint64_t handshakes() const {
        std::uint64_t all = pool.here()->counted().handshakes_now;
        for (const auto& each : pool.others()) all += each.its->counted().handshakes_now;
        return all;
    }

    recorder events;
    served_listener listening;
    loop_pool pool{events};
    acceptor accepting{pool};
    counters counted;
    std::atomic<int> moved{0};
};

TEST_P(serving_loops, one_thread_is_the_loop_itself) {
    run([&]() -> task<void> {
        const auto s = served::listen();
        co_await s->start(1);
        EXPECT_FALSE(s->pool.has_threads());
        EXPECT_EQ(s->pool.assigned_workers(), 0U);
        talker a = co_await s->join();
        EXPECT_EQ(co_await a.line(), "0 1");
        co_await a.say("hello\n");
        EXPECT_EQ(co_await a.line(), "hello");
        EXPECT_EQ(s->pool.limits().assigned.load(), 0U);
        co_await s->stop();
        EXPECT_EQ(s->counted.connections_total.value(), 1U);
    });
}

TEST_P(serving_loops, connections_go_to_the_loop_that_has_the_fewest) {
    run([&]() -> task<void> {
        const auto s = served::listen();
        co_await s->start(3);
        EXPECT_EQ(s->pool.has_threads(), !simulated());
        std::vector<talker> all;
        std::multiset<std::string> loops;
        std::set<std::string> numbers;
        for (int i = 0; i < 6; ++i) {
            all.push_back(co_await s->join());
            const std::string hello = co_await all.back().line();
            loops.insert(hello.substr(0, 1));
            numbers.insert(hello.substr(2));
        }
        for (const char* const each : {"1", "2", "3"}) EXPECT_EQ(loops.count(each), 2U);
        EXPECT_EQ(numbers.size(), 6U);
        EXPECT_EQ(s->pool.limits().assigned.load(), 6U);
        for (const auto& each : s->pool.others()) EXPECT_EQ(each.its->slots().taken(), 2U);
        // Both of one loop leave: it has the fewest.
        all[1] = talker();
        all[4] = talker();
        co_await until([&] { return s->pool.limits().assigned.load() == 4; });
        for (int i = 0; i < 2; ++i) {
            all.push_back(co_await s->join());
            EXPECT_EQ((co_await all.back().line()).substr(0, 1), "2");
        }
        co_await s->stop();
        EXPECT_EQ(s->pool.limits().assigned.load(), 0U);
        EXPECT_EQ(s->counted.connections_total.value(), 8U);
        EXPECT_EQ(s->counted.connections_now.value(), 0U);
    });
}

TEST_P(serving_loops, moved_connections_begin_once_all_are_there) {
    if (simulated()) return;
    run([&]() -> task<void> {
        constexpr int count = 200;
        const auto s = served::listen();
        co_await s->start(3);
        std::vector<talker> all;
        std::vector<passed_client> moving(count);
        for (passed_client& each : moving) {
            int ends[2];
            EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
                      0);
            each.socket.reset(ends[0]);
            all.emplace_back(must(loop::current().adopt(unique_fd(ends[1]))));
        }
        s->pool.assign(std::move(moving));
        talker late = co_await s->join();
        EXPECT_NE(co_await late.line(), "");
        EXPECT_EQ(s->moved, count);
        for (talker& each : all)
            EXPECT_EQ(co_await each.line(), std::to_string(count) + " are here");
        // Later ones wait for nothing.
        talker next = co_await s->join();
        EXPECT_THAT(co_await next.line(), Not(HasSubstr("are here")));
        EXPECT_EQ(s->pool.limits().assigned.load(), count + 2U);
        co_await s->stop();
        EXPECT_EQ(s->pool.limits().assigned.load(), 0U);
    });
}

TEST_P(serving_loops, moved_connections_on_their_way_end_with_the_pool) {
    if (simulated()) return;
    run([&]() -> task<void> {
        const auto s = served::listen();
        co_await s->start(2);
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        talker client(must(loop::current().adopt(unique_fd(ends[1]))));
        std::vector<passed_client> moving(1);
        moving.front().socket.reset(ends[0]);
        s->pool.assign(std::move(moving));
        co_await s->stop();
        EXPECT_EQ(s->moved, 1);
        static_cast<void>(co_await client.rest());
    });
}

TEST_P(serving_loops, the_limit_of_connections_holds_for_all_loops_together) {
    run([&]() -> task<void> {
        const auto s = served::listen();
        co_await s->start(3, 4);
        std::vector<talker> all;
        for (int i = 0; i < 4; ++i) {
            all.push_back(co_await s->join());
            co_await all.back().line();
        }
        talker late = co_await s->join();
        EXPECT_EQ(co_await late.rest(), full);
        all.pop_back();
        co_await until([&] { return s->pool.limits().assigned.load() == 3; });
        all.push_back(co_await s->join());
        EXPECT_THAT(co_await all.back().line(), HasSubstr(" "));
        co_await s->stop();
        EXPECT_EQ(s->counted.connections_refused.value(), 1U);
        EXPECT_TRUE(s->events.has("4 connections, which is the limit"));
    });
}

TEST_P(serving_loops, a_drain_closes_connections_that_rest) {
    run([&]() -> task<void> {
        for (const std::size_t threads : {1U, 2U}) {
            const auto s = served::listen();
            co_await s->start(threads);
            talker a = co_await s->join();
            talker b = co_await s->join();
            co_await a.line();
            co_await b.line();
            co_await s->stop(1h);
            EXPECT_EQ(co_await a.rest(), "");
            EXPECT_EQ(co_await b.rest(), "");
        }
    });
}

/// Stands for a handshake: the peer's first byte ends it.
task<result<stream>> take_a_byte(stream plain, duration timeout) {
    auto got = co_await with_timeout(timeout, plain.read());
    if (!got) co_return fail(got.error());
    got->reset();
    co_return std::move(plain);
}

TEST_P(serving_loops, accepting_pauses_while_the_budget_of_handshakes_is_spent) {
    run([&]() -> task<void> {
        const auto s = served::listen();
        s->listening.finish = take_a_byte;
        co_await s->start(2);
        handshake_budget& budget = s->pool.limits().handshakes;
        std::vector<handshake> others;
        while (!budget.is_spent()) others.push_back(budget.begin());
        EXPECT_EQ(budget.under_way(), handshake_budget::most);
        EXPECT_EQ(budget.patience(), handshake_budget::pressed_timeout);
        // The wait that is under way accepts one more at most.
        talker first = co_await s->join();
        co_await first.say("x");
        co_await first.line();
        talker second = co_await s->join();
        co_await second.say("x");
        static_cast<void>(co_await here().sleep_for(50ms));
        EXPECT_EQ(s->connected(), 1U);
        others.clear();
        EXPECT_EQ(budget.patience(), handshake_budget::timeout);
        EXPECT_THAT(co_await second.line(), HasSubstr(" "));
        co_await until([&] { return budget.under_way() == 0; });
        co_await s->stop();
    });
}

TEST_P(serving_loops, a_handshake_under_way_holds_a_slot_and_ends_with_the_pool) {
    run([&]() -> task<void> {
        for (const std::size_t threads : {1U, 2U}) {
            const auto s = served::listen();
            s->listening.finish = take_a_byte;
            co_await s->start(threads, 1);
            talker silent = co_await s->join();
            co_await until([&] { return s->pool.limits().assigned.load() == 1; });
            EXPECT_EQ(s->pool.limits().handshakes.under_way(), 1U);
            EXPECT_EQ(s->connected(), 0U);
            co_await until([&] { return s->handshakes() == 1; });
            talker refused = co_await s->join();
            EXPECT_EQ(co_await refused.rest(), full);
            co_await silent.say("x");
            co_await silent.line();
            EXPECT_EQ(s->connected(), 1U);
            EXPECT_EQ(s->handshakes(), 0U);
            EXPECT_EQ(s->pool.limits().assigned.load(), threads == 1 ? 0U : 1U);
            EXPECT_EQ(s->pool.limits().handshakes.under_way(), 0U);
            silent.socket.close();
            co_await until([&] { return s->connected() + s->pool.limits().assigned.load() == 0; });
            talker late = co_await s->join();
            co_await until([&] { return s->pool.limits().assigned.load() == 1; });
            co_await s->stop(1h);
            EXPECT_EQ(s->pool.limits().assigned.load(), 0U);
            EXPECT_EQ(s->pool.limits().handshakes.under_way(), 0U);
            EXPECT_EQ(co_await late.rest(), "");
        }
    });
}

task<result<stream>> fail_after_a_byte(stream plain, duration timeout) {
    auto got = co_await with_timeout(timeout, plain.read());
    co_return fail(got ? std::error_code(errc::not_tls) : got.error());
}

TEST_P(serving_loops, failed_handshakes_are_counted_and_reported_at_a_limited_rate) {
    run([&]() -> task<void> {
        for (const std::size_t threads : {1U, 2U}) {
            const auto s = served::listen();
            s->listening.finish = fail_after_a_byte;
            co_await s->start(threads);
            constexpr std::uint64_t failures = 8;
            for (std::uint64_t i = 0; i < failures; ++i) {
                talker plain = co_await s->join();
                co_await plain.say("x");
                EXPECT_EQ(co_await plain.rest(), "");
            }
            co_await until([&] { return s->pool.limits().assigned.load() == 0; });
            // Cancelled by the end: no failure.
            talker silent = co_await s->join();
            co_await until([&] { return s->pool.limits().assigned.load() == 1; });
            co_await s->stop();
            EXPECT_EQ(s->counted.errors.value(), failures);
            EXPECT_EQ(s->counted.connections_total.value(), 0U);
            const std::string reason =
                "a handshake with a client failed: " + std::error_code(errc::not_tls).message();
            std::uint64_t reported = 0;
            for (const std::string& line : s->events.lines) {
                if (line == reason) {
                    ++reported;
                } else {
                    EXPECT_THAT(line, HasSubstr(" more handshakes failed since the last report"));
                    reported += std::stoull(line);
                }
            }
            EXPECT_EQ(reported, failures);
            // All take less than the interval: one line and one number for each worker.
            EXPECT_LE(s->events.lines.size(), 4U);
        }
    });
}

class only_odd final : public admission {
public:
    explicit only_odd(loop_pool& to) : pool_(to) {}
    void admit(stream accepted, served_listener& from) override {
        if (++seen_ % 2 != 0) pool_.assign(std::move(accepted), from);
    }

private:
    loop_pool& pool_;
    int seen_ = 0;
};

TEST_P(serving_loops, a_server_may_check_each_connection) {
    run([&]() -> task<void> {
        const auto s = served::listen();
        co_await s->start(2);
        co_await s->accepting.close();
        only_odd checked(s->pool);
        acceptor second(s->pool, &checked);
        second.open(s->listening, full, false);
        talker a = co_await s->join();
        co_await a.line();
        talker b = co_await s->join();
        EXPECT_EQ(co_await b.rest(), "");
        co_await second.close();
        co_await s->stop();
    });
}

}  // namespace
}  // namespace eddy::serving
