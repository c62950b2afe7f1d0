// A cache that appends its changes to a file: crashes at any time, rewrites, damage, and clients
// that wait for the disk together.
#include <eddy/base/unique_fd.hpp>

#include "base/temporary_folder.hpp"
#include "runtime/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_BACKEND(cache_append);

json kept_in(const temporary_folder& folder, json more = json::object()) {
    json options = {{"port", 0},
                    {"dir", folder.path()},
                    {"save", "off"},
                    {"mode", "admin"},
                    {"appendonly", "yes"}};
    options.update(more);
    return options;
}

const json at_once = {{"appendfsync", "always"}};

std::string part(const temporary_folder& folder, int number) {
    return folder.file("appendonlydir/appendonly.aof." + std::to_string(number) + ".incr.aof");
}

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string encoded(const std::vector<std::string>& args) {
    std::string text = "*" + std::to_string(args.size()) + "\r\n";
    for (const std::string& arg : args)
        text += "$" + std::to_string(arg.size()) + "\r\n" + arg + "\r\n";
    return text;
}

task<std::string> line_of(talker& client) {
    std::string line = co_await client.line();
    if (line.ends_with('\r')) line.pop_back();
    co_return line;
}

/// One line to it, one line from it.
task<std::string> ask(talker& client, std::string command) {
    co_await client.say(command + "\r\n");
    co_return co_await line_of(client);
}

/// The value of a field of INFO.
task<std::string> info(talker& client, std::string section, std::string name) {
    const std::string head = co_await ask(client, "INFO " + section);
    if (!head.starts_with('$')) throw std::runtime_error("no bulk: " + head);
    const std::string all = co_await client.bytes(std::stoul(head.substr(1)) + 2);
    const std::size_t at = all.find("\n" + name + ":");
    if (at == std::string::npos) throw std::runtime_error("no field " + name);
    const std::size_t begin = at + name.size() + 2;
    co_return all.substr(begin, all.find('\r', begin) - begin);
}

task<std::string> info(talker& client, std::string name) {
    return info(client, "persistence", std::move(name));
}

task<void> until_rewritten(talker& client, int times) {
    while (co_await info(client, "aof_rewrites") != std::to_string(times) ||
           co_await info(client, "aof_rewrite_in_progress") != "0")
        must(co_await loop::current().sleep_for(1ms));
}

/// The names of the files, and which of them count.
std::string files_in(const temporary_folder& folder) {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.file("appendonlydir")))
        names.push_back(each.path().filename());
    std::ranges::sort(names);
    std::string all = content(folder.file("appendonlydir/appendonly.aof.manifest"));
    for (const std::string& each : names) all += each + '\n';
    return all;
}

/// What the folder would be after a crash now. Threads may rename and remove meanwhile: then it is
/// copied anew.
void copy(const temporary_folder& from, const temporary_folder& to) {
    for (;;) {
        std::filesystem::remove_all(to.file("appendonlydir"));
        std::error_code wrong;
        const std::string before = files_in(from);
        std::filesystem::copy(from.path(), to.path(), std::filesystem::copy_options::recursive,
                              wrong);
        if (!wrong && files_in(from) == before) return;
    }
}

/// Of the data that a cache finds there.
task<std::string> digest_in(const temporary_folder& folder) {
    subject cache("cache", kept_in(folder));
    co_await cache.start();
    std::string digest;
    {
        talker client = co_await talker::to(cache->local());
        digest = co_await ask(client, "DEBUG DIGEST");
    }
    co_await cache->stop(1s);
    co_return digest;
}

