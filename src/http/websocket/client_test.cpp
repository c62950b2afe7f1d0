// WebSockets of a client against those of a server: messages both ways, compression, refusals, the
// closing handshake, senders that share a connection.
#include <eddy/http/router.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/transport/transport.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::websocket::close_code;
using testing::error_of;

class websocket_client : public testing::with_server {
protected:
    websocket_client() {
        handler_.answer = [this](request& incoming) -> task<response> {
            target_ = incoming.target();
            host_ = incoming.headers().find("Host").value_or("");
            if (const auto agent = incoming.headers().find("X-Test")) field_ = *agent;
            co_return upgrade(incoming, server_, echo);
        };
        client_.session.close_time = server_.close_time = 1s;
    }

    static task<void> echo(websocket peer) {
        for (;;) {
            auto message = co_await peer.receive();
            if (!message) break;
            const auto sent = co_await peer.send(*message);
            if (!sent) break;
        }
    }

    using work = std::function<task<void>(std::string url)>;

    /// Runs `body` with the URL of a server.
    void with_url(work body) {
        run([&]() -> task<void> {
            auto listening = transport::listen("tcp://127.0.0.1:0");
            EXPECT_TRUE(listening);
            const std::string url =
                "ws://127.0.0.1:" + std::to_string(listening->local().port()) + "/chat?room=1";
            co_await with_scope([&](scope& serving) {
                serving.spawn(accept_all(*listening, serving));
                return body(url);
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

    websocket_options server_;
    websocket_client_options client_;
    std::string target_;
    std::string host_;
    std::string field_;
};

TEST_P(websocket_client, exchanges_messages_and_closes) {
    EXPECT_TRUE(client_.headers.add("X-Test", "yes"));
    with_url([this](std::string url) -> task<void> {
        auto opened = co_await connect_websocket(url, client_);
        EXPECT_TRUE(opened);
        if (!opened) co_return;
        websocket peer = std::move(*opened);
        for (const std::size_t size : {0U, 1U, 125U, 126U, 65535U, 65536U, 300'000U}) {
            const std::string text(size, 'x');
            EXPECT_TRUE(co_await peer.send(text));
            auto answer = co_await peer.receive();
            EXPECT_TRUE(answer && answer->is_text && answer->data == text) << size;
        }
        EXPECT_TRUE(co_await peer.send(as_bytes(std::string_view("\xff", 1))));
        auto binary = co_await peer.receive();
        EXPECT_TRUE(binary && !binary->is_text && binary->data == "\xff");
        EXPECT_EQ(error_of(co_await peer.send("\xff")), errc::malformed);
        EXPECT_TRUE(co_await peer.close(close_code{4002}, "done"));
        EXPECT_EQ(peer.closed_with().code, close_code{4002});
        EXPECT_EQ(error_of(co_await peer.receive()), errc::end_of_stream);
        EXPECT_FALSE(peer);
    });
    EXPECT_EQ(target_, "/chat?room=1");
    EXPECT_EQ(field_, "yes");
}

TEST_P(websocket_client, compresses_with_and_without_contexts) {
    using eddy::websocket::deflate_policy;
    for (const deflate_policy& policy :
         {frugal_deflate, deflate_policy{}, deflate_policy{false, true, 9, 10}}) {
        server_.deflate = policy;
        client_.session.deflate = policy;
        client_.needs_deflate = true;
        with_url([this](std::string url) -> task<void> {
            auto opened = co_await connect_websocket(url, client_);
            EXPECT_TRUE(opened && opened->is_compressed());
            if (!opened) co_return;
            websocket peer = std::move(*opened);
            for (int i = 0; i < 20; ++i) {
                std::string text;
                for (int n = 0; n < 400; ++n) text += std::to_string(n * i) + ",";
                EXPECT_TRUE(co_await peer.send(text));
                auto answer = co_await peer.receive();
                EXPECT_TRUE(answer && answer->data == text);
                if (!answer) break;
            }
            EXPECT_TRUE(co_await peer.close());
        });
    }
}

TEST_P(websocket_client, needs_what_the_server_must_agree_on) {
    client_.session.deflate = frugal_deflate;
    client_.needs_deflate = true;
    with_url([this](std::string url) -> task<void> {
        EXPECT_EQ(error_of(co_await connect_websocket(url, client_)), errc::unsupported);
    });
    client_.needs_deflate = false;
    with_url([this](std::string url) -> task<void> {
        auto opened = co_await connect_websocket(url, client_);
        EXPECT_TRUE(opened && !opened->is_compressed());
    });
}

TEST_P(websocket_client, keeps_the_zone_of_an_address_from_the_server) {
    if (GetParam() == io_backend_kind::sim) GTEST_SKIP() << "its network has no zones";
    run([&]() -> task<void> {
        auto listening = transport::listen("tcp://[::1]:0");
        if (!listening) co_return;  // no IPv6 here
        const std::string port = std::to_string(listening->local().port());
        co_await with_scope([&](scope& serving) -> task<void> {
            serving.spawn(accept_all(*listening, serving));
            auto opened = co_await connect_websocket("ws://[::1%1]:" + port + "/chat", client_);
            EXPECT_TRUE(opened);
            EXPECT_EQ(host_, "[::1]:" + port);
        });
    });
}

TEST_P(websocket_client, fails_when_the_answer_is_no_agreement) {
    handler_.answer = [](request&) -> task<response> { co_return text("no WebSocket here"); };
    with_url([this](std::string url) -> task<void> {
        EXPECT_EQ(error_of(co_await connect_websocket(url, client_)), errc::malformed);
        for (const std::string_view wrong :
             {"http://127.0.0.1/", "ws://", "ws:/x", "chat", "wss://a b/", "ws://h:99999/",
              "ws://[::1%/]", "ws://[zz]/"}) {
            EXPECT_EQ(error_of(co_await connect_websocket(std::string(wrong), client_)),
                      errc::bad_address)
                << wrong;
        }
    });
    // The right answer to another key.
    handler_.answer = [](request&) -> task<response> {
        response wrong(426);
        wrong.add("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        co_return wrong;
    };
    with_url([this](std::string url) -> task<void> {
        EXPECT_EQ(error_of(co_await connect_websocket(url, client_)), errc::malformed);
    });
}

task<void> send_many(websocket& to, std::string name) {
    for (int i = 0; i < 50; ++i) {
        const std::string line = name + std::to_string(i);
        EXPECT_TRUE(co_await to.send(line));
        if (i % 7 == 0) co_await loop::current().yield();
    }
}

TEST_P(websocket_client, has_several_senders) {
    client_.session.queue.max_queued_bytes = 256;
    with_url([this](std::string url) -> task<void> {
        auto opened = co_await connect_websocket(url, client_);
        EXPECT_TRUE(opened);
        if (!opened) co_return;
        websocket peer = std::move(*opened);
        std::vector<std::string> of_a;
        std::vector<std::string> of_b;
        co_await join_scope([&](scope& senders) -> task<void> {
            senders.spawn(send_many(peer, "a"));
            senders.spawn(send_many(peer, "b"));
            for (int i = 0; i < 100; ++i) {
                auto answer = co_await peer.receive();
                EXPECT_TRUE(answer);
                if (!answer) co_return;
                (answer->data.starts_with('a') ? of_a : of_b).emplace_back(answer->data.substr(1));
            }
        });
        EXPECT_EQ(of_a.size(), 50U);
        for (std::size_t i = 0; i < of_a.size(); ++i) EXPECT_EQ(of_a[i], std::to_string(i));
        for (std::size_t i = 0; i < of_b.size(); ++i) EXPECT_EQ(of_b[i], std::to_string(i));
        EXPECT_TRUE(co_await peer.close());
    });
}

TEST_P(websocket_client, may_be_dropped_open) {
    with_url([this](std::string url) -> task<void> {
        auto opened = co_await connect_websocket(url, client_);
        EXPECT_TRUE(opened);
        if (opened) EXPECT_TRUE(co_await opened->send("and gone"));
    });
}

TEST_P(websocket_client, fails_on_a_closed_one) {
    run([]() -> task<void> {
        websocket none;
        EXPECT_FALSE(none);
        EXPECT_EQ(error_of(co_await none.receive()), errc::closed);
        EXPECT_EQ(error_of(co_await none.send("x")), errc::closed);
        EXPECT_EQ(error_of(none.try_send("x")), errc::closed);
        EXPECT_EQ(error_of(none.ping()), errc::closed);
        EXPECT_EQ(error_of(co_await none.close()), errc::closed);
    });
}

EDDY_HTTP_ON_EVERY_BACKEND(websocket_client);

}  // namespace
}  // namespace eddy::http
