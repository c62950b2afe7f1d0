// Effects of a proxy's options, and which are refused.
#include "runtime/proxy/options.hpp"

#include <eddy/net/unix.hpp>
#include <eddy/shm/shm.hpp>

#include "net/dns_server.hpp"
#include "proxy/redis_fakes.hpp"
#include "runtime/keepalive_probe.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"
#include "runtime/proxy/http_options_test.hpp"
#include "runtime/proxy/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
namespace fakes = eddy::proxy::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto sim = seen_on::sim;
constexpr auto kernel = seen_on::kernel;

/// A line each way.
task<void> converse(talker& client, talker& backend) {
    co_await client.say("question\n");
    EXPECT_EQ(co_await backend.line(), "question");
    co_await backend.say("answer\n");
    EXPECT_EQ(co_await client.line(), "answer");
}

/// A client at `where` reaches the backend.
task<void> expect_served(endpoint where, backend_end& backend) {
    talker client = co_await talker::to(where);
    talker other = co_await backend.accept();
    co_await converse(client, other);
}

/// A proxy with these options, without any_port.
json alone(const backend_end& backend, json options) {
    options["backend"] = backend.address();
    return options;
}

task<void> the_port_and_its_address_are_served(std::string type) {
    const std::uint16_t port = backend_end().port();
    backend_end backend;
    subject s(type, alone(backend, {{"port", port}, {"bind", "127.0.0.2"}}));
    co_await s.start();
    EXPECT_EQ(s->local(), must(endpoint::ip("127.0.0.2", port)));
    co_await expect_served(s->local(), backend);
    co_await s->stop(0s);
}

task<void> a_unix_socket_is_served(std::string type) {
    const temporary_folder folder;
    backend_end backend;
    subject s(type, alone(backend, {{"unix", folder.file("socket")}}));
    co_await s.start();
    EXPECT_EQ(s->local().to_string(), folder.file("socket"));
    co_await expect_served(s->local(), backend);
    co_await s->stop(0s);
    EXPECT_FALSE(std::filesystem::exists(folder.file("socket")));
}

task<void> uris_are_served(std::string type) {
    const temporary_folder folder;
    backend_end backend;
    for (const std::string& uri : {"tcp://" + dead_address(), "unix://" + folder.file("socket")}) {
        subject s(type, alone(backend, {{"listen", uri}}));
        co_await s.start();
        EXPECT_TRUE(uri.ends_with(s->local().to_string())) << uri;
        co_await expect_served(s->local(), backend);
        co_await s->stop(0s);
    }
}

task<void> users_of_a_unix_socket_are_checked(std::string type) {
    backend_end backend;
    const json options =
        alone(backend, {{"unix", "@eddy-proxy-test-" + std::to_string(::getpid())}});
    subject s(type, options);
    co_await s.start();
    co_await expect_served(s->local(), backend);
    must_do(s->apply(s.parse(with({{"allow_users", std::to_string(::geteuid() + 1)}}, options))));
    talker refused = co_await talker::to(s->local());
    EXPECT_EQ(co_await refused.rest(), "");
    EXPECT_EQ(s->count().connections_refused, 1U);
    co_await s->stop(0s);
}

task<void> silent_peers_are_probed(std::string type) {
    backend_end numeric;
    backend_end named;
    const std::string by_name = "localhost:" + std::to_string(named.port());
    subject s(type, before({numeric.address(), by_name}));
    co_await s.start();
    const auto expect = [&](const std::vector<backend_end*>& backends, keepalive wanted) -> task<> {
        for (backend_end* const each : backends) {
            tunnel_ends ends = co_await through(s, *each);
            co_await converse(ends.client, ends.backend);  // so both are set up
            EXPECT_EQ(keepalive_between(s->local().port(), ends.client.socket.local().port()),
                      wanted);
            EXPECT_EQ(keepalive_between(ends.backend.socket.peer().port(), each->port()), wanted);
        }
    };
    co_await expect({&numeric, &named}, {1, 300, 100, 3});
    must_do(s->apply(s.parse(before({numeric.address(), by_name}, {{"tcp_keepalive", "60s"}}))));
    co_await expect({&numeric, &named}, {1, 60, 20, 3});
    co_await s->stop(0s);
}

