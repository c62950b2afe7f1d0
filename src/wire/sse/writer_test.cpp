// Writer of event streams: fields, line ends within data, what is refused; what is written reads
// back.
#include <eddy/base/random.hpp>
#include <eddy/wire/sse.hpp>

#include "base/test_seed.hpp"
#include "wire/sse/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::sse {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::string written(const event& of) {
    byte_buffer out;
    EXPECT_TRUE(write_event(out, of));
    return std::string(out.text());
}

TEST(sse_writer, fields) {
    EXPECT_EQ(written({.data = "hello"}), "data: hello\n\n");
    EXPECT_EQ(written({}), "data: \n\n");
    EXPECT_EQ(written({.data = " x", .type = "tick", .id = "4", .retry = 1500ms}),
              "retry: 1500\nid: 4\nevent: tick\ndata:  x\n\n");
    EXPECT_EQ(written({.data = "a", .id = ""}), "id: \ndata: a\n\n");
}

TEST(sse_writer, data_of_several_lines) {
    EXPECT_EQ(written({.data = "a\nb\r\nc\rd"}), "data: a\ndata: b\ndata: c\ndata: d\n\n");
    EXPECT_EQ(written({.data = "\n"}), "data: \ndata: \n\n");
    EXPECT_EQ(written({.data = "a\n\nid: 9"}), "data: a\ndata: \ndata: id: 9\n\n");
    EXPECT_EQ(written({.data = "a\r\r\n"}), "data: a\ndata: \ndata: \n\n");
}

TEST(sse_writer, comments) {
    byte_buffer out;
    write_comment(out);
    write_comment(out, "one\ndata: two");
    EXPECT_EQ(out.text(), ":\n: one\n: data: two\n");
}

TEST(sse_writer, what_would_begin_another_field_is_refused) {
    for (const std::string& bad : {"a\nb"s, "a\r"s, "\n"s}) {
        byte_buffer out;
        EXPECT_EQ(write_event(out, {.data = "x", .type = bad}).error(), errc::malformed);
        EXPECT_EQ(write_event(out, {.data = "x", .id = bad}).error(), errc::malformed);
        EXPECT_TRUE(out.empty());
    }
    byte_buffer out;
    EXPECT_EQ(write_event(out, {.data = "x", .id = "a\0b"s}).error(), errc::malformed);
    EXPECT_EQ(write_event(out, {.data = "x", .retry = -1ms}).error(), errc::malformed);
    EXPECT_TRUE(out.empty());
}

// Texts of the bytes that matter.
std::string some_text(random_generator& random, std::string_view bytes) {
    std::string made;
    for (auto left = random.below(8); left > 0; --left) made += bytes[random.below(bytes.size())];
    return made;
}

// As it arrives: each line end is LF.
std::string normalised(std::string_view text) {
    std::string made;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\r' && text.substr(at, 2) == "\r\n") continue;
        made += text[at] == '\r' ? '\n' : text[at];
    }
    return made;
}

TEST(sse_writer, random_events_read_back) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int round = 0; round < 300; ++round) {
        byte_buffer out;
        std::vector<event> sent;
        std::string last_id;
        while (sent.size() < 5) {
            event one;
            one.data = some_text(random, "a: \r\n\xEF");
            one.type = some_text(random, "bc: ");
            if (random.below(2) == 0) one.id = some_text(random, "d: ");
            if (random.below(4) == 0) one.retry = std::chrono::milliseconds(random.below(5000));
            ASSERT_TRUE(write_event(out, one));
            if (random.below(2) == 0) write_comment(out, some_text(random, "e\n\r"));
            if (one.id) last_id = *one.id;
            one.id.reset();
            if (!last_id.empty()) one.id = last_id;
            one.data = normalised(one.data);
            sent.push_back(one);
        }
        std::vector<std::size_t> cuts;
        for (std::size_t at = random.below(9); at < out.size(); at += 1 + random.below(9))
            cuts.push_back(at);
        parser reader;
        std::vector<event> got;
        transcript(reader, out.text(), cuts, &got);
        ASSERT_EQ(got.size(), sent.size()) << out.text();
        for (std::size_t i = 0; i < sent.size(); ++i) {
            EXPECT_EQ(got[i].data, sent[i].data);
            EXPECT_EQ(got[i].type, sent[i].type);
            EXPECT_EQ(got[i].id, sent[i].id);
            EXPECT_EQ(got[i].retry, sent[i].retry);
        }
    }
}

}  // namespace
}  // namespace eddy::sse
