// Followed names: when they are looked up again, what of an answer counts, and what is noted.
#include "proxy/followed_names.hpp"

#include "proxy/backend.hpp"
#include "proxy/balancer.hpp"
#include "proxy/testing.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using list = std::vector<std::string>;

/// Name server of the test's own: an answer takes `delay`.
class test_lookup final : public name_lookup {
public:
    task<result<host_addresses>> look_up(std::string host) override {
        ++asked[host];
        const result<> waited = co_await loop::current().sleep_for(delay);
        if (!waited) co_return fail(waited.error());
        if (error) co_return fail(*error);
        host_addresses made{{}, ttl};
        for (const std::string& each : hosts[host]) made.all.push_back(must(endpoint::ip(each, 0)));
        if (made.all.empty()) co_return fail(errc::name_not_found);
        co_return made;
    }
    task<result<service_records>> look_up_service(std::string name) override {
        ++asked[name];
        const result<> waited = co_await loop::current().sleep_for(delay);
        if (!waited) co_return fail(waited.error());
        if (error) co_return fail(*error);
        if (services[name].empty()) co_return fail(errc::name_not_found);
        co_return service_records{services[name], ttl};
    }

    std::map<std::string, list> hosts;
    std::map<std::string, std::vector<service_record>> services;
    std::optional<std::error_code> error;
    duration ttl = 10s;
    duration delay = 1ms;
    std::map<std::string, int> asked;
};

/// On the simulator's clock, as the times are long.
class a_followed_name : public eddy::testing::on_io_backend, protected name_observer {
protected:
    void note_changed_names() override { ++changes; }
    void note_failed_name(std::string_view name, std::error_code why,
                          bool has_addresses) noexcept override {
        noted.push_back(std::string(name) + " fails: " + why.message() +
                        (has_addresses ? "" : ", it has none"));
    }
    void note_gone_name(std::string_view name) noexcept override {
        noted.push_back(std::string(name) + " is gone");
    }
    void note_found_name(std::string_view name) noexcept override {
        noted.push_back(std::string(name) + " is found");
    }
    void note_long_answer(std::string_view name, std::size_t count) noexcept override {
        noted.push_back(std::string(name) + " has " + std::to_string(count));
    }

    /// Without the limit of patience: minutes of the simulator's time are short.
    template <class Body>
    void run_with(Body body) {
        run_with_threads([&]() -> task<void> {
            followed_names names(static_cast<name_observer&>(*this), server);
            co_await body(names);
            co_await names.end();
        });
    }
    static list of(const followed_names& names, std::string_view host = "a.test") {
        list made;
        for (const endpoint& each : names.addresses_of(host)) made.push_back(each.host());
        return made;
    }
    static task<void> pass(duration time) { must(co_await loop::current().sleep_for(time)); }