TEST_P(cache_append, what_its_commands_delete_is_freed_as_it_is_loaded) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject made("cache", kept_in(folder));
            co_await made.start();
            co_await made->stop(1s);
        }
        std::vector<std::string> push{"RPUSH", "big"};
        push.resize(5'000, "element-of-some-length");
        constexpr int rounds = 100;
        std::string all;
        for (int i = 0; i < rounds; ++i) all += encoded(push) + encoded({"DEL", "big"});
        write(part(folder, 1), all);
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "DBSIZE"), ":0");
            // A list of them takes some 120 KB.
            EXPECT_LT(std::stoul(co_await info(client, "memory", "used_memory_peak")),
                      rounds / 3 * 120'000U);
        }
        co_await cache->stop(1s);
    });
}

// --- What is there again ----------------------------------------------------------------------

TEST_P(cache_append, what_was_answered_is_there_after_a_crash_at_any_time) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            constexpr int rounds = 12;
            constexpr int commands = 60;
            for (int round = 0; round < rounds; ++round) {
                std::string batch;
                for (int i = 0; i < commands; ++i) {
                    const std::string n = std::to_string((round * 37 + i * 11) % 97);
                    switch (i % 4) {
                        case 0:
                            batch += "SET key" + n + " " + std::to_string(round) + "\r\n";
                            break;
                        case 1: batch += "RPUSH list" + n + " " + std::to_string(i) + "\r\n"; break;
                        case 2: batch += "INCR count\r\n"; break;
                        default: batch += "HSET hash f" + n + " " + std::to_string(round) + "\r\n";
                    }
                }
                // The rewrite goes on beside the next rounds.
                if (round % 3 == 1) batch += "BGREWRITEAOF\r\n";
                co_await client.say(batch);
                for (int i = 0; i < commands + (round % 3 == 1 ? 1 : 0); ++i)
                    static_cast<void>(co_await client.line());
                const temporary_folder crashed;
                copy(folder, crashed);
                const std::string digest = co_await ask(client, "DEBUG DIGEST");
                EXPECT_EQ(co_await digest_in(crashed), digest) << "round " << round;
            }
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, an_orderly_stop_writes_all_with_every_policy) {
    run([&]() -> task<void> {
        for (const char* const policy : {"always", "everysec", "no"}) {
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", policy}}));
            co_await cache.start();
            std::string digest;
            {
                talker client = co_await talker::to(cache->local());
                std::string batch;
                for (int i = 0; i < 300; ++i) batch += "SET key" + std::to_string(i) + " v\r\n";
                co_await client.say(batch);
                for (int i = 0; i < 300; ++i) EXPECT_EQ(co_await line_of(client), "+OK");
                EXPECT_EQ(co_await ask(client, "SELECT 3"), "+OK");
                EXPECT_EQ(co_await ask(client, "MULTI"), "+OK");
                EXPECT_EQ(co_await ask(client, "SADD s a b c"), "+QUEUED");
                EXPECT_EQ(co_await ask(client, "SPOP s"), "+QUEUED");
                EXPECT_EQ(co_await ask(client, "EXEC"), "*2");
                EXPECT_EQ(co_await line_of(client), ":3");
                EXPECT_EQ(co_await line_of(client), "$1");
                static_cast<void>(co_await line_of(client));
                digest = co_await ask(client, "DEBUG DIGEST");
            }
            co_await cache->stop(1s);
            EXPECT_EQ(co_await digest_in(folder), digest) << policy;
        }
    });
}

