// Effects of a client's options, and values that are refused.
#include "runtime/client/options.hpp"

#include "runtime/client/testing.hpp"
#include "runtime/keepalive_probe.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

namespace eddy::runtime::client {
namespace {

using namespace client::testing;
using ::testing::HasSubstr;

constexpr auto kernel = seen_on::kernel;

task<void> lines_go_both_ways(std::string type) {
    listener server = any_server();
    subject client(type, to(server));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("one\ntw");
    co_await peer.say("o\x1b\r\nthree");
    co_await until([&] { return client.events.has("received: two\\x1b"); });
    EXPECT_EQ(must_do(co_await client->send("hello")), 1U);
    EXPECT_EQ(must_do(co_await client->send("a\nb\n")), 1U);
    EXPECT_EQ(co_await peer.bytes(10), "hello\na\nb\n");
    co_await until([&] { return client->count().messages_out == 3U; });
    const metrics counted = client->count();
    EXPECT_EQ(counted.connections_now, 1U);
    EXPECT_EQ(counted.messages_in, 2U);
    EXPECT_EQ(counted.bytes_out, 10U);
    must(peer.socket.shutdown_write());
    co_await until([&] { return client.events.has("received: three"); });
    EXPECT_EQ(co_await peer.rest(), "");
    EXPECT_EQ(client->count().errors, 0U);
    co_await client->stop(1h);
    EXPECT_EQ((co_await client->send("late")).error().status, 409);
}

task<void> long_lines_are_cut(std::string type) {
    listener server = any_server();
    subject client(type, to(server, {{"max_line", 4}}));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("abcd\r\n" + std::string(100'000, 'x') + "\nnext\n");
    co_await until([&] { return client.events.has("received: next"); });
    EXPECT_TRUE(client.events.has("received: xxxx... (longer than --max-line)"));
    EXPECT_EQ(client->count().errors, 1U);
    must_do(client->apply(client.parse(to(server, {{"max_line", 5}}))));
    co_await peer.say("abcde\n");
    co_await until([&] { return client.events.has("received: abcde"); });
    EXPECT_EQ(client->count().errors, 1U);
    co_await client->stop(1h);
}

/// A server whose queue is full answers nothing.
struct full_server {
    static listen_options short_queue() {
        listen_options made;
        made.backlog = loop::current().kind() == io_backend_kind::sim ? 1 : 0;
        return made;
    }
    listener server = any_server(short_queue());
    stream in_queue;
};
task<full_server> filled() {
    full_server made;
    made.in_queue = must(co_await loop::current().connect(made.server.local()));
    co_return made;
}

task<void> attempts_have_a_time(std::string type) {
    full_server full = co_await filled();
    subject client(type, to(full.server, {{"connect_timeout", "50ms"}}));
    co_await client.start();
    co_await until([&] { return client->count().errors >= 2; });
    EXPECT_EQ(client->count().connections_total, 0U);
    EXPECT_EQ(client.events.lines.size(), 1U);  // the second failed for the same reason
    co_await client->stop(1h);
}

task<void> attempts_are_limited(std::string type) {
    listener server = any_server();
    const endpoint where = server.local();
    const json options = to(server, {{"reconnect", 2}});
    subject client(type, options);
    server.close();
    co_await client.start();
    co_await until([&] { return client.events.has("it gives up after 2 attempts"); });
    EXPECT_EQ(client->count().errors, 3U) << "the first attempt, and two more";
    EXPECT_THAT(client->fault(), HasSubstr("it has given up, and `eddy reload subject`"));
    EXPECT_EQ((co_await client->send("x")).error().status, 503);

    server = server_on(where);
    EXPECT_TRUE(must_do(co_await client->reread()));
    talker peer = co_await accept(server);
    co_await connected(client);
    EXPECT_EQ(client->fault(), "");
    must_do(client->apply(client.parse(to(server, {{"reconnect", 0}}))));
    peer.socket.close();
    co_await until([&] { return client.events.has("it gives up after 0 attempts"); });
    must_do(client->apply(client.parse(to(server, {{"reconnect", 1}}))));
    talker again = co_await accept(server);
    co_await connected(client);
    co_await client->stop(0s);
}

task<void> directions_are_chosen(std::string type) {
    listener server = any_server();
    subject client(type, to(server, {{"mode", "in"}}));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await connected(client);
    EXPECT_THAT((co_await client->send("x")).error().message, HasSubstr("--mode in"));
    must_do(client->apply(client.parse(to(server, {{"mode", "out"}}))));
    co_await peer.say("not shown\n");
    EXPECT_EQ(must_do(co_await client->send("x")), 1U);
    EXPECT_EQ(co_await peer.line(), "x");
    co_await until([&] { return client->count().bytes_in == 10U; });
    EXPECT_EQ(client->count().messages_in, 0U);
    must_do(client->apply(client.parse(to(server))));
    co_await peer.say("shown\n");
    co_await until([&] { return client.events.has("received: shown"); });
    EXPECT_FALSE(client.events.has("not shown"));
    co_await client->stop(0s);
}

task<void> bytes_are_raw(std::string type) {
    listener server = any_server();
    subject client(type, to(server, {{"framing", "raw"}}));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("no line end");
    co_await until([&] { return client.events.has("received: no line end"); });
    must_do(co_await client->send("ab"));
    must_do(co_await client->send(""));
    must_do(co_await client->send("c\nd"));
    EXPECT_EQ(co_await peer.bytes(5), "abc\nd");
    co_await client->stop(0s);
}

task<void> silent_servers_are_probed(std::string type) {
    listener server = any_server();
    const json options = to(server, {{"ping", "59100ms"}});
    subject client(type, options);
    co_await client.start();
    const auto of_next_connection = [&]() -> task<keepalive> {
        talker peer = co_await accept(server);
        co_await connected(client);
        const auto probed = keepalive_between(peer.socket.peer().port(), server.local().port());
        peer.socket.close();
        co_await until([&] { return sample_of(*client, "connected") == 0.0; });
        co_return probed.value_or(keepalive());
    };
    EXPECT_EQ(co_await of_next_connection(), (keepalive{1, 60, 20, 3}));
    must_do(client->apply(client.parse(to(server, {{"ping", 0}}))));
    // The attempt under way may have begun before the change.
    co_await of_next_connection();
    EXPECT_EQ((co_await of_next_connection()).on, 0);
    co_await client->stop(0s);
}

task<void> the_queue_is_limited(std::string type) {
    const std::string address = closed_address().to_string();
    subject client(type, {{"target", address}, {"queue", 8}});
    co_await client.start();
    EXPECT_EQ(must_do(co_await client->send("abc")), 0U) << "it waits for a connection";
    EXPECT_EQ(must_do(co_await client->send("def")), 0U);
    const auto refused = co_await client->send("");
    EXPECT_EQ(refused.error().status, 503);
    EXPECT_THAT(refused.error().message, HasSubstr("8 bytes wait"));
    EXPECT_EQ(sample_of(*client, "queued_bytes"), 8.0);
    EXPECT_EQ(sample_of(*client, "queued_messages"), 2.0);
    must_do(client->apply(client.parse({{"target", address}, {"queue", 9}})));
    EXPECT_EQ(must_do(co_await client->send("")), 0U);
    co_await client->stop(0s);
    EXPECT_EQ(client->lost(), "3 messages that waited for tcp://" + address);
    EXPECT_EQ(client->count().dropped, 3U);
}

task<void> the_policy_decides_what_is_dropped(std::string type) {
    listener server = any_server();
    const endpoint where = server.local();
    const auto options = [&](std::string_view policy) {
        return json{{"target", where.to_string()}, {"queue", 4}, {"queue_policy", policy}};
    };
    subject client(type, options("drop-oldest"));
    server.close();
    co_await client.start();
    for (const char* each : {"a", "b", "c"}) must_do(co_await client->send(each));
    EXPECT_EQ(client->count().dropped, 1U);
    EXPECT_TRUE(client.events.has("the queue is full"));
    must_do(client->apply(client.parse(options("drop-newest"))));
    EXPECT_EQ(must_do(co_await client->send("d")), 0U);
    EXPECT_EQ(client->count().dropped, 2U);
    EXPECT_EQ((co_await client->send("longer")).error().status, 503) << "than the whole queue";
    server = server_on(where);
    talker peer = co_await accept(server);
    EXPECT_EQ(co_await peer.bytes(4), "b\nc\n");
    co_await client->stop(0s);
}

task<void> the_journal_has_messages(std::string type) {
    listener server = any_server();
    subject client(type, to(server, {{"journal", "no"}}));
    co_await client.start();
    talker peer = co_await accept(server);
    co_await peer.say("not shown\n");
    co_await until([&] { return client->count().messages_in == 1U; });
    must_do(client->apply(client.parse(to(server, {{"journal", "yes"}}))));
    co_await peer.say("shown\n");
    co_await until([&] { return client.events.has("received: shown"); });
    EXPECT_FALSE(client.events.has("not shown"));
    co_await client->stop(0s);
}

std::string refusal_of(const json& options) {
    const auto parsed = settings::parse(table_of(option_rows()), options);
    if (!parsed) return parsed.error().message;
    const auto read = read_config(*parsed);
    return read ? std::string() : read.error().message;
}

TEST(client_options, are_read_into_their_members_and_changed_live) {
    const json before = {{"target", ":1"}};
    const temporary_folder folder;
    std::ofstream(folder.file("a.lua")) << "count = 1";
    const json scripted = {{"target", ":1"}, {"lua", folder.file("a.lua")}};
    const option_changes own = {{"target", {before, {{"target", ":2"}}}},
                                {"lua", {before, {{"lua", folder.file("a.lua")}}}},
                                {"lua-path", {scripted, {{"lua_path", {"/a"}}}}},
                                {"lua-unsafe", {scripted, {{"lua_unsafe", true}}}},
                                {"lua-memory", {scripted, {{"lua_memory", "9M"}}}},
                                {"lua-slice", {scripted, {{"lua_slice", "9ms"}}}},
                                {"lua-time", {scripted, {{"lua_time", "9s"}}}},
                                {"lua-max-timers", {scripted, {{"lua_max_timers", 9}}}},
                                {"lua-max-sockets", {scripted, {{"lua_max_sockets", 9}}}},
                                {"lua-max-queue", {scripted, {{"lua_max_queue", 9}}}},
                                {"lua-admin", {scripted, {{"lua_admin", true}}}}};
    check_reading(option_rows(), read_config, before, own);
    check_live(option_rows(), read_config, before, own);
}

TEST(client_options, targets_are_read) {
    const auto address = [](std::string_view text) {
        auto read = read_server_address(text);
        return read ? read->to_string() : "";
    };
    EXPECT_EQ(address(":80"), "tcp://127.0.0.1:80");
    EXPECT_EQ(address("udp://a.example:5"), "udp://a.example:5");
    EXPECT_EQ(address("ws://a.example/p?token=x"), "ws://a.example/p");
    const auto secure = must_do(read_server_address("WSS://a.example/p?q=1#ca=/ca.pem"));
    EXPECT_EQ(secure.url, "WSS://a.example/p?q=1");
    EXPECT_EQ(secure.where.to_string(), "tls://a.example:443?ca=/ca.pem");
    EXPECT_EQ(must_do(read_server_address("ws://[::1]:81")).where.port, 81);
    EXPECT_EQ(must_do(read_server_address("ws://[::1]")).where.port, 80);
}

TEST(client_options, wrong_targets_are_refused_with_the_reason) {
    const auto refusal = [](std::string_view text) { return refusal_of({{"target", text}}); };
    EXPECT_THAT(refusal_of(json::object()), HasSubstr("say which by --target"));
    EXPECT_THAT(refusal("nonsense"), HasSubstr("write HOST:PORT"));
    EXPECT_THAT(refusal("handoff:///x"), HasSubstr("no connections to make"));
    EXPECT_THAT(refusal("udp://:5"), HasSubstr("name the host"));
    EXPECT_THAT(refusal("udp://a:0"), HasSubstr("name the port"));
    EXPECT_THAT(refusal("udp://a"), HasSubstr("the port is missing"));
    EXPECT_THAT(refusal("ws://"), HasSubstr("write ws://HOST"));
    EXPECT_THAT(refusal("ws://a/b c"), HasSubstr("%XX"));
    EXPECT_THAT(refusal("ws://a:0/"), HasSubstr("name the port"));
    EXPECT_THAT(refusal("ws://a/#ca=/x"), HasSubstr("for wss:// alone"));
    EXPECT_THAT(refusal("wss://a/#ca=x"), HasSubstr("write the whole path"));
    EXPECT_THAT(refusal("wss://a/#no=x"), HasSubstr("NAME=VALUE"));
    EXPECT_THAT(refusal("ws://a/" + std::string(2000, 'x')), HasSubstr("at most 1024"));
}

TEST(client_options, files_of_the_server_are_checked_before_they_are_stored) {
    const temporary_folder folder;
    const type& its = *find_type("client");
    for (const std::string_view target : {"tls://a.test:1?ca=", "wss://a.test/x#ca="}) {
        const json options = {{"target", std::string(target) + folder.file("none.pem")}};
        const auto checked = its.check_files(must_do(settings::parse(its.options, options)));
        ASSERT_FALSE(checked);
        EXPECT_THAT(checked.error().message,
                    HasSubstr("ca " + folder.file("none.pem") + " cannot be read: No such file"));
    }
    EXPECT_TRUE(its.check_files(must_do(settings::parse(its.options, {{"target", ":1"}}))));
}

TEST(client_options, what_has_no_effect_is_refused) {
    const auto refusal = [](std::string_view target, json more) {
        more["target"] = target;
        return refusal_of(more);
    };
    EXPECT_THAT(refusal("udp://a:1", {{"framing", "raw"}}), HasSubstr("no effect with UDP"));
    EXPECT_THAT(refusal("ws://a", {{"framing", "raw"}}), HasSubstr("no effect with WebSocket"));
    EXPECT_THAT(refusal("udp://a:1", {{"ping", 1}}), HasSubstr("no effect with udp://"));
    EXPECT_THAT(refusal("unix:///s", {{"ping", 1}}), HasSubstr("no effect with unix://"));
    EXPECT_THAT(refusal(":1", {{"framing", "raw"}, {"max_line", 9}}), HasSubstr("no lines"));
    EXPECT_THAT(refusal(":1", {{"mode", "out"}, {"journal", "no"}}), HasSubstr("--mode out"));
    EXPECT_THAT(refusal(":1", {{"mode", "in"}, {"queue", 9}}), HasSubstr("--mode in"));
    EXPECT_EQ(refusal("udp://a:1", {{"max_line", 9}, {"queue", 9}}), "");
    EXPECT_EQ(refusal("wss://a", {{"ping", 1}, {"max_line", 9}}), "");
    EXPECT_THAT(refusal(":1", {{"lua_time", "1s"}}), HasSubstr("--lua-time has no effect without"));
    EXPECT_THAT(refusal(":1", {{"lua", "/none"}}), HasSubstr("--lua: /none cannot be read"));
}

}  // namespace
}  // namespace eddy::runtime::client

namespace eddy::runtime::testing {

effect_table client_effects() {
    using namespace client;
    return {
        {{"client", "target"}, {lines_go_both_ways}},
        {{"client", "reconnect"}, {attempts_are_limited}},
        {{"client", "connect-timeout"}, {attempts_have_a_time}},
        {{"client", "ping"}, {silent_servers_are_probed, kernel}},
        {{"client", "mode"}, {directions_are_chosen}},
        {{"client", "framing"}, {bytes_are_raw}},
        {{"client", "max-line"}, {long_lines_are_cut}},
        {{"client", "queue"}, {the_queue_is_limited}},
        {{"client", "queue-policy"}, {the_policy_decides_what_is_dropped}},
        {{"client", "journal"}, {the_journal_has_messages}},
    };
}

}  // namespace eddy::runtime::testing
