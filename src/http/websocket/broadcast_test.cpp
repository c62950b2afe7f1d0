// Broadcasts: compressed once for all peers, in order with other messages, in bounded steps.
#include <eddy/http/broadcast.hpp>

#include <eddy/io/when.hpp>

#include "http/testing.hpp"
#include "http/websocket/message_deflate.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::websocket::deflate_policy;
using testing::error_of;

std::string long_text(int seed) {
    std::string text;
    for (int n = 0; text.size() < 4096; ++n) text += std::to_string(n * seed) + ",";
    return text;
}

/// A server whose WebSockets are one group, and their clients.
class websocket_broadcast : public testing::with_server {
protected:
    websocket_broadcast() {
        handler_.answer = [this](request& incoming) -> task<response> {
            co_return upgrade(incoming, server_,
                              [this](websocket peer) { return stay(std::move(peer)); });
        };
        server_.deflate = client_.session.deflate = frugal_deflate;
        client_.session.close_time = server_.close_time = 1s;
    }

    task<void> stay(websocket peer) {
        const auto place = group_.join(peer);
        present_.push_back(&peer);
        for (;;) {
            auto message = co_await peer.receive();
            if (!message) break;
        }
        std::erase(present_, &peer);
    }

    using work = std::function<task<void>(std::vector<websocket>& clients)>;

    /// Runs `body` with so many clients.
    void with_clients(std::size_t count, work body) {
        run([&]() -> task<void> {
            auto listening = transport::listen("tcp://127.0.0.1:0");
            EXPECT_TRUE(listening);
            const std::string url =
                "ws://127.0.0.1:" + std::to_string(listening->local().port()) + "/";
            co_await with_scope([&](scope& serving) -> task<void> {
                serving.spawn(accept_all(*listening, serving));
                std::vector<websocket> clients;
                while (clients.size() < count) {
                    auto opened = co_await connect_websocket(url, client_);
                    EXPECT_TRUE(opened);
                    if (!opened) co_return;
                    clients.push_back(std::move(*opened));
                    while (group_.size() < clients.size()) co_await loop::current().yield();
                }
                co_await body(clients);
                for (websocket& each : clients) EXPECT_TRUE(co_await each.close());
                while (group_.size() > 0) co_await loop::current().yield();
            });
        });
    }

    task<void> accept_all(listener& from, scope& serving) {
        for (;;) {
            auto peer = co_await from.accept();
            if (!peer) co_return;
            serving.spawn(serve(std::move(*peer), handler_, limits_));
        }
    }

    static task<std::string> next(websocket& from) {
        auto got = co_await from.receive();
        co_return got ? std::string(got->data) : got.error().message();
    }

    websocket_options server_;
    websocket_client_options client_;
    websocket_group group_;
    std::vector<websocket*> present_;
};

EDDY_HTTP_ON_EVERY_BACKEND(websocket_broadcast);

TEST_P(websocket_broadcast, compresses_once_for_all_peers) {
    constexpr std::size_t count = 100;
    with_clients(count, [this](std::vector<websocket>& clients) -> task<void> {
        const std::string text = long_text(3);
        const std::uint64_t before = message_compressor::messages_begun();
        const prepared_message news(text);
        const auto reached = co_await group_.broadcast(news);
        EXPECT_EQ(reached.value_or(0), clients.size());
        EXPECT_EQ(message_compressor::messages_begun() - before, 1U);
        for (websocket& each : clients) EXPECT_EQ(co_await next(each), text);
    });
}

TEST_P(websocket_broadcast, keeps_the_order_with_messages_of_single_peers) {
    for (const deflate_policy& policy :
         {frugal_deflate, deflate_policy{}, deflate_policy{false, true, 9, 10}}) {
        server_.deflate = client_.session.deflate = policy;
        with_clients(3, [this](std::vector<websocket>& clients) -> task<void> {
            // A context that a broadcast disturbs would show in the next message.
            for (int round = 1; round < 5; ++round) {
                const std::string own = long_text(round);
                const std::string all = own + long_text(round + 1);
                for (websocket* const each : present_) EXPECT_TRUE(each->try_send(own));
                const prepared_message news(all);
                EXPECT_EQ((co_await group_.broadcast(news)).value_or(0), 3U);
                for (websocket* const each : present_) EXPECT_TRUE(co_await each->send(own));
                for (websocket* const each : present_) EXPECT_TRUE(co_await each->send(news));
                for (websocket& each : clients) {
                    for (const std::string* const expected : {&own, &all, &own, &all})
                        EXPECT_EQ(co_await next(each), *expected) << round;
                }
            }
        });
    }
}

TEST_P(websocket_broadcast, sends_short_and_incompressible_messages_as_they_are) {
    with_clients(2, [this](std::vector<websocket>& clients) -> task<void> {
        const std::uint64_t before = message_compressor::messages_begun();
        const prepared_message brief("brief");
        EXPECT_TRUE(co_await group_.broadcast(brief));
        EXPECT_EQ(message_compressor::messages_begun(), before);
        std::string noise;
        std::uint32_t state = 1;
        for (int i = 0; i < 5000; ++i) {
            state = state * 1664525U + 1013904223U;
            noise += static_cast<char>(state >> 24U);
        }
        const prepared_message binary(as_bytes(std::string_view(noise)));
        EXPECT_FALSE(binary.is_text());
        EXPECT_TRUE(co_await group_.broadcast(binary));
        for (websocket& each : clients) {
            EXPECT_EQ(co_await next(each), "brief");
            EXPECT_EQ(co_await next(each), noise);
        }
        const prepared_message wrong("\xff");
        EXPECT_EQ(error_of(co_await group_.broadcast(wrong)), errc::malformed);
        EXPECT_EQ(error_of(co_await present_.front()->send(wrong)), errc::malformed);
    });
}

task<void> note_order(websocket_group& group, prepared_message what, std::string& order) {
    EXPECT_TRUE(co_await group.broadcast(what));
    order += what.content();
}

TEST_P(websocket_broadcast, yields_between_many_peers_and_takes_its_turn) {
    constexpr std::size_t count = websocket_group::peers_in_a_row + 10;
    with_clients(count, [this](std::vector<websocket>& clients) -> task<void> {
        std::string order;
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(note_order(group_, prepared_message("a"), order));
            both.spawn(note_order(group_, prepared_message("b"), order));
            order += "-";
            co_return;
        });
        EXPECT_EQ(order, "-ab");
        for (websocket& each : clients) {
            EXPECT_EQ(co_await next(each), "a");
            EXPECT_EQ(co_await next(each), "b");
        }
    });
}

TEST_P(websocket_broadcast, a_full_queue_costs_no_compression) {
    server_.queue.max_queued_bytes = 64 * 1024;
    with_clients(1, [this](std::vector<websocket>& clients) -> task<void> {
        websocket& slow = *present_.front();
        const std::string text = long_text(7);
        std::size_t sent = 0;
        while (slow.try_send(text)) ++sent;
        const std::uint64_t before = message_compressor::messages_begun();
        for (int i = 0; i < 10; ++i) EXPECT_EQ(error_of(slow.try_send(text)), errc::limit_reached);
        EXPECT_EQ(message_compressor::messages_begun(), before);
        while (sent-- > 0) EXPECT_EQ(co_await next(clients.front()), text);
    });
}

}  // namespace
}  // namespace eddy::http
