// Tests of the HTTP side of a load: any split of the input gives the same counts, and what differs
// from the first response is found on the lean path and behind it.
#include "cli/bench/http/http_conversation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cli::bench {
namespace {

using ::testing::HasSubstr;
using state = scan_result::state;

std::string response(std::string_view body, std::string_view fields = "", int status = 200) {
    return "HTTP/1.1 " + std::to_string(status) + " OK\r\nDate: Fri, 27 Nov 2026 16:20:47 GMT\r\n" +
           std::string(fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}

class http_load : public ::testing::Test {
protected:
    /// The first pass over these responses.
    tally learn(std::string_view responses, std::size_t count) {
        tally counts;
        http_conversation first(work, reference);
        first.open();
        static_cast<void>(first.scan(responses, count, counts));
        return counts;
    }

    /// Scans a text in two pieces.
    scan_result scan(std::string_view text, std::size_t split, tally& counts,
                     std::size_t awaited = 3) {
        http_conversation talk(work, std::as_const(reference));
        talk.open();
        scan_result made = talk.scan(text.substr(0, split), awaited, counts);
        if (made.then == state::open) {
            const scan_result rest = talk.scan(text.substr(split), awaited - made.replies, counts);
            made.replies += rest.replies;
            made.then = rest.then;
        }
        return made;
    }

    http_work work;
    http_reference reference;
};

TEST_F(http_load, counts_replies_at_any_split) {
    const std::string one = response("hello");
    EXPECT_EQ(learn(one + one, 2).errors(), 0U);
    ASSERT_TRUE(reference.reply);
    std::string later = one;
    later.replace(later.find("20:47"), 5, "21:03");  // Date goes on
    const std::string longer = response("hello", "X-Request: 17\r\n");
    for (const std::string& text : {one + later + one, longer + one + longer, one + longer + one}) {
        for (std::size_t split = 0; split <= text.size(); ++split) {
            tally counts;
            const scan_result made = scan(text, split, counts);
            EXPECT_EQ(made.replies, 3U);
            EXPECT_EQ(made.then, state::open);
            EXPECT_EQ(counts.statuses[2], 3U);
            EXPECT_EQ(counts.errors(), 0U) << counts.first_fault;
        }
    }
}

TEST_F(http_load, finds_what_differs_from_the_first_reply) {
    const std::string one = response("hello");
    learn(one + one, 2);
    for (const std::string& wrong : {response("hellO"), response("hello!"), response("", "", 204),
                                     response("hello", "X: y\r\n", 203)}) {
        const std::string text = one + wrong + one;
        for (std::size_t split = 0; split <= text.size(); ++split) {
            tally counts;
            const scan_result made = scan(text, split, counts);
            EXPECT_EQ(made.replies, 3U);
            EXPECT_EQ(counts.errors(), 1U);
            EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::content)], 1U);
        }
        tally counts = learn(wrong, 1);
        EXPECT_EQ(counts.errors(), 1U) << "in the first pass, too";
    }
    work.verifies = false;
    tally counts;
    scan(one + response("other") + one, 7, counts);
    EXPECT_EQ(counts.errors(), 0U);
}

TEST_F(http_load, judges_statuses) {
    const std::string missing = response("no", "", 404);
    EXPECT_THAT(learn(missing, 1).first_fault, HasSubstr("--expect-status 404"));
    work.expected_status = 404;
    reference = {};
    EXPECT_EQ(learn(missing + missing, 2).errors(), 0U);
    tally counts;
    scan(missing + missing + missing, 40, counts);
    EXPECT_EQ(counts.errors(), 0U);
    EXPECT_EQ(counts.statuses[4], 3U);
    const std::string found = response("yes");
    scan(found, 3, counts);
    EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::status)], 1U);
    EXPECT_EQ(counts.first_fault, "the status is 200, not 404");
}

TEST_F(http_load, searches_the_first_body) {
    work.expected_text = "lo wor";
    EXPECT_EQ(learn(response("hello world"), 1).errors(), 0U);
    reference = {};
    EXPECT_THAT(learn(response("hello"), 1).first_fault, HasSubstr("does not contain"));
}

