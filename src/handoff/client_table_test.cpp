// Tables of clients: order of what is sent, backlogs and their limit, ends.
#include "handoff/client_table.hpp"

#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::handoff {
namespace {

using testing::must;
using namespace std::chrono_literals;

/// Owner that records its losses.
struct losses final : client_table::observer {
    void on_loss(std::uint32_t client, loss why) noexcept override {
        all.emplace_back(client, why);
    }
    void on_unsent() noexcept override { ++unsent; }
    std::vector<std::pair<std::uint32_t, loss>> all;
    int unsent = 0;
};

class client_tables : public testing::on_io_backend {
protected:
    static constexpr std::size_t max_backlog = 1000;

    static std::unique_ptr<client_table> open(losses& owner) {
        return must(client_table::open(100, max_backlog, owner));
    }

    /// A client of the table; `theirs` is its own end.
    static task<std::uint32_t> add(client_table& to, stream& theirs, std::string first = "") {
        if (loop::current().kind() == io_backend_kind::sim) {
            listener listening = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
            theirs = must(co_await loop::current().connect(listening.local()));
            co_return must(to.add(must(co_await listening.accept()), first));
        }
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        // So that few bytes fill it.
        const int small = 1;
        ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        theirs = must(loop::current().adopt(unique_fd(ends[0])));
        co_return must(to.add(unique_fd(ends[1]), first));
    }

