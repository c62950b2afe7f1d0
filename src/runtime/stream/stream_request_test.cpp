// Requests of handoffs: members, what is dropped, what is refused.
#include "runtime/stream/stream_request.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::stream {
namespace {

TEST(handoff_request, has_the_members_of_its_message) {
    const auto read = read_request(
        R"({"user_id":7,"prompt":"hi","messages":[{"role":"user","content":"x"}],"model":"m",)"
        R"("max_tokens":5,"test_pattern":"2","backend":"mock","request_id":"r1","more":{"a":1}})");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->user_id, "7");
    EXPECT_EQ(read->prompt, "hi");
    EXPECT_EQ(read->messages, R"([{"content":"x","role":"user"}])");
    EXPECT_EQ(read->model, "m");
    EXPECT_EQ(read->max_tokens, 5);
    EXPECT_EQ(read->test_pattern, "2");
    EXPECT_EQ(read->backend, "mock");
    EXPECT_EQ(read->request_id, "r1");
    EXPECT_NE(read->message.find("\"more\""), std::string::npos) << "the source gets all of it";
}

TEST(handoff_request, may_be_a_NUL_byte) {
    const auto read = read_request(std::string_view("\0", 1));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->message, "");
    EXPECT_EQ(read->user_id, "");
    EXPECT_EQ(read_request(std::string_view("{\"user_id\":1}\0", 14))->user_id, "1");
}

