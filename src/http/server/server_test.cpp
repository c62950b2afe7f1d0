// Tests of servers: serving on one loop and on several, their limit, and their end in order.
#include <eddy/http/server.hpp>

#include <eddy/http/router.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/transport/transport.hpp>

#include "http/server/server_worker.hpp"
#include "io/testing.hpp"
#include "serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::testing::error_of;
using eddy::testing::must;
using serving::testing::talker;
using serving::testing::until;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class http_server : public eddy::testing::on_io_backend {};

INSTANTIATE_TEST_SUITE_P(http, http_server,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

server_options on_any_port(std::size_t threads = 1) {
    server_options made;
    made.listen = {"tcp://127.0.0.1:0"};
    made.threads = threads;
    return made;
}

/// Answers with the number of the handler, which belongs to one loop.
class numbered final : public request_handler {
public:
    explicit numbered(std::size_t number) : number_(number) {}
    ~numbered() { EXPECT_EQ(std::this_thread::get_id(), thread_); }
    task<response> handle(request&) override {
        EXPECT_EQ(std::this_thread::get_id(), thread_);
        co_return text(std::to_string(number_));
    }
    response reject(int status, std::string_view) override { return response(status); }

private:
    std::size_t number_;
    std::thread::id thread_ = std::this_thread::get_id();
};

/// Waits for an event of the test, on the loop of the test.
class gate final : public request_handler {
public:
    task<response> handle(request&) override {
        ++waiting;
        const auto opened = co_await open.wait();
        co_return text(opened ? "through" : "cancelled");
    }
    response reject(int status, std::string_view) override { return response(status); }

    event open;
    int waiting = 0;
};

task<std::string> ask(talker& client, std::string fields = "") {
    co_await client.say("GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    std::size_t size = 0;
    for (std::string line = co_await client.line(); line != "\r"; line = co_await client.line())
        if (line.starts_with("Content-Length: ")) size = std::stoul(line.substr(16));
    co_return co_await client.bytes(size);
}

task<talker> join(const server& site) { return talker::to(site.addresses()[0]); }

TEST_P(http_server, one_handler_serves_all_loops) {
    run([]() -> task<void> {
        std::atomic<int> requests = 0;
        router app;
        app.get("/", [&requests](request&) -> task<response> {
            return [](int number) -> task<response> {
                co_return text(std::to_string(number));
            }(++requests);
        });
        for (const std::size_t threads : {1U, 3U}) {
            server site(app, on_any_port(threads));
            EXPECT_TRUE(site.addresses().empty());
            must(co_await site.start());
            EXPECT_EQ(site.addresses().size(), 1U);
            EXPECT_NE(site.addresses()[0].port(), 0);
            std::vector<talker> clients;
            for (int i = 0; i < 6; ++i) {
                clients.push_back(co_await join(site));
                EXPECT_EQ(co_await ask(clients.back()), std::to_string(requests.load()));
            }
            EXPECT_EQ(site.connections(), 6U);
            co_await site.stop(1h);
            for (talker& each : clients) EXPECT_EQ(co_await each.rest(), "");
            EXPECT_TRUE(site.addresses().empty());
            EXPECT_EQ(site.connections(), 0U);
        }
    });
}

TEST_P(http_server, a_factory_makes_a_handler_for_each_loop_on_its_thread) {
    run([]() -> task<void> {
        for (const std::size_t threads : {1U, 3U}) {
            server site([](std::size_t loop) { return std::make_shared<numbered>(loop); },
                        on_any_port(threads));
            must(co_await site.start());
            std::vector<talker> clients;
            std::multiset<std::string> loops;
            for (std::size_t i = 0; i < 2 * threads; ++i) {
                clients.push_back(co_await join(site));
                loops.insert(co_await ask(clients.back()));
            }
            for (std::size_t i = 0; i < threads; ++i)
                EXPECT_EQ(loops.count(std::to_string(i)), 2U) << i;
            co_await site.stop(1h);
        }
    });
}

TEST_P(http_server, listens_on_several_addresses) {
    run([]() -> task<void> {
        numbered same(7);
        server_options options = on_any_port();
        options.listen.push_back("tcp://127.0.0.1:0");
        server site(same, options);
        must(co_await site.start());
        EXPECT_EQ(site.addresses().size(), 2U);
        for (const endpoint& each : site.addresses()) {
            talker client = co_await talker::to(each);
            EXPECT_EQ(co_await ask(client), "7");
        }
        co_await site.stop(1h);
    });
}

TEST_P(http_server, listens_on_a_unix_socket) {
    run([]() -> task<void> {
        const eddy::testing::temporary_folder folder;
        for (const std::size_t threads : {1U, 2U}) {
            server_options options = on_any_port(threads);
            options.listen = {"unix://" + folder.file("site.sock")};
            server site([](std::size_t loop) { return std::make_shared<numbered>(loop); }, options);
            must(co_await site.start());
            talker client = co_await join(site);
            EXPECT_EQ(co_await ask(client), "0");
            co_await site.stop(1h);
        }
    });
}

TEST_P(http_server, a_connection_beyond_the_limit_gets_503) {
    run([]() -> task<void> {
        for (const std::size_t threads : {1U, 2U}) {
            server_options options = on_any_port(threads);
            options.max_connections = 2;
            server site([](std::size_t loop) { return std::make_shared<numbered>(loop); }, options);
            must(co_await site.start());
            talker a = co_await join(site);
            static_cast<void>(co_await ask(a));
            talker b = co_await join(site);
            static_cast<void>(co_await ask(b));
            talker late = co_await join(site);
            const std::string refused = co_await late.rest();
            EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
            EXPECT_THAT(refused, HasSubstr("\r\nConnection: close\r\n"));
            a = talker();
            co_await until([&] { return site.connections() == 1; });
            talker next = co_await join(site);
            static_cast<void>(co_await ask(next));
            co_await site.stop(1h);
        }
    });
}

TEST_P(http_server, a_stop_awaits_the_response_at_hand_and_closes_idle_connections) {
    run([]() -> task<void> {
        gate app;
        server site(app, on_any_port());
        must(co_await site.start());
        talker idle = co_await join(site);
        talker busy = co_await join(site);
        co_await busy.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return app.waiting == 1 && site.connections() == 2; });
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(site.stop(1h));
            both.spawn(site.stop(1h));  // awaits the other
            EXPECT_EQ(co_await idle.rest(), "");
            app.open.set();
            const std::string answer = co_await busy.rest();
            EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
            EXPECT_THAT(answer, EndsWith("through"));
            busy = talker();  // the session lingers until then
        });
        co_await site.stop(1h);
    });
}

