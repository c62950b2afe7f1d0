// Balancer: the order in which a client's backends are tried, and which of them are left out.
#include "proxy/balancer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const time_point start{1h};

transport::address at(std::uint16_t port) {
    transport::address made;
    made.host = "10.0.0.1";
    made.port = port;
    return made;
}

backend_list made_of(const std::vector<wanted_backend>& wanted, std::size_t workers = 2) {
    return update_backends({}, wanted, workers);
}
backend_list three() { return made_of({{.where = at(1)}, {.where = at(2)}, {.where = at(3)}}); }

/// Ports, in the order in which one client tries them.
std::vector<int> order_of(balancer& from, time_point now = start, const selection_key& key = {}) {
    std::vector<int> ports;
    balancer::selection order = from.select(key);
    for (auto next = order.next(now); next; next = order.next(now))
        ports.push_back(next->where().port);
    return ports;
}

/// First choices of so many clients, by port.
std::map<int, int> first_choices(balancer& from, int clients, time_point now = start) {
    std::map<int, int> found;
    for (int i = 0; i < clients; ++i) ++found[from.select().next(now)->where().port];
    return found;
}

balancing by(strategy chosen) { return {.chosen = chosen}; }

TEST(balancer, round_robin_begins_with_the_next_one_and_tries_each_once) {
    balancer all(by(strategy::round_robin), three());
    EXPECT_THAT(order_of(all), ElementsAre(1, 2, 3));
    EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    EXPECT_THAT(order_of(all), ElementsAre(3, 1, 2));
    EXPECT_THAT(order_of(all), ElementsAre(1, 2, 3));
}

TEST(balancer, round_robin_spreads_weights_evenly) {
    balancer all(by(strategy::round_robin),
                 made_of({{.where = at(1), .weight = 5}, {.where = at(2)}, {.where = at(3)}}));
    std::vector<int> ports;
    for (int i = 0; i < 7; ++i) ports.push_back(all.select().next(start)->where().port);
    EXPECT_THAT(ports, ElementsAre(1, 1, 2, 1, 3, 1, 1));
}

TEST(balancer, clients_of_a_backend_that_takes_none_are_spread_over_the_others) {
    const backend_list backends = three();
    balancer all(by(strategy::round_robin), backends);
    backends[0].its->set_healthy(false, start);
    EXPECT_EQ(first_choices(all, 300), (std::map<int, int>{{2, 150}, {3, 150}}));
}

TEST(balancer, random_and_two_choices_follow_weights) {
    for (const strategy each : {strategy::random, strategy::two_choices}) {
        balancer all(by(each), made_of({{.where = at(1), .weight = 3}, {.where = at(2)}}));
        const auto found = first_choices(all, 4000);
        EXPECT_GT(found.at(1), 2400);
        EXPECT_THAT(order_of(all), UnorderedElementsAre(1, 2));
    }
}

TEST(balancer, two_choices_prefers_the_one_with_fewer) {
    const backend_list backends = three();
    balancer all(by(strategy::two_choices), backends);
    const backend_use busy(backends[0].its);
    EXPECT_EQ(first_choices(all, 300).count(1), 0U);
}

TEST(balancer, least_connections_goes_from_the_fewest_to_the_most) {
    const backend_list backends = three();
    balancer all(by(strategy::least_connections), backends);
    const backend_use a(backends[0].its);
    {
        const backend_use b(backends[0].its);
        const backend_use c(backends[2].its);
        EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    }
    EXPECT_EQ(backends[0].its->open(), 1U);
    EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    EXPECT_THAT(order_of(all), ElementsAre(3, 2, 1)) << "with as many they take turns";
}

TEST(balancer, least_connections_counts_by_weight) {
    const backend_list backends = made_of({{.where = at(1), .weight = 4}, {.where = at(2)}});
    balancer all(by(strategy::least_connections), backends);
    const backend_use a(backends[0].its);
    const backend_use b(backends[0].its);
    const backend_use c(backends[1].its);
    EXPECT_THAT(order_of(all), ElementsAre(1, 2));
}

TEST(balancer, hash_gives_a_key_the_same_backend_and_moves_few_keys) {
    std::vector<wanted_backend> wanted;
    for (std::uint16_t i = 1; i <= 5; ++i) wanted.push_back({.where = at(i)});
    balancer five(by(strategy::hash), made_of(wanted));
    wanted.pop_back();
    balancer four(by(strategy::hash), made_of(wanted));
    int moved = 0;
    std::map<int, int> found;
    for (int i = 0; i < 1000; ++i) {
        const selection_key key{.hash = hash_key("user" + std::to_string(i))};
        const int before = five.select(key).next(start)->where().port;
        EXPECT_EQ(five.select(key).next(start)->where().port, before);
        ++found[before];
        if (four.select(key).next(start)->where().port != before) ++moved;
    }
    EXPECT_EQ(moved, found[5]) << "only the keys of the one that went have moved";
    for (const auto& [port, keys] : found) EXPECT_GT(keys, 100) << port;
}

