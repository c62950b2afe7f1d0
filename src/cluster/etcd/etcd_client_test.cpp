// Tests of the client of etcd's gateway against a test double: endpoints, authentication, watches
// in all pieces, and answers that are none of etcd's.
#include "cluster/etcd/etcd_client.hpp"

#include <eddy/io/scope.hpp>

#include "cluster/etcd/fake_etcd.hpp"
#include "cluster/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::ElementsAre;
using testing::fake_etcd;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr etcd_patience usual{5s, 10s};
/// For megabytes, on a busy machine.
constexpr etcd_patience longer{120s, 240s};

class etcd_client_test : public eddy::testing::on_io_backend {
protected:
    /// Runs `body` with three servers of one cluster, which share nothing.
    void with_servers(std::function<task<void>()> body) {
        run([&]() -> task<void> {
            for (auto* each : {&first_, &second_, &third_}) {
                *each = std::make_unique<fake_etcd>();
                (*each)->start();
            }
            co_await body();
            for (auto* each : {&first_, &second_, &third_}) co_await (*each)->stop();
        });
    }

    std::unique_ptr<etcd_client> client_of(const std::string& uri) {
        auto where = parse_etcd_address(uri);
        if (!where) throw std::runtime_error(where.error().message);
        return std::make_unique<etcd_client>(std::move(*where), notes_);
    }
    std::string all_servers() const {
        return "etcd://" + first_->uri() + "," + second_->uri() + "," + third_->uri();
    }

    /// The value of a key, or the failure's sentence.
    static task<std::string> value_of(etcd_client& client, std::string key,
                                      etcd_patience patience = usual) {
        etcd_range keys;
        keys.key = std::move(key);
        const auto got = co_await client.range(std::move(keys), patience);
        if (!got) co_return got.error().message;
        co_return got->entries.empty() ? "none" : got->entries.front().value;
    }

    static etcd_range all_from(std::int64_t revision) {
        etcd_range keys;
        keys.key = "k";
        keys.end = "l";
        keys.revision = revision;
        return keys;
    }

    testing::kept_reports notes_;
    std::unique_ptr<fake_etcd> first_;
    std::unique_ptr<fake_etcd> second_;
    std::unique_ptr<fake_etcd> third_;
};

INSTANTIATE_TEST_SUITE_P(cluster, etcd_client_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(etcd_client_test, writes_and_reads_keys) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        const std::string value("a\0\xff\"", 4);
        etcd_condition on;
        const auto written = co_await client->write("k", value, 0, on, usual);
        EXPECT_TRUE(written && written->is_written);
        EXPECT_EQ(co_await value_of(*client, "k"), value);
        on.is_absent = true;
        const auto refused = co_await client->write("k", "other", 0, on, usual);
        EXPECT_TRUE(refused && !refused->is_written && refused->found);
        EXPECT_EQ(refused->found->value, value);
        EXPECT_EQ(client->cluster_id(), first_->cluster_id);
        EXPECT_EQ(first_->connections, 1);
        EXPECT_EQ(second_->connections, 0);
    });
}

TEST_P(etcd_client_test, leases_end_by_time_and_by_revocation) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        const auto granted = co_await client->grant(5s, usual);
        EXPECT_TRUE(granted);
        const std::int64_t lease = granted ? granted->id : 0;
        const etcd_condition on;
        EXPECT_TRUE(co_await client->write("k", "x", lease, on, usual));
        const auto kept = co_await client->keep_alive(lease, usual);
        EXPECT_TRUE(kept && kept->ttl == 5);
        const auto left = co_await client->time_to_live(lease, usual);
        EXPECT_TRUE(left && left->ttl > 0);
        EXPECT_TRUE(co_await client->revoke(lease, usual));
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        const auto gone = co_await client->keep_alive(lease, usual);
        EXPECT_TRUE(gone && gone->ttl == 0);
        const auto unknown = co_await client->time_to_live(lease, usual);
        EXPECT_TRUE(unknown && unknown->ttl < 0);
        const auto again = co_await client->revoke(lease, usual);
        EXPECT_TRUE(!again && again.error().kind == etcd_fault::missing);
        const auto under = co_await client->write("k", "x", lease, on, usual);
        EXPECT_TRUE(!under && under.error().kind == etcd_fault::missing);
    });
}

