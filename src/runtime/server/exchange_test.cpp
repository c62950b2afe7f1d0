// Tests of the exchange between the loops of one server.
#include "runtime/server/exchange.hpp"

#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace eddy::runtime::server {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_IO_BACKEND(server_exchange);

shared_messages of(std::string_view text) {
    byte_buffer bytes;
    bytes.append(text);
    return {std::make_shared<const byte_buffer>(std::move(bytes)), 1};
}

TEST_P(server_exchange, messages_reach_all_other_inboxes_in_order) {
    run([&]() -> task<void> {
        exchange between(1000);
        exchange_end a(between);
        exchange_end b(between);
        exchange_end c(between);
        for (const char* const each : {"1", "2", "3"}) a.send(of(each));
        b.send(of("4"));
        // A loop gets none of its own messages.
        EXPECT_EQ(a.own().front()->payload->text(), "4");
        EXPECT_EQ(b.own().front()->payload->text(), "1");
        must(co_await c.own().came().wait());
        for (const char* const each : {"1", "2", "3", "4"}) {
            const auto next = c.own().front();
            if (!next) throw std::runtime_error("it is empty");
            EXPECT_EQ(next->payload->text(), each);
            c.own().pop();
        }
        EXPECT_FALSE(c.own().front());
        // Their wake-ups are under way.
        for (exchange_end* const each : {&a, &b}) must(co_await each->own().came().wait());
    });
}

TEST_P(server_exchange, senders_wait_while_an_inbox_is_full_and_until_half_of_it_is_free) {
    run([&]() -> task<void> {
        exchange between(100);
        exchange_end a(between);
        exchange_end b(between);
        const std::string piece(50, 'x');
        a.send(of(piece));
        EXPECT_FALSE(a.must_wait());
        a.send(of(piece));
        EXPECT_TRUE(a.must_wait());
        EXPECT_FALSE(b.must_wait());
        a.send(of("over the limit, as it was taken before"));
        bool has_room = false;
        co_await with_scope([&](scope& waiting) -> task<void> {
            waiting.spawn([](exchange_end& of, bool& done) -> task<void> {
                must(co_await of.wait_for_room());
                done = true;
            }(a, has_room));
            for (int i = 0; i < 2; ++i) {
                for (int k = 0; k < 5; ++k) co_await here().yield();
                EXPECT_FALSE(has_room);
                b.own().pop();
            }
            co_await until([&] { return has_room; });
        });
        EXPECT_FALSE(a.must_wait());
        must(co_await b.own().came().wait());
    });
}

}  // namespace
}  // namespace eddy::runtime::server