TEST(balancer, hash_bounds_the_load_of_a_backend) {
    const backend_list backends = three();
    balancer all(by(strategy::hash), backends);
    std::vector<backend_use> held;
    for (int i = 0; i < 30; ++i) held.push_back(all.select({.hash = 7}).next(start));
    for (const balanced_backend& each : backends) EXPECT_LE(each.its->open(), 13U);
}

TEST(balancer, a_client_keeps_its_backend_by_its_id) {
    const backend_list backends = three();
    balancer all(by(strategy::round_robin), backends);
    const std::string id = sticky_id(backends[1].its->name());
    EXPECT_EQ(id.size(), 16U);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(all.select({.sticky = id}).next(start)->where().port, 2);
    EXPECT_EQ(order_of(all, start, {.sticky = id}).size(), 3U);
    backends[1].its->set_drained(true);
    EXPECT_NE(all.select({.sticky = id}).next(start)->where().port, 2);
    EXPECT_EQ(order_of(all, start, {.sticky = "unknown"}).size(), 2U);
}

TEST(balancer, backups_take_clients_only_while_no_other_does) {
    const backend_list backends =
        made_of({{.where = at(1)}, {.where = at(2)}, {.where = at(3), .is_backup = true}});
    balancer all(by(strategy::round_robin), backends);
    EXPECT_EQ(first_choices(all, 10).count(3), 0U);
    EXPECT_EQ(order_of(all).back(), 3) << "the last that is tried";
    backends[0].its->set_healthy(false, start);
    backends[1].its->set_healthy(false, start);
    EXPECT_THAT(order_of(all), ElementsAre(3));
}

TEST(balancer, without_backends_that_take_clients_there_is_none) {
    EXPECT_FALSE(balancer({}, {}).select().next(start));
    const backend_list backends = three();
    for (const balanced_backend& each : backends) each.its->set_drained(true);
    balancer all({}, backends);
    EXPECT_FALSE(all.has_available(start));
    EXPECT_THAT(order_of(all), IsEmpty());
}

TEST(balancer, failures_in_a_row_eject_a_backend_until_one_client_has_tried_it) {
    const backend_list backends = three();
    balancer all(by(strategy::round_robin), backends);
    backend& bad = *backends[0].its;
    EXPECT_FALSE(all.note_failure(bad, start));
    EXPECT_FALSE(all.note_failure(bad, start));
    all.note_success(bad, start);
    EXPECT_FALSE(all.note_failure(bad, start));
    EXPECT_FALSE(all.note_failure(bad, start));
    EXPECT_TRUE(all.note_failure(bad, start)) << "the third in a row";
    EXPECT_EQ(bad.state(), backend_state::ejected);
    EXPECT_EQ(first_choices(all, 30, start + 999ms).count(1), 0U);
    {
        auto trial = all.select().next(start + 1s);
        while (trial->where().port != 1) trial = all.select().next(start + 1s);
        EXPECT_EQ(first_choices(all, 30, start + 1s).count(1), 0U) << "one at a time";
        EXPECT_FALSE(all.note_failure(bad, start + 1s)) << "it is ejected already";
    }
    EXPECT_EQ(first_choices(all, 30, start + 2s).count(1), 0U) << "twice as long";
    EXPECT_FALSE(all.note_success(bad, start + 2s)) << "of a request from before";
    EXPECT_TRUE(all.note_success(bad, start + 3s));
    EXPECT_EQ(bad.state(), backend_state::up);
    EXPECT_EQ(first_choices(all, 30, start + 3s).at(1), 10);
    EXPECT_EQ(bad.ejections(), 2U);
}

TEST(balancer, a_backend_that_cuts_responses_is_ejected_for_longer_each_time) {
    const backend_list backends = three();
    backend& bad = *backends[0].its;
    balancer all({}, backends);
    const auto cut = [&](time_point at) {
        EXPECT_FALSE(balancer::note_success(bad, at)) << "the head, of a backend that is not out";
        return all.note_cut(bad, at);
    };
    EXPECT_FALSE(cut(start));
    EXPECT_FALSE(cut(start));
    EXPECT_FALSE(bad.is_failing({}));
    EXPECT_TRUE(cut(start));
    EXPECT_TRUE(bad.is_failing({}));
    EXPECT_FALSE(bad.accepts(start + 999ms));
    EXPECT_TRUE(balancer::note_success(bad, start + 1s));
    EXPECT_TRUE(all.note_cut(bad, start + 1s)) << "the first one is enough after a pause";
    EXPECT_FALSE(bad.accepts(start + 2999ms));
    EXPECT_TRUE(balancer::note_success(bad, start + 3s));
    bad.note_whole();
    EXPECT_FALSE(bad.is_failing({}));
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(cut(start + 3s));
    EXPECT_TRUE(cut(start + 3s));
    EXPECT_TRUE(bad.accepts(start + 4s)) << "the pause is the first one again";
}