TEST(handoff_request, may_have_half_of_a_character) {
    for (const std::string_view half :
         {"\\ud83d", "\\uDE00", "\\ud83d\\ud83d\\ude00", "\\ud83dx"}) {
        const auto read = read_request(R"({"prompt":"a)" + std::string(half) + R"(","y":1})");
        ASSERT_TRUE(read) << half;
        EXPECT_TRUE(read->prompt.starts_with("a\uFFFD")) << read->prompt;
        EXPECT_EQ(read->message.find("\\u"), half.size() > 12 ? 15U : std::string::npos);
        EXPECT_TRUE(read->message.ends_with(R"(","y":1})")) << read->message;
    }
    EXPECT_EQ(read_request(R"({"prompt":"\\ud83d"})")->prompt, "\\ud83d") << "no half";
    EXPECT_FALSE(read_request("{\"prompt\":\"\\ud83d\xff\"}")) << "no UTF-8";
    EXPECT_FALSE(read_request(R"({"prompt":"\ud83d)"));
}

TEST(handoff_request, may_name_its_user_by_a_text) {
    EXPECT_EQ(read_request(R"({"user_id":"anna"})")->user_id, "anna");
    EXPECT_EQ(read_request(R"({"user_id":null})")->user_id, "");
    EXPECT_EQ(read_request(R"({"user_id":1.5})")->user_id, "1.5");
    EXPECT_EQ(read_request(R"({"user_id":18446744073709551615})")->user_id, "18446744073709551615");
}

TEST(handoff_request, may_say_the_version_of_the_clients_request) {
    for (const std::string_view old :
         {R"("HTTP/1.0")", R"("http/1.0")", R"("1.0")", "1.0", "1", R"("HTTP/0.9")"})
        EXPECT_TRUE(
            read_request(R"({"http_version":)" + std::string(old) + "}")->is_before_http_1_1)
            << old;
    for (const std::string_view later :
         {R"("HTTP/1.1")", R"("1.1")", "1.1", R"("HTTP/2.0")", R"("")", "null"})
        EXPECT_FALSE(
            read_request(R"({"http_version":)" + std::string(later) + "}")->is_before_http_1_1)
            << later;
    EXPECT_FALSE(read_request("{}")->is_before_http_1_1) << "nearly all clients speak 1.1";
}

TEST(handoff_request, may_say_its_method) {
    EXPECT_TRUE(read_request(R"({"request_method":"HEAD"})")->is_head);
    for (const std::string_view other : {R"({"request_method":"POST"})", "{}",
                                         R"({"request_method":"head"})", R"({"method":"HEAD"})"})
        EXPECT_FALSE(read_request(other)->is_head) << other;
}

TEST(handoff_request, drops_headers_that_a_response_must_not_have) {
    const auto read = read_request(
        R"({"response_headers":{"X-Id":"5","X-Bad":"a\r\nSet-Cookie: b","X\nName":"c",)"
        R"("Connection":"keep-alive","TRANSFER-ENCODING":"chunked","Content-Length":"3",)"
        R"("X-Nul":"a\u0000b","X-Number":3,"":"empty"}})");
    ASSERT_TRUE(read);
    ASSERT_EQ(read->headers.size(), 1U);
    EXPECT_EQ(read->headers[0].name, "X-Id");
    EXPECT_EQ(read->headers[0].value, "5");
}

TEST(handoff_request, bounds_the_headers_that_it_adds) {
    std::string message = R"({"response_headers":{)";
    for (std::size_t i = 0; i <= max_response_headers; ++i)
        message += (i > 0 ? ",\"X-" : "\"X-") + std::to_string(i) + "\":\"v\"";
    EXPECT_EQ(read_request(message + "}}")->headers.size(), max_response_headers);
}

TEST(handoff_request, refuses_what_is_no_object_of_these_members) {
    for (const std::string_view bad :
         {"{", "[]", "7", "null", "{\"prompt\":5}", "{\"user_id\":[]}", "{\"messages\":\"x\"}",
          "{\"max_tokens\":1.5}", "{\"http_version\":[]}", "{\"request_method\":1}",
          "{\"response_headers\":[]}", "{\"prompt\":\"\xff\"}", "{} {}", "prompt=hi"})
        EXPECT_EQ(read_request(bad).error(), make_error_code(errc::malformed)) << bad;
    EXPECT_EQ(read_request(std::string_view("{}\0{}", 5)).error(),
              make_error_code(errc::malformed));
}

TEST(handoff_request, that_cannot_be_read_says_what_it_can_of_its_response) {
    const auto terms = [](std::string_view message) {
        std::string all;
        const stream_request read = read_response_terms(message);
        for (const response_header& each : read.headers) all += each.name + "=" + each.value + " ";
        return all + (read.is_head ? "HEAD" : "");
    };
    const std::string fields =
        R"("response_headers":{"A":"1","X":[{"B":"2"}],"C":"3\r\n","D":"4"})";
    EXPECT_EQ(terms("{" + fields + R"(,"prompt":"cut o)"), "A=1 D=4 ");
    EXPECT_EQ(terms("{" + fields + "garbage"), "A=1 D=4 ");
    EXPECT_EQ(terms(R"({"response_headers":{"A":"1","B":"cut o)"), "A=1 ");
    EXPECT_EQ(terms(R"({"request_method":"HEAD","user_id":[],)"), "HEAD");
    EXPECT_EQ(terms(R"({"more":{"request_method":"HEAD","response_headers":{"A":"1"}},)"), "");
    EXPECT_EQ(terms(R"({"response_headers":["A","1"],)"), "");
    for (const std::string_view none : {"", "{", "[]", "\xff", "7"}) EXPECT_EQ(terms(none), "");
    EXPECT_EQ(terms(std::string(100'000, '[')), "");
    EXPECT_EQ(terms("{\"a\":" + std::string(100'000, '[')), "");
}

TEST(handoff_request, bounds_what_becomes_a_field) {
    for (const std::string_view name : {"api_key", "last_event_id", "test_pattern"}) {
        const auto with = [&](std::size_t size) {
            return "{\"" + std::string(name) + "\":\"" + std::string(size, 'k') + "\"}";
        };
        EXPECT_TRUE(read_request(with(max_field_text))) << name;
        EXPECT_EQ(read_request(with(max_field_text + 1)).error(), make_error_code(errc::malformed))
            << name;
    }
}

TEST(handoff_request, bounds_its_nesting) {
    const auto nested = [](std::size_t levels) {
        return "{\"messages\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
    };
    EXPECT_TRUE(read_request(nested(message_depth_limit)));
    EXPECT_EQ(read_request(nested(message_depth_limit + 1)).error(),
              make_error_code(errc::limit_reached));
}

}  // namespace
}  // namespace eddy::runtime::stream
