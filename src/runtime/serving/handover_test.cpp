// Listeners that pass from an instance to the next one: clients of both are served meanwhile, and a
// next instance that does not start leaves the one before as it was.
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(handover);

json at_port_of(subject& of, json more = json::object()) {
    more["port"] = of->local().port();
    return more;
}

TEST_P(handover, clients_of_both_instances_are_served) {
    run([&]() -> task<void> {
        subject before("server", any_port);
        co_await before.start();
        talker old_one = co_await talker::to(before->local());
        talker old_two = co_await talker::to(before->local());
        co_await until([&] { return before->count().connections_now == 2; });

        auto listeners = co_await before->hand_over_listeners();
        // One that connects meanwhile waits.
        talker waiting = co_await talker::to(before->local());
        successor next("server", at_port_of(before, {{"threads", 2}}), listeners);
        must_do(co_await next->start());
        EXPECT_EQ(next->local(), before->local());
        talker other = co_await talker::to(next->local());
        co_await until([&] { return next->count().connections_now == 2; });
        co_await waiting.say("new\n");
        EXPECT_EQ(co_await other.line(), "new");
        co_await old_one.say("old\n");
        EXPECT_EQ(co_await old_two.line(), "old");

        co_await before->stop(0s);
        EXPECT_EQ(co_await old_one.rest(), "");
        co_await other.say("on\n");
        EXPECT_EQ(co_await waiting.line(), "on");
        co_await next->stop(0s);
    });
}

TEST_P(handover, an_address_that_is_not_wanted_any_more_is_closed) {
    run([&]() -> task<void> {
        subject before("server", any_port);
        co_await before.start();
        const endpoint old_address = before->local();
        auto listeners = co_await before->hand_over_listeners();
        // Its unchanged port 0 would be the same one.
        subject other("server", any_port);
        co_await other.start();
        const json free_one = at_port_of(other);
        co_await other->stop(0s);
        successor next("server", free_one, listeners);
        must_do(co_await next->start());
        EXPECT_NE(next->local(), old_address);
        EXPECT_FALSE(co_await loop::current().connect(old_address));
        co_await before->stop(0s);
        co_await next->stop(0s);
    });
}

TEST_P(handover, peers_of_a_server_over_udp_stay_known) {
    run([&]() -> task<void> {
        subject before("server", {{"port", 0}, {"udp", true}});
        co_await before.start();
        datagram client = must(here().bind_datagram(loopback()));
        for (const unsigned received : {1U, 2U}) {
            must(client.send_to(as_bytes("hello"), before->local()));
            co_await until([&] { return before->count().messages_in == received; });
        }
        datagram unconfirmed = must(here().bind_datagram(loopback()));
        must(unconfirmed.send_to(as_bytes("hello"), before->local()));
        co_await until([&] { return before->count().messages_in == 3; });
        EXPECT_EQ(must(co_await client.receive()).payload.text(), "hello");

        successor next("server", {{"port", 0}, {"udp", true}, {"mode", "out"}},
                       co_await before->hand_over_listeners());
        must_do(co_await next->start());
        EXPECT_EQ(next->count().connections_now, 1U);
        EXPECT_EQ(must_do(co_await next->send("news")), 1U);
        EXPECT_EQ(must(co_await client.receive()).payload.text(), "news");
        co_await before->stop(0s);
        co_await next->stop(0s);
    });
}

TEST_P(handover, a_port_that_the_kernel_chose_stays_at_another_address) {
    run([&]() -> task<void> {
        for (const bool is_udp : {false, true}) {
            const auto at = [is_udp](std::string_view address) {
                return json{{"port", 0}, {"udp", is_udp}, {"bind", address}};
            };
            subject before("server", at("127.0.0.1"));
            co_await before.start();
            const std::uint16_t port = before->local().port();
            successor next("server", at("*"), co_await before->hand_over_listeners());
            must_do(co_await next->start());
            EXPECT_EQ(next->local().port(), port);
            co_await before->stop(0s);
            // The next restart begins there.
            successor third("server", at("127.0.0.1"), co_await next->hand_over_listeners());
            must_do(co_await third->start());
            EXPECT_EQ(third->local(), must(endpoint::ip("127.0.0.1", port)));
            co_await next->stop(0s);
            co_await third->stop(0s);
        }
    });
}

TEST_P(handover, a_port_that_the_kernel_chose_is_given_up_where_it_is_not_free) {
    run([&]() -> task<void> {
        for (const bool is_udp : {false, true}) {
            const auto at = [is_udp](std::string_view address, int port) {
                return json{{"port", port}, {"udp", is_udp}, {"bind", address}};
            };
            subject before("server", at("127.0.0.1", 0));
            co_await before.start();
            const std::uint16_t port = before->local().port();
            subject other("server", at("127.0.0.2", port));
            co_await other.start();
            successor next("server", at("127.0.0.2", 0), co_await before->hand_over_listeners());
            must_do(co_await next->start());
            EXPECT_NE(next->local().port(), port);
            co_await before->stop(0s);
            co_await other->stop(0s);
            co_await next->stop(0s);
        }
    });
}

