// Health checks: results that count, and which change the state of a backend.
#include "proxy/health.hpp"

#include "proxy/testing.hpp"

#include <string>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class health : public eddy::testing::on_io_backend, protected health_observer {
protected:
    void note_down(const backend&, std::string_view why) noexcept override {
        noted.push_back("down: " + std::string(why));
    }
    void note_up(const backend&) noexcept override { noted.emplace_back("up"); }

    static health_rules rules_of(health_rules::kind how) {
        health_rules made;
        made.how = how;
        made.path = "/health";
        made.interval = 10ms;
        made.timeout = 200ms;
        return made;
    }
    /// One check of a backend that answers with this text.
    static task<std::string> checked(std::string answer) {
        test_backend at;
        const backend of(at.wanted().where, 1);
        std::string found;
        co_await with_scope([&](scope& tasks) -> task<void> {
            tasks.spawn([](const backend& b, std::string& into) -> task<void> {
                into = co_await check_health(b, rules_of(health_rules::kind::http));
            }(of, found));
            text_peer peer = co_await at.accept();
            EXPECT_EQ(co_await peer.head(),
                      "GET /health HTTP/1.1\r\nHost: " + at.name().substr(6) +
                          "\r\nUser-Agent: eddy-health\r\nConnection: close\r\n\r\n");
            if (!answer.empty()) co_await peer.say(answer);
            static_cast<void>(co_await peer.is_over());
        });
        co_return found;
    }

    std::vector<std::string> noted;
};

INSTANTIATE_TEST_SUITE_P(proxy, health,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(health, http_wants_a_good_status) {
    run([]() -> task<void> {
        EXPECT_EQ(co_await checked("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "");
        EXPECT_EQ(co_await checked("HTTP/1.1 302 x\r\n\r\n"), "");
        EXPECT_EQ(co_await checked("HTTP/1.1 404 x\r\n\r\n"), "its check got the status 404");
        EXPECT_EQ(co_await checked("HTTP/1.1 103 x\r\n\r\nHTTP/1.1 503 x\r\n\r\n"),
                  "its check got the status 503");
        EXPECT_THAT(co_await checked("garbage\r\n\r\n"), StartsWith("its check got no response: "));
        EXPECT_THAT(co_await checked(""), HasSubstr("deadline passed")) << "a silent one";
    });
}

TEST_P(health, tcp_wants_a_connection) {
    run([]() -> task<void> {
        test_backend at;
        const backend of(at.wanted().where, 1);
        EXPECT_EQ(co_await check_health(of, rules_of(health_rules::kind::tcp)), "");
        at.close();
        EXPECT_THAT(co_await check_health(of, rules_of(health_rules::kind::tcp)),
                    StartsWith("it accepts no connection: "));
    });
}

TEST_P(health, a_backend_goes_down_and_comes_back) {
    run([this]() -> task<void> {
        test_backend live;
        auto dead = std::make_unique<test_backend>();
        const std::vector<wanted_backend> wanted{live.wanted(), dead->wanted()};
        const endpoint where = must(endpoint::ip("127.0.0.1", wanted[1].where.port));
        const backend_list all = update_backends({}, wanted, 1);
        dead.reset();
        health_checks checks(*this);
        checks.set(rules_of(health_rules::kind::tcp), all);
        while (noted.empty()) must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(all[1].its->state(), backend_state::down);
        EXPECT_EQ(all[0].its->state(), backend_state::up);
        {
            const listener again = must(loop::current().listen(where));
            while (noted.size() < 2) must(co_await loop::current().sleep_for(1ms));
            EXPECT_THAT(noted, ElementsAre(StartsWith("down: "), "up"));
            EXPECT_EQ(all[1].its->state(), backend_state::up);
        }
        while (noted.size() < 3) must(co_await loop::current().sleep_for(1ms));
        checks.set({}, all);
        EXPECT_EQ(all[1].its->state(), backend_state::up) << "without checks";
        co_await checks.end();
    });
}

TEST_P(health, a_backend_that_was_down_is_up_by_the_first_good_result_after_an_edit) {
    run([this]() -> task<void> {
        auto dead = std::make_unique<test_backend>();
        const std::vector<wanted_backend> wanted{dead->wanted()};
        const endpoint where = must(endpoint::ip("127.0.0.1", wanted[0].where.port));
        const backend_list all = update_backends({}, wanted, 1);
        dead.reset();
        health_checks checks(*this);
        health_rules rules = rules_of(health_rules::kind::tcp);
        checks.set(rules, all);
        while (noted.empty()) must(co_await loop::current().sleep_for(1ms));
        const listener again = must(loop::current().listen(where));
        rules.rise = 1000;
        checks.set(rules, all);
        while (noted.size() < 2) must(co_await loop::current().sleep_for(1ms));
        EXPECT_THAT(noted, ElementsAre(StartsWith("down: "), "up"));
        EXPECT_EQ(all[0].its->state(), backend_state::up);
        co_await checks.end();
    });
}

TEST_P(health, one_bad_result_of_many_does_not_count) {
    run([this]() -> task<void> {
        test_backend at;
        const std::vector<wanted_backend> wanted{at.wanted()};
        const backend_list all = update_backends({}, wanted, 1);
        health_checks checks(*this);
        checks.set(rules_of(health_rules::kind::http), all);
        for (const int status : {200, 500, 500, 200, 500, 500, 200, 500, 500}) {
            text_peer peer = co_await at.accept();
            co_await peer.head();
            co_await peer.say("HTTP/1.1 " + std::to_string(status) +
                              " x\r\nContent-Length: 0\r\n\r\n");
            static_cast<void>(co_await peer.is_over());
        }
        EXPECT_EQ(noted.size(), 0U);
        text_peer peer = co_await at.accept();
        co_await peer.head();
        peer.socket.close();
        while (noted.empty()) must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(all[0].its->state(), backend_state::down);
        co_await checks.end();
    });
}

}  // namespace
}  // namespace eddy::proxy
