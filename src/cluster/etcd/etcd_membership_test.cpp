// Tests of membership by etcd against a test double, in simulated time: joining, outages, lost
// leases, and key spaces that are not the one before.
#include "cluster/etcd/etcd_membership.hpp"

#include <eddy/io/scope.hpp>

#include "cluster/etcd/etcd_value.hpp"
#include "cluster/etcd/fake_etcd.hpp"
#include "cluster/etcd/testing.hpp"
#include "cluster/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::fake_etcd;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_of;
using ::testing::SizeIs;

constexpr std::string_view folder = "eddy/members/";

std::string key_of(std::string_view name) { return std::string(folder) + std::string(name); }

using member = testing::etcd_member;

class etcd_membership_test : public eddy::testing::on_io_backend {
protected:
    static constexpr duration longest_test = 10min;  // simulated

    void with_etcd(std::function<task<void>()> body) {
        run_with_threads([&]() -> task<void> {
            etcd_ = std::make_unique<fake_etcd>();
            etcd_->start();
            std::string failure;
            deadline_source limit(nullptr, loop::current().after(longest_test));
            try {
                co_await body().under(limit.source());
            } catch (const std::exception& thrown) {
                failure = thrown.what();
            }
            if (limit.expired()) failure += ": the test waited for too long";
            if (!failure.empty()) ADD_FAILURE() << failure;
            etcd_->go_on();
            for (const auto& each : members_) co_await each->its->end();
            members_.clear();
            co_await etcd_->stop();
            etcd_.reset();
        });
    }

    /// A member that has not joined.
    member& make(std::string name, std::string query = "") {
        auto where = parse_etcd_address("etcd://" + etcd_->uri() + query);
        if (!where) throw std::runtime_error(where.error().message);
        members_.push_back(std::make_unique<member>());
        member& made = *members_.back();
        made.self = testing::simple_member(std::move(name), random());
        made.its = std::make_unique<etcd_membership>(std::move(*where), made.notes);
        return made;
    }
    task<std::reference_wrapper<member>> joined(std::string name) {
        member& made = make(std::move(name));
        const auto done = co_await made->join(made.self);
        if (!done) throw std::runtime_error(done.error().message);
        co_return std::ref(made);
    }

    using condition = std::function<bool(const snapshot& now)>;
    static task<void> until(member& of, condition holds) {
        for (;;) {
            const auto now = of->current();
            if (holds(*now)) co_return;
            const auto moved = co_await of->changed(now->number);
            if (!moved)
                throw std::runtime_error("until(): " + moved.error().message() + ", with " +
                                         names_of(*now) + " " + now->stale_reason);
        }
    }
    static condition shows(std::string names) {
        return [names = std::move(names)](const snapshot& now) {
            return names_of(now) == names && !now.is_stale;
        };
    }
    static condition is_stale() {
        return [](const snapshot& now) { return now.is_stale; };
    }
    template <class Condition>
    static task<void> wait_for(Condition holds) {
        while (!holds()) must(co_await loop::current().sleep_for(10ms));
    }
    static task<void> pause(duration time) { must(co_await loop::current().sleep_for(time)); }

    /// A member of another process that does not renew its lease by itself.
    std::int64_t put_silent(const std::string& name, std::chrono::seconds time) {
        const std::int64_t lease = etcd_->make_lease(time);
        etcd_->put(key_of(name), value_of(name), lease);
        return lease;
    }
    std::string value_of(const std::string& name) {
        return write_etcd_value(testing::simple_member(name, random()), 1 << 20)->text;
    }
    std::string published_id(const std::string& name) const {
        const auto found = etcd_->keys.find(key_of(name));
        if (found == etcd_->keys.end()) return "none";
        const auto read = read_etcd_value(name, found->second.value);
        return read ? read->id : read.error().message;
    }
    std::int64_t lease_of(const std::string& name) const {
        return etcd_->keys.at(key_of(name)).lease;
    }
    template <class T>
    static T must(result<T> of) {
        return eddy::testing::must(std::move(of));
    }

