// Tests of membership by real servers of etcd: one and three of them, killed, stopped, slow, full,
// compacted, with users and with TLS.
#include <eddy/http/client_pool.hpp>
#include <eddy/io/scope.hpp>

#include "base/test_rounds.hpp"
#include "base/text/base64.hpp"
#include "cluster/etcd/etcd_membership.hpp"
#include "cluster/etcd/etcd_process.hpp"
#include "cluster/etcd/etcd_value.hpp"
#include "cluster/etcd/testing.hpp"
#include "cluster/member_codec.hpp"
#include "cluster/testing.hpp"
#include "io/testing.hpp"
#include "tls/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::etcd_process;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_of;
using ::testing::SizeIs;

/// Longest wait for anything.
constexpr duration longest_wait = 60s;

std::string key_of(std::string_view name) { return "eddy/members/" + std::string(name); }

using member = testing::etcd_member;

class etcd_server_test : public eddy::testing::on_io_backend {
protected:
    void SetUp() override {
        if (!etcd_process::is_installed())
            GTEST_SKIP() << "etcd is not installed (Debian's package etcd-server)";
        on_io_backend::SetUp();
    }

    /// Runs `body` with `count` servers that serve.
    void with_etcd(std::size_t count, std::function<task<void>()> body,
                   std::vector<std::string> more = {}, etcd_process::tls_files files = {}) {
        run_with_threads([&]() -> task<void> {
            std::string failure;
            try {
                co_await begin(count, more, files);
                co_await body();
            } catch (const std::exception& thrown) {
                failure = thrown.what();
            }
            if (!failure.empty() || HasFailure())
                for (const auto& each : servers_) failure += "\n" + each->log();
            if (!failure.empty()) ADD_FAILURE() << failure;
            for (const auto& each : members_) co_await each->its->end();
            members_.clear();
            servers_.clear();
        });
    }

    /// Makes the servers, again where their ports were taken meanwhile.
    task<void> begin(std::size_t count, std::vector<std::string> more,
                     etcd_process::tls_files files) {
        files_ = files;
        for (int attempt = 0; attempt < 3; ++attempt) {
            servers_ = testing::make_cluster(count, more, files);
            if (co_await serves_all()) co_return;
        }
        throw std::runtime_error("etcd does not serve");
    }
    /// True once each server answers a write's precondition: there is a leader.
    task<bool> serves_all() {
        const time_point last = loop::current().after(longest_wait);
        for (const auto& each : servers_) {
            while (!co_await serves(*each)) {
                if (!each->is_running() || loop::current().now() > last) co_return false;
                co_await pause(50ms);
            }
        }
        co_return true;
    }
    task<bool> serves(const etcd_process& server) {
        const json got = co_await ask("kv/range", {{"key", base64("x")}}, &server);
        co_return got.contains("header");
    }

    /// A request by hand; null where there is no answer.
    task<json> ask(std::string path, json body, const etcd_process* server = nullptr) {
        http::client_pool_options options;
        options.proxies = {};
        options.total_time = 5s;
        options.tls = {.cert = files_.cert, .key = files_.key, .ca = files_.ca};
        http::client_pool pool(std::move(options));
        http::pool_request request;
        request.method = "POST";
        request.url = (files_.cert.empty() ? "http://" : "https://") +
                      (server != nullptr ? *server : *servers_.front()).authority() + "/v3/" + path;
        request.body = body.dump();
        if (!token_.empty()) must(request.headers.add("Authorization", token_));
        auto got = co_await pool.send(std::move(request));
        if (!got) co_return json();
        auto text = co_await got->body().whole(1 << 24);
        if (!text) co_return json();
        co_return json::parse(*text, nullptr, false);
    }
    task<json> put(std::string key, std::string value) {
        return ask("kv/put", {{"key", base64(key)}, {"value", base64(value)}});
    }
    task<std::string> value_of(std::string key) {
        const json got = co_await ask("kv/range", {{"key", base64(key)}});
        if (!got.contains("kvs")) co_return "none";
        co_return *bytes_of_base64(got.at("kvs").front().value("value", ""));
    }
    task<std::string> lease_of(std::string name) {
        const json got = co_await ask("kv/range", {{"key", base64(key_of(name))}});
        co_return got.contains("kvs") ? got.at("kvs").front().value("lease", "") : "";
    }

