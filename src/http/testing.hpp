// Fixture of this layer's tests: a handler that answers by path, and sessions that serve it.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http::testing {

using namespace std::chrono_literals;
using eddy::testing::error_of;
using eddy::testing::must;

/// Answers by a callable, and counts.
class test_handler final : public request_handler {
public:
    using work = std::function<task<response>(request&)>;

    task<response> handle(request& incoming) override {
        ++requests;
        return answer(incoming);
    }
    response reject(int status, std::string_view what) override {
        ++rejections;
        return response(status, "text/plain", std::string(what));
    }

    work answer;
    int requests = 0;
    int rejections = 0;
};

/// Runs tests on each backend, with `handler_` behind every connection that is accepted.
class with_server : public eddy::testing::on_io_backend {
protected:
    with_server() {
        limits_.parser.body = 1000;
        limits_.request_time = 50ms;
        limits_.read_time = 50ms;
        limits_.idle_time = 100ms;
        limits_.linger_time = 50ms;
    }

    /// Sends `text` on a new connection and gives back all that comes until the server closes.
    std::string talk(std::string text, bool half_close = false) {
        std::string answer;
        with_session([&](stream& client) -> task<void> {
            // A server that has enough closes while more is sent.
            static_cast<void>(co_await client.write_all(text));
            if (half_close) EXPECT_TRUE(client.shutdown_write());
            co_await read_all(client, answer);
            client.close();
        });
        return answer;
    }

    using steps = std::function<task<void>(stream& client)>;

    /// Runs `body` with the client's end of a new connection, and awaits that its session ends.
    void with_session(steps body) {
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            if (socket_buffer_ > 0) {
                tcp::socket_options small;
                small.send_buffer = small.receive_buffer = socket_buffer_;
                must(tcp::apply(both.client, small));
                must(tcp::apply(both.server, small));
            }
            co_await join_scope([&](scope& serving) {
                serving.spawn(serve(std::move(both.server), handler_, limits_));
                return body(both.client);
            });
        });
    }

    /// Reads until the peer closes.
    static task<void> read_all(stream& from, std::string& into) {
        for (;;) {
            auto received = co_await from.read();
            if (!received) co_return;
            into += received->text();
        }
    }

    /// Reads until `into` holds `end`; false when the peer closes first.
    static task<bool> read_until(stream& from, std::string& into, std::string end) {
        while (into.find(end) == std::string::npos) {
            auto received = co_await from.read();
            if (!received) co_return false;
            into += received->text();
        }
        co_return true;
    }

    test_handler handler_;
    session_limits limits_;
    int socket_buffer_ = 0;  // bytes of the kernel's buffers of with_session(); 0: as they are
};

}  // namespace eddy::http::testing

/// Declares tests of `suite`, a class that derives from on_io_backend, on all backends.
#define EDDY_HTTP_ON_EVERY_BACKEND(suite)                                                 \
    INSTANTIATE_TEST_SUITE_P(                                                             \
        http, suite,                                                                      \
        ::testing::Values(::eddy::io_backend_kind::uring, ::eddy::io_backend_kind::epoll, \
                          ::eddy::io_backend_kind::sim),                                  \
        ::eddy::testing::io_backend_name)
