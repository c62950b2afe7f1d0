// A cache with hooks: scripts on real threads, so not on the simulator.
#include <eddy/io/scope.hpp>

#include "base/files/temporary_folder.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/testing.hpp"
#include "runtime/type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_hooks);

/// A folder with a script, whose global FOLDER names it. Its backend is a file a key.
class backend {
public:
    explicit backend(std::string_view script) { replace(script); }
    /// Another script, with the same functions in front.
    void replace(std::string_view script) const {
        std::ofstream file(folder.file("hooks.lua"));
        file << "FOLDER = '" << folder.path() << "/'\n" << usual << script;
    }
    /// One with nothing in front.
    void replace_all(std::string_view script) const {
        std::ofstream(folder.file("hooks.lua")) << script;
    }
    json options(json more = json::object()) const {
        // A test of the deadline sets it; no other one depends on how fast the machine is.
        json chosen = {{"port", 0}, {"hooks", folder.file("hooks.lua")}, {"hook_deadline", "1m"}};
        chosen.update(more);
        return chosen;
    }
    void put(const std::string& key, const std::string& value) const {
        std::ofstream(folder.file("key-" + key + ".new")) << value;
        std::filesystem::rename(folder.file("key-" + key + ".new"), folder.file("key-" + key));
    }
    std::string get(const std::string& key) const {
        std::ifstream file(folder.file("key-" + key));
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void touch(const std::string& name) const { std::ofstream(folder.file(name)) << "x"; }
    void remove(const std::string& name) const { std::filesystem::remove(folder.file(name)); }
    std::size_t lines(const std::string& name) const {
        std::ifstream file(folder.file(name));
        std::size_t count = 0;
        for (std::string line; std::getline(file, line);) ++count;
        return count;
    }

    temporary_folder folder;

private:
    static constexpr std::string_view usual = R"(
        function there(name)
            local f = io.open(FOLDER .. name) if f then f:close() end return f ~= nil
        end
        function note(name, line)
            local f = assert(io.open(FOLDER .. name, 'a')) f:write(line, '\n') f:close()
        end
        -- Blocks as a backend that does not answer would, without using the processor.
        function block(name) while there(name) do os.execute('sleep 0.02') end end
        function read(key)
            local f = io.open(FOLDER .. 'key-' .. key)
            if not f then return nil end
            local value = f:read('*a') f:close() return value
        end
        function write(key, value)
            if there('down') then error('the backend is down', 0) end
            local name = FOLDER .. 'key-' .. key
            local f = assert(io.open(name .. '.lua', 'w')) f:write(value) f:close()
            assert(os.rename(name .. '.lua', name))
        end
        function delete(key)
            if there('down') then error('the backend is down', 0) end
            os.remove(FOLDER .. 'key-' .. key)
        end
    )";
};

task<std::string> value_of(talker& client, std::string request) {
    co_await client.say(request + "\r\n");
    std::string line = co_await client.line();
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with('$') && line != "$-1") {
        line = co_await client.line();
        line.pop_back();
    }
    co_return line;
}

double counted(subject& of, std::string_view name) { return sample_of(*of, name).value_or(-1); }