    std::unique_ptr<fake_etcd> etcd_;
    std::vector<std::unique_ptr<member>> members_;
};

INSTANTIATE_TEST_SUITE_P(cluster, etcd_membership_test, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(etcd_membership_test, members_see_each_other_at_once) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        EXPECT_EQ(a->current()->number, 1u);
        EXPECT_EQ(a.names(), "a");
        member& b = co_await joined("b");
        EXPECT_EQ(b.names(), "a b");
        const time_point begun = loop::current().now();
        co_await until(a, shows("a b"));
        EXPECT_EQ(*a->current()->find("b"), b.self);
        b.self.runtimes.push_back(testing::simple_runtime("zzz", "api"));
        b->publish(b.self);
        EXPECT_THAT(b->current()->find("b")->runtimes, SizeIs(1));
        co_await until(a, [&](const snapshot& now) { return *now.find("b") == b.self; });
        co_await until(b, [&](const snapshot& now) { return *now.find("b") == b.self; });
        co_await b->end();
        co_await until(a, shows("a"));
        EXPECT_LT(loop::current().now() - begun, 1s);
        EXPECT_EQ(etcd_->leases(), 1u);
        EXPECT_THAT(a.notes.troubles, IsEmpty());
    });
}

TEST_P(etcd_membership_test, an_idle_member_asks_for_little) {
    with_etcd([&]() -> task<void> {
        co_await joined("a");
        co_await joined("b");
        co_await pause(5s);
        etcd_->calls.clear();
        const int connections = etcd_->connections;
        co_await pause(30s);
        EXPECT_THAT(etcd_->calls, SizeIs(1));
        EXPECT_LE(etcd_->calls["lease/keepalive"], 2 * 19);
        EXPECT_GE(etcd_->calls["lease/keepalive"], 2 * 17);
        EXPECT_EQ(etcd_->connections, connections);
    });
}

TEST_P(etcd_membership_test, a_name_that_lives_is_refused) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& other = make("a");
        const auto refused = co_await other->join(other.self);
        EXPECT_FALSE(refused);
        EXPECT_EQ(refused.error().status, 409);
        EXPECT_THAT(refused.error().message, HasSubstr("a.example"));
        EXPECT_EQ(published_id("a"), a.self.id);
        EXPECT_EQ(etcd_->leases(), 1u);
        // Once it is free, the same object may join.
        co_await a->end();
        EXPECT_TRUE(co_await other->join(other.self));
        EXPECT_EQ(published_id("a"), other.self.id);
    });
}

TEST_P(etcd_membership_test, the_name_of_a_dead_member_is_awaited) {
    with_etcd([&]() -> task<void> {
        put_silent("a", 5s);
        member& a = make("a");
        const time_point begun = loop::current().now();
        EXPECT_TRUE(co_await a->join(a.self));
        EXPECT_GE(loop::current().now() - begun, 4s);
        EXPECT_EQ(published_id("a"), a.self.id);
        // A key that no lease ends, and one that lives too long for a wait.
        etcd_->put(key_of("b"), value_of("b"));
        member& b = make("b");
        const auto refused = co_await b->join(b.self);
        EXPECT_TRUE(!refused && refused.error().status == 409);
        put_silent("c", 60s);
        member& c = make("c");
        const auto again = co_await c->join(c.self);
        EXPECT_TRUE(!again && again.error().status == 409);
        etcd_->put(key_of("d"), "damaged");
        member& d = make("d");
        const auto damaged = co_await d->join(d.self);
        EXPECT_TRUE(!damaged && damaged.error().status == 409);
        EXPECT_THAT(damaged.error().message, HasSubstr("delete it"));
    });
}

