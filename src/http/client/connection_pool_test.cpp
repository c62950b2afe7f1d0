// Pool of connections: keys, order, limits, waits and times.
#include "http/client/connection_pool.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "http/client/testing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;

constexpr connection_pool::limits roomy{
    .of_upstream = 10, .of_all = 20, .waiting = 10, .waiting_time = 30s, .idle_time = 30s};

connection_key key_of(std::string_view place) {
    connection_key made;
    made.place = place;
    return made;
}

class http_connection_pool : public testing::with_connection {
protected:
    using body = std::function<task<void>(connection_pool& pool)>;

    void with_pool(connection_pool::limits bounds, body steps) {
        run([&]() -> task<void> {
            connection_pool pool(bounds);
            co_await steps(pool);
            pool.close();
            servers_.clear();
        });
    }

    /// Takes one, connected.
    task<pool_connection*> open(connection_pool& pool, connection_key key) {
        pool_connection* const taken = must(co_await pool.take(key));
        if (!taken->through) {
            eddy::testing::connection both = co_await connect();
            taken->through =
                std::make_shared<client_connection>(std::move(both.client), limits_of_test());
            servers_.push_back(std::move(both.server));
        }
        co_return taken;
    }

    static task<void> take_into(connection_pool& pool, connection_key key, std::string name,
                                std::string& order, pool_connection*& into) {
        const auto taken = co_await pool.take(key);
        order += name + (taken ? " " : ": " + taken.error().message() + " ");
        into = taken ? *taken : nullptr;
    }

    std::vector<stream> servers_;
};
EDDY_HTTP_ON_EVERY_BACKEND(http_connection_pool);

TEST_P(http_connection_pool, gives_the_one_that_was_used_last) {
    with_pool(roomy, [this](connection_pool& pool) -> task<void> {
        pool_connection* const first = co_await open(pool, key_of("a"));
        pool_connection* const second = co_await open(pool, key_of("a"));
        EXPECT_NE(first, second);
        EXPECT_EQ(pool.size(), 2U);
        EXPECT_EQ(pool.idle(), 0U);
        pool.give_back(*second);
        pool.give_back(*first);
        EXPECT_EQ(pool.idle(), 2U);
        EXPECT_EQ(pool.try_take(key_of("a")), first);
        EXPECT_EQ(pool.try_take(key_of("a")), second);
        pool.give_back(*first);
        pool.give_back(*second);
    });
}

TEST_P(http_connection_pool, a_key_differs_in_each_of_its_parts) {
    with_pool(roomy, [this](connection_pool& pool) -> task<void> {
        connection_key plain = key_of("a");
        plain.port = 80;
        std::vector<connection_key> others(8, plain);
        others[0].kind = transport::scheme::unix_socket;
        others[1].through = connection_key::proxy::http;
        others[2].is_secure = true;
        others[3].port = 81;
        others[4].server_port = 443;
        others[5].place = "b";
        others[6].server = "s";
        others[7].proxy_user = "u";
        connection_key more = plain;
        more.variant = "v";
        others.push_back(more);
        // Texts are no sum: "a" and "s" are not "as".
        more = plain;
        more.place = "as";
        others.push_back(more);
        pool_connection* const first = co_await open(pool, plain);
        pool.give_back(*first);
        std::vector<pool_connection*> taken;
        for (const connection_key& each : others) {
            taken.push_back(pool.try_take(each));
            EXPECT_NE(taken.back(), first);
            EXPECT_EQ(taken.back()->of.key, each);
        }
        EXPECT_EQ(pool.size(), 1 + others.size());
        EXPECT_EQ(pool.idle(), 1U);
        for (pool_connection* const each : taken) pool.give_back(*each);
        EXPECT_EQ(pool.size(), 1U);
    });
}