// proto-max-bulk-len is for what clients send.
TEST_P(cache_append, what_is_longer_than_clients_may_send_now_is_loaded) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SETRANGE base 1500000 x"), ":1500001");
            EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
            co_await until_rewritten(client, 2);
            EXPECT_EQ(co_await ask(client, "SETRANGE behind 1500000 x"), ":1500001");
            EXPECT_EQ(co_await ask(client, "SETBIT bits 12000007 1"), ":0");
            EXPECT_EQ(co_await ask(client, "BITFIELD fields SET u8 12000000 1"), "*1");
            EXPECT_EQ(co_await line_of(client), ":0");
            EXPECT_EQ(co_await ask(client, "COPY base copy"), ":1");
            EXPECT_EQ(co_await ask(client, "APPEND copy yy"), ":1500003");
            co_await cache->stop(1s);
        }
        subject again("cache", kept_in(folder, {{"config", "proto-max-bulk-len 1mb"}}));
        co_await again.start();
        {
            talker client = co_await talker::to(again->local());
            for (const char* const key : {"base", "behind", "bits", "fields"})
                EXPECT_EQ(co_await ask(client, std::string("STRLEN ") + key), ":1500001") << key;
            EXPECT_EQ(co_await ask(client, "STRLEN copy"), ":1500003");
        }
        co_await again->stop(1s);
        // An argument of more than half a gigabyte, as they may be with a higher limit, of which a
        // crash has left the beginning: an incomplete end, and no damage.
        std::string cut = content(part(folder, 2));
        write(part(folder, 2), cut + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000000\r\nbegin");
        co_await again.start();
        EXPECT_TRUE(again.events.has("were cut off"));
        co_await again->stop(1s);
    });
}

TEST_P(cache_append, functions_are_kept_by_a_rewrite) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            const std::string probe = co_await ask(client, "FUNCTION STATS");
            if (probe.starts_with("-ERR this eddy was built without")) {
                co_await cache->stop(0s);
                co_return;
            }
            client = co_await talker::to(cache->local());
            for (const std::string name : {"one", "two"}) {
                co_await client.say(
                    encoded({"FUNCTION", "LOAD",
                             "#!lua name=" + name + "\nredis.register_function('" + name +
                                 "', function(keys, args) return args[1] end)"}));
                EXPECT_EQ(co_await line_of(client), "$3");
                EXPECT_EQ(co_await line_of(client), name);
                if (name == "two") continue;
                EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
                co_await until_rewritten(client, 2);
            }
        }
        co_await cache->stop(1s);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            for (const std::string name : {"one", "two"}) {
                EXPECT_EQ(co_await ask(client, "FCALL " + name + " 0 hello"), "$5");
                EXPECT_EQ(co_await line_of(client), "hello");
            }
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, it_is_switched_off_and_on_while_clients_write) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        std::string digest;
        {
            talker client = co_await talker::to(cache->local());
            for (int round = 0; round < 4; ++round) {
                const std::string n = std::to_string(round);
                EXPECT_EQ(co_await ask(client, "SET before" + n + " 1"), "+OK");
                EXPECT_EQ(co_await ask(client, "CONFIG SET appendonly no"), "+OK");
                for (int i = 0; i < round * 5; ++i)
                    EXPECT_EQ(co_await ask(client, "APPEND off" + n + " 1"),
                              ":" + std::to_string(i + 1));
                EXPECT_EQ(co_await ask(client, "CONFIG SET appendonly yes"), "+OK");
                EXPECT_EQ(co_await ask(client, "SET after" + n + " 1"), "+OK");
                if (round % 2 == 0) continue;
                while (co_await info(client, "aof_enabled") != "1")
                    must(co_await loop::current().sleep_for(1ms));
            }
            while (co_await info(client, "aof_enabled") != "1" ||
                   co_await info(client, "aof_rewrite_in_progress") != "0")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(client, "SET last 1"), "+OK");
            digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// What a master sends at first is told to nobody as commands.