// Serving by it is seen in tests/proxy_test.py, with real certificates.
task<void> tls_is_served_on_the_port(std::string type) {
    const auto address = [&](json more) -> std::string {
        json all = with({{"tls", true}, {"cert", "/c"}, {"backend", ":1"}});
        all.update(more);
        const subject s(type, all);
        return must_do(read_config(s.parse(all))).where.to_string();
    };
    EXPECT_THAT(address({{"key", "/k"}}),
                StartsWith("tls://127.0.0.1:0?cert=/c&key=/k&clients=no"));
    EXPECT_THAT(address({{"ca", "/a"}, {"client_auth", "optional"}}),
                StartsWith("tls://127.0.0.1:0?cert=/c&ca=/a&clients=optional"));
    const temporary_folder folder;
    const std::string none = folder.file("none.pem");
    subject s(type, with({{"tls", true}, {"cert", none}, {"backend", ":1"}}));
    EXPECT_THAT(co_await s.failure_to_start(), HasSubstr("--cert " + none + " cannot be read"));
}

task<void> shared_memory_is_served_beside_the_port(std::string type) {
    const temporary_folder folder;
    for (const json& more : {json::object(), json{{"shm_path", folder.file("s")}},
                             json{{"shm_path", folder.file("t")}, {"threads", 2}}}) {
        backend_end backend;
        json all = before({backend.address()}, {{"shm", true}});
        all.update(more);
        subject s(type, all);
        co_await s.start();
        const std::string at = all.contains("shm_path") ? all["shm_path"].get<std::string>()
                                                        : ":" + std::to_string(s->local().port());
        talker client(must(co_await shm::connect(at)));
        talker other = co_await backend.accept();
        co_await converse(client, other);
        must(client.socket.shutdown_write());
        EXPECT_EQ((co_await rest_of(other)).end, errc::end_of_stream);
        must(other.socket.shutdown_write());
        EXPECT_EQ((co_await rest_of(client)).end, errc::end_of_stream);
        talker stays(must(co_await shm::connect(at)));
        talker its_end = co_await backend.accept();
        co_await converse(stays, its_end);
        co_await s->stop(20ms);
        // The deadline cuts it.
        EXPECT_EQ((co_await rest_of(its_end)).end, std::errc::connection_reset);
    }
}

task<void> backends_have_addresses_of_several_kinds(std::string type) {
    const temporary_folder folder;
    {
        backend_end backend;
        const std::string port = std::to_string(backend.port());
        for (const std::string& text :
             {":" + port, "127.0.0.1:" + port, "localhost:" + port, "tcp://127.0.0.1:" + port}) {
            subject s(type, with({{"backend", text}}));
            co_await s.start();
            co_await expect_served(s->local(), backend);
            co_await s->stop(0s);
        }
    }
    for (const std::string& scheme : {std::string("unix"), std::string("shm")}) {
        const std::string uri = scheme + "://" + folder.file(scheme);
        listener at = must(transport::listen(uri));
        subject s(type, with({{"backend", uri}}));
        co_await s.start();
        talker client = co_await talker::to(s->local());
        talker other(must(co_await at.accept()));
        co_await converse(client, other);
        co_await s->stop(0s);
    }
}

task<void> the_strategy_chooses_backends(std::string type) {
    for (const bool by_count : {false, true}) {
        backend_end a;
        backend_end b;
        json options = before({a.address(), b.address()});
        subject s(type, options);
        co_await s.start();
        tunnel_ends stays = co_await through(s, a);
        {
            tunnel_ends leaves = co_await through(s, b);
        }
        co_await until([&] { return s->count().connections_now == 1; });
        if (by_count) options["strategy"] = "least-connections";
        must_do(s->apply(s.parse(options)));
        tunnel_ends third = co_await through(s, by_count ? b : a);
        co_await s->stop(0s);
    }
}

/// A listener whose queue is full answers nothing.
task<void> backends_have_a_time_to_answer(std::string type) {
    listen_options short_queue;
    short_queue.backlog = loop::current().kind() == io_backend_kind::sim ? 1 : 0;
    const listener full =
        must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)), short_queue));
    const stream in_queue = must(co_await loop::current().connect(full.local()));
    backend_end other;
    subject s(type,
              before({full.local().to_string(), other.address()}, {{"connect_timeout", "50ms"}}));
    co_await s.start();
    tunnel_ends t = co_await through(s, other);
    co_await converse(t.client, t.backend);
    EXPECT_EQ(by_backend(s, "backend_failures_total").at("tcp://" + full.local().to_string()), 1);
    co_await s->stop(0s);
}