    std::string all_servers() const {
        std::string uri = files_.cert.empty() ? "etcd://" : "etcds://";
        for (const auto& each : servers_)
            uri += (uri.ends_with('/') ? "" : ",") + each->authority();
        return uri;
    }
    member& make(std::string name, const std::string& uri) {
        auto where = parse_etcd_address(uri);
        if (!where) throw std::runtime_error(where.error().message);
        members_.push_back(std::make_unique<member>());
        member& made = *members_.back();
        made.self = testing::simple_member(std::move(name), random());
        made.its = std::make_unique<etcd_membership>(std::move(*where), made.notes);
        return made;
    }
    task<std::reference_wrapper<member>> joined(std::string name, std::string uri = "") {
        member& made = make(std::move(name), uri.empty() ? all_servers() : uri);
        const auto done = co_await made->join(made.self);
        if (!done) throw std::runtime_error(done.error().message);
        co_return std::ref(made);
    }

    /// The sentence with which a member cannot join.
    task<std::string> refusal_of(std::string uri) {
        member& made = make("refused", uri);
        const auto refused = co_await made->join(made.self);
        co_return refused ? "it has joined" : refused.error().message;
    }

    using condition = std::function<bool(const snapshot& now)>;
    static task<void> until(member& of, condition holds) {
        const time_point last = loop::current().after(longest_wait);
        for (;;) {
            const auto now = of->current();
            if (holds(*now)) co_return;
            const auto moved = co_await with_deadline(last, of->changed(now->number));
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
    static task<void> pause(duration time) { must(co_await loop::current().sleep_for(time)); }
    template <class Work>
    static task<void> until_equal(Work work, std::string wanted) {
        const time_point last = loop::current().after(longest_wait);
        for (;;) {
            const std::string got = co_await work();
            if (got == wanted) co_return;
            if (loop::current().now() > last) throw std::runtime_error("it stays " + got);
            co_await pause(20ms);
        }
    }
    static void must(bool value) {
        if (!value) throw std::runtime_error("a field is refused");
    }
    template <class T>
    static T must(result<T> of) {
        return eddy::testing::must(std::move(of));
    }

    etcd_process::tls_files files_;
    std::string token_;
    std::vector<std::unique_ptr<etcd_process>> servers_;
    std::vector<std::unique_ptr<member>> members_;
};

INSTANTIATE_TEST_SUITE_P(cluster, etcd_server_test, ::testing::Values(io_backend_kind::automatic),
                         eddy::testing::io_backend_name);

TEST_P(etcd_server_test, members_come_change_and_go) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        EXPECT_EQ(b.names(), "a b");
        co_await until(a, shows("a b"));
        EXPECT_EQ(*a->current()->find("b"), b.self);
        b.self.runtimes.push_back(testing::simple_runtime("zzz"));
        b->publish(b.self);
        co_await until(a, [&](const snapshot& now) { return *now.find("b") == b.self; });
        // The name of a living member is its own.
        member& other = make("b", all_servers());
        const auto refused = co_await other->join(other.self);
        EXPECT_TRUE(!refused && refused.error().status == 409);
        EXPECT_THAT(refused.error().message, HasSubstr("b.example"));
        co_await b->end();
        co_await until(a, shows("a"));
        EXPECT_EQ(co_await value_of(key_of("b")), "none");
        EXPECT_THAT(a.notes.troubles, IsEmpty());
        EXPECT_THAT(a.notes.recoveries, IsEmpty());
    });
}