TEST_P(etcd_client_test, tries_endpoints_in_turn_and_stays_with_one) {
    with_servers([&]() -> task<void> {
        first_->put("k", "first");
        second_->put("k", "second");
        third_->put("k", "third");
        const auto client = client_of(all_servers());
        EXPECT_EQ(co_await value_of(*client, "k"), "first");
        co_await first_->stop();
        EXPECT_EQ(co_await value_of(*client, "k"), "second");
        first_->start();
        EXPECT_EQ(co_await value_of(*client, "k"), "second");
        co_await second_->stop();
        co_await third_->stop();
        EXPECT_EQ(co_await value_of(*client, "k"), "first");
        co_await first_->stop();
        // One round over all of them, each with its sentence.
        const std::string failure = co_await value_of(*client, "k");
        EXPECT_THAT(failure, HasSubstr("etcd://" + first_->uri() + " cannot be reached"));
        EXPECT_THAT(failure, HasSubstr("etcd://" + second_->uri() + " cannot be reached"));
        EXPECT_THAT(failure, HasSubstr("etcd://" + third_->uri() + " cannot be reached"));
    });
}

TEST_P(etcd_client_test, a_silent_endpoint_is_passed_over_and_its_watches_end) {
    with_servers([&]() -> task<void> {
        second_->put("k", "second");
        const auto client = client_of(all_servers());
        auto watch = co_await client->watch(all_from(1), usual);
        if (!watch) throw std::runtime_error(watch.error().message);
        first_->freeze();
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn([](etcd_watch& of) -> task<void> {
                const auto line = co_await of.next();
                EXPECT_TRUE(!line && line.error().kind == etcd_fault::unreachable);
                EXPECT_THAT(line.error().message, HasSubstr("does not answer in time"));
            }(**watch));
            const etcd_patience short_one{100ms, 10s};
            etcd_range keys;
            keys.key = "k";
            const auto got = co_await client->range(std::move(keys), short_one);
            EXPECT_TRUE(got && got->entries.size() == 1);
        });
        first_->go_on();
    });
}

TEST_P(etcd_client_test, a_round_ends_in_time) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        for (auto* each : {&first_, &second_, &third_}) (*each)->freeze();
        const etcd_patience short_one{50ms, 20ms};
        etcd_range keys;
        keys.key = "k";
        const auto got = co_await client->range(std::move(keys), short_one);
        EXPECT_TRUE(!got && got.error().kind == etcd_fault::unreachable);
        EXPECT_EQ(client->failures(), 1u);
        for (auto* each : {&first_, &second_, &third_}) (*each)->go_on();
    });
}

TEST_P(etcd_client_test, a_cancelled_call_blames_no_endpoint) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        first_->freeze();
        cancel_source stop;
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn([](etcd_client& of, cancel_source& under) -> task<void> {
                etcd_range keys;
                keys.key = "k";
                const auto got = co_await of.range(std::move(keys), usual).under(under);
                EXPECT_TRUE(!got && got.error().kind == etcd_fault::cancelled);
            }(*client, stop));
            while (first_->calls["kv/range"] == 0) co_await loop::current().yield();
            stop.request();
        });
        EXPECT_EQ(client->failures(), 0u);
        first_->go_on();
    });
}

TEST_P(etcd_client_test, a_server_without_a_leader_is_passed_over) {
    with_servers([&]() -> task<void> {
        second_->put("k", "second");
        const auto client = client_of(all_servers());
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        auto watch = co_await client->watch(all_from(1), usual);
        if (!watch) throw std::runtime_error(watch.error().message);
        first_->has_leader = false;
        first_->put("other", "wakes the watch");
        // The change may be sent before the loss is.
        auto line = co_await (*watch)->next();
        if (line) line = co_await (*watch)->next();
        EXPECT_TRUE(!line);
        EXPECT_EQ(line ? etcd_fault::refused : line.error().kind, etcd_fault::unreachable);
        EXPECT_EQ(co_await value_of(*client, "k"), "second");
    });
}

