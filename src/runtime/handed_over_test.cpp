// Runtimes that listen on handoff://: clients that another program hands over are served as those
// that connect, on one loop and on several.
#include <eddy/handoff/sender.hpp>

#include "handoff/testing.hpp"
#include "runtime/keepalive_probe.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

class handed_over : public handoff::testing::on_kernel_io_backend {
protected:
    json listening(json options = {}, std::string_view query = {}) const {
        options["listen"] = "handoff://" + path() + std::string(query);
        return options;
    }
    /// A TCP client that another program has accepted and handed over.
    task<talker> join() {
        auto [client, accepted] = co_await connect();
        must(co_await handoff::hand_over(path(), "{}", accepted.native_handle()));
        co_return talker(std::move(client));
    }
};
EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handed_over);

TEST_P(handed_over, clients_of_a_server_reach_each_other) {
    run([&]() -> task<void> {
        for (const int threads : {1, 3}) {
            subject server("server", listening({{"threads", threads}}));
            co_await server.start();
            std::vector<talker> all;
            for (std::uint64_t i = 1; i <= 4; ++i) {
                all.push_back(co_await join());
                co_await until([&] { return server->count().connections_now == i; });
            }
            co_await all[0].say("hello\n");
            for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(co_await all[i].line(), "hello");
            co_await server->stop(0s);
            EXPECT_EQ(co_await all[0].rest(), "");
        }
    });
}

TEST_P(handed_over, clients_of_a_cache_share_its_data) {
    run([&]() -> task<void> {
        for (const int threads : {1, 3}) {
            subject cache("cache", listening({{"threads", threads}}));
            co_await cache.start();
            talker one = co_await join();
            talker other = co_await join();
            EXPECT_EQ(co_await ask(one, "PING"), "+PONG");
            EXPECT_EQ(co_await ask(one, "SET k v"), "+OK");
            EXPECT_EQ(co_await ask(other, "STRLEN k"), ":1");
            co_await cache->stop(0s);
        }
    });
}

