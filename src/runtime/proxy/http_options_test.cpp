// Effects of the options of HTTP proxies, of health checks and of what takes a backend out.
#include "runtime/proxy/http_options_test.hpp"

#include "proxy/testing.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace runtime::testing;
using eddy::proxy::testing::test_backend;
using eddy::proxy::testing::text_peer;
using runtime::testing::effect_table;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nok";

/// A proxy of HTTP before backends that the test plays.
class http_proxy {
public:
    explicit http_proxy(std::string_view type, json options = {}, std::size_t backends = 1,
                        std::string protocol = "http", const neighbours& among = {})
        : backends_(backends) {
        std::string all;
        for (const test_backend& each : backends_) all += (all.empty() ? "" : ",") + each.name();
        if (!options.contains("backend")) options["backend"] = all;
        options["protocol"] = protocol;
        options_ = with(options);
        s_.emplace(type, options_, "subject", among);
    }

    test_backend& backend(std::size_t i = 0) { return backends_.at(i); }
    subject& operator*() { return *s_; }
    instance* operator->() { return s_->operator->(); }
    task<void> start() { co_await s_->start(); }
    task<void> stop() { co_await (*s_)->stop(0s); }
    void apply(const json& changed) {
        json all = options_;
        all.update(changed);
        must_do((*s_)->apply(s_->parse(all)));
    }
    task<text_peer> client() {
        auto made = co_await loop::current().connect((*s_)->local());
        co_return text_peer(must(std::move(made)));
    }
    /// A request that a backend answers: what it got of it.
    task<std::string> forwarded(text_peer& client, std::string request = std::string(get),
                                std::string answer = ok, std::size_t at = 0) {
        co_await client.say(std::move(request));
        text_peer its = co_await backends_.at(at).accept();
        std::string head = co_await its.head();
        co_await its.say(std::move(answer));
        seen_ = co_await client.head();
        if (seen_.ends_with("Content-Length: 2\r\n\r\n")) EXPECT_EQ(co_await client.bytes(2), "ok");
        its.socket.close();
        co_return head;
    }
    /// The head of the response to that.
    const std::string& response() const { return seen_; }
    /// True when the backend gets a client's request, which is answered.
    task<bool> is_chosen(std::size_t at) {
        text_peer peer = co_await client();
        co_await peer.say("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        std::size_t chosen = backends_.size();
        co_await with_scope([&](scope& accepting) -> task<void> {
            for (std::size_t i = 0; i < backends_.size(); ++i)
                accepting.spawn(answer(i, chosen, accepting));
            co_await accepting.join();
        });
        EXPECT_THAT(co_await peer.rest(), EndsWith("\r\n\r\nok"));
        co_return chosen == at;
    }

private:
    /// Answers the first request of the backend, on a connection that is not kept.
    task<void> answer(std::size_t i, std::size_t& chosen, scope& others) {
        auto made = co_await backends_.at(i).socket().accept();
        if (!made) co_return;
        chosen = i;
        text_peer its(std::move(*made));
        EXPECT_THAT(co_await its.head(), StartsWith("GET /a"));
        co_await its.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        others.cancel();
    }

    std::vector<test_backend> backends_;
    json options_;
    std::optional<subject> s_;
    std::string seen_;
};

/// The sample of a metric; of one that has labels that with this label.
double metric(http_proxy& of, std::string_view name, std::string_view label = {}) {
    for (const metric_sample& each : of->count().samples)
        if (each.of->name == name && (label.empty() || each.labels[0] == label))
            return std::get<double>(each.value);
    return -1;
}

/// Writes until the client takes no more, or all of it.
task<void> send_much(text_peer& from, std::size_t size) {
    const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) +
                             "\r\n\r\n" + std::string(size, 'x');
    static_cast<void>(co_await from.socket.write_all(text));
}

/// Sets `chosen` to `index` for a connection that comes, which ends the other waits.
task<void> note_accepted(listener& at, std::size_t index, std::size_t& chosen, scope& others) {
    const auto made = co_await at.accept();
    if (!made) co_return;
    chosen = index;
    others.cancel();
}

