// Tests of the registry: resolving names and groups, watching them, and which runtime has an
// address.
#include "runtime/host/registry.hpp"

#include <eddy/io/loop_group.hpp>

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EDDY_ON_EVERY_IO_BACKEND(address_watches);

address_note serve(registry& in, std::string name, std::uint16_t port,
                   std::string host = "127.0.0.1") {
    transport::address where;
    where.host = host;
    return in.note(std::move(name), where, must(endpoint::ip(host, port)));
}

/// "name uri", or the refusal.
std::vector<std::string> texts(const outcome<served_addresses>& found) {
    if (!found) return {std::to_string(found.error().status) + " " + found.error().message};
    std::vector<std::string> all;
    for (const served_address& each : *found)
        all.push_back(each.runtime + " " + each.where.to_string());
    return all;
}

TEST(registry, resolves_a_name_while_its_runtime_runs) {
    const auto known = std::make_shared<registry>();
    known->add("site", "0123456789ab", "");
    EXPECT_THAT(texts(known->resolve("site")), IsEmpty());
    address_note first = serve(*known, "site", 8080);
    EXPECT_THAT(texts(known->resolve("site")), IsEmpty()) << "it is still starting";
    known->set_running("site", true);
    EXPECT_THAT(texts(known->resolve("site")), ElementsAre("site tcp://127.0.0.1:8080"));
    EXPECT_THAT(texts(known->resolve("0123456789ab")), ElementsAre("site tcp://127.0.0.1:8080"));
    {
        const address_note second = serve(*known, "site", 8443);
        EXPECT_THAT(texts(known->resolve("site")),
                    ElementsAre("site tcp://127.0.0.1:8080", "site tcp://127.0.0.1:8443"));
    }
    first = address_note();
    EXPECT_THAT(texts(known->resolve("site")), IsEmpty());
    known->set_running("site", false);
    known->remove("site");
    EXPECT_THAT(texts(known->resolve("site")), ElementsAre(HasSubstr("404 there is no runtime")));
}

TEST(registry, refuses_an_unknown_name_with_the_one_that_was_meant) {
    const auto known = std::make_shared<registry>();
    known->add("frontend", "1", "");
    EXPECT_THAT(texts(known->resolve("frontent")),
                ElementsAre("404 there is no runtime \"frontent\"; did you mean \"frontend\"?"));
    EXPECT_THAT(texts(known->resolve("")), ElementsAre(HasSubstr("404")));
    EXPECT_THAT(texts(known->resolve("@web")), ElementsAre(HasSubstr("in the group \"web\"")));
    EXPECT_THAT(texts(known->resolve("x*")), ElementsAre(HasSubstr("matches \"x*\"")));
}

TEST(registry, resolves_groups_and_patterns_to_those_that_run) {
    const auto known = std::make_shared<registry>();
    std::vector<address_note> notes;
    std::uint16_t port = 1000;
    for (const std::string name : {"web2", "web1", "db"}) {
        known->add(name, "id" + name, name == "db" ? "" : "front");
        known->set_running(name, true);
        notes.push_back(serve(*known, name, ++port));
    }
    const auto webs = ElementsAre("web1 tcp://127.0.0.1:1002", "web2 tcp://127.0.0.1:1001");
    EXPECT_THAT(texts(known->resolve("web*")), webs);
    EXPECT_THAT(texts(known->resolve("@front")), webs);
    EXPECT_THAT(texts(known->resolve("@f*")), webs);
    known->set_running("web1", false);
    EXPECT_THAT(texts(known->resolve("@front")), ElementsAre("web2 tcp://127.0.0.1:1001"));
    known->set_group("web2", "");
    EXPECT_THAT(texts(known->resolve("@front")), IsEmpty());
    EXPECT_THAT(texts(known->resolve("*")),
                ElementsAre("db tcp://127.0.0.1:1003", "web2 tcp://127.0.0.1:1001"));
}

