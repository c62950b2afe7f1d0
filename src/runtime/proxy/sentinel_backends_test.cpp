// Backends that Sentinels name as masters: clients of the one before are cut, and others wait.
#include "proxy/redis_fakes.hpp"
#include "runtime/proxy/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using eddy::proxy::testing::fake_cache;
using eddy::proxy::testing::fake_sentinel;
using eddy::proxy::testing::fake_server;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Two caches, the first one being the master, and two Sentinels.
struct watched_caches {
    explicit watched_caches(scope& tasks)
        : a(tasks, "master", short_queue()), b(tasks), one(tasks, a), two(tasks, a) {}

    /// Options of a listener with one place for connections that are not accepted.
    static listen_options short_queue() {
        listen_options made;
        made.backlog = 1;
        return made;
    }
    json options(json others = {}) const {
        others["sentinel"] = one.place() + "," + two.place();
        others["backend"] = "@cache-master";
        return with(others);
    }

    fake_cache a;
    fake_cache b;
    fake_sentinel one;
    fake_sentinel two;
};

class sentinel_backends : public on_io_backend {
protected:
    template <class Body>
    void with_caches(Body body) {
        run([&]() -> task<void> {
            scope tasks(co_await current_source());
            {
                watched_caches w(tasks);
                std::exception_ptr failure;
                try {
                    co_await body(w);
                } catch (...) {
                    failure = std::current_exception();
                }
                tasks.cancel();
                co_await tasks.join();
                if (failure) std::rethrow_exception(failure);
            }
        });
    }
    static std::string label(const fake_server& of) { return "@cache-master/" + of.place(); }
    static std::vector<std::string> backends_of(subject& s) {
        std::vector<std::string> made;
        for (const auto& [name, value] : by_backend(s, "backend_up")) made.push_back(name);
        return made;
    }
    /// Asks through a connection, and expects this cache to answer.
    static task<void> expect_answer(talker& client, const fake_server& of) {
        co_await client.say(encoded({"PING"}));
        EXPECT_EQ(co_await line_of(client), "+PING at " + of.place());
    }
    static task<talker> client_of(subject& s, const fake_server& expected) {
        talker client = co_await talker::to(s->local());
        co_await expect_answer(client, expected);
        co_return client;
    }
};
INSTANTIATE_TEST_SUITE_P(io, sentinel_backends,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(sentinel_backends, are_masters_and_say_where_they_were_learned) {
    with_caches([](watched_caches& w) -> task<void> {
        subject s("proxy", w.options());
        EXPECT_EQ(s->detail(), "");
        co_await s.start();
        talker client = co_await client_of(s, w.a);
        EXPECT_THAT(by_backend(s, "backend_connections"), ElementsAre(Pair(label(w.a), 1)));
        EXPECT_EQ(s->detail(), "@cache-master is " + w.a.place() + " (" + w.one.uri() + ")");
        EXPECT_EQ(s->fault(), "");
        EXPECT_TRUE(s.events.has("backend @cache-master is " + w.a.place() +
                                 ", says the Sentinel " + w.one.uri()));
        EXPECT_FALSE(s.events.has("no runtime of that name"));
        co_await s->stop(0s);
        EXPECT_EQ(s->detail(), "");
    });
}

TEST_P(sentinel_backends, that_change_cut_the_clients_of_the_master_before) {
    with_caches([this](watched_caches& w) -> task<void> {
        for (const int threads : {1, 2}) {
            if (simulated() && threads > 1) continue;
            w.one.named = w.two.named = w.a.port();
            subject s("proxy", w.options({{"threads", threads}}));
            co_await s.start();
            std::vector<talker> clients;
            for (int i = 0; i < 3; ++i) clients.push_back(co_await client_of(s, w.a));
            w.two.named = w.b.port();
            co_await w.one.switch_to(w.b);
            for (talker& each : clients) {
                const last_bytes rest = co_await rest_of(each);
                EXPECT_EQ(rest.text, "");
                EXPECT_EQ(rest.end, errno_code(ECONNRESET));
            }
            talker next = co_await client_of(s, w.b);
            EXPECT_EQ(backends_of(s), std::vector{label(w.b)});
            EXPECT_TRUE(
                s.events.has("connections to " + w.a.place() + ", the master before, are closed"));
            // One that stays the master keeps its clients.
            co_await w.one.switch_to(w.b);
            co_await expect_answer(next, w.b);
            co_await s->stop(0s);
        }
    });
}

TEST_P(sentinel_backends, that_are_unknown_are_awaited) {
    with_caches([](watched_caches& w) -> task<void> {
        w.one.odd_answer = w.two.odd_answer = "*-1\r\n";
        subject s("proxy", w.options());
        co_await s.start();
        EXPECT_EQ(s->detail(), "@cache-master is unknown");
        EXPECT_THAT(s->fault(), HasSubstr("no backend of --backend serves: none is known"));
        EXPECT_TRUE(s.events.has("backend @cache-master: the Sentinel " + w.one.uri() +
                                 " knows no master of this name; it has no address yet"));
        talker client = co_await talker::to(s->local());
        co_await client.say(encoded({"PING"}));
        w.one.odd_answer.clear();
        w.two.odd_answer.clear();
        EXPECT_EQ(co_await line_of(client), "+PING at " + w.a.place());
        EXPECT_EQ(s->count().errors, 0U);
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, are_awaited_for_a_limited_time) {
    with_caches([](watched_caches& w) -> task<void> {
        w.one.odd_answer = w.two.odd_answer = "*-1\r\n";
        subject s("proxy", w.options({{"connect_timeout", "50ms"}}));
        co_await s.start();
        EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
        co_await until([&] { return s->count().errors == 1; });
        EXPECT_TRUE(s.events.has("a client was closed: no master is known"));
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, that_are_dead_are_replaced_while_a_client_waits) {
    with_caches([](watched_caches& w) -> task<void> {
        subject s("proxy", w.options());
        co_await s.start();
        talker before = co_await client_of(s, w.a);
        w.a.die();
        EXPECT_EQ(co_await before.rest(), "");
        talker client = co_await talker::to(s->local());
        co_await client.say(encoded({"PING"}));
        co_await until([&] { return by_backend(s, "backend_failures_total")[label(w.a)] > 0; });
        co_await w.one.switch_to(w.b);
        EXPECT_EQ(co_await line_of(client), "+PING at " + w.b.place());
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, may_come_back_while_a_client_waits) {
    with_caches([](watched_caches& w) -> task<void> {
        subject s("proxy", w.options());
        co_await s.start();
        w.a.die();
        talker client = co_await talker::to(s->local());
        co_await client.say(encoded({"PING"}));
        co_await until([&] { return by_backend(s, "backend_failures_total")[label(w.a)] > 0; });
        w.a.come_back();
        EXPECT_EQ(co_await line_of(client), "+PING at " + w.a.place());
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, that_do_not_answer_are_given_up_when_another_is_known) {
    // The kernel's queues hold more than the test knows.
    if (!simulated()) GTEST_SKIP() << "a connection that stays open is the simulator's";
    with_caches([](watched_caches& w) -> task<void> {
        subject s("proxy", w.options({{"connect_timeout", "30s"}}));
        co_await s.start();
        w.a.stop_accepting();
        const endpoint at = must(endpoint::ip("127.0.0.1", w.a.port()));
        const stream in_queue = must(co_await loop::current().connect(at));
        talker client = co_await talker::to(s->local());
        co_await client.say(encoded({"PING"}));
        co_await until([&] { return by_backend(s, "backend_connections")[label(w.a)] == 1; });
        const time_point begun = loop::current().now();
        co_await w.one.switch_to(w.b);
        EXPECT_EQ(co_await line_of(client), "+PING at " + w.b.place());
        EXPECT_LT(loop::current().now() - begun, 5s);
        co_await expect_answer(client, w.b);
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, are_named_by_other_sentinels_after_an_edit) {
    with_caches([](watched_caches& w) -> task<void> {
        w.two.named = w.b.port();
        json chosen = w.options();
        chosen["sentinel"] = w.one.place();
        subject s("proxy", chosen);
        co_await s.start();
        talker first = co_await client_of(s, w.a);
        chosen["sentinel"] = w.two.place();
        must_do(s->apply(s.parse(chosen)));
        EXPECT_EQ((co_await rest_of(first)).end, errno_code(ECONNRESET));
        talker second = co_await client_of(s, w.b);
        chosen["drain_backend"] = "@cache-master";
        must_do(s->apply(s.parse(chosen)));
        EXPECT_THAT(by_backend(s, "backend_up"), ElementsAre(Pair(label(w.b), 0)));
        co_await expect_answer(second, w.b);
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, that_are_gone_are_noted_once) {
    with_caches([](watched_caches& w) -> task<void> {
        subject s("proxy", w.options());
        co_await s.start();
        talker client = co_await client_of(s, w.a);
        w.one.die();
        w.two.die();
        for (const fake_sentinel* const each : {&w.one, &w.two})
            co_await until(
                [&] { return s.events.has("a Sentinel is lost: ") && s.events.has(each->uri()); });
        co_await expect_answer(client, w.a);
        talker another = co_await client_of(s, w.a);
        w.one.come_back();
        co_await until(
            [&] { return s.events.has("the Sentinel " + w.one.uri() + " answers again"); });
        co_await s->stop(0s);
    });
}

TEST_P(sentinel_backends, are_groups_without_sentinels) {
    with_caches([](watched_caches& w) -> task<void> {
        json chosen = w.options({{"connect_timeout", "50ms"}});
        chosen.erase("sentinel");
        subject s("proxy", chosen);
        co_await s.start();
        EXPECT_TRUE(s.events.has("backend @cache-master: no runtime of that name serves"));
        EXPECT_EQ(s->detail(), "");
        EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
        EXPECT_EQ(w.one.connections, 0U);
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