TEST_F(http_load, takes_chunks_and_interim_responses) {
    const std::string chunked =
        "HTTP/1.1 103 Early\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    const std::string other =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    EXPECT_EQ(learn(chunked + chunked, 2).errors(), 0U);
    const std::string text = chunked + other + chunked;
    for (std::size_t split = 0; split <= text.size(); ++split) {
        tally counts;
        EXPECT_EQ(scan(text, split, counts).replies, 3U);
        EXPECT_EQ(counts.errors(), 0U) << counts.first_fault;
    }
}

TEST_F(http_load, long_bodies_are_skipped_behind_the_limit) {
    const std::string one = response(std::string(repeated_reply::compared_limit * 2, 'x'));
    std::string changed = one;
    changed.back() = 'y';
    EXPECT_EQ(learn(one + changed, 2).errors(), 1U) << "not in the first pass";
    EXPECT_EQ(learn(one + one, 2).errors(), 1U - 1U);
    for (const std::size_t split : {std::size_t{5}, one.size() / 2, one.size(), one.size() + 9}) {
        tally counts;
        EXPECT_EQ(scan(one + changed + one, split, counts).replies, 3U);
        EXPECT_EQ(counts.errors(), 0U);
        changed[200] = 'y';
        scan(changed, 3, counts);
        EXPECT_EQ(counts.errors(), 1U);
        changed[200] = 'x';
    }
}

TEST_F(http_load, a_connection_ends_in_order_or_not) {
    const std::string last = response("hello", "Connection: close\r\n");
    learn(last, 1);
    EXPECT_FALSE(reference.reply) << "a last response stands for no others";
    tally counts;
    scan_result made = scan(last, 11, counts);
    EXPECT_EQ(made.replies, 1U);
    EXPECT_EQ(made.then, state::closes);

    // A body that runs until the close.
    reference = {};
    const std::string open_end = "HTTP/1.1 200 OK\r\n\r\nhello";
    http_conversation talk(work, reference);
    talk.open();
    EXPECT_EQ(talk.scan(open_end, 1, counts).replies, 0U);
    made = talk.finish(counts);
    EXPECT_EQ(made.replies, 1U);
    EXPECT_EQ(made.then, state::closes);
    EXPECT_EQ(reference.size, 5U);

    // A sized one that is cut off, on the lean path and on the other.
    reference = {};
    const std::string one = response("hello");
    learn(one + one, 2);
    for (const std::string& text : {one, response("hello", "A: b\r\n")}) {
        for (std::size_t size = 1; size < text.size(); ++size) {
            http_conversation cut(work, std::as_const(reference));
            cut.open();
            EXPECT_EQ(cut.scan(std::string_view(text).substr(0, size), 1, counts).replies, 0U);
            EXPECT_EQ(cut.finish(counts).replies, 0U);
        }
    }
    EXPECT_EQ(counts.errors(), 0U);
}

TEST_F(http_load, refuses_what_is_no_reply) {
    const std::string one = response("hello");
    learn(one + one, 2);
    tally counts;
    EXPECT_EQ(scan(one + "SSH-2.0\r\n", 3, counts).then, state::broken);
    EXPECT_EQ(counts.faults[static_cast<std::size_t>(fault::malformed)], 1U);
    EXPECT_EQ(scan(one + one, 3, counts, 1).then, state::broken) << "one more than awaited";
    EXPECT_THAT(counts.first_fault, HasSubstr("no HTTP response"));
}

TEST_F(http_load, answers_to_head_have_no_body) {
    work.method = "HEAD";
    const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    EXPECT_EQ(learn(one + one, 2).errors(), 0U);
    const std::string text = one + "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 1000\r\n\r\n" + one;
    for (std::size_t split = 0; split <= text.size(); ++split) {
        tally counts;
        EXPECT_EQ(scan(text, split, counts).replies, 3U);
        EXPECT_EQ(counts.errors(), 0U);
    }
}

}  // namespace
}  // namespace eddy::cli::bench
