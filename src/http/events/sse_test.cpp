// Event streams as responses: fields, heartbeats, backpressure, clients that go away.
#include <eddy/http/sse.hpp>

#include <eddy/wire/sse.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {
namespace {

using namespace testing;

constexpr std::string_view question = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

// The content of a response that came whole.
std::string content_of(std::string_view raw) {
    http1::response_parser parser;
    std::string content;
    for (;;) {
        const http1::step step = parser.parse(raw);
        raw.remove_prefix(step.consumed);
        if (step.what == http1::event::body) content += step.body;
        if (step.what == http1::event::end) return content;
        if (step.what == http1::event::need_more || step.what == http1::event::error)
            return "unfinished: " + content;
    }
}

class http_sse : public with_server {
protected:
    /// Requests are answered by an event stream of this producer.
    template <class Produce>
    void stream_of(Produce produce, sse_options options = {}) {
        handler_.answer = [=](request&) -> task<response> { return answer_with(produce, options); };
    }
    template <class Produce>
    static task<response> answer_with(Produce produce, sse_options options) {
        co_return sse(produce, options);
    }
};

TEST_P(http_sse, events_arrive) {
    sse_options options;
    options.retry = 250ms;
    stream_of(
        [](event_writer& out) -> task<result<>> {
            sse::event one;
            one.data = "a\nb";
            one.type = "tick";
            one.id = "7";
            if (auto sent = co_await out.write(one); !sent) co_return sent;
            if (auto sent = co_await out.write("c"); !sent) co_return sent;
            co_return co_await out.comment("bye");
        },
        options);
    const std::string got = talk(std::string(question));
    EXPECT_EQ(got.rfind("HTTP/1.1 200 ", 0), 0U);
    for (const std::string_view field :
         {"Content-Type: text/event-stream\r\n", "Cache-Control: no-store\r\n",
          "X-Accel-Buffering: no\r\n"})
        EXPECT_NE(got.find(field), std::string::npos) << got;
    EXPECT_EQ(content_of(got),
              "retry: 250\n\nid: 7\nevent: tick\ndata: a\ndata: b\n\ndata: c\n\n: bye\n");
}

TEST_P(http_sse, the_last_id_of_the_request) {
    std::vector<std::string> ids;
    handler_.answer = [&](request& incoming) -> task<response> {
        ids.emplace_back(last_event_id(incoming));
        return [](response made) -> task<response> { co_return made; }(response(204));
    };
    talk("GET / HTTP/1.1\r\nHost: x\r\nlast-event-id: a-1\r\n\r\n" + std::string(question));
    EXPECT_EQ(ids, (std::vector<std::string>{"a-1", ""}));
}

TEST_P(http_sse, an_event_that_cannot_be_written_is_left_out) {
    stream_of([](event_writer& out) -> task<result<>> {
        sse::event bad;
        bad.data = "x";
        bad.type = "a\nid: 1";
        const auto sent = co_await out.write(bad);
        EXPECT_EQ(error_of(sent), errc::malformed);
        co_return co_await out.write("good");
    });
    EXPECT_EQ(content_of(talk(std::string(question))), "data: good\n\n");
}

TEST_P(http_sse, an_error_of_the_producer_cuts_the_connection) {
    stream_of([](event_writer& out) -> task<result<>> {
        if (auto sent = co_await out.write("a"); !sent) co_return sent;
        co_return fail(errc::unsupported);
    });
    EXPECT_EQ(content_of(talk(std::string(question))), "unfinished: data: a\n\n");
}

TEST_P(http_sse, heartbeats_while_the_producer_waits_and_an_end_with_the_client) {
    event never;
    std::error_code ended;
    sse_options options;
    options.heartbeat = 2ms;
    stream_of(
        [&](event_writer& out) -> task<result<>> {
            if (auto sent = co_await out.write("a"); !sent) co_return sent;
            const auto waited = co_await never.wait();
            ended = error_of(waited);
            co_return waited;
        },
        options);
    with_session([&](stream& client) -> task<void> {
        std::string got;
        const std::string asked = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        must(co_await client.write_all(asked));
        EXPECT_TRUE(co_await read_until(client, got, ":\n\r\n2\r\n:\n"));
        EXPECT_NE(got.find("data: a\n\n"), std::string::npos);
        client.close();
    });
    EXPECT_EQ(ended, errc::cancelled);
}

task<result<>> wait_on(event& for_ever, std::error_code& ended) {
    const auto waited = co_await for_ever.wait();
    ended = error_of(waited);
    co_return waited;
}

TEST_P(http_sse, a_producer_under_its_own_source_is_cancelled_by_either) {
    for (const bool by_client : {false, true}) {
        cancel_source stop;
        event never;
        std::error_code ended;
        stream_of([&](event_writer&) { return wait_on(never, ended).under(stop); });
        with_session([&](stream& client) -> task<void> {
            std::string got;
            const std::string asked = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            must(co_await client.write_all(asked));
            EXPECT_TRUE(co_await read_until(client, got, "\r\n\r\n"));
            if (by_client)
                client.close();
            else
                stop.request();
            co_await read_all(client, got);
        });
        EXPECT_EQ(ended, errc::cancelled) << by_client;
    }
}

TEST_P(http_sse, the_head_goes_out_before_the_first_event) {
    event never;
    stream_of([&](event_writer&) -> task<result<>> { co_return co_await never.wait(); });
    with_session([&](stream& client) -> task<void> {
        std::string got;
        const std::string asked = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        must(co_await client.write_all(asked));
        EXPECT_TRUE(co_await read_until(client, got, "\r\n\r\n"));
        client.close();
    });
}

TEST_P(http_sse, heartbeats_stand_between_events) {
    sse_options options;
    options.heartbeat = 1ms;
    socket_buffer_ = 64 * 1024;
    stream_of(
        [](event_writer& out) -> task<result<>> {
            for (int i = 0; i < 10; ++i) {
                const std::string data = std::to_string(i) + std::string(50'000, 'x');
                if (auto sent = co_await out.write(data); !sent) co_return sent;
                if (auto slept = co_await loop::current().sleep_for(2ms); !slept) co_return slept;
            }
            co_return result<>();
        },
        options);
    std::string raw;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(question));
        for (;;) {
            auto received = co_await client.read();
            if (!received) break;
            raw += received->text();
            must(co_await loop::current().sleep_for(100us));
        }
        client.close();
    });
    sse::parser parser;
    std::string content = content_of(raw);
    std::string_view left = content;
    int count = 0;
    for (;;) {
        const sse::step step = parser.parse(left);
        left.remove_prefix(step.consumed);
        if (step.what != sse::step_kind::event) break;
        EXPECT_EQ(parser.event().data, std::to_string(count) + std::string(50'000, 'x'));
        ++count;
    }
    EXPECT_EQ(count, 10);
    EXPECT_GT(parser.comments(), 0U);
}

TEST_P(http_sse, a_client_that_does_not_read_slows_the_producer_down_and_is_cut) {
    socket_buffer_ = 4096;
    limits_.write_time = 50ms;
    int written = 0;
    std::error_code ended;
    sse_options options;
    options.heartbeat = 5ms;
    stream_of(
        [&](event_writer& out) -> task<result<>> {
            const std::string data(64 * 1024, 'x');
            for (;; ++written) {
                const auto sent = co_await out.write(data);
                ended = error_of(sent);
                if (!sent) co_return sent;
            }
        },
        options);
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(question));
        while (!ended) must(co_await loop::current().sleep_for(1ms));
        client.close();
    });
    EXPECT_EQ(ended, errc::timed_out);
    EXPECT_LT(written, 100);
}

EDDY_HTTP_ON_EVERY_BACKEND(http_sse);

}  // namespace
}  // namespace eddy::http