TEST_P(etcd_client_test, foreign_endpoints_are_noted_once) {
    with_servers([&]() -> task<void> {
        second_->cluster_id = 0xbad;
        third_->put("k", "third");
        const auto client = client_of(all_servers());
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        for (int round = 0; round < 3; ++round) {
            co_await first_->stop();
            EXPECT_EQ(co_await value_of(*client, "k"), "third");
            first_->start();
            co_await third_->stop();
            EXPECT_EQ(co_await value_of(*client, "k"), "none");
            third_->start();
        }
        EXPECT_THAT(notes_.troubles, ElementsAre(HasSubstr(second_->uri())));
        EXPECT_EQ(client->cluster_id(), first_->cluster_id);
    });
}

TEST_P(etcd_client_test, most_endpoints_decide_on_the_cluster) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        co_await first_->stop();
        second_->cluster_id = third_->cluster_id = 0xc2;
        third_->put("k", "new");
        EXPECT_EQ(co_await value_of(*client, "k"), "new");
        EXPECT_EQ(client->cluster_id(), 0xc2u);
        EXPECT_THAT(notes_.troubles.back(), HasSubstr("set up anew"));
        // One endpoint is all of them.
        const auto other = client_of("etcd://" + second_->uri());
        EXPECT_EQ(co_await value_of(*other, "k"), "none");
        second_->cluster_id = 0xc3;
        EXPECT_EQ(co_await value_of(*other, "k"), "none");
        EXPECT_EQ(other->cluster_id(), 0xc3u);
    });
}

TEST_P(etcd_client_test, a_user_has_a_token_which_is_renewed) {
    eddy::testing::temporary_folder folder;
    const std::string file = folder.file("password");
    std::ofstream(file) << "secret word\n";
    with_servers([&]() -> task<void> {
        first_->password = "secret word";
        const std::string uri = "etcd://" + first_->uri() + "?user=eddy&password-file=" + file;
        const auto client = client_of(uri);
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
        EXPECT_EQ(first_->calls["auth/authenticate"], 1);
        first_->token = "token-2";
        first_->put("k", "x");
        EXPECT_EQ(co_await value_of(*client, "k"), "x");
        EXPECT_EQ(first_->calls["auth/authenticate"], 2);
        first_->token = "token-3";
        EXPECT_TRUE(co_await client->watch(all_from(1), usual));
        EXPECT_EQ(first_->calls["auth/authenticate"], 3);

        // The file is read each time.
        first_->password = "changed";
        first_->token = "token-4";
        const std::string refused = co_await value_of(*client, "k");
        EXPECT_THAT(refused, HasSubstr("invalid user ID or password"));
        EXPECT_THAT(refused, HasSubstr("password-file="));
        std::ofstream(file) << "changed";
        EXPECT_EQ(co_await value_of(*client, "k"), "x");
        // Where authentication is off the user is no mistake.
        first_->password.clear();
        const auto other = client_of(uri);
        EXPECT_EQ(co_await value_of(*other, "k"), "x");
    });
}

TEST_P(etcd_client_test, says_what_a_user_lacks) {
    eddy::testing::temporary_folder folder;
    with_servers([&]() -> task<void> {
        first_->password = "secret";
        const auto without = client_of("etcd://" + first_->uri());
        EXPECT_THAT(co_await value_of(*without, "k"), HasSubstr("name a user by user="));
        const std::string file = folder.file("absent");
        const std::string uri = "etcd://" + first_->uri() + "?user=eddy&password-file=" + file;
        const auto client = client_of(uri);
        EXPECT_THAT(co_await value_of(*client, "k"),
                    HasSubstr("password-file=" + file + " cannot be read"));
        std::ofstream(file) << "\nsecret";
        EXPECT_THAT(co_await value_of(*client, "k"), HasSubstr("no password of 1 to"));
        std::ofstream(file) << std::string(max_etcd_password, 'x');
        EXPECT_THAT(co_await value_of(*client, "k"), HasSubstr("invalid user ID"));
        std::ofstream(file) << std::string(max_etcd_password + 1, 'x');
        EXPECT_THAT(co_await value_of(*client, "k"), HasSubstr("no password of 1 to"));
        first_->password.clear();
        first_->script = [](std::string_view) {
            return fake_etcd::failure(403, 7, "etcdserver: permission denied");
        };
        EXPECT_THAT(co_await value_of(*without, "k"), HasSubstr("permission denied; name a user"));
    });
}