TEST_P(http_server, a_stop_cuts_what_takes_longer_than_its_limit) {
    run([]() -> task<void> {
        gate app;
        server site(app, on_any_port());
        must(co_await site.start());
        talker busy = co_await join(site);
        co_await busy.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return app.waiting == 1; });
        co_await site.stop(20ms);
        EXPECT_THAT(co_await busy.rest(), Not(HasSubstr("through")));
    });
}

TEST_P(http_server, a_connection_that_rests_is_served_on_and_closed_by_a_stop) {
    run([this]() -> task<void> {
        numbered same(5);
        server site(same, on_any_port());
        must(co_await site.start());
        talker client = co_await join(site);
        talker silent = co_await join(site);
        EXPECT_EQ(co_await ask(client), "5");
        for (int i = 0; i < 2; ++i) {
            must(co_await here().sleep_for(server_worker::rest_after + 100ms));
            EXPECT_EQ(site.connections(), 2U);
            // A part of a request that begins after the rest.
            co_await client.say("GET / HT");
            must(co_await here().sleep_for(10ms));
            co_await client.say("TP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
            for (int answers = 0; answers < 2; ++answers)
                while (co_await client.line() != "\r") continue;
            EXPECT_EQ((co_await client.bytes(1)), "5");
        }
        must(co_await here().sleep_for(server_worker::rest_after + 100ms));
        co_await site.stop(1h);
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_EQ(co_await silent.rest(), "");
    });
}

TEST_P(http_server, a_connection_that_rests_is_closed_after_its_idle_time) {
    run([this]() -> task<void> {
        numbered same(5);
        server_options options = on_any_port();
        options.limits.idle_time = server_worker::rest_after + 400ms;
        server site(same, options);
        must(co_await site.start());
        talker client = co_await join(site);
        EXPECT_EQ(co_await ask(client), "5");
        const time_point asked = here().now();
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_GE(here().now() - asked, server_worker::rest_after);
        EXPECT_EQ(site.connections(), 0U);
        co_await site.stop(1h);
    });
}

TEST_P(http_server, a_run_ends_in_order_when_it_is_cancelled) {
    run([]() -> task<void> {
        for (const std::size_t threads : {1U, 2U}) {
            server site([](std::size_t loop) { return std::make_shared<numbered>(loop); },
                        on_any_port(threads));
            talker client;
            co_await with_scope([&](scope& running) -> task<void> {
                running.spawn([](server& of) -> task<void> { must(co_await of.run()); }(site));
                co_await until([&] { return !site.addresses().empty(); });
                client = co_await join(site);
                EXPECT_EQ(co_await ask(client), "0");
            });
            EXPECT_EQ(co_await client.rest(), "");
            EXPECT_TRUE(site.addresses().empty());
        }
    });
}

TEST_P(http_server, a_run_ends_with_a_stop) {
    run([]() -> task<void> {
        numbered same(1);
        server site(same, on_any_port());
        co_await join_scope([&](scope& running) -> task<void> {
            running.spawn([](server& of) -> task<void> { must(co_await of.run()); }(site));
            co_await until([&] { return !site.addresses().empty(); });
            co_await site.stop(1h);
        });
    });
}

TEST_P(http_server, a_start_that_fails_leaves_nothing) {
    run([]() -> task<void> {
        numbered same(1);
        server_options options = on_any_port();
        options.listen.push_back("gopher://x:1");
        server wrong(same, options);
        EXPECT_EQ(error_of(co_await wrong.start()), errc::bad_address);
        server failing(
            [](std::size_t loop) -> std::shared_ptr<request_handler> {
                if (loop == 1) throw std::runtime_error("no second handler");
                return std::make_shared<numbered>(loop);
            },
            on_any_port(2));
        bool has_thrown = false;
        try {
            static_cast<void>(co_await failing.start());
        } catch (const std::runtime_error&) {
            has_thrown = true;
        }
        EXPECT_TRUE(has_thrown);
        EXPECT_TRUE(failing.addresses().empty());
    });
}

}  // namespace
}  // namespace eddy::http
