// sse::parser: fields, line ends, limits, independence of splits.
#include <eddy/wire/sse.hpp>

#include "wire/sse/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::sse {
namespace {

using namespace std::string_literals;

// The transcript, which must be the same for each way to cut the input in two, and in single bytes.
std::string parse(std::string_view input, const limits& bounds = {}) {
    parser whole(bounds);
    const std::string expected = transcript(whole, input, {});
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        parser reader(bounds);
        EXPECT_EQ(transcript(reader, input, {at}), expected) << "cut at " << at;
        everywhere.push_back(at);
    }
    parser reader(bounds);
    EXPECT_EQ(transcript(reader, input, everywhere), expected);
    return expected;
}

const std::string nothing = "last id '', comments 0\n";

TEST(sse_parser, fields) {
    EXPECT_EQ(parse("data: hello\n\n"), "message 'hello'\n" + nothing);
    EXPECT_EQ(parse("event: tick\ndata:a\ndata:  b\n\n"), "tick 'a\n b'\n" + nothing);
    EXPECT_EQ(parse("data\n\n"), "message ''\n" + nothing);
    EXPECT_EQ(parse("data\ndata\n\n"), "message '\n'\n" + nothing);
    EXPECT_EQ(parse("data: a:b\n\n"), "message 'a:b'\n" + nothing);
    EXPECT_EQ(parse("datas: a\nDATA: b\n data: c\nunknown\n\n"), nothing);
}

TEST(sse_parser, an_event_without_data_is_none) {
    EXPECT_EQ(parse("event: lost\n\ndata: kept\n\n"), "message 'kept'\n" + nothing);
    EXPECT_EQ(parse("id: 4\n\n"), "last id '4', comments 0\n");
}

TEST(sse_parser, an_event_that_is_cut_off_is_none) {
    EXPECT_EQ(parse("data: a\n"), nothing);
    EXPECT_EQ(parse("data: a"), nothing);
    EXPECT_EQ(parse("id: 7\ndata: a\n"), nothing);
}

TEST(sse_parser, ids_last) {
    EXPECT_EQ(parse("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"),
              "message 'a' id=1\nmessage 'b' id=1\nmessage 'c'\n" + nothing);
    EXPECT_EQ(parse("id: 1\n\nid: a\0b\ndata: c\n\n"s),
              "message 'c' id=1\nlast id '1', comments 0\n");
}

TEST(sse_parser, reconnection_times) {
    EXPECT_EQ(parse("retry: 250\ndata: a\n\ndata: b\n\n"),
              "message 'a' retry=250\nmessage 'b'\nlast id '', comments 0, retry 250\n");
    EXPECT_EQ(parse("retry: 5\n\n"), "last id '', comments 0, retry 5\n");
    EXPECT_EQ(parse("retry: -5\nretry: 1s\nretry:\nretry: 99999999999999999999\n\n"), nothing);
}

TEST(sse_parser, comments) {
    EXPECT_EQ(parse(": hi\n:\n\ndata: a\n:x\ndata: b\n\n"),
              "message 'a\nb'\nlast id '', comments 3\n");
}

TEST(sse_parser, every_line_end) {
    const std::string expected = "message 'a\nb'\nmessage 'c'\n" + nothing;
    EXPECT_EQ(parse("data: a\ndata: b\n\ndata: c\n\n"), expected);
    EXPECT_EQ(parse("data: a\rdata: b\r\rdata: c\r\r"), expected);
    EXPECT_EQ(parse("data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"), expected);
    EXPECT_EQ(parse("data: a\rdata: b\r\n\rdata: c\n\r"), expected);
    // CR CR LF is two line ends.
    EXPECT_EQ(parse("data: a\r\r\ndata: b\r\r\n"), "message 'a'\nmessage 'b'\n" + nothing);
}

TEST(sse_parser, one_byte_order_mark) {
    EXPECT_EQ(parse("\xEF\xBB\xBF"
                    "data: a\n\n"),
              "message 'a'\n" + nothing);
    EXPECT_EQ(parse("\xEF\xBB\xBF\xEF\xBB\xBF"
                    "data: a\n\n"),
              nothing);
    EXPECT_EQ(parse("\xEF\xBB"
                    "data: a\n\ndata: b\n\n"),
              "message 'b'\n" + nothing);
    EXPECT_EQ(parse("\xEF\xBB\n\ndata: b\n\n"), "message 'b'\n" + nothing);
}

TEST(sse_parser, limit_of_a_line) {
    const limits bounds{.line = 10, .data = 100};
    EXPECT_EQ(parse("data: 1234\n\n", bounds), "message '1234'\n" + nothing);
    EXPECT_EQ(parse("data: 12345\n\n", bounds), "error\n");
    EXPECT_EQ(parse(":0123456789\n", bounds), "error\n");
    EXPECT_EQ(parse("01234567890", bounds), "error\n");
}

TEST(sse_parser, limit_of_the_data) {
    const limits bounds{.line = 100, .data = 5};
    EXPECT_EQ(parse("data: 12345\n\n", bounds), "message '12345'\n" + nothing);
    EXPECT_EQ(parse("data: 12\ndata: 34\n\n", bounds), "message '12\n34'\n" + nothing);
    EXPECT_EQ(parse("data: 12\ndata: 345\n\n", bounds), "error\n");
    EXPECT_EQ(parse("data: a\n\ndata: 123456\n\n", bounds), "message 'a'\nerror\n");
}

TEST(sse_parser, data_up_to_the_limit_may_be_one_line) {
    const std::string most(limits().data, 'x');
    parser fits;
    EXPECT_EQ(fits.parse("data: " + most + "\n\n").what, step_kind::event);
    EXPECT_EQ(fits.event().data, most);
    parser larger;
    EXPECT_EQ(larger.parse("data: " + most + "x\n\n").what, step_kind::error);
    parser endless;
    EXPECT_EQ(endless.parse(std::string(limits().line, 'x')).what, step_kind::need_more);
    EXPECT_EQ(endless.parse("x").what, step_kind::error);
}

TEST(sse_parser, an_error_is_final) {
    parser reader(limits{.line = 3, .data = 3});
    EXPECT_EQ(reader.parse("data: a\n\n").what, step_kind::error);
    EXPECT_EQ(reader.parse("\n\n").what, step_kind::error);
    EXPECT_NE(reader.error(), "");
}

TEST(sse_parser, empty_pieces_change_nothing) {
    parser reader;
    EXPECT_EQ(transcript(reader, "data: a\r\n\r\n", {0, 0, 8, 8, 9, 9, 10, 10, 11}),
              "message 'a'\n" + nothing);
}

}  // namespace
}  // namespace eddy::sse