TEST_P(etcd_membership_test, another_process_continues_as_the_same_member) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& before = co_await joined("b");
        co_await until(a, shows("a b"));
        bool is_gone = false;
        scope watching;
        watching.spawn([](member& of, bool& gone) -> task<void> {
            while (co_await of->changed(of->current()->number))
                gone = gone || of->current()->find("b") == nullptr;
        }(a, is_gone));
        co_await before->pass_on();
        co_await pause(1s);
        member& after = make("b");
        after.self = before.self;
        after.self.label = "another process";
        const auto done = co_await after->join(after.self);
        EXPECT_TRUE(done);
        co_await until(a, [](const snapshot& now) {
            return now.find("b") != nullptr && now.find("b")->label == "another process";
        });
        co_await pause(4 * etcd_membership::lease_time);
        watching.cancel();
        co_await watching.join();
        EXPECT_FALSE(is_gone);
        EXPECT_EQ(published_id("b"), before.self.id);
    });
}

TEST_P(etcd_membership_test, the_key_of_the_same_start_is_taken_over) {
    with_etcd([&]() -> task<void> {
        member& a = make("a");
        const auto text = write_etcd_value(a.self, 1 << 20);
        etcd_->put(key_of("a"), text->text, etcd_->make_lease(60s));
        EXPECT_TRUE(co_await a->join(a.self));
        EXPECT_EQ(a.names(), "a");
        co_await pause(100s);
        EXPECT_EQ(published_id("a"), a.self.id);
    });
}

TEST_P(etcd_membership_test, what_cannot_be_joined_now_can_be_later) {
    with_etcd([&]() -> task<void> {
        co_await etcd_->stop();
        member& a = make("a");
        const auto absent = co_await a->join(a.self);
        EXPECT_TRUE(!absent && absent.error().status == 503);
        EXPECT_THAT(absent.error().message, HasSubstr("etcd://" + etcd_->uri()));
        etcd_->start();
        etcd_->freeze();
        const auto silent = co_await a->join(a.self);
        EXPECT_TRUE(!silent && silent.error().status == 503);
        EXPECT_THAT(silent.error().message, HasSubstr("does not answer in time"));
        etcd_->go_on();
        EXPECT_TRUE(co_await a->join(a.self));
        // A user that is missing is the operator's.
        etcd_->password = "secret";
        member& b = make("b");
        const auto denied = co_await b->join(b.self);
        EXPECT_TRUE(!denied && denied.error().status == 400);
        etcd_->password.clear();
        b.self.name = "x/y";
        const auto invalid = co_await b->join(b.self);
        EXPECT_TRUE(!invalid && invalid.error().status == 400);
    });
}

TEST_P(etcd_membership_test, a_silent_member_is_gone_with_its_lease) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        put_silent("b", 5s);
        co_await until(a, shows("a b"));
        const time_point begun = loop::current().now();
        co_await until(a, shows("a"));
        EXPECT_LE(loop::current().now() - begun, 6s);
    });
}

TEST_P(etcd_membership_test, an_outage_changes_nothing_and_heals) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        co_await etcd_->stop();
        co_await until(a, is_stale());
        co_await until(b, is_stale());
        EXPECT_THAT(a->current()->stale_reason, HasSubstr("etcd://" + etcd_->uri()));
        for (int i = 0; i < 20; ++i) {
            co_await pause(1s);
            EXPECT_EQ(a.names(), "a b");
            EXPECT_TRUE(a->current()->is_stale);
        }
        // A change that is published meanwhile is in the own view at once, and in the others'
        // later.
        b.self.label = "changed";
        b->publish(b.self);
        co_await pause(1s);
        EXPECT_EQ(b->current()->find("b")->label, "changed");
        EXPECT_EQ(a->current()->find("b")->label, "");
        etcd_->start();
        const time_point begun = loop::current().now();
        co_await until(a, shows("a b"));
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "changed"; });
        EXPECT_LE(loop::current().now() - begun, 2s);
        EXPECT_THAT(a.notes.troubles, SizeIs(1));
        EXPECT_THAT(a.notes.recoveries, SizeIs(1));
    });
}

