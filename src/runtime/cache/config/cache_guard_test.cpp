// Tests of a cache's protection, and of commands about the server: protected mode, limits on
// clients' buffers, the file of users, SHUTDOWN, CONFIG REWRITE, and hostile clients.
#include "base/files/temporary_folder.hpp"
#include "runtime/cache/config/options.hpp"
#include "runtime/cache/config/parameters.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/replication/replication_servers.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The guard is off where the user gives --bind.
json unbound(json options) { return with(std::move(options), {{"port", 0}}); }

EDDY_ON_EVERY_IO_BACKEND(cache_guard);

void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// The value of a field of INFO, or of another reply that is a bulk of lines.
task<std::string> ask_bulk(talker& client, std::string command) {
    const std::string head = co_await ask(client, std::move(command));
    if (!head.starts_with('$')) throw std::runtime_error("no bulk: " + head);
    co_return co_await client.bytes(std::stoul(head.substr(1)) + 2);
}

/// In the place of the daemon.
struct noting_host final : host {
    noting_host()
        : host("subject", std::make_shared<registry>(), std::make_shared<message_bus>()) {}
    void request_stop() override { ++stops; }
    task<outcome<>> keep_options(json changed) override {
        co_await loop::current().yield();
        if (refuses) co_return refuse(503, "the state could not be saved");
        kept = std::move(changed);
        co_return outcome<>();
    }
    int stops = 0;
    bool refuses = false;
    json kept;
};

/// A cache with a host.
struct supervised {
    explicit supervised(const json& options)
        : options_(options),
          cache(find_type("cache")->make(
              {"subject",
               must_do(settings::parse(find_type("cache")->options, on_threads("cache", options))),
               &events, above})) {}
    task<void> start() { must_do(co_await cache->start()); }

    json options_;
    recorder events;
    std::shared_ptr<noting_host> above = std::make_shared<noting_host>();
    std::unique_ptr<instance> cache;
};

// --- Protected mode --------------------------------------------------------------------------

