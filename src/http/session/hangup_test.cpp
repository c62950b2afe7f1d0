// Clients that leave, finish sending or send ahead while their request is answered.
#include <eddy/http/session.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::must;

/// A handler that takes long for "/slow": until it is cancelled, or `slow_time` has passed.
class http_hangup : public testing::with_server {
protected:
    http_hangup() {
        limits_.parser.body = 1 << 20;
        limits_.request_time = limits_.read_time = 1h;
        handler_.answer = [this](request& incoming) -> task<response> {
            if (incoming.path() == "/slow") {
                is_working_ = true;
                const auto slept = co_await loop::current().sleep_for(slow_time_);
                is_working_ = false;
                was_cancelled_ = !slept;
            }
            if (incoming.method() == "POST") {
                const auto content = co_await incoming.body().whole(1 << 20);
                co_return text(std::to_string(content ? content->size() : 0) + " bytes");
            }
            if (incoming.path() == "/stream") co_return stream_slowly();
            co_return text("done");
        };
    }

    static response stream_slowly() {
        static constexpr std::string_view piece = "piece ";
        static constexpr std::string_view last = "last";
        static constexpr int pieces = 50;
        const auto produce = [](body_writer& to) -> task<result<>> {
            for (int i = 0; i < pieces; ++i) {
                if (auto slept = co_await loop::current().sleep_for(1ms); !slept) co_return slept;
                if (auto sent = co_await to.write(piece); !sent) co_return sent;
            }
            co_return co_await to.write(last);
        };
        return {200, "text/plain", body::streamed(produce, pieces * piece.size() + last.size())};
    }

    static std::string get(std::string_view path) {
        return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }

    duration slow_time_ = 1h;
    bool is_working_ = false;
    bool was_cancelled_ = false;
};

EDDY_HTTP_ON_EVERY_BACKEND(http_hangup);

TEST_P(http_hangup, a_reset_cancels_a_handler_that_takes_long) {
    with_session([&](stream& client) -> task<void> {
        // The first response is not read, so the client's close is a reset.
        const std::string both = get("/") + get("/slow");
        must(co_await client.write_all(both));
        while (!is_working_) static_cast<void>(co_await here().sleep_for(1ms));
        static_cast<void>(co_await here().sleep_for(20ms));
        client.close();
    });
    EXPECT_TRUE(was_cancelled_);
}

TEST_P(http_hangup, a_client_that_has_finished_sending_gets_its_response) {
    slow_time_ = 250ms;
    EXPECT_TRUE(talk(get("/slow"), true).ends_with("done"));
    EXPECT_FALSE(was_cancelled_);
}

TEST_P(http_hangup, the_end_of_sending_is_a_hangup_by_option) {
    limits_.end_is_hangup = true;
    EXPECT_EQ(talk(get("/slow"), true), "");
    EXPECT_TRUE(was_cancelled_);
    // A response that needs no wait is sent all the same.
    EXPECT_TRUE(talk(get("/"), true).ends_with("done"));
}

TEST_P(http_hangup, a_handler_under_its_own_source_is_cancelled_by_that_one) {
    cancel_source stop;
    const auto answer = handler_.answer;
    handler_.answer = [&](request& incoming) { return answer(incoming).under(stop); };
    with_session([&](stream& client) -> task<void> {
        const std::string asked = get("/slow");
        must(co_await client.write_all(asked));
        while (!is_working_) must(co_await here().sleep_for(1ms));
        stop.request();
        std::string got;
        EXPECT_TRUE(co_await read_until(client, got, "done"));
        client.close();
    });
    EXPECT_TRUE(was_cancelled_);
}

TEST_P(http_hangup, a_handler_under_its_own_source_is_cancelled_by_a_reset_too) {
    cancel_source stop;
    const auto answer = handler_.answer;
    handler_.answer = [&](request& incoming) { return answer(incoming).under(stop); };
    with_session([&](stream& client) -> task<void> {
        const std::string both = get("/") + get("/slow");
        must(co_await client.write_all(both));
        while (!is_working_) must(co_await here().sleep_for(1ms));
        client.close();
    });
    EXPECT_TRUE(was_cancelled_);
    EXPECT_FALSE(stop.requested());
}

task<result<>> wait_on(event& for_ever, std::error_code& ended) {
    const auto waited = co_await for_ever.wait();
    ended = testing::error_of(waited);
    co_return waited;
}