TEST(balancer, the_last_backend_that_takes_clients_is_not_ejected) {
    const backend_list backends = made_of({{.where = at(1)}, {.where = at(2)}});
    balancer all({}, backends);
    for (int i = 0; i < 5; ++i) all.note_failure(*backends[0].its, start);
    for (int i = 0; i < 5; ++i) all.note_failure(*backends[1].its, start);
    EXPECT_EQ(backends[0].its->state(), backend_state::ejected);
    EXPECT_EQ(backends[1].its->state(), backend_state::up);
}

TEST(balancer, all_but_the_last_are_ejected_for_failures) {
    const time_point now{};
    std::vector<wanted_backend> wanted(3);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        wanted[i].where.host = "127.0.0.1";
        wanted[i].where.port = static_cast<std::uint16_t>(i + 1);
    }
    const backend_list all = update_backends({}, wanted, 1);
    balancing rules;
    rules.ejection.failures = 1;
    balancer of(rules, all);
    EXPECT_TRUE(of.note_failure(*all[0].its, now));
    EXPECT_TRUE(of.note_failure(*all[1].its, now));
    EXPECT_FALSE(of.note_failure(*all[2].its, now)) << "the last one";
    EXPECT_TRUE(of.has_available(now));
}

/// Responses of all backends, each with a time of its own, for so many windows from `now` on.
/// Yields the ports of the ejected ones.
std::vector<int> respond(balancer& from, const std::vector<duration>& times, int windows,
                         time_point& now, std::uint64_t in_a_window = least_responses) {
    std::vector<int> ejected;
    for (int w = 0; w < windows; ++w, now += response_window)
        for (std::size_t i = 0; i < times.size(); ++i)
            for (std::uint64_t k = 0; k < in_a_window; ++k) {
                backend& its = *from.all()[i].its;
                if (!its.accepts(now)) continue;
                if (const auto slow = from.note_response_time(its, times[i], now))
                    ejected.push_back(slow->its->where().port);
            }
    return ejected;
}

balancing with_slow_factor(std::uint32_t factor) {
    balancing made;
    made.ejection.slow_factor = factor;
    return made;
}

TEST(balancer, a_backend_that_is_slower_than_the_others_is_ejected) {
    const backend_list backends = three();
    balancer all(with_slow_factor(3), backends);
    time_point now = start;
    EXPECT_THAT(respond(all, {20ms, 100ms, 30ms}, slow_windows, now), IsEmpty()) << "for a while";
    EXPECT_THAT(respond(all, {20ms, 20ms, 30ms}, 1, now), ElementsAre(2)) << "the last window";
    EXPECT_EQ(backends[1].its->state(), backend_state::ejected);
    EXPECT_EQ(backends[1].its->ejections(), 1U);
    EXPECT_TRUE(all.note_success(*backends[1].its, now)) << "it is back";
    // One slow window is enough then, and the pause is twice as long.
    EXPECT_THAT(respond(all, {20ms, 100ms, 30ms}, 2, now), ElementsAre(2));
    EXPECT_FALSE(all.note_success(*backends[1].its, now - response_window + 1999ms));
    EXPECT_TRUE(all.note_success(*backends[1].its, now - response_window + 2s));
    // After a fast one it is as if it had never been.
    EXPECT_THAT(respond(all, {20ms, 20ms, 30ms}, 2, now), IsEmpty());
    EXPECT_THAT(respond(all, {20ms, 100ms, 30ms}, slow_windows, now), IsEmpty());
    EXPECT_THAT(respond(all, {20ms, 100ms, 30ms}, 1, now), ElementsAre(2));
    EXPECT_TRUE(all.note_success(*backends[1].its, now - response_window + 1s));
}