TEST_P(cache_append, a_masters_data_replaces_what_was_there) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject leader("cache", {{"port", 0}, {"mode", "admin"}}, "leader");
        co_await leader.start();
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        std::string digest;
        {
            talker above = co_await talker::to(leader->local());
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(above, "CONFIG SET repl-diskless-sync-delay 0"), "+OK");
            EXPECT_EQ(co_await ask(above, "SET mine 1"), "+OK");
            EXPECT_EQ(co_await ask(client, "SET old 1"), "+OK");
            EXPECT_THAT(co_await ask(client, "REPLICAOF 127.0.0.1 " +
                                                 std::to_string(leader->local().port())),
                        StartsWith("+OK"));
            // It may say that it loads.
            for (;;) {
                const std::string said = co_await ask(client, "EXISTS mine");
                if (said == ":1") break;
                must(co_await loop::current().sleep_for(1ms));
            }
            EXPECT_EQ(co_await ask(above, "SET next 1"), "+OK");
            while (co_await ask(client, "EXISTS next") != ":1")
                must(co_await loop::current().sleep_for(1ms));
            while (co_await info(client, "aof_enabled") != "1" ||
                   co_await info(client, "aof_rewrite_in_progress") != "0")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(client, "REPLICAOF NO ONE"), "+OK");
            EXPECT_EQ(co_await ask(client, "SET own 1"), "+OK");
            digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        co_await leader->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// The files are of before the copy until they are rewritten, and who leads may be a matter of
/// moments.
TEST_P(cache_append, what_a_copy_writes_once_it_leads_is_there_after_a_crash) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject leader("cache", {{"port", 0}, {"mode", "admin"}}, "leader");
        co_await leader.start();
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker above = co_await talker::to(leader->local());
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(above, "CONFIG SET repl-diskless-sync-delay 0"), "+OK");
            // Their image takes a while.
            EXPECT_THAT(co_await ask(above, "DEBUG POPULATE 50000 key 100"), StartsWith("+OK"));
            EXPECT_EQ(co_await ask(client, "SET old 1"), "+OK");
            EXPECT_THAT(co_await ask(client, "REPLICAOF 127.0.0.1 " +
                                                 std::to_string(leader->local().port())),
                        StartsWith("+OK"));
            while (co_await ask(client, "EXISTS key:49999") != ":1")
                must(co_await loop::current().sleep_for(1ms));
            co_await client.say("REPLICAOF NO ONE\r\nSET own 1\r\n");
            EXPECT_EQ(co_await line_of(client), "+OK");
            EXPECT_EQ(co_await line_of(client), "+OK");
            const std::string digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        co_await leader->stop(1s);
    });
}

// --- Waiting for the disk ---------------------------------------------------------------------

TEST_P(cache_append, no_reply_overtakes_its_change) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker plain = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            // Served by two tasks from now on.
            talker attentive = co_await talker::to(cache->local());
            co_await attentive.say("HELLO 3\r\nSUBSCRIBE news\r\nSET begun 1\r\n");
            while (co_await line_of(attentive) != "+OK") {
            }
            for (int i = 0; i < 50; ++i) {
                const std::string n = std::to_string(1000 + i);
                // All three wait for the same writes, or for different ones.
                co_await attentive.say("SET a" + n + " 1\r\n");
                co_await plain.say("SET p" + n + " 1\r\n");
                co_await other.say("RPUSH l" + n + " 1\r\nLPOP l" + n + "\r\nGET a" + n + "\r\n");
                EXPECT_EQ(co_await line_of(attentive), "+OK");
                EXPECT_THAT(content(part(folder, 1)), HasSubstr("a" + n));
                EXPECT_EQ(co_await line_of(plain), "+OK");
                EXPECT_THAT(content(part(folder, 1)), HasSubstr("p" + n));
                EXPECT_EQ(co_await line_of(other), ":1");
                EXPECT_THAT(content(part(folder, 1)), HasSubstr("l" + n));
                EXPECT_EQ(co_await line_of(other), "$1");
                EXPECT_EQ(co_await line_of(other), "1");
                if (co_await line_of(other) != "$-1") EXPECT_EQ(co_await line_of(other), "1");
            }
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, clients_that_write_at_once_share_a_sync) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        constexpr int clients = 30;
        constexpr int rounds = 20;
        {
            struct writing {
                static task<void> all(endpoint where, std::string key) {
                    talker client = co_await talker::to(where);
                    for (int i = 0; i < rounds; ++i)
                        EXPECT_EQ(co_await ask(client, "SET " + key + " 1"), "+OK");
                }
            };
            talker observer = co_await talker::to(cache->local());
            const int before = std::stoi(co_await info(observer, "aof_fsyncs"));
            scope tasks;
            for (int i = 0; i < clients; ++i)
                tasks.spawn(writing::all(cache->local(), "k" + std::to_string(i)));
            co_await tasks.join();
            const int syncs = std::stoi(co_await info(observer, "aof_fsyncs")) - before;
            EXPECT_GE(syncs, rounds) << "each waits for one of its own";
            EXPECT_LT(syncs, clients * rounds / 2);
        }
        co_await cache->stop(1s);
    });
}

