// Tests of accepting without descriptors, and of closing in time.
#include "base/files/descriptors.hpp"
#include "runtime/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(descriptors);

/// Leaves the process few descriptors, for as long as it lives.
class few_descriptors {
public:
    explicit few_descriptors(rlim_t more) {
        getrlimit(RLIMIT_NOFILE, &usual_);
        const unique_fd lowest_free(::fcntl(0, F_DUPFD_CLOEXEC, 0));
        rlimit tight = usual_;
        tight.rlim_cur = static_cast<rlim_t>(lowest_free.get()) + more;
        setrlimit(RLIMIT_NOFILE, &tight);
    }
    ~few_descriptors() { setrlimit(RLIMIT_NOFILE, &usual_); }
    few_descriptors(const few_descriptors&) = delete;
    few_descriptors& operator=(const few_descriptors&) = delete;

    /// Takes all that are left.
    void take_all() {
        for (;;) {
            unique_fd one(::fcntl(0, F_DUPFD_CLOEXEC, 0));
            if (!one) break;
            taken_.push_back(std::move(one));
        }
    }
    void give_one_back() { taken_.pop_back(); }
    void give_all_back() { taken_.clear(); }

private:
    rlimit usual_{};
    std::vector<unique_fd> taken_;
};

TEST_P(descriptors, when_they_run_out_clients_wait_until_some_are_free) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizers need descriptors for themselves";
    run([&]() -> task<void> {
        few_descriptors few(40);
        subject server("server", {{"port", 0}, {"bind", "127.0.0.1"}});
        co_await server.start();
        talker known = co_await talker::to(server->local());
        co_await until([&] { return server->count().connections_now == 1; });

        few.take_all();
        few.give_one_back();  // for the client's own end
        talker waiting = co_await talker::to(server->local());
        co_await until([&] { return server.events.has("cannot accept connections for now"); });
        EXPECT_EQ(server->count().connections_now, 1U);
        // Clients that are there are served as before.
        EXPECT_EQ(must_do(co_await server->send("still here")), 1U);
        EXPECT_EQ(co_await known.line(), "still here");

        few.give_all_back();
        co_await until([&] { return server->count().connections_now == 2; });
        EXPECT_EQ(must_do(co_await server->send("welcome")), 2U);
        EXPECT_EQ(co_await waiting.line(), "welcome");
        EXPECT_EQ(server.events.lines.size(), 1U);
        co_await server->stop(0s);
    });
}

TEST_P(descriptors, clients_leave_some_to_the_rest_of_the_process) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizers need descriptors for themselves";
    run([&]() -> task<void> {
        few_descriptors few(100);
        subject server("server", {{"port", 0}, {"bind", "127.0.0.1"}});
        co_await server.start();
        const auto is_crowded = [&] { return server.events.has("cannot accept connections"); };
        std::vector<talker> clients;
        while (!is_crowded()) {
            clients.push_back(co_await talker::to(server->local()));
            co_await until(
                [&] { return is_crowded() || server->count().connections_now == clients.size(); });
        }
        const std::uint64_t served = server->count().connections_now;
        EXPECT_EQ(clients.size(), served + 1) << "one waits";
        std::vector<unique_fd> files;
        for (int i = 0; i < eddy::descriptors::reserved - 4; ++i) {
            files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            EXPECT_TRUE(files.back());
        }
        EXPECT_EQ(must_do(co_await server->send("to those who are served")), served);
        files.clear();

        clients.erase(clients.begin());
        co_await until([&] { return server->count().connections_total == served + 1; });
        EXPECT_EQ(must_do(co_await server->send("welcome")), server->count().connections_now);
        EXPECT_EQ(co_await clients.back().line(), "welcome");
        EXPECT_EQ(server->count().connections_refused, 0U);
        co_await server->stop(0s);
    });
}

EDDY_ON_EVERY_IO_BACKEND(refusals);

/// Sends much more than the kernels of both ends hold, then reads.
task<std::string> rest_after_much(talker& client, std::string_view each) {
    std::string piece;
    while (piece.size() < 256 * 1024) piece += each;
    for (int sent = 0; sent < 48; ++sent) must(co_await client.socket.write_all(piece));
    must(client.socket.shutdown_write());
    co_return co_await client.rest();
}

