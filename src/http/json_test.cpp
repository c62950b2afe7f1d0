// JSON bodies: what is read and written, and what the session answers by itself.
#include <eddy/http/json.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

std::string post(std::string_view type, std::string_view body) {
    std::string text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ";
    text += std::to_string(body.size()) + "\r\n";
    if (!type.empty()) text.append("Content-Type: ").append(type).append("\r\n");
    return text.append("\r\n").append(body);
}

constexpr std::string_view last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

class http_json : public testing::with_server {
protected:
    http_json() {
        handler_.answer = [this](request& incoming) { return answer(incoming); };
    }

    task<response> answer(request& incoming) {
        if (incoming.method() == "GET") co_return text("last");
        auto value = co_await read_json(incoming, json_limits_);
        if (!value) co_return response();
        nlohmann::json made;
        made["got"] = std::move(*value);
        co_return json(made, 201);
    }

    std::string answer_to(std::string_view type, std::string_view body) {
        const std::string all = talk(post(type, body) + std::string(last));
        EXPECT_TRUE(all.ends_with("last")) << all;
        return all;
    }
    int status_of(std::string_view type, std::string_view body) {
        return std::stoi(answer_to(type, body).substr(9));
    }

    json_limits json_limits_;
};

TEST_P(http_json, is_read_and_written) {
    const std::string all =
        answer_to("application/json; charset=utf-8", R"( {"a": [1, "\u00e9"]} )");
    EXPECT_TRUE(all.starts_with("HTTP/1.1 201 ")) << all;
    EXPECT_NE(all.find("Content-Type: application/json\r\n"), std::string::npos) << all;
    EXPECT_NE(all.find("\r\n\r\n{\"got\":{\"a\":[1,\"\xc3\xa9\"]}}"), std::string::npos) << all;
    EXPECT_EQ(status_of("Application/Problem+JSON", "null"), 201);
}

TEST_P(http_json, of_another_type_gets_415) {
    EXPECT_EQ(status_of("text/json", "{}"), 415);
    EXPECT_EQ(status_of("", "{}"), 415);
    EXPECT_EQ(status_of("application/+json", "{}"), 415);
}

TEST_P(http_json, that_is_none_gets_400) {
    for (const char* text : {"", "{", "{}x", "{'a':1}", "[1,]", "\"\xff\"", "nul"})
        EXPECT_EQ(status_of("application/json", text), 400) << text;
}

TEST_P(http_json, has_a_limit_on_its_depth_and_bytes) {
    json_limits_.depth = 3;
    json_limits_.bytes = 10;
    EXPECT_EQ(status_of("application/json", "[[[1]]]"), 201);
    EXPECT_EQ(status_of("application/json", "[[[[1]]]]"), 400);
    EXPECT_TRUE(talk(post("application/json", "[1,2,3,4,5]")).starts_with("HTTP/1.1 413 "));
}

EDDY_HTTP_ON_EVERY_BACKEND(http_json);

class http_json_pages : public ::testing::Test {
protected:
    /// The rendered template with this data, or its error.
    std::string page(const std::string& text, const nlohmann::json& data) {
        std::ofstream(folder_.file("page.mustache")) << text;
        auto pages = templates::open(folder_.path());
        if (!pages) return "error: " + pages.error();
        const auto made = pages->text("page", template_data_of(data));
        return made ? *made : "error: " + made.error();
    }

private:
    eddy::testing::temporary_folder folder_;
};

TEST_F(http_json_pages, have_values_of_each_kind) {
    const nlohmann::json data = {{"title", "Fish & chips"},
                                 {"dishes",
                                  {{{"name", "Soup"}, {"price", 6.5}, {"is_new", true}},
                                   {{"name", "Rice"}, {"price", 12}, {"is_new", false}}}},
                                 {"shop", {{"owner", {{"name", "Ada"}}}}},
                                 {"none", nullptr},
                                 {"empty", nlohmann::json::array()},
                                 {"numbers", {-1, 0, 18446744073709551615U, 0.1, 1e300}}};
    EXPECT_EQ(page("{{title}} {{{title}}}", data), "Fish &amp; chips Fish & chips");
    EXPECT_EQ(page("{{#dishes}}{{name}}:{{price}}{{#is_new}}!{{/is_new}};{{/dishes}}", data),
              "Soup:6.5!;Rice:12;");
    EXPECT_EQ(page("{{shop.owner.name}}", data), "Ada");
    EXPECT_EQ(page("[{{none}}{{^none}}no{{/none}}{{^empty}}thing{{/empty}}]", data), "[nothing]");
    EXPECT_EQ(page("{{#numbers}}{{.}} {{/numbers}}", data),
              "-1 0 18446744073709551615 0.1 1e+300 ");
}

TEST_F(http_json_pages, are_of_what_a_client_sent_at_its_deepest) {
    nlohmann::json data = "deep";
    std::string name = "a";
    for (std::size_t i = 0; i < json_limits().depth; ++i) {
        data = {{"a", std::move(data)}};
        if (i > 0) name += ".a";
    }
    EXPECT_EQ(page("{{" + name + "}}", data), "deep");
}

TEST_F(http_json_pages, whose_data_is_no_object_have_one_value) {
    EXPECT_EQ(page("{{.}}", "text"), "text");
    EXPECT_EQ(page("{{#.}}{{.}},{{/.}}", {1, 2}), "1,2,");
    EXPECT_EQ(page("[{{name}}]", nullptr), "[]");
}

}  // namespace
}  // namespace eddy::http