TEST(cache_protection, local_clients_are_those_of_loopback_and_unix_sockets) {
    using cache::is_local;
    for (const char* const host : {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"})
        EXPECT_TRUE(is_local(*endpoint::ip(host, 4711))) << host;
    EXPECT_TRUE(is_local(*endpoint::unix_path("/run/x.sock")));
    for (const char* const host :
         {"10.0.0.1", "192.168.127.1", "::2", "::ffff:10.0.0.1", "128.0.0.1", "fe80::1"})
        EXPECT_FALSE(is_local(*endpoint::ip(host, 4711))) << host;
}

TEST(cache_protection, it_is_on_unless_there_is_a_password_or_an_option) {
    eddy::cache::engine home;
    const endpoint far = *endpoint::ip("10.0.0.1", 4711);
    const endpoint near = *endpoint::ip("127.0.0.1", 4711);
    eddy::cache::server_settings settings;
    EXPECT_TRUE(cache::is_rejected(home, settings, far));
    EXPECT_FALSE(cache::is_rejected(home, settings, near));
    eddy::cache::engine_options options;
    options.password = "secret";
    eddy::cache::engine locked(options);
    EXPECT_FALSE(cache::is_rejected(locked, settings, far));
    settings.protected_mode = false;
    EXPECT_FALSE(cache::is_rejected(home, settings, far));
}

TEST_P(cache_guard, protected_mode_counts_the_client_that_a_proxy_announces) {
    run_with_threads([]() -> task<void> {
        subject s("cache", unbound({{"accept_proxy", "127.0.0.1"}}));
        co_await s.start();
        const auto say = [&](std::string header) -> task<std::string> {
            talker client = co_await talker::to(s->local());
            co_await client.say(header + "\r\nPING\r\n");
            co_return co_await line_of(client);
        };
        EXPECT_THAT(co_await say("PROXY TCP4 192.0.2.7 192.0.2.8 1 2"), StartsWith("-DENIED "));
        EXPECT_EQ(s->count().connections_refused, 1U);
        EXPECT_EQ(co_await say("PROXY TCP4 127.0.0.9 192.0.2.8 1 2"), "+PONG");
        EXPECT_EQ(co_await say("PROXY UNKNOWN"), "+PONG") << "the proxy itself";
        // A stop closes one that lingers; it has no session.
        talker lingers = co_await talker::to(s->local());
        co_await lingers.say("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n");
        EXPECT_THAT(co_await line_of(lingers), StartsWith("-DENIED "));
        co_await s->stop(0s);
    });
}

TEST_P(cache_guard, protected_mode_is_a_parameter_and_an_option_that_can_be_edited) {
    run([&]() -> task<void> {
        subject cache("cache", unbound(json::object()));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const auto is = [&](std::string value) -> task<void> {
            const std::string reply = "*2\r\n$14\r\nprotected-mode\r\n$" +
                                      std::to_string(value.size()) + "\r\n" + value + "\r\n";
            co_await client.say("CONFIG GET protected-mode\r\n");
            EXPECT_EQ(co_await client.bytes(reply.size()), reply);
        };
        co_await is("yes");
        EXPECT_EQ(co_await ask(client, "CONFIG SET protected-mode no"), "+OK");
        co_await is("no");
        EXPECT_EQ(co_await ask(client, "CONFIG SET protected-mode maybe"),
                  "-ERR CONFIG SET failed (possibly related to argument 'protected-mode') - "
                  "argument must be 'yes' or 'no'");
        // Another option leaves it alone.
        must_do(cache->apply(cache.parse(unbound({{"idle_timeout", "90s"}}))));
        co_await is("no");
        must_do(cache->apply(cache.parse(unbound({{"protected_mode", "no"}}))));
        must_do(cache->apply(cache.parse(unbound({{"protected_mode", "yes"}}))));
        co_await is("yes");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, limits_of_connections_are_parameters_and_options_that_can_be_edited) {
    run([&]() -> task<void> {
        subject cache("cache", unbound({{"max_connections", 2}, {"idle_timeout", "1500ms"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const auto is = [&](std::string name, std::string value) -> task<void> {
            const std::string reply = encoded({name, value});
            co_await client.say("CONFIG GET " + name + "\r\n");
            EXPECT_EQ(co_await client.bytes(reply.size()), reply);
        };
        co_await is("maxclients", "2");
        co_await is("timeout", "2");
        EXPECT_EQ(co_await ask(client, "CONFIG SET maxclients 1 timeout 300"), "+OK");
        talker late = co_await talker::to(cache->local());
        EXPECT_EQ(co_await late.rest(), "-ERR max number of clients reached\r\n");
        // Another option leaves them alone.
        must_do(cache->apply(cache.parse(unbound(
            {{"max_connections", 2}, {"idle_timeout", "1500ms"}, {"write_timeout", "50s"}}))));
        co_await is("maxclients", "1");
        co_await is("timeout", "300");
        must_do(
            cache->apply(cache.parse(unbound({{"max_connections", 3}, {"idle_timeout", "200s"}}))));
        co_await is("maxclients", "3");
        co_await is("timeout", "200");
        talker other = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(other, "CONFIG SET timeout 1"), "+OK");
        EXPECT_EQ(co_await other.rest(), "");
        co_await cache->stop(0s);
    });
}

// --- Options ---------------------------------------------------------------------------------

TEST_P(cache_guard, options_that_cannot_work_are_refused_with_what_to_do) {
    const auto why = [](json options) {
        const auto parsed = settings::parse(find_type("cache")->options, options);
        if (!parsed) return parsed.error().message;
        const auto read = cache::read_config(*parsed);
        return read ? std::string() : read.error().message;
    };
    EXPECT_THAT(why({{"port", 0}, {"tls_cert_file", "/a"}}), HasSubstr("without --tls-port"));
    EXPECT_THAT(why({{"tls_port", 0}}), HasSubstr("add --tls-cert-file"));
    EXPECT_THAT(why({{"tls_port", 0}, {"tls_cert_file", "/a"}}),
                HasSubstr("--tls-auth-clients no"));
    EXPECT_THAT(why({{"tls_port", 0}, {"tls_cert_file", "a"}, {"tls_auth_clients", "no"}}),
                HasSubstr("write the whole path"));
    EXPECT_EQ(why({{"tls_port", 0}, {"tls_cert_file", "/a"}, {"tls_auth_clients", "no"}}), "");
    EXPECT_EQ(why({{"tls_port", 0}, {"tls_cert_file", "/a"}, {"tls_ca_cert_file", "/c"}}), "");
    EXPECT_THAT(why({{"port", 0}, {"tls_ciphers", "A"}}), HasSubstr("without --tls-port"));
    EXPECT_THAT(why({{"port", 0}, {"tls_replication", "yes"}}),
                HasSubstr("add --tls-ca-cert-file"));
    const json follows = {{"port", 0}, {"tls_replication", "yes"}, {"tls_ca_cert_file", "/c"}};
    EXPECT_EQ(why(follows), "");
    json keyed = follows;
    keyed["tls_key_file"] = "/k";
    EXPECT_THAT(why(keyed), HasSubstr("add --tls-cert-file"));
    json old = follows;
    old["tls_protocols"] = "TLSv1.2 SSLv3";
    EXPECT_THAT(why(old), HasSubstr("cannot have \"SSLv3\""));
    EXPECT_THAT(why(unbound({{"config", "tls-replication yes"}})), HasSubstr("option of its own"));
    EXPECT_THAT(why(unbound({{"maxmemory_clients", "many"}})), HasSubstr("such as 64M"));
    EXPECT_THAT(why(unbound({{"maxmemory_clients", "5%"}})), HasSubstr("add --maxmemory"));
    EXPECT_EQ(why(unbound({{"maxmemory_clients", "5%"}, {"maxmemory", "1G"}})), "");
    EXPECT_THAT(why(unbound({{"rename_command", "GET"}})), HasSubstr("OLD=NEW"));
    EXPECT_THAT(why(unbound({{"rename_command", "GOT=x"}})), HasSubstr("no command \"GOT\""));
    EXPECT_EQ(why(unbound({{"rename_command", "GET=x, FLUSHALL="}})), "");
    EXPECT_THAT(why(unbound({{"aclfile", "users"}})), HasSubstr("whole path"));
    EXPECT_THAT(why(unbound({{"config", "nosuch 1"}})), HasSubstr("no parameter \"nosuch\""));
    EXPECT_THAT(why(unbound({{"config", "hz 5; maxmemory lots"}})),
                HasSubstr("maxmemory cannot be \"lots\""));
    EXPECT_THAT(why(unbound({{"config", "port 5"}})), HasSubstr("option of its own"));
    EXPECT_THAT(why(unbound({{"config", "requirepass \"open"}})), HasSubstr("in double quotes"));
    // An unset shell variable must not open the cache to all.
    for (const std::string bare : {"requirepass", "requirepass ; hz 5", "hz 5; requirepass "})
        EXPECT_THAT(why(unbound({{"config", bare}})), HasSubstr("NAME VALUE")) << bare;
    EXPECT_EQ(why(unbound({{"config", "requirepass \"\"; hz 5"}})), "");
    EXPECT_EQ(why(unbound({{"config", "; requirepass \"a b\";hz 5 ; "}})), "");
}

TEST(cache_parameters, what_is_joined_is_split_again) {
    using cache::parameter_list;
    for (const std::string value : {"", "x", " x", "x ", "a b", "a;b", "\"", "\"x\"", "\\", "a\\",
                                    "\\\"", "a \"b\"; c", ";;", "  "}) {
        const parameter_list all = {{"first", value}, {"second", "x"}, {"third", value}};
        const auto again = cache::split_parameters(cache::join_parameters(all));
        ASSERT_TRUE(again) << value;
        EXPECT_EQ(*again, all) << value;
    }
    // Any byte, by ASCII alone.
    std::string bytes;
    for (int each = 0; each < 256; ++each) bytes += static_cast<char>(each);
    for (const std::string& value : {bytes, bytes.substr(128), std::string("p\xff"),
                                     std::string("p\xc3\xa4ss"), std::string("\x01\x0f")}) {
        const std::string text = cache::join_parameters({{"requirepass", value}, {"hz", "9"}});
        EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) << text;
        EXPECT_EQ(cache::split_parameters(text),
                  parameter_list({{"requirepass", value}, {"hz", "9"}}));
    }
    EXPECT_EQ(cache::split_parameters(R"(a "\x41\xFf\n\r\t\a\b\x4\xg1\z")"),
              parameter_list({{"a", "A\xff\n\r\t\a\bx4xg1z"}}));
    EXPECT_EQ(cache::split_parameters("a \\x41"), parameter_list({{"a", "\\x41"}}));
    EXPECT_FALSE(cache::split_parameters("a"));
    EXPECT_EQ(cache::split_parameters(" ; ;"), parameter_list());
    EXPECT_FALSE(cache::split_parameters("a \"x"));
    EXPECT_FALSE(cache::split_parameters("a \"x\\\""));
    EXPECT_FALSE(cache::split_parameters("a \"x\" y"));
}

TEST_P(cache_guard, commands_have_the_names_that_they_are_given) {
    run([&]() -> task<void> {
        subject cache("cache", unbound({{"rename_command", "FLUSHALL=wipe CONFIG="},
                                        {"config", "requirepass \"a secret\""}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        EXPECT_THAT(co_await ask(client, "PING"), StartsWith("-NOAUTH"));
        EXPECT_EQ(co_await ask(client, "AUTH \"a secret\""), "+OK");
        EXPECT_THAT(co_await ask(client, "FLUSHALL"), StartsWith("-ERR unknown command"));
        EXPECT_EQ(co_await ask(client, "WIPE"), "+OK");
        EXPECT_THAT(co_await ask(client, "CONFIG GET *"), StartsWith("-ERR unknown command"));
        co_await cache->stop(0s);
    });
}

// --- Users -----------------------------------------------------------------------------------

TEST_P(cache_guard, users_come_from_their_file_and_go_back) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("users.acl");
        const json options = unbound({{"aclfile", path}});
        {
            subject cache("cache", options);
            EXPECT_THAT(co_await cache.failure_to_start(), HasSubstr("opening file '" + path));
        }
        write(path, "user bob on nopass ~* +@all\nuser worse +nosuch\n");
        {
            subject cache("cache", options);
            const std::string why = co_await cache.failure_to_start();
            EXPECT_THAT(why, HasSubstr(path + ":2: Error in applying operation '+nosuch'"));
        }
        write(path, "user bob on nopass ~* +@all\n");
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "AUTH bob x"), "+OK");
            EXPECT_EQ(co_await ask(client, "ACL SETUSER eve on >secret ~e* +get"), "+OK");
            EXPECT_EQ(co_await ask(client, "ACL SAVE"), "+OK");
            const std::string saved = content(path);
            EXPECT_THAT(saved, HasSubstr("\nuser eve on "));
            EXPECT_THAT(saved, Not(HasSubstr("secret")));
            EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
            EXPECT_EQ(std::filesystem::status(path).permissions(),
                      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
            // A fault leaves all users as they were.
            write(path, saved + "user last on +@nothing\n");
            const std::string fault = co_await ask(client, "ACL LOAD");
            EXPECT_THAT(fault, StartsWith("-ERR " + path + ":"));
            EXPECT_THAT(fault, HasSubstr("Error in applying operation '+@nothing'"));
            EXPECT_EQ(co_await ask(client, "ACL WHOAMI"), "$3");
            EXPECT_EQ(co_await client.line(), "bob\r");
            write(path, "user bob on nopass ~* +@all\nuser new on nopass\n");
            EXPECT_EQ(co_await ask(client, "ACL LOAD"), "+OK");
            EXPECT_EQ(co_await ask(client, "ACL GETUSER eve"), "$-1");
            EXPECT_EQ(co_await ask(client, "ACL USERS"), "*3");
        }
        co_await cache->stop(0s);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "ACL USERS"), "*3");
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, a_file_of_users_that_cannot_be_written_stays) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("users.acl");
        write(path, "user bob on nopass ~* +@all\n");
        subject cache("cache", unbound({{"aclfile", path}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        std::filesystem::create_directories(path + ".tmp/in the way");
        EXPECT_EQ(co_await ask(client, "ACL SAVE"),
                  "-ERR There was an error trying to save the ACLs. Please check the server logs "
                  "for more information");
        EXPECT_EQ(content(path), "user bob on nopass ~* +@all\n");
        EXPECT_TRUE(cache.events.has("ACL SAVE: could not write"));
        EXPECT_EQ(co_await ask(client, "PING"), "+PONG");
        co_await cache->stop(0s);
    });
}

// --- SHUTDOWN and CONFIG REWRITE -------------------------------------------------------------

TEST_P(cache_guard, shutdown_requests_a_stop_and_saves_as_its_argument_says) {
    run([&]() -> task<void> {
        for (const auto& [command, points, is_saved] : {std::tuple{"SHUTDOWN", "off", false},
                                                        {"SHUTDOWN SAVE", "off", true},
                                                        {"SHUTDOWN", "3600 1", true},
                                                        {"SHUTDOWN NOSAVE", "3600 1", false}}) {
            const temporary_folder folder;
            supervised one(unbound({{"dir", folder.path()}, {"save", points}, {"mode", "admin"}}));
            co_await one.start();
            talker client = co_await talker::to(one.cache->local());
            EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
            co_await client.say(std::string(command) + "\r\n");
            co_await until([&] { return one.above->stops == 1; });
            co_await one.cache->stop(1s);
            EXPECT_EQ(co_await client.rest(), "") << "no reply, as in Redis";
            EXPECT_EQ(std::filesystem::exists(folder.file("dump.rdb")), is_saved) << command;
        }
    });
}

TEST_P(cache_guard, shutdown_waits_until_replicas_have_everything) {
    run([&]() -> task<void> {
        supervised one(unbound({{"mode", "admin"}}));
        co_await one.start();
        talker replica = co_await silent_replica(one.cache->local());
        talker client = co_await talker::to(one.cache->local());
        talker writer = co_await talker::to(one.cache->local());
        talker other = co_await talker::to(one.cache->local());
        EXPECT_EQ(co_await ask(client, "SET k v"), "+OK");
        co_await client.say("SHUTDOWN\r\n");
        while (co_await replica.line() != "GETACK\r") {
        }
        co_await writer.say("SET k w\r\n");
        EXPECT_EQ(co_await ask(other, "GET k"), "$1");
        static_cast<void>(co_await other.line());
        EXPECT_EQ(co_await ask(other, "SHUTDOWN ABORT"), "+OK");
        EXPECT_EQ(co_await client.line(), "-ERR Errors trying to SHUTDOWN. Check logs.\r");
        EXPECT_EQ(co_await writer.line(), "+OK\r") << "writes go on";

        co_await client.say("SHUTDOWN\r\n");
        while (co_await replica.line() != "GETACK\r") {
        }
        EXPECT_EQ(one.above->stops, 0);
        co_await replica.say("REPLCONF ACK 1000000\r\n");
        co_await until([&] { return one.above->stops == 1; });
        EXPECT_FALSE(one.events.has("not acknowledged everything"));
        co_await one.cache->stop(0s);
    });
}

TEST_P(cache_guard, a_shutdown_that_is_given_up_saves_nothing) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        supervised one(unbound({{"dir", folder.path()}, {"save", "3600 1"}, {"mode", "admin"}}));
        co_await one.start();
        talker replica = co_await silent_replica(one.cache->local());
        talker client = co_await talker::to(one.cache->local());
        talker other = co_await talker::to(one.cache->local());
        EXPECT_EQ(co_await ask(client, "SET k v"), "+OK");
        co_await client.say("SHUTDOWN\r\n");
        while (co_await replica.line() != "GETACK\r") {
        }
        EXPECT_EQ(co_await ask(other, "SHUTDOWN ABORT"), "+OK");
        EXPECT_EQ(co_await client.line(), "-ERR Errors trying to SHUTDOWN. Check logs.\r");
        EXPECT_FALSE(std::filesystem::exists(folder.file("dump.rdb")));
        co_await one.cache->stop(0s);
    });
}

TEST_P(cache_guard, a_shutdown_that_fails_after_anothers_stop_holds_no_writes) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        supervised one(unbound({{"dir", folder.path()}, {"save", "3600 1"}, {"mode", "admin"}}));
        co_await one.start();
        talker replica = co_await silent_replica(one.cache->local());
        talker first = co_await talker::to(one.cache->local());
        talker second = co_await talker::to(one.cache->local());
        talker writer = co_await talker::to(one.cache->local());
        EXPECT_EQ(co_await ask(writer, "SET k v"), "+OK");
        co_await first.say("SHUTDOWN\r\n");
        while (co_await replica.line() != "GETACK\r") {
        }
        co_await second.say("SHUTDOWN NOW\r\n");
        co_await until([&] { return one.above->stops == 1; });
        co_await writer.say("SET k w\r\n");
        // The first one's save fails now, and so does the stop's.
        std::filesystem::remove(folder.file("dump.rdb"));
        std::filesystem::create_directories(folder.file("dump.rdb.tmp/in the way"));
        co_await replica.say("REPLCONF ACK 1000000\r\n");
        EXPECT_EQ(co_await first.line(), "-ERR Errors trying to SHUTDOWN. Check logs.\r");
        EXPECT_FALSE((co_await one.cache->prepare_stop(0s)).has_value());
        EXPECT_EQ(co_await second.line(), "-ERR Errors trying to SHUTDOWN. Check logs.\r");
        EXPECT_EQ(co_await writer.line(), "+OK\r") << "writes go on";
        EXPECT_EQ(co_await ask(writer, "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
        co_await one.cache->stop(0s);
    });
}

