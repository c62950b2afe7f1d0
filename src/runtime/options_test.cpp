// Tests of all options, so that none is accepted and ignored: each option of each type has a test
// here that observes its effect, and an option without one fails.
#include "runtime/cache/config/options.hpp"

#include <eddy/shm/shm.hpp>

#include "base/text/text.hpp"
#include "runtime/http/options.hpp"
#include "runtime/keepalive_probe.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"
#include "runtime/server/options.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_now;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_now > before; });
    co_return made;
}

std::uint16_t free_port() {
    return must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)))).local().port();
}

// --- Effects shared by the types --------------------------------------------------------------

task<void> port_is_served(std::string type) {
    const std::uint16_t port = free_port();
    subject s(type, {{"port", port}, {"bind", "127.0.0.1"}});
    co_await s.start();
    EXPECT_EQ(s->local().port(), port);
    talker client = co_await join(s);
    co_await s->stop(0s);
}

task<void> bind_chooses_the_address(std::string type) {
    // A listener on all addresses would find the port of this one taken.
    const listener other = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    subject s(type, {{"port", other.local().port()}, {"bind", "127.0.0.2"}});
    co_await s.start();
    EXPECT_EQ(s->local(), must(endpoint::ip("127.0.0.2", other.local().port())));
    co_await s->stop(0s);
}

task<void> unix_serves_on_a_path(std::string type) {
    temporary_folder folder;
    const std::string path = folder.file("socket");
    const neighbours both;
    subject s(type, {{"unix", path}}, "subject", both);
    co_await s.start();
    EXPECT_EQ(s->local().to_string(), path);
    talker client = co_await join(s);
    subject second(type, {{"unix", path}}, "second", both);
    EXPECT_THAT(co_await second.failure_to_start(),
                HasSubstr("the runtime subject serves on " + path));
    co_await s->stop(0s);
    EXPECT_FALSE(std::filesystem::exists(path));
    subject nowhere(type, {{"unix", folder.file("missing/socket")}});
    EXPECT_THAT(co_await nowhere.failure_to_start(), HasSubstr("there is no folder"));
}

task<void> users_of_a_unix_socket_are_checked(std::string type) {
    const std::string name = "@eddy-options-test-" + std::to_string(::getpid());
    const std::string other = std::to_string(::geteuid() + 1);
    {
        subject s(type, {{"unix", name}});
        co_await s.start();
        talker client = co_await join(s);
        // The change counts at once.
        must_do(s->apply(s.parse({{"unix", name}, {"allow_users", other}})));
        talker refused = co_await talker::to(s->local());
        EXPECT_EQ(co_await refused.rest(), "");
        EXPECT_EQ(s->count().connections_refused, 1U);
        EXPECT_EQ(s->count().connections_total, 1U);
        EXPECT_TRUE(s.events.has("the user " + std::to_string(::geteuid()) + " may not connect"));
        co_await s->stop(0s);
    }
    const temporary_folder folder;
    for (const int threads : {1, 2}) {
        subject s(type, {{"unix", folder.file("s")}, {"allow_users", other}, {"threads", threads}});
        co_await s.start();
        talker refused = co_await talker::to(s->local());
        EXPECT_EQ(co_await refused.rest(), "");
        must_do(s->apply(s.parse({{"unix", folder.file("s")}, {"threads", threads}})));
        talker client = co_await join(s);
        co_await s->stop(0s);
    }
    const auto refusal = [&](json options) {
        const auto* const of = find_type(type);
        const auto checked =
            of->check(must_do(settings::parse(of->options, with_root(type, options))));
        return checked ? std::string() : checked.error().message;
    };
    EXPECT_THAT(refusal({{"unix", name}, {"allow_users", "no-such-user"}}),
                HasSubstr("no user \"no-such-user\""));
    EXPECT_THAT(refusal(with({{"allow_users", "root"}})), HasSubstr("without a Unix socket"));
    EXPECT_THAT(refusal({{"listen", "handoff://" + name}, {"allow_users", "root"}}),
                HasSubstr("--listen handoff://PATH?allow=NUMBER"));
}

task<void> silent_peers_are_probed(std::string type) {
    for (const int threads : {1, 2}) {
        const json options = with({{"threads", threads}});
        subject s(type, options);
        co_await s.start();
        std::vector<talker> clients;  // stay, since join() counts
        const auto of_a_new_client = [&]() -> task<keepalive> {
            clients.push_back(co_await join(s));
            const std::uint16_t port = clients.back().socket.local().port();
            co_return keepalive_between(s->local().port(), port).value_or(keepalive());
        };
        EXPECT_EQ(co_await of_a_new_client(), (keepalive{1, 300, 100, 3}));
        must_do(s->apply(s.parse(with({{"tcp_keepalive", "59100ms"}}, options))));
        EXPECT_EQ(co_await of_a_new_client(), (keepalive{1, 60, 20, 3}));
        must_do(s->apply(s.parse(with({{"tcp_keepalive", 0}}, options))));
        EXPECT_EQ((co_await of_a_new_client()).on, 0);
        co_await s->stop(0s);
    }
}