    static task<std::string> rest_of(stream& of) {
        std::string got;
        for (;;) {
            auto piece = co_await of.read();
            if (!piece) co_return got;
            got += piece->text();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(handoff, client_tables,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(client_tables, send_in_order_and_close_behind_it) {
    run([]() -> task<void> {
        losses owner;
        auto table = open(owner);
        stream theirs;
        const std::uint32_t client = co_await add(*table, theirs, "first ");
        const std::string shared = "shared ";
        std::string expected = "first ";
        for (int i = 0; i < 20; ++i) {
            EXPECT_TRUE(table->send(client, shared));
            EXPECT_TRUE(table->send_owned(client, "own " + std::to_string(i) + " "));
            expected += shared + "own " + std::to_string(i) + " ";
        }
        EXPECT_EQ(table->active(), 1U);
        table->finish(client);
        EXPECT_EQ(table->active(), 0U);
        table->flush();
        EXPECT_EQ(co_await rest_of(theirs), expected);
        must(co_await table->all_closed());
        EXPECT_TRUE(owner.all.empty());
        EXPECT_EQ(table->bytes_sent(), expected.size());
    });
}

TEST_P(client_tables, lose_a_client_at_the_limit_of_its_backlog) {
    run([]() -> task<void> {
        losses owner;
        auto table = open(owner);
        stream theirs;
        const std::uint32_t client = co_await add(*table, theirs);
        // A write in progress does not count as backlog.
        const std::string large(1 << 20, 'x');
        EXPECT_TRUE(table->send(client, large));
        table->flush();
        EXPECT_TRUE(table->send_owned(client, std::string(max_backlog, 'y')));
        EXPECT_TRUE(owner.all.empty()) << "as much as may wait";
        EXPECT_FALSE(table->send(client, "z"));
        EXPECT_EQ(owner.all, (std::vector{std::pair(client, loss::too_slow)}));
        EXPECT_EQ(table->active(), 0U);
        must(co_await table->all_closed());
        EXPECT_LT((co_await rest_of(theirs)).size(), large.size());
    });
}

TEST_P(client_tables, do_not_wait_for_ever_for_what_a_finished_client_does_not_take) {
    run([]() -> task<void> {
        losses owner;
        auto table = must(client_table::open(100, max_backlog, owner, 20ms));
        stream reading;
        const std::uint32_t client = co_await add(*table, reading);
        EXPECT_TRUE(table->send(client, "all"));
        table->finish(client);
        table->flush();
        EXPECT_EQ(co_await rest_of(reading), "all");
        must(co_await table->all_closed());
        EXPECT_EQ(owner.unsent, 0);

        const std::string large(1 << 20, 'x');
        stream stuck;
        const std::uint32_t late = co_await add(*table, stuck);
        EXPECT_TRUE(table->send(late, large));
        table->finish(late);
        table->flush();
        EXPECT_EQ(table->active(), 0U);
        EXPECT_EQ(table->unsent(), 1U);
        must(co_await table->all_closed());
        EXPECT_EQ(table->unsent(), 0U);
        EXPECT_EQ(owner.unsent, 1);
        EXPECT_TRUE(owner.all.empty());
        EXPECT_LT((co_await rest_of(stuck)).size(), large.size());
    });
}

TEST_P(client_tables, notice_a_client_that_leaves) {
    run([]() -> task<void> {
        losses owner;
        auto table = open(owner);
        stream first;
        stream second;
        const std::uint32_t leaving = co_await add(*table, first);
        const std::uint32_t staying = co_await add(*table, second);
        first = {};
        while (owner.all.empty()) must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(owner.all, (std::vector{std::pair(leaving, loss::hung_up)}));
        EXPECT_EQ(table->active(), 1U);
        EXPECT_TRUE(table->send(staying, "still there"));
        table->finish(staying);
        EXPECT_EQ(co_await rest_of(second), "still there");
        must(co_await table->all_closed());
    });
}

TEST_P(client_tables, abandon_a_client_in_the_middle_of_its_backlog) {
    run([]() -> task<void> {
        losses owner;
        auto table = open(owner);
        const std::string large(1 << 20, 'x');
        stream theirs;
        const std::uint32_t client = co_await add(*table, theirs);
        EXPECT_TRUE(table->send(client, large));
        table->flush();
        EXPECT_TRUE(table->send(client, "behind"));
        table->abandon(client);
        EXPECT_EQ(table->active(), 0U);
        EXPECT_LT((co_await rest_of(theirs)).size(), large.size());
        must(co_await table->all_closed());
        EXPECT_TRUE(owner.all.empty());
        // Its number serves another client.
        stream other;
        const std::uint32_t next = co_await add(*table, other, "hello");
        EXPECT_EQ(next, client);
        table->finish(next);
        EXPECT_EQ(co_await rest_of(other), "hello");
        must(co_await table->all_closed());
    });
}

TEST_P(client_tables, can_be_awaited_until_the_last_socket_is_closed) {
    run([]() -> task<void> {
        losses owner;
        auto table = open(owner);
        must(co_await table->all_closed());
        stream one;
        stream other;
        const std::uint32_t first = co_await add(*table, one);
        const std::uint32_t second = co_await add(*table, other);
        table->abandon(first);
        table->flush();
        const result<> early = co_await with_timeout(10ms, table->all_closed());
        EXPECT_EQ(early.error(), errc::timed_out);
        EXPECT_EQ(table->open_sockets(), 1U);
        table->abandon(second);
        table->flush();
        must(co_await table->all_closed());
        EXPECT_EQ(table->open_sockets(), 0U);
    });
}

TEST_P(client_tables, refuse_more_than_they_hold) {
    run([]() -> task<void> {
        losses owner;
        auto table = must(client_table::open(2, max_backlog, owner));
        stream ends[3];
        static_cast<void>(co_await add(*table, ends[0]));
        static_cast<void>(co_await add(*table, ends[1]));
        EXPECT_THROW(co_await add(*table, ends[2]), std::runtime_error);
        EXPECT_EQ(table->active(), 2U);
    });
}

TEST_P(client_tables, send_to_random_clients_what_each_of_them_is_to_get) {
    run([]() -> task<void> {
        random_generator random(testing::seed_of_this_run());
        losses owner;
        auto table = open(owner);
        struct one {
            stream theirs;
            std::uint32_t number = 0;
            std::string expected;
        };
        const std::string shared(30, 's');
        for (int round = 0; round < 20; ++round) {
            std::vector<one> clients(1 + random() % 20);
            for (one& each : clients) {
                each.expected = std::string(random() % 50, 'f');
                each.number = co_await add(*table, each.theirs, each.expected);
            }
            for (int step = 0; step < 200; ++step) {
                one& each = clients[random() % clients.size()];
                if (each.expected.size() > max_backlog) continue;
                if (random() % 2 == 0) {
                    EXPECT_TRUE(table->send(each.number, shared));
                    each.expected += shared;
                } else {
                    const std::string own(1 + random() % 40, static_cast<char>('a' + step % 26));
                    EXPECT_TRUE(table->send_owned(each.number, own));
                    each.expected += own;
                }
                if (random() % 10 == 0) table->flush();
                if (random() % 20 == 0) co_await loop::current().yield();
            }
            for (one& each : clients) table->finish(each.number);
            for (one& each : clients) EXPECT_EQ(co_await rest_of(each.theirs), each.expected);
            must(co_await table->all_closed());
        }
        EXPECT_TRUE(owner.all.empty());
    });
}

}  // namespace
}  // namespace eddy::handoff