TEST_P(cache_guard, shutdown_now_waits_for_no_replica) {
    run([&]() -> task<void> {
        supervised one(unbound({{"mode", "admin"}}));
        co_await one.start();
        talker replica = co_await silent_replica(one.cache->local());
        talker client = co_await talker::to(one.cache->local());
        EXPECT_EQ(co_await ask(client, "SET k v"), "+OK");
        co_await client.say("SHUTDOWN NOW\r\n");
        co_await until([&] { return one.above->stops == 1; });
        EXPECT_FALSE(one.events.has("not acknowledged everything"));
        co_await one.cache->stop(0s);
    });
}

TEST_P(cache_guard, a_shutdown_that_cannot_save_is_refused_unless_forced) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        supervised one(unbound({{"dir", folder.path()}, {"save", "3600 1"}, {"mode", "admin"}}));
        co_await one.start();
        talker client = co_await talker::to(one.cache->local());
        EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
        std::filesystem::create_directories(folder.file("dump.rdb/in the way"));
        EXPECT_EQ(co_await ask(client, "SHUTDOWN"), "-ERR Errors trying to SHUTDOWN. Check logs.");
        EXPECT_TRUE(one.events.has("SHUTDOWN: "));
        EXPECT_EQ(one.above->stops, 0);
        EXPECT_EQ(co_await ask(client, "GET a"), "$1");
        EXPECT_EQ(co_await client.line(), "1\r");
        EXPECT_EQ(co_await ask(client, "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
        co_await client.say("SHUTDOWN FORCE\r\n");
        co_await until([&] { return one.above->stops == 1; });
        co_await one.cache->stop(1s);
    });
}

