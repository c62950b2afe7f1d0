// Followed masters: what of the answers of Sentinels counts, when they are asked, and what is
// noted.
#include "proxy/followed_masters.hpp"

#include "proxy/redis_fakes.hpp"
#include "serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using namespace std::chrono_literals;
using serving::testing::until;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using list = std::vector<std::string>;

/// Tests with servers, which notes call by the names that the test gives them.
class masters_test : public eddy::testing::on_io_backend, protected master_observer {
protected:
    bool is_own(const transport::address& where) const override {
        return own.contains(host_and_port(where));
    }
    void note_changed_masters() override { ++changes; }
    void note_master(std::string_view name, const known_master& now,
                     const transport::address* before) noexcept override {
        note(std::string(name) + " is " + host_and_port(now.where) + " by " + now.source +
             (before != nullptr ? " after " + host_and_port(*before) : ""));
    }
    void note_no_master(std::string_view name, std::string_view why,
                        bool has_master) noexcept override {
        note(std::string(name) + ": " + std::string(why) + (has_master ? "" : ", it has none"));
    }
    void note_lost_sentinel(std::string_view why) noexcept override {
        note("lost: " + std::string(why));
    }
    void note_found_sentinel(std::string_view sentinel) noexcept override {
        note("found: " + std::string(sentinel));
    }

    template <class Body>
    void run_with(Body body) {
        run([&]() -> task<void> { co_await follow_in(body); });
    }
    /// Without the limit of patience: minutes of the simulator's time are short.
    template <class Body>
    void run_for_long(Body body) {
        run_with_threads([&]() -> task<void> { co_await follow_in(body); });
    }
    template <class Server, class... Rest>
    Server& make(const std::string& name, scope& tasks, Rest&&... rest) {
        auto made = std::make_unique<Server>(tasks, std::forward<Rest>(rest)...);
        Server& its = *made;
        names.emplace_back(its.place(), name);
        servers.push_back(std::move(made));
        return its;
    }
    template <class... Servers>
    static sentinel_group group_of(const Servers&... all) {
        return {{all.where()...}};
    }
    /// Name of the server that is the master; empty: none is.
    std::string master(const followed_masters& of, std::string_view name = "cache") const {
        const auto now = of.master_of(name);
        return now ? named(host_and_port(now->where)) : std::string();
    }
    static task<void> pass(duration time) { must(co_await loop::current().sleep_for(time)); }

    std::set<std::string> own;
    int changes = 0;
    list noted;

private:
    template <class Body>
    task<void> follow_in(Body& body) {
        scope tasks(co_await current_source());
        followed_masters masters(static_cast<master_observer&>(*this));
        std::exception_ptr failure;
        try {
            co_await body(tasks, masters);
        } catch (...) {
            failure = std::current_exception();
        }
        co_await masters.end();
        tasks.cancel();
        co_await tasks.join();
        servers.clear();
        if (failure) std::rethrow_exception(failure);
    }
    std::string named(std::string text) const {
        for (const auto& [place, name] : names)
            for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place))
                text.replace(at, place.size(), name);
        return text;
    }
    void note(std::string text) noexcept { noted.push_back(named(std::move(text))); }

    std::vector<std::pair<std::string, std::string>> names;  // of servers, by their places
    std::vector<std::unique_ptr<fake_server>> servers;
};

class a_followed_master : public masters_test {};
INSTANTIATE_TEST_SUITE_P(proxy, a_followed_master,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

/// On the simulator's clock, as the times are long.
class a_long_followed_master : public masters_test {};
INSTANTIATE_TEST_SUITE_P(proxy, a_long_followed_master, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(a_followed_master, is_named_by_a_sentinel_and_asked_for_its_role) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        auto& two = make<fake_sentinel>("two", tasks, a);
        EXPECT_TRUE(masters.follow({"cache"}, group_of(one, two)));
        EXPECT_TRUE(masters.is_waiting());
        EXPECT_EQ(master(masters), "");
        co_await masters.wait();
        EXPECT_EQ(master(masters), "a");
        EXPECT_EQ(masters.master_of("cache")->source, one.uri());
        EXPECT_EQ(masters.master_of("other"), std::nullopt);
        EXPECT_EQ(changes, 1);
        EXPECT_THAT(noted, ElementsAre("cache is a by tcp://one"));
        EXPECT_THAT(a.commands, ElementsAre(ElementsAre("ROLE")));
        EXPECT_EQ(two.connections, 0U) << "one of them is enough";
    });
}