TEST_P(etcd_client_test, errors_have_kinds) {
    struct row {
        int status;
        int code;
        const char* message;
        etcd_fault kind;
    };
    with_servers([&]() -> task<void> {
        const auto client = client_of("etcd://" + first_->uri());
        for (const row& each : {
                 row{503, 14, "etcdserver: no leader", etcd_fault::unreachable},
                 row{504, 4, "etcdserver: request timed out", etcd_fault::unreachable},
                 row{429, 8, "etcdserver: too many requests", etcd_fault::unreachable},
                 row{429, 8, "grpc: received message larger than max (5 vs. 4)",
                     etcd_fault::too_large},
                 row{429, 8, "etcdserver: mvcc: database space exceeded", etcd_fault::refused},
                 row{400, 3, "etcdserver: request is too large", etcd_fault::too_large},
                 row{400, 3, "etcdserver: key is not provided", etcd_fault::refused},
                 row{400, 11, "etcdserver: mvcc: required revision has been compacted",
                     etcd_fault::compacted},
                 row{404, 5, "etcdserver: requested lease not found", etcd_fault::missing},
                 row{403, 7, "etcdserver: permission denied", etcd_fault::denied},
                 row{401, 16, "etcdserver: invalid auth token", etcd_fault::denied},
                 row{501, 12, "not implemented", etcd_fault::refused},
             }) {
            first_->script = [&each](std::string_view) {
                return fake_etcd::failure(each.status, each.code, each.message);
            };
            etcd_range keys;
            keys.key = "k";
            const auto got = co_await client->range(std::move(keys), usual);
            EXPECT_FALSE(got) << each.message;
            if (got) continue;
            EXPECT_EQ(got.error().kind, each.kind) << each.message;
            EXPECT_THAT(got.error().message, HasSubstr("etcd://" + first_->uri()));
            EXPECT_THAT(got.error().message, HasSubstr(each.message));
        }
    });
}

TEST_P(etcd_client_test, what_is_no_answer_of_etcd_is_none) {
    with_servers([&]() -> task<void> {
        const auto client = client_of("etcd://" + first_->uri());
        for (const int status : {200, 404, 502}) {
            for (const std::string text : {"", "{}", "null", "<html>no</html>", "{\"header\":1}",
                                           "\xff\xfe", "[[[[[[[[[[[[[[[[[[[["}) {
                first_->script = [&](std::string_view) {
                    return http::response(status, "application/json", text);
                };
                EXPECT_THAT(co_await value_of(*client, "k"), HasSubstr("etcd://" + first_->uri()))
                    << text;
                auto watch = co_await client->watch(all_from(1), usual);
                EXPECT_FALSE(watch) << text;
            }
        }
        first_->script = nullptr;
        EXPECT_EQ(co_await value_of(*client, "k"), "none");
    });
}

TEST_P(etcd_client_test, an_answer_has_so_many_bytes_at_most) {
    with_servers([&]() -> task<void> {
        const auto client = client_of("etcd://" + first_->uri());
        first_->script = [](std::string_view) {
            return http::json("{\"header\":{\"cluster_id\":\"193\"},\"x\":\"" +
                              std::string(max_etcd_response - 100, 'x') + "\"}");
        };
        EXPECT_EQ(co_await value_of(*client, "k", longer), "none");
        first_->script = [](std::string_view) {
            return http::json("{\"header\":{\"cluster_id\":\"193\"},\"x\":\"" +
                              std::string(max_etcd_response, 'x') + "\"}");
        };
        etcd_range keys;
        keys.key = "k";
        const auto got = co_await client->range(std::move(keys), longer);
        EXPECT_TRUE(!got && got.error().kind == etcd_fault::too_large);
    });
}