TEST_P(etcd_server_test, a_server_that_is_killed_and_comes_back) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        for (int round = 0; round < 2; ++round) {
            servers_.front()->kill();
            co_await until(a, is_stale());
            co_await until(b, is_stale());
            EXPECT_THAT(a->current()->stale_reason, HasSubstr(servers_.front()->authority()));
            b.self.label = std::to_string(round);
            b->publish(b.self);
            // As long as a lease, and nothing changes.
            co_await pause(round == 0 ? 6s : 500ms);
            EXPECT_EQ(a.names(), "a b");
            EXPECT_TRUE(a->current()->is_stale);
            servers_.front()->start();
            co_await until(a, shows("a b"));
            co_await until(a, [&](const snapshot& now) { return *now.find("b") == b.self; });
            co_await until(b, shows("a b"));
        }
        EXPECT_THAT(a.notes.troubles, SizeIs(2));
        EXPECT_THAT(a.notes.recoveries, SizeIs(2));
    });
}

TEST_P(etcd_server_test, three_servers_of_which_one_and_then_two_are_killed) {
    with_etcd(3, [&]() -> task<void> {
        member& a = co_await joined("a");
        const std::string second = servers_[1]->authority();
        member& b = co_await joined("b", "etcd://" + second + "," + servers_[2]->authority());
        co_await until(a, shows("a b"));
        // The servers that are left have a leader, or elect one.
        servers_[0]->kill();
        b.self.label = "one";
        b->publish(b.self);
        co_await until(
            a, [](const snapshot& now) { return now.find("b")->label == "one" && !now.is_stale; });
        EXPECT_EQ(a.names(), "a b");
        // The last one answers, but knows of no leader.
        servers_[1]->kill();
        co_await until(a, is_stale());
        co_await until(b, is_stale());
        EXPECT_EQ(a.names(), "a b");
        EXPECT_EQ(b.names(), "a b");
        servers_[0]->start();
        servers_[1]->start();
        co_await until(a, shows("a b"));
        co_await until(b, shows("a b"));
        b.self.label = "two";
        b->publish(b.self);
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "two"; });
    });
}

TEST_P(etcd_server_test, a_server_that_is_silent) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        servers_.front()->freeze();
        co_await until(a, is_stale());
        EXPECT_EQ(a.names(), "a b");
        servers_.front()->go_on();
        co_await until(a, shows("a b"));
        co_await until(b, shows("a b"));
        co_await until_equal([&] { return value_of(key_of("none")); }, "none");
    });
}

TEST_P(etcd_server_test, a_silent_server_of_three) {
    with_etcd(3, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined(
            "b", "etcd://" + servers_[1]->authority() + "," + servers_[2]->authority());
        co_await until(b, shows("a b"));
        const std::string lease = co_await lease_of("a");
        servers_[0]->freeze();
        a.self.label = "elsewhere";
        a->publish(a.self);
        co_await until(b, [](const snapshot& now) {
            const member_info* const shown = now.find("a");
            return shown != nullptr && shown->label == "elsewhere";
        });
        // As long as a lease: it is renewed by another server.
        co_await pause(6s);
        EXPECT_EQ(b.names(), "a b");
        co_await until(a, shows("a b"));
        servers_[0]->go_on();
        co_await until_equal([&] { return value_of(key_of("none")); }, "none");
        EXPECT_EQ(co_await lease_of("a"), lease);
    });
}

TEST_P(etcd_server_test, an_etcd_that_begins_anew) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        for (int i = 0; i < 30; ++i) co_await put("elsewhere", "x");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        servers_.front()->kill();
        co_await until(a, is_stale());
        co_await until(b, is_stale());
        // The same cluster by its name and its number, and nothing is in it.
        servers_.front()->forget();
        servers_.front()->start();
        co_await until(a, [](const snapshot& now) { return !now.is_stale; });
        EXPECT_EQ(a.names(), "a b");
        co_await until(b, shows("a b"));
        EXPECT_NE(co_await value_of(key_of("a")), "none");
        EXPECT_NE(co_await value_of(key_of("b")), "none");
        EXPECT_THAT(a.notes.troubles, ::testing::Contains(HasSubstr("went back from revision")));
    });
}

