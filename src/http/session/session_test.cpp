// Sessions as a client sees them: pipelining, limits, deadlines, bodies and responses that stream.
#include <eddy/http/session.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;

/// Three pieces, then the end; or a wait that ends with cancellation alone.
class test_producer final : public body_producer {
public:
    test_producer(bool endless, bool& cancelled) : endless_(endless), cancelled_(cancelled) {}
    task<result<>> produce(body_writer& to) override {
        if (endless_) {
            const auto woken = co_await never_.wait();
            cancelled_ = !woken;
            co_return woken;
        }
        for (const std::string_view piece : {"piece1;", "piece2;", "piece3;"}) {
            const auto sent = co_await to.write(piece);
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

private:
    bool endless_;
    bool& cancelled_;
    event never_;
};

class http_session : public testing::with_server {
protected:
    http_session() {
        handler_.answer = [this](request& incoming) { return echo(incoming); };
    }

    task<response> echo(request& incoming) {
        const auto body = co_await incoming.collect();
        if (!body) {
            --handler_.requests;  // those alone count that have arrived whole
            co_return response();
        }
        if (incoming.path() == "/nothing") co_return response(204);
        response answer;
        answer.add("Content-Type", "text/plain");
        if (incoming.path() == "/pieces" || incoming.path() == "/endless") {
            answer.body = body_of_pieces(incoming.path() == "/endless");
            co_return answer;
        }
        std::string text = std::string(incoming.method()) + " " + std::string(incoming.path()) +
                           " [" + incoming.content() + "]";
        if (const auto name = incoming.query("name")) text += " name=" + std::string(*name);
        answer.body = std::move(text);
        co_return answer;
    }

    http::body body_of_pieces(bool endless) {
        return http::body(std::make_unique<test_producer>(endless, cancelled_));
    }

    bool cancelled_ = false;
};

bool begins_with(const std::string& text, std::string_view start) {
    return text.starts_with(start);
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST_P(http_session, answers_a_request_and_closes_when_asked) {
    const std::string answer =
        talk("GET /a?name=b%20c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("GET /a [] name=b c")) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST_P(http_session, answers_pipelined_requests_in_order) {
    const std::string answer = talk(
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n"
        "GET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto first = answer.find("GET /1 []");
    const auto second = answer.find("POST /2 [abc]");
    const auto third = answer.find("POST /3 [def]");
    const auto fourth = answer.find("GET /4 []");
    ASSERT_NE(fourth, std::string::npos) << answer;
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, fourth);
    EXPECT_EQ(handler_.requests, 4);
}

TEST_P(http_session, a_handler_that_waits_does_not_hold_back_the_responses_before_it) {
    event go_on;
    handler_.answer = [&](request& incoming) -> task<response> {
        if (incoming.path() == "/slow") must(co_await go_on.wait());
        co_return text(std::string(incoming.path()));
    };
    with_session([&](stream& client) -> task<void> {
        const std::string_view both =
            "GET /fast HTTP/1.1\r\nHost: x\r\n\r\nGET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
        must(co_await client.write_all(both));
        std::string answer;
        EXPECT_TRUE(co_await read_until(client, answer, "/fast"));
        EXPECT_EQ(answer.find("/slow"), std::string::npos);
        go_on.set();
        EXPECT_TRUE(co_await read_until(client, answer, "/slow"));
        client.close();
    });
}

TEST_P(http_session, a_handler_that_waits_holds_nothing_back_for_a_slow_reader_either) {
    constexpr std::size_t size = 15 * 1024;
    socket_buffer_ = 4 * 1024;
    limits_.request_time = limits_.write_time = 30s;
    event go_on;
    handler_.answer = [&](request& incoming) -> task<response> {
        if (incoming.path() == "/slow") must(co_await go_on.wait());
        co_return text(std::string(size, 'x') + std::string(incoming.path()));
    };
    with_session([&](stream& client) -> task<void> {
        std::string all;
        for (const std::string_view path : {"/1", "/2", "/3", "/slow"})
            all += "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n";
        must(co_await client.write_all(all));
        // By then the socket is full.
        while (handler_.requests < 4) must(co_await loop::current().sleep_for(1ms));
        must(co_await loop::current().sleep_for(1ms));
        std::string answer;
        EXPECT_TRUE(co_await read_until(client, answer, "x/3"));
        go_on.set();
        EXPECT_TRUE(co_await read_until(client, answer, "x/slow"));
        client.close();
    });
}

TEST_P(http_session, a_client_that_pipelines_and_does_not_read_waits) {
    constexpr int requests = 2000;
    socket_buffer_ = 16 * 1024;
    limits_.write_time = limits_.request_time = 30s;
    handler_.answer = [](request& incoming) -> task<response> {
        co_return text(std::string(incoming.path()) + std::string(1000, '.'));
    };
    with_session([&](stream& client) -> task<void> {
        std::string all;
        for (int i = 0; i < requests; ++i)
            all += "GET /" + std::to_string(i) + "! HTTP/1.1\r\nHost: x\r\n\r\n";
        std::string answer;
        co_await join_scope([&](scope& writing) -> task<void> {
            writing.spawn([](stream& to, const std::string& text) -> task<void> {
                must(co_await to.write_all(text));
            }(client, all));
            EXPECT_TRUE(co_await read_until(client, answer, "/0!"));
            EXPECT_LT(handler_.requests, requests) << "answered ahead without bound";
            EXPECT_TRUE(co_await read_until(client, answer, "/1999!"));
        });
        std::size_t at = 0;
        for (int i = 0; i < requests && at != std::string::npos; ++i)
            at = answer.find("/" + std::to_string(i) + "!", at);
        EXPECT_NE(at, std::string::npos) << "out of order";
        client.close();
    });
}

TEST_P(http_session, a_handler_that_throws_gets_500) {
    handler_.answer = [](request& incoming) -> task<response> {
        if (incoming.path() == "/memory") throw std::bad_alloc();
        if (incoming.path() == "/throw") throw std::runtime_error("on purpose");
        co_return text("fine");
    };
    const std::string answer = talk(
        "GET /throw HTTP/1.1\r\nHost: x\r\n\r\nGET /memory HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    EXPECT_NE(answer.find("HTTP/1.1 503 "), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("fine")) << answer;
    EXPECT_EQ(answer.find("on purpose"), std::string::npos) << "inner matters are shown";
}

/// Keeps what it observes.
class test_observer final : public session_observer {
public:
    void enter(session_state now) noexcept override { state = now; }
    void note(const exchange_record& what) override {
        records.push_back(what);
        targets.push_back(what.request ? what.request->target : "");
    }
    bool is_ending() const noexcept override { return ending; }

    session_state state = session_state::idle;
    std::vector<exchange_record> records;
    std::vector<std::string> targets;
    bool ending = false;
};

TEST_P(http_session, is_observed) {
    limits_.request_time = limits_.idle_time = 30s;
    test_observer seen;
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        co_await join_scope([&](scope& serving) -> task<void> {
            serving.spawn(serve_observed(both.server, handler_, limits_, seen));
            const std::string first = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n";
            must(co_await both.client.write_all(first));
            std::string answer;
            EXPECT_TRUE(co_await read_until(both.client, answer, "GET /1 []"));
            const std::size_t sent = answer.size();
            must(co_await both.client.write_all(std::string_view("GET ")));
            while (seen.state != session_state::receiving)
                must(co_await loop::current().sleep_for(1ms));
            seen.ending = true;
            must(
                co_await both.client.write_all(std::string_view("/2 HTTP/1.1\r\nHost: x\r\n\r\n")));
            co_await read_all(both.client, answer);
            EXPECT_NE(answer.find("\r\nConnection: close\r\n", sent), std::string::npos) << answer;
            EXPECT_EQ(seen.targets, (std::vector<std::string>{"/1", "/2"}));
            EXPECT_EQ(seen.records.at(0).bytes_in, first.size());
            EXPECT_EQ(seen.records.at(0).bytes_out, sent);
            EXPECT_EQ(seen.records.at(0).content_bytes, std::string_view("GET /1 []").size());
            EXPECT_EQ(seen.records.at(1).bytes_out, answer.size() - sent);
            EXPECT_TRUE(seen.records.at(1).is_whole);
            EXPECT_EQ(seen.records.at(1).status, 200);
        });
    });
}

TEST_P(http_session, answers_head_without_a_body) {
    const std::string answer = talk("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("Content-Length: 10"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_P(http_session, answers_head_of_a_stream_without_producing_it) {
    const std::string answer =
        talk("HEAD /endless HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(contains(answer, "Transfer-Encoding: chunked\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
    EXPECT_FALSE(cancelled_);
}

TEST_P(http_session, a_204_has_no_body_and_no_length) {
    const std::string answer =
        talk("GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 204")) << answer;
    EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
}

TEST_P(http_session, closes_after_http_1_0) {
    const std::string answer = talk("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("GET /a []")) << answer;
}

TEST_P(http_session, garbage_gets_400) {
    EXPECT_TRUE(begins_with(talk("\x16\x03\x01 garbage\r\n\r\n"), "HTTP/1.1 400"));
    EXPECT_TRUE(begins_with(talk("GET /a b c HTTP/1.1\r\n\r\n"), "HTTP/1.1 400"));
    EXPECT_EQ(handler_.requests, 0);
}

TEST_P(http_session, a_query_that_cannot_be_decoded_gets_400) {
    const std::string answer =
        talk("GET /a?b=%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 400")) << answer;
    EXPECT_EQ(handler_.requests, 0);
}

TEST_P(http_session, a_body_over_the_limit_gets_413) {
    const std::string big(1001, 'x');
    const std::string fits(1000, 'x');
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
             fits),
        "HTTP/1.1 200"));
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + big), "HTTP/1.1 413"));
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + big),
        "HTTP/1.1 413"));
}