TEST(registry, addresses_can_be_connected_to) {
    const auto known = std::make_shared<registry>();
    known->add("all", "1", "");
    known->set_running("all", true);
    const auto resolved = [&](const std::string& uri, const endpoint& bound) {
        const address_note note = known->note("all", must(transport::parse(uri)), bound);
        return texts(known->resolve("all")).at(0).substr(4);
    };
    EXPECT_EQ(resolved("tcp://:0", must(endpoint::ip("::", 5))), "tcp://[::1]:5");
    EXPECT_EQ(resolved("tcp://:0", must(endpoint::ip("0.0.0.0", 5))), "tcp://127.0.0.1:5");
    EXPECT_EQ(resolved("tcp://10.1.2.3:7", must(endpoint::ip("10.1.2.3", 7))), "tcp://10.1.2.3:7");
    EXPECT_EQ(resolved("udp://localhost:0", must(endpoint::ip("127.0.0.1", 9))),
              "udp://127.0.0.1:9");
    EXPECT_EQ(resolved("tls://*:0?cert=/a&key=/b", must(endpoint::ip("::", 5))), "tls://[::1]:5");
    EXPECT_EQ(resolved("unix:///run/x.sock", must(endpoint::unix_path("/run/x.sock"))),
              "unix:///run/x.sock");
}

TEST(registry, names_the_runtime_that_has_an_address) {
    const auto known = std::make_shared<registry>();
    address_note one = serve(*known, "one", 80);
    const auto server = [&](const char* host, std::uint16_t port, bool is_datagram = false) {
        return known->server_at(must(endpoint::ip(host, port)), is_datagram);
    };
    EXPECT_EQ(server("127.0.0.1", 80), "one");
    EXPECT_EQ(server("::", 80), "one");
    EXPECT_EQ(server("127.0.0.2", 80), "");
    EXPECT_EQ(server("127.0.0.1", 81), "");
    EXPECT_EQ(server("127.0.0.1", 80, true), "");
    address_note moved = std::move(one);
    EXPECT_EQ(server("127.0.0.1", 80), "one");
    moved = serve(*known, "all", 90, "::");
    EXPECT_EQ(server("127.0.0.7", 90), "all");
}

task<void> count_changes(address_watch& watch, int& changes, std::error_code& end) {
    for (;;) {
        const result<> changed = co_await watch.changed();
        if (!changed) {
            end = changed.error();
            co_return;
        }
        ++changes;
    }
}

remote_runtime remote(std::string name, std::string group, std::uint16_t port) {
    return {std::move(name), std::move(group), {{transport::scheme::tcp, "10.0.0.2", port}}};
}

TEST(registry, groups_have_the_runtimes_of_other_members) {
    const auto known = std::make_shared<registry>();
    known->add("web1", "1", "front");
    known->set_running("web1", true);
    const address_note note = serve(*known, "web1", 80);
    known->set_remote("b", {remote("b/web2", "front", 82), remote("b/web1", "front", 81),
                            remote("b/db", "back", 83), remote("b/alone", "", 84)});
    const auto all = ElementsAre("web1 tcp://127.0.0.1:80", "b/web1 tcp://10.0.0.2:81",
                                 "b/web2 tcp://10.0.0.2:82");
    EXPECT_THAT(texts(known->resolve("@front")), all);
    EXPECT_THAT(texts(known->resolve("@fr*")), all);
    EXPECT_FALSE(known->resolve("@front")->at(0).is_remote);
    EXPECT_TRUE(known->resolve("@front")->at(1).is_remote);
    EXPECT_THAT(texts(known->resolve("@back")), ElementsAre("b/db tcp://10.0.0.2:83"));
    // Names and patterns of names are those of this daemon.
    EXPECT_THAT(texts(known->resolve("*")), ElementsAre("web1 tcp://127.0.0.1:80"));
    EXPECT_FALSE(known->resolve("b/db"));
    EXPECT_FALSE(known->resolve("@"));

    known->set_remote("c", {remote("c/web", "front", 85)});
    known->set_remote("b", {remote("b/web1", "front", 91)});
    EXPECT_THAT(texts(known->resolve("@front")),
                ElementsAre("web1 tcp://127.0.0.1:80", "b/web1 tcp://10.0.0.2:91",
                            "c/web tcp://10.0.0.2:85"));
    EXPECT_THAT(texts(known->resolve("@back")), ElementsAre(HasSubstr("404")));
    known->set_remote("b", {});
    known->set_remote("unknown", {});
    known->set_running("web1", false);
    EXPECT_THAT(texts(known->resolve("@front")), ElementsAre("c/web tcp://10.0.0.2:85"));
}

TEST(registry, a_name_that_another_member_shows_twice_counts_once) {
    const auto known = std::make_shared<registry>();
    known->set_remote("b", {remote("b/a", "g", 1), remote("b/a", "h", 2), remote("b/a", "g", 3)});
    EXPECT_THAT(texts(known->resolve("@*")), ElementsAre("b/a tcp://10.0.0.2:1"));
    known->set_remote("b", {remote("b/a", "h", 2), remote("b/a", "h", 2)});
    EXPECT_THAT(texts(known->resolve("@*")), ElementsAre("b/a tcp://10.0.0.2:2"));
    known->set_remote("b", {});
    EXPECT_THAT(texts(known->resolve("@*")), ElementsAre(HasSubstr("404")));
}

