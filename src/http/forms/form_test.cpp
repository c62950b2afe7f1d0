// URL-encoded forms: reading, and the session's own answers to invalid ones.
#include <eddy/http/form.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::http {
namespace {

using testing::error_of;

std::string post(std::string_view type, std::string_view body) {
    std::string text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ";
    text += std::to_string(body.size()) + "\r\n";
    if (!type.empty()) text.append("Content-Type: ").append(type).append("\r\n");
    return text.append("\r\n").append(body);
}

constexpr std::string_view last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr std::string_view form_type = "application/x-www-form-urlencoded";

class http_form : public testing::with_server {
protected:
    http_form() {
        handler_.answer = [this](request& incoming) { return answer(incoming); };
    }

    task<response> answer(request& incoming) {
        if (incoming.method() == "GET") co_return text("last");
        const auto sent = co_await read_form(incoming, form_limits_);
        if (!sent) {
            error_ = sent.error();
            co_return response();
        }
        std::string all;
        for (const http1::query_parameter& each : sent->fields())
            all += "<" + each.name + "=" + each.value + ">";
        co_return text(all + std::string(sent->find("b").value_or("none")) + "\n");
    }

    // The status of the response to a form; the connection stays usable.
    int status_of(std::string_view body, std::string_view type = form_type) {
        error_ = {};
        const std::string all = talk(post(type, body) + std::string(last));
        EXPECT_TRUE(all.ends_with("last")) << all;
        return std::stoi(all.substr(9));
    }

    form_limits form_limits_;
    std::error_code error_;
};

TEST_P(http_form, has_fields_in_their_order) {
    const std::string all =
        talk(post(std::string(form_type) + "; charset=UTF-8", "a=1&b=x+y%26&&b=2&=3&c&%C3%A9=%00") +
             std::string(last));
    EXPECT_NE(all.find(std::string_view("<a=1><b=x y&><b=2><=3><c=><\xc3\xa9=\0>x y&\n", 35)),
              std::string::npos)
        << all;
}

TEST_P(http_form, of_another_type_gets_415) {
    EXPECT_EQ(status_of("a=1", "text/plain"), 415);
    EXPECT_EQ(error_, errc::unsupported);
    EXPECT_EQ(status_of("a=1", ""), 415);
    EXPECT_EQ(handler_.rejections, 2);
}

TEST_P(http_form, that_is_malformed_gets_400) {
    EXPECT_EQ(status_of("a=%"), 400);
    EXPECT_EQ(error_, errc::malformed);
    EXPECT_EQ(status_of("a=1&%4x=2"), 400);
    EXPECT_EQ(status_of("a=%4"), 400);
}

TEST_P(http_form, beyond_its_limits_gets_413) {
    form_limits_.fields = 2;
    form_limits_.name = 3;
    form_limits_.value = 4;
    EXPECT_EQ(status_of("abc=1234&b=2"), 200);
    EXPECT_EQ(status_of("a=1&b=2&c=3"), 413);
    EXPECT_EQ(error_, errc::limit_reached);
    EXPECT_EQ(status_of("abcd=1"), 413);
    EXPECT_EQ(status_of("abc=12345"), 413);
    EXPECT_EQ(status_of("%61%62%63=%31%32%33%34"), 200);
}

TEST_P(http_form, has_a_limit_on_its_bytes) {
    form_limits_.bytes = 8;
    EXPECT_EQ(status_of("a=123456"), 200);
    const std::string all = talk(post(form_type, "a=1234567"));
    EXPECT_TRUE(all.starts_with("HTTP/1.1 413 ")) << all;
    EXPECT_EQ(error_, errc::limit_reached);
    form_limits_.bytes = 2000;  // above the session's limit
    EXPECT_EQ(status_of("a=" + std::string(1500, 'x')), 200);
}

TEST_P(http_form, a_handler_may_answer_a_fault_itself) {
    handler_.answer = [](request& incoming) -> task<response> {
        const auto sent = co_await read_form(incoming);
        if (sent) co_return text("form");
        EXPECT_EQ(incoming.fault().status, 415);
        incoming.set_fault({});
        co_return text("no form", 422);
    };
    const std::string all =
        talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
    EXPECT_TRUE(all.starts_with("HTTP/1.1 422 ")) << all;
    EXPECT_EQ(handler_.rejections, 0);
}

TEST_P(http_form, reads_what_was_collected_before) {
    handler_.answer = [](request& incoming) -> task<response> {
        if (!co_await incoming.collect()) co_return response();
        const auto sent = co_await read_form(incoming);
        if (!sent) co_return response();
        co_return text(std::string(sent->find("a").value_or("none")));
    };
    const std::string all = talk(post(form_type, "a=found"), true);
    EXPECT_TRUE(all.ends_with("found")) << all;
}

EDDY_HTTP_ON_EVERY_BACKEND(http_form);

}  // namespace
}  // namespace eddy::http