TEST_P(handover, one_that_does_not_start_gives_the_listeners_back) {
    run([&]() -> task<void> {
        subject before("proxy", {{"port", 0}, {"backend", ":1"}});
        co_await before.start();
        const endpoint address = before->local();
        auto listeners = co_await before->hand_over_listeners();
        // Its certificate cannot be read.
        successor next("proxy",
                       {{"port", address.port()},
                        {"backend", ":1"},
                        {"tls", true},
                        {"cert", "/nowhere/cert.pem"}},
                       listeners);
        EXPECT_FALSE(co_await next->start());
        must_do(before->take_back(*listeners));
        EXPECT_EQ(before->local(), address);
        talker client = co_await talker::to(address);
        co_await until([&] { return before->count().connections_total == 1; });
        co_await before->stop(0s);
    });
}

TEST_P(handover, what_the_next_one_has_closed_is_opened_again) {
    run([&]() -> task<void> {
        subject before("server", any_port);
        co_await before.start();
        auto listeners = co_await before->hand_over_listeners();
        listeners->close();
        must_do(before->take_back(*listeners));
        talker client = co_await talker::to(before->local());
        co_await until([&] { return before->count().connections_now == 1; });
        co_await before->stop(0s);
    });
}

TEST_P(handover, an_address_that_is_lost_is_opened_again_once_it_is_free) {
    run([&]() -> task<void> {
        for (const bool is_udp : {false, true}) {
            subject before("server", {{"port", 0}, {"udp", is_udp}});
            co_await before.start();
            const endpoint address = before->local();
            auto listeners = co_await before->hand_over_listeners();
            listeners->close();
            subject other("server", {{"port", address.port()}, {"udp", is_udp}});
            // On a ring a closed socket has its address for a moment.
            while (!co_await other->start()) must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(before->fault(), "");
            EXPECT_FALSE(before->take_back(*listeners));
            EXPECT_THAT(before->fault(), StartsWith("not listening on "));
            EXPECT_THAT(before->fault(), HasSubstr(std::to_string(address.port())));
            EXPECT_EQ(before->local(), address);
            co_await other->stop(0s);
            co_await until([&] { return before->fault().empty(); });
            EXPECT_TRUE(before.events.has("listens on all of its addresses again"));
            if (!is_udp) {
                talker client = co_await talker::to(address);
                co_await until([&] { return before->count().connections_total == 1; });
            }
            // It can be handed over and stopped as ever.
            listeners = co_await before->hand_over_listeners();
            EXPECT_EQ(listeners->all.size() + (listeners->bound ? 1 : 0), 1U);
            co_await before->stop(0s);
        }
    });
}

TEST_P(handover, attempts_to_open_an_address_end_with_a_restart_and_a_stop) {
    run([&]() -> task<void> {
        for (const bool is_udp : {false, true}) {
            subject before("server", {{"port", 0}, {"udp", is_udp}});
            co_await before.start();
            auto listeners = co_await before->hand_over_listeners();
            listeners->close();
            subject other("server", {{"port", before->local().port()}, {"udp", is_udp}});
            while (!co_await other->start()) must(co_await loop::current().sleep_for(1ms));
            EXPECT_FALSE(before->take_back(*listeners));
            EXPECT_FALSE(before->take_back(*(co_await before->hand_over_listeners())));
            EXPECT_THAT(before->fault(), StartsWith("not listening on "));
            co_await before->stop(0s);
            EXPECT_EQ(before->fault(), "");
            co_await other->stop(0s);
        }
    });
}

TEST_P(handover, a_site_ends_kept_connections_with_the_next_response) {
    run([&]() -> task<void> {
        subject before("http", any_port);
        co_await before.start();
        talker kept = co_await talker::to(before->local());
        const std::string request = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
        co_await kept.say(request);
        co_await until([&] { return before->count().messages_in == 1; });
        auto listeners = co_await before->hand_over_listeners();
        scope stopping;
        stopping.spawn(before->stop(1h));
        must(co_await loop::current().sleep_for(10ms));
        co_await kept.say(request);
        const std::string both = co_await kept.rest();
        EXPECT_EQ(both.find("HTTP/1.1 404"), 0U) << both;
        EXPECT_NE(both.rfind("HTTP/1.1 404"), 0U) << both;
        EXPECT_NE(both.rfind("Connection: close"), std::string::npos) << both;
        co_await stopping.join();
    });
}

TEST_P(handover, the_end_of_a_drain_closes_what_it_waits_for) {
    run([&]() -> task<void> {
        subject before("http", any_port);
        co_await before.start();
        talker kept = co_await talker::to(before->local());
        co_await until([&] { return before->count().connections_now == 1; });
        auto listeners = co_await before->hand_over_listeners();
        scope stopping;
        stopping.spawn(before->stop(1h));
        must(co_await loop::current().sleep_for(10ms));
        before->end_drain();
        co_await stopping.join();
        EXPECT_EQ(co_await kept.rest(), "");
    });
}

}  // namespace
}  // namespace eddy::runtime