TEST_P(etcd_membership_test, members_whose_leases_ended_in_an_outage_may_come_back) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        put_silent("c", 60s);
        co_await until(a, shows("a b c"));
        co_await until(b, shows("a b c"));
        co_await etcd_->stop();
        co_await until(a, is_stale());
        // etcd has gone on without being reachable: all leases have ended.
        for (const auto* name : {"a", "b", "c"}) etcd_->end_lease(lease_of(name));
        EXPECT_TRUE(etcd_->keys.empty());
        etcd_->start();
        const time_point begun = loop::current().now();
        bool was_gone = false;
        co_await until(a, [&](const snapshot& now) {
            was_gone |= now.find("b") == nullptr || now.find("a") == nullptr;
            return !now.is_stale;
        });
        EXPECT_FALSE(was_gone);
        EXPECT_EQ(a.names(), "a b");
        EXPECT_LE(loop::current().now() - begun, etcd_membership::lease_time + 2s);
        EXPECT_EQ(published_id("a"), a.self.id);
        EXPECT_EQ(published_id("b"), b.self.id);
    });
}

TEST_P(etcd_membership_test, a_silent_etcd_is_noticed) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        etcd_->keeps_leases = true;
        etcd_->freeze();
        const time_point begun = loop::current().now();
        co_await until(a, is_stale());
        EXPECT_LE(loop::current().now() - begun, 8s);
        EXPECT_EQ(a.names(), "a b");
        etcd_->go_on();
        etcd_->keeps_leases = false;
        co_await until(a, shows("a b"));
        EXPECT_EQ(published_id("b"), b.self.id);
    });
}

TEST_P(etcd_membership_test, a_lost_watch_is_answered_by_a_list) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        for (int round = 0; round < 5; ++round) {
            const std::string name = "m" + std::to_string(round);
            etcd_->cut_watches();
            etcd_->put(key_of(name), value_of(name));
            co_await until(a, [&](const snapshot& now) { return now.find(name) != nullptr; });
            etcd_->cut_watches();
            etcd_->remove(key_of(name));
            co_await until(a, shows("a"));
        }
        EXPECT_THAT(a.notes.troubles, IsEmpty());
        // Watches that break at once are made no faster than pauses allow.
        co_await pause(5s);
        etcd_->calls.clear();
        for (int i = 0; i < 1000; ++i) {
            etcd_->cut_watches();
            co_await pause(10ms);
        }
        EXPECT_LE(etcd_->calls["watch"], 40);
        co_await until(a, shows("a"));
    });
}

TEST_P(etcd_membership_test, a_compacted_revision_is_answered_by_a_list) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        bool is_compacting = true;
        // Between each list and its watch.
        etcd_->script = [&](std::string_view path) -> std::optional<http::response> {
            if (path == "watch" && is_compacting) {
                etcd_->put("elsewhere", "x");
                etcd_->put(key_of("b"), value_of("b"));
                etcd_->compacted = etcd_->revision;
            }
            return std::nullopt;
        };
        etcd_->cut_watches();
        co_await until(a, [](const snapshot& now) { return now.find("b") != nullptr; });
        is_compacting = false;
        etcd_->remove(key_of("b"));
        co_await until(a, shows("a"));
        EXPECT_THAT(a.notes.troubles, IsEmpty());
    });
}

TEST_P(etcd_membership_test, a_key_that_is_deleted_by_hand_comes_back) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        for (int round = 0; round < 3; ++round) {
            etcd_->remove(key_of("b"));
            co_await wait_for([&] { return etcd_->keys.contains(key_of("b")); });
            EXPECT_EQ(published_id("b"), b.self.id);
            co_await until(a, shows("a b"));
            co_await pause(200ms);
        }
        EXPECT_EQ(etcd_->leases(), 2u);
        EXPECT_THAT(b.notes.troubles, IsEmpty());
    });
}