TEST_P(cache_guard, without_a_daemon_shutdown_and_rewrite_are_refused) {
    run([&]() -> task<void> {
        subject cache("cache", unbound({{"mode", "admin"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        EXPECT_THAT(co_await ask(client, "SHUTDOWN"), HasSubstr("eddy stop"));
        EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"),
                  "-ERR The server is running without a config file");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, config_rewrite_keeps_what_was_set_for_the_next_start) {
    run([&]() -> task<void> {
        json options = unbound({{"maxmemory", "1G"}, {"config", "hz 50"}});
        supervised one(options);
        co_await one.start();
        {
            talker client = co_await talker::to(one.cache->local());
            EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"), "+OK");
            EXPECT_EQ(one.above->kept, json({{"config", "hz 50"}}));
            EXPECT_EQ(
                co_await ask(client,
                             "CONFIG SET maxmemory 2gb maxmemory-policy allkeys-lru requirepass "
                             "\"a \\\"b\\\"\" slowlog-max-len 7 protected-mode no hz 10 "
                             "maxclients 100 timeout 90"),
                "+OK");
            EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"), "+OK");
            EXPECT_EQ(one.above->kept,
                      json({{"maxmemory", "2147483648"},
                            {"eviction", "allkeys-lru"},
                            {"protected_mode", "no"},
                            {"max_connections", "100"},
                            {"idle_timeout", "90"},
                            {"config", "requirepass \"a \\\"b\\\"\"; slowlog-max-len 7"}}));
            // Options that are set back are removed from the stored ones.
            EXPECT_EQ(co_await ask(client, "CONFIG SET maxmemory 1gb slowlog-max-len 128"), "+OK");
            EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"), "+OK");
            EXPECT_EQ(one.above->kept, json({{"maxmemory", "1073741824"},
                                             {"config", "requirepass \"a \\\"b\\\"\""}}));
            EXPECT_EQ(co_await ask(client, "CONFIG SET maxmemory 2gb slowlog-max-len 7"), "+OK");
            EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"), "+OK");
            EXPECT_EQ(one.above->kept,
                      json({{"maxmemory", "2147483648"},
                            {"config", "requirepass \"a \\\"b\\\"\"; slowlog-max-len 7"}}));
            one.above->refuses = true;
            EXPECT_EQ(co_await ask(client, "CONFIG REWRITE"),
                      "-ERR Rewriting config file: the state could not be saved");
        }
        co_await one.cache->stop(0s);
        options.merge_patch(
            {{"eviction", "allkeys-lru"}, {"protected_mode", "no"}, {"idle_timeout", "90"}});
        options.merge_patch(one.above->kept);
        supervised next(options);
        co_await next.start();
        {
            talker client = co_await talker::to(next.cache->local());
            EXPECT_EQ(co_await ask(client, "AUTH \"a \\\"b\\\"\""), "+OK");
            for (const auto& [name, value] :
                 {std::pair<std::string, std::string>{"maxmemory", "2147483648"},
                  {"maxmemory-policy", "allkeys-lru"},
                  {"slowlog-max-len", "7"},
                  {"timeout", "90"},
                  {"hz", "10"}}) {
                EXPECT_EQ(co_await ask(client, "CONFIG GET " + name), "*2");
                const std::string rest = "$" + std::to_string(name.size()) + "\r\n" + name +
                                         "\r\n$" + std::to_string(value.size()) + "\r\n" + value +
                                         "\r\n";
                EXPECT_EQ(co_await client.bytes(rest.size()), rest);
            }
        }
        co_await next.cache->stop(0s);
    });
}

// --- Functions in the dump file --------------------------------------------------------------

TEST_P(cache_guard, functions_are_kept_in_the_dump_file) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = unbound({{"dir", folder.path()}});
        subject cache("cache", options);
        co_await cache.start();
        const std::string large = "--" + std::string(300'000, 'x') + "\n";
        {
            talker client = co_await talker::to(cache->local());
            const std::string probe = co_await ask(client, "FUNCTION STATS");
            if (probe.starts_with("-ERR this eddy was built without")) {
                co_await cache->stop(0s);
                co_return;
            }
            // A new connection, without the rest of the reply.
            client = co_await talker::to(cache->local());
            for (const std::string name : {"one", "two"}) {
                const std::string code = "#!lua name=" + name + "\n" + large +
                                         "redis.register_function('" + name +
                                         "', function(keys, args) return args[1] end)";
                co_await client.say(encoded({"FUNCTION", "LOAD", code}));
                EXPECT_EQ(co_await client.line(), "$3\r");
                EXPECT_EQ(co_await client.line(), name + "\r");
            }
            EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
            // Keys that change during the snapshot are written behind the functions.
            co_await client.say("BGSAVE\r\nSET a 2\r\nSET b 3\r\n");
            EXPECT_EQ(co_await client.line(), "+Background saving started\r");
            EXPECT_EQ(co_await client.line(), "+OK\r");
            EXPECT_EQ(co_await client.line(), "+OK\r");
        }
        co_await cache->stop(1s);
        co_await cache.start();
        EXPECT_TRUE(cache.events.has("loaded 2 libraries of functions"));
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "FCALL two 0 hello"), "$5");
            EXPECT_EQ(co_await client.line(), "hello\r");
            EXPECT_EQ(co_await ask(client, "GET a"), "$1");
            EXPECT_EQ(co_await client.line(), "2\r");
        }
        co_await cache->stop(1s);
    });
}

