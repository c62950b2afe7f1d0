// The API's routes against its OpenAPI document, both ways.
#include "daemon/control/control_api.hpp"

#include "daemon/control/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace eddy::daemon {
namespace {

// Tests run in the project's folder.
json read_document() {
    std::ifstream file("docs/control-api.openapi.json");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return json::parse(text, nullptr, false);
}

std::set<std::string> documented() {
    std::set<std::string> all;
    const json document = read_document();
    for (const auto& [path, operations] : document.at("paths").items()) {
        for (const auto& [method, operation] : operations.items()) {
            if (method == "parameters") continue;
            std::string name = method;
            std::transform(name.begin(), name.end(), name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
            all.insert(name + " " + path);
        }
    }
    return all;
}

std::set<std::string> routed() {
    std::set<std::string> all;
    for (const http::route& each : control_api::routes())
        all.insert(std::string(each.method) + " " + std::string(each.path));
    return all;
}

TEST(openapi, document_and_routes_are_the_same) {
    ASSERT_TRUE(read_document().is_object());
    const auto in_document = documented();
    const auto in_table = routed();
    for (const std::string& each : in_table)
        EXPECT_TRUE(in_document.contains(each)) << each << " is answered but not documented";
    for (const std::string& each : in_document)
        EXPECT_TRUE(in_table.contains(each)) << each << " is documented but not answered";
}

TEST(openapi, every_operation_has_an_id_a_summary_and_an_answer) {
    const json document = read_document();
    std::set<std::string> ids;
    for (const auto& [path, operations] : document.at("paths").items()) {
        for (const auto& [method, operation] : operations.items()) {
            if (method == "parameters") continue;
            EXPECT_FALSE(operation.value("summary", "").empty()) << method << " " << path;
            EXPECT_TRUE(ids.insert(operation.value("operationId", "")).second) << path;
            EXPECT_FALSE(operation.at("responses").empty()) << method << " " << path;
        }
    }
}

TEST(openapi, path_parameters_are_declared) {
    const json document = read_document();
    for (const auto& [path, operations] : document.at("paths").items()) {
        if (path.find('{') == std::string::npos) continue;
        ASSERT_TRUE(operations.contains("parameters")) << path;
        EXPECT_EQ(operations.at("parameters").at(0).value("name", ""), "name") << path;
    }
}

TEST(error_response, has_the_documented_form) {
    const http::response response = error_response(409, "it is \"taken\"");
    EXPECT_EQ(response.status, 409);
    const json body = json::parse(response.body.text());
    EXPECT_EQ(body.at("error").at("status"), 409);
    EXPECT_EQ(body.at("error").at("message"), "it is \"taken\"");
}

}  // namespace
}  // namespace eddy::daemon