TEST_P(etcd_server_test, keys_and_leases_that_are_removed_by_hand) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        const std::string value = co_await value_of(key_of("b"));
        co_await ask("kv/deleterange", {{"key", base64(key_of("b"))}});
        co_await until_equal([&] { return value_of(key_of("b")); }, value);
        const std::string lease = co_await lease_of("b");
        co_await ask("lease/revoke", {{"ID", lease}});
        co_await until_equal([&] { return value_of(key_of("b")); }, value);
        EXPECT_NE(co_await lease_of("b"), lease);
        co_await until(a, shows("a b"));
        // A name that another one has taken meanwhile stays its.
        co_await put(key_of("b"), "other");
        co_await ask("lease/revoke", {{"ID", co_await lease_of("b")}});
        co_await put("elsewhere", "x");
        const time_point last = loop::current().after(longest_wait);
        while (b.notes.troubles.empty() && loop::current().now() < last) co_await pause(20ms);
        EXPECT_EQ(co_await value_of(key_of("b")), "other");
        EXPECT_THAT(b.notes.troubles,
                    ::testing::Contains(HasSubstr("its name \"b\" was taken by a foreign value")));
        co_await ask("kv/deleterange", {{"key", base64(key_of("b"))}});
        co_await until_equal([&] { return value_of(key_of("b")); }, value);
        co_await until(b, shows("a b"));
    });
}

TEST_P(etcd_server_test, a_member_that_dies_is_gone_with_its_lease_and_may_come_back) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        const json granted = co_await ask("lease/grant", {{"TTL", "5"}});
        member_info dead = testing::simple_member("b", random());
        const auto text = encode_member(dead);
        co_await ask(
            "kv/put",
            {{"key", base64(key_of("b"))}, {"value", base64(*text)}, {"lease", granted.at("ID")}});
        co_await until(a, shows("a b"));
        // It is started again before its lease has ended.
        member& b = co_await joined("b");
        EXPECT_NE(b.self.id, dead.id);
        co_await until(a, [&](const snapshot& now) {
            const member_info* const shown = now.find("b");
            return shown != nullptr && *shown == b.self;
        });
    });
}

TEST_P(etcd_server_test, a_compacted_history) {
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        json last;
        for (int i = 0; i < 20; ++i) last = co_await put("elsewhere", std::to_string(i));
        const std::string revision = last.at("header").at("revision");
        co_await ask("kv/compaction", {{"revision", revision}});
        // A watch that is there continues; a new one from before is refused.
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        EXPECT_EQ(b.names(), "a b");
        testing::kept_reports notes;
        etcd_client client(*parse_etcd_address(all_servers()), notes);
        etcd_range keys;
        keys.key = "a";
        keys.revision = 2;
        const etcd_patience patience{10s, 20s};
        auto watch = co_await client.watch(keys, patience);
        if (!watch) throw std::runtime_error(watch.error().message);
        const auto line = co_await (*watch)->next();
        EXPECT_TRUE(!line && line.error().kind == etcd_fault::compacted);
        const auto listed = co_await client.range(keys, patience);
        EXPECT_TRUE(!listed && listed.error().kind == etcd_fault::compacted);
    });
}