/// A stop wakes those who wait, and what they were given meanwhile is in no list any more.
TEST_P(cache_append, what_is_given_at_a_stop_is_written_before_it_is_told) {
    run([&]() -> task<void> {
        struct reading {
            static task<void> all(talker& from) {
                static_cast<void>(co_await from.rest());
                from = talker();
            }
        };
        for (int turns = 0; turns < 24; ++turns) {
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, at_once));
            co_await cache.start();
            talker waiting = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            co_await waiting.say("BLPOP list 0\r\n");
            while (co_await info(other, "clients", "blocked_clients") != "1")
                must(co_await loop::current().sleep_for(1ms));
            // It goes on after the stop has begun, until the push at its end.
            std::string requests;
            for (int i = 0; i < 20; ++i) requests += encoded({"ECHO", std::string(40'000, 'x')});
            scope tasks;
            tasks.spawn(reading::all(other));
            co_await other.say(requests + encoded({"RPUSH", "list", "given"}));
            for (int i = 0; i < turns; ++i) co_await loop::current().yield();
            tasks.spawn(cache->stop(1s));
            if (const auto got = co_await waiting.socket.read()) {
                EXPECT_EQ(got->text(), encoded({"list", "given"}));
                EXPECT_THAT(content(part(folder, 1)), HasSubstr(encoded({"LPOP", "list"})));
            }
            waiting = talker();
            co_await tasks.join();
        }
    });
}

TEST_P(cache_append, all_who_wait_are_answered_whatever_the_others_do) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            constexpr int clients = 30;
            constexpr int rounds = 20;
            co_await with_scope([&](scope& all) -> task<void> {
                for (int which = 0; which < clients; ++which) {
                    all.spawn([](subject& to, int number) -> task<void> {
                        talker client = co_await talker::to(to->local());
                        const std::string n = std::to_string(number);
                        for (int i = 0; i < rounds; ++i) {
                            if (number % 5 == 1) {
                                // Waits for what the one before it pushes.
                                co_await client.say("BLPOP to" + n + " 0\r\n");
                                EXPECT_EQ(co_await line_of(client), "*2");
                                for (int lines = 0; lines < 4; ++lines)
                                    static_cast<void>(co_await line_of(client));
                            } else if (number % 5 == 0) {
                                const std::string next = std::to_string(number + 1);
                                EXPECT_THAT(co_await ask(client, "RPUSH to" + next + " x"),
                                            StartsWith(":"));
                            } else if (number % 5 == 2) {
                                // Leaves before it is answered.
                                co_await client.say("INCR left" + n + "\r\n");
                                client = co_await talker::to(to->local());
                            } else if (number % 5 == 3) {
                                co_await client.say("INCR c" + n + "\r\nINCR c" + n +
                                                    "\r\nPING\r\n");
                                EXPECT_EQ(co_await line_of(client),
                                          ":" + std::to_string(2 * i + 1));
                                EXPECT_EQ(co_await line_of(client),
                                          ":" + std::to_string(2 * i + 2));
                                EXPECT_EQ(co_await line_of(client), "+PONG");
                            } else {
                                EXPECT_EQ(co_await ask(client, "INCR e" + n),
                                          ":" + std::to_string(i + 1));
                            }
                        }
                    }(cache, which));
                }
                co_await all.join();
            });
        }
        std::string digest;
        {
            talker client = co_await talker::to(cache->local());
            digest = co_await ask(client, "DEBUG DIGEST");
        }
        co_await cache->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// While it lives there is no room on the disk for what is written to the file.