TEST(balancer, no_backend_is_slow_without_a_reason) {
    const backend_list backends = three();
    time_point now = start;
    {
        balancer all(with_slow_factor(3), backends);
        EXPECT_THAT(respond(all, {20ms, 55ms, 20ms}, 10, now), IsEmpty()) << "below the factor";
        EXPECT_THAT(respond(all, {20ms, 1s, 20ms}, 10, now, least_responses - 1), IsEmpty())
            << "too few";
        EXPECT_THAT(respond(all, {1us, least_slow_time * 9 / 10, 1us}, 10, now), IsEmpty())
            << "too short";
        EXPECT_THAT(respond(all, {1s, 1s, 1s}, 10, now), IsEmpty()) << "all of them";
        for (int i = 0; i < 10; ++i)
            EXPECT_THAT(respond(all, {20ms, i % 3 == 2 ? 20ms : 1s, 20ms}, 1, now), IsEmpty())
                << "not in a row";
    }
    balancer off({}, backends);
    EXPECT_THAT(respond(off, {20ms, 1s, 20ms}, 10, now), IsEmpty());
    const backend_list alone = made_of({{.where = at(1)}});
    balancer one(with_slow_factor(2), alone);
    EXPECT_THAT(respond(one, {1s}, 10, now), IsEmpty());
}

TEST(balancer, slow_backends_and_failed_ones_share_the_limit) {
    std::vector<wanted_backend> wanted;
    for (std::uint16_t port = 1; port <= 4; ++port) wanted.push_back({.where = at(port)});
    const backend_list backends = made_of(wanted);
    balancing rules = with_slow_factor(2);
    rules.ejection.first_pause = rules.ejection.longest_pause = 1h;
    balancer all(rules, backends);
    time_point now = start;
    for (int i = 0; i < 3; ++i) all.note_failure(*backends[0].its, now);
    // The slowest one first; beside two ejected ones no other.
    EXPECT_THAT(respond(all, {1ms, 100ms, 900ms, 10ms}, 20, now), ElementsAre(3));
    EXPECT_EQ(backends[1].its->state(), backend_state::up);
    for (int i = 0; i < 3; ++i) all.note_failure(*backends[1].its, now);
    EXPECT_EQ(backends[1].its->state(), backend_state::ejected) << "failures have no such limit";
}

TEST(balancer, a_backend_that_comes_back_gets_a_growing_share) {
    const backend_list backends = made_of({{.where = at(1)}, {.where = at(2)}});
    balancer all({.slow_start = 100s}, backends);
    backends[0].its->set_healthy(false, start);
    backends[0].its->set_healthy(true, start);
    const int early = first_choices(all, 2000, start + 1s)[1];
    const int late = first_choices(all, 2000, start + 70s)[1];
    EXPECT_LT(early, 250);
    EXPECT_GT(early, 20);
    EXPECT_GT(late, 500);
    EXPECT_EQ(first_choices(all, 2000, start + 100s)[1], 1000);
}

TEST(balancer, sixty_four_backends_are_all_tried) {
    for (const strategy each : {strategy::round_robin, strategy::random, strategy::hash,
                                strategy::two_choices, strategy::least_connections}) {
        std::vector<wanted_backend> wanted;
        for (std::uint16_t i = 0; i < max_backends; ++i)
            wanted.push_back({.where = at(static_cast<std::uint16_t>(i + 1))});
        balancer all(by(each), made_of(wanted, 1));
        std::vector<int> ports = order_of(all);
        EXPECT_EQ(ports.size(), max_backends);
        std::ranges::sort(ports);
        EXPECT_EQ(std::ranges::adjacent_find(ports), ports.end());
    }
}

TEST(balancer, backends_that_stay_keep_their_counts_and_state) {
    const backend_list before = three();
    before[1].its->counted_by(1).bytes_sent += 7;
    before[1].its->counted_by(0).bytes_sent += 1;
    before[1].its->set_healthy(false, start);
    const std::vector<wanted_backend> wanted{{.where = at(4)}, {.where = at(2), .weight = 3}};
    const backend_list after = update_backends(before, wanted, 2);
    EXPECT_EQ(after[1].its, before[1].its);
    EXPECT_EQ(after[1].weight, 3U);
    EXPECT_EQ(after[1].its->sum(&backend_counters::bytes_sent), 8U);
    EXPECT_EQ(after[1].its->state(), backend_state::down);
    EXPECT_EQ(after[0].its->sum(&backend_counters::bytes_sent), 0U);
    EXPECT_NE(update_backends(before, wanted, 3)[1].its, before[1].its) << "other workers count";
}

TEST(balancer, an_address_with_a_numeric_host_needs_no_look_up) {
    EXPECT_EQ(backend(at(5), 1).numeric()->to_string(), "10.0.0.1:5");
    transport::address named = at(5);
    named.host = "db.example";
    EXPECT_FALSE(backend(named, 1).numeric());
    named.kind = transport::scheme::tls;
    named.host = "10.0.0.1";
    EXPECT_TRUE(backend(named, 1).numeric()) << "that of the socket below TLS";
    EXPECT_EQ(backend(named, 1).name(), "tls://10.0.0.1:5");
    EXPECT_EQ(backend(named, 1, "site").name(), "site");
}

}  // namespace
}  // namespace eddy::proxy