TEST_P(cache_hooks, misses_are_read_and_changes_are_written) {
    run([&]() -> task<void> {
        const backend store(
            "on_miss, on_write, on_delete = read, write, delete\n"
            "function on_expire(key) note('expired', key) end");
        store.put("a", "one");
        subject cache("cache", store.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "GET a"), "one");
        EXPECT_EQ(co_await value_of(c, "GET a"), "one");
        EXPECT_EQ(counted(cache, "hook_misses_total"), 1);
        EXPECT_EQ(co_await value_of(c, "GET b"), "$-1");
        EXPECT_EQ(co_await value_of(c, "SET b two"), "+OK");
        co_await until([&] { return store.get("b") == "two"; });
        EXPECT_EQ(co_await value_of(c, "DEL a"), ":1");
        co_await until([&] { return store.get("a").empty(); });
        EXPECT_EQ(co_await value_of(c, "SET e 1 PX 1"), "+OK");
        co_await until([&] { return store.lines("expired") == 1; });
        co_await until([&] { return counted(cache, "hook_queued_keys") == 0; });
        EXPECT_EQ(counted(cache, "hook_lost_total"), 0);
        co_await cache->stop(1s);
        co_await cache.start();
        talker again = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(again, "GET b"), "two");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, others_are_served_while_the_backend_blocks) {
    run([&]() -> task<void> {
        const backend store(
            "function on_miss(key) note('asked', key) block('slow') return 'v' end");
        store.touch("slow");
        subject cache("cache", store.options({{"hook_deadline", "1h"}}));
        co_await cache.start();
        std::vector<talker> waiting;
        for (int i = 0; i < 20; ++i) {
            waiting.push_back(co_await talker::to(cache->local()));
            co_await waiting.back().say("GET a\r\nPING\r\n");
        }
        co_await until([&] { return counted(cache, "hook_waiting_clients") == 20; });
        talker c = co_await talker::to(cache->local());
        for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await value_of(c, "SET b 1"), "+OK");
        EXPECT_EQ(counted(cache, "hook_waiting_misses"), 1);
        store.remove("slow");
        for (talker& each : waiting) {
            EXPECT_EQ(co_await each.line(), "$1\r");
            EXPECT_EQ(co_await each.line(), "v\r");
            EXPECT_EQ(co_await each.line(), "+PONG\r");
        }
        EXPECT_EQ(store.lines("asked"), 1);
        EXPECT_EQ(counted(cache, "hook_misses_joined_total"), 19);
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_deadline_ends_the_wait) {
    run([&]() -> task<void> {
        const backend store("function on_miss(key) block('slow') return 'late' end");
        store.touch("slow");
        subject cache("cache", store.options({{"hook_deadline", "2s"}, {"hook_fallback", "nil"}}));
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "GET a"), "$-1");
        EXPECT_EQ(counted(cache, "hook_timeouts_total"), 1);
        EXPECT_EQ(counted(cache, "hook_waiting_clients"), 0);
        store.remove("slow");
        co_await until([&] { return counted(cache, "hook_misses_total") == 1; });
        EXPECT_EQ(co_await value_of(c, "GET a"), "late");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_client_that_leaves_and_a_stop_end_waits) {
    run([&]() -> task<void> {
        const backend store("function on_miss(key) block('slow') return 'v' end");
        store.touch("slow");
        subject cache("cache", store.options({{"hook_deadline", "1h"}}));
        co_await cache.start();
        {
            talker gone = co_await talker::to(cache->local());
            co_await gone.say("GET a\r\n");
            co_await until([&] { return counted(cache, "hook_waiting_clients") == 1; });
        }
        co_await until([&] { return counted(cache, "hook_waiting_clients") == 0; });
        co_await until([&] { return cache->count().connections_now == 0; });
        talker c = co_await talker::to(cache->local());
        co_await c.say("MGET a b c d\r\n");
        co_await until([&] { return counted(cache, "hook_waiting_clients") == 1; });
        co_await cache->stop(1h);
        EXPECT_TRUE(cache.events.has("still run the script"));
        store.remove("slow");
    });
}

TEST_P(cache_hooks, a_failing_backend_is_tried_again) {
    run([&]() -> task<void> {
        const backend store("on_write, on_delete = write, delete");
        store.touch("down");
        subject cache("cache", store.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "SET a 1"), "+OK");
        EXPECT_EQ(co_await value_of(c, "SET b 1"), "+OK");
        co_await until([&] { return counted(cache, "hook_retries_total") >= 4; });
        EXPECT_TRUE(cache.events.has("hooks: failed: the backend is down"));
        EXPECT_EQ(co_await value_of(c, "SET a 2"), "+OK");
        EXPECT_EQ(co_await value_of(c, "DEL b"), ":1");
        store.remove("down");
        co_await until([&] { return counted(cache, "hook_queued_keys") == 0; });
        EXPECT_EQ(store.get("a"), "2");
        EXPECT_EQ(store.get("b"), "");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_stop_writes_what_is_queued_or_says_what_is_lost) {
    run([&]() -> task<void> {
        const backend store("on_write = write");
        subject cache("cache", store.options({{"hook_flush", "1m"}}));
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        for (int i = 0; i < 200; ++i)
            EXPECT_EQ(co_await value_of(c, "SET k" + std::to_string(i) + " v"), "+OK");
        co_await cache->stop(1s);
        for (int i = 0; i < 200; ++i) EXPECT_EQ(store.get("k" + std::to_string(i)), "v") << i;
        EXPECT_FALSE(cache.events.has("are lost"));

        store.touch("down");
        subject other("cache", store.options({{"hook_flush", "100ms"}}));
        co_await other.start();
        talker d = co_await talker::to(other->local());
        for (int i = 0; i < 7; ++i)
            EXPECT_EQ(co_await value_of(d, "SET lost" + std::to_string(i) + " v"), "+OK");
        co_await other->stop(1s);
        EXPECT_TRUE(other.events.has("hooks: 7 changes were not passed to the script"));
    });
}

TEST_P(cache_hooks, a_script_may_fail_in_any_way) {
    run([&]() -> task<void> {
        const backend store(R"(
            function on_miss(key)
                if key == 'memory' then return ('x'):rep(1e9) end
                if key == 'object' then error({}) end
                if key == 'exit' then os.exit(1) end
                if key == 'print' then for i = 1, 3000 do print('line', i) end end
                return 'fine'
            end)");
        subject cache("cache", store.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_THAT(co_await value_of(c, "GET memory"), StartsWith("-ERR on_miss failed"));
        EXPECT_THAT(co_await value_of(c, "GET object"), StartsWith("-ERR on_miss failed"));
        EXPECT_THAT(co_await value_of(c, "GET exit"), StartsWith("-ERR on_miss failed"));
        EXPECT_EQ(co_await value_of(c, "GET print"), "fine");
        EXPECT_TRUE(cache.events.has("not enough memory"));
        EXPECT_TRUE(cache.events.has("no text but of type table"));
        EXPECT_TRUE(cache.events.has("hooks.lua:"));
        EXPECT_LT(cache.events.lines.size(), 100);
        EXPECT_EQ(co_await value_of(c, "GET other"), "fine");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, each_callback_may_fail_and_the_next_call_does_not) {
    run([&]() -> task<void> {
        for (const auto& [statements, why] :
             {std::pair("error('spoilt')", "spoilt"),
              std::pair("return ('x'):rep(1e9)", "not enough memory"),
              std::pair("local function f() return (('x'):gsub('x', f)) end f()", "overflow"),
              std::pair("coroutine.yield(1)", "attempt to yield")}) {
            const backend store(
                "local bad = {on_miss = true, on_write = true, on_delete = true, on_expire = "
                "true}\n"
                "local function trap(name)\n"
                "    if not bad[name] then return end\n"
                "    bad[name] = nil " +
                std::string(statements) +
                "\nend\n"
                "function on_miss() trap('on_miss') return 'v' end\n"
                "function on_write() trap('on_write') end\n"
                "function on_delete() trap('on_delete') end\n"
                "function on_expire() trap('on_expire') end");
            subject cache("cache", store.options({{"hook_threads", 1}}));
            co_await cache.start();
            talker c = co_await talker::to(cache->local());
            EXPECT_THAT(co_await value_of(c, "GET a"), StartsWith("-ERR on_miss failed"));
            EXPECT_EQ(co_await value_of(c, "GET a"), "v");
            double failed = 1;
            for (const char* const change : {"SET b 1", "DEL b", "SET c 1 PX 1"}) {
                co_await c.say(std::string(change) + "\r\n");
                static_cast<void>(co_await c.line());
                ++failed;
                co_await until([&] { return counted(cache, "hook_errors_total") == failed; });
                co_await until([&] { return counted(cache, "hook_queued_keys") == 0; });
            }
            EXPECT_TRUE(cache.events.has(why)) << why;
            EXPECT_EQ(counted(cache, "hook_lost_total"), 0);
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_hooks, a_script_that_does_not_return_is_stopped) {
    run([&]() -> task<void> {
        const backend store(R"(
            function on_miss(key)
                if key == 'loop' then while true do pcall(function() while true do end end) end end
                return 'fine'
            end)");
        subject cache("cache", store.options({{"hook_threads", 1}, {"hook_deadline", "100ms"}}));
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        constexpr std::string_view late = "-ERR on_miss did not answer in time";
        EXPECT_THAT(co_await value_of(c, "GET loop"), StartsWith(late));
        co_await until([&] { return cache.events.has("it took longer than it may"); });
        // Its thread serves the next call. A machine with other work may be late within this
        // deadline.
        std::string reply;
        while ((reply = co_await value_of(c, "GET other")).starts_with(late)) {
        }
        EXPECT_EQ(reply, "fine");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_bad_script_does_not_start) {
    run([&]() -> task<void> {
        const auto failure = [](std::string_view script) -> task<std::string> {
            const backend store(script);
            subject cache("cache", store.options());
            co_return co_await cache.failure_to_start();
        };
        EXPECT_THAT(co_await failure("function on_miss("), HasSubstr("hooks.lua:"));
        EXPECT_THAT(co_await failure("error('no backend')"), HasSubstr("no backend"));
        EXPECT_THAT(co_await failure("other = read"), HasSubstr("defines none of on_miss"));
        EXPECT_THAT(co_await failure("on_mis = read"),
                    HasSubstr("there is no callback on_mis; did you mean on_miss?"));
        subject absent("cache", {{"port", 0}, {"hooks", "/nowhere/hooks.lua"}});
        EXPECT_THAT(co_await absent.failure_to_start(), HasSubstr("cannot be read"));
        subject relative("cache", {{"port", 0}, {"hooks", "hooks.lua"}});
        EXPECT_THAT(co_await relative.failure_to_start(), HasSubstr("write the whole path"));
        subject alone("cache", {{"port", 0}, {"hook_threads", 3}});
        EXPECT_THAT(co_await alone.failure_to_start(), HasSubstr("without --hooks FILE"));
    });
}

TEST_P(cache_hooks, a_script_with_names_that_there_are_not_is_refused) {
    run([&]() -> task<void> {
        const backend store("function on_miss() return 'old' end");
        subject cache("cache", store.options());
        co_await cache.start();
        const auto message = [](const auto& done) {
            return done ? std::string() : done.error().message;
        };
        for (const auto& [script, fault] :
             {std::pair(
                  "function on_miss() end\nfunction on_wrte() end",
                  "--hooks: hooks.lua:2: there is no callback on_wrte; did you mean on_write?"),
              std::pair("function on_miss()\n self.lgo('x')\nend",
                        "--hooks: hooks.lua:2: there is no function self.lgo; did you mean "
                        "self.log?"),
              std::pair("function on_miss() return eddy.cache('c'):get('x') end",
                        "--hooks: hooks.lua:1: there is no function eddy.cache")}) {
            store.replace_all(script);
            const auto checked = find_type("cache")->check_files(cache.parse(store.options()));
            EXPECT_EQ(message(checked), fault);
            EXPECT_EQ(message(co_await cache->reload_script()), fault);
            EXPECT_EQ(message(co_await cache->reread()), fault);
            auto next = cache.parse(store.options({{"max_queue", "2MiB"}}));
            EXPECT_EQ(message(co_await cache->check_restart(std::move(next), false)), fault);
        }
        store.replace_all("function on_miss(");
        EXPECT_THAT(message(find_type("cache")->check_files(cache.parse(store.options()))),
                    HasSubstr("hooks.lua:1: "));
        store.remove("hooks.lua");
        EXPECT_THAT(message(find_type("cache")->check_files(cache.parse(store.options()))),
                    HasSubstr("cannot be read"));
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "GET a"), "old");
        // Names of other types' callbacks are known: a script may be for several.
        store.replace_all("function on_miss() return 'new' end function on_message() end");
        must_do(co_await cache->reload_script());
        EXPECT_EQ(co_await value_of(c, "GET b"), "new");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_cache_is_degraded_while_its_script_only_fails) {
    run([&]() -> task<void> {
        const backend store(
            "function on_miss(key)\n"
            "    if there('down') then error('the backend is down', 0) end\n"
            "    return 'v'\n"
            "end");
        subject cache("cache", store.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        store.touch("down");
        const auto fail_once = [&](std::uint64_t key) -> task<void> {
            EXPECT_THAT(co_await value_of(c, "GET k" + std::to_string(key)),
                        StartsWith("-ERR on_miss failed"));
        };
        for (int round = 0; round < 2; ++round) {
            for (std::uint64_t i = 0; i < script_errors_until_degraded; ++i) {
                EXPECT_EQ(cache->fault(), "");
                co_await fail_once(i);
            }
            EXPECT_THAT(cache->fault(), HasSubstr("the last 10 calls of its script failed"));
            if (round == 0) {
                store.remove("down");
                EXPECT_EQ(co_await value_of(c, "GET back"), "v");
                EXPECT_EQ(cache->fault(), "");
                store.touch("down");
            } else {
                must_do(co_await cache->reload_script());
                EXPECT_EQ(cache->fault(), "") << "the script is another one";
            }
        }
        co_await cache->stop(1s);
        EXPECT_EQ(cache->fault(), "");
    });
}

TEST_P(cache_hooks, a_script_logs_by_the_functions_of_other_types) {
    run([&]() -> task<void> {
        const backend store("");
        // The first line names an interpreter, and counts.
        store.replace_all(R"(#!/usr/bin/lua
            function on_miss(key)
                if key == 'wrong' then self.log('loud', 'x') end
                if key == 'nothing' then eddy.log({}) end
                self.log('asked for ' .. key)
                eddy.log('warn', key)
                socketley.log('info', 5)
                print(self.type, type(self.name), self.state)
                return 'fine'
            end)");
        subject cache("cache", store.options());
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "GET a"), "fine");
        for (const std::string_view line :
             {"hooks: asked for a", "hooks: warn: a", "hooks: 5", "hooks: cache string running"})
            EXPECT_TRUE(cache.events.has(line)) << line;
        EXPECT_THAT(co_await value_of(c, "GET wrong"), StartsWith("-ERR on_miss failed"));
        EXPECT_TRUE(cache.events.has("hooks.lua:3: log() knows the levels"));
        EXPECT_THAT(co_await value_of(c, "GET nothing"), StartsWith("-ERR on_miss failed"));
        EXPECT_TRUE(cache.events.has("hooks.lua:4: log() takes a text, or a level and a text"));
        store.replace_all(
            "\xef\xbb\xbf"
            "function on_miss() return self.name end");
        must_do(co_await cache->reload_script());
        EXPECT_THAT(co_await value_of(c, "GET b"), ::testing::Not(StartsWith("-")));
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, an_edit_is_refused_while_the_script_cannot_be_loaded) {
    run([&]() -> task<void> {
        const backend store(
            "if there('down') then error('no database', 0) end\n"
            "if not there('empty') then on_miss = read end");
        subject cache("cache", store.options());
        co_await cache.start();
        const auto failure = [&]() -> task<std::string> {
            auto next = cache.parse(store.options({{"max_queue", "2MiB"}}));
            const auto good = co_await cache->check_restart(std::move(next), false);
            co_return good ? "" : good.error().message;
        };
        EXPECT_EQ(co_await failure(), "");
        store.touch("down");
        EXPECT_THAT(co_await failure(), HasSubstr("no database"));
        store.remove("down");
        store.touch("empty");
        EXPECT_THAT(co_await failure(), HasSubstr("defines none of on_miss"));
        store.put("a", "one");
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "GET a"), "one") << "it serves with the script of before";
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, a_stop_ends_the_trial_of_a_script_that_hangs) {
    run([&]() -> task<void> {
        const backend store(
            "if there('slow') then note('hangs', 'x') block('slow') end on_miss = read");
        subject cache("cache", store.options());
        co_await cache.start();
        store.touch("slow");
        scope tasks;
        std::string message;
        tasks.spawn([](subject& of, json options, std::string& to) -> task<void> {
            const auto good = co_await of->check_restart(of.parse(options), false);
            to = good ? "it is good" : good.error().message;
        }(cache, store.options(), message));
        co_await until([&] { return store.lines("hangs") == 1; });
        cache->give_up_start();
        co_await tasks.join();
        EXPECT_THAT(message, HasSubstr("is being stopped"));
        store.remove("slow");
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, threads_load_the_script_one_after_another) {
    run([&]() -> task<void> {
        // To make the folder fails where it is there.
        const backend store(
            "assert(os.execute('mkdir ' .. FOLDER .. 'mine') == 0, 'another thread is here')\n"
            "os.execute('sleep 0.02') note('loaded', 'x')\n"
            "assert(os.execute('rmdir ' .. FOLDER .. 'mine') == 0)\n"
            "on_miss = read");
        subject cache("cache", store.options({{"hook_threads", 8}}));
        co_await cache.start();
        EXPECT_EQ(store.lines("loaded"), 8);
        co_await cache->stop(1s);
    });
}

TEST_P(cache_hooks, loading_a_dump_file_notifies_no_hook) {
    run([&]() -> task<void> {
        const backend store(
            "function on_write(key) note('written', key) end\n"
            "function on_expire(key) note('expired', key) end");
        const json options = store.options({{"dir", store.folder.path()}});
        subject cache("cache", options);
        co_await cache.start();
        {
            talker c = co_await talker::to(cache->local());
            EXPECT_EQ(co_await value_of(c, "MSET a 1 b 2"), "+OK");
        }
        co_await cache->stop(1s);
        EXPECT_EQ(store.lines("written"), 2);
        co_await cache.start();
        talker c = co_await talker::to(cache->local());
        EXPECT_EQ(co_await value_of(c, "DBSIZE"), ":2");
        EXPECT_EQ(co_await value_of(c, "SET c 1"), "+OK");
        co_await until([&] { return store.lines("written") == 3; });
        co_await cache->stop(1s);
        EXPECT_EQ(store.lines("written"), 3);
        EXPECT_EQ(store.lines("expired"), 0);
    });
}

TEST_P(cache_hooks, many_clients_and_keys_at_once) {
    run([&]() -> task<void> {
        const backend store(
            "function on_miss(key) return 'value of ' .. key end\n"
            "function on_write(key, value) if value ~= 'written' then error(value) end end");
        subject cache("cache", store.options({{"hook_threads", 4}, {"hook_deadline", "10m"}}));
        co_await cache.start();
        co_await with_scope([&](scope& all) -> task<void> {
            struct cache_worker {
                static task<void> work(endpoint where, int seed) {
                    talker c = co_await talker::to(where);
                    for (int i = 0; i < 100; ++i) {
                        const std::string key = std::to_string((i * 7 + seed) % 50);
                        EXPECT_EQ(co_await value_of(c, "GET r" + key), "value of r" + key);
                        EXPECT_EQ(co_await value_of(c, "SET w" + key + " written"), "+OK");
                        if (i % 5 == 0) static_cast<void>(co_await value_of(c, "DEL r" + key));
                    }
                }
            };
            for (int i = 0; i < 20; ++i) all.spawn(cache_worker::work(cache->local(), i));
            co_await all.join();
        });
        co_await until([&] { return counted(cache, "hook_queued_keys") == 0; });
        EXPECT_EQ(counted(cache, "hook_errors_total"), 0);
        EXPECT_EQ(counted(cache, "hook_waiting_clients"), 0);
        EXPECT_EQ(counted(cache, "hook_waiting_misses"), 0);
        EXPECT_EQ(counted(cache, "hook_queued_bytes"), 0);
        co_await cache->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
