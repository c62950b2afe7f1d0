// Backends that are named in DNS: their addresses, and changes of them beside connections.
#include <eddy/net/udp.hpp>

#include "net/dns_server.hpp"
#include "proxy/followed_names.hpp"
#include "runtime/proxy/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using eddy::testing::dns_server;
using ::testing::ElementsAre;
using ::testing::Pair;

/// Listeners of one port at 127.0.0.1, 127.0.0.2 and so on.
class same_port {
public:
    explicit same_port(int count) {
        for (int tries = 0; tries < 100 && ends_.empty(); ++tries) {
            for (int i = 1; i <= count; ++i) {
                const std::uint16_t port = ends_.empty() ? 0 : ends_.front().local().port();
                auto made = loop::current().listen(
                    must(endpoint::ip("127.0.0." + std::to_string(i), port)));
                if (!made) {
                    ends_.clear();
                    break;
                }
                ends_.push_back(std::move(*made));
            }
        }
    }
    std::string port() const { return std::to_string(ends_.at(0).local().port()); }
    task<talker> accept(std::size_t i) { co_return talker(must(co_await ends_.at(i).accept())); }

private:
    std::vector<listener> ends_;
};

class named_backends : public on_io_backend {
protected:
    /// Runs the body with a name server.
    template <class Body>
    void with_names(Body body) {
        run([&]() -> task<void> {
            scope tasks(co_await current_source());
            {
                dns_server names(tasks);
                names.ttl = 1;
                co_await body(names);
                tasks.cancel();
                co_await tasks.join();
            }
        });
    }
    static json options(const dns_server& names, std::string backends, json others = {}) {
        others["resolver"] = names.address();
        others["backend"] = std::move(backends);
        return with(others);
    }
    static std::vector<std::string> backends_of(subject& s) {
        std::vector<std::string> made;
        for (const auto& [name, value] : by_backend(s, "backend_up")) made.push_back(name);
        return made;
    }
    /// A client through the proxy, and a line each way.
    static task<tunnel_ends> through_to(subject& s, same_port& ends, std::size_t i) {
        talker client = co_await talker::to(s->local());
        talker backend = co_await ends.accept(i);
        co_await client.say("question\n");
        EXPECT_EQ(co_await backend.line(), "question");
        co_return tunnel_ends{std::move(client), std::move(backend)};
    }
};
// The simulator has no DNS.
INSTANTIATE_TEST_SUITE_P(io, named_backends,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(named_backends, have_a_share_for_each_address) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(2);
        names.records["api.test"] = {"127.0.0.2", "127.0.0.1"};
        subject s("proxy", options(names, "api.test:" + ends.port()));
        co_await s.start();
        const std::string uri = "tcp://api.test:" + ends.port();
        EXPECT_THAT(backends_of(s), ElementsAre(uri + "/127.0.0.1", uri + "/127.0.0.2"));
        tunnel_ends a = co_await through_to(s, ends, 0);
        tunnel_ends b = co_await through_to(s, ends, 1);
        EXPECT_THAT(by_backend(s, "backend_connections_total"),
                    ElementsAre(Pair(uri + "/127.0.0.1", 1), Pair(uri + "/127.0.0.2", 1)));
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, change_without_an_end_of_connections) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(2);
        names.records["api.test"] = {"127.0.0.1"};
        subject s("proxy", options(names, "api.test:" + ends.port()));
        co_await s.start();
        tunnel_ends first = co_await through_to(s, ends, 0);
        for (int i = 0; i < 4; ++i) {
            const std::string now = i % 2 == 0 ? "127.0.0.2" : "127.0.0.1";
            names.records["api.test"] = {now};
            const std::string wanted = "tcp://api.test:" + ends.port() + "/" + now;
            co_await until([&] { return backends_of(s) == std::vector{wanted}; });
            tunnel_ends next = co_await through_to(s, ends, i % 2 == 0 ? 1 : 0);
        }
        co_await first.backend.say("still here\n");
        EXPECT_EQ(co_await first.client.line(), "still here");
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, keep_their_addresses_while_the_name_server_fails) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(1);
        names.records["api.test"] = {"127.0.0.1"};
        subject s("proxy", options(names, "api.test:" + ends.port()));
        co_await s.start();
        names.broken.insert("api.test");
        co_await until([&] { return s.events.has("backend name api.test cannot be looked up"); });
        tunnel_ends a = co_await through_to(s, ends, 0);
        names.broken.clear();
        co_await until([&] { return s.events.has("backend name api.test is found again"); });
        names.records.clear();
        const int before = names.asked["api.test"];
        co_await until([&] { return names.asked["api.test"] > before + 2; });
        tunnel_ends b = co_await through_to(s, ends, 0);
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, are_awaited_by_an_edit) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(2);
        names.records["one.test"] = {"127.0.0.1"};
        names.records["two.test"] = {"127.0.0.2"};
        subject s("proxy", options(names, "one.test:" + ends.port()));
        co_await s.start();
        tunnel_ends first = co_await through_to(s, ends, 0);
        must_do(s->apply(s.parse(options(names, "two.test:" + ends.port()))));
        const std::string one = "tcp://one.test:" + ends.port() + "/127.0.0.1";
        EXPECT_EQ(backends_of(s), std::vector{one}) << "until the other one is known";
        co_await until([&] { return backends_of(s) != std::vector{one}; });
        tunnel_ends second = co_await through_to(s, ends, 1);
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, come_from_the_records_of_a_service) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(2);
        const auto port = static_cast<std::uint16_t>(std::stoi(ends.port()));
        names.services["_db._tcp.test"] = {{"one.test", port, 1, 1}, {"two.test", port, 2, 1}};
        names.records["one.test"] = {"127.0.0.1"};
        names.records["two.test"] = {"127.0.0.2"};
        json chosen = options(names, "srv://_db._tcp.test");
        subject s("proxy", chosen);
        co_await s.start();
        const std::string one = "tcp://one.test:" + ends.port() + "/127.0.0.1";
        EXPECT_THAT(backends_of(s),
                    ElementsAre(one, "tcp://two.test:" + ends.port() + "/127.0.0.2"));
        tunnel_ends a = co_await through_to(s, ends, 0);
        tunnel_ends b = co_await through_to(s, ends, 0);
        chosen["drain_backend"] = one;
        must_do(s->apply(s.parse(chosen)));
        tunnel_ends c = co_await through_to(s, ends, 1);
        chosen["drain_backend"] = "srv://_db._tcp.test";
        must_do(s->apply(s.parse(chosen)));
        EXPECT_THAT(by_backend(s, "backend_up"), ElementsAre(Pair(one, 0), Pair(::testing::_, 0)));
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, that_are_unknown_take_no_clients) {
    with_names([](dns_server& names) -> task<void> {
        same_port ends(1);
        subject s("proxy", options(names, "api.test:" + ends.port()));
        co_await s.start();
        EXPECT_TRUE(s.events.has("backend name api.test cannot be looked up: "));
        EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
        names.records["api.test"] = {"127.0.0.1"};
        co_await until([&] { return backends_of(s).size() == 1; });
        tunnel_ends a = co_await through_to(s, ends, 0);
        co_await s->stop(0s);
    });
}

TEST_P(named_backends, of_datagrams_change_too) {
    with_names([](dns_server& names) -> task<void> {
        datagram one = must(udp::bind("127.0.0.1", 0));
        const std::uint16_t port = one.local().port();
        names.records["api.test"] = {"127.0.0.1"};
        subject s("proxy", {{"listen", "udp://127.0.0.1:0"},
                            {"resolver", names.address()},
                            {"backend", "api.test:" + std::to_string(port)}});
        co_await s.start();
        datagram client = must(udp::bind("127.0.0.1", 0));
        must(client.send_to(as_bytes("question"), s->local()));
        EXPECT_EQ(must(co_await one.receive()).payload.text(), "question");
        names.records["api.test"] = {"127.0.0.2"};
        const std::string wanted = "udp://api.test:" + std::to_string(port) + "/127.0.0.2";
        co_await until([&] { return backends_of(s) == std::vector{wanted}; });
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
