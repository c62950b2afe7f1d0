// Heads of proxied responses: which fields pass, and the framing.
#include "runtime/stream/sources/proxied_head.hpp"

#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::HasSubstr;
using kind = http1::body_framing::kind;

using field_list = std::vector<std::pair<std::string_view, std::string_view>>;

http1::header_list fields_of(const field_list& from) {
    http1::header_list made;
    for (const auto& [name, value] : from) must(made.add(name, value));
    return made;
}

parsed_answer head_of(const field_list& from, const stream_request& to = {}, int status = 200) {
    return parse_answer(make_proxied_head(status, fields_of(from), to).text, "HEAD");
}

kind framing_of(const field_list& from, const stream_request& to = {}, int status = 200) {
    return make_proxied_head(status, fields_of(from), to).framing;
}

TEST(proxied_head, has_the_fields_of_the_response) {
    const field_list passed = {
        {"Retry-After", "61"},
        {"Location", "/elsewhere"},
        {"Allow", "GET, HEAD"},
        {"WWW-Authenticate", "Bearer realm=\"x\""},
        {"x-request-id", "req_1"},
        {"x-ratelimit-remaining-tokens", "149984"},
        {"ETag", "\"1\""},
        {"Vary", "Origin"},
        {"Content-Encoding", "gzip"},
        {"Content-Disposition", "attachment"},
        {"Date", "then"},
        {"Cache-Control", "max-age=5"},
        {"Content-Type", "text/x"},
        {"Access-Control-Allow-Origin", "*"},
    };
    const parsed_answer got = head_of(passed, {}, 429);
    EXPECT_EQ(got.status, 429);
    for (const auto& [name, value] : passed) EXPECT_EQ(got.all_of(name), value) << name;
    const parsed_answer cookies = head_of({{"Set-Cookie", "a=1"}, {"set-cookie", "b=2"}});
    EXPECT_EQ(cookies.all_of("Set-Cookie"), "a=1,b=2");
    EXPECT_EQ(cookies.field("Content-Type"), "application/octet-stream");
    EXPECT_EQ(cookies.field("Cache-Control"), "no-cache");
}

TEST(proxied_head, lacks_those_of_the_sources_connection) {
    const parsed_answer got = head_of({{"Connection", "keep-alive, X-Hop"},
                                       {"connection", "x-other"},
                                       {"Keep-Alive", "timeout=5"},
                                       {"Proxy-Connection", "keep-alive"},
                                       {"Proxy-Authenticate", "Basic"},
                                       {"Proxy-Authentication-Info", "x"},
                                       {"TE", "trailers"},
                                       {"Trailer", "X-Sum"},
                                       {"Transfer-Encoding", "chunked"},
                                       {"Upgrade", "h2c"},
                                       {"X-Hop", "1"},
                                       {"X-Other", "1"},
                                       {"X-Accel-Redirect", "/secret"},
                                       {"X-Accel-Buffering", "yes"},
                                       {"X-Sendfile", "/etc/x"},
                                       {"X-Kept", "1"}});
    std::string names;
    for (const http1::header each : got.fields) names.append(each.name).append(" ");
    EXPECT_EQ(names,
              "X-Kept Content-Type Cache-Control X-Accel-Buffering Date Connection "
              "Transfer-Encoding ");
    EXPECT_EQ(got.field("Connection"), "close");
    EXPECT_EQ(got.field("X-Accel-Buffering"), "no");
}

TEST(proxied_head, keeps_what_no_source_may_take_for_its_connections_alone) {
    const parsed_answer got = head_of({{"Connection", "Content-Type, cache-control, X-Hop"},
                                       {"Content-Type", "text/html"},
                                       {"Cache-Control", "no-store"},
                                       {"X-Hop", "1"}});
    EXPECT_EQ(got.field("Content-Type"), "text/html");
    EXPECT_EQ(got.field("Cache-Control"), "no-store");
    EXPECT_FALSE(got.fields.contains("X-Hop"));
}

TEST(proxied_head, has_the_web_servers_fields_in_place_of_the_sources) {
    stream_request to;
    to.headers = {{"Access-Control-Allow-Origin", "https://a"}, {"set-cookie", "mine=1"}};
    const parsed_answer got = head_of(
        {{"access-control-allow-origin", "*"}, {"Set-Cookie", "theirs=1"}, {"X-More", "1"}}, to);
    EXPECT_EQ(got.all_of("Access-Control-Allow-Origin"), "https://a");
    EXPECT_EQ(got.all_of("Set-Cookie"), "theirs=1,mine=1");
    EXPECT_EQ(got.field("X-More"), "1");
}

TEST(proxied_head, frames_the_content) {
    stream_request old;
    old.is_before_http_1_1 = true;
    stream_request to_head;
    to_head.is_head = true;
    const field_list sized = {{"Content-Length", "9223372036854775807"}};
    const field_list chunked = {{"Transfer-Encoding", "chunked"}};

    EXPECT_EQ(framing_of(sized), kind::sized);
    EXPECT_EQ(framing_of(sized, old), kind::sized);
    EXPECT_EQ(head_of(sized, old).field("Content-Length"), "9223372036854775807");
    EXPECT_EQ(framing_of({}), kind::chunked);
    EXPECT_EQ(framing_of(chunked), kind::chunked);
    EXPECT_EQ(head_of(chunked).field("Transfer-Encoding"), "chunked");
    EXPECT_EQ(framing_of(chunked, old), kind::until_close);
    EXPECT_EQ(head_of(chunked, old).field("Transfer-Encoding"), "(none)");
    EXPECT_EQ(head_of(chunked, old).all_of("Connection"), "close");
    EXPECT_EQ(head_of(sized).all_of("Connection"), "close");
    EXPECT_EQ(head_of(chunked).all_of("Connection"), "close");

    EXPECT_EQ(framing_of(sized, to_head), kind::none);
    EXPECT_EQ(head_of(sized, to_head).field("Content-Length"), "9223372036854775807");
    EXPECT_EQ(framing_of(chunked, to_head), kind::none);
    for (const int status : {204, 304}) {
        for (const field_list& each : {sized, chunked, field_list()}) {
            EXPECT_EQ(framing_of(each, {}, status), kind::none);
            const std::string text = make_proxied_head(status, fields_of(each), {}).text;
            for (const std::string_view name : {"Content-Length", "Transfer-Encoding", "-Type"})
                EXPECT_THAT(text, ::testing::Not(HasSubstr(std::string(name)))) << status;
        }
    }
}

TEST(proxied_head, content_comes_in_chunks) {
    EXPECT_EQ(chunk_of("0123456789abcdefg"), "11\r\n0123456789abcdefg\r\n");
    EXPECT_EQ(chunk_of(""), "") << "an empty chunk is the end";
    http1::response_parser parser;
    const std::string answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                               chunk_of("a") + std::string(broken_chunk);
    std::string_view left = answer;
    http1::step step;
    while (step.what != http1::event::error && step.what != http1::event::end) {
        step = parser.parse(left);
        left.remove_prefix(step.consumed);
    }
    EXPECT_EQ(step.what, http1::event::error);
}

}  // namespace
}  // namespace eddy::runtime::stream