TEST_P(etcd_membership_test, a_member_whose_lease_ended_joins_again) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        const std::int64_t before = lease_of("b");
        etcd_->end_lease(before);
        co_await wait_for([&] { return etcd_->keys.size() == 2; });
        co_await until(a, shows("a b"));
        EXPECT_EQ(published_id("b"), b.self.id);
        EXPECT_NE(lease_of("b"), before);
        co_await pause(20s);
        EXPECT_EQ(published_id("b"), b.self.id);
        EXPECT_EQ(etcd_->leases(), 2u);
        EXPECT_THAT(b.notes.troubles, IsEmpty());
    });
}

TEST_P(etcd_membership_test, a_name_that_was_taken_meanwhile_is_left_to_the_other) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        // Both at once, as after a long stop.
        const std::int64_t lease = etcd_->make_lease(60s);
        const std::string other = value_of("b");
        etcd_->keys.erase(key_of("b"));
        etcd_->end_lease(lease_of("a"));
        etcd_->put(key_of("b"), other, lease);
        const std::string other_id = published_id("b");
        co_await until(b, [&](const snapshot& now) {
            const member_info* const shown = now.find("b");
            return shown != nullptr && shown->id == other_id;
        });
        b.self.label = "unseen";
        b->publish(b.self);
        co_await pause(20s);
        EXPECT_EQ(published_id("b"), other_id);
        EXPECT_EQ(b->current()->find("b")->id, other_id);
        EXPECT_THAT(b.notes.troubles, ElementsAre(HasSubstr("\"b.example\"")));
        EXPECT_THAT(b.notes.recoveries, IsEmpty());
        // When the other one leaves, the name is free.
        etcd_->end_lease(lease);
        co_await until(a, [&](const snapshot& now) {
            const member_info* const shown = now.find("b");
            return shown != nullptr && *shown == b.self;
        });
        co_await until(b, shows("a b"));
        EXPECT_EQ(*b->current()->find("b"), b.self);
        EXPECT_THAT(b.notes.recoveries, SizeIs(1));
    });
}

TEST_P(etcd_membership_test, a_restored_backup_is_the_truth) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        for (int i = 0; i < 50; ++i) etcd_->put("elsewhere", "x");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        std::map<std::string, fake_etcd::entry> old;
        old[key_of("old")] = {value_of("old"), 3, 3, 0};
        etcd_->replace_keys(old, 4);
        co_await until(a, [](const snapshot& now) { return now.find("old") != nullptr; });
        co_await until(a, shows("a b old"));
        co_await until(b, shows("a b old"));
        EXPECT_EQ(published_id("a"), a.self.id);
        EXPECT_EQ(published_id("b"), b.self.id);
        EXPECT_THAT(a.notes.troubles, ElementsAre(HasSubstr("went back from revision")));
        etcd_->remove(key_of("old"));
        co_await until(a, shows("a b"));
    });
}

TEST_P(etcd_membership_test, a_new_etcd_is_joined_by_all) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        co_await etcd_->stop();
        for (const auto* name : {"a", "b"}) etcd_->end_lease(lease_of(name));
        etcd_->replace_keys({}, 1);
        etcd_->cluster_id = 0xc2;
        etcd_->start();
        co_await wait_for([&] { return etcd_->keys.size() == 2; });
        co_await until(a, shows("a b"));
        co_await until(b, shows("a b"));
        EXPECT_EQ(published_id("b"), b.self.id);
        int reports = 0;
        for (const std::string& each : a.notes.troubles) reports += each.contains("set up anew");
        EXPECT_EQ(reports, 1);
    });
}