task<void> idle_tunnels_are_closed(std::string type) {
    backend_end backend;
    subject s(type, before({backend.address()}, {{"idle_timeout", "50ms"}}));
    co_await s.start();
    tunnel_ends t = co_await through(s, backend);
    EXPECT_EQ(co_await t.client.rest(), "");
    EXPECT_EQ(co_await t.backend.rest(), "");
    co_await s->stop(0s);

    subject usual(type, before({backend.address()}));
    co_await usual.start();
    tunnel_ends idle = co_await through(usual, backend);
    const time_point begun = loop::current().now();
    EXPECT_EQ(co_await idle.client.rest(), "");
    EXPECT_GE(loop::current().now() - begun, 10min);
    EXPECT_LE(loop::current().now() - begun, 11min);
    co_await usual->stop(0s);
}

task<void> threads_share_the_clients(std::string type) {
    backend_end backend;
    subject s(type, before({backend.address()}, {{"threads", 2}}));
    co_await s.start();
    tunnel_ends first = co_await through(s, backend);
    tunnel_ends second = co_await through(s, backend);
    co_await converse(first.client, first.backend);
    co_await converse(second.client, second.backend);
    EXPECT_TRUE(s.events.has("2 threads serve its clients"));
    co_await s->stop(0s);
}

task<void> clients_are_limited(std::string type) {
    backend_end backend;
    json options = before({backend.address()}, {{"max_connections", 1}});
    subject s(type, options);
    co_await s.start();
    tunnel_ends t = co_await through(s, backend);
    EXPECT_EQ(co_await end_of_rejected(s), errno_code(ECONNRESET));
    options["max_connections"] = 2;
    must_do(s->apply(s.parse(options)));
    tunnel_ends third = co_await through(s, backend);
    co_await converse(third.client, third.backend);
    co_await s->stop(0s);
}

const std::string announcement = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";

task<void> clients_are_announced_to_it(std::string type) {
    for (const int threads : {1, 2}) {
        backend_end backend;
        json options =
            before({backend.address()}, {{"accept_proxy", "127.0.0.1"}, {"threads", threads}});
        subject s(type, options);
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say(announcement);
        talker other = co_await backend.accept();
        co_await converse(client, other);
        talker silent = co_await talker::to(s->local());
        co_await silent.say("no header, but many bytes\n");
        EXPECT_EQ(co_await silent.rest(), "");
        co_await until([&] {
            return s.events.has("a connection without a valid PROXY header was closed: from 127.");
        });
        options["accept_proxy"] = "10.0.0.1";
        must_do(s->apply(s.parse(options)));
        co_await expect_served(s->local(), backend);
        co_await s->stop(0s);
    }
}

task<void> it_announces_clients(std::string type) {
    backend_end backend;
    json options = before({backend.address()}, {{"send_proxy", "v1"}});
    subject s(type, options);
    co_await s.start();
    tunnel_ends t = co_await through(s, backend);
    EXPECT_EQ(co_await t.backend.line(), "PROXY TCP4 127.0.0.1 127.0.0.1 " +
                                             std::to_string(t.client.socket.local().port()) + " " +
                                             std::to_string(s->local().port()) + "\r");
    co_await converse(t.client, t.backend);
    options["send_proxy"] = "v2";
    must_do(s->apply(s.parse(options)));
    tunnel_ends binary = co_await through(s, backend);
    EXPECT_THAT(co_await binary.backend.bytes(28), StartsWith("\r\n\r\n"));
    co_await converse(binary.client, binary.backend);
    co_await s->stop(0s);
}

/// Two name servers that know different names.
task<void> names_are_looked_up_at_it(std::string type) {
    scope tasks(co_await current_source());
    {
        eddy::testing::dns_server one(tasks);
        eddy::testing::dns_server two(tasks);
        backend_end backend;
        two.records["api.test"] = {"127.0.0.1"};
        json options = with({{"backend", "api.test:" + std::to_string(backend.port())},
                             {"resolver", one.address()}});
        subject s(type, options);
        co_await s.start();
        EXPECT_TRUE(by_backend(s, "backend_up").empty());
        options["resolver"] = two.address();
        must_do(s->apply(s.parse(options)));
        co_await until([&] { return !by_backend(s, "backend_up").empty(); });
        co_await expect_served(s->local(), backend);
        co_await s->stop(0s);
        tasks.cancel();
        co_await tasks.join();
    }
}