TEST_P(http_hangup, a_body_under_its_own_source_is_cancelled_by_either) {
    for (const bool by_client : {false, true}) {
        cancel_source stop;
        event never;
        std::error_code ended;
        handler_.answer = [&](request&) -> task<response> {
            const auto produce = [&](body_writer&) { return wait_on(never, ended).under(stop); };
            co_return response(200, "text/plain", body::streamed(produce));
        };
        with_session([&](stream& client) -> task<void> {
            const std::string asked = get("/");
            must(co_await client.write_all(asked));
            std::string got;
            EXPECT_TRUE(co_await read_until(client, got, "\r\n\r\n"));
            EXPECT_FALSE(ended);
            if (by_client)
                client.close();
            else
                stop.request();
            co_await read_all(client, got);
        });
        EXPECT_EQ(ended, errc::cancelled) << by_client;
    }
}

TEST_P(http_hangup, what_a_watched_client_sends_ahead_is_answered) {
    slow_time_ = 250ms;
    with_session([&](stream& client) -> task<void> {
        const std::string first = get("/slow");
        must(co_await client.write_all(first));
        static_cast<void>(co_await here().sleep_for(200ms));
        const std::string next = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
        must(co_await client.write_all(next));
        std::string got;
        EXPECT_TRUE(co_await read_until(client, got, "3 bytes"));
        EXPECT_NE(got.find("done"), std::string::npos);
    });
    EXPECT_EQ(handler_.requests, 2);
}

task<void> send_all(stream& to, std::string text) { must(co_await to.write_all(text)); }

TEST_P(http_hangup, a_long_request_behind_a_streamed_response_waits_for_its_end) {
    constexpr std::size_t size = 500'000;
    ASSERT_GT(size, 2 * limits_.pipelined_bytes);
    for (const std::string path : {"/stream", "/slow"}) {
        slow_time_ = 250ms;
        with_session([&](stream& client) -> task<void> {
            co_await join_scope([&](scope& sending) -> task<void> {
                sending.spawn(send_all(
                    client, get(path) + "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                std::to_string(size) + "\r\n\r\n" + std::string(size, 'x')));
                std::string got;
                EXPECT_TRUE(co_await read_until(client, got, path == "/slow" ? "done" : "last"));
                EXPECT_TRUE(co_await read_until(client, got, "500000 bytes"));
            });
        });
    }
}

/// Keeps the target and the status of each record.
class record_keeper final : public session_observer {
public:
    void enter(session_state now) noexcept override {
        is_receiving = now == session_state::receiving;
    }
    void note(const exchange_record& what) override {
        const std::string target = what.request ? what.request->target : "-";
        records.push_back(target + " " + std::to_string(what.status));
    }
    bool is_ending() const noexcept override { return false; }

    std::vector<std::string> records;
    bool is_receiving = false;
};

TEST_P(http_hangup, a_request_whose_client_has_left_is_recorded_with_499) {
    record_keeper seen;
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(serve_observed(both.server, handler_, limits_, seen));
            const std::string asked = get("/") + get("/slow");
            must(co_await both.client.write_all(asked));
            while (!is_working_) must(co_await here().sleep_for(1ms));
            both.client.close();
        });
    });
    EXPECT_TRUE(was_cancelled_);
    EXPECT_EQ(seen.records, (std::vector<std::string>{"/ 200", "/slow 499"}));
}

TEST_P(http_hangup, a_head_whose_client_has_reset_is_recorded_with_400) {
    for (const std::string_view before : {"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}) {
        record_keeper seen;
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            co_await join_scope([&](scope& serving) -> task<void> {
                serving.spawn(serve_observed(both.server, handler_, limits_, seen));
                const std::string asked = std::string(before) + "GET /half HT";
                must(co_await both.client.write_all(asked));
                while (!seen.is_receiving) must(co_await here().sleep_for(1ms));
                both.client.abort();
            });
        });
        ASSERT_FALSE(seen.records.empty());
        EXPECT_EQ(seen.records.back(), "- 400");
        EXPECT_EQ(seen.records.size(), before.empty() ? 1U : 2U);
    }
}

TEST_P(http_hangup, a_request_whose_body_is_refused_or_cut_off_is_recorded_with_its_target) {
    for (const auto& [body, status] :
         {std::pair("Content-Length: 2000000\r\n\r\n", "413"),
          std::pair("Content-Length: 10\r\n\r\nabc", "400"),
          std::pair("Transfer-Encoding: chunked\r\n\r\nx\r\n", "400")}) {
        record_keeper seen;
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            co_await join_scope([&](scope& serving) -> task<void> {
                serving.spawn(serve_observed(both.server, handler_, limits_, seen));
                const std::string asked = std::string("POST /form HTTP/1.1\r\nHost: x\r\n") + body;
                must(co_await both.client.write_all(asked));
                must(both.client.shutdown_write());
                std::string got;
                EXPECT_TRUE(co_await read_until(both.client, got, "\r\n\r\n"));
                both.client.close();
            });
        });
        EXPECT_EQ(seen.records, std::vector<std::string>{std::string("/form ") + status});
    }
}

}  // namespace
}  // namespace eddy::http
