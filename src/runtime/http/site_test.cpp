// Sites: what clients see of one, what it counts, and its end.
#include "runtime/http/site.hpp"

#include "runtime/http/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

namespace eddy::runtime::http {
namespace {

using namespace http::testing;
using ::testing::HasSubstr;

class http_site : public on_io_backend {
protected:
    http_site() { write_file(folder_, "a.txt", "hello"); }

    subject make(json options = {}) {
        options["root"] = folder_.path();
        return subject("http", with(options));
    }

    static std::map<std::string, double> requests_by_status(subject& of) {
        std::map<std::string, double> found;
        for (const metric_sample& each : of->count().samples)
            if (each.of->name == "requests_total")
                found[each.labels[0]] = std::get<double>(each.value);
        return found;
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, http_site,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(http_site, answers_pipelined_requests_in_order) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say(
            "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\nGET /missing HTTP/1.1\r\nHost: x\r\n\r\n"
            "HEAD /a.txt HTTP/1.1\r\nHost: x\r\n\r\nPOST /a.txt HTTP/1.1\r\nHost: x\r\n"
            "Content-Length: 3\r\n\r\nabcGET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ((co_await next_answer(client)).content, "hello");
        EXPECT_EQ((co_await next_answer(client)).status(), "404");
        EXPECT_THAT((co_await next_answer(client, false)).head, HasSubstr("Content-Length: 5\n"));
        const answer posted = co_await next_answer(client);
        EXPECT_EQ(posted.status(), "405");
        EXPECT_THAT(posted.head, HasSubstr("Allow: GET, HEAD\n"));
        EXPECT_EQ((co_await next_answer(client)).content, "hello");
        co_await s->stop(0s);
    });
}

TEST_P(http_site, counts_requests_by_status) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker client = co_await talker::to(s->local());
        static_cast<void>(co_await get(client, "/a.txt"));
        static_cast<void>(co_await get(client, "/a.txt"));
        static_cast<void>(co_await get(client, "/missing"));
        static_cast<void>(co_await get_from(s, "/bad\x01"));
        const std::map<std::string, double> wanted{
            {"1xx", 0}, {"2xx", 2}, {"3xx", 0}, {"4xx", 2}, {"5xx", 0}};
        EXPECT_EQ(requests_by_status(s), wanted);
        EXPECT_EQ(s->count().messages_in, 4U);
        EXPECT_EQ(s->count().latency->count(), 4U);
        EXPECT_GT(s->count().bytes_in, 80U);
        EXPECT_GT(s->count().bytes_out, 80U);
        co_await s->stop(0s);
        EXPECT_EQ(requests_by_status(s), wanted) << "lost at the stop";
        EXPECT_EQ(s->count().latency->count(), 4U);
    });
}

TEST_P(http_site, says_that_it_is_full) {
    run([this]() -> task<void> {
        subject s = make({{"max_connections", 1}});
        co_await s.start();
        talker first = co_await talker::to(s->local());
        EXPECT_EQ((co_await get(first, "/a.txt")).status(), "200");
        const answer refused = co_await get_from(s, "/a.txt");
        EXPECT_EQ(refused.status(), "503");
        EXPECT_EQ(refused.content, "the server is full; try again shortly\n");
        EXPECT_EQ(s->count().connections_refused, 1U);
        co_await s->stop(0s);
    });
}

TEST_P(http_site, finishes_the_response_at_hand_when_it_stops) {
    static constexpr std::size_t size = 8 << 20;
    write_file(folder_, "large", std::string(size, 'x'));
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker idle = co_await talker::to(s->local());
        EXPECT_EQ((co_await get(idle, "/a.txt")).status(), "200");
        talker busy = co_await talker::to(s->local());
        co_await busy.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        const std::string head = co_await busy.line();
        co_await join_scope([&](scope& stopping) -> task<void> {
            stopping.spawn([](subject& of) -> task<void> { co_await of->stop(30s); }(s));
            EXPECT_EQ(co_await idle.rest(), "");
            const std::string rest = co_await busy.rest();
            EXPECT_EQ(rest.size() - rest.find("\r\n\r\n") - 4, size);
        });
    });
}

// A release that a link names takes the place of another without a client's noticing.
TEST_P(http_site, reads_its_folder_and_its_log_anew_while_it_serves) {
    static constexpr std::size_t size = 8 << 20;
    temporary_folder other;
    write_file(folder_, "large", std::string(size, 'x'));
    write_file(other, "a.txt", "news!");
    temporary_folder links;
    const std::string current = links.file("current");
    const std::string log = links.file("log");
    std::filesystem::create_directory_symlink(folder_.path(), current);
    for (const char* const cache : {"0", "1M"}) {
        run([&]() -> task<void> {
            json options = {{"root", current}, {"cache", cache}};
            // The log's thread is none of the simulator's.
            if (!simulated()) options["access_log"] = log;
            subject s("http", with(options));
            co_await s.start();
            talker kept = co_await talker::to(s->local());
            EXPECT_EQ((co_await get(kept, "/a.txt")).content, "hello");
            talker busy = co_await talker::to(s->local());
            co_await busy.say("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            const std::string head = co_await busy.line();

            if (!simulated()) std::filesystem::rename(log, log + ".1");
            std::filesystem::remove(current);
            const auto missing = co_await s->reread();
            EXPECT_FALSE(missing);
            EXPECT_EQ((co_await get(kept, "/a.txt")).content, "hello");
            std::filesystem::create_directory_symlink(other.path(), current);
            const auto read = co_await s->reread();
            EXPECT_TRUE(read && *read);

            EXPECT_EQ((co_await get(kept, "/a.txt")).content, "news!");
            EXPECT_EQ((co_await get(kept, "/large")).status(), "404");
            const std::string rest = co_await busy.rest();
            EXPECT_EQ(rest.size() - rest.find("\r\n\r\n") - 4, size);
            EXPECT_NE(std::filesystem::exists(log), simulated());
            co_await s->stop(0s);
        });
        std::filesystem::remove(current);
        std::filesystem::create_directory_symlink(folder_.path(), current);
    }
}

TEST_P(http_site, cuts_what_takes_longer_than_the_stop_may) {
    static constexpr std::size_t size = 32 << 20;
    write_file(folder_, "large", std::string(size, 'x'));
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker busy = co_await talker::to(s->local());
        co_await busy.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await until([&] { return s->count().connections_now == 1; });
        co_await s->stop(20ms);
        EXPECT_LT((co_await busy.rest()).size(), size);
        EXPECT_EQ(s->count().errors, 1U);
    });
}

TEST_P(http_site, survives_clients_that_leave_in_the_middle) {
    write_file(folder_, "large", std::string(8 << 20, 'x'));
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        for (int i = 0; i < 10; ++i) {
            talker client = co_await talker::to(s->local());
            co_await client.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
            if (i % 2 == 0) static_cast<void>(co_await client.bytes(1000));
        }
        co_await until([&] {
            const metrics now = s->count();
            return now.connections_total == 10 && now.connections_now == 0;
        });
        EXPECT_EQ((co_await get_from(s, "/a.txt")).content, "hello");
        co_await s->stop(0s);
    });
}

TEST_P(http_site, starts_again) {
    run([this]() -> task<void> {
        subject s = make();
        for (int i = 0; i < 2; ++i) {
            co_await s.start();
            EXPECT_EQ((co_await get_from(s, "/a.txt")).content, "hello");
            co_await s->stop(0s);
        }
        EXPECT_EQ(s->count().messages_in, 2U);
    });
}

}  // namespace
}  // namespace eddy::runtime::http