task<void> the_protocol_decides_what_is_forwarded(std::string type) {
    http_proxy http(type);
    co_await http.start();
    text_peer client = co_await http.client();
    EXPECT_THAT(co_await http.forwarded(client), HasSubstr("\r\nVia: 1.1 eddy\r\n"));
    EXPECT_THAT(http.response(), StartsWith("HTTP/1.1 200 OK\r\n"));
    co_await http.stop();
    http_proxy tcp(type, {}, 1, "tcp");
    co_await tcp.start();
    text_peer other = co_await tcp.client();
    EXPECT_EQ(co_await tcp.forwarded(other), get);
    co_await tcp.stop();
}

task<void> backups_wait_for_the_others(std::string type) {
    test_backend spare;
    http_proxy p(type, {{"backup", spare.name()}});
    co_await p.start();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(co_await p.is_chosen(0));
    p.backend().close();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    text_peer its = co_await spare.accept();
    EXPECT_THAT(co_await its.head(), StartsWith("GET"));
    co_await p.stop();
}

task<void> drained_backends_get_no_clients(std::string type) {
    http_proxy p(type, {}, 2);
    co_await p.start();
    p.apply({{"drain_backend", p.backend(0).name()}});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await p.is_chosen(1));
    EXPECT_EQ(metric(p, "backend_up", p.backend(0).name()), 0);
    EXPECT_EQ(metric(p, "backend_up", p.backend(1).name()), 1);
    co_await p.stop();
}

task<void> members_elsewhere_are_backups(std::string type) {
    const neighbours all;
    http_proxy p(type, {{"backend", "@g"}, {"local_first", true}}, 2, "http", all);
    all.runtimes->add("near", "1", "g");
    all.runtimes->set_running("near", true);
    const auto serve_near = [&] {
        return all.runtimes->note("near", transport::address(), p.backend(0).socket().local());
    };
    address_note near = serve_near();
    const endpoint far = p.backend(1).socket().local();
    all.runtimes->set_remote("b",
                             {{"b/far", "g", {{transport::scheme::tcp, far.host(), far.port()}}}});
    co_await p.start();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await p.is_chosen(0));
    near = address_note();
    while (!co_await p.is_chosen(1)) continue;
    near = serve_near();
    while (!co_await p.is_chosen(0)) continue;
    p.apply({{"local_first", false}});
    while (!co_await p.is_chosen(1)) continue;
    EXPECT_EQ(metric(p, "backend_up", "b/far"), 1);
    co_await p.stop();
}

task<void> a_key_chooses_the_backend(std::string type) {
    {
        http_proxy p(type, {{"strategy", "hash"}, {"hash_by", "path"}}, 3);
        co_await p.start();
        std::size_t first = 0;
        while (!co_await p.is_chosen(first)) ++first;
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await p.is_chosen(first));
        co_await p.stop();
    }
    // Requests without the key go to all of them.
    http_proxy p(type, {{"strategy", "hash"}, {"hash_by", "field:X-Key"}}, 3);
    co_await p.start();
    for (std::size_t i = 0; i < 3; ++i)
        while (!co_await p.is_chosen(i)) continue;
    co_await p.stop();
}

/// A client of TCP from its own address: the index of its backend.
task<std::size_t> backend_of(http_proxy& p, std::size_t backends, std::string from) {
    local_binding own;
    own.address = must(endpoint::ip(from, 0));
    auto made = co_await loop::current().connect(p->local(), own);
    text_peer client(must(std::move(made)));
    co_await client.say("hello");
    std::size_t chosen = backends;
    co_await with_scope([&](scope& accepting) -> task<void> {
        for (std::size_t i = 0; i < backends; ++i)
            accepting.spawn(note_accepted(p.backend(i).socket(), i, chosen, accepting));
        co_await accepting.join();
    });
    co_return chosen;
}

task<void> addresses_choose_backends_of_tcp(std::string type) {
    http_proxy p(type, {{"strategy", "hash"}}, 3, "tcp");
    co_await p.start();
    std::set<std::size_t> used;
    for (int i = 1; i < 12; ++i) {
        const std::string from = "127.0.0." + std::to_string(i);
        const std::size_t first = co_await backend_of(p, 3, from);
        EXPECT_EQ(co_await backend_of(p, 3, from), first) << from;
        used.insert(first);
    }
    EXPECT_GT(used.size(), 1U);
    co_await p.stop();
}

task<void> keys_choose_backends(std::string type) {
    co_await a_key_chooses_the_backend(type);
    co_await addresses_choose_backends_of_tcp(type);
}