TEST_P(http_connection_pool, keeps_its_own_copy_of_a_key) {
    with_pool(roomy, [this](connection_pool& pool) -> task<void> {
        auto text = std::make_unique<std::string>("a name that is longer than a short string");
        connection_key key = key_of(*text);
        key.server = *text;
        pool_connection* const first = co_await open(pool, key);
        pool.give_back(*first);
        text->assign("another name that is longer than the one");
        text.reset();
        const std::string same = "a name that is longer than a short string";
        key.place = key.server = same;
        EXPECT_EQ(pool.try_take(key), first);
        pool.give_back(*first);
    });
}

TEST_P(http_connection_pool, a_place_without_a_connection_is_not_kept) {
    with_pool(roomy, [](connection_pool& pool) -> task<void> {
        pool_connection* const first = pool.try_take(key_of("a"));
        EXPECT_EQ(first->through, nullptr);
        EXPECT_EQ(pool.size(), 1U);
        pool.give_back(*first);
        EXPECT_EQ(pool.size(), 0U);
        co_return;
    });
}

TEST_P(http_connection_pool, one_that_cannot_be_used_again_is_not_kept) {
    with_pool(roomy, [this](connection_pool& pool) -> task<void> {
        pool_connection* const first = co_await open(pool, key_of("a"));
        must(begin(*first->through));
        pool.give_back(*first);  // in the middle of an exchange
        EXPECT_EQ(pool.size(), 0U);
        EXPECT_EQ(error_of(co_await servers_.back().read()), errc::end_of_stream);
        // Also one that was closed while it was idle.
        pool_connection* const second = co_await open(pool, key_of("a"));
        const std::shared_ptr<client_connection> kept = second->through;
        pool.give_back(*second);
        EXPECT_EQ(pool.idle(), 1U);
        kept->close();
        pool_connection* const third = pool.try_take(key_of("a"));
        EXPECT_EQ(third->through, nullptr);
        EXPECT_EQ(pool.size(), 1U);
        pool.give_back(*third);
    });
}

TEST_P(http_connection_pool, has_a_limit_for_each_backend) {
    connection_pool::limits bounds = roomy;
    bounds.of_upstream = 2;
    with_pool(bounds, [](connection_pool& pool) -> task<void> {
        pool_connection* const first = pool.try_take(key_of("a"));
        pool_connection* const second = pool.try_take(key_of("a"));
        EXPECT_EQ(pool.try_take(key_of("a")), nullptr);
        pool_connection* const other = pool.try_take(key_of("b"));
        EXPECT_NE(other, nullptr);
        pool.give_back(*second);
        pool_connection* const third = pool.try_take(key_of("a"));
        EXPECT_NE(third, nullptr);
        EXPECT_EQ(pool.size(), 3U);
        pool.give_back(*third);
        pool.give_back(*other);
        pool.give_back(*first);
        co_return;
    });
}

TEST_P(http_connection_pool, at_the_limit_of_all_the_one_that_idled_for_longest_goes) {
    connection_pool::limits bounds = roomy;
    bounds.of_all = 2;
    with_pool(bounds, [this](connection_pool& pool) -> task<void> {
        pool_connection* const first = co_await open(pool, key_of("a"));
        pool_connection* const second = co_await open(pool, key_of("b"));
        EXPECT_EQ(pool.try_take(key_of("c")), nullptr);
        pool.give_back(*first);
        pool.give_back(*second);
        pool_connection* const third = pool.try_take(key_of("c"));
        EXPECT_NE(third, nullptr);
        EXPECT_EQ(error_of(co_await servers_[0].read()), errc::end_of_stream);
        EXPECT_EQ(pool.try_take(key_of("b")), second);
        EXPECT_EQ(pool.size(), 2U);
        pool.give_back(*second);
        pool.give_back(*third);
    });
}