TEST_P(etcd_client_test, a_watch_yields_what_was_and_what_comes) {
    with_servers([&]() -> task<void> {
        const auto client = client_of(all_servers());
        first_->put("k1", "old");
        first_->put("k2", "new");
        auto watch = co_await client->watch(all_from(3), usual);
        if (!watch) throw std::runtime_error(watch.error().message);
        EXPECT_EQ((*watch)->created().revision, 3);
        const auto changed = co_await (*watch)->next();
        EXPECT_TRUE(changed && changed->events.size() == 1);
        EXPECT_EQ(changed->events.front().entry.key, "k2");
        first_->remove("k1");
        const auto removed = co_await (*watch)->next();
        EXPECT_TRUE(removed && removed->events.size() == 1);
        EXPECT_TRUE(removed->events.front().is_removal);
        EXPECT_EQ(removed->events.front().entry.mod_revision, 4);
        first_->cut_watches();
        const auto lost = co_await (*watch)->next();
        EXPECT_TRUE(!lost && lost.error().kind == etcd_fault::unreachable);
    });
}

TEST_P(etcd_client_test, a_watch_of_a_compacted_revision_ends) {
    with_servers([&]() -> task<void> {
        first_->put("k", "x");
        first_->put("k", "y");
        first_->compacted = 3;
        const auto client = client_of(all_servers());
        auto watch = co_await client->watch(all_from(2), usual);
        if (!watch) throw std::runtime_error(watch.error().message);
        const auto line = co_await (*watch)->next();
        EXPECT_TRUE(!line && line.error().kind == etcd_fault::compacted);
        etcd_range keys = all_from(2);
        const auto listed = co_await client->range(std::move(keys), usual);
        EXPECT_TRUE(!listed && listed.error().kind == etcd_fault::compacted);
    });
}

/// A server of one connection, which sends bytes of the test in pieces.
class etcd_watch_bytes : public etcd_client_test {
protected:
    static constexpr std::string_view line_head =
        R"({"result":{"header":{"cluster_id":"193","revision":"7"})";

    static std::string chunk(std::string_view text) {
        static constexpr std::string_view digits = "0123456789abcdef";
        std::string size;
        for (std::size_t left = text.size(); left > 0; left /= 16)
            size.insert(size.begin(), digits[left % 16]);
        return size + "\r\n" + std::string(text) + "\r\n";
    }

    static task<void> serve_bytes(listener& at, std::string bytes, std::size_t piece, bool closes) {
        auto peer = co_await at.accept();
        if (!peer) co_return;
        std::string seen;
        while (!seen.contains("create_request") || !seen.ends_with("}}")) {
            const auto got = co_await peer->read();
            if (!got) co_return;
            seen += got->text();
        }
        std::string_view left = bytes;
        while (!left.empty()) {
            const std::string_view next = left.substr(0, piece);
            if (!co_await peer->write_all(next)) co_return;
            left.remove_prefix(next.size());
            co_await loop::current().yield();
        }
        if (closes) co_return peer->close();
        while (co_await peer->read()) {
        }
    }

    /// All that a watch yields of `bytes`, in words.
    task<std::string> watch_bytes(std::string bytes, std::size_t piece, bool closes) {
        listener at = must(here().listen(loopback()));
        std::string seen;
        co_await with_scope([&](scope& children) -> task<void> {
            children.spawn(serve_bytes(at, std::move(bytes), piece, closes));
            const auto client = client_of("etcd://127.0.0.1:" + std::to_string(at.local().port()));
            const etcd_patience patience{1s, 1s};
            auto watch = co_await client->watch(all_from(1), patience);
            if (!watch) {
                seen = "no watch: " + watch.error().message;
                co_return;
            }
            for (;;) {
                const auto line = co_await (*watch)->next();
                if (!line) {
                    seen += line.error().kind == etcd_fault::unreachable ? "lost" : "ended";
                    co_return;
                }
                for (const etcd_event& each : line->events)
                    seen += (each.is_removal ? "-" : "+") + each.entry.key + " ";
            }
        });
        co_return seen;
    }
    template <class T>
    static T must(result<T> of) {
        return eddy::testing::must(std::move(of));
    }
};