/// Health checks of a backend that answers `status`: whether it is up after a result.
task<bool> is_up_after(std::string type, json options, std::string status, std::string path = "/") {
    options["health_interval"] = "10ms";
    http_proxy p(type, options);
    co_await p.start();
    text_peer check = co_await p.backend().accept();
    EXPECT_THAT(co_await check.head(), StartsWith("GET " + path + " HTTP/1.1\r\n"));
    co_await check.say("HTTP/1.1 " + status + " x\r\nContent-Length: 0\r\n\r\n");
    static_cast<void>(co_await check.is_over());
    text_peer next = co_await p.backend().accept();
    const bool is_up = metric(p, "backend_up", p.backend().name()) == 1;
    EXPECT_EQ(p.operator*().events.has("is down: its check got the status " + status), !is_up);
    co_await p.stop();
    co_return is_up;
}

task<void> health_checks_take_backends_out(std::string type) {
    EXPECT_TRUE(co_await is_up_after(type, {{"health_check", "http"}}, "204"));
    EXPECT_FALSE(co_await is_up_after(type, {{"health_check", "http"}}, "500"));
    EXPECT_FALSE(co_await is_up_after(type, {{"health_check", "http"}, {"health_path", "/live?x"}},
                                      "404", "/live?x"));
    EXPECT_FALSE(
        co_await is_up_after(type, {{"health_check", "http"}, {"health_status", "204"}}, "200"));
    EXPECT_TRUE(co_await is_up_after(type, {{"health_check", "http"}, {"health_status", "400-404"}},
                                     "404"));
    http_proxy p(type, {{"health_check", "http"}, {"health_host", "a.example"}});
    co_await p.start();
    text_peer check = co_await p.backend().accept();
    EXPECT_THAT(co_await check.head(), HasSubstr("\r\nHost: a.example\r\n"));
    co_await p.stop();
}

task<void> checks_have_a_time(std::string type) {
    http_proxy p(type, {{"health_check", "http"}, {"health_timeout", "20ms"}});
    co_await p.start();
    text_peer check = co_await p.backend().accept();
    co_await until([&] { return p.operator*().events.has("is down: its check got no response"); });
    co_await p.stop();
}

task<void> results_in_a_row_count(std::string type) {
    http_proxy p(type, {{"health_check", "http"},
                        {"health_interval", "10ms"},
                        {"health_fall", 2},
                        {"health_rise", 3}});
    co_await p.start();
    const std::string name = p.backend().name();
    std::string seen;
    for (const char* const status : {"200", "500", "500", "200", "200", "200", "200"}) {
        text_peer check = co_await p.backend().accept();
        seen += metric(p, "backend_up", name) == 1 ? '+' : '-';
        co_await check.head();
        co_await check.say("HTTP/1.1 " + std::string(status) + " x\r\nContent-Length: 0\r\n\r\n");
        static_cast<void>(co_await check.is_over());
    }
    EXPECT_EQ(seen, "+++---+");
    co_await p.stop();
}

task<void> failures_in_a_row_eject(std::string type) {
    http_proxy p(type, {{"eject_after", 1}}, 2);
    co_await p.start();
    const std::string first = p.backend(0).name();
    p.backend(0).close();
    EXPECT_TRUE(co_await p.is_chosen(1));
    EXPECT_TRUE(co_await p.is_chosen(1));
    EXPECT_EQ(metric(p, "backend_up", first), 0);
    EXPECT_EQ(metric(p, "backend_ejections_total", first), 1);
    EXPECT_EQ(metric(p, "backend_failures_total", first), 1) << "it is tried once";
    EXPECT_TRUE(p.operator*().events.has("backend " + first + " is down"));
    co_await p.stop();
}

/// Answers each request of each connection after a time.
task<void> answer_after(test_backend& at, const duration& time, scope& tasks) {
    for (;;) {
        auto made = co_await at.socket().accept();
        if (!made) co_return;
        text_peer peer(std::move(*made));
        tasks.spawn([](text_peer its, const duration& after) -> task<void> {
            while (!(co_await its.head()).empty()) {
                if (!co_await loop::current().sleep_for(after)) co_return;
                co_await its.say(ok);
            }
        }(std::move(peer), time));
    }
}

