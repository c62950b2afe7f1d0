// Routing of requests: paths, methods, refusals.
#include <eddy/http/router.hpp>

#include "http/message_reader.hpp"
#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using testing::must;

const route table[] = {
    {"GET", "/v1/runtimes"},
    {"POST", "/v1/runtimes"},
    {"GET", "/v1/runtimes/{name}"},
    {"POST", "/v1/runtimes/{name}/start"},
};

TEST(find_route, chooses_by_method_and_path) {
    EXPECT_EQ(find_route(table, "GET", "/v1/runtimes").index, 0U);
    EXPECT_EQ(find_route(table, "POST", "/v1/runtimes").index, 1U);
    const routing start = find_route(table, "POST", "/v1/runtimes/db/start");
    EXPECT_EQ(start.index, 3U);
    EXPECT_EQ(start.parameters, std::vector<std::string>{"db"});
}

TEST(find_route, answers_head_as_get) {
    EXPECT_EQ(find_route(table, "HEAD", "/v1/runtimes").index, 0U);
}

TEST(find_route, names_the_methods_that_would_do) {
    const routing wrong = find_route(table, "PUT", "/v1/runtimes");
    EXPECT_FALSE(wrong.index);
    EXPECT_EQ(wrong.allow, "GET, HEAD, POST");
}

TEST(find_route, knows_no_other_paths) {
    const routing nowhere = find_route(table, "GET", "/v2/runtimes");
    EXPECT_FALSE(nowhere.index);
    EXPECT_EQ(nowhere.allow, "");
}

/// Routes requests without a body, on the simulator.
class http_router : public testing::with_server {
protected:
    response ask(const router& to, std::string method, std::string target) {
        response answer;
        run([&]() -> task<void> {
            http1::request_head head;
            head.method = method;
            head.target = target;
            stream none;
            http1::request_parser parser;
            message_reader content(none, parser);
            request incoming = must(request::make(head, content));
            answer = co_await to.dispatch(incoming);
        });
        return answer;
    }
};

TEST_P(http_router, calls_the_handler_of_the_route) {
    router to;
    to.add("GET", "/a/{one}/{two}", [](request& incoming) -> task<response> {
        co_return response(201, "text/plain",
                           std::string(incoming.path_parameter("two")) + "," +
                               std::string(incoming.path_parameter("one")));
    });
    to.add("PUT", "/a/{one}/{two}", [](request&) -> task<response> { co_return response(202); });
    const response got = ask(to, "GET", "/a/x%20y/z?q=1");
    EXPECT_EQ(got.status, 201);
    EXPECT_EQ(got.body.text(), "z,x y");
    EXPECT_EQ(ask(to, "HEAD", "/a/b/c").status, 201);
    EXPECT_EQ(ask(to, "PUT", "/a/b/c").status, 202);
    ASSERT_EQ(to.routes().size(), 2U);
    EXPECT_EQ(to.routes()[1].method, "PUT");
}

TEST_P(http_router, refuses_what_no_route_fits) {
    router to;
    to.add("GET", "/a", [](request&) -> task<response> { co_return response(); });
    const response missing = ask(to, "GET", "/b");
    EXPECT_EQ(missing.status, 404);
    EXPECT_FALSE(missing.headers.contains("Allow"));
    const response wrong = ask(to, "POST", "/a");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.find("Allow"), "GET, HEAD");
}

TEST_P(http_router, lets_its_owner_word_refusals) {
    router to([](const request& incoming, int status, std::string_view allow) {
        return response(status, "text/plain",
                        std::string(incoming.path()) + " allows " + std::string(allow));
    });
    to.add("POST", "/a", [](request&) -> task<response> { co_return response(); });
    EXPECT_EQ(ask(to, "GET", "/a").body.text(), "/a allows POST");
}

INSTANTIATE_TEST_SUITE_P(http, http_router, ::testing::Values(backend_kind::sim),
                         eddy::testing::backend_name);

}  // namespace
}  // namespace eddy::http