task<void> sentinels_name_the_master(std::string type) {
    scope tasks(co_await current_source());
    {
        fakes::fake_cache a(tasks);
        fakes::fake_cache b(tasks);
        fakes::fake_sentinel one(tasks, a);
        fakes::fake_sentinel two(tasks, b);
        json options = with({{"backend", "@cache-master"}, {"sentinel", one.place()}});
        subject s(type, options);
        co_await s.start();
        EXPECT_EQ(by_backend(s, "backend_up").count("@cache-master/" + a.place()), 1U);
        options["sentinel"] = two.uri();
        must_do(s->apply(s.parse(options)));
        co_await until(
            [&] { return by_backend(s, "backend_up").contains("@cache-master/" + b.place()); });
        co_await s->stop(0s);
        tasks.cancel();
        co_await tasks.join();
    }
}

task<void> sentinels_get_the_password(std::string type) {
    scope tasks(co_await current_source());
    {
        fakes::fake_cache a(tasks);
        fakes::fake_sentinel one(tasks, a);
        one.password = "sesame";
        json options = with({{"backend", "@cache-master"},
                             {"sentinel", one.place()},
                             {"sentinel_password", "wrong"}});
        subject s(type, options);
        co_await s.start();
        EXPECT_TRUE(by_backend(s, "backend_up").empty());
        EXPECT_TRUE(s.events.has(one.uri() + " has refused the password: WRONGPASS"));
        options["sentinel_password"] = "sesame";
        must_do(s->apply(s.parse(options)));
        co_await until([&] { return !by_backend(s, "backend_up").empty(); });
        co_await s->stop(0s);
        tasks.cancel();
        co_await tasks.join();
    }
}

TEST(proxy_options, refusals_of_sentinels_give_the_reason) {
    const auto of = [](json options) {
        options["port"] = 7;
        const auto parsed = settings::parse(table_of(option_rows()), options);
        if (!parsed) return parsed.error().message;
        const auto read = read_config(*parsed);
        return read ? std::string() : read.error().message;
    };
    const auto at = [&](std::string sentinels, json more = json::object()) {
        if (!more.contains("backend")) more["backend"] = "@x-master";
        more["sentinel"] = std::move(sentinels);
        return of(std::move(more));
    };
    EXPECT_EQ(at("10.0.0.1:26379,tls://s.example:26380,:26379"), "");
    EXPECT_EQ(at(":1", {{"backend", "@a.b-c_9-master*3,:2"}}), "");
    EXPECT_EQ(at(":1", {{"backend", ":2"}, {"backup", "@x-master"}}), "");
    EXPECT_EQ(of({{"backend", "@x-master"}}), "") << "a group";
    EXPECT_THAT(at("10.0.0.1"), HasSubstr("--sentinel cannot be \"10.0.0.1\": write HOST:PORT"));
    EXPECT_THAT(at(":1,tcp://127.0.0.1:1"), HasSubstr("--sentinel names tcp://127.0.0.1:1 twice"));
    EXPECT_THAT(at("udp://10.0.0.1:1"), HasSubstr("udp:// has no connections"));
    EXPECT_THAT(at(":1", {{"backend", ":2"}}),
                HasSubstr("--sentinel has no effect without --backend @NAME-master"));
    EXPECT_THAT(at(":1", {{"backend", "@x"}}), HasSubstr("--sentinel has no effect"));
    EXPECT_THAT(at(":1", {{"backend", "@-master"}}), HasSubstr("write @NAME-master"));
    EXPECT_THAT(at(":1", {{"backend", "@a b-master"}}), HasSubstr("write @NAME-master"));
    EXPECT_THAT(of({{"backend", ":1"}, {"sentinel_password", "x"}}),
                HasSubstr("--sentinel-password has no effect without --sentinel"));
    EXPECT_THAT(at(":1", {{"protocol", "http"}}), HasSubstr("--sentinel is for --protocol tcp"));
    EXPECT_THAT(at(":1", {{"route", {"a.test=@x-master"}}}),
                HasSubstr("followed for --backend alone"));
    std::string many = ":1";
    for (std::size_t i = 1; i < eddy::proxy::max_sentinels; ++i)
        many += ",:" + std::to_string(i + 1);
    EXPECT_EQ(at(many), "");
    EXPECT_THAT(at(many + ",:99"), HasSubstr("--sentinel takes at most 16 addresses"));
    json of_udp = {{"listen", "udp://:7"}, {"backend", ":1"}, {"sentinel", ":1"}};
    const auto parsed = must_do(settings::parse(table_of(option_rows()), of_udp));
    EXPECT_THAT(read_config(parsed).error().message,
                HasSubstr("--sentinel has no effect with --listen udp://"));
}