TEST_P(a_followed_master, changes_when_a_switch_is_announced) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await masters.wait();
        co_await until([&] { return one.subscribers() == 1; });
        for (int i = 0; i < 4; ++i) {
            fake_cache& next = i % 2 == 0 ? b : a;
            const time_point begun = loop::current().now();
            co_await one.switch_to(next);
            co_await until([&] { return master(masters) == (i % 2 == 0 ? "b" : "a"); });
            if (!simulated()) continue;
            EXPECT_LT(loop::current().now() - begun, followed_masters::poll_interval / 2);
        }
        EXPECT_EQ(changes, 5);
        EXPECT_THAT(
            noted, ElementsAre("cache is a by tcp://one", "cache is b by tcp://one after a",
                               "cache is a by tcp://one after b", "cache is b by tcp://one after a",
                               "cache is a by tcp://one after b"));
    });
}

TEST_P(a_long_followed_master, changes_without_announcements_too) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        one.announces = false;
        masters.follow({"cache"}, group_of(one));
        co_await masters.wait();
        one.named = b.port();
        co_await until([&] { return master(masters) == "b"; });
        EXPECT_THAT(noted, SizeIs(2)) << "no subscription is no loss";
    });
}

TEST_P(a_followed_master, counts_once_it_says_that_it_is_one) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks, "slave");
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await masters.wait();
        co_await one.switch_to(b);
        co_await until([&] { return b.asked("ROLE") >= 3; });
        EXPECT_EQ(master(masters), "a") << "it stays in use";
        EXPECT_EQ(noted.back(), "cache: the Sentinel tcp://one names b, which is a replica");
        EXPECT_EQ(changes, 1);
        b.role = "master";
        co_await until([&] { return master(masters) == "b"; });
        EXPECT_EQ(noted.back(), "cache is b by tcp://one after a");
        EXPECT_THAT(noted, SizeIs(3));
    });
}

TEST_P(a_long_followed_master, is_not_what_a_sentinel_that_was_cut_off_names) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& former = make<fake_cache>("former", tasks, "slave");
        auto& dead = make<fake_cache>("dead", tasks);
        dead.die();
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, former);
        auto& two = make<fake_sentinel>("two", tasks, dead);
        auto& three = make<fake_sentinel>("three", tasks, a);
        masters.follow({"cache"}, group_of(one, two, three));
        co_await until([&] { return master(masters) == "a"; });
        EXPECT_THAT(
            noted, ElementsAre("cache: the Sentinel tcp://one names former, which is a replica, it "
                               "has none",
                               "cache is a by tcp://three"));
        EXPECT_EQ(former.asked("ROLE"), followed_masters::checks);
    });
}

TEST_P(a_followed_master, is_none_of_other_roles_and_answers) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks, "sentinel");
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await until([&] { return !noted.empty(); });
        EXPECT_THAT(noted, ElementsAre(HasSubstr("names a, which has the role sentinel")));
        for (const char* const odd :
             {"*0\r\n", "-LOADING Redis is loading the dataset in memory\r\n",
              "HTTP/1.1 400 Bad Request\r\n\r\n", ""}) {
            const std::size_t before = a.commands.size();
            a.answer = [odd](const words&) { return odd; };
            co_await until([&] { return a.commands.size() >= before + 2; });
            EXPECT_EQ(master(masters), "") << odd;
        }
    });
}