task<void> slow_backends_are_ejected(std::string type) {
    http_proxy p(type, {{"eject_slow", 3}}, 3);
    co_await p.start();
    std::vector<duration> times = {20ms, 200ms, 30ms};
    scope answering(co_await current_source());
    for (std::size_t i = 0; i < times.size(); ++i)
        answering.spawn(answer_after(p.backend(i), times[i], answering));
    text_peer client = co_await p.client();
    const std::string name = p.backend(1).name();
    const auto ask_until = [&](std::string line) -> task<void> {
        const time_point end = loop::current().after(20s);
        while (!(*p).events.has(line) && loop::current().now() < end) {
            co_await client.say(std::string(get));
            EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200 "));
            EXPECT_EQ(co_await client.bytes(2), "ok");
        }
        EXPECT_TRUE((*p).events.has(line)) << line;
    };
    co_await ask_until("backend " + name + " is down: it is slow; half of its responses take");
    times[1] = 20ms;
    co_await ask_until("backend " + name + " is up again");
    answering.cancel();
    co_await answering.join();
    co_await p.stop();
}

task<void> a_backend_that_comes_back_starts_slowly(std::string type) {
    const subject s(type, with({{"backend", ":1"}, {"slow_start", "7s"}}));
    const json given = with({{"backend", ":1"}, {"slow_start", "7s"}});
    EXPECT_EQ(must_do(read_config(s.parse(given))).balance.slow_start, 7s);
    co_return;  // its shares: proxy/balancer_test.cpp
}

task<void> routes_have_their_own_backends(std::string type) {
    test_backend api;
    http_proxy p(type, {{"route", {"/api>/v1=" + api.name()}},
                        {"redirect", {"old.example=https://new.example"}}});
    co_await p.start();
    text_peer client = co_await p.client();
    EXPECT_THAT(co_await p.forwarded(client), StartsWith("GET /a HTTP/1.1"));
    co_await client.say("GET /api/b HTTP/1.1\r\nHost: x\r\n\r\n");
    text_peer its = co_await api.accept();
    EXPECT_THAT(co_await its.head(), StartsWith("GET /v1/b HTTP/1.1"));
    co_await its.say(ok);
    EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200"));
    co_await client.bytes(2);
    co_await client.say("GET /b HTTP/1.1\r\nHost: old.example\r\n\r\n");
    EXPECT_THAT(co_await client.head(), HasSubstr("\r\nLocation: https://new.example/b\r\n"));
    co_await p.stop();
}