TEST(proxy_options, refusals_give_the_reason) {
    const auto refusal = [](json options) {
        const auto parsed = settings::parse(table_of(option_rows()), options);
        if (!parsed) return parsed.error().message;
        const auto read = read_config(*parsed);
        return read ? std::string() : read.error().message;
    };
    const auto of = [&](std::string backends, json options = {{"port", 7}}) {
        options["backend"] = std::move(backends);
        return refusal(std::move(options));
    };
    EXPECT_EQ(of("10.0.0.1:5432"), "");
    EXPECT_EQ(of("10.0.0.1:7"), "");
    EXPECT_THAT(refusal({{"port", 7}}), HasSubstr("say where to by --backend HOST:PORT"));
    for (const char* const name : {"srv://a b", "srv://", "srv://_http._tcp.a.test*2"})
        EXPECT_THAT(of(name), HasSubstr("write the name of SRV records")) << name;
    EXPECT_EQ(of("srv://_http._tcp.a.test,a.test:1"), "");
    for (const char* const at :
         {"10.0.0.1", "10.0.0.1:5353", "2001:db8::1", "[2001:db8::1]:53,10.0.0.1"})
        EXPECT_EQ(of(":1", {{"port", 7}, {"resolver", at}}), "") << at;
    for (const char* const at : {"a.test", "*", "10.0.0.1:0", "10.0.0.1:99999", "[::1]"})
        EXPECT_THAT(of(":1", {{"port", 7}, {"resolver", at}}),
                    HasSubstr("write the address of a name server"))
            << at;
    EXPECT_THAT(of(":1", {{"port", 7}, {"resolver", "::1,::2,::3,::4,::5,::6,::7,::8,::9"}}),
                HasSubstr("at most 8 addresses"));
    EXPECT_EQ(of("here"), "") << "the name of a runtime";
    EXPECT_THAT(of(":1,,:2"), HasSubstr("--backend cannot be \"\""));
    EXPECT_THAT(of(":1,"), HasSubstr("--backend cannot be \"\""));
    EXPECT_THAT(of("udp://10.0.0.1:1"), HasSubstr("udp:// has no connections"));
    EXPECT_THAT(of("handoff:///run/x"), HasSubstr("handoff:// has no connections"));
    EXPECT_THAT(of("tcp://*:1"), HasSubstr("name the host"));
    EXPECT_THAT(of(":0"), HasSubstr("name the port"));
    EXPECT_THAT(of("tls://10.0.0.1:1?ca=ca.pem"), HasSubstr("ca.pem"));
    EXPECT_THAT(of(":1,tcp://127.0.0.1:1"), HasSubstr("names tcp://127.0.0.1:1 twice"));
    for (const char* const own : {":7", "localhost:7"})
        EXPECT_THAT(of(own), HasSubstr("is the proxy itself")) << own;
    EXPECT_EQ(of("tcp://[::1]:7"), "");
    for (const char* const own : {":7", "localhost:7", "tcp://[::1]:7"})
        EXPECT_THAT(of(own, {{"port", 7}, {"bind", "*"}}), HasSubstr("is the proxy itself")) << own;
    EXPECT_EQ(of(":7", {{"port", 7}, {"bind", "10.0.0.9"}}), "");
    EXPECT_THAT(of("10.0.0.9:7", {{"port", 7}, {"bind", "10.0.0.9"}}), HasSubstr("itself"));
    EXPECT_THAT(of("unix:///a", {{"unix", "/a"}}), HasSubstr("itself"));
    EXPECT_THAT(of("shm:///a", {{"port", 7}, {"shm", true}, {"shm_path", "/a"}}),
                HasSubstr("itself"));
    EXPECT_THAT(of(":1", {{"port", 7}, {"accept_proxy", "10.0.0.1/x"}}),
                HasSubstr("--accept-proxy: \"10.0.0.1/x\" is no network"));
    EXPECT_THAT(of(":1", {{"listen", "handoff:///s"}, {"accept_proxy", "unix"}}),
                HasSubstr("--accept-proxy has no effect with --listen handoff://"));
    EXPECT_THAT(of(":1", {{"port", 7}, {"protocol", "http"}, {"send_proxy", "v2"}}),
                HasSubstr("--send-proxy is for --protocol tcp"));
    const auto of_page = [&](json pages) {
        return of(":1", {{"port", 7}, {"protocol", "http"}, {"error_page", std::move(pages)}});
    };
    EXPECT_EQ(of_page({"502,503=/a=b.html", "400=/c"}), "");
    for (const char* const bad : {"502", "=/a", "502=", "502=a.html"})
        EXPECT_THAT(of_page({bad}), HasSubstr("write CODES=FILE")) << bad;
    for (const char* const bad : {"399=/a", "600=/a", "502,=/a", "5x2=/a", "-502=/a"})
        EXPECT_THAT(of_page({bad}), HasSubstr("is no status from 400 to 599")) << bad;
    EXPECT_THAT(of_page({"502=/a", "503,502=/b"}), HasSubstr("502 has two files"));
    json pages = json::array();
    for (std::size_t i = 0; i <= max_error_pages; ++i)
        pages.push_back(std::to_string(400 + i) + "=/a");
    EXPECT_THAT(of_page(pages), HasSubstr("at most 32"));
    pages.erase(0);
    EXPECT_EQ(of_page(pages), "");
    const auto of_udp = [&](std::string backends, json more = json::object()) {
        more["listen"] = "udp://:7";
        return of(std::move(backends), std::move(more));
    };
    EXPECT_EQ(of_udp(":1,10.0.0.1:53*2,udp://[::1]:7,name"), "");
    EXPECT_THAT(of_udp(":7"), HasSubstr("is the proxy itself"));
    EXPECT_THAT(of_udp("tcp://10.0.0.1:1"), HasSubstr("passes datagrams on; write HOST:PORT"));
    EXPECT_THAT(of_udp(":0"), HasSubstr("passes datagrams on"));
    EXPECT_THAT(of_udp(":1", {{"protocol", "http"}}), HasSubstr("needs a stream"));
    EXPECT_THAT(of_udp(":1", {{"threads", 2}}),
                HasSubstr("--threads has no effect with --listen udp://"));
    EXPECT_THAT(of_udp(":1", {{"accept_proxy", "unix"}}), HasSubstr("has no effect"));
    EXPECT_THAT(of_udp(":1", {{"send_proxy", "v1"}}), HasSubstr("has no effect"));
    EXPECT_THAT(of_udp(":1", {{"idle_timeout", 0}}), HasSubstr("cannot be 0"));
    const auto without = [&](json more) {
        more["port"] = 7;
        return of(":1", std::move(more));
    };
    EXPECT_THAT(without({{"health_path", "/x"}}),
                HasSubstr("--health-path has no effect without --health-check http"));
    EXPECT_THAT(without({{"health_check", "tcp"}, {"health_status", "204"}}),
                HasSubstr("--health-status has no effect without --health-check http"));
    EXPECT_THAT(without({{"health_rise", 3}}),
                HasSubstr("--health-rise has no effect without --health-check tcp or http"));
    EXPECT_EQ(without({{"health_check", "tcp"}, {"health_rise", 3}}), "");
    EXPECT_THAT(without({{"hash_by", "client"}}),
                HasSubstr("--hash-by has no effect without --strategy hash"));
    EXPECT_THAT(without({{"sticky", "a"}}), HasSubstr("--sticky has no effect without --protocol"));
    EXPECT_THAT(
        refusal({{"port", 7}, {"protocol", "http"}, {"route", {"/a=:1"}}, {"backup", ":2"}}),
        HasSubstr("--backup has no effect without --backend"));
    EXPECT_THAT(of("tls://10.0.0.1:1?name=a%20b"), HasSubstr("name= is the server's name"));
    const auto of_redirect = [&](std::string to) {
        return refusal({{"port", 7}, {"protocol", "http"}, {"redirect", {"/=" + to}}});
    };
    for (const char* const good : {"https://a.test", "http://a.test:81/x", "/x", "https://$host",
                                   "https://$host:8443/x", "http://[::1]:8", "https://www.$host"})
        EXPECT_EQ(of_redirect(good), "") << good;
    for (const char* const odd :
         {"", "a.test", "//a.test", "ftp://a.test", "https://", "https:///x", "https://a b",
          "https://u@a.test", "https://a:b", "https://a:65536", "https://:1", "javascript:x",
          "https://[::1", "/\\a.test"})
        EXPECT_THAT(of_redirect(odd), HasSubstr("write HOST/PATH=URL")) << odd;
    for (const char* const odd : {"https://a?b", "https://a#b", "/x?y", "https://$host$request_uri",
                                  "https://$hostname", "https://$host.$host", "https://$server"})
        EXPECT_THAT(of_redirect(odd), HasSubstr("without ? and #")) << odd;
    std::string many = ":1";
    for (std::size_t i = 1; i < eddy::proxy::max_backends; ++i)
        many += ",:" + std::to_string(i + 100);
    EXPECT_EQ(of(many), "");
    EXPECT_THAT(of(many + ",:5"), HasSubstr("at most 64 addresses"));
}