TEST_P(a_followed_master, with_a_password_counts_by_the_word_of_the_sentinel) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        a.answer = [](const words&) { return "-NOAUTH Authentication required.\r\n"; };
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await until([&] { return master(masters) == "a"; });
        EXPECT_THAT(noted, ElementsAre("cache is a by tcp://one"));
    });
}

TEST_P(a_followed_master, is_followed_by_the_other_sentinels_when_one_dies) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        auto& two = make<fake_sentinel>("two", tasks, a);
        masters.follow({"cache"}, group_of(one, two));
        co_await masters.wait();
        one.die();
        co_await until([&] { return two.subscribers() == 1; });
        EXPECT_EQ(master(masters), "a");
        co_await two.switch_to(b);
        co_await until([&] { return master(masters) == "b"; });
        EXPECT_THAT(noted, ElementsAre("cache is a by tcp://one",
                                       HasSubstr("lost: tcp://one has not answered: "),
                                       "cache is b by tcp://two after a"));
        one.named = b.port();
        one.come_back();
        two.die();
        co_await until([&] { return noted.back() == "found: tcp://one"; });
        EXPECT_EQ(master(masters), "b");
    });
}

TEST_P(a_followed_master, survives_garbage) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        std::string deep;
        for (int i = 0; i < 40; ++i) deep += "*1\r\n";
        const list odd_ones = {
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "$99999999999\r\n",
            "*99999999\r\n",
            "-NOAUTH Authentication required.\r\n",
            "+OK\r\n",
            ":1\r\n",
            "*0\r\n",
            "*2\r\n:1\r\n*0\r\n",
            array_of({"127.0.0.1"}),
            array_of({"127.0.0.1", "0"}),
            array_of({"127.0.0.1", "65536"}),
            array_of({"127.0.0.1", "-1"}),
            array_of({"127.0.0.1", "63 79"}),
            array_of({"127.0.0.1", "6379", "x"}),
            array_of({"", "6379"}),
            array_of({"*", "6379"}),
            array_of({"a b", "6379"}),
            array_of({std::string("a\0b", 3), "6379"}),
            array_of({"http://a", "6379"}),
            array_of({std::string(5000, 'a'), "6379"}),
            deep,
            std::string(200'000, 'x'),
            "+" + std::string(200'000, 'x'),
            "*2\r\n" + array_of(words(5000, "x")),
            "$70000\r\n" + std::string(70'000, 'x') + "\r\n",
        };
        auto& a = make<fake_cache>("a", tasks);
        auto& good = make<fake_sentinel>("good", tasks, a);
        for (const std::string& odd : odd_ones) {
            auto& bad = make<fake_sentinel>("bad", tasks, a);
            bad.odd_answer = odd;
            noted.clear();
            masters.follow({}, {});
            masters.follow({"cache"}, group_of(bad, good));
            co_await until([&] { return master(masters) == "a"; });
            EXPECT_EQ(masters.master_of("cache")->source, good.uri()) << odd.substr(0, 100);
            EXPECT_THAT(noted,
                        ElementsAre(HasSubstr("lost: tcp://bad has "), "cache is a by tcp://good"))
                << odd.substr(0, 100);
            EXPECT_LE(noted.front().size(), 300U);
        }
    });
}

TEST_P(a_long_followed_master, may_have_a_wrong_name) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        one.odd_answer = "*-1\r\n";
        masters.follow({"cache"}, group_of(one));
        co_await masters.wait();
        EXPECT_EQ(changes, 1) << "the owner may have waited";
        EXPECT_THAT(noted,
                    ElementsAre("cache: the Sentinel tcp://one knows no master of this name, "
                                "it has none"));
        one.odd_answer.clear();
        co_await until([&] { return master(masters) == "a"; });
        one.odd_answer = "$-1\r\n";
        const std::size_t before = one.asked("SENTINEL");
        co_await until([&] { return one.asked("SENTINEL") > before + 1; });
        EXPECT_EQ(master(masters), "a") << "it stays in use";
    });
}