    const std::shared_ptr<test_lookup> server = std::make_shared<test_lookup>();
    int changes = 0;
    list noted;
};
INSTANTIATE_TEST_SUITE_P(proxy, a_followed_name, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(a_followed_name, is_looked_up_again_by_its_time) {
    run_with([this](followed_names& names) -> task<void> {
        server->hosts["a.test"] = {"10.0.0.2", "10.0.0.1", "10.0.0.2"};
        EXPECT_TRUE(names.follow({"a.test"}, {}));
        EXPECT_TRUE(names.is_waiting());
        EXPECT_THAT(of(names), IsEmpty());
        co_await names.wait();
        EXPECT_FALSE(names.is_waiting());
        EXPECT_THAT(of(names), ElementsAre("10.0.0.1", "10.0.0.2"));
        EXPECT_EQ(changes, 1);
        server->hosts["a.test"] = {"10.0.0.1", "10.0.0.2"};
        co_await pass(9s);
        EXPECT_EQ(server->asked["a.test"], 1);
        co_await pass(1100ms);
        EXPECT_EQ(server->asked["a.test"], 2);
        EXPECT_EQ(changes, 1) << "the same ones in another order";
        server->hosts["a.test"] = {"10.0.0.3"};
        co_await pass(10s);
        EXPECT_THAT(of(names), ElementsAre("10.0.0.3"));
        EXPECT_EQ(changes, 2);
        EXPECT_THAT(noted, IsEmpty());
    });
}

TEST_P(a_followed_name, has_bounds_of_its_time) {
    run_with([this](followed_names& names) -> task<void> {
        server->ttl = 0s;
        server->hosts["a.test"] = {"10.0.0.1"};
        names.follow({"a.test"}, {});
        co_await pass(10s);
        EXPECT_LE(server->asked["a.test"], 11);
        EXPECT_GE(server->asked["a.test"], 9);
        server->ttl = 24h;
        co_await pass(1s);
        const int before = server->asked["a.test"];
        co_await pass(followed_names::longest_time);
        EXPECT_EQ(server->asked["a.test"], before + 1);
    });
}

TEST_P(a_followed_name, keeps_its_addresses_while_lookups_fail) {
    run_with([this](followed_names& names) -> task<void> {
        server->hosts["a.test"] = {"10.0.0.1"};
        names.follow({"a.test"}, {});
        co_await names.wait();
        for (const std::error_code& why :
             {make_error_code(errc::resolver_failed), make_error_code(errc::timed_out),
              make_error_code(errc::name_not_found)}) {
            server->error = why;
            co_await pass(5min);
            EXPECT_THAT(of(names), ElementsAre("10.0.0.1")) << why.message();
        }
        const std::string fails =
            "a.test fails: " + make_error_code(errc::resolver_failed).message();
        EXPECT_THAT(noted, ElementsAre(fails, "a.test is gone"));
        const int before = server->asked["a.test"];
        co_await pass(5min);
        EXPECT_LE(server->asked["a.test"] - before, 11) << "the pause has grown";
        server->error.reset();
        server->hosts["a.test"] = {"10.0.0.2"};
        co_await pass(followed_names::longest_retry + 1s);
        EXPECT_THAT(of(names), ElementsAre("10.0.0.2"));
        EXPECT_THAT(noted, ElementsAre(fails, "a.test is gone", "a.test is found"));
    });
}

TEST_P(a_followed_name, that_flaps_is_noted_now_and_then) {
    run_with([this](followed_names& names) -> task<void> {
        server->ttl = 1s;
        names.follow({"a.test"}, {});
        for (int i = 0; i < 60; ++i) {
            server->hosts["a.test"] = {"10.0.0." + std::to_string(i + 1)};
            server->error.reset();
            if (i % 2 == 1) server->error = make_error_code(errc::resolver_failed);
            co_await pass(1s);
            EXPECT_EQ(of(names).size(), 1U);
        }
        EXPECT_GE(changes, 20);
        EXPECT_LE(noted.size(), 12U) << "a failure in ten seconds, and its end";
        EXPECT_GE(noted.size(), 2U);
    });
}

TEST_P(a_followed_name, that_changes_each_second_has_its_addresses_within_a_second) {
    run_with([this](followed_names& names) -> task<void> {
        server->ttl = 1s;
        names.follow({"a.test"}, {});
        for (int i = 1; i <= 20; ++i) {
            const std::string now = "10.0.0." + std::to_string(i);
            server->hosts["a.test"] = {now};
            co_await pass(1010ms);
            EXPECT_THAT(of(names), ElementsAre(now));
        }
    });
}

TEST_P(a_followed_name, without_an_answer_is_awaited_for_a_short_time) {
    run_with([this](followed_names& names) -> task<void> {
        server->delay = 5s;
        server->hosts["a.test"] = {"10.0.0.1"};
        names.follow({"a.test"}, {});
        const time_point begun = loop::current().now();
        co_await names.wait();
        EXPECT_GE(loop::current().now() - begun, followed_names::first_wait);
        EXPECT_LE(loop::current().now() - begun, followed_names::first_wait + 100ms);
        EXPECT_THAT(of(names), IsEmpty());
        EXPECT_THAT(noted, IsEmpty()) << "it is only late";
        co_await pass(5100ms);
        EXPECT_THAT(of(names), ElementsAre("10.0.0.1"));
        EXPECT_EQ(changes, 2);
    });
}

TEST_P(a_followed_name, that_never_was_found_is_noted_once) {
    run_with([this](followed_names& names) -> task<void> {
        names.follow({"a.test"}, {});
        co_await names.wait();
        EXPECT_EQ(changes, 1) << "the owner may have waited";
        co_await pass(9min);
        EXPECT_THAT(noted,
                    ElementsAre("a.test fails: " + make_error_code(errc::name_not_found).message() +
                                ", it has none"));
    });
}

TEST_P(a_followed_name, of_many_addresses_keeps_those_in_use) {
    run_with([this](followed_names& names) -> task<void> {
        const auto from = [](int first, int count) {
            list made;
            for (int i = 0; i < count; ++i) made.push_back("10.0.1." + std::to_string(first + i));
            return made;
        };
        server->hosts["a.test"] = from(100, 64);
        names.follow({"a.test"}, {});
        co_await names.wait();
        const list before = of(names);
        EXPECT_EQ(before.size(), max_backends);
        EXPECT_THAT(noted, IsEmpty());
        server->hosts["a.test"] = from(1, 200);
        co_await pass(11s);
        EXPECT_EQ(of(names), before) << "the limit leaves out new ones";
        EXPECT_EQ(changes, 1);
        server->hosts["a.test"] = from(101, 100);
        co_await pass(10s);
        EXPECT_EQ(of(names).size(), max_backends);
        EXPECT_THAT(noted, ElementsAre("a.test has 200"));
    });
}

TEST_P(a_followed_name, ends_when_it_is_wanted_no_more) {
    run_with([this](followed_names& names) -> task<void> {
        server->hosts = {{"a.test", {"10.0.0.1"}}, {"b.test", {"10.0.0.2"}}};
        names.follow({"a.test", "b.test", "a.test"}, {});
        co_await names.wait();
        EXPECT_EQ(server->asked["a.test"], 1);
        names.follow({"b.test"}, {});
        EXPECT_FALSE(names.is_waiting());
        EXPECT_THAT(of(names), IsEmpty());
        EXPECT_THAT(of(names, "b.test"), ElementsAre("10.0.0.2")) << "it stays";
        co_await pass(1min);
        EXPECT_EQ(server->asked["a.test"], 1);
        EXPECT_GT(server->asked["b.test"], 3);
        server->delay = 10s;
        names.follow({"a.test", "b.test"}, {});
        EXPECT_TRUE(names.is_waiting());
        names.follow({"b.test"}, {});
        EXPECT_FALSE(names.is_waiting()) << "for one that is not wanted any more";
    });
}

TEST_P(a_followed_name, is_one_of_a_limited_number) {
    run_with([this](followed_names& names) -> task<void> {
        list all;
        for (std::size_t i = 0; i <= followed_names::max_names; ++i)
            all.push_back("h" + std::to_string(i) + ".test");
        EXPECT_FALSE(names.follow(all, {}));
        all.pop_back();
        EXPECT_TRUE(names.follow(all, {}));
        co_await names.wait();
        EXPECT_EQ(server->asked.size(), followed_names::max_names);
    });
}

TEST_P(a_followed_name, of_a_service_has_its_servers_looked_up) {
    run_with([this](followed_names& names) -> task<void> {
        server->services["_x._tcp.test"] = {{"b.test", 81, 2, 5}, {"a.test", 80, 1, 3}};
        server->hosts = {
            {"a.test", {"10.0.0.1"}}, {"b.test", {"10.0.0.2"}}, {"c.test", {"10.0.0.3"}}};
        names.follow({}, {"_x._tcp.test"});
        co_await names.wait();
        EXPECT_EQ(changes, 1) << "when all of it is there";
        EXPECT_THAT(names.servers_of("_x._tcp.test"),
                    ElementsAre(service_server{"a.test", 80, 3, false},
                                service_server{"b.test", 81, 5, true}));
        EXPECT_THAT(of(names, "a.test"), ElementsAre("10.0.0.1"));
        EXPECT_THAT(of(names, "b.test"), ElementsAre("10.0.0.2"));
        server->services["_x._tcp.test"] = {{"C.test", 80, 0, 0}};
        co_await pass(11s);
        EXPECT_THAT(names.servers_of("_x._tcp.test"),
                    ElementsAre(service_server{"c.test", 80, 1, false}));
        EXPECT_THAT(of(names, "c.test"), ElementsAre("10.0.0.3"));
        EXPECT_THAT(of(names, "a.test"), IsEmpty());
        // No service is no change.
        server->services["_x._tcp.test"] = {{"", 0, 0, 0}};
        co_await pass(30s);
        EXPECT_THAT(of(names, "c.test"), ElementsAre("10.0.0.3"));
        EXPECT_EQ(noted.size(), 1U);
    });
}

TEST(servers_of_records, have_weights_in_bounds) {
    const auto weights = [](std::vector<std::uint16_t> given) {
        std::vector<service_record> records;
        for (std::size_t i = 0; i < given.size(); ++i)
            records.push_back({"h" + std::to_string(i), 1, 1, given[i]});
        std::vector<std::uint32_t> made(given.size());
        for (const service_server& each : servers_of_records(records))
            made.at(static_cast<std::size_t>(std::stoi(each.host.substr(1)))) = each.weight;
        return made;
    };
    EXPECT_THAT(weights({1, 2, 100}), ElementsAre(1, 2, 100));
    EXPECT_THAT(weights({0, 0}), ElementsAre(1, 1));
    EXPECT_THAT(weights({0, 65535, 32768}), ElementsAre(1, max_weight, 50));
}

TEST(servers_of_records, are_the_first_ones_of_too_many) {
    std::vector<service_record> records;
    for (int i = 0; i < 100; ++i)
        records.push_back({"h" + std::to_string(i), 1, static_cast<std::uint16_t>(i % 2), 1});
    const auto made = servers_of_records(records);
    ASSERT_EQ(made.size(), max_backends);
    EXPECT_FALSE(made.at(49).is_backup);
    EXPECT_TRUE(made.at(50).is_backup);
}

}  // namespace
}  // namespace eddy::proxy