// --- Clients that do their worst -------------------------------------------------------------

TEST_P(cache_guard, those_whose_buffers_are_largest_are_closed_beyond_the_limit) {
    run([&]() -> task<void> {
        subject cache("cache", unbound({{"maxmemory_clients", "4M"}}));
        co_await cache.start();
        talker small = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(small, "SET a 1"), "+OK");
        // A command that does not come to its end.
        talker sender = co_await talker::to(cache->local());
        talker spared = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(spared, "CLIENT NO-EVICT ON"), "+OK");
        co_await spared.say("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8000000\r\n" +
                            std::string(6'000'000, 'x'));
        (void)co_await sender.socket.write_all(std::string_view(
            "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8000000\r\n" + std::string(6'000'000, 'x')));
        EXPECT_EQ(co_await sender.rest(), "");
        EXPECT_EQ(co_await ask(small, "GET a"), "$1");
        EXPECT_EQ(co_await small.line(), "1\r");
        EXPECT_THAT(co_await ask_bulk(small, "INFO stats"), HasSubstr("evicted_clients:1\r\n"));
        co_await spared.say(std::string(2'000'000, 'x') + "\r\n");
        EXPECT_EQ(co_await spared.line(), "+OK\r");
        // Replies that are not read. The share that the kernel buffers varies.
        talker deaf = co_await talker::to(cache->local());
        for (int i = 0; i < 8; ++i) (void)co_await deaf.socket.write_all("GET b\r\n");
        co_await until([&] { return cache->count().connections_now == 2; });
        EXPECT_EQ(co_await ask(small, "PING"), "+PONG");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, info_shows_where_it_listens) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}});
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        EXPECT_THAT(co_await ask_bulk(client, "INFO server"),
                    HasSubstr("\r\nlistener0:name=tcp,bind=127.0.0.1,port=" +
                              std::to_string(cache->local().port()) + "\r\n"));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, a_unix_socket_and_its_clients_are_shown_by_its_path) {
    const temporary_folder folder;
    const std::string path = folder.file("s");
    run([&]() -> task<void> {
        subject cache("cache", {{"unix", path}});
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        EXPECT_THAT(co_await ask_bulk(client, "INFO server"),
                    HasSubstr("\r\nlistener1:name=unix,bind=" + path + "\r\n"));
        const std::string line = co_await ask_bulk(client, "CLIENT INFO");
        EXPECT_THAT(line, HasSubstr(" addr=" + path + ":0 laddr=" + path + ":0 "));
        EXPECT_THAT(line, HasSubstr(" flags=U "));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, a_delete_of_many_keys_takes_them_all) {
    run([&]() -> task<void> {
        subject cache("cache", unbound(json::object()));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        for (const int keys : {70, 1000}) {
            std::vector<std::string> names{"DEL"};
            std::string requests;
            for (int i = 0; i < keys; ++i) {
                names.push_back("key" + std::to_string(i));
                requests += "SET key" + std::to_string(i) + " x\r\n";
            }
            co_await client.say(requests);
            for (int i = 0; i < keys; ++i) EXPECT_EQ(co_await client.line(), "+OK\r");
            co_await client.say(encoded(names));
            EXPECT_EQ(co_await client.line(), ":" + std::to_string(keys) + "\r");
            EXPECT_EQ(co_await ask(client, "DBSIZE"), ":0");
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, a_large_value_survives_any_split) {
    run([&]() -> task<void> {
        subject cache("cache", unbound(json::object()));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        std::string value(600 * 1024, '\0');
        for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 131 >> 3);
        const std::string first = encoded({"ECHO", value});
        const std::string request = first + encoded({"ECHO", "next"});
        const std::string reply =
            "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n$4\r\nnext\r\n";
        // Around the ends of its parts, around those of buffers, and a stride through all of it.
        std::vector<std::size_t> splits;
        for (std::size_t i = 1; i < 40; ++i) {
            splits.push_back(i);
            splits.push_back(request.size() - i);
        }
        for (std::size_t at = 16 * 1024; at < request.size(); at += 64 * 1024) {
            for (const std::size_t near : {at - 1, at, at + 1}) splits.push_back(near);
        }
        for (std::size_t at = 7; at < request.size(); at += 20'011) splits.push_back(at);
        for (const std::size_t at : splits) {
            const std::uint64_t before = cache->count().bytes_in;
            co_await client.say(request.substr(0, at));
            // The bytes behind the first command may wait until its reply is taken.
            const std::size_t taken = std::min(at, first.size());
            co_await until([&] { return cache->count().bytes_in >= before + taken; });
            struct writing {
                static task<void> all(talker& to, std::string text) { co_await to.say(text); }
            };
            scope tasks(co_await current_source());
            tasks.spawn(writing::all(client, request.substr(at)));
            const std::string got = co_await client.bytes(reply.size());
            EXPECT_TRUE(got == reply) << "split at " << at;
            co_await tasks.join();
        }
        EXPECT_EQ(cache->count().errors, 0U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_guard, a_deep_pipeline_with_errors_inside_is_answered_in_order) {
    run([&]() -> task<void> {
        subject cache("cache", unbound(json::object()));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(client, "SET text x"), "+OK");
        std::string requests;
        std::string replies;
        for (int i = 0; i < 10'000; ++i) {
            switch (i % 5) {
                case 0:
                    requests += "INCR text\r\n";
                    replies += "-ERR value is not an integer or out of range\r\n";
                    break;
                case 1:
                    requests += "LPUSH text x\r\n";
                    replies +=
                        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
                    break;
                case 2:
                    requests += "INCR number\r\n";
                    replies += ":" + std::to_string(i / 5 + 1) + "\r\n";
                    break;
                case 3:
                    requests += "NOSUCH\r\n";
                    replies += "-ERR unknown command 'NOSUCH', with args beginning with: \r\n";
                    break;
                default:
                    requests += encoded({"ECHO", std::to_string(i)});
                    replies += "$" + std::to_string(std::to_string(i).size()) + "\r\n" +
                               std::to_string(i) + "\r\n";
            }
        }
        struct writing {
            static task<void> all(talker& to, std::string text) { co_await to.say(text); }
        };
        scope tasks(co_await current_source());
        tasks.spawn(writing::all(client, requests));
        EXPECT_EQ(co_await client.bytes(replies.size()), replies);
        co_await tasks.join();
        EXPECT_EQ(cache->count().errors, 6000U);
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