task<void> proxies_announce_their_clients(std::string type) {
    const temporary_folder folder;
    for (const int threads : {1, 2}) {
        json options = with({{"accept_proxy", "127.0.0.1,unix"}, {"threads", threads}});
        if (type == "http") options["access_log"] = folder.file("log" + std::to_string(threads));
        if (type == "cache") options["protected_mode"] = "no";
        subject s(type, options);
        co_await s.start();
        talker announced = co_await talker::to(s->local());
        co_await announced.say("PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r\n");
        if (type == "http") {
            co_await announced.say("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            EXPECT_THAT(co_await announced.rest(), StartsWith("HTTP/1.1 "));
        }
        if (type == "cache") {
            co_await announced.say("CLIENT LIST\r\n");
            co_await line_of(announced);
            EXPECT_THAT(co_await line_of(announced),
                        HasSubstr(" addr=192.0.2.7:4711 laddr=198.51.100.1:80 "));
        }
        co_await until([&] { return s->count().connections_total == 1; });
        talker silent = co_await talker::to(s->local());
        co_await silent.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(co_await silent.rest(), "");
        co_await until([&] { return s->count().errors == 1; });
        co_await until([&] {
            return s.events.has("a connection without a valid PROXY header was closed: from 127.");
        });
        options["accept_proxy"] = "10.0.0.1";
        must_do(s->apply(s.parse(options)));
        talker client = co_await join(s);
        co_await s->stop(0s);
        if (type == "http") EXPECT_THAT(content(options["access_log"]), StartsWith("192.0.2.7 "));
    }
    const auto refusal = [&](json options) {
        const auto* const of = find_type(type);
        const auto checked =
            of->check(must_do(settings::parse(of->options, with_root(type, options))));
        return checked ? std::string() : checked.error().message;
    };
    EXPECT_THAT(refusal(with({{"accept_proxy", "10.0.0.1,x"}})),
                HasSubstr("--accept-proxy: \"x\" is no network"));
    EXPECT_THAT(refusal({{"listen", "handoff:///s"}, {"accept_proxy", "10.0.0.1"}}),
                HasSubstr("--accept-proxy has no effect with --listen handoff://"));
}

task<void> listen_takes_uris(std::string type) {
    temporary_folder folder;
    for (const std::string& uri : {std::string("tcp://127.0.0.1:") + std::to_string(free_port()),
                                   "unix://" + folder.file("s")}) {
        subject s(type, {{"listen", uri}});
        co_await s.start();
        EXPECT_TRUE(uri.ends_with(s->local().to_string())) << uri;
        talker client = co_await join(s);
        co_await s->stop(0s);
    }
}

task<void> connections_are_limited(std::string type) {
    subject s(type, with({{"max_connections", 1}}));
    co_await s.start();
    talker first = co_await join(s);
    talker second = co_await talker::to(s->local());
    EXPECT_THAT(co_await second.rest(),
                HasSubstr(type == "cache" ? "max number of clients" : "full"));
    EXPECT_EQ(s->count().connections_refused, 1U);
    must_do(s->apply(s.parse(with({{"max_connections", 2}}))));
    talker third = co_await join(s);
    co_await s->stop(0s);
}

task<void> threads_serve_clients(std::string type) {
    subject s(type, with({{"threads", 2}}));
    co_await s.start();
    talker client = co_await join(s);
    co_await client.say("CONFIG GET io-threads\r\n");
    EXPECT_EQ(co_await client.bytes(28), "*2\r\n$10\r\nio-threads\r\n$1\r\n2\r\n");
    const std::string size = co_await ask(client, "INFO stats");
    const std::string stats = co_await client.bytes(std::stoul(size.substr(1)));
    EXPECT_THAT(stats, HasSubstr("\r\nio_threaded_reads_processed:"));
    EXPECT_THAT(stats, Not(HasSubstr("\r\nio_threaded_reads_processed:0\r\n")));
    co_await s->stop(0s);
}

task<void> idle_clients_are_closed(std::string type) {
    subject s(type, with({{"idle_timeout", "50ms"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_EQ(co_await client.rest(), "");
    co_await s->stop(0s);
}

task<void> shared_memory_is_served_beside_the_port(std::string type) {
    const temporary_folder folder;
    for (const json& more : {json::object(), json{{"shm_path", folder.file("s")}},
                             json{{"shm_path", folder.file("t")}, {"threads", 2}}}) {
        json all = with({{"shm", true}});
        if (type == "http") all["root"] = folder.file("");
        all.update(more);
        subject s(type, all);
        co_await s.start();
        const std::string at = all.contains("shm_path") ? all["shm_path"].get<std::string>()
                                                        : ":" + std::to_string(s->local().port());
        stream client = must(co_await shm::connect(at));
        co_await until([&] { return s->count().connections_now == 1; });
        must(co_await client.write_all("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        if (type != "server") EXPECT_GT(must(co_await client.read()).size(), 0u);
        co_await s->stop(0s);
        while (co_await client.read()) {
        }
    }
}

// The service itself is tested in tests/serving_test.py, with real certificates.
task<void> tls_is_served_on_the_port(std::string type) {
    const auto address = [&](json more) -> std::string {
        json all = with({{"tls", true}, {"cert", "/c"}});
        all.update(more);
        const subject s(type, all);
        const settings chosen = s.parse(all);
        if (type == "http") return must_do(http::read_config(chosen)).where.to_string();
        return type == "server" ? must_do(server::read_config(chosen)).where.to_string()
                                : must_do(cache::read_config(chosen)).where.to_string();
    };
    EXPECT_THAT(address(json::object()), StartsWith("tls://127.0.0.1:0?cert=/c&clients=no"));
    EXPECT_THAT(address({{"key", "/k"}, {"ca", "/a"}}),
                StartsWith("tls://127.0.0.1:0?cert=/c&key=/k&ca=/a&clients=yes"));
    EXPECT_THAT(address({{"ca", "/a"}, {"client_auth", "optional"}}),
                StartsWith("tls://127.0.0.1:0?cert=/c&ca=/a&clients=optional"));
    // The message about a missing file names the option.
    const temporary_folder folder;
    const std::string none = folder.file("none.pem");
    subject s(type, with({{"tls", true}, {"cert", none}}));
    EXPECT_THAT(co_await s.failure_to_start(), HasSubstr("--cert " + none + " cannot be read"));
}

// --- The server's -----------------------------------------------------------------------------

task<void> threads_pass_messages_on(std::string type) {
    subject s(type, with({{"threads", 2}}));
    co_await s.start();
    talker a = co_await join(s);
    talker b = co_await join(s);
    co_await a.say("hello\n");
    EXPECT_EQ(co_await b.line(), "hello");
    EXPECT_TRUE(s.events.has("2 threads serve its clients"));
    co_await s->stop(0s);
}

task<void> udp_takes_datagrams(std::string type) {
    subject s(type, with({{"udp", true}}));
    co_await s.start();
    datagram peer = must(loop::current().bind_datagram(must(endpoint::ip("127.0.0.1", 0))));
    must(peer.send_to(as_bytes("x"), s->local()));
    co_await until([&] { return s->count().messages_in == 1; });
    co_await s->stop(0s);
}

task<void> mode_directs_messages(std::string type) {
    for (const std::string& mode : {std::string("inout"), std::string("in"), std::string("out")}) {
        subject s(type, with({{"mode", mode}}));
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await a.say("from a\n");
        co_await until([&] { return s->count().bytes_in == 7; });
        const auto sent = co_await s->send("sent");
        EXPECT_EQ(sent.has_value(), mode != "in");
        if (mode == "in") {
            EXPECT_TRUE(s.events.has("client 1: from a"));
            EXPECT_THAT(sent.error().message, HasSubstr("only receives"));
        } else {
            EXPECT_EQ(co_await a.line(), "sent");
        }
        co_await s->stop(1s);
        EXPECT_EQ(co_await b.rest(), mode == "inout" ? "from a\nsent\n"
                                     : mode == "in"  ? ""
                                                     : "sent\n");
        EXPECT_EQ(s->count().messages_in, mode == "out" ? 0U : 1U);
    }
}

task<void> framing_says_what_a_message_is(std::string type) {
    for (const bool raw : {false, true}) {
        subject s(type, with({{"framing", raw ? "raw" : "line"}}));
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await a.say("part");
        co_await until([&] { return s->count().bytes_in == 4; });
        EXPECT_EQ(s->count().messages_in, raw ? 1U : 0U);
        if (raw) EXPECT_EQ(co_await b.bytes(4), "part");
        EXPECT_EQ(must_do(co_await s->send("x")), 2U);
        EXPECT_EQ(co_await b.bytes(raw ? 1 : 2), raw ? "x" : "x\n");
        co_await s->stop(0s);
    }
}

task<void> files_are_served_beside_messages(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("index.html")) << "<p>a page";
    subject s(type, with({{"http", folder.path()}}));
    co_await s.start();
    talker raw = co_await join(s);
    talker browser = co_await join(s);
    co_await browser.say("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(co_await browser.rest(), HasSubstr("<p>a page"));
    must_do(co_await s->send("still lines"));
    EXPECT_EQ(co_await raw.line(), "still lines");
    co_await s->stop(0s);
    subject nowhere(type, with({{"http", folder.file("missing")}}));
    EXPECT_THAT(co_await nowhere.failure_to_start(), HasSubstr("cannot be served"));
}

task<void> requests_are_messages(std::string type) {
    for (const bool takes : {false, true}) {
        subject s(type, with({{"raw_http", takes}}));
        co_await s.start();
        talker raw = co_await join(s);
        talker browser = co_await join(s);
        co_await browser.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        if (takes)
            EXPECT_EQ(co_await raw.line(), "GET / HTTP/1.1\r");
        else
            EXPECT_THAT(co_await browser.rest(), StartsWith("HTTP/1.1 426 "));
        co_await s->stop(0s);
    }
}

task<void> origins_may_connect(std::string type) {
    for (const char* origins : {"", "http://a.example"}) {
        subject s(type, with({{"origins", origins}}));
        co_await s.start();
        talker page = co_await join(s);
        co_await page.say(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            "Origin: http://a.example\r\n\r\n");
        EXPECT_THAT(co_await page.line(),
                    StartsWith(*origins == '\0' ? "HTTP/1.1 403 " : "HTTP/1.1 101 "));
        co_await s->stop(0s);
    }
}

task<void> rates_are_limited(std::string option) {
    subject s("server", with({{option, 5}}));
    co_await s.start();
    talker a = co_await join(s);
    talker b = co_await join(s);
    const time_point before = loop::current().now();
    co_await a.say("1\n2\n3\n4\n5\n6\n");
    for (int i = 0; i < 6; ++i) co_await b.line();
    EXPECT_GE(loop::current().now() - before, 195ms);
    co_await s->stop(0s);
}
task<void> each_clients_rate_is_limited(std::string) { return rates_are_limited("rate_limit"); }
task<void> the_common_rate_is_limited(std::string) {
    return rates_are_limited("global_rate_limit");
}

task<void> lines_are_limited(std::string type) {
    subject s(type, with({{"max_line", 10}}));
    co_await s.start();
    talker a = co_await join(s);
    co_await a.say("12345678901\n");
    EXPECT_THAT(co_await a.rest(), HasSubstr("longer than 10B"));
    co_await s->stop(0s);
}

/// Sends until the client, which does not read, is disconnected or loses messages, or the senders
/// must wait.
task<std::string> fate_of_a_slow_reader(std::string policy, std::string queue, std::size_t& sent) {
    subject s("server", with({{"slow_reader", policy}, {"max_queue", queue}, {"framing", "raw"}}));
    co_await s.start();
    talker slow = co_await join(s);
    std::string fate;
    const std::string message(1024, 'x');
    for (sent = 0; fate.empty(); sent += message.size()) {
        const auto done = co_await s->send(message);
        co_await loop::current().yield();
        // A client that is disconnected is counted for a moment after its messages are dropped.
        if (s->count().dropped > 0) must(co_await loop::current().sleep_for(1s));
        if (!done)
            fate = "wait";
        else if (s->count().connections_now == 0)
            fate = "disconnect";
        else if (s->count().dropped > 0)
            fate = "drop-oldest";
    }
    co_await s->stop(0s);
    co_return fate;
}

task<void> slow_readers_meet_their_fate(std::string) {
    for (const std::string& policy :
         {std::string("wait"), std::string("drop-oldest"), std::string("disconnect")}) {
        std::size_t sent = 0;
        EXPECT_EQ(co_await fate_of_a_slow_reader(policy, "64k", sent), policy);
    }
}

task<void> a_longer_queue_holds_more(std::string) {
    std::size_t with_short = 0;
    std::size_t with_long = 0;
    co_await fate_of_a_slow_reader("disconnect", "64k", with_short);
    co_await fate_of_a_slow_reader("disconnect", "4M", with_long);
    EXPECT_GT(with_long, with_short + (3U << 20));
}

task<void> lines_are_appended_to_the_file(std::string type) {
    temporary_folder folder;
    const std::string path = folder.file("lines.log");
    std::ofstream(path) << "before\n";
    subject s(type, with({{"log", path}}));
    co_await s.start();
    talker a = co_await join(s);
    co_await a.say("one\ntwo\nunfinished");
    must(a.socket.shutdown_write());
    co_await a.rest();
    co_await s->stop(1s);
    EXPECT_EQ(content(path), "before\none\ntwo\nunfinished\n");
    subject nowhere(type, with({{"log", folder.file("missing/x.log")}}));
    EXPECT_THAT(co_await nowhere.failure_to_start(), HasSubstr("cannot append to the log "));
}

task<void> traffic_is_written_to_the_journal(std::string type) {
    subject s(type, with({{"log_traffic", true}}));
    co_await s.start();
    {
        talker a = co_await join(s);
        co_await a.say("one\r\nt\x1bwo\n");
        co_await until([&] { return s->count().messages_in == 2; });
    }
    co_await until([&] { return s->count().connections_now == 0; });
    s.events.lines.resize(std::max<std::size_t>(s.events.lines.size(), 4));
    EXPECT_THAT(s.events.lines[0], StartsWith("client 1 connected from 127.0.0.1:"));
    EXPECT_EQ(s.events.lines[1], "client 1: one");
    EXPECT_EQ(s.events.lines[2], "client 1: t\\x1bwo");
    EXPECT_EQ(s.events.lines[3], "client 1 left");
    co_await s->stop(0s);
    subject silent(type, with({{"log_traffic", false}}));
    co_await silent.start();
    talker a = co_await join(silent);
    co_await a.say("one\n");
    co_await until([&] { return silent->count().messages_in == 1; });
    EXPECT_FALSE(silent.events.has("client 1"));
    co_await silent->stop(0s);
}

// --- The cache's ------------------------------------------------------------------------------

task<void> mode_allows_or_refuses_writing(std::string type) {
    for (const std::string& mode :
         {std::string("readonly"), std::string("readwrite"), std::string("admin")}) {
        subject s(type, with({{"mode", mode}}));
        co_await s.start();
        talker client = co_await join(s);
        EXPECT_THAT(co_await ask(client, "SET k v"),
                    StartsWith(mode == "readonly" ? "-READONLY" : "+OK"));
        must_do(s->apply(s.parse(with({{"mode", "readwrite"}}))));
        EXPECT_EQ(co_await ask(client, "SET k v"), "+OK");
        co_await s->stop(0s);
    }
}

// The service itself is tested in tests/cache_guard_test.py, with real certificates.
task<void> tls_options_make_an_address(std::string type) {
    const json options = {{"tls_port", 7},
                          {"tls_cert_file", "/c"},
                          {"tls_key_file", "/k"},
                          {"tls_auth_clients", "optional"}};
    const auto uri = [&](const char* option, const char* path) {
        json all = with(options);
        all[option] = path;
        const subject s(type, all);
        return must_do(cache::read_config(s.parse(all))).secure->to_string();
    };
    EXPECT_EQ(uri("tls_ca_cert_file", "/a"),
              "tls://127.0.0.1:7?cert=/c&key=/k&ca=/a&clients=optional");
    EXPECT_EQ(uri("tls_ca_cert_dir", "/d"),
              "tls://127.0.0.1:7?cert=/c&key=/k&ca=/d&clients=optional");
    const auto more = [&](const char* option, const char* value) {
        json all = with(options);
        all["tls_ca_cert_file"] = "/a";
        all[option] = value;
        const subject s(type, all);
        const std::string made = must_do(cache::read_config(s.parse(all))).secure->to_string();
        return made.substr(std::min(made.find("optional") + 8, made.size()));
    };
    EXPECT_EQ(more("tls_protocols", "TLSv1.3"), "&min=1.3");
    EXPECT_EQ(more("tls_protocols", " tlsv1.2"), "&max=1.2");
    EXPECT_EQ(more("tls_protocols", "TLSv1.3 TLSv1.2"), "");
    EXPECT_EQ(more("tls_ciphers", "A:B"), "&ciphers=A:B");
    EXPECT_EQ(more("tls_ciphersuites", "C"), "&ciphersuites=C");
    EXPECT_EQ(more("tls_prefer_server_ciphers", "no"), "&prefer=client");
    EXPECT_EQ(more("tls_prefer_server_ciphers", "yes"), "");
    co_return;
}

task<void> the_master_is_reached_by_tls(std::string type) {
    subject master(type, with({}), "master");
    co_await master.start();
    subject replica(type,
                    with({{"replicate", "127.0.0.1:" + std::to_string(master->local().port())},
                          {"tls_replication", "yes"},
                          {"tls_ca_cert_file", "/nowhere/ca.pem"}}));
    co_await replica.start();
    co_await until([&] { return replica.events.has("by TLS (tls-replication)"); });
    EXPECT_TRUE(replica.events.has("/nowhere/ca.pem"));
    co_await master->stop(0s);
    co_await replica->stop(0s);
}

task<void> other_machines_are_refused(std::string type) {
    for (const char* const whether : {"yes", "no"}) {
        subject s(type, with({{"protected_mode", whether}}));
        co_await s.start();
        talker client = co_await join(s);
        EXPECT_EQ(co_await ask(client, "CONFIG GET protected-mode"), "*2");
        for (int i = 0; i < 3; ++i) (void)co_await client.line();
        EXPECT_EQ(co_await client.line(), std::string(whether) + "\r");
        co_await s->stop(0s);
        subject open(type, with({{"protected_mode", whether}, {"bind", "*"}}));
        co_await open.start();
        EXPECT_EQ(open.events.has("protected mode: clients of other machines are refused"),
                  whether == std::string_view("yes"));
        co_await open->stop(0s);
    }
}

task<void> users_come_from_the_file(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("users")) << "user default on >secret ~* &* +@all\n";
    subject s(type, with({{"aclfile", folder.file("users")}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "PING"), StartsWith("-NOAUTH"));
    EXPECT_EQ(co_await ask(client, "AUTH secret"), "+OK");
    co_await s->stop(0s);
}

task<void> parameters_are_set(std::string type) {
    subject s(type, with({{"config", "requirepass secret"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "PING"), StartsWith("-NOAUTH"));
    co_await s->stop(0s);
}

task<void> greedy_clients_are_closed(std::string type) {
    subject s(type, with({{"maxmemory_clients", "256k"}}));
    co_await s.start();
    talker client = co_await join(s);
    const std::string part = "*2\r\n$4\r\nECHO\r\n$2000000\r\n" + std::string(1'500'000, 'x');
    (void)co_await client.socket.write_all(part);
    EXPECT_EQ(co_await client.rest(), "");
    co_await s->stop(0s);
}

task<void> commands_have_other_names(std::string type) {
    subject s(type, with({{"rename_command", "PING=hello-there"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "PING"), StartsWith("-ERR unknown"));
    EXPECT_EQ(co_await ask(client, "HELLO-THERE"), "+PONG");
    co_await s->stop(0s);
}

task<void> clients_are_told_another_version(std::string type) {
    subject s(type, with({{"redis_version", "7.2.9"}}));
    co_await s.start();
    talker client = co_await join(s);
    co_await client.say("INFO server\r\n");
    for (const char* const expected : {"$", "# Server", "redis_version:7.2.9"})
        EXPECT_THAT(co_await line_of(client), StartsWith(expected));
    co_await s->stop(0s);
}

task<int> refused_of_2000(subject& s) {
    talker client = co_await join(s);
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
        if (!(co_await ask(client, "SET k" + std::to_string(i) + " " + std::string(1000, 'x')))
                 .starts_with("+OK"))
            ++refused;
    }
    co_return refused;
}

task<void> memory_is_limited(std::string type) {
    subject s(type, with({{"maxmemory", "1M"}}));
    co_await s.start();
    EXPECT_GT(co_await refused_of_2000(s), 500);
    co_await s->stop(0s);
}

task<void> eviction_makes_room(std::string type) {
    subject s(type, with({{"maxmemory", "1M"}}));
    co_await s.start();
    must_do(s->apply(s.parse(with({{"maxmemory", "1M"}, {"eviction", "allkeys-lru"}}))));
    EXPECT_EQ(co_await refused_of_2000(s), 0);
    co_await s->stop(0s);
    subject pointless(type, with({{"eviction", "allkeys-lru"}}));
    EXPECT_THAT(co_await pointless.failure_to_start(), HasSubstr("add --maxmemory"));
}

task<void> who_takes_nothing_is_closed(std::string type) {
    subject s(type, with({{"write_timeout", "50ms"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SETRANGE k 16777216 x"), StartsWith(":"));
    co_await client.say("GET k\r\n");
    co_await until([&] { return s->count().connections_now == 0; });
    co_await s->stop(0s);
}

task<void> replies_are_limited(std::string type) {
    subject s(type, with({{"max_queue", "1M"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SETRANGE k 2000000 x"), StartsWith(":"));
    co_await client.say("GET k\r\n");
    EXPECT_EQ(co_await client.rest(), "");
    co_await s->stop(0s);
}

task<void> keys_are_kept_in_the_folder(std::string type) {
    const temporary_folder folder;
    subject s(type, with({{"dir", folder.path()}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SET k v"), StartsWith("+OK"));
    co_await s->stop(1s);
    EXPECT_THAT(content(folder.file("dump.rdb")), StartsWith("REDIS"));
}

task<void> the_file_has_the_name(std::string type) {
    const temporary_folder folder;
    subject s(type, with({{"dir", folder.path()}, {"dbfilename", "mine"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SAVE"), StartsWith("+OK"));
    EXPECT_THAT(content(folder.file("mine")), StartsWith("REDIS"));
    co_await s->stop(1s);
}

task<void> it_saves_when_it_is_told_to(std::string type) {
    const temporary_folder folder;
    subject s(type, with({{"dir", folder.path()}, {"save", "5 2"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SET k v"), StartsWith("+OK"));
    static_cast<void>(co_await loop::current().sleep_for(20s));
    EXPECT_FALSE(s.events.has("saved"));
    EXPECT_THAT(co_await ask(client, "SET k w"), StartsWith("+OK"));
    co_await until([&] { return s.events.has("saved 1 keys"); });
    co_await s->stop(1s);
}

task<void> changes_are_appended(std::string type) {
    const temporary_folder folder;
    subject s(type, with({{"dir", folder.path()}, {"appendonly", "yes"}, {"save", "off"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SET k v"), StartsWith("+OK"));
    co_await s->stop(1s);
    EXPECT_THAT(content(folder.file("appendonlydir/appendonly.aof.1.incr.aof")),
                HasSubstr("SET\r\n$1\r\nk\r\n$1\r\nv\r\n"));
}

task<void> replies_wait_for_the_disk(std::string type) {
    const temporary_folder folder;
    subject s(type,
              with({{"dir", folder.path()}, {"appendonly", "yes"}, {"appendfsync", "always"}}));
    co_await s.start();
    talker client = co_await join(s);
    EXPECT_THAT(co_await ask(client, "SET k v"), StartsWith("+OK"));
    EXPECT_THAT(content(folder.file("appendonlydir/appendonly.aof.1.incr.aof")),
                HasSubstr("SET\r\n$1\r\nk\r\n$1\r\nv\r\n"));
    co_await s->stop(1s);
}

task<void> it_replicates(std::string type, json more, std::vector<std::string> before) {
    subject master(type, with({}), "master");
    co_await master.start();
    talker to_master = co_await join(master);
    before.emplace_back("CONFIG SET repl-diskless-sync-delay 0");
    before.emplace_back("SET k v");
    for (const std::string& each : before)
        EXPECT_THAT(co_await ask(to_master, each), StartsWith("+OK")) << each;
    more["replicate"] = "127.0.0.1:" + std::to_string(master->local().port());
    subject replica(type, with(more));
    co_await replica.start();
    talker client = co_await join(replica);
    while (!(co_await ask(client, "GET k")).starts_with("$1"))
        must(co_await loop::current().sleep_for(5ms));
    co_await master->stop(0s);
    co_await replica->stop(0s);
}

task<void> another_server_is_replicated(std::string type) { co_await it_replicates(type, {}, {}); }

task<void> it_logs_in_to_replicate(std::string type) {
    co_await it_replicates(type, {{"replicate_password", "secret"}},
                           {"CONFIG SET requirepass secret", "AUTH secret"});
}

task<void> it_logs_in_as_a_user_to_replicate(std::string type) {
    co_await it_replicates(type, {{"replicate_user", "copy"}, {"replicate_password", "secret"}},
                           {"ACL SETUSER copy on >secret +psync +replconf +ping",
                            "CONFIG SET requirepass other", "AUTH other"});
}

// --- The walk ---------------------------------------------------------------------------------

constexpr auto sim = seen_on::sim;
constexpr auto kernel = seen_on::kernel;

const effect_table own_effects = {
    {{"server", "port"}, {port_is_served}},
    {{"server", "bind"}, {bind_chooses_the_address}},
    {{"server", "unix"}, {unix_serves_on_a_path, kernel}},
    {{"server", "listen"}, {listen_takes_uris}},
    {{"server", "allow-users"}, {users_of_a_unix_socket_are_checked, kernel}},
    {{"server", "tcp-keepalive"}, {silent_peers_are_probed, kernel}},
    {{"server", "accept-proxy"}, {proxies_announce_their_clients}},
    {{"server", "udp"}, {udp_takes_datagrams}},
    {{"server", "mode"}, {mode_directs_messages}},
    {{"server", "framing"}, {framing_says_what_a_message_is}},
    {{"server", "http"}, {files_are_served_beside_messages}},
    {{"server", "raw-http"}, {requests_are_messages}},
    {{"server", "origins"}, {origins_may_connect}},
    {{"server", "max-connections"}, {connections_are_limited}},
    {{"server", "rate-limit"}, {each_clients_rate_is_limited}},
    {{"server", "global-rate-limit"}, {the_common_rate_is_limited}},
    {{"server", "idle-timeout"}, {idle_clients_are_closed}},
    {{"server", "max-line"}, {lines_are_limited}},
    {{"server", "slow-reader"}, {slow_readers_meet_their_fate, sim}},
    {{"server", "max-queue"}, {a_longer_queue_holds_more}},
    {{"server", "log"}, {lines_are_appended_to_the_file}},
    {{"server", "threads"}, {threads_pass_messages_on, kernel}},
    {{"server", "tls"}, {tls_is_served_on_the_port}},
    {{"server", "cert"}, {tls_is_served_on_the_port}},
    {{"server", "key"}, {tls_is_served_on_the_port}},
    {{"server", "ca"}, {tls_is_served_on_the_port}},
    {{"server", "client-auth"}, {tls_is_served_on_the_port}},
    {{"server", "shm"}, {shared_memory_is_served_beside_the_port, kernel}},
    {{"server", "shm-path"}, {shared_memory_is_served_beside_the_port, kernel}},
    {{"server", "log-traffic"}, {traffic_is_written_to_the_journal}},
    {{"cache", "port"}, {port_is_served}},
    {{"cache", "bind"}, {bind_chooses_the_address}},
    {{"cache", "unix"}, {unix_serves_on_a_path, kernel}},
    {{"cache", "listen"}, {listen_takes_uris}},
    {{"cache", "allow-users"}, {users_of_a_unix_socket_are_checked, kernel}},
    {{"cache", "mode"}, {mode_allows_or_refuses_writing}},
    {{"cache", "maxmemory"}, {memory_is_limited}},
    {{"cache", "eviction"}, {eviction_makes_room}},
    {{"cache", "dir"}, {keys_are_kept_in_the_folder}},
    {{"cache", "dbfilename"}, {the_file_has_the_name}},
    {{"cache", "appendonly"}, {changes_are_appended}},
    {{"cache", "appendfsync"}, {replies_wait_for_the_disk}},
    {{"cache", "save"}, {it_saves_when_it_is_told_to, sim}},
    {{"cache", "replicate"}, {another_server_is_replicated}},
    {{"cache", "replicate-password"}, {it_logs_in_to_replicate}},
    {{"cache", "replicate-user"}, {it_logs_in_as_a_user_to_replicate}},
    {{"cache", "threads"}, {threads_serve_clients, kernel}},
    {{"cache", "accept-proxy"}, {proxies_announce_their_clients}},
    {{"cache", "max-connections"}, {connections_are_limited}},
    {{"cache", "idle-timeout"}, {idle_clients_are_closed}},
    {{"cache", "write-timeout"}, {who_takes_nothing_is_closed}},
    {{"cache", "max-queue"}, {replies_are_limited}},
    {{"cache", "tls"}, {tls_is_served_on_the_port}},
    {{"cache", "cert"}, {tls_is_served_on_the_port}},
    {{"cache", "key"}, {tls_is_served_on_the_port}},
    {{"cache", "ca"}, {tls_is_served_on_the_port}},
    {{"cache", "client-auth"}, {tls_is_served_on_the_port}},
    {{"cache", "shm"}, {shared_memory_is_served_beside_the_port, kernel}},
    {{"cache", "shm-path"}, {shared_memory_is_served_beside_the_port, kernel}},
    {{"cache", "tls-port"}, {tls_options_make_an_address}},
    {{"cache", "tls-cert-file"}, {tls_options_make_an_address}},
    {{"cache", "tls-key-file"}, {tls_options_make_an_address}},
    {{"cache", "tls-ca-cert-file"}, {tls_options_make_an_address}},
    {{"cache", "tls-ca-cert-dir"}, {tls_options_make_an_address}},
    {{"cache", "tls-auth-clients"}, {tls_options_make_an_address}},
    {{"cache", "tls-protocols"}, {tls_options_make_an_address}},
    {{"cache", "tls-ciphers"}, {tls_options_make_an_address}},
    {{"cache", "tls-ciphersuites"}, {tls_options_make_an_address}},
    {{"cache", "tls-prefer-server-ciphers"}, {tls_options_make_an_address}},
    {{"cache", "tls-replication"}, {the_master_is_reached_by_tls}},
    {{"cache", "protected-mode"}, {other_machines_are_refused}},
    {{"cache", "aclfile"}, {users_come_from_the_file}},
    {{"cache", "config"}, {parameters_are_set}},
    {{"cache", "maxmemory-clients"}, {greedy_clients_are_closed}},
    {{"cache", "rename-command"}, {commands_have_other_names}},
    {{"cache", "redis-version"}, {clients_are_told_another_version}},
    {{"http", "port"}, {port_is_served}},
    {{"http", "bind"}, {bind_chooses_the_address}},
    {{"http", "unix"}, {unix_serves_on_a_path, kernel}},
    {{"http", "listen"}, {listen_takes_uris}},
    {{"http", "allow-users"}, {users_of_a_unix_socket_are_checked, kernel}},
    {{"http", "tcp-keepalive"}, {silent_peers_are_probed, kernel}},
    {{"http", "accept-proxy"}, {proxies_announce_their_clients}},
    {{"http", "max-connections"}, {connections_are_limited}},
    {{"http", "idle-timeout"}, {idle_clients_are_closed}},
    {{"http", "tls"}, {tls_is_served_on_the_port}},
    {{"http", "cert"}, {tls_is_served_on_the_port}},
    {{"http", "key"}, {tls_is_served_on_the_port}},
    {{"http", "ca"}, {tls_is_served_on_the_port}},
    {{"http", "client-auth"}, {tls_is_served_on_the_port}},
    {{"http", "shm"}, {shared_memory_is_served_beside_the_port, kernel}},
    {{"http", "shm-path"}, {shared_memory_is_served_beside_the_port, kernel}},
};

/// With those of the types whose tests stand elsewhere.
const effect_table& effects() {
    static const effect_table all = [] {
        effect_table joined = http_effects();
        joined.merge(client_effects());
        joined.merge(client_script_effects());
        joined.merge(external_effects());
        joined.merge(hook_effects());
        joined.merge(mode_effects());
        joined.merge(program_effects());
        joined.merge(proxy_effects());
        joined.merge(stream_effects());
        joined.merge(script_effects());
        joined.insert(own_effects.begin(), own_effects.end());
        return joined;
    }();
    return all;
}

struct named_option {
    std::string_view type;
    std::string_view name;
    io_backend_kind on;
};

std::vector<io_backend_kind> backends_of(seen_on chosen) {
    switch (chosen) {
        case seen_on::every_backend:
            return {io_backend_kind::uring, io_backend_kind::epoll, io_backend_kind::sim};
        case seen_on::kernel: return {io_backend_kind::uring, io_backend_kind::epoll};
        case seen_on::sim: return {io_backend_kind::sim};
    }
    return {};
}

/// An option without an effect is there once, and its test fails.
std::vector<named_option> every_option() {
    std::vector<named_option> all;
    for (const type& t : types()) {
        for (const option& o : t.options) {
            const auto found = effects().find({t.name, o.name});
            const seen_on on = found == effects().end() ? seen_on::sim : found->second.on;
            for (const io_backend_kind kind : backends_of(on))
                all.push_back({t.name, o.name, kind});
        }
    }
    return all;
}

class every_option_has_its_effect : public ::testing::TestWithParam<named_option> {};

TEST_P(every_option_has_its_effect, seen) {
    const auto [type, name, on] = GetParam();
    const auto found = effects().find({type, name});
    ASSERT_NE(found, effects().end()) << "no test shows the effect of --" << name << " of " << type
                                      << ": add one to `own_effects`, or to a table of the type";
    loop_options options = eddy::testing::with_environment({});
    options.kind = on;
    options.sim.seed = eddy::testing::seed_of_this_run();
    const auto made = loop::create(options);
    if (!made && on == io_backend_kind::uring)
        GTEST_SKIP() << "io_uring is refused here: " << made.error().message();
    ASSERT_TRUE(made) << made.error().message();
    try {
        (*made)->run(found->second.seen(std::string(type)));
    } catch (const std::exception& failure) {
        ADD_FAILURE() << failure.what();
    }
}

INSTANTIATE_TEST_SUITE_P(runtime, every_option_has_its_effect, ::testing::ValuesIn(every_option()),
                         [](const auto& info) {
                             std::string name = std::string(info.param.type) + "_" +
                                                std::string(info.param.name) + "_" +
                                                std::string(to_string(info.param.on));
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(options, every_effect_is_of_an_option_that_exists) {
    for (const auto& [key, test] : effects()) {
        const type* t = find_type(key.first);
        ASSERT_TRUE(t) << key.first;
        EXPECT_TRUE(std::any_of(t->options.begin(), t->options.end(), [&](const option& o) {
            return o.name == key.second;
        })) << key.second;
    }
}

TEST(options, each_of_a_server_is_read_into_its_member_and_changed_live) {
    const json before = {{"unix", "/s"}};
    const temporary_folder folder;
    for (const char* const name : {"a", "b"}) std::ofstream(folder.file(name)) << name;
    const json master = {{"unix", "/s"}, {"mode", "master"}, {"master_password", "a"}};
    const json with_files = {{"unix", "/s"}, {"http", "/"}};
    const json by_file = {
        {"unix", "/s"}, {"mode", "master"}, {"master_password_file", folder.file("a")}};
    std::ofstream(folder.file("a.lua")) << "count = 1";
    const json scripted = {{"unix", "/s"}, {"lua", folder.file("a.lua")}};
    const option_changes own = {
        {"lua", {before, {{"lua", folder.file("a.lua")}}}},
        {"lua-path", {scripted, {{"lua_path", {"/a"}}}}},
        {"lua-unsafe", {scripted, {{"lua_unsafe", true}}}},
        {"lua-memory", {scripted, {{"lua_memory", "9M"}}}},
        {"lua-slice", {scripted, {{"lua_slice", "9ms"}}}},
        {"lua-time", {scripted, {{"lua_time", "9s"}}}},
        {"lua-max-timers", {scripted, {{"lua_max_timers", 9}}}},
        {"lua-max-sockets", {scripted, {{"lua_max_sockets", 9}}}},
        {"lua-max-queue", {scripted, {{"lua_max_queue", 9}}}},
        {"lua-body", {scripted, {{"lua_body", "9M"}}}},
        {"lua-admin", {scripted, {{"lua_admin", true}}}},
        {"mode", {before, {{"mode", "out"}}}},
        {"upstream", {before, {{"upstream", {":1"}}}}},
        {"http-inject", {with_files, {{"http_inject", true}}}},
        {"http-cache", {with_files, {{"http_cache", true}}}},
        {"master-password", {master, {{"master_password", "b"}}}},
        {"master-password-file", {by_file, {{"master_password_file", folder.file("b")}}}},
        {"master-forward", {master, {{"master_forward", true}}}},
        {"allow-users", {before, {{"allow_users", "0"}}}},
        {"tcp-keepalive", {before, {{"tcp_keepalive", "9s"}}}},
        {"accept-proxy", {before, {{"accept_proxy", "unix"}}}},
        {"origins", {before, {{"origins", "*"}}}},
        {"max-queue", {before, {{"max_queue", "2M"}}}}};
    check_reading(server::option_rows(), server::read_config, before, own);
    check_live(server::option_rows(), server::read_config, before, own);
}

TEST(options, each_of_a_cache_is_read_into_its_member) {
    const json before = {{"unix", "/s"}};
    const json kept = {{"unix", "/s"}, {"dir", "/d"}};
    const json limited = {{"unix", "/s"}, {"maxmemory", "1M"}};
    option_changes own = {{"allow-users", {before, {{"allow_users", "0"}}}},
                          {"dir", {kept, {{"dir", "/e"}}}},
                          {"eviction", {limited, {{"eviction", "allkeys-lru"}}}},
                          {"rename-command", {before, {{"rename_command", "FLUSHALL=wipe"}}}},
                          {"redis-version", {before, {{"redis_version", "7.2.9"}}}},
                          {"accept-proxy", {before, {{"accept_proxy", "unix"}}}},
                          {"dbfilename", {kept, {{"dbfilename", "other"}}}},
                          {"save", {kept, {{"save", "1 2"}}}},
                          {"appendonly", {kept, {{"appendonly", "yes"}}}},
                          {"appendfsync", {kept, {{"appendfsync", "always"}}}}};
    const json hooked = {{"unix", "/s"}, {"hooks", "/h"}};
    for (const auto& each : cache::option_rows()) {
        const option& its = each.row();
        if (its.name.starts_with("hook-"))
            own[its.name] = {hooked, {{option_key(its.name), other_value(its)}}};
    }
    check_reading(cache::option_rows(), cache::read_config, before, own);
}

TEST(options, what_listens_serves_this_machine_alone_by_default) {
    std::size_t count = 0;
    for (const type& t : types()) {
        for (const option& o : t.options) {
            if (o.name != "bind") continue;
            ++count;
            EXPECT_EQ(o.default_value, "127.0.0.1") << t.name;
            EXPECT_NE(o.help.find("* for all"), std::string_view::npos) << t.name;
        }
    }
    EXPECT_GE(count, 4U);
}

TEST(options, threads_are_1_to_64) {
    std::size_t count = 0;
    for (const type& t : types()) {
        for (const option& o : t.options) {
            if (o.name != "threads") continue;
            ++count;
            for (const int valid : {1, 64})
                EXPECT_TRUE(settings::parse(t.options, {{"threads", valid}})) << t.name;
            for (const int wrong : {-1, 0, 65})
                EXPECT_FALSE(settings::parse(t.options, {{"threads", wrong}})) << t.name;
        }
    }
    EXPECT_GE(count, 4U);
}

TEST(options, the_tables_are_sound) {
    for (const type& t : types()) {
        EXPECT_EQ(find_type(t.name), &t);
        EXPECT_FALSE(t.summary.empty());
        std::string letters;
        std::vector<std::string_view> names;
        for (const option& o : t.options) {
            EXPECT_EQ(std::count(names.begin(), names.end(), o.name), 0) << o.name;
            names.push_back(o.name);
            if (o.letter) {
                EXPECT_EQ(letters.find(o.letter), std::string::npos) << o.letter;
                letters += o.letter;
            }
            EXPECT_GE(o.help.size(), 10U) << o.name;
            EXPECT_EQ(o.kind == option_kind::choice, !o.choices.empty()) << o.name;
            EXPECT_EQ(o.kind == option_kind::flag, o.value_name.empty()) << o.name;
        }
        for (const option& o : t.options)
            for (const foreign_name& each : o.foreign_names) {
                EXPECT_EQ(std::count(names.begin(), names.end(), each.name), 0) << each.name;
                EXPECT_TRUE(each.instead.starts_with("--" + std::string(o.name))) << each.name;
            }
        // Every default is a valid value.
        EXPECT_TRUE(settings::parse(t.options, json::object())) << t.name;
    }
    EXPECT_EQ(find_type("servr"), nullptr);
}

struct refused_combination {
    std::string_view type;
    json options;
    std::string_view told;
};

TEST(options, what_contradicts_itself_is_refused_with_the_reason) {
    const std::vector<refused_combination> cases = {
        {"server", json::object(), "give an address to serve on"},
        {"cache", json::object(), "give an address to serve on"},
        {"server", {{"port", 1}, {"unix", "/x"}}, "--unix and --port exclude each other"},
        {"server", {{"bind", "::1"}, {"unix", "/x"}}, "--unix and --bind exclude each other"},
        {"server", {{"port", 1}, {"listen", "tcp://:1"}}, "--listen and --port exclude each other"},
        {"server",
         {{"udp", true}, {"listen", "tcp://:1"}},
         "--udp and --listen exclude each other"},
        {"server", {{"udp", true}, {"unix", "/x"}}, "--udp needs --port"},
        {"server", {{"unix", "/" + std::string(107, 'x')}}, "at most 107 bytes"},
        {"server", {{"listen", "nonsense"}}, "--listen: "},
        {"server", {{"port", 1}, {"bind", "here"}}, "\"here\" is no address to serve on"},
        {"server", {{"port", 1}, {"bind", ""}}, "--bind needs an address"},
        {"cache", {{"port", 1}, {"bind", ""}}, "--bind needs an address"},
        {"server",
         {{"port", 1}, {"udp", true}, {"framing", "raw"}},
         "--framing has no effect with UDP"},
        {"server",
         {{"port", 1}, {"udp", true}, {"max_line", 9}},
         "--max-line has no effect with UDP: a datagram is a message by itself; leave it out, or "
         "take it back with --unset max-line"},
        {"server",
         {{"port", 1}, {"udp", true}, {"slow_reader", "wait"}},
         "--slow-reader has no effect"},
        {"server",
         {{"listen", "udp://:1"}, {"max_queue", "1M"}},
         "--max-queue has no effect with UDP"},
        {"server",
         {{"port", 1}, {"mode", "out"}, {"log", "/x"}},
         "--log has no effect with --mode out"},
        {"server", {{"port", 1}, {"mode", "out"}, {"rate_limit", 5}}, "--rate-limit has no effect"},
        {"server", {{"port", 1}, {"mode", "in"}, {"max_queue", "1M"}}, "--max-queue has no effect"},
        {"server",
         {{"port", 1}, {"mode", "in"}, {"log_traffic", true}},
         "go to the journal anyway"},
        {"server", {{"port", 1}, {"framing", "raw"}, {"max_line", 9}}, "there are no lines"},
        {"server",
         {{"port", 1}, {"http", "/"}, {"raw_http", true}},
         "--http and --raw-http exclude each other"},
        {"server",
         {{"port", 1}, {"raw_http", true}, {"origins", "*"}},
         "--origins has no effect with --raw-http"},
        {"server",
         {{"port", 1}, {"origins", "https://a.example,b.example"}},
         "\"b.example\" is no origin"},
        {"server", {{"port", 1}, {"origins", "https://a.example/"}}, "write a scheme and a host"},
        {"server", {{"port", 1}, {"origins", "https://*.example"}}, "write a scheme and a host"},
        {"server",
         {{"listen", "udp://:1"}, {"raw_http", true}},
         "--raw-http has no effect with UDP"},
        {"server", {{"port", 1}, {"max_queue", "64k"}}, "--max-queue 64k is too small for lines"},
        {"server", {{"port", 1}, {"lua_time", "1s"}}, "--lua-time has no effect without --lua"},
        {"server", {{"port", 1}, {"lua", "here"}}, "write the whole path, from /"},
        {"cache", {{"port", 1}, {"eviction", "allkeys-lru"}}, "add --maxmemory"},
        {"cache", {{"listen", "udp://:1"}}, "a cache cannot serve udp://"},
        {"cache", {{"port", 1}, {"appendonly", "yes"}}, "without --dir FOLDER"},
        {"cache",
         {{"tls_port", 1},
          {"tls_cert_file", "/c"},
          {"tls_ca_cert_file", "/a"},
          {"tls_ca_cert_dir", "/d"}},
         "exclude each other"},
        {"cache", {{"port", 1}, {"replicate", "nowhere"}}, "HOST:PORT"},
        {"cache", {{"port", 1}, {"replicate_user", "me"}}, "without --replicate"},
        {"http", {{"port", 1}}, "say which by --root DIR"},
        {"http", {{"port", 1}, {"root", "here"}}, "write the whole path, from /"},
        {"http", {{"listen", "udp://:1"}, {"root", "/"}}, "HTTP needs a stream"},
        {"http", {{"port", 1}, {"root", "/r"}, {"spa", "../x"}}, "names no file below --root"},
        {"http", {{"port", 1}, {"root", "/r"}, {"spa", "a/"}}, "names no file below --root"},
        {"http", {{"port", 1}, {"root", "/r"}, {"index", "/"}}, "names no file below --root"},
        {"http",
         {{"port", 1}, {"root", "/"}, {"access_format", "json"}},
         "has no effect without --access-log"},
    };
    for (const auto& [name, options, told] : cases) {
        const type& t = *find_type(name);
        const auto parsed = settings::parse(t.options, options);
        ASSERT_TRUE(parsed) << options << parsed.error().message;
        const auto checked = t.check(*parsed);
        ASSERT_FALSE(checked) << options;
        EXPECT_EQ(checked.error().status, 400);
        EXPECT_THAT(checked.error().message, HasSubstr(told)) << options;
    }
    const type& server = *find_type("server");
    const auto good =
        settings::parse(server.options, {{"port", 1}, {"max_line", "32767"}, {"max_queue", "64k"}});
    EXPECT_TRUE(server.check(*good));
}

}  // namespace
}  // namespace eddy::runtime