TEST(registry, tells_what_a_runtime_has_opened) {
    const auto known = std::make_shared<registry>();
    const address_note first =
        known->note("a", must(transport::parse("tcp://*:0")), must(endpoint::ip("::", 5)));
    const address_note second =
        known->note("a", must(transport::parse("udp://:0")), must(endpoint::ip("10.0.0.1", 6)));
    const address_note other = serve(*known, "b", 7);
    const auto opened = known->opened_by("a");
    ASSERT_EQ(opened.size(), 2U);
    EXPECT_EQ(opened[0].bound.to_string(), "[::]:5");
    EXPECT_EQ(opened[1].kind, transport::scheme::udp);
    EXPECT_EQ(opened[1].bound.to_string(), "10.0.0.1:6");
    EXPECT_TRUE(known->opened_by("c").empty());
}

TEST_P(address_watches, see_changes_of_a_group_at_other_members) {
    run([&]() -> task<void> {
        const neighbours all;
        auto other = std::make_shared<test_host>(all, "other");
        address_watch watch = must_do(other->watch("@front"));
        address_watch name = must_do(other->watch("*"));
        int changes = 0;
        int changes_of_names = 0;
        std::error_code end;
        scope tasks;
        tasks.spawn(count_changes(watch, changes, end));
        tasks.spawn(count_changes(name, changes_of_names, end));
        co_await until([&] { return changes == 1 && changes_of_names == 1; });
        const auto show = [&](std::uint16_t front, std::uint16_t back) {
            all.runtimes->set_remote(
                "b", {remote("b/web", "front", front), remote("b/db", "back", back)});
        };
        show(1, 1);
        co_await until([&] { return changes == 2; });
        show(1, 1);
        show(1, 2);
        static_cast<void>(co_await loop::current().sleep_for(5ms));
        EXPECT_EQ(changes, 2) << "of another group, or none";
        show(2, 2);
        co_await until([&] { return changes == 3; });
        all.runtimes->set_remote("b", {remote("b/web", "back", 2)});
        co_await until([&] { return changes == 4; });
        EXPECT_THAT(texts(watch.addresses()), ElementsAre(HasSubstr("404")));
        EXPECT_EQ(changes_of_names, 1);
        tasks.cancel();
        co_await tasks.join();
    });
}

TEST_P(address_watches, see_start_stop_restart_and_removal) {
    run([&]() -> task<void> {
        const neighbours all;
        auto other = std::make_shared<test_host>(all, "other");
        address_watch watch = must_do(other->watch("site"));
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), ElementsAre(HasSubstr("404")));

        all.runtimes->add("site", "1", "");
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), IsEmpty());

        address_note note = serve(*all.runtimes, "site", 80);
        all.runtimes->set_running("site", true);
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), ElementsAre("site tcp://127.0.0.1:80"));

        all.runtimes->set_running("site", false);
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), IsEmpty());

        note = address_note();
        note = serve(*all.runtimes, "site", 81);
        all.runtimes->set_running("site", true);
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), ElementsAre("site tcp://127.0.0.1:81"));

        all.runtimes->remove("site");
        must(co_await watch.changed());
        EXPECT_THAT(texts(watch.addresses()), ElementsAre(HasSubstr("404")));
    });
}

TEST_P(address_watches, coalesce_changes_and_skip_those_of_others) {
    run([&]() -> task<void> {
        const neighbours all;
        auto other = std::make_shared<test_host>(all, "other");
        for (const std::string name : {"web1", "web2", "db"}) {
            all.runtimes->add(name, name, name == "db" ? "back" : "front");
            all.runtimes->set_running(name, true);
        }
        address_watch watch = must_do(other->watch("@front"));
        int changes = 0;
        std::error_code end;
        scope tasks;
        tasks.spawn(count_changes(watch, changes, end));
        co_await until([&] { return changes == 1; });
        {
            std::vector<address_note> notes;
            for (std::uint16_t port = 1; port <= 100; ++port)
                notes.push_back(serve(*all.runtimes, port % 2 == 0 ? "web1" : "web2", port));
        }
        co_await until([&] { return changes == 2; });
        const address_note elsewhere = serve(*all.runtimes, "db", 1000);
        static_cast<void>(co_await loop::current().sleep_for(5ms));
        EXPECT_EQ(changes, 2);
        all.runtimes->set_group("db", "front");
        co_await until([&] { return changes == 3; });
        EXPECT_THAT(texts(watch.addresses()), ElementsAre("db tcp://127.0.0.1:1000"));
        all.runtimes->set_group("db", "back");
        co_await until([&] { return changes == 4; });
        tasks.cancel();
        co_await tasks.join();
        EXPECT_EQ(end, errc::cancelled);
    });
}