TEST_P(http_connection_pool, requests_wait_in_their_order_and_by_key) {
    connection_pool::limits bounds = roomy;
    bounds.of_upstream = 1;
    with_pool(bounds, [this](connection_pool& pool) -> task<void> {
        pool_connection* const a = co_await open(pool, key_of("a"));
        pool_connection* const b = co_await open(pool, key_of("b"));
        std::string order;
        pool_connection* given[3] = {};
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(take_into(pool, key_of("a"), "first", order, given[0]));
            all.spawn(take_into(pool, key_of("b"), "other", order, given[1]));
            all.spawn(take_into(pool, key_of("a"), "second", order, given[2]));
            EXPECT_EQ(pool.waiting(), 3U);
            pool.give_back(*a);
            EXPECT_EQ(pool.waiting(), 2U);
            while (given[0] == nullptr) co_await loop::current().yield();
            EXPECT_EQ(given[0], a);
            pool.give_back(*b);
            while (given[1] == nullptr) co_await loop::current().yield();
            pool.give_back(*given[0]);
            while (given[2] == nullptr) co_await loop::current().yield();
        });
        EXPECT_EQ(order, "first other second ");
        EXPECT_EQ(given[2], a);
        pool.give_back(*given[1]);
        pool.give_back(*given[2]);
    });
}

TEST_P(http_connection_pool, waits_are_limited_in_number_and_time) {
    connection_pool::limits bounds = roomy;
    bounds.of_upstream = 1;
    bounds.waiting = 1;
    bounds.waiting_time = 20ms;
    with_pool(bounds, [](connection_pool& pool) -> task<void> {
        pool_connection* const only = pool.try_take(key_of("a"));
        std::string order;
        pool_connection* none = nullptr;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(take_into(pool, key_of("a"), "first", order, none));
            EXPECT_EQ(error_of(co_await pool.take(key_of("a"))), errc::limit_reached);
        });
        EXPECT_EQ(order, "first: " + make_error_code(errc::timed_out).message() + " ");
        EXPECT_EQ(pool.waiting(), 0U);
        EXPECT_EQ(co_await eddy::testing::cancelled_before(pool.take(key_of("a"))),
                  errc::cancelled);
        pool.give_back(*only);
        EXPECT_EQ(pool.size(), 0U);
    });
}

TEST_P(http_connection_pool, an_idle_one_is_closed_after_its_time) {
    connection_pool::limits bounds = roomy;
    bounds.idle_time = 20ms;
    with_pool(bounds, [this](connection_pool& pool) -> task<void> {
        pool_connection* const first = co_await open(pool, key_of("a"));
        pool_connection* const second = co_await open(pool, key_of("a"));
        pool.give_back(*first);
        EXPECT_EQ(pool.idle(), 1U);
        EXPECT_EQ(error_of(co_await servers_[0].read()), errc::end_of_stream);
        EXPECT_EQ(pool.size(), 1U);  // a busy one has no such time
        pool.give_back(*second);
        EXPECT_EQ(error_of(co_await servers_[1].read()), errc::end_of_stream);
        EXPECT_EQ(pool.size(), 0U);
    });
}

TEST_P(http_connection_pool, a_closed_one_gives_nothing_and_keeps_nothing) {
    connection_pool::limits bounds = roomy;
    bounds.of_upstream = 2;
    with_pool(bounds, [this](connection_pool& pool) -> task<void> {
        pool_connection* const busy = co_await open(pool, key_of("a"));
        pool_connection* const idle = co_await open(pool, key_of("a"));
        std::string order;
        pool_connection* none = nullptr;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(take_into(pool, key_of("a"), "waiting", order, none));
            EXPECT_EQ(pool.waiting(), 1U);
            pool.close();
            EXPECT_EQ(pool.waiting(), 0U);
            co_return;
        });
        EXPECT_EQ(order, "waiting: " + make_error_code(errc::closed).message() + " ");
        EXPECT_EQ(error_of(co_await pool.take(key_of("a"))), errc::closed);
        EXPECT_EQ(pool.try_take(key_of("a")), nullptr);
        pool.give_back(*busy);
        pool.give_back(*idle);
        EXPECT_EQ(pool.size(), 0U);
        EXPECT_EQ(error_of(co_await servers_[0].read()), errc::end_of_stream);
    });
}

}  // namespace
}  // namespace eddy::http