TEST_P(http_session, a_handler_may_set_another_limit_on_the_body) {
    handler_.answer = [this](request& incoming) {
        incoming.body().set_limit(incoming.path() == "/more" ? 2000 : 10);
        return echo(incoming);
    };
    const std::string tail = " HTTP/1.1\r\nHost: x\r\nContent-Length: 1500\r\n\r\n";
    const std::string answer =
        talk("POST /more" + tail + std::string(1500, 'x') + "POST /less" + tail);
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 200")) << answer;
    EXPECT_TRUE(contains(answer, "HTTP/1.1 413")) << answer;
    EXPECT_EQ(handler_.requests, 1);
}

TEST_P(http_session, a_client_that_waits_for_100_gets_it_or_the_refusal) {
    const std::string wanted = talk(
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
        "Connection: close\r\n\r\nok");
    EXPECT_TRUE(begins_with(wanted, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")) << wanted;
    const std::string refused = talk(
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n");
    EXPECT_TRUE(begins_with(refused, "HTTP/1.1 413")) << refused;
}

TEST_P(http_session, a_client_that_waits_for_100_is_told_when_the_body_is_read) {
    with_session([&](stream& client) -> task<void> {
        const std::string head =
            "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        must(co_await client.write_all(head));
        std::string seen;
        EXPECT_TRUE(co_await read_until(client, seen, "\r\n\r\n"));
        EXPECT_EQ(seen, "HTTP/1.1 100 Continue\r\n\r\n");
        must(co_await client.write_all("ok"));
        EXPECT_TRUE(co_await read_until(client, seen, "[ok]"));
        client.close();
    });
}

TEST_P(http_session, a_body_that_no_handler_reads_is_not_asked_for) {
    handler_.answer = [](request&) -> task<response> { co_return response(403); };
    const std::string answer =
        talk("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 403")) << answer;
    EXPECT_TRUE(contains(answer, "Connection: close")) << answer;
}

TEST_P(http_session, a_body_that_has_arrived_unread_is_skipped) {
    handler_.answer = [](request& incoming) -> task<response> {
        co_return response(200, "text/plain", std::string(incoming.path()));
    };
    const std::string answer = talk(
        "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "GET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("/2")) << answer;
    EXPECT_EQ(handler_.requests, 2);
}

TEST_P(http_session, endless_headers_get_431) {
    std::string request = "GET /a HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 200; ++i) request += "X-" + std::to_string(i) + ": y\r\n";
    EXPECT_TRUE(begins_with(talk(request + "\r\n"), "HTTP/1.1 431"));
}

TEST_P(http_session, a_long_target_gets_414) {
    limits_.parser.start_line = 100;
    EXPECT_TRUE(begins_with(talk("GET /" + std::string(100, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"),
                            "HTTP/1.1 414"));
}

TEST_P(http_session, a_slow_request_gets_408) {
    EXPECT_TRUE(begins_with(talk("GET /a HTTP/1.1\r\nHost:"), "HTTP/1.1 408"));
    EXPECT_TRUE(begins_with(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"),
                            "HTTP/1.1 408"));
}

TEST_P(http_session, a_streamed_body_that_pauses_gets_408) {
    limits_.request_time = 1h;
    handler_.answer = [](request& incoming) -> task<response> {
        while (co_await incoming.body().read()) {
        }
        co_return response();
    };
    EXPECT_TRUE(begins_with(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"),
                            "HTTP/1.1 408"));
}

TEST_P(http_session, a_silent_connection_is_closed_without_a_word) { EXPECT_EQ(talk(""), ""); }

TEST_P(http_session, a_truncated_request_gets_400) {
    EXPECT_TRUE(
        begins_with(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", true),
                    "HTTP/1.1 400"));
    EXPECT_EQ(handler_.requests, 0);
}

TEST_P(http_session, a_half_closed_connection_gets_its_answer) {
    EXPECT_TRUE(talk("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", true).ends_with("GET /a []"));
}

TEST_P(http_session, handlers_see_the_fields_and_set_their_own) {
    handler_.answer = [](request& incoming) -> task<response> {
        response answer(200, "text/plain",
                        std::string(incoming.headers().find("x-ASKED").value_or("nothing")));
        answer.add("X-First", "1").add("X-Second", "2");
        answer.add("Content-Length", "99");  // left out: the body says it
        co_return answer;
    };
    const std::string answer =
        talk("GET /a HTTP/1.1\r\nHost: x\r\nX-Asked: this\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("\r\n\r\nthis")) << answer;
    EXPECT_TRUE(contains(answer, "X-First: 1\r\nX-Second: 2\r\n")) << answer;
    EXPECT_FALSE(contains(answer, "99")) << answer;
}

TEST_P(http_session, a_response_that_cannot_be_sent_becomes_500) {
    handler_.answer = [](request& incoming) -> task<response> {
        response answer(incoming.path() == "/status" ? 99 : 200);
        if (incoming.path() == "/field") answer.add("X-Name", "a\r\nSet-Cookie: forged");
        co_return answer;
    };
    const std::string answer = talk(
        "GET /status HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /field HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 500")) << answer;
    EXPECT_NE(answer.rfind("HTTP/1.1 500"), 0U) << answer;
    EXPECT_FALSE(contains(answer, "forged")) << answer;
}

TEST_P(http_session, a_handler_may_close_the_connection) {
    handler_.answer = [](request&) -> task<response> {
        response answer;
        answer.add("Connection", "close");
        co_return answer;
    };
    const std::string answer = talk(
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(answer.find("Connection: close"), answer.rfind("Connection: close")) << answer;
    EXPECT_EQ(handler_.requests, 1);
}

TEST_P(http_session, streams_pieces_as_chunks) {
    const std::string answer = talk("GET /pieces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("Transfer-Encoding: chunked"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("7\r\npiece1;\r\n7\r\npiece2;\r\n7\r\npiece3;\r\n0\r\n\r\n"))
        << answer;
}

TEST_P(http_session, a_stream_ends_when_the_client_goes) {
    talk("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n", true);
    EXPECT_TRUE(cancelled_);
}

TEST_P(http_session, a_stream_ends_when_the_client_sends_too_much_meanwhile) {
    talk("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100 * 1024, 'x'));
    EXPECT_TRUE(cancelled_);
}

TEST_P(http_session, requests_sent_during_a_stream_are_answered_after_it) {
    const std::string answer = talk(
        "GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_LT(answer.find("piece3;"), answer.find("GET /a []")) << answer;
    EXPECT_TRUE(answer.ends_with("GET /a []")) << answer;
}

TEST_P(http_session, a_stream_to_http_1_0_ends_with_the_close) {
    const std::string answer = talk("GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("\r\n\r\npiece1;piece2;piece3;")) << answer;
    EXPECT_TRUE(contains(answer, "Connection: close\r\n")) << answer;
    EXPECT_FALSE(contains(answer, "chunked")) << answer;
}

TEST_P(http_session, a_stream_of_a_declared_size_has_no_chunks) {
    handler_.answer = [this](request&) -> task<response> {
        response answer;
        answer.body = http::body(std::make_unique<test_producer>(false, cancelled_), 21);
        co_return answer;
    };
    const std::string answer = talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(contains(answer, "Content-Length: 21\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\npiece1;piece2;piece3;")) << answer;
}

TEST_P(http_session, a_stream_of_another_size_than_declared_is_cut) {
    for (const std::uint64_t declared : {20U, 22U}) {
        handler_.answer = [this, declared](request&) -> task<response> {
            response answer;
            answer.body = http::body(std::make_unique<test_producer>(false, cancelled_), declared);
            co_return answer;
        };
        const std::string answer = talk(
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(answer.rfind("HTTP/1.1"), 0U) << answer;
        const std::string_view all = "piece1;piece2;piece3;";
        EXPECT_TRUE(answer.ends_with(all.substr(0, declared < all.size() ? 14 : all.size())))
            << answer;
    }
}

TEST_P(http_session, a_producer_that_fails_cuts_the_response) {
    handler_.answer = [](request&) -> task<response> {
        response answer;
        answer.body = http::body::streamed([](body_writer& to) -> task<result<>> {
            const auto sent = co_await to.write("some");
            if (!sent) co_return sent;
            co_return fail(errc::no_buffers);
        });
        co_return answer;
    };
    const std::string answer = talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("4\r\nsome\r\n")) << answer;
}

TEST_P(http_session, a_producer_that_throws_cuts_the_response) {
    handler_.answer = [](request&) -> task<response> {
        response answer;
        answer.body = http::body::streamed([](body_writer& to) -> task<result<>> {
            const auto sent = co_await to.write("some");
            if (sent) throw std::runtime_error("on purpose");
            co_return sent;
        });
        co_return answer;
    };
    const std::string answer = talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("4\r\nsome\r\n")) << answer;
}

// --- Bodies larger than any buffer ------------------------------------------------------------

constexpr std::size_t large = 8 * 1024 * 1024;
constexpr std::size_t streamed = 1024 * 1024;

/// Sends a body a byte at a time until all of it is sent, or the session ends it.
task<void> trickle(stream& client, int bytes, const bool& is_over) {
    const std::string head =
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
    must(co_await client.write_all(head));
    for (int i = 0; i < bytes && !is_over; ++i) {
        must(co_await loop::current().sleep_for(2ms));
        if (!co_await client.write_all(std::string_view("x"))) co_return;
    }
}

TEST_P(http_session, a_body_that_trickles_is_cut_by_its_rate) {
    for (const bool is_cut : {true, false}) {
        limits_.parser.body = 1'000'000;
        limits_.read_time = is_cut ? duration(100ms) : duration(30s);
        limits_.read_bytes = 1000;
        limits_.request_time = limits_.write_time = 30s;
        bool is_over = false;
        std::error_code end;
        handler_.answer = [&](request& incoming) -> task<response> {
            while (!end) {
                auto piece = co_await incoming.body().read();
                if (!piece) end = piece.error();
            }
            is_over = true;
            co_return response(200);
        };
        with_session([&](stream& client) -> task<void> {
            co_await trickle(client, is_cut ? 100'000 : 20, is_over);
            std::string answer;
            EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
            EXPECT_TRUE(begins_with(answer, is_cut ? "HTTP/1.1 408 " : "HTTP/1.1 200 ")) << answer;
            client.close();
        });
        EXPECT_EQ(end, is_cut ? errc::timed_out : errc::end_of_stream);
    }
}

TEST_P(http_session, a_request_body_streams_through_bounded_memory) {
    limits_.parser.body = streamed;
    limits_.read_time = 1h;
    std::size_t largest = 0;
    bool is_same = true;
    handler_.answer = [&](request& incoming) -> task<response> {
        eddy::testing::pattern expected(1);
        for (;;) {
            auto piece = co_await incoming.body().read();
            if (!piece) break;
            largest = std::max(largest, piece->size());
            is_same = is_same && expected.continues_with(as_bytes(*piece));
        }
        co_return response(200, "text/plain", std::to_string(expected.position()));
    };
    with_session([&](stream& client) -> task<void> {
        const std::string head =
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            "Content-Length: " +
            std::to_string(streamed) + "\r\n\r\n";
        must(co_await client.write_all(head));
        co_await eddy::testing::send_pattern(client, 1, streamed, 7, 18);
        std::string answer;
        co_await read_all(client, answer);
        EXPECT_TRUE(answer.ends_with(std::to_string(streamed))) << answer;
    });
    EXPECT_TRUE(is_same);
    EXPECT_LE(largest, 256U * 1024U);
}

/// More than the buffers of a connection hold together, a piece included.
constexpr std::size_t buffered_limit = 1024 * 1024;

TEST_P(http_session, a_slow_reader_slows_the_producer_down) {
    limits_.write_time = 1h;
    socket_buffer_ = 64 * 1024;
    std::size_t produced = 0;
    handler_.answer = [&](request&) -> task<response> {
        response answer;
        answer.body = http::body::streamed([&](body_writer& to) -> task<result<>> {
            const std::string piece(300 * 1000, 'x');
            while (produced < large) {
                const auto sent = co_await to.write(piece);
                if (!sent) co_return sent;
                produced += piece.size();
            }
            co_return result<>();
        });
        co_return answer;
    };
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        std::size_t received = 0;
        std::size_t most_ahead = 0;
        for (;;) {
            for (int i = 0; i < 4; ++i) co_await here().yield();
            auto piece = co_await client.read();
            if (!piece) break;
            received += piece->size();
            if (produced > received) most_ahead = std::max(most_ahead, produced - received);
        }
        EXPECT_GT(received, large);
        EXPECT_LE(most_ahead, buffered_limit);
    });
}

TEST_P(http_session, a_client_that_takes_nothing_is_cut) {
    limits_.write_time = 50ms;
    socket_buffer_ = 64 * 1024;
    std::error_code seen;
    handler_.answer = [&](request& incoming) -> task<response> {
        response answer;
        if (incoming.path() == "/whole") {
            answer.body = std::string(large, 'x');
            co_return answer;
        }
        answer.body = http::body::streamed([&](body_writer& to) -> task<result<>> {
            const std::string piece(large, 'x');
            const auto sent = co_await to.write(piece);
            seen = error_of(sent);
            co_return sent;
        });
        co_return answer;
    };
    for (const std::string path : {"/whole", "/stream"}) {
        with_session([&](stream& client) -> task<void> {
            const std::string asked = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
            must(co_await client.write_all(asked));
        });
    }
    EXPECT_EQ(seen, errc::timed_out);
}

TEST_P(http_session, a_response_may_stream_what_it_reads) {
    limits_.parser.body = large;
    limits_.read_time = 1h;
    handler_.answer = [](request& incoming) -> task<response> {
        response answer;
        answer.body = http::body::streamed([&incoming](body_writer& to) -> task<result<>> {
            for (;;) {
                auto piece = co_await incoming.body().read();
                if (!piece && piece.error() == errc::end_of_stream) co_return result<>();
                if (!piece) co_return fail(piece.error());
                const auto sent = co_await to.write(*piece);
                if (!sent) co_return sent;
            }
        });
        co_return answer;
    };
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"));
        std::string seen;
        EXPECT_TRUE(co_await read_until(client, seen, "4\r\npart\r\n"));
        must(co_await client.write_all("3\r\nend\r\n0\r\n\r\n"));
        co_await read_all(client, seen);
        EXPECT_TRUE(seen.ends_with("4\r\npart\r\n3\r\nend\r\n0\r\n\r\n")) << seen;
    });
}

TEST_P(http_session, a_client_that_has_finished_sending_gets_a_body_of_known_size_whole) {
    handler_.answer = [](request&) -> task<response> {
        auto pieces = [](body_writer& to) -> task<result<>> {
            const std::string piece(1000, 'p');
            for (int i = 0; i < 10; ++i) {
                if (auto slept = co_await loop::current().sleep_for(1ms); !slept) co_return slept;
                if (auto sent = co_await to.write(piece); !sent) co_return sent;
            }
            co_return result<>();
        };
        co_return response(200, "text/plain", body::streamed(pieces, 10'000));
    };
    const std::string got = talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n", true);
    EXPECT_EQ(got.size() - got.find("\r\n\r\n") - 4, 10'000U);
}

// --- The end of a connection ------------------------------------------------------------------

/// Sends a part of a body, and then waits, or fails.
response broken_off(bool waits) {
    response answer;
    answer.body = http::body::streamed([waits](body_writer& to) -> task<result<>> {
        const auto sent = co_await to.write("part of it");
        if (!sent) co_return sent;
        if (waits) co_return co_await loop::current().sleep_for(1h);
        co_return fail(errc::truncated);
    });
    return answer;
}

/// A response to HTTP/1.0 ends with its connection.
TEST_P(http_session, a_response_that_breaks_off_does_not_look_whole) {
    for (const bool is_cancelled : {false, true}) {
        handler_.answer = [&](request&) -> task<response> { co_return broken_off(is_cancelled); };
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            scope serving(co_await current_source());
            serving.spawn(serve(std::move(both.server), handler_, limits_));
            must(co_await both.client.write_all("GET / HTTP/1.0\r\n\r\n"));
            std::string seen;
            EXPECT_TRUE(co_await read_until(both.client, seen, "part of it")) << seen;
            if (is_cancelled) serving.cancel();
            co_await serving.join();
            const auto end = co_await both.client.read();
            EXPECT_FALSE(end);
            if (!end) EXPECT_EQ(end.error(), errno_code(ECONNRESET)) << is_cancelled;
        });
    }
}

TEST_P(http_session, lingers_for_a_limited_time) {
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all("nonsense\r\n\r\n"));
        std::string answer;
        co_await read_all(client, answer);  // it has finished sending
        EXPECT_TRUE(begins_with(answer, "HTTP/1.1 400"));
        // The client neither sends nor closes, and the session ends.
    });
}

TEST_P(http_session, lingers_for_a_limited_time_without_bytes) {
    limits_.linger_time = 1h;
    limits_.linger_idle = 50ms;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all("nonsense\r\n\r\n"));
        std::string answer;
        co_await read_all(client, answer);
        EXPECT_TRUE(begins_with(answer, "HTTP/1.1 400"));
        // The client neither sends nor closes, and the session ends.
    });
}