TEST_P(etcd_membership_test, changes_in_a_row_are_published_as_one) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        co_await pause(200ms);
        etcd_->calls.clear();
        const std::uint64_t before = a->current()->number;
        for (int i = 0; i < 1000; ++i) {
            b.self.label = std::to_string(i);
            b->publish(b.self);
        }
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "999"; });
        EXPECT_LE(etcd_->calls["kv/txn"], 2);
        EXPECT_LE(a->current()->number - before, 2u);
        // The same once more is no change.
        co_await pause(200ms);
        etcd_->calls.clear();
        b->publish(b.self);
        co_await pause(200ms);
        EXPECT_EQ(etcd_->calls["kv/txn"], 0);
        for (int i = 0; i < 1000; ++i) {
            b.self.label = std::to_string(i);
            b->publish(b.self);
            co_await pause(1ms);
        }
        EXPECT_LE(etcd_->calls["kv/txn"], 12);
    });
}

TEST_P(etcd_membership_test, a_member_that_is_too_large_shows_less_of_itself) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = make("b");
        b.self = testing::simple_member("b", random(), 10'000);
        EXPECT_TRUE(co_await b->join(b.self));
        co_await until(a, shows("a b"));
        EXPECT_THAT(a->current()->find("b")->runtimes, SizeIs(10'000));
        b.self = testing::simple_member("b", random(), 16'000);
        b->publish(b.self);
        co_await until(a, [](const snapshot& now) {
            const std::size_t shown = now.find("b")->runtimes.size();
            return shown > 10'000 && shown < 16'000;
        });
        EXPECT_THAT(b.notes.troubles, ElementsAre(HasSubstr("of its 16000 runtimes")));
        EXPECT_THAT(b->current()->find("b")->runtimes, SizeIs(16'000));
        // An etcd with a lower limit than usual.
        etcd_->max_value = 200'000;
        b.self.label = "again";
        b->publish(b.self);
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "again"; });
        EXPECT_THAT(b.notes.troubles, SizeIs(::testing::Gt(1u)));
        b.self.runtimes.resize(10);
        b->publish(b.self);
        co_await until(a, [](const snapshot& now) { return now.find("b")->runtimes.size() == 10; });
        EXPECT_THAT(b.notes.recoveries, SizeIs(1));
        member& c = make("c");
        c.self = testing::simple_member("c", random(), 10'000);
        EXPECT_TRUE(co_await c->join(c.self));
        EXPECT_THAT(c.notes.troubles, SizeIs(::testing::Gt(0u)));
        // A value that etcd does not take at all is the operator's.
        etcd_->max_value = 100;
        member& d = make("d");
        const auto refused = co_await d->join(d.self);
        EXPECT_TRUE(!refused && refused.error().status == 400);
    });
}

TEST_P(etcd_membership_test, an_etcd_without_space_keeps_the_members) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        etcd_->has_space = false;
        b.self.label = "new";
        b->publish(b.self);
        co_await pause(20s);
        EXPECT_THAT(b.notes.troubles, ElementsAre(HasSubstr("database space exceeded")));
        EXPECT_EQ(a->current()->find("b")->label, "");
        EXPECT_FALSE(a->current()->is_stale);
        member& c = make("c");
        const auto refused = co_await c->join(c.self);
        EXPECT_TRUE(!refused && refused.error().status == 503);
        etcd_->has_space = true;
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "new"; });
        EXPECT_THAT(b.notes.recoveries, SizeIs(1));
    });
}

TEST_P(etcd_membership_test, many_members_are_listed_in_pages) {
    with_etcd([&]() -> task<void> {
        std::string names;
        for (int i = 1000; i < 1300; ++i) {
            const std::string name = "m" + std::to_string(i);
            etcd_->put(key_of(name), value_of(name));
            names += " " + name;
        }
        member& a = co_await joined("a");
        EXPECT_EQ(a.names(), "a" + names);
        EXPECT_EQ(etcd_->calls["kv/range"], 5);
    });
}