TEST(proxy_options, files_of_backends_are_checked_before_they_are_stored) {
    const temporary_folder folder;
    std::ofstream(folder.file("ca.pem")) << "-";
    const type& its = *find_type("proxy");
    const auto refusal = [&](json options) {
        options.update({{"port", 7}, {"protocol", "http"}});
        auto checked = its.check_files(must_do(settings::parse(its.options, options)));
        return checked ? std::string() : checked.error().message;
    };
    const std::string good = "tls://10.0.0.1:1?ca=" + folder.file("ca.pem");
    const std::string bad = "tls://10.0.0.1:1?ca=" + folder.file("none.pem");
    const std::string said = "ca " + folder.file("none.pem") + " cannot be read: No such file";
    EXPECT_EQ(refusal({{"backend", good}}), "");
    EXPECT_THAT(refusal({{"backend", ":1," + bad}}), HasSubstr("--backend tls://10.0.0.1:1?ca="));
    EXPECT_THAT(refusal({{"backend", ":1," + bad}}), HasSubstr(said));
    EXPECT_THAT(refusal({{"backend", ":1"}, {"backup", bad}}), HasSubstr(said));
    EXPECT_THAT(refusal({{"route", {"/a=" + bad}}}), HasSubstr(said));
    const json followed = {{"protocol", "tcp"}, {"backend", "@x-master"}, {"sentinel", bad}};
    const auto checked =
        its.check_files(must_do(settings::parse(its.options, with(followed, {{"port", 7}}))));
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("--sentinel tls://10.0.0.1:1?ca="));
}

