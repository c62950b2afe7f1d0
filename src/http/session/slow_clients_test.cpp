// Slow clients against the limits that sessions have by default, in the virtual time of the
// simulator: heads, bodies and readers that trickle are cut within 20 s, while others are served.
// tests/http_abuse_test.py shows the same with real attackers.
#include <eddy/http/session.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::must;

class http_slow_clients : public testing::with_server {
protected:
    http_slow_clients() {
        limits_ = session_limits();
        handler_.answer = [](request& incoming) { return answer(incoming); };
    }

    static task<response> answer(request& incoming) {
        if (incoming.path() == "/stream") {
            while (co_await incoming.body().read()) continue;
            co_return text("streamed");
        }
        if (incoming.path() == "/large") co_return text(std::string(4 << 20, 'x'));
        if (!co_await incoming.collect()) co_return response();
        co_return text("served");
    }

    using steps = std::function<task<void>(stream& client)>;

    /// The time that the server has a client for that does `slowly` for ever. One that asks each
    /// second is served meanwhile.
    duration time_of(steps slowly) {
        duration taken{};
        run([&]() -> task<void> {
            eddy::testing::connection slow = co_await connect();
            eddy::testing::connection other = co_await connect();
            if (socket_buffer_ > 0) {
                tcp::socket_options small;
                small.send_buffer = small.receive_buffer = socket_buffer_;
                must(tcp::apply(slow.client, small));
                must(tcp::apply(slow.server, small));
            }
            const time_point began = here().now();
            bool is_cut = false;
            co_await join_scope([&](scope& both) -> task<void> {
                both.spawn(serve(std::move(other.server), handler_, limits_));
                both.spawn(ask_each_second(other.client, is_cut));
                co_await with_scope([&](scope& attack) -> task<void> {
                    attack.spawn(slowly(slow.client));
                    co_await serve(std::move(slow.server), handler_, limits_);
                });
                taken = here().now() - began;
                is_cut = true;
            });
        });
        return taken;
    }

    static task<void> ask_each_second(stream& client, const bool& is_over) {
        int served = 0;
        while (!is_over) {
            must(co_await client.write_all(std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
            std::string got;
            EXPECT_TRUE(co_await read_until(client, got, "served"));
            ++served;
            must(co_await loop::current().sleep_for(1s));
        }
        EXPECT_GE(served, 10);
        client.close();
    }

    /// Sends a text, then a byte each second, and reads what comes.
    static task<void> trickle(stream& client, std::string head, char byte) {
        must(co_await client.write_all(head));
        for (;;) {
            if (!co_await loop::current().sleep_for(1s)) co_return;
            if (!co_await client.write_all(std::string_view(&byte, 1))) co_return;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(http, http_slow_clients, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(http_slow_clients, whose_heads_trickle_are_cut) {
    const duration taken = time_of(
        [](stream& client) { return trickle(client, "GET / HTTP/1.1\r\nHost: x\r\nX: ", 'y'); });
    EXPECT_GE(taken, limits_.request_time);
    EXPECT_LE(taken, 20s);
}

TEST_P(http_slow_clients, whose_bodies_trickle_are_cut) {
    const duration taken = time_of([](stream& client) {
        return trickle(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", 'y');
    });
    EXPECT_GE(taken, limits_.request_time);
    EXPECT_LE(taken, 20s);
}

TEST_P(http_slow_clients, whose_streamed_bodies_trickle_are_cut) {
    const duration taken = time_of([](stream& client) {
        return trickle(client, "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
                       'y');
    });
    EXPECT_GE(taken, limits_.read_time);
    EXPECT_LE(taken, 20s);
}

TEST_P(http_slow_clients, whose_streamed_bodies_have_the_least_rate_are_served) {
    limits_.read_time = 2s;
    constexpr std::size_t pieces = 30;
    std::string answer;
    with_session([&](stream& client) -> task<void> {
        const std::string piece(limits_.read_bytes, 'y');
        const std::string head = "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                 std::to_string(pieces * piece.size()) + "\r\n\r\n";
        must(co_await client.write_all(head));
        for (std::size_t i = 0; i < pieces; ++i) {
            must(co_await here().sleep_for(1s));
            must(co_await client.write_all(piece));
        }
        EXPECT_TRUE(co_await read_until(client, answer, "streamed"));
        client.close();
    });
    // Any rate will do for a handler whose session says so.
    limits_.read_bytes = 1;
    with_session([&](stream& client) -> task<void> {
        answer.clear();
        must(co_await client.write_all(
            std::string_view("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n")));
        for (int i = 0; i < 20; ++i) {
            must(co_await here().sleep_for(1500ms));
            must(co_await client.write_all(std::string_view("y")));
        }
        EXPECT_TRUE(co_await read_until(client, answer, "streamed"));
        client.close();
    });
}

TEST_P(http_slow_clients, wait_for_a_slow_handler_without_a_loss) {
    limits_.read_time = 2s;
    handler_.answer = [](request& incoming) -> task<response> {
        while (co_await incoming.body().read()) must(co_await loop::current().sleep_for(10s));
        co_return text("streamed");
    };
    std::string answer;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(
            std::string_view("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")));
        for (const std::string_view piece : {"b", "c"}) {
            must(co_await here().sleep_for(11s));
            must(co_await client.write_all(piece));
        }
        EXPECT_TRUE(co_await read_until(client, answer, "streamed"));
        client.close();
    });
}

TEST_P(http_slow_clients, whose_bodies_pause_are_cut) {
    const duration taken = time_of([](stream& client) -> task<void> {
        must(co_await client.write_all(std::string_view(
            "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nbegun")));
    });
    EXPECT_GE(taken, limits_.read_time);
    EXPECT_LE(taken, 20s);
}

TEST_P(http_slow_clients, that_read_nothing_are_cut) {
    socket_buffer_ = 16 * 1024;
    const duration taken = time_of([](stream& client) -> task<void> {
        must(co_await client.write_all(std::string_view("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")));
    });
    EXPECT_GE(taken, limits_.write_time);
    EXPECT_LE(taken, 20s);
}

}  // namespace
}  // namespace eddy::http
