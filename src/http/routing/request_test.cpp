// Requests as handlers see them: the connection that they came over.
#include <eddy/http/request.hpp>

#include <eddy/http/router.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

using testing::must;

class http_request : public testing::with_server {};
EDDY_HTTP_ON_EVERY_BACKEND(http_request);

task<response> show_peer(request& incoming) {
    co_return text(incoming.connection()->peer().to_string() + ";");
}

TEST_P(http_request, has_the_connection_that_it_came_over) {
    handler_.answer = show_peer;
    with_session([&](stream& client) -> task<void> {
        // Two at once, and one behind them.
        const std::string asked = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        const std::string twice = asked + asked;
        const std::string own = client.local().to_string() + ";";
        std::string answer;
        must(co_await client.write_all(twice));
        EXPECT_TRUE(co_await read_until(client, answer, own));
        answer.erase(0, answer.find(own) + own.size());
        EXPECT_TRUE(co_await read_until(client, answer, own));
        answer.clear();
        must(co_await client.write_all(asked));
        EXPECT_TRUE(co_await read_until(client, answer, own));
        client.close();
    });
}

task<response> collect_and_show(request& incoming) {
    if (!co_await incoming.collect()) co_return response();
    co_return co_await show_peer(incoming);
}

task<response> compare_peers(request& incoming, chain rest) {
    const std::string before = incoming.connection()->peer().to_string();
    response answer = co_await rest(incoming);
    answer.add("X-Peer", before == incoming.connection()->peer().to_string() ? before : "moved");
    co_return answer;
}

TEST_P(http_request, has_its_connection_in_middleware_and_behind_its_body) {
    router app;
    app.post("/", collect_and_show).use(compare_peers);
    handler_.answer = [&](request& incoming) { return app.handle(incoming); };
    with_session([&](stream& client) -> task<void> {
        const std::string own = client.local().to_string();
        must(co_await client.write_all(std::string_view(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab")));
        std::string answer;
        co_await read_all(client, answer);
        EXPECT_NE(answer.find("\r\nX-Peer: " + own + "\r\n"), std::string::npos) << answer;
        EXPECT_TRUE(answer.ends_with(own + ";")) << answer;
        client.close();
    });
}

/// Content of a request that came over no connection.
class no_content final : public body_reader {
public:
    task<result<std::string_view>> read() override { co_return fail(errc::end_of_stream); }
    task<result<std::string>> whole(std::size_t) override { co_return std::string(); }
    void set_limit(std::uint64_t) noexcept override {}
    bool ended() const noexcept override { return true; }
    const http1::header_list& trailers() const noexcept override {
        static const http1::header_list none;
        return none;
    }
};

TEST(http_request_alone, has_no_connection) {
    http1::request_head head;
    head.method = "GET";
    head.target = "/";
    no_content content;
    EXPECT_EQ(must(request::make(head, content)).connection(), nullptr);
}

}  // namespace
}  // namespace eddy::http