class full_disk {
public:
    explicit full_disk(const std::string& of) {
        for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const auto path = std::filesystem::read_symlink(each.path(), gone);
            if (!gone && path == of) fd_ = std::stoi(each.path().filename());
        }
        if (fd_ < 0) throw std::runtime_error(of + " is not open");
        const unique_fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
        kept_ = unique_fd(::dup(fd_));
        EXPECT_EQ(::dup2(full.get(), fd_), fd_);
    }
    ~full_disk() { EXPECT_EQ(::dup2(kept_.get(), fd_), fd_); }
    full_disk(const full_disk&) = delete;
    full_disk& operator=(const full_disk&) = delete;

private:
    int fd_ = -1;
    unique_fd kept_;
};

/// It is served at once, but hears of it when all before has been sent, and the disk has refused by
/// then.
TEST_P(cache_append, who_was_given_what_the_disk_refused_is_not_told) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker waiting = co_await talker::to(cache->local());
            talker giving = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            co_await waiting.say("HELLO 3\r\nSUBSCRIBE news\r\nBLPOP list 0\r\nQUIT\r\n");
            while (co_await info(other, "clients", "blocked_clients") != "1")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(other, "SET before 1"), "+OK");
            // More than a connection takes of itself.
            const std::string news(20'000'000, 'n');
            co_await giving.say(encoded({"PUBLISH", "news", news}));
            EXPECT_EQ(co_await line_of(giving), ":1");
            // They are on their way.
            while (co_await line_of(waiting) != "$20000000") {
            }
            {
                const full_disk refusing(part(folder, 1));
                co_await giving.say("RPUSH list given\r\n");
                EXPECT_EQ(co_await giving.rest(), "");
                EXPECT_THAT(co_await ask(other, "SET after 1"), StartsWith("-MISCONF"));
                const std::string told = co_await waiting.rest();
                EXPECT_TRUE(told.contains(news));
                EXPECT_FALSE(told.contains("given"));
            }
            while (co_await ask(other, "SET after 1") != "+OK")
                must(co_await loop::current().sleep_for(1ms));
        }
        co_await cache->stop(1s);
    });
}

/// One transaction may be larger than what may wait; whoever sent it waits until it is written.
TEST_P(cache_append, a_value_beyond_the_limit_of_what_waits_is_written) {
    if (GetParam() != backend_kind::sim) GTEST_SKIP() << "64 MiB are a lot where time is real";
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"appendfsync", "no"}}));
        co_await cache.start();
        constexpr std::size_t size = (64U << 20) + 12345;
        {
            talker client = co_await talker::to(cache->local());
            co_await client.say("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$" + std::to_string(size) +
                                "\r\n");
            const std::string piece(1U << 20, 'x');
            for (std::size_t left = size; left > 0; left -= std::min(left, piece.size()))
                co_await client.say(piece.substr(0, std::min(left, piece.size())));
            co_await client.say("\r\nSET small 1\r\n");
            EXPECT_EQ(co_await line_of(client), "+OK");
            EXPECT_EQ(co_await line_of(client), "+OK");
        }
        co_await cache->stop(1s);
        EXPECT_GT(std::filesystem::file_size(part(folder, 1)), size);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "STRLEN big"), ":" + std::to_string(size));
            EXPECT_EQ(co_await ask(client, "EXISTS small"), ":1");
        }
        co_await cache->stop(1s);
    });
}

// --- Damage -----------------------------------------------------------------------------------

