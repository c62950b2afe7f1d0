// Heads of answers, byte for byte.
#include "runtime/stream/answer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::stream {
namespace {

/// The text with the Date, which must be one, as "DATE".
std::string dateless(std::string text) {
    constexpr std::string_view name = "\r\nDate: ";
    constexpr std::size_t size = std::string_view("Sun, 06 Nov 1994 08:49:37 GMT").size();
    const std::size_t at = text.find(name);
    if (at == std::string::npos || text.size() < at + name.size() + size) return text;
    return text.replace(at + name.size(), size, "DATE");
}

stream_request request_with(std::vector<response_header> fields) {
    stream_request made;
    made.headers = std::move(fields);
    return made;
}

TEST(stream_answers, head_of_a_stream) {
    EXPECT_EQ(dateless(response_head({})),
              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
              "Connection: close\r\nX-Accel-Buffering: no\r\nDate: DATE\r\n\r\n");
    const stream_request to = request_with({{"X-Mine", "1"}, {"Access-Control-Allow-Origin", "*"}});
    EXPECT_EQ(dateless(response_head(to.headers, 404, "text/plain")),
              "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nCache-Control: no-cache\r\n"
              "Connection: close\r\nX-Accel-Buffering: no\r\nDate: DATE\r\nX-Mine: 1\r\n"
              "Access-Control-Allow-Origin: *\r\n\r\n");
    const stream_request dated = request_with({{"date", "then"}});
    EXPECT_EQ(response_head(dated.headers, 299),
              "HTTP/1.1 299 Unknown\r\nContent-Type: text/event-stream\r\n"
              "Cache-Control: no-cache\r\nConnection: close\r\nX-Accel-Buffering: no\r\n"
              "date: then\r\n\r\n");
}

TEST(stream_answers, head_without_content) {
    EXPECT_EQ(dateless(no_content({})),
              "HTTP/1.1 204 No Content\r\nConnection: close\r\nDate: DATE\r\n\r\n");
    const std::string large(max_refusal_fields, 'x');
    EXPECT_EQ(dateless(no_content(request_with({{"X-A", "1"}, {"X-B", large}, {"X-C", "2"}}))),
              "HTTP/1.1 204 No Content\r\nConnection: close\r\nDate: DATE\r\nX-A: 1\r\n\r\n");
}

TEST(stream_answers, refusals) {
    EXPECT_EQ(dateless(refusal(503, "full", request_with({{"X-A", "1"}}))),
              "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
              "Content-Length: 17\r\nConnection: close\r\nRetry-After: 1\r\nDate: DATE\r\n"
              "X-A: 1\r\n\r\n{\"error\":\"full\"}\n");
    stream_request head = request_with({{"Retry-After", "9"}});
    head.is_head = true;
    EXPECT_EQ(dateless(refusal(503, "full", head)),
              "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
              "Content-Length: 17\r\nConnection: close\r\nDate: DATE\r\nRetry-After: 9\r\n\r\n");
}

}  // namespace
}  // namespace eddy::runtime::stream