TEST_P(a_followed_master, is_never_the_proxy_itself) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& self = make<fake_cache>("self", tasks);
        own.insert(self.place());
        auto& one = make<fake_sentinel>("one", tasks, self);
        masters.follow({"cache"}, group_of(one));
        co_await until([&] { return one.asked("SENTINEL") >= 3; });
        EXPECT_EQ(master(masters), "");
        EXPECT_EQ(self.connections, 0U);
        EXPECT_THAT(noted,
                    ElementsAre("cache: the Sentinel tcp://one names self, which is this proxy "
                                "itself, it has none"));
    });
}

TEST_P(a_followed_master, of_sentinels_with_a_password) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        one.password = "sesame";
        sentinel_group by = group_of(one);
        masters.follow({"cache"}, by);
        co_await until([&] { return !noted.empty(); });
        EXPECT_THAT(noted, ElementsAre("lost: tcp://one has answered: NOAUTH Authentication "
                                       "required."));
        by.password = "wrong";
        masters.follow({"cache"}, by);
        co_await until([&] { return noted.size() == 2; });
        EXPECT_THAT(noted[1], HasSubstr("lost: tcp://one has refused the password: WRONGPASS"));
        by.password = "sesame";
        masters.follow({"cache"}, by);
        co_await until([&] { return master(masters) == "a"; });
        co_await until([&] { return one.subscribers() == 1; });
    });
}

TEST_P(a_followed_master, keeps_its_address_under_another_group) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        auto& two = make<fake_sentinel>("two", tasks, b);
        two.delay = 300ms;
        masters.follow({"cache"}, group_of(one));
        co_await masters.wait();
        masters.follow({"cache"}, group_of(two));
        EXPECT_FALSE(masters.is_waiting()) << "it has an address";
        EXPECT_EQ(master(masters), "a");
        co_await until([&] { return master(masters) == "b"; });
        const std::size_t before = one.asked("SENTINEL");
        masters.follow({}, {});
        EXPECT_EQ(master(masters), "");
        masters.follow({"cache", "cache"}, group_of(two));
        co_await masters.wait();
        EXPECT_EQ(master(masters), "b");
        EXPECT_EQ(one.asked("SENTINEL"), before);
    });
}

TEST_P(a_long_followed_master, is_one_of_a_limited_number) {
    run_with([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        list all;
        for (std::size_t i = 0; i < followed_masters::max_names; ++i)
            all.push_back("n" + std::to_string(i));
        all.front() = "cache";
        EXPECT_TRUE(masters.follow(all, group_of(one)));
        all.emplace_back("more");
        EXPECT_FALSE(masters.follow(all, group_of(one)));
        co_await masters.wait();
        EXPECT_EQ(master(masters), "a");
    });
}

TEST_P(a_long_followed_master, asks_the_next_sentinel_when_one_is_slow) {
    run_for_long([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& slow = make<fake_sentinel>("slow", tasks, a);
        auto& one = make<fake_sentinel>("one", tasks, a);
        slow.delay = 1h;
        const time_point begun = loop::current().now();
        masters.follow({"cache"}, group_of(slow, one));
        co_await masters.wait();
        EXPECT_GE(loop::current().now() - begun, followed_masters::first_wait);
        EXPECT_LE(loop::current().now() - begun, followed_masters::first_wait + 100ms);
        EXPECT_EQ(master(masters), "");
        co_await until([&] { return master(masters) == "a"; });
        EXPECT_LE(loop::current().now() - begun, followed_masters::patience + 100ms);
        EXPECT_THAT(noted[0], HasSubstr("lost: tcp://slow has not answered: "));
        // So is a server whose role is not known.
        auto& b = make<fake_cache>("b", tasks);
        b.delay = 1h;
        co_await one.switch_to(b);
        co_await pass(5s);
        EXPECT_EQ(master(masters), "a");
        EXPECT_THAT(noted.back(), HasSubstr("names b, which has not answered ROLE: "));
    });
}