TEST_P(handed_over, clients_get_files_of_a_site) {
    run([&]() -> task<void> {
        const temporary_folder root;
        std::ofstream(root.file("a.txt")) << "content";
        for (const int threads : {1, 3}) {
            const std::string folder =
                std::filesystem::path(root.file("a.txt")).parent_path().string();
            subject site("http", listening({{"threads", threads}, {"root", folder}}));
            co_await site.start();
            talker client = co_await join();
            co_await client.say("GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            const std::string response = co_await client.rest();
            EXPECT_THAT(response, HasSubstr("HTTP/1.1 200 OK\r\n"));
            EXPECT_THAT(response, HasSubstr("\r\n\r\ncontent"));
            co_await site->stop(0s);
        }
    });
}

TEST_P(handed_over, failures_are_counted_and_written_to_the_journal) {
    run([&]() -> task<void> {
        subject server("server", listening());
        co_await server.start();
        sender().reset();
        co_await until([&] { return server->count().errors == 1; });
        EXPECT_TRUE(server.events.has("a handoff brought no client: incomplete_message"));
        talker client = co_await join();
        co_await until([&] { return server->count().connections_now == 1; });
        co_await server->stop(0s);
    });
}

TEST_P(handed_over, protection_of_a_cache_sees_the_clients_address) {
    run([&]() -> task<void> {
        subject cache("cache", listening());
        co_await cache.start();
        EXPECT_TRUE(cache.events.has("protected mode"));
        talker client = co_await join();
        EXPECT_EQ(co_await ask(client, "PING"), "+PONG");  // it is a local one
        co_await client.say("INFO server\r\n");
        std::string line;
        while (!line.starts_with("listener")) line = co_await line_of(client);
        EXPECT_EQ(line, "listener1:name=unix,bind=" + path());
        co_await cache->stop(0s);
    });
}

TEST_P(handed_over, silent_clients_are_probed) {
    run([&]() -> task<void> {
        for (const int threads : {1, 2}) {
            for (const std::string type : {"server", "cache", "http", "proxy"}) {
                json options = listening({{"threads", threads}});
                if (type == "proxy") options["backend"] = "unix://" + path() + "-none";
                subject s(type, options);
                co_await s.start();
                auto client = co_await connect();
                must(co_await handoff::hand_over(path(), "{}", client.server.native_handle()));
                co_await until([&] { return s->count().connections_total == 1; });
                EXPECT_EQ(keepalive_of(client.server.native_handle()), (keepalive{1, 300, 100, 3}))
                    << type;
                co_await s->stop(0s);
            }
        }
    });
}

// Every user of the machine may connect to a socket without a file.
TEST_P(handed_over, an_abstract_name_is_for_the_own_user_and_root) {
    const std::string name = "@eddy-handed-over-test-" + std::to_string(::getpid());
    run([&]() -> task<void> {
        subject server("server", {{"listen", "handoff://" + name}});
        co_await server.start();
        auto client = co_await connect();
        must(co_await handoff::hand_over(name, "{}", client.server.native_handle()));
        co_await until([&] { return server->count().connections_now == 1; });
        co_await server->stop(0s);
        const std::string other = std::to_string(::geteuid() + 1);
        subject closed("server", {{"listen", "handoff://" + name + "?allow=" + other}});
        co_await closed.start();
        must(co_await handoff::hand_over(name, "{}", client.server.native_handle()));
        co_await until([&] { return closed.events.has("peer_not_allowed"); });
        co_await closed->stop(0s);
    });
}

TEST_P(handed_over, a_client_over_the_limit_that_takes_no_refusal_holds_up_no_other) {
    run([&]() -> task<void> {
        for (const std::string type : {"server", "cache"}) {
            subject limited(type, listening({{"max_connections", 1}}));
            co_await limited.start();
            talker served = co_await join();
            co_await until([&] { return limited->count().connections_now == 1; });
            handoff::testing::client_ends full = handoff::testing::socket_pair();
            const std::string piece(4096, 'x');
            while (::send(full.ours.get(), piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
            }
            must(co_await handoff::hand_over(path(), "{}", full.ours.get()));
            co_await until([&] { return limited->count().connections_refused == 1; });
            talker refused = co_await join();
            EXPECT_NE(co_await refused.rest(), "");
            EXPECT_EQ(limited->count().connections_refused, 2U);
            co_await limited->stop(0s);
        }
    });
}

TEST_P(handed_over, clients_see_the_end_though_the_other_program_keeps_their_socket) {
    run([&]() -> task<void> {
        for (const int threads : {1, 2}) {
            for (const std::string type : {"server", "cache"}) {
                subject s(type, listening({{"max_connections", 1}, {"threads", threads}}));
                co_await s.start();
                auto one = co_await connect();
                must(co_await handoff::hand_over(path(), "{}", one.server.native_handle()));
                co_await until([&] { return s->count().connections_now == 1; });
                auto other = co_await connect();
                must(co_await handoff::hand_over(path(), "{}", other.server.native_handle()));
                talker refused(std::move(other.client));
                EXPECT_NE(co_await refused.rest(), "");
                co_await s->stop(0s);
                talker stopped(std::move(one.client));
                EXPECT_EQ(co_await stopped.rest(), "");
            }
        }
    });
}

TEST_P(handed_over, readers_that_are_too_slow_see_that_they_were_disconnected) {
    run([&]() -> task<void> {
        subject server("server", listening({{"max_queue", "64k"}, {"max_line", "8k"}}));
        co_await server.start();
        auto slow = co_await connect();
        must(co_await handoff::hand_over(path(), "{}", slow.server.native_handle()));
        co_await until([&] { return server->count().connections_now == 1; });
        talker sender = co_await join();
        co_await until([&] { return server->count().connections_now == 2; });
        co_await say_until_other_is_disconnected(sender, server);
        EXPECT_TRUE(server.events.has("client 1 reads too slowly: disconnected"));
        talker disconnected(std::move(slow.client));
        EXPECT_NE(co_await disconnected.rest(), "");
        co_await server->stop(0s);
    });
}

TEST_P(handed_over, a_runtime_restarts_on_its_socket) {
    run([&]() -> task<void> {
        subject server("server", listening());
        for (int i = 0; i < 3; ++i) {
            co_await server.start();
            must_do(co_await server->check_restart(server.parse(listening()), false));
            subject second("server", listening());
            EXPECT_THAT(co_await second.failure_to_start(), HasSubstr("serves on " + path()));
            talker client = co_await join();
            co_await until([&] { return server->count().connections_now == 1; });
            co_await server->stop(0s);
        }
        const json abstract = {{"listen", "handoff://@eddy-h-" + std::to_string(getpid())}};
        subject nameless("server", abstract);
        for (int i = 0; i < 3; ++i) {
            co_await nameless.start();
            co_await nameless->stop(0s);
        }
        subject misplaced("server", {{"listen", "handoff:///no/such/folder/s"}});
        EXPECT_THAT(co_await misplaced.failure_to_start(), HasSubstr("create it first"));
    });
}

}  // namespace
}  // namespace eddy::runtime
