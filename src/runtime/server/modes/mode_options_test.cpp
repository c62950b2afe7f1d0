// Effects of the options of a server's modes and commands, and their contradictions.
#include "runtime/options/option_effects.hpp"
#include "runtime/server/options.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace eddy::runtime::testing {
namespace {

using ::testing::HasSubstr;

task<talker> join(subject& server) {
    const std::uint64_t before = server->count().connections_total;
    talker made = co_await talker::to(server->local());
    co_await until([&] { return server->count().connections_total > before; });
    co_return made;
}

/// Answer to a claim with this password.
task<std::string> claim(subject& s, std::string password) {
    talker one = co_await join(s);
    co_await one.say("master " + password + "\n");
    std::string answer = co_await one.line();
    one = {};
    // The next one may claim.
    co_await until([&] { return s->count().connections_now == 0; });
    co_return answer;
}

task<void> a_password_makes_the_master(std::string type) {
    const option* row = nullptr;
    for (const option& each : find_type(type)->options)
        if (each.name == "master-password") row = &each;
    EXPECT_EQ(row->shown("sesame"), hidden);
    for (const char* const name : {"master_password", "master_pw"}) {
        subject s(type, with({{"mode", "master"}, {name, "sesame"}}));
        co_await s.start();
        EXPECT_EQ(co_await claim(s, "sesam"), "master: denied");
        EXPECT_EQ(co_await claim(s, "sesame"), "master: ok");
        co_await s->stop(0s);
    }
}

task<void> the_password_is_read_from_a_file(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("p")) << "sesame\n";
    subject s(type, with({{"mode", "master"}, {"master_password_file", folder.file("p")}}));
    co_await s.start();
    EXPECT_EQ(co_await claim(s, "sesame"), "master: ok");
    co_await s->stop(0s);
}

task<void> the_master_gets_messages(std::string type) {
    for (const bool forwards : {false, true}) {
        subject s(type, with({{"mode", "master"},
                              {"master_password", "sesame"},
                              {"master_forward", forwards}}));
        co_await s.start();
        talker master = co_await join(s);
        talker other = co_await join(s);
        co_await master.say("master sesame\n");
        EXPECT_EQ(co_await master.line(), "master: ok");
        co_await other.say("hello\n");
        co_await until([&] { return s->count().messages_in == 2; });
        co_await s->stop(1s);
        EXPECT_EQ(co_await master.rest(), forwards ? "[2] hello\n" : "");
    }
}

task<void> commands_reach_the_cache(std::string type) {
    const neighbours among;
    const auto cache_host = std::make_shared<test_host>(among, "db");
    subject cache("cache", any_port, "db", cache_host);
    co_await cache.start();
    cache_host->has_started();
    subject s(type, with({{"cache", "db"}}), "room", among);
    co_await s.start();
    talker one = co_await join(s);
    co_await one.say("cache set k v\ncache get k\n");
    EXPECT_EQ(co_await one.line(), "ok");
    EXPECT_EQ(co_await one.line(), "v");
    co_await s->stop(0s);
    cache_host->stops();
    co_await cache->stop(0s);
}

task<void> another_servers_messages_reach_the_clients(std::string type) {
    subject source(type, with({}));
    co_await source.start();
    subject s(type, with({{"upstream", {source->local().to_string()}}}));
    co_await s.start();
    talker one = co_await join(s);
    co_await until([&] { return source->count().connections_now == 1; });
    must_do(co_await source->send("from there"));
    EXPECT_EQ(co_await one.line(), "from there");
    co_await s->stop(0s);
    co_await source->stop(0s);
}

/// Answer to GET of this path.
task<std::string> get(subject& s, std::string path) {
    talker one = co_await join(s);
    co_await one.say("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    co_return co_await one.rest();
}

task<void> pages_load_the_client(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("index.html")) << "<body><p>a page</body>";
    for (const bool injects : {false, true}) {
        subject s(type, with({{"http", folder.path()}, {"http_inject", injects}}));
        co_await s.start();
        EXPECT_THAT(co_await get(s, "/"),
                    HasSubstr(injects ? "<p>a page<script src=\"/_eddy/eddy-client.js\">"
                                      : "<p>a page</body>"));
        EXPECT_THAT(co_await get(s, "/_eddy/eddy-client.js"),
                    HasSubstr(injects ? "new WebSocket" : "404"));
        co_await s->stop(0s);
    }
}

task<void> files_are_kept_in_memory(std::string type) {
    const temporary_folder folder;
    for (const bool caches : {false, true}) {
        std::ofstream(folder.file("a.txt")) << "before";
        subject s(type, with({{"http", folder.path()}, {"http_cache", caches}}));
        co_await s.start();
        EXPECT_THAT(co_await get(s, "/a.txt"), HasSubstr("before"));
        std::filesystem::remove(folder.file("a.txt"));
        // The simulator's clock stands still meanwhile.
        EXPECT_THAT(co_await get(s, "/a.txt"), HasSubstr(caches ? "before" : "404"));
        co_await s->stop(0s);
    }
}