TEST_P(cache_append, a_file_that_ends_at_any_byte_gives_its_whole_commands) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::vector<std::string> commands = {
            encoded({"SELECT", "0"}), encoded({"SET", "a", "1"}), encoded({"INCR", "a"}),
            encoded({"MULTI"}),       encoded({"INCR", "a"}),     encoded({"INCR", "a"}),
            encoded({"EXEC"}),        encoded({"INCR", "a"})};
        // What `a` is behind each of them; a transaction counts when it is whole.
        const std::vector<std::string> values = {"", "1", "2", "2", "2", "2", "4", "5"};
        const std::vector<bool> ends = {true, true, true, false, false, false, true, true};
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        std::string all;
        for (const std::string& each : commands) all += each;
        for (std::size_t size = 0; size <= all.size(); ++size) {
            write(part(folder, 1), all.substr(0, size));
            std::size_t whole = 0;
            std::size_t end = 0;
            std::string value;
            std::size_t at = 0;
            for (std::size_t i = 0; i < commands.size(); ++i) {
                at += commands[i].size();
                if (at > size) break;
                whole = i;
                if (!ends[i]) continue;
                end = at;
                value = values[i];
            }
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            EXPECT_EQ(std::filesystem::file_size(part(folder, 1)), end) << size;
            EXPECT_EQ(cache.events.has("were cut off"), end != size) << size << " " << whole;
            {
                talker client = co_await talker::to(cache->local());
                if (value.empty()) {
                    EXPECT_EQ(co_await ask(client, "GET a"), "$-1") << size;
                } else {
                    EXPECT_EQ(co_await ask(client, "GET a"), "$1") << size;
                    EXPECT_EQ(co_await line_of(client), value) << size;
                }
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append, damage_is_told_with_its_place_and_left_alone) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                for (int i = 0; i < 50; ++i)
                    EXPECT_EQ(co_await ask(client, "SET key" + std::to_string(i) + " 1"), "+OK");
            }
            co_await cache->stop(1s);
        }
        const auto refusal = [&]() -> task<std::string> {
            subject cache("cache", kept_in(folder));
            co_return co_await cache.failure_to_start();
        };
        const std::string good = content(part(folder, 1));
        const std::string one = encoded({"SET", "key7", "1"});
        const std::size_t place = good.find(one);
        if (place == std::string::npos) throw std::runtime_error("no such command");
        std::string bad = good;
        bad[place] = '!';
        write(part(folder, 1), bad);
        EXPECT_THAT(co_await refusal(),
                    AllOf(HasSubstr(part(folder, 1)), HasSubstr("byte " + std::to_string(place))));
        EXPECT_EQ(content(part(folder, 1)), bad);
        bad = good;
        bad.replace(place, one.size(), encoded({"SOT", "key7", "1"}));
        write(part(folder, 1), bad);
        EXPECT_THAT(co_await refusal(), HasSubstr("unknown command 'SOT'"));
        EXPECT_EQ(content(part(folder, 1)), bad);
        // Only the last part that anything was appended to may end early.
        write(part(folder, 1), good.substr(0, good.size() - 3));
        write(part(folder, 2), one);
        const std::string list = folder.file("appendonlydir/appendonly.aof.manifest");
        const std::string names = content(list);
        write(list, names + "file appendonly.aof.2.incr.aof seq 2 type i\n");
        EXPECT_THAT(co_await refusal(), HasSubstr("it ends within a command"));
        write(list, names + "file appendonly.aof.1.incr.aof seq 1 type h\n");
        EXPECT_THAT(co_await refusal(), HasSubstr("for the second time"));
        EXPECT_EQ(content(part(folder, 1)), good.substr(0, good.size() - 3));
        write(list, names + "file nonsense\n");
        EXPECT_THAT(co_await refusal(), HasSubstr("its line 3"));
        write(list, names);
        std::filesystem::remove(folder.file("appendonlydir/appendonly.aof.1.base.rdb"));
        EXPECT_THAT(co_await refusal(), HasSubstr("appendonly.aof.1.base.rdb"));
    });
}

