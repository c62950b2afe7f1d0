// Tests of kept connections that move to another instance of a site, and of the ones that stay.
#include "http/server/server_worker.hpp"
#include "runtime/http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::http::testing;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(moving_visitors);

/// Moves the clients of one site to the other, as an upgrade does.
task<std::size_t> move(subject& from, subject& to) {
    co_await from->end_accepting();
    std::size_t count = 0;
    for (;;) {
        std::vector<passed_client> moved = co_await from->hand_over_clients();
        if (moved.empty()) co_return count;
        count += moved.size();
        to->take_clients(std::move(moved));
    }
}

/// Two sites over folders whose file f names them.
struct two_sites {
    explicit two_sites(nlohmann::json options = nlohmann::json::object())
        : before("http", with(options, one)), after("http", with(options, two)) {}

    static nlohmann::json with(nlohmann::json options, const temporary_folder& root) {
        options.update(any_port);
        options["root"] = root.path();
        return options;
    }
    task<void> start() {
        write_file(one, "f", "before");
        write_file(two, "f", "after");
        co_await before.start();
        co_await after.start();
    }
    task<void> stop() {
        co_await before->stop(duration{});
        co_await after->stop(duration{});
    }

    temporary_folder one;
    temporary_folder two;
    subject before;
    subject after;
};

TEST_P(moving_visitors, go_on_where_they_are_idle) {
    for (const int threads : {1, 2})
        run([&]() -> task<void> {
            two_sites sites({{"threads", threads}});
            co_await sites.start();
            talker asked = co_await talker::to(sites.before->local());
            talker silent = co_await talker::to(sites.before->local());
            EXPECT_EQ((co_await get(asked, "/f")).content, "before");
            while (sites.before->count().connections_now < 2) co_await loop::current().yield();
            EXPECT_EQ(co_await move(sites.before, sites.after), 2U);
            for (talker* const each : {&asked, &silent, &asked}) {
                const answer got = co_await get(*each, "/f");
                EXPECT_EQ(got.content, "after");
                EXPECT_EQ(got.head.find("Connection: close"), std::string::npos);
            }
            EXPECT_EQ(sites.before->count().connections_now, 0U);
            EXPECT_EQ(sites.after->count().connections_now, 2U);
            co_await sites.stop();
        });
}

TEST_P(moving_visitors, go_on_without_a_session) {
    run([&]() -> task<void> {
        two_sites sites;
        co_await sites.start();
        talker client = co_await talker::to(sites.before->local());
        EXPECT_EQ((co_await get(client, "/f")).content, "before");
        // Its session has ended then; without that the test shows less.
        static_cast<void>(
            co_await loop::current().sleep_for(2 * eddy::http::server_worker::rest_after));
        EXPECT_EQ(co_await move(sites.before, sites.after), 1U);
        EXPECT_EQ((co_await get(client, "/f")).content, "after");
        co_await sites.stop();
    });
}

TEST_P(moving_visitors, get_one_answer_to_each_request_that_is_on_its_way) {
    run([&]() -> task<void> {
        two_sites sites;
        co_await sites.start();
        constexpr std::size_t count = 20;
        std::vector<talker> clients;
        for (std::size_t i = 0; i < count; ++i)
            clients.push_back(co_await talker::to(sites.before->local()));
        for (talker& each : clients) EXPECT_EQ((co_await get(each, "/f")).content, "before");
        for (talker& each : clients)
            co_await each.say(
                "GET /f HTTP/1.1\r\nHost: x\r\n\r\nGET /f HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(co_await move(sites.before, sites.after), count);
        for (talker& each : clients) {
            for (int i = 0; i < 2; ++i) EXPECT_EQ((co_await next_answer(each)).status(), "200");
            EXPECT_EQ((co_await get(each, "/f")).content, "after");
        }
        co_await sites.stop();
    });
}

TEST_P(moving_visitors, stay_where_a_request_has_begun_or_the_end_was_announced) {
    run([&]() -> task<void> {
        two_sites sites;
        co_await sites.start();
        talker begun = co_await talker::to(sites.before->local());
        talker ending = co_await talker::to(sites.before->local());
        EXPECT_EQ((co_await get(begun, "/f")).content, "before");
        EXPECT_EQ((co_await get(ending, "/f", "Connection: close\r\n")).content, "before");
        co_await begun.say("GET /f HT");
        while (sites.before->count().messages_in < 2) co_await loop::current().yield();
        static_cast<void>(co_await move(sites.before, sites.after));
        co_await begun.say("TP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ((co_await next_answer(begun)).status(), "200");
        EXPECT_EQ(co_await ending.rest(), "");
        co_await sites.stop();
    });
}

}  // namespace
}  // namespace eddy::runtime