std::string refusal(json options) {
    options.update({{"port", 1}});
    const type* const of = find_type("server");
    const auto parsed = settings::parse(of->options, options);
    if (!parsed) return parsed.error().message;
    const auto read = server::read_config(*parsed);
    return read ? std::string() : read.error().message;
}

TEST(mode_options, contradictions_are_refused) {
    const json master = {{"mode", "master"}, {"master_password", "x"}};
    EXPECT_EQ(refusal(master), "");
    EXPECT_THAT(refusal({{"mode", "master"}}), HasSubstr("needs a password"));
    EXPECT_THAT(refusal(with({{"udp", true}}, master)), HasSubstr("exclude each other"));
    EXPECT_THAT(refusal(with({{"framing", "raw"}}, master)), HasSubstr("exclude each other"));
    EXPECT_THAT(refusal(with({{"master_password_file", "/x"}}, master)),
                HasSubstr("exclude each other"));
    EXPECT_THAT(refusal(with({{"master_password", "a\nb"}}, master)),
                HasSubstr("leave out its control characters"));
    EXPECT_THAT(refusal(with({{"master_password", std::string(1025, 'x')}}, master)),
                HasSubstr("one line of at most 1024 bytes"));
    EXPECT_THAT(refusal(with({{"max_line", "32767"}, {"max_queue", "64k"}}, master)),
                HasSubstr("too small for lines"));
    EXPECT_THAT(refusal(with({{"max_line", 9}}, with({{"master_password", "12345678"}}, master))),
                HasSubstr("longer than --max-line"));
    EXPECT_THAT(refusal({{"master_password", "x"}}), HasSubstr("no effect with --mode inout"));
    EXPECT_THAT(refusal({{"mode", "out"}, {"master_forward", true}}),
                HasSubstr("no effect with --mode out"));
    EXPECT_THAT(refusal({{"master_password_file", "x"}, {"mode", "master"}}),
                HasSubstr("write the whole path"));
    EXPECT_THAT(refusal({{"cache", "a*"}}), HasSubstr("write the name of a cache"));
    EXPECT_THAT(refusal({{"cache", "db"}, {"udp", true}}), HasSubstr("no effect with UDP"));
    EXPECT_THAT(refusal({{"cache", "db"}, {"framing", "raw"}}), HasSubstr("a command is a line"));
    EXPECT_EQ(refusal({{"upstream", {":1", "ws://a.example/b"}}}), "");
    EXPECT_THAT(refusal({{"upstream", {":1"}}, {"udp", true}}), HasSubstr("exclude each other"));
    EXPECT_THAT(refusal({{"upstream", {":1"}}, {"mode", "in"}}), HasSubstr("clients get nothing"));
    EXPECT_THAT(refusal({{"upstream", {"ftp://a"}}}), HasSubstr("--upstream"));
    EXPECT_THAT(refusal({{"upstream", json(std::vector<std::string>(101, ":1"))}}),
                HasSubstr("at most 100"));
    EXPECT_THAT(refusal({{"http_inject", true}}), HasSubstr("without --http DIR"));
    EXPECT_THAT(refusal({{"http_cache", true}}), HasSubstr("without --http DIR"));
    // Without commands these have no effect.
    EXPECT_EQ(refusal({{"cache", "db"}, {"mode", "out"}, {"rate_limit", 5}}), "");
    EXPECT_EQ(refusal({{"cache", "db"}, {"mode", "in"}, {"max_queue", "1M"}}), "");
}

TEST(mode_options, the_password_may_be_in_the_daemons_environment) {
    ASSERT_EQ(::setenv(server::master_password_variable, "of the daemon", 1), 0);
    const auto parsed =
        settings::parse(find_type("server")->options, {{"port", 1}, {"mode", "master"}});
    const auto read = server::read_config(*parsed);
    ASSERT_EQ(::unsetenv(server::master_password_variable), 0);
    EXPECT_EQ(must_do(read).secret, "of the daemon");
}

}  // namespace

effect_table mode_effects() {
    return {{{"server", "master-password"}, {a_password_makes_the_master}},
            {{"server", "master-password-file"}, {the_password_is_read_from_a_file}},
            {{"server", "master-forward"}, {the_master_gets_messages}},
            {{"server", "cache"}, {commands_reach_the_cache}},
            {{"server", "upstream"}, {another_servers_messages_reach_the_clients}},
            {{"server", "http-inject"}, {pages_load_the_client}},
            {{"server", "http-cache"}, {files_are_kept_in_memory, seen_on::sim}}};
}

}  // namespace eddy::runtime::testing