TEST(proxy_options, each_is_read_into_its_member_and_changed_live) {
    const json before = {{"unix", "/s"}, {"backend", ":1"}};
    json http = before;
    http["protocol"] = "http";
    json logged = http;
    logged["access_log"] = "/l";
    json hashed = http;
    hashed["strategy"] = "hash";
    json checked = before;
    checked["health_check"] = "http";
    const json followed = {{"unix", "/s"}, {"backend", "@x-master"}, {"sentinel", ":1"}};
    const temporary_folder folder;
    std::ofstream(folder.file("a.lua")) << "count = 1";
    json scripted = http;
    scripted["lua"] = folder.file("a.lua");
    option_changes own = {{"backend", {before, {{"backend", ":1,:2"}}}},
                          {"backup", {before, {{"backup", ":2"}}}},
                          {"drain-backend", {before, {{"drain_backend", ":1"}}}},
                          {"hash-by", {hashed, {{"hash_by", "path"}}}},
                          {"resolver", {before, {{"resolver", "10.0.0.1"}}}},
                          {"sentinel", {followed, {{"sentinel", ":2,:3"}}}},
                          {"sentinel-password", {followed, {{"sentinel_password", "x"}}}},
                          {"health-path", {checked, {{"health_path", "/x"}}}},
                          {"health-status", {checked, {{"health_status", "204"}}}},
                          {"health-host", {checked, {{"health_host", "x"}}}},
                          {"route", {http, {{"route", {"/x=:2"}}}}},
                          {"redirect", {http, {{"redirect", {"/x=https://y"}}}}},
                          {"trust", {http, {{"trust", "10.0.0.0/8"}}}},
                          {"request-field", {http, {{"request_field", {"A: b"}}}}},
                          {"response-field", {http, {{"response_field", {"A: b"}}}}},
                          {"error-page", {http, {{"error_page", {"502,503=/x.html"}}}}},
                          {"lua", {http, {{"lua", folder.file("a.lua")}}}},
                          {"lua-path", {scripted, {{"lua_path", {"/a"}}}}},
                          {"lua-unsafe", {scripted, {{"lua_unsafe", true}}}},
                          {"lua-memory", {scripted, {{"lua_memory", "9M"}}}},
                          {"lua-slice", {scripted, {{"lua_slice", "9ms"}}}},
                          {"lua-time", {scripted, {{"lua_time", "9s"}}}},
                          {"lua-max-timers", {scripted, {{"lua_max_timers", 9}}}},
                          {"lua-max-sockets", {scripted, {{"lua_max_sockets", 9}}}},
                          {"lua-max-queue", {scripted, {{"lua_max_queue", 9}}}},
                          {"lua-admin", {scripted, {{"lua_admin", true}}}},
                          {"access-format", {logged, {{"access_format", "json"}}}},
                          {"allow-users", {before, {{"allow_users", "0"}}}},
                          {"accept-proxy", {before, {{"accept_proxy", "unix"}}}},
                          {"tcp-keepalive", {before, {{"tcp_keepalive", "9s"}}}}};
    for (const option& each : table_of(option_rows()))
        if (each.help.starts_with("http:") && !own.contains(each.name))
            own[each.name] = {http, {{option_key(each.name), other_value(each)}}};
    for (const option& each : table_of(option_rows()))
        if (each.name.starts_with("health-") && each.name != "health-check" &&
            !own.contains(each.name))
            own[each.name] = {checked, {{option_key(each.name), other_value(each)}}};
    check_reading(option_rows(), read_config, before, own);
    check_live(option_rows(), read_config, before, own);
}

}  // namespace
}  // namespace eddy::runtime::proxy