TEST_P(a_long_followed_master, stays_while_all_sentinels_are_gone) {
    run_for_long([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        auto& two = make<fake_sentinel>("two", tasks, a);
        masters.follow({"cache"}, group_of(one, two));
        co_await masters.wait();
        one.die();
        two.die();
        co_await pass(10min);
        EXPECT_EQ(master(masters), "a");
        EXPECT_THAT(noted, SizeIs(3)) << "once for each";
        for (fake_sentinel* const each : {&one, &two}) {
            each->named = b.port();
            each->answer = [](const words&) { return std::string(); };
            each->connections = 0;
            each->come_back();
        }
        // They take connections, and end them.
        co_await pass(1min);
        EXPECT_LE(one.connections, 90U) << "the pauses have grown";
        EXPECT_GE(one.connections, 10U);
        EXPECT_THAT(noted, SizeIs(3));
        one.answer = [&](const words&) {
            return array_of({"127.0.0.1", std::to_string(b.port())});
        };
        co_await pass(followed_masters::longest_pause + 1s);
        EXPECT_EQ(master(masters), "b");
        EXPECT_THAT(noted, ElementsAre("cache is a by tcp://one", ::testing::_, ::testing::_,
                                       "found: tcp://one", "cache is b by tcp://one after a"));
    });
}

TEST_P(a_long_followed_master, that_flaps_is_noted_now_and_then) {
    run_for_long([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        for (int i = 0; i < 60; ++i) {
            one.odd_answer = i % 2 == 0 ? "" : "-ERR odd\r\n";
            co_await one.push(array_of({"message", "+switch-master", "cache x"}));
            co_await pass(3s);
        }
        EXPECT_LE(noted.size(), 40U);
        EXPECT_GE(noted.size(), 4U);
        EXPECT_EQ(master(masters), "a");
    });
}

TEST_P(a_long_followed_master, is_asked_about_at_most_so_often) {
    run_for_long([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await until([&] { return one.subscribers() == 1; });
        co_await pass(10s);
        const std::size_t quiet = one.asked("SENTINEL");
        EXPECT_LE(quiet, 8U);
        EXPECT_GE(quiet, 5U);
        for (int i = 0; i < 1000; ++i) {
            co_await one.push(array_of({"message", "+switch-master", "cache x y z u"}));
            co_await pass(1ms);
        }
        const std::size_t flooded = one.asked("SENTINEL");
        EXPECT_LE(flooded - quiet,
                  static_cast<std::size_t>(1s / followed_masters::least_pause) + 2);
        EXPECT_GE(flooded - quiet, 10U);
        co_await pass(5s);
        const std::size_t before = one.asked("SENTINEL");
        for (int i = 0; i < 100; ++i)
            co_await one.push(array_of({"message", "+switch-master", "cache2 x y z u"}));
        co_await pass(1s);
        EXPECT_LE(one.asked("SENTINEL") - before, 1U) << "of another master";
    });
}

TEST_P(a_long_followed_master, has_its_subscription_again_when_that_is_lost) {
    run_for_long([this](scope& tasks, followed_masters& masters) -> task<void> {
        auto& a = make<fake_cache>("a", tasks);
        auto& b = make<fake_cache>("b", tasks);
        auto& one = make<fake_sentinel>("one", tasks, a);
        masters.follow({"cache"}, group_of(one));
        co_await until([&] { return one.subscribers() == 1; });
        co_await one.push("*1\r\n$5\r\n");
        co_await one.push("nonsense");
        co_await until([&] { return one.asked("SUBSCRIBE") == 2 && one.subscribers() == 1; });
        co_await one.switch_to(b);
        co_await pass(500ms);
        EXPECT_EQ(master(masters), "b");
        EXPECT_THAT(noted, SizeIs(2));
    });
}

}  // namespace
}  // namespace eddy::proxy