TEST_P(http_session, lingers_for_a_limited_time_while_bytes_come) {
    limits_.linger_idle = 1h;
    with_session([&](stream& client) -> task<void> {
        const std::string more(1024, 'x');
        must(co_await client.write_all("nonsense\r\n\r\n"));
        while (co_await client.write_all(more)) must(co_await here().sleep_for(1ms));
    });
}

/// An upload of which the kernels of both ends hold a part at most.
TEST_P(http_session, an_early_answer_reaches_a_client_that_sends_much_more) {
    limits_.parser.body = 1024;
    limits_.linger_time = 30s;
    constexpr std::size_t size = std::size_t{24} << 20;
    with_session([&](stream& client) -> task<void> {
        const std::string head =
            "POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) +
            "\r\n\r\n";
        must(co_await client.write_all(head));
        const std::string piece(256 * 1024, 'x');
        // As a client that reads only after its last byte.
        for (std::size_t sent = 0; sent < size; sent += piece.size())
            must(co_await client.write_all(piece));
        std::string answer;
        co_await read_all(client, answer);
        EXPECT_TRUE(begins_with(answer, "HTTP/1.1 413")) << answer;
    });
}

TEST_P(http_session, a_refusal_needs_no_request) {
    run([&]() -> task<void> {
        eddy::testing::connection both = co_await connect();
        must(co_await send_and_close(std::move(both.server), response(503, "text/plain", "full"),
                                     1s));
        std::string answer;
        co_await read_all(both.client, answer);
        EXPECT_TRUE(begins_with(answer, "HTTP/1.1 503")) << answer;
        EXPECT_TRUE(contains(answer, "Connection: close")) << answer;
        EXPECT_TRUE(answer.ends_with("full")) << answer;
    });
}

EDDY_HTTP_ON_EVERY_BACKEND(http_session);

}  // namespace
}  // namespace eddy::http