TEST_P(refusals, of_clients_beyond_the_limit_reach_those_that_send) {
    run([&]() -> task<void> {
        for (const char* type : {"server", "cache", "http"}) {
            subject s(type, with({{"max_connections", 1}}));
            co_await s.start();
            const talker first = co_await talker::to(s->local());
            co_await until([&] { return s->count().connections_now == 1; });
            for (int i = 0; i < 5; ++i) {
                talker second = co_await talker::to(s->local());
                const std::string said = co_await rest_after_much(second, "PING\r\n");
                EXPECT_NE(said, "") << type;
            }
            EXPECT_EQ(s->count().connections_refused, 5U);
            // One that lingers is no reason for a stop to wait.
            talker stays = co_await talker::to(s->local());
            EXPECT_NE(co_await stays.rest(), "") << type;
            co_await s->stop(1h);
        }
    });
}

TEST_P(refusals, in_the_middle_of_what_a_client_sends_reach_it) {
    run([&]() -> task<void> {
        for (const char* type : {"server", "cache"}) {
            subject s(type, with({}));
            co_await s.start();
            const std::string endless(type == std::string_view("cache") ? "x"
                                                                        : "line without end ");
            for (int i = 0; i < 3; ++i) {
                talker client = co_await talker::to(s->local());
                EXPECT_NE(co_await rest_after_much(client, endless), "") << type;
            }
            // Nor is it for one that stays after its refusal.
            talker stays = co_await talker::to(s->local());
            co_await stays.say(std::string(2 << 20, 'x'));
            EXPECT_NE(co_await stays.rest(), "") << type;
            co_await s->stop(0s);
        }
    });
}

/// On virtual time, where nothing but the clock decides.
class idle_times : public on_io_backend {};
INSTANTIATE_TEST_SUITE_P(io, idle_times, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(idle_times, a_client_is_closed_between_its_limit_and_a_little_later) {
    run_with_threads([&]() -> task<void> {
        subject server("server", {{"port", 0}, {"bind", "127.0.0.1"}, {"idle_timeout", "64s"}});
        co_await server.start();
        for (const duration silence : {duration(0s), duration(10s), duration(63s)}) {
            talker client = co_await talker::to(server->local());
            static_cast<void>(co_await here().sleep_for(silence));
            co_await client.say("hello\n");
            const time_point spoke = here().now();
            EXPECT_EQ(co_await client.rest(), "");
            EXPECT_GE(here().now() - spoke, 64s);
            EXPECT_LE(here().now() - spoke, 66s);
        }
        co_await server->stop(0s);
    });
}

TEST_P(idle_times, a_client_that_does_not_read_is_idle_however_much_is_queued_for_it) {
    run_with_threads([&]() -> task<void> {
        subject server("server", {{"port", 0},
                                  {"bind", "127.0.0.1"},
                                  {"idle_timeout", "10s"},
                                  {"slow_reader", "drop-oldest"}});
        co_await server.start();
        talker silent = co_await talker::to(server->local());
        talker busy = co_await talker::to(server->local());
        co_await until([&] { return server->count().connections_now == 2; });
        int rounds = 0;
        for (; server->count().connections_now == 2; ++rounds) {
            co_await busy.say(std::string(10'000, 'x') + "\n");
            static_cast<void>(co_await here().sleep_for(1s));
        }
        EXPECT_GT(rounds, 10);
        EXPECT_LT(rounds, 40);
        co_await server->stop(0s);
    });
}

TEST_P(idle_times, the_longest_limit_closes_no_client) {
    run_with_threads([&]() -> task<void> {
        const json options = {{"port", 0}, {"bind", "127.0.0.1"}, {"idle_timeout", "876600h"}};
        subject server("server", options);
        co_await server.start();
        talker client = co_await talker::to(server->local());
        static_cast<void>(co_await here().sleep_for(10h));
        EXPECT_EQ(server->count().connections_now, 1U);
        must_do(server->apply(server.parse(options)));
        static_cast<void>(co_await here().sleep_for(10h));
        EXPECT_EQ(server->count().connections_now, 1U);
        co_await server->stop(0s);
    });
}

TEST_P(idle_times, a_limit_given_to_a_running_server_counts_from_the_last_byte) {
    run_with_threads([&]() -> task<void> {
        const json options = {{"port", 0}, {"bind", "127.0.0.1"}};
        subject server("server", options);
        co_await server.start();
        talker client = co_await talker::to(server->local());
        static_cast<void>(co_await here().sleep_for(60s));
        json changed = options;
        changed["idle_timeout"] = "30s";
        must_do(server->apply(server.parse(changed)));
        const time_point before = here().now();
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_LE(here().now() - before, 31s);
        must_do(server->apply(server.parse(options)));
        talker again = co_await talker::to(server->local());
        static_cast<void>(co_await here().sleep_for(600s));
        EXPECT_EQ(server->count().connections_now, 1U);
        co_await server->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
