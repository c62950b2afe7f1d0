// Routing of requests: paths, methods, refusals.
#include <eddy/http/router.hpp>

#include "http/session/message_reader.hpp"
#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using testing::must;

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
            traffic counted;
            message_reader content(none, parser, counted);
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

/// A handler that answers with a text.
router::handler says(std::string text) {
    return [text](request&) -> task<response> { co_return response(200, "text/plain", text); };
}

/// One that answers with the values of parameters.
router::handler shows(std::string text, std::vector<std::string> names) {
    return [text, names](request& incoming) -> task<response> {
        std::string all = text;
        for (const std::string& each : names) all.append(" ").append(incoming.path_parameter(each));
        co_return response(200, "text/plain", all);
    };
}

TEST_P(http_router, prefers_the_more_specific_pattern) {
    router to;
    to.get("/{path...}", shows("rest", {"path"}))
        .get("/users/{name}", shows("name", {"name"}))
        .get("/users/{id:int}", shows("id", {"id"}))
        .get("/users/me", says("me"))
        .get("/users/{name}.json", shows("json", {"name"}))
        .get("/users/me/{thing}/last", shows("last", {"thing"}));
    const auto text = [&](std::string path) { return ask(to, "GET", path).body.text(); };
    EXPECT_EQ(text("/users/me"), "me");
    EXPECT_EQ(text("/users/%6De"), "me");
    EXPECT_EQ(text("/users/42"), "id 42");
    EXPECT_EQ(text("/users/ann"), "name ann");
    EXPECT_EQ(text("/users/ann.json"), "json ann");
    EXPECT_EQ(text("/users/me/x/last"), "last x");
    EXPECT_EQ(text("/users/me/x/first"), "rest users/me/x/first") << "goes back";
    EXPECT_EQ(text("/users/"), "rest users/");
    EXPECT_EQ(text("/a%20b/c"), "rest a b/c");
    EXPECT_EQ(ask(to, "GET", "/").status, 404);
    EXPECT_EQ(ask(to, "GET", "/a%2Fb").status, 404);
}

TEST_P(http_router, goes_on_to_a_pattern_that_has_the_method) {
    router to;
    to.get("/users/me", says("me"))
        .post("/users/{name}", says("posted"))
        .del("/users/{id:int}", says("deleted"));
    EXPECT_EQ(ask(to, "POST", "/users/me").body.text(), "posted");
    const response wrong = ask(to, "PUT", "/users/7");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.find("Allow"), "DELETE, POST");
    EXPECT_EQ(ask(to, "PUT", "/users/me").headers.find("Allow"), "GET, HEAD, POST");
}

TEST_P(http_router, answers_options) {
    router to;
    to.get("/a", says("a")).put("/a", says("a"));
    const response options = ask(to, "OPTIONS", "/a");
    EXPECT_EQ(options.status, 204);
    EXPECT_EQ(options.headers.find("Allow"), "GET, HEAD, PUT, OPTIONS");
    EXPECT_EQ(ask(to, "OPTIONS", "*").status, 204);
    EXPECT_EQ(ask(to, "OPTIONS", "/b").status, 404);
    to.add("OPTIONS", "/a", says("own"));
    EXPECT_EQ(ask(to, "OPTIONS", "/a").body.text(), "own");
}

TEST_P(http_router, gives_integers) {
    router to;
    std::int64_t seen = 0;
    to.get("/{id:int}", [&seen](request& incoming) -> task<response> {
        seen = incoming.path_integer("id");
        co_return response();
    });
    EXPECT_EQ(ask(to, "GET", "/-9223372036854775808").status, 200);
    EXPECT_EQ(seen, INT64_MIN);
    EXPECT_EQ(ask(to, "GET", "/9223372036854775808").status, 404);
}

/// Middleware that writes around the content of responses.
router::middleware around(std::string text) {
    return [text](request& incoming, chain rest) -> task<response> {
        response answer = co_await rest(incoming);
        answer.body = body(text + "(" + answer.body.text() + ")");
        co_return answer;
    };
}

TEST_P(http_router, runs_middleware_around_everything) {
    router to([](const request&, int status, std::string_view) {
        return response(status, "text/plain", "refused");
    });
    to.use(around("outer")).get("/a", says("a")).use(around("inner"));
    EXPECT_EQ(ask(to, "GET", "/a").body.text(), "outer(inner(a))");
    EXPECT_EQ(ask(to, "GET", "/b").body.text(), "outer(inner(refused))");
    to.use([](request& incoming, chain rest) -> task<response> {
        if (incoming.path() == "/a") co_return response(403, "text/plain", "no");
        co_return co_await rest(incoming);
    });
    EXPECT_EQ(ask(to, "GET", "/a").body.text(), "outer(inner(no))") << "it need not go on";
}

TEST_P(http_router, mounts_routers_with_their_middleware) {
    router deepest;
    deepest.use(around("deepest")).get("/{name}", shows("hello", {"name"}));
    router api;
    api.use(around("api")).get("/version", says("1")).mount("/deep", std::move(deepest));
    router to;
    to.use(around("all")).mount("/api", std::move(api)).get("/", says("home"));
    EXPECT_EQ(ask(to, "GET", "/").body.text(), "all(home)");
    EXPECT_EQ(ask(to, "GET", "/api/version").body.text(), "all(api(1))");
    EXPECT_EQ(ask(to, "GET", "/api/deep/x").body.text(), "all(api(deepest(hello x)))");
    EXPECT_EQ(ask(to, "GET", "/api").status, 404);
    router moved = std::move(to);
    EXPECT_EQ(ask(moved, "GET", "/api/deep/y").body.text(), "all(api(deepest(hello y)))");
}

TEST_P(http_router, words_errors) {
    router to;
    EXPECT_EQ(to.reject(431, "too much").body.text(),
              "Request Header Fields Too Large: too much\n");
    to.on_error([](int status, std::string_view what) {
        return response(status, "text/plain", "error: " + std::string(what));
    });
    EXPECT_EQ(to.reject(400, "bad").body.text(), "error: bad");
    to.on_refusal([](const request& incoming, int status, std::string_view) {
        return response(status, "text/plain", "no " + std::string(incoming.path()));
    });
    EXPECT_EQ(ask(to, "GET", "/x").body.text(), "no /x");
}

TEST(http_router_patterns, must_be_sound_and_new) {
    router to;
    to.get("/a", says("a"));
    EXPECT_DEATH(to.get("/a", says("again")), "a second route of one method and pattern");
    EXPECT_DEATH(to.get("a", says("a")), "the pattern's form is wrong");
    EXPECT_DEATH(to.get("/{a}{b}", says("a")), "the pattern's form is wrong");
    EXPECT_DEATH(to.mount("/api/", router()), "the prefix begins with a '/' and does not end");
}

INSTANTIATE_TEST_SUITE_P(http, http_router, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

}  // namespace
}  // namespace eddy::http