TEST_P(etcd_membership_test, large_answers_are_asked_for_in_smaller_pages) {
    with_etcd([&]() -> task<void> {
        // Three fit into an answer, and one key fits into none.
        etcd_->max_answer = 40'000;
        const std::string value(9'000, 'x');
        for (const auto* name : {"c1", "c2", "c3", "c4"}) etcd_->put(key_of(name), value);
        etcd_->put(key_of("d"), std::string(40'000, 'x'));
        etcd_->put(key_of("e"), value_of("e"));
        member& a = co_await joined("a");
        EXPECT_EQ(a.names(), "a e");
        EXPECT_THAT(a.notes.troubles, SizeIs(5));
        for (const auto* name : {"c1", "c2", "c3", "c4", "d"}) etcd_->remove(key_of(name));
        etcd_->put(key_of("f"), value_of("f"));
        co_await until(a, shows("a e f"));
    });
}

TEST_P(etcd_membership_test, the_end_ends_all_waits) {
    with_etcd([&]() -> task<void> {
        member& a = co_await joined("a");
        co_await join_scope([&](scope& children) -> task<void> {
            for (int i = 0; i < 3; ++i)
                children.spawn([](etcd_membership& of) -> task<void> {
                    const auto moved = co_await of.changed(1000);
                    EXPECT_EQ(eddy::testing::error_of(moved), errc::closed);
                }(*a));
            co_await loop::current().yield();
            co_await a->end();
        });
        EXPECT_EQ(etcd_->leases(), 0u);
        EXPECT_TRUE(etcd_->keys.empty());
        const auto later = co_await a->changed(0);
        EXPECT_EQ(eddy::testing::error_of(later), errc::closed);
        a->publish(a.self);
        // An etcd that is away delays an end by a second at most.
        member& b = co_await joined("b");
        etcd_->freeze();
        const time_point begun = loop::current().now();
        co_await b->end();
        EXPECT_LE(loop::current().now() - begun, 1100ms);
        etcd_->go_on();
        // A member that has not joined has nothing to end.
        member& c = make("c");
        co_await c->end();
    });
}

TEST_P(etcd_membership_test, chaos_ends_in_one_view) {
    with_etcd([&]() -> task<void> {
        std::vector<member*> all;
        for (const auto* name : {"a", "b", "c", "d"}) all.push_back(&(co_await joined(name)).get());
        for (int step = 0; step < 60; ++step) {
            switch (random().below(7)) {
                case 0:
                    co_await etcd_->stop();
                    co_await pause(duration(random().below(8'000'000'000)));
                    etcd_->start();
                    break;
                case 1: etcd_->cut_watches(); break;
                case 2: {
                    const auto found = etcd_->keys.begin();
                    if (found != etcd_->keys.end()) etcd_->remove(found->first);
                    break;
                }
                case 3: {
                    const auto found = etcd_->keys.rbegin();
                    if (found != etcd_->keys.rend()) etcd_->end_lease(found->second.lease);
                    break;
                }
                case 4: etcd_->compacted = etcd_->revision; break;
                case 5:
                    etcd_->freeze();
                    co_await pause(duration(random().below(4'000'000'000)));
                    etcd_->go_on();
                    break;
                default: {
                    member& one = *all[random().below(all.size())];
                    one.self.label = std::to_string(step);
                    one->publish(one.self);
                }
            }
            co_await pause(duration(random().below(500'000'000)));
        }
        for (member* const each : all) {
            co_await until(*each, [&](const snapshot& now) {
                if (now.is_stale || now.members.size() != all.size()) return false;
                return std::ranges::all_of(all, [&](member* other) {
                    const member_info* const shown = now.find(other->self.name);
                    return shown != nullptr && *shown == other->self;
                });
            });
        }
        co_await pause(10s);
        EXPECT_EQ(etcd_->leases(), all.size());
    });
}

}  // namespace
}  // namespace eddy::cluster