INSTANTIATE_TEST_SUITE_P(cluster, etcd_watch_bytes,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(etcd_watch_bytes, the_pieces_do_not_count) {
    const std::string head(line_head);
    const std::string text =
        head + ",\"created\":true}}\n" + head +
        R"(,"events":[{"kv":{"key":"YQ==","mod_revision":"7"}}]}})" + "\n\r\n" + head +
        R"(,"events":[{"type":"DELETE","kv":{"key":"Yg==","mod_revision":"7"}},)"
        R"({"kv":{"key":"Yw=="}}]}})" +
        "\n" + head + "}}\n";
    const std::string start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    run([&]() -> task<void> {
        // Chunks of a few sizes, and all of them in pieces of a few sizes.
        for (const std::size_t each : {1UZ, 7UZ, 64UZ, text.size()}) {
            std::string bytes = start;
            for (std::string_view left = text; !left.empty();
                 left.remove_prefix(std::min(each, left.size())))
                bytes += chunk(left.substr(0, each));
            for (const std::size_t piece : {1UZ, 3UZ, 50UZ, bytes.size()})
                EXPECT_EQ(co_await watch_bytes(bytes, piece, true), "+a -b +c lost")
                    << each << " " << piece;
        }
    });
}

TEST_P(etcd_watch_bytes, damaged_lines_end_it) {
    const std::string head(line_head);
    const std::string created = head + ",\"created\":true}}\n";
    const std::string start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    run([&]() -> task<void> {
        for (const std::string text :
             {"{\n", "no json\n", "{\"result\":{}}\n", "{\"result\":{\"header\":{}}}\n",
              "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n"}) {
            const std::string bytes = start + chunk(created) + chunk(text);
            EXPECT_EQ(co_await watch_bytes(bytes, 1000, false), "lost") << text;
            const std::string at_once = start + chunk(text);
            EXPECT_THAT(co_await watch_bytes(at_once, 1000, false), HasSubstr("no watch: "))
                << text;
        }
        const std::string canceled =
            start + chunk(created) + chunk(head + ",\"canceled\":true,\"cancel_reason\":\"x\"}}\n");
        EXPECT_EQ(co_await watch_bytes(canceled, 1000, false), "ended");
        // Silence, an end at once, and no HTTP.
        EXPECT_THAT(co_await watch_bytes(start, 1000, false),
                    HasSubstr("no watch: etcd://127.0.0.1"));
        EXPECT_THAT(co_await watch_bytes("", 1000, true), HasSubstr("closed the connection"));
        EXPECT_THAT(co_await watch_bytes("SSH-2.0-x\r\n", 1000, true),
                    HasSubstr("does not answer in HTTP"));
    });
}

TEST_P(etcd_watch_bytes, a_line_has_so_many_bytes_at_most) {
    const std::string head(line_head);
    const std::string start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string created = head + ",\"created\":true}}\n";
    run([&]() -> task<void> {
        const std::string endless = chunk(std::string(max_etcd_response + 2, 'x'));
        EXPECT_EQ(co_await watch_bytes(start + chunk(created) + endless, 1 << 20, false), "ended");
        const std::string rest = std::string(head) + ",\"x\":\"";
        const std::string end = "\"}}\n";
        const std::size_t room = max_etcd_response - rest.size() - end.size() + 1;
        const std::string full = chunk(rest + std::string(room, 'x') + end);
        const std::string next =
            chunk(head + R"(,"events":[{"kv":{"key":"YQ==","mod_revision":"7"}}]}})" + "\n");
        EXPECT_EQ(co_await watch_bytes(start + chunk(created) + full + next, 1 << 20, true),
                  "+a lost");
    });
}

}  // namespace
}  // namespace eddy::cluster