TEST_P(etcd_server_test, large_members_and_many_of_them) {
    if (eddy::testing::is_sanitized)
        GTEST_SKIP() << "megabytes of JSON take longer than a call may";
    with_etcd(1, [&]() -> task<void> {
        member& a = co_await joined("a");
        member& large = make("large", all_servers());
        large.self = testing::simple_member("large", random(), 5'000);
        for (runtime_info& runtime : large.self.runtimes) runtime.group = std::string(200, 'x');
        const auto done = co_await large->join(large.self);
        EXPECT_TRUE(done) << done.error().message;
        // More than etcd takes of a member, and more than one answer holds of all.
        co_await until(a, shows("a large"));
        const std::size_t shown = a->current()->find("large")->runtimes.size();
        EXPECT_GT(shown, 3'000u);
        EXPECT_LT(shown, 5'000u);
        EXPECT_THAT(large.notes.troubles, ElementsAre(HasSubstr("of its 5000 runtimes")));
        std::string names;
        for (int i = 10; i < 20; ++i) {
            large.self.name = "m" + std::to_string(i);
            const auto value = write_etcd_value(large.self, etcd_membership::max_value);
            const json written = co_await put(key_of(large.self.name), value->text);
            EXPECT_TRUE(written.contains("header")) << written.dump().substr(0, 300);
            names += " " + large.self.name;
        }
        member& late = co_await joined("z");
        EXPECT_EQ(late.names(), "a large" + names + " z");
        co_await until(a, shows("a large" + names + " z"));
    });
}

TEST_P(etcd_server_test, an_etcd_that_is_full) {
    with_etcd(1,
              [&]() -> task<void> {
                  member& a = co_await joined("a");
                  member& b = co_await joined("b");
                  co_await until(a, shows("a b"));
                  json got;
                  for (int i = 0; i < 100 && !got.contains("error"); ++i)
                      got = co_await put("fill" + std::to_string(i), std::string(100'000, 'x'));
                  EXPECT_THAT(got.value("error", ""), HasSubstr("space"));
                  b.self.label = "unseen";
                  b->publish(b.self);
                  const time_point last = loop::current().after(longest_wait);
                  while (b.notes.troubles.empty() && loop::current().now() < last)
                      co_await pause(20ms);
                  EXPECT_THAT(b.notes.troubles, ElementsAre(HasSubstr("database space exceeded")));
                  // Leases are kept all the same.
                  co_await pause(6s);
                  EXPECT_EQ(a.names(), "a b");
                  EXPECT_FALSE(a->current()->is_stale);
                  member& c = make("c", all_servers());
                  const auto refused = co_await c->join(c.self);
                  EXPECT_TRUE(!refused && refused.error().status == 503);
                  EXPECT_THAT(refused.error().message, HasSubstr("database space exceeded"));
              },
              {"--quota-backend-bytes", "1000000"});
}

/// A proxy that passes a few bytes on at a time.
struct slow_proxy {
    listener at;
    scope passing;
    std::uint16_t to = 0;
    std::size_t piece = 64;
    duration delay = 1ms;

    task<void> serve() {
        for (;;) {
            auto accepted = co_await at.accept();
            if (!accepted) co_return;
            passing.spawn(pass(std::move(*accepted)));
        }
    }
    task<void> pass(stream client) {
        const auto where = endpoint::ip("127.0.0.1", to);
        auto server = co_await loop::current().connect(*where);
        if (!server) co_return;
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(copy(client, *server));
            co_await copy(*server, client);
        });
    }
    task<void> copy(stream& from, stream& into) {
        for (;;) {
            auto received = co_await from.read();
            if (!received) break;
            std::string bytes(received->text());
            *received = lease();
            for (std::string_view left = bytes; !left.empty();) {
                const std::string_view next = left.substr(0, piece);
                if (!co_await loop::current().sleep_for(delay)) break;
                if (!co_await into.write_all(next)) break;
                left.remove_prefix(next.size());
            }
        }
        into.close();
    }
};

TEST_P(etcd_server_test, a_slow_way_to_etcd) {
    with_etcd(1, [&]() -> task<void> {
        slow_proxy slow;
        slow.to = servers_.front()->port();
        slow.at = must(here().listen(loopback()));
        const std::string uri = "etcd://127.0.0.1:" + std::to_string(slow.at.local().port());
        slow.passing.spawn(slow.serve());
        member& a = co_await joined("a", uri);
        member& b = co_await joined("b");
        co_await until(a, shows("a b"));
        b.self = testing::simple_member("b", random(), 50);
        b->publish(b.self);
        co_await until(a, [&](const snapshot& now) { return *now.find("b") == b.self; });
        co_await pause(6s);
        EXPECT_EQ(b.names(), "a b");
        co_await a->end();
        slow.at.close();
        slow.passing.cancel();
        co_await slow.passing.join();
    });
}

TEST_P(etcd_server_test, users_and_passwords) {
    eddy::testing::temporary_folder folder;
    const std::string file = folder.file("password");
    std::ofstream(file) << "secret\n";
    with_etcd(1, [&]() -> task<void> {
        co_await ask("auth/user/add", {{"name", "root"}, {"password", "root"}});
        co_await ask("auth/user/grant", {{"user", "root"}, {"role", "root"}});
        co_await ask("auth/role/add", {{"name", "members"}});
        co_await ask("auth/role/grant", {{"name", "members"},
                                         {"perm",
                                          {{"permType", "READWRITE"},
                                           {"key", base64("eddy/")},
                                           {"range_end", base64("eddy0")}}}});
        co_await ask("auth/user/add", {{"name", "eddy"}, {"password", "secret"}});
        co_await ask("auth/user/grant", {{"user", "eddy"}, {"role", "members"}});
        const json on = co_await ask("auth/enable", json::object());
        EXPECT_TRUE(on.contains("header")) << on.dump();

        const std::string user = "user=eddy&password-file=" + file;
        member& a = co_await joined("a", all_servers() + "?" + user);
        member& b = co_await joined("b", all_servers() + "?" + user);
        co_await until(a, shows("a b"));
        member& nameless = make("c", all_servers());
        const auto without = co_await nameless->join(nameless.self);
        EXPECT_TRUE(!without && without.error().status == 400) << without.error().message;
        EXPECT_THAT(without.error().message, HasSubstr("name a user by user="));
        // Rights end at the prefix.
        member& elsewhere = make("c", all_servers() + "/other?" + user);
        const auto denied = co_await elsewhere->join(elsewhere.self);
        EXPECT_TRUE(!denied && denied.error().status == 400);
        EXPECT_THAT(denied.error().message, HasSubstr("below other/"));
        std::ofstream(folder.file("wrong")) << "wrong";
        member& wrong =
            make("c", all_servers() + "?user=eddy&password-file=" + folder.file("wrong"));
        const auto refused = co_await wrong->join(wrong.self);
        EXPECT_TRUE(!refused && refused.error().status == 400);
        EXPECT_THAT(refused.error().message, HasSubstr("invalid user ID or password"));

        // A server that has started again knows no token of before.
        servers_.front()->kill();
        co_await until(a, is_stale());
        servers_.front()->start();
        co_await until(a, shows("a b"));
        b.self.label = "new";
        b->publish(b.self);
        co_await until(a, [](const snapshot& now) { return now.find("b")->label == "new"; });
    });
}

TEST_P(etcd_server_test, certificates_of_both_sides) {
    eddy::testing::temporary_folder folder;
    const auto write = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder.file(name)) << text;
        return folder.file(name);
    };
    // One certificate for the server, and for its own requests to itself.
    const tls::certificate& own = tls::localhost_certificate();
    etcd_process::tls_files files;
    files.ca = write("ca.pem", tls::test_authority().pem());
    files.cert = write("cert.pem", own.chain);
    files.key = write("key.pem", own.key);
    const tls::authority stranger("a stranger");
    const tls::certificate strange = stranger.issue({.subject = "eddy", .names = {"DNS:eddy"}});
    const std::string strange_files = "&cert=" + write("strange.pem", strange.chain) +
                                      "&key=" + write("strange.key", strange.key);
    const std::string other_ca = write("other.pem", stranger.pem());
    with_etcd(
        1,
        [&]() -> task<void> {
            const std::string ca = all_servers() + "?ca=" + files.ca;
            const std::string usual = ca + "&cert=" + files.cert + "&key=" + files.key;
            member& a = co_await joined("a", usual);
            member& b = co_await joined("b", usual);
            co_await until(a, shows("a b"));
            co_await b->end();
            co_await until(a, shows("a"));
            const std::string other =
                all_servers() + "?ca=" + other_ca + "&cert=" + files.cert + "&key=" + files.key;
            const std::string plain = "etcd://" + servers_.front()->authority();
            EXPECT_THAT(co_await refusal_of(ca), HasSubstr("by cert= and key="));
            EXPECT_THAT(co_await refusal_of(ca + strange_files), HasSubstr("by cert= and key="));
            EXPECT_THAT(co_await refusal_of(other), HasSubstr("by ca="));
            EXPECT_THAT(co_await refusal_of(plain), HasSubstr("etcds://"));
            EXPECT_THAT(co_await refusal_of(ca + "&cert=" + files.ca),
                        HasSubstr(servers_.front()->authority()));
        },
        {}, files);
}

}  // namespace
}  // namespace eddy::cluster