task<void> plain_requests_are_redirected_to_https(std::string type) {
    http_proxy p(type, {{"https_redirect", true}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say("GET /a?b HTTP/1.1\r\nHost: x.org:80\r\n\r\n");
    const std::string head = co_await client.head();
    EXPECT_THAT(head, StartsWith("HTTP/1.1 308 "));
    EXPECT_THAT(head, HasSubstr("\r\nLocation: https://x.org/a?b\r\n"));
    co_await p.stop();
}

task<void> connect_opens_a_tunnel_where_it_may(std::string type) {
    http_proxy p(type, {});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say("CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n");
    EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 405 "));
    p.apply({{"allow_connect", true}});
    text_peer other = co_await p.client();
    co_await other.say("CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n");
    text_peer backend = co_await p.backend(0).accept();
    EXPECT_THAT(co_await backend.head(), StartsWith("CONNECT y:443 HTTP/1.1\r\n"));
    co_await p.stop();
}

task<void> a_cookie_keeps_the_backend(std::string type) {
    http_proxy p(type, {{"sticky", "at"}}, 2);
    co_await p.start();
    text_peer client = co_await p.client();
    co_await p.forwarded(client);
    EXPECT_THAT(p.response(), HasSubstr("\r\nSet-Cookie: at="));
    co_await p.stop();
}

task<void> tries_are_limited(std::string type) {
    http_proxy p(type, {{"tries", 1}}, 2);
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    text_peer first = co_await p.backend(0).accept();
    co_await first.head();
    first.socket.close();
    EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 502"));
    co_await p.stop();
}

task<void> fields_say_who_the_client_is(std::string type) {
    const std::string said = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n";
    const auto head = [&](json options) -> task<std::string> {
        http_proxy p(type, options);
        co_await p.start();
        text_peer client = co_await p.client();
        std::string got = co_await p.forwarded(client, said);
        co_await p.stop();
        co_return got;
    };
    EXPECT_THAT(co_await head({}), HasSubstr("\r\nX-Forwarded-For: 127.0.0.1\r\n"));
    EXPECT_THAT(co_await head({{"trust", "10.0.0.0/8,127.0.0.1"}}),
                HasSubstr("\r\nX-Forwarded-For: 1.1.1.1, 127.0.0.1\r\n"));
    EXPECT_THAT(co_await head({{"forwarded", "forwarded"}}),
                ::testing::AllOf(HasSubstr("\r\nForwarded: for=127.0.0.1;"),
                                 Not(HasSubstr("X-Forwarded-For"))));
    EXPECT_EQ(co_await head({{"forwarded", "none"},
                             {"via", "-"},
                             {"host", "inner:8"},
                             {"request_field", {"X-A: b", "X-C:"}}}),
              "GET / HTTP/1.1\r\nHost: inner:8\r\nX-A: b\r\n\r\n");
}

task<void> fields_of_responses_are_set(std::string type) {
    http_proxy p(type, {{"response_field", {"X-A: b", "Server:"}}, {"via", "gate"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await p.forwarded(client, std::string(get),
                         "HTTP/1.1 200 OK\r\nDate: x\r\nServer: y\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(p.response(),
              "HTTP/1.1 200 OK\r\nDate: x\r\nX-A: b\r\nVia: 1.1 gate\r\n"
              "Content-Length: 0\r\n\r\n");
    co_await p.stop();
}

task<void> files_answer_errors(std::string type) {
    const temporary_folder folder;
    const auto write = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder.file(name)) << text;
    };
    const std::string page = folder.file("down.html");
    write("down.html", "<p>down</p>");
    write("no.json", "{}");
    http_proxy p(type, {{"error_page", {"502,503=" + page, "400=" + folder.file("no.json")}}});
    p.backend().close();
    co_await p.start();
    const auto answer = [&](std::string request) -> task<std::string> {
        text_peer client = co_await p.client();
        co_await client.say(std::move(request));
        must(client.socket.shutdown_write());
        co_return co_await client.rest();
    };
    const std::string down = co_await answer(std::string(get));
    EXPECT_THAT(down, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_THAT(down, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
    EXPECT_THAT(down, EndsWith("\r\n\r\n<p>down</p>"));
    const std::string malformed = co_await answer("GET / HTTP/1.1\r\nHost: x x\r\n\r\n");
    EXPECT_THAT(malformed, StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(malformed, EndsWith("\r\n\r\n{}"));
    write("down.html", std::string(100'000, 'x'));
    EXPECT_THAT(co_await answer(std::string(get)), EndsWith("<p>down</p>")) << "until a reload";
    const auto again = co_await p->reread();
    EXPECT_TRUE(again && *again);
    EXPECT_THAT(co_await answer(std::string(get)),
                EndsWith("\r\n\r\n" + std::string(100'000, 'x')));
    std::filesystem::remove(page);
    const auto missing = co_await p->reread();
    EXPECT_FALSE(missing);
    EXPECT_THAT(co_await answer(std::string(get)), EndsWith("xxx")) << "the last one that was read";
    co_await p.stop();
    write("down.html", std::string(eddy::proxy::max_error_page + 1, 'x'));
    const auto large = co_await p->start();
    EXPECT_FALSE(large);
    EXPECT_THAT(large.error().message, HasSubstr("has more than 1024 KiB"));
    write("down.html", std::string(eddy::proxy::max_error_page, 'x'));
    co_await p.start();
    EXPECT_THAT(co_await answer(std::string(get)), EndsWith("xxx"));
    co_await p.stop();
}

task<void> backends_have_a_time_to_respond(std::string type) {
    http_proxy p(type, {{"response_timeout", "50ms"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 504"));
    co_await p.stop();
}

task<void> the_whole_request_has_a_time(std::string type) {
    http_proxy p(type, {{"total_timeout", "50ms"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 504"));
    co_await p.stop();
}

task<void> uploads_wait_at_the_proxy(std::string type) {
    http_proxy p(type, {{"buffer_requests", "1k"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    must(co_await loop::current().sleep_for(20ms));
    EXPECT_EQ(metric(p, "backend_connections_total", p.backend().name()), 0);
    co_await client.say("cd");
    text_peer its = co_await p.backend().accept();
    EXPECT_THAT(co_await its.until("abcd"), EndsWith("\r\n\r\nabcd"));
    co_await p.stop();
}

task<void> slow_clients_keep_no_backend(std::string type) {
    http_proxy p(type, {{"buffer_responses", "16M"}, {"max_backend_connections", 1}});
    co_await p.start();
    text_peer slow = co_await p.client();
    co_await slow.say(std::string(get));
    text_peer its = co_await p.backend().accept();
    co_await its.head();
    co_await send_much(its, std::size_t{8} << 20);
    text_peer other = co_await p.client();
    co_await other.say(std::string(get));
    EXPECT_EQ((co_await its.head()).substr(0, 6), "GET /a");
    const double buffered = metric(p, "buffered_bytes");
    EXPECT_GT(buffered, 0);
    EXPECT_LE(buffered, 8 << 20);
    co_await p.stop();
}

task<void> pauses_of_a_response_are_limited(std::string type) {
    http_proxy p(type, {{"read_timeout", "50ms"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    text_peer its = co_await p.backend().accept();
    co_await its.head();
    co_await its.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    EXPECT_THAT(co_await client.rest(), EndsWith("\r\n\r\nabc"));
    co_await p.stop();
}

task<void> requests_wait_for_connections(std::string type) {
    http_proxy p(type, {{"max_backend_connections", 1}, {"queue", 1}, {"queue_timeout", "100ms"}});
    co_await p.start();
    text_peer one = co_await p.client();
    co_await one.say(std::string(get));
    text_peer its = co_await p.backend().accept();
    text_peer two = co_await p.client();
    co_await two.say(std::string(get));
    EXPECT_THAT(co_await two.head(), StartsWith("HTTP/1.1 503")) << "after the queue's time";
    co_await p.stop();
}

task<void> idle_connections_are_closed(std::string type) {
    http_proxy p(type, {{"keep_timeout", "50ms"}, {"client_timeout", "500ms"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    text_peer its = co_await p.backend().accept();
    co_await its.head();
    co_await its.say(ok);
    co_await client.head();
    EXPECT_TRUE(co_await its.is_over()) << "the backend's first";
    EXPECT_EQ(co_await client.rest(), "ok") << "then the client's";
    co_await p.stop();
}

task<void> requests_are_limited(std::string type) {
    http_proxy p(
        type,
        {{"max_header", "1k"}, {"max_fields", 3}, {"max_body", "10"}, {"request_timeout", "50ms"}});
    co_await p.start();
    const auto answer = [&](std::string request) -> task<std::string> {
        text_peer client = co_await p.client();
        co_await client.say(std::move(request));
        co_return (co_await client.head()).substr(9, 3);
    };
    EXPECT_EQ(
        co_await answer("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(1024, 'x') + "\r\n\r\n"),
        "431");
    EXPECT_EQ(co_await answer("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\nA: b\r\nA: b\r\n\r\n"), "431");
    EXPECT_EQ(co_await answer("GET /" + std::string(1024, 'x') + " HTTP/1.1\r\n"), "414");
    EXPECT_EQ(co_await answer("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n"), "413");
    EXPECT_EQ(co_await answer("GET / HT"), "408");
    co_await p.stop();
}

task<void> clients_that_take_nothing_are_cut(std::string type) {
    http_proxy p(type, {{"write_timeout", "50ms"}});
    co_await p.start();
    text_peer client = co_await p.client();
    co_await client.say(std::string(get));
    text_peer its = co_await p.backend().accept();
    co_await its.head();
    const std::size_t size = std::size_t{32} << 20;
    co_await with_scope([&](scope& sending) -> task<void> {
        sending.spawn(send_much(its, size));
        co_await until([&] { return p->count().connections_now == 1; });
        co_await until([&] { return p->count().connections_now == 0; });
    });
    EXPECT_LT((co_await client.rest()).size(), size);
    co_await p.stop();
}

task<void> requests_are_logged(std::string type) {
    const auto line = [&](std::string format) -> task<std::string> {
        const temporary_folder folder;
        http_proxy p(type, {{"access_log", folder.file("log")}, {"access_format", format}});
        co_await p.start();
        text_peer client = co_await p.client();
        co_await p.forwarded(client);
        const std::string name = p.backend().name();
        co_await p.stop();
        std::string text = content(folder.file("log"));
        const std::size_t at = text.find(name);
        if (at != std::string::npos) text.replace(at, name.size(), "BACKEND");
        co_return text;
    };
    EXPECT_THAT(
        co_await line("common"),
        ::testing::MatchesRegex("127\\.0\\.0\\.1 - - \\[[^]]+\\] \"GET /a HTTP/1\\.1\" 200 2 "
                                "BACKEND 1 0\\.[0-9]+\n"));
    const json read = json::parse(co_await line("json"));
    EXPECT_EQ(read["upstream"], "BACKEND");
    EXPECT_EQ(read["tries"], 1);
    EXPECT_TRUE(read.contains("upstream_seconds"));
}

}  // namespace

void add_http_effects(effect_table& to) {
    constexpr auto kernel = seen_on::kernel;
    const effect_table all = {
        {{"proxy", "protocol"}, {the_protocol_decides_what_is_forwarded}},
        {{"proxy", "backup"}, {backups_wait_for_the_others}},
        {{"proxy", "drain-backend"}, {drained_backends_get_no_clients}},
        {{"proxy", "local-first"}, {members_elsewhere_are_backups}},
        {{"proxy", "hash-by"}, {keys_choose_backends, kernel}},
        {{"proxy", "health-check"}, {health_checks_take_backends_out}},
        {{"proxy", "health-path"}, {health_checks_take_backends_out}},
        {{"proxy", "health-status"}, {health_checks_take_backends_out}},
        {{"proxy", "health-host"}, {health_checks_take_backends_out}},
        {{"proxy", "health-interval"}, {results_in_a_row_count}},
        {{"proxy", "health-timeout"}, {checks_have_a_time}},
        {{"proxy", "health-fall"}, {results_in_a_row_count}},
        {{"proxy", "health-rise"}, {results_in_a_row_count}},
        {{"proxy", "eject-after"}, {failures_in_a_row_eject}},
        {{"proxy", "eject-slow"}, {slow_backends_are_ejected, seen_on::sim}},
        {{"proxy", "slow-start"}, {a_backend_that_comes_back_starts_slowly}},
        {{"proxy", "route"}, {routes_have_their_own_backends}},
        {{"proxy", "redirect"}, {routes_have_their_own_backends}},
        {{"proxy", "https-redirect"}, {plain_requests_are_redirected_to_https}},
        {{"proxy", "allow-connect"}, {connect_opens_a_tunnel_where_it_may}},
        {{"proxy", "sticky"}, {a_cookie_keeps_the_backend}},
        {{"proxy", "tries"}, {tries_are_limited}},
        {{"proxy", "forwarded"}, {fields_say_who_the_client_is}},
        {{"proxy", "trust"}, {fields_say_who_the_client_is}},
        {{"proxy", "host"}, {fields_say_who_the_client_is}},
        {{"proxy", "via"}, {fields_say_who_the_client_is}},
        {{"proxy", "request-field"}, {fields_say_who_the_client_is}},
        {{"proxy", "response-field"}, {fields_of_responses_are_set}},
        {{"proxy", "error-page"}, {files_answer_errors}},
        {{"proxy", "response-timeout"}, {backends_have_a_time_to_respond}},
        {{"proxy", "total-timeout"}, {the_whole_request_has_a_time}},
        {{"proxy", "buffer-requests"}, {uploads_wait_at_the_proxy}},
        {{"proxy", "buffer-responses"}, {slow_clients_keep_no_backend}},
        {{"proxy", "read-timeout"}, {pauses_of_a_response_are_limited}},
        {{"proxy", "max-backend-connections"}, {requests_wait_for_connections}},
        {{"proxy", "queue"}, {requests_wait_for_connections}},
        {{"proxy", "queue-timeout"}, {requests_wait_for_connections}},
        {{"proxy", "keep-timeout"}, {idle_connections_are_closed}},
        {{"proxy", "client-timeout"}, {idle_connections_are_closed}},
        {{"proxy", "max-header"}, {requests_are_limited}},
        {{"proxy", "max-fields"}, {requests_are_limited}},
        {{"proxy", "max-body"}, {requests_are_limited}},
        {{"proxy", "request-timeout"}, {requests_are_limited}},
        {{"proxy", "write-timeout"}, {clients_that_take_nothing_are_cut, kernel}},
        {{"proxy", "access-log"}, {requests_are_logged, kernel}},
        {{"proxy", "access-format"}, {requests_are_logged, kernel}},
    };
    to.insert(all.begin(), all.end());
}

}  // namespace eddy::runtime::proxy
