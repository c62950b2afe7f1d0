// Check of event streams: right and wrong answers, in every split.
#include "cli/bench/handoff/event_stream_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cli::bench {
namespace {

constexpr std::string_view head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

std::string with_head(std::string_view body) { return std::string(head) + std::string(body); }

struct outcome {
    unsigned status;
    std::uint64_t events;
    bool is_done;
    std::string error;
    bool operator==(const outcome&) const = default;
};

outcome outcome_of(const event_stream_check& of) {
    return {of.status(), of.events(), of.is_done(), of.error() ? of.error() : ""};
}

/// Reads `text` whole, in two pieces at every place, and byte by byte.
outcome read(std::string_view text) {
    event_stream_check whole;
    EXPECT_EQ(whole.feed(text), whole.error() == nullptr);
    const outcome made = outcome_of(whole);
    for (std::size_t at = 0; at <= text.size(); ++at) {
        event_stream_check parts;
        if (parts.feed(text.substr(0, at))) static_cast<void>(parts.feed(text.substr(at)));
        EXPECT_TRUE(outcome_of(parts) == made) << "split at " << at;
    }
    event_stream_check bytes;
    for (const char& byte : text)
        if (!bytes.feed({&byte, 1})) break;
    EXPECT_TRUE(outcome_of(bytes) == made) << "byte by byte";
    return made;
}

TEST(event_stream_check, counts_events_up_to_the_mark) {
    const outcome made =
        read(with_head("data: {\"content\":\"a longer text than what is kept of a line\"}\n\n"
                       "data: {\"content\":\"b\"}\n\ndata: [DONE]\n\n"));
    EXPECT_TRUE((made == outcome{200, 2, true, ""}));
}

TEST(event_stream_check, knows_all_fields_and_both_ends_of_lines) {
    EXPECT_TRUE((read(with_head(": ping\n\nid: 7\nevent: token\nretry: 100\ndata: a\ndata:b\n\n"
                                "id\ndata\n\ndata:[DONE]\r\n\r\n")) == outcome{200, 2, true, ""}));
    EXPECT_TRUE(
        (read("HTTP/1.0 200\ncontent-type:TEXT/event-stream; charset=utf-8\n\ndata: a\n\n") ==
         outcome{200, 1, false, ""}));
}

TEST(event_stream_check, refuses_content_of_another_type) {
    const outcome refused{200, 0, false, "the answer is no text/event-stream"};
    for (const std::string_view field :
         {"Content-Type: text/html\r\n", "Content-Type: text/event-streams\r\n",
          "Content-Type:\r\n", "Content-Typ: text/event-stream\r\n", ""})
        EXPECT_TRUE(read("HTTP/1.1 200 OK\r\n" + std::string(field) + "\r\ndata: a\n\n") == refused)
            << field;
    EXPECT_TRUE((read("HTTP/1.1 200 OK\r\nContent-Type:          " + std::string(20, ' ') +
                      "text/event-stream\r\n\r\n") == refused))
        << "more blanks than servers write";
}

TEST(event_stream_check, tells_an_answer_without_an_end) {
    EXPECT_FALSE(read(with_head("data: a\n\n")).is_done);
    EXPECT_FALSE(read(with_head("data: a\n\ndata: [DONE]")).is_done);
    EXPECT_FALSE(read(with_head("data: a\n\ndata: [DONE]\n")).is_done);
    EXPECT_FALSE(read(with_head("")).is_done);
    EXPECT_FALSE(read("").is_done);
    EXPECT_EQ(read("HTTP/1.1 200 O").status, 0u);
}

TEST(event_stream_check, text_that_holds_the_mark_is_none) {
    EXPECT_TRUE((read(with_head("data: [DONE] not yet\n\ndata: x[DONE]\n\n: [DONE]\n\n")) ==
                 outcome{200, 2, false, ""}));
}

TEST(event_stream_check, refuses_what_is_no_event_stream) {
    EXPECT_NE(read(with_head("hello\n")).error, "");
    EXPECT_NE(read(with_head("5\r\ndata: a\r\n")).error, "") << "chunked";
    EXPECT_NE(read(with_head("datax: a\n")).error, "");
    EXPECT_NE(read(with_head("data: [DONE]\n\ndata: more\n\n")).error, "");
    EXPECT_NE(read("data: a\n\n").error, "");
    EXPECT_NE(read("HTTP/1.1 2000 OK\r\n").error, "");
    EXPECT_NE(read("HTTP/2 200\r\n").error, "");
    EXPECT_NE(read("\r\n").error, "");
}

TEST(event_stream_check, knows_other_statuses) {
    const outcome made = read("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\nfull");
    EXPECT_EQ(made.status, 503u);
    EXPECT_NE(made.error, "");
}

TEST(event_stream_check, a_head_has_a_limit) {
    event_stream_check check;
    const std::string piece(1024, 'h');
    ASSERT_TRUE(check.feed("HTTP/1.1 200 OK\r\nX: "));
    std::size_t fed = 0;
    while (check.feed(piece)) {
        fed += piece.size();
        ASSERT_LE(fed, event_stream_check::head_limit);
    }
    EXPECT_NE(check.error(), nullptr);
    // A line of an event has none: what came is not kept.
    event_stream_check endless;
    ASSERT_TRUE(endless.feed(with_head("data: ")));
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(endless.feed(piece));
    ASSERT_TRUE(endless.feed("\n\ndata: [DONE]\n\n"));
    EXPECT_EQ(endless.events(), 1u);
    EXPECT_TRUE(endless.is_done());
}

}  // namespace
}  // namespace eddy::cli::bench
