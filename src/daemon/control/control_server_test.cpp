// Tests of the control server: the limit of connections, and the users that may control the daemon.
#include "daemon/control/control_server.hpp"

#include <eddy/io/event.hpp>
#include <eddy/net/unix.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

class hello_handler final : public http::request_handler {
public:
    task<http::response> handle(http::request& request) override {
        if (request.path() == "/throw") throw std::runtime_error("thrown on purpose");
        if (request.path() == "/wait") {
            ++waiting;
            static_cast<void>(co_await released.wait());
        }
        co_return http::response(200, "text/plain", "hello");
    }
    http::response reject(int status, std::string_view) override { return http::response(status); }

    int waiting = 0;
    event released;
};

constexpr std::string_view ask_to_wait = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";

class control_server_test : public ::testing::TestWithParam<io_backend_kind> {
public:
    void SetUp() override {
        loop_options options;
        options.kind = GetParam();
        auto made = loop::create(options);
        if (!made) GTEST_SKIP() << "the kernel refuses " << to_string(GetParam());
        loop_ = std::move(*made);
    }
    void TearDown() override { loop_.reset(); }

    using steps = task<void> (*)(control_server_test&);
    void with_server(steps body) { loop_->run(lead(body)); }

    task<void> lead(steps body) {
        auto listening = unix_socket::listen(path());
        EXPECT_TRUE(listening);
        server_limits limits;
        limits.connections = 2;
        limits.for_root = 0;
        control_server server(std::move(*listening), handler_, counted_, limits, true);
        scope running(co_await current_source());
        running.spawn(server.run());
        co_await body(*this);
        server.stop_accepting();
        running.cancel();
        co_await running.join();
        EXPECT_EQ(counted_.connections, 0U);
    }

    std::string path() const { return folder_ + "/s"; }

    task<stream> join() {
        auto joined = co_await unix_socket::connect(folder_ + "/s");
        EXPECT_TRUE(joined);
        co_return std::move(*joined);
    }

    static task<std::string> get(stream& from, std::string target) {
        const std::string request = "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
        static_cast<void>(co_await from.write_all(request));
        co_return co_await next(from);
    }
    static task<std::string> next(stream& from) {
        auto received = co_await from.read();
        co_return received ? std::string(received->text()) : std::string();
    }

    std::unique_ptr<loop> loop_;
    const eddy::testing::temporary_folder temporary_;
    const std::string folder_ = temporary_.path();
    hello_handler handler_;
    daemon_counters counted_;
};

TEST_P(control_server_test, serves_up_to_the_limit_and_refuses_the_next_one) {
    with_server([](control_server_test& test) -> task<void> {
        stream first = co_await test.join();
        stream second = co_await test.join();
        for (stream* const each : {&first, &second})
            static_cast<void>(co_await each->write_all(ask_to_wait));
        while (test.handler_.waiting < 2) co_await test.loop_->yield();
        stream third = co_await test.join();
        EXPECT_TRUE((co_await next(third)).starts_with("HTTP/1.1 503"));
        EXPECT_EQ(test.counted_.connections, 2U);
        EXPECT_EQ(test.counted_.connections_refused, 1U);
        test.handler_.released.set();
        EXPECT_TRUE((co_await next(first)).ends_with("hello"));
        EXPECT_TRUE((co_await next(second)).ends_with("hello"));
    });
}

TEST_P(control_server_test, a_new_connection_replaces_the_oldest_silent_one) {
    with_server([](control_server_test& test) -> task<void> {
        stream asked = co_await test.join();
        EXPECT_TRUE((co_await get(asked, "/")).ends_with("hello"));
        stream silent = co_await test.join();
        static_cast<void>(co_await silent.write_all(std::string_view("GET")));
        for (int i = 0; i < 3; ++i) {
            stream further = co_await test.join();
            EXPECT_EQ(co_await next(silent), "");
            EXPECT_TRUE((co_await get(asked, "/")).ends_with("hello"));
            silent = std::move(further);
        }
        EXPECT_TRUE((co_await get(silent, "/")).ends_with("hello"));
        EXPECT_EQ(test.counted_.connections_refused, 0U);
    });
}

TEST_P(control_server_test, a_new_connection_replaces_the_one_that_is_idle_longest) {
    with_server([](control_server_test& test) -> task<void> {
        stream first = co_await test.join();
        stream second = co_await test.join();
        EXPECT_TRUE((co_await get(second, "/")).ends_with("hello"));
        EXPECT_TRUE((co_await get(first, "/")).ends_with("hello"));
        stream third = co_await test.join();
        EXPECT_TRUE((co_await get(third, "/")).ends_with("hello"));
        EXPECT_EQ(co_await next(second), "");
        EXPECT_TRUE((co_await get(first, "/")).ends_with("hello"));
        EXPECT_EQ(test.counted_.connections, 2U);
    });
}

TEST_P(control_server_test, many_new_connections_at_once_leave_the_limit) {
    with_server([](control_server_test& test) -> task<void> {
        std::vector<stream> many;
        for (int i = 0; i < 40; ++i) many.push_back(co_await test.join());
        stream last = co_await test.join();
        EXPECT_TRUE((co_await get(last, "/")).ends_with("hello"));
        while (test.counted_.connections > 2) co_await test.loop_->yield();
    });
}

TEST_P(control_server_test, an_exception_is_answered) {
    with_server([](control_server_test& test) -> task<void> {
        stream good = co_await test.join();
        stream bad = co_await test.join();
        EXPECT_TRUE((co_await get(good, "/")).ends_with("hello"));
        EXPECT_TRUE((co_await get(bad, "/throw")).starts_with("HTTP/1.1 500 "));
        EXPECT_TRUE((co_await get(good, "/")).ends_with("hello"));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, control_server_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(may_control, its_own_user_and_root) {
    EXPECT_TRUE(may_control(1000, 1000));
    EXPECT_TRUE(may_control(0, 1000));
    EXPECT_FALSE(may_control(1001, 1000));
    EXPECT_FALSE(may_control(1000, 0));
}

}  // namespace
}  // namespace eddy::daemon