namespace eddy::runtime::testing {

effect_table proxy_effects() {
    using namespace proxy;
    effect_table all = {
        {{"proxy", "accept-proxy"}, {clients_are_announced_to_it}},
        {{"proxy", "send-proxy"}, {it_announces_clients}},
        {{"proxy", "port"}, {the_port_and_its_address_are_served}},
        {{"proxy", "bind"}, {the_port_and_its_address_are_served}},
        {{"proxy", "unix"}, {a_unix_socket_is_served}},
        {{"proxy", "listen"}, {uris_are_served}},
        {{"proxy", "allow-users"}, {users_of_a_unix_socket_are_checked}},
        {{"proxy", "tcp-keepalive"}, {silent_peers_are_probed, kernel}},
        {{"proxy", "tls"}, {tls_is_served_on_the_port}},
        {{"proxy", "cert"}, {tls_is_served_on_the_port}},
        {{"proxy", "key"}, {tls_is_served_on_the_port}},
        {{"proxy", "ca"}, {tls_is_served_on_the_port}},
        {{"proxy", "client-auth"}, {tls_is_served_on_the_port}},
        {{"proxy", "shm"}, {shared_memory_is_served_beside_the_port, kernel}},
        {{"proxy", "shm-path"}, {shared_memory_is_served_beside_the_port, kernel}},
        {{"proxy", "backend"}, {backends_have_addresses_of_several_kinds, kernel}},
        {{"proxy", "resolver"}, {names_are_looked_up_at_it, kernel}},
        {{"proxy", "sentinel"}, {sentinels_name_the_master}},
        {{"proxy", "sentinel-password"}, {sentinels_get_the_password}},
        {{"proxy", "strategy"}, {the_strategy_chooses_backends}},
        {{"proxy", "connect-timeout"}, {backends_have_a_time_to_answer}},
        {{"proxy", "idle-timeout"}, {idle_tunnels_are_closed, sim}},
        {{"proxy", "threads"}, {threads_share_the_clients, kernel}},
        {{"proxy", "max-connections"}, {clients_are_limited}},
    };
    add_http_effects(all);
    add_script_effects(all);
    return all;
}

}  // namespace eddy::runtime::testing