TEST_P(address_watches, end_with_the_instance_that_watches) {
    run([&]() -> task<void> {
        const neighbours all;
        auto other = std::make_shared<test_host>(all, "other");
        address_watch watch = must_do(other->watch("*"));
        int changes = 0;
        std::error_code end;
        scope tasks;
        tasks.spawn(count_changes(watch, changes, end));
        co_await until([&] { return changes == 1; });
        other->end();
        co_await tasks.join();
        EXPECT_EQ(end, errc::closed);
        EXPECT_EQ((co_await watch.changed()).error(), errc::closed);
        EXPECT_EQ(other->watch("*").error().status, 409);
        // Its place in the registry goes with it, not before: changes have no effect on it.
        all.runtimes->add("late", "1", "");
    });
}

TEST_P(address_watches, of_one_instance_are_limited) {
    run([&]() -> task<void> {
        const neighbours all;
        auto other = std::make_shared<test_host>(all, "other");
        std::vector<address_watch> watches;
        for (std::size_t i = 0; i < max_watches; ++i) watches.push_back(must_do(other->watch("a")));
        const auto refused = other->watch("a");
        EXPECT_EQ(refused.error().status, 503);
        EXPECT_THAT(refused.error().message, HasSubstr("the limit"));
        EXPECT_EQ(other->subscribe("a").error().status, 503);
        watches.pop_back();
        EXPECT_TRUE(other->watch("a"));
        co_return;
    });
}

/// Follows `target` until it has the one address.
task<void> follow(std::shared_ptr<host> of, std::string target, std::string last,
                  std::latch& watching, std::latch& done) {
    address_watch watch = must_do(of->watch(std::move(target)));
    watching.count_down();
    for (;;) {
        const result<> changed = co_await watch.changed();
        EXPECT_TRUE(changed);
        if (!changed || texts(watch.addresses()) == std::vector<std::string>{last}) break;
    }
    done.count_down();
}

TEST(registry, a_rename_moves_what_is_served) {
    const auto all = std::make_shared<registry>();
    all->add("old", "1", "g");
    const address_note note = serve(*all, "old", 7000);
    all->set_running("old", true);
    all->rename("old", "new");
    ASSERT_TRUE(all->resolve("new"));
    ASSERT_EQ(all->resolve("new")->size(), 1U);
    EXPECT_EQ(all->resolve("new")->front().runtime, "new");
    EXPECT_EQ(all->resolve("1")->size(), 1U);
    EXPECT_EQ(all->resolve("@g")->size(), 1U);
    EXPECT_FALSE(all->resolve("old"));
    all->rename("nobody", "x");
    EXPECT_FALSE(all->resolve("x"));
}

TEST(registry, watches_of_several_loops_see_the_last_of_many_changes) {
    loop_group_options options;
    options.threads = 3;
    options.loop.kind = io_backend_kind::epoll;
    auto group = std::move(*loop_group::start(options));
    const neighbours all;
    all.runtimes->add("site", "1", "g");
    constexpr int watches = 12;
    std::latch watching(watches);
    std::latch done(watches);
    std::vector<std::shared_ptr<test_host>> hosts;
    for (std::size_t i = 0; i < watches; ++i) {
        hosts.push_back(std::make_shared<test_host>(all, "w" + std::to_string(i)));
        must(group->post(i % 3, follow(hosts.back(), i % 2 == 0 ? "site" : "@g",
                                       "site tcp://127.0.0.1:9999", watching, done)));
    }
    watching.wait();
    std::vector<std::thread> writers;
    for (int w = 0; w < 2; ++w)
        writers.emplace_back([&all, w] {
            for (std::uint16_t i = 1; i < 500; ++i) {
                const address_note note =
                    serve(*all.runtimes, "site", static_cast<std::uint16_t>(1000 * w + i));
                all.runtimes->set_running("site", i % 2 == 0);
            }
        });
    for (std::thread& each : writers) each.join();
    const address_note last = serve(*all.runtimes, "site", 9999);
    all.runtimes->set_running("site", false);
    all.runtimes->set_running("site", true);
    done.wait();
    group->stop();
}

}  // namespace
}  // namespace eddy::runtime