// A rewrite begins with the next part, to which nothing is appended before its image has begun.
TEST_P(cache_append, a_crash_while_a_rewrite_begins_loses_no_whole_command) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        const std::string list = folder.file("appendonlydir/appendonly.aof.manifest");
        write(list, content(list) + "file appendonly.aof.2.incr.aof seq 2 type i\n");
        write(part(folder, 1), encoded({"SET", "a", "1"}) + "*2\r\n$4\r\nINC");
        write(part(folder, 2), "");
        for (const std::string_view expected : {":2", ":3"}) {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            EXPECT_EQ(cache.events.has("were cut off"), expected == ":2");
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_EQ(co_await ask(client, "INCR a"), expected);
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append, a_script_that_takes_its_time_is_followed_by_the_rest) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = kept_in(folder, {{"config", "busy-reply-threshold 1"}});
        {
            subject cache("cache", options);
            co_await cache.start();
            const bool has_scripts = co_await [](endpoint at) -> task<bool> {
                talker client = co_await talker::to(at);
                co_return (co_await ask(client, "EVAL 'return 1' 0")) == ":1";
            }(cache->local());
            co_await cache->stop(1s);
            if (!has_scripts) co_return;
        }
        write(part(folder, 1), encoded({"EVAL",
                                        "local i = 0 while i < 3e7 do i = i + 1 end "
                                        "return redis.call('SET', 'a', '1')",
                                        "0"}) +
                                   encoded({"INCR", "a"}));
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "INCR a"), ":3");
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, a_file_with_a_command_that_waits_is_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        write(part(folder, 1), encoded({"WAIT", "1", "0"}) + encoded({"SET", "a", "1"}));
        subject cache("cache", kept_in(folder));
        EXPECT_THAT(co_await cache.failure_to_start(),
                    HasSubstr("it has 'wait', which no server writes there"));
    });
}

/// Redis 6 and older have one file beside the dump file.
TEST_P(cache_append, the_single_file_of_an_older_redis_is_taken_over) {
    run([&]() -> task<void> {
        for (const bool is_cut : {false, true}) {
            const temporary_folder folder;
            const std::string old = folder.file("appendonly.aof");
            write(old, encoded({"SELECT", "0"}) + encoded({"SET", "a", "1"}) +
                           encoded({"RPUSH", "list", "1", "2"}));
            if (is_cut) {
                // The list names it, and the crash came before it was moved.
                std::filesystem::create_directory(folder.file("appendonlydir"));
                write(folder.file("appendonlydir/appendonly.aof.manifest"),
                      "file appendonly.aof seq 1 type b\n");
            }
            for (int start = 0; start < 2; ++start) {
                subject cache("cache", kept_in(folder, at_once));
                co_await cache.start();
                {
                    talker client = co_await talker::to(cache->local());
                    EXPECT_EQ(co_await ask(client, "STRLEN a"), ":1");
                    EXPECT_EQ(co_await ask(client, "LLEN list"), ":" + std::to_string(2 + start));
                    EXPECT_EQ(co_await ask(client, "RPUSH list more"),
                              ":" + std::to_string(3 + start));
                }
                co_await cache->stop(1s);
                EXPECT_FALSE(std::filesystem::exists(old));
                EXPECT_TRUE(std::filesystem::exists(folder.file("appendonlydir/appendonly.aof")));
            }
            // A rewrite ends it.
            subject cache("cache", kept_in(folder, at_once));
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
                co_await until_rewritten(client, 1);
                EXPECT_EQ(co_await ask(client, "LLEN list"), ":4");
            }
            co_await cache->stop(1s);
            EXPECT_FALSE(std::filesystem::exists(folder.file("appendonlydir/appendonly.aof")));
        }
    });
}

TEST_P(cache_append, two_caches_do_not_share_a_folder) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        subject other("cache", kept_in(folder), "other");
        EXPECT_THAT(co_await other.failure_to_start(), HasSubstr("in use by another cache"));
        co_await cache->stop(1s);
        co_await other.start();
        co_await other->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
