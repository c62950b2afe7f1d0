// Tests of a script's commands to caches: on the cache's loop and from others, what waits, and what
// is refused.
#include "runtime/scripting/cache_library.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

/// Shows the results of the text that a client sends, as of `return TEXT`.
constexpr std::string_view shell = R"(
    local function shown(value)
        if type(value) ~= "table" then return tostring(value) end
        local parts = {}
        for i = 1, #value do parts[i] = shown(value[i]) end
        return "{" .. table.concat(parts, " ") .. "}"
    end
    c = eddy.cache("db")
    function on_message(client, text)
        local run = assert(loadstring("local c, eddy = ... return " .. text))
        local function answer(_, ...)
            local parts = {}
            for i = 1, select("#", ...) do parts[i] = shown((select(i, ...))) end
            self.send(client, table.concat(parts, ", "))
        end
        answer(pcall(run, c, eddy))
    end)";

class script_caches_test : public on_io_backend {
protected:
    struct both {
        both(const std::string& file, std::string_view script, json options, json of_cache)
            : cache_host(std::make_shared<test_host>(among, "db")),
              cache("cache", with(std::move(of_cache)), "db", cache_host),
              server((std::ofstream(file) << script, "server"),
                     with(std::move(options), with({{"lua", file}})), "room", among) {}
        task<void> start() {
            co_await cache.start();
            cache_host->has_started();
            co_await server.start();
        }
        task<void> stop() {
            co_await server->stop(0s);
            co_await stop_cache();
        }
        task<void> stop_cache() {
            cache_host->stops();
            co_await cache->stop(0s);
        }
        task<talker> client() {
            const std::uint64_t before = server->count().connections_now;
            talker made = co_await talker::to(server->local());
            co_await until([&] { return server->count().connections_now > before; });
            co_return made;
        }

        neighbours among;
        std::shared_ptr<test_host> cache_host;
        subject cache;
        subject server;
    };

    both make(json options = json::object(), json of_cache = json::object(),
              std::string_view script = shell) {
        return {file_, script, std::move(options), std::move(of_cache)};
    }
    static task<std::string> say(talker& to, std::string text) {
        co_await to.say(text + "\n");
        co_return co_await to.line();
    }
    static task<void> has_basic_commands(talker& one) {
        EXPECT_EQ(co_await say(one, "c:get('k')"), "nil");
        EXPECT_EQ(co_await say(one, "c:set('k', 'v')"), "true");
        EXPECT_EQ(co_await say(one, "c:get('k')"), "v");
        EXPECT_EQ(co_await say(one, "c:set('k', 'w', {nx = true})"), "false");
        EXPECT_EQ(co_await say(one, "c:set('k', 'w', {xx = true, ttl = 100})"), "true");
        EXPECT_EQ(co_await say(one, "c:ttl('k')"), "100");
        EXPECT_EQ(co_await say(one, "c:del('k')"), "1");
        EXPECT_EQ(co_await say(one, "c:incr('n')"), "1");
        EXPECT_EQ(co_await say(one, "c:incr('n', 41)"), "42");
        EXPECT_EQ(co_await say(one, "c:call('HSET', 'h', 'a', 1, 'b', 'x y', 'c', 2.5)"), "3");
        EXPECT_EQ(co_await say(one, "c:hmget('h', 'a', 'none', 'b', 'c')"), "{1 false x y 2.5}");
        EXPECT_EQ(co_await say(one, "c:lrange('none', 0, -1)"), "{}");
        EXPECT_EQ(co_await say(one, "c:get('h')"),
                  "nil, WRONGTYPE Operation against a key holding the wrong kind of value");
        EXPECT_EQ(co_await say(one, "c:call('PING')"), "PONG");
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("s.lua");
};

INSTANTIATE_TEST_SUITE_P(io, script_caches_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

class script_caches_kernel_test : public script_caches_test {};
INSTANTIATE_TEST_SUITE_P(io, script_caches_kernel_test,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(script_caches_test, has_the_data_commands) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        co_await has_basic_commands(one);
        EXPECT_EQ(sample_of(*all.cache, "script_commands_total"), 14.0);
        EXPECT_EQ(all.cache->count().connections_total, 0U);
        co_await all.stop();
        EXPECT_EQ(sample_of(*all.cache, "script_commands_total"), 14.0);
    });
}

TEST_P(script_caches_test, a_loop_over_a_cache_of_its_own_loop_is_ended) {
    run([this]() -> task<void> {
        auto all = make({{"lua_time", "30ms"}}, json::object(), R"(
            c = eddy.cache("db")
            function on_message(client, text)
                if text == "loop" then while true do c:get("k") end end
                self.send(client, text)
            end)");
        co_await all.start();
        talker looping = co_await all.client();
        talker other = co_await all.client();
        co_await looping.say("loop\n");
        do EXPECT_EQ(co_await say(other, "on"), "on");
        while (!all.server.events.has("it computes for too long without a wait"));
        EXPECT_EQ(co_await say(looping, "again"), "again");
        co_await all.stop();
    });
}

TEST_P(script_caches_kernel_test, reaches_a_cache_of_another_loop) {
    run([this]() -> task<void> {
        auto all = make({{"threads", 2}});
        co_await all.start();
        // One of two clients is on the other loop.
        talker one = co_await all.client();
        talker two = co_await all.client();
        co_await has_basic_commands(one);
        EXPECT_EQ(co_await say(two, "c:get('n')"), "42");
        EXPECT_EQ(co_await say(two, "c:incr('n')"), "43");
        EXPECT_EQ(co_await say(two, "c:del('n', 'h')"), "2");
        co_await has_basic_commands(two);
        co_await all.stop();
    });
}

TEST(waiting_replies, have_few_bytes_between_two_loops) {
    const reply_bytes sum = std::make_shared<std::atomic<std::size_t>>(0);
    const std::string large(max_cache_reply, 'x');
    std::vector<waiting_reply> all;
    for (std::size_t i = 0; i < max_waiting_replies / max_cache_reply; ++i) {
        all.emplace_back(large, sum);
        EXPECT_EQ(all.back().text().size(), large.size());
    }
    EXPECT_THAT(std::string(waiting_reply("+OK\r\n", sum).text()), HasSubstr("64 MiB of replies"));
    all.pop_back();
    EXPECT_EQ(waiting_reply("+OK\r\n", sum).text(), "+OK\r\n");
    all.clear();
    EXPECT_EQ(*sum, 0U);
}

TEST_P(script_caches_kernel_test, reaches_a_cache_with_threads) {
    run([this]() -> task<void> {
        auto all = make({{"threads", 2}}, {{"threads", 2}});
        co_await all.start();
        talker one = co_await all.client();
        talker two = co_await all.client();
        co_await has_basic_commands(one);
        EXPECT_EQ(co_await say(two, "c:del('n', 'h')"), "2");
        co_await has_basic_commands(two);
        co_await all.stop();
    });
}

TEST_P(script_caches_test, refuses_what_is_not_about_data) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        for (const std::string name : {"flushall", "config", "blpop", "auth", "eval", "multi"})
            EXPECT_EQ(co_await say(one, "c:call('" + name + "', 'x', '0')"),
                      "nil, \"" + name + "\" is not for scripts of other runtimes");
        EXPECT_EQ(co_await say(one, "c:none()"), "nil, there is no command \"none\"");
        EXPECT_EQ(co_await say(one, "c:get('a', 'b', 'c')"), "nil")
            << "further arguments are dropped";
        EXPECT_THAT(co_await say(one, "c:hget('k')"), HasSubstr("wrong number of arguments"));
        EXPECT_THAT(co_await say(one, "c:get(nil)"), HasSubstr("argument 1 of GET is nil"));
        EXPECT_THAT(co_await say(one, "c:call('MSET', 'a', 1, 'b', {})"),
                    HasSubstr("argument 4 of MSET is a table, and no text"));
        EXPECT_THAT(co_await say(one, "c.get('k')"),
                    HasSubstr("takes a cache of eddy.cache(), a command"));
        EXPECT_THAT(co_await say(one, "c:set('k', 1, {tll = 1})"), HasSubstr("has no option tll"));
        EXPECT_THAT(co_await say(one, "c:set('k', 1, {ttl = 0})"), HasSubstr("ttl is no number"));
        EXPECT_THAT(co_await say(one, "eddy.cache()"), HasSubstr("takes the name of a cache"));
        EXPECT_THAT(co_await say(one, "eddy.cache('db', {pass = 'x'})"),
                    HasSubstr("with user and password"));
        co_await all.stop();
    });
}

TEST_P(script_caches_test, says_why_there_is_no_cache) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        EXPECT_THAT(co_await say(one, "eddy.cache('dbb'):get('k')"),
                    HasSubstr("nil, there is no runtime \"dbb\"; did you mean \"db\"?"));
        EXPECT_EQ(co_await say(one, "c:set('k', 1)"), "true");
        co_await all.stop_cache();
        EXPECT_EQ(co_await say(one, "c:get('k')"),
                  "nil, \"db\" does not run; start it with: eddy start db");
        co_await all.cache.start();
        all.cache_host->has_started();
        EXPECT_EQ(co_await say(one, "c:incr('k')"), "1") << "the cache of before is gone";
        co_await all.stop();
    });
}

TEST_P(script_caches_test, gives_a_password) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        talker admin = co_await talker::to(all.cache->local());
        EXPECT_EQ(co_await say(one, "c:set('a', 1)"), "true");
        EXPECT_EQ(co_await ask(admin, "CONFIG SET requirepass secret"), "+OK");
        EXPECT_THAT(
            co_await say(one, "c:get('k')"),
            HasSubstr("nil, the cache \"db\" wants a password: eddy.cache(\"db\", {password"));
        EXPECT_THAT(co_await say(one, "eddy.cache('db', {password = 'wrong'}):get('k')"),
                    HasSubstr("nil, WRONGPASS"));
        EXPECT_EQ(co_await say(one, "eddy.cache('db', {password = 'secret'}):incr('k')"), "1");
        EXPECT_EQ(co_await say(
                      one, "eddy.cache('db', {user = 'default', password = 'secret'}):incr('k')"),
                  "2");
        EXPECT_THAT(co_await say(one, "c:get('k')"), HasSubstr("wants a password"))
            << "it has no session of another login";
        EXPECT_EQ(co_await ask(admin, "ACL SETUSER ann on >pw ~a* +@read"), "+OK");
        EXPECT_EQ(co_await say(one, "eddy.cache('db', {user = 'ann', password = 'pw'}):get('a')"),
                  "1");
        EXPECT_THAT(co_await say(one, "eddy.cache('db', {user = 'ann', password = 'pw'}):get('k')"),
                    HasSubstr("NOPERM"));
        EXPECT_EQ(co_await ask(admin, "CONFIG SET requirepass ''"), "+OK");
        EXPECT_EQ(co_await say(one, "c:incr('k')"), "3");
        EXPECT_EQ(co_await ask(admin, "CONFIG SET requirepass again"), "+OK");
        EXPECT_THAT(co_await say(one, "c:get('k')"), HasSubstr("wants a password"));
        co_await all.stop();
    });
}

TEST_P(script_caches_test, keeps_to_the_mode_of_the_cache) {
    run([this]() -> task<void> {
        auto all = make({}, {{"mode", "readonly"}});
        co_await all.start();
        talker one = co_await all.client();
        EXPECT_EQ(co_await say(one, "c:get('k')"), "nil");
        EXPECT_THAT(co_await say(one, "c:set('k', 1)"), HasSubstr("nil, READONLY"));
        co_await all.stop();
    });
}

TEST_P(script_caches_test, waits_as_a_client_would) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        talker two = co_await all.client();
        talker admin = co_await talker::to(all.cache->local());
        EXPECT_EQ(co_await ask(admin, "CLIENT PAUSE 60000 WRITE"), "+OK");
        co_await one.say("c:incr('k')\n");
        EXPECT_EQ(co_await say(two, "c:get('k')"), "nil") << "reads are not paused";
        EXPECT_EQ(co_await ask(admin, "CLIENT UNPAUSE"), "+OK");
        EXPECT_EQ(co_await one.line(), "1");
        // A pause that ends by itself.
        EXPECT_EQ(co_await ask(admin, "CLIENT PAUSE 50 WRITE"), "+OK");
        EXPECT_EQ(co_await say(one, "c:incr('k')"), "2");
        co_await all.stop();
    });
}

TEST_P(script_caches_test, a_wait_ends_with_the_cache_or_its_session) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        talker two = co_await all.client();
        talker admin = co_await talker::to(all.cache->local());
        EXPECT_EQ(co_await ask(admin, "CLIENT PAUSE 60000 WRITE"), "+OK");
        co_await one.say("c:incr('k')\n");
        co_await until([&] { return sample_of(*all.cache, "script_commands_total") == 1.0; });
        EXPECT_EQ(co_await ask(admin, "CLIENT KILL ADDR script:0"), ":1");
        EXPECT_THAT(co_await one.line(), HasSubstr("has closed the session"));
        co_await one.say("c:incr('k')\n");
        co_await two.say("c:incr('k')\n");
        co_await until([&] { return sample_of(*all.cache, "script_commands_total") == 3.0; });
        co_await all.stop_cache();
        EXPECT_THAT(co_await one.line(), HasSubstr("is stopping; the command may be executed"));
        EXPECT_THAT(co_await two.line(), HasSubstr("is stopping; the command may be executed"));
        co_await all.server->stop(0s);
    });
}

TEST_P(script_caches_test, a_wait_ends_with_its_call) {
    run([this]() -> task<void> {
        auto all = make();
        co_await all.start();
        talker one = co_await all.client();
        talker admin = co_await talker::to(all.cache->local());
        EXPECT_EQ(co_await ask(admin, "CLIENT PAUSE 60000 WRITE"), "+OK");
        co_await one.say("c:incr('k')\n");
        co_await until([&] { return sample_of(*all.cache, "script_commands_total") == 1.0; });
        co_await all.server->stop(0s);
        co_await all.stop_cache();
    });
}

TEST_P(script_caches_kernel_test, waits_for_the_append_only_file) {
    run([this]() -> task<void> {
        auto all =
            make({}, {{"dir", folder_.path()}, {"appendonly", "yes"}, {"appendfsync", "always"}});
        co_await all.start();
        talker one = co_await all.client();
        talker two = co_await all.client();
        for (int i = 1; i <= 20; ++i) {
            co_await one.say("c:incr('k')\n");
            EXPECT_EQ(co_await say(two, "c:incr('l')"), std::to_string(i));
            EXPECT_EQ(co_await one.line(), std::to_string(i));
        }
        EXPECT_EQ(co_await say(one, "c:get('l')"), "20");
        co_await all.stop();
        EXPECT_THAT(content(folder_.path() + "/appendonlydir/appendonly.aof.1.incr.aof"),
                    HasSubstr("INCR"));
    });
}

TEST_P(script_caches_test, works_in_the_files_own_timers_and_starts) {
    run([this]() -> task<void> {
        auto all = make({}, {}, R"(
            function on_start() eddy.cache("db"):set("started", "yes") end
            self.set_timeout(1, function() eddy.cache("db"):incr("timer") end))");
        co_await all.start();
        talker admin = co_await talker::to(all.cache->local());
        co_await admin.say("GET started\r\n");
        EXPECT_EQ(co_await line_of(admin), "$3");
        EXPECT_EQ(co_await line_of(admin), "yes");
        co_await until([&] { return sample_of(*all.cache, "script_commands_total") == 2.0; });
        co_await all.stop();
    });
}

TEST(cache_replies, become_values) {
    const auto text = [](std::string_view reply) {
        const auto read = read_cache_reply(reply);
        if (!read) return "error " + read.error();
        return read->text() != nullptr ? *read->text() : std::string("no text");
    };
    EXPECT_EQ(text("+OK\r\n"), "OK");
    EXPECT_EQ(text("$3\r\na\nb\r\n"), "a\nb");
    EXPECT_EQ(text("-ERR no\r\n"), "error ERR no");
    EXPECT_EQ(text(""), "error the cache has sent no reply");
    EXPECT_EQ(*read_cache_reply(":-7\r\n")->number(), -7);
    EXPECT_TRUE(read_cache_reply("$-1\r\n")->is_nil());
    const auto list = read_cache_reply("*3\r\n$1\r\na\r\n$-1\r\n*1\r\n:2\r\n");
    ASSERT_TRUE(list);
    const auto& all = list->fields()->elements;
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(*all[0].text(), "a");
    EXPECT_FALSE(*all[1].truth());
    EXPECT_EQ(*all[2].fields()->elements.at(0).number(), 2);
}

TEST(cache_replies, have_limits) {
    const std::string big(max_cache_reply, 'x');
    const auto large = read_cache_reply("$" + std::to_string(big.size()) + "\r\n" + big + "\r\n");
    EXPECT_THAT(large.error(), HasSubstr("more content than 16777216 bytes"));
    std::string many = "*" + std::to_string(max_cache_elements + 1) + "\r\n";
    for (std::size_t i = 0; i <= max_cache_elements; ++i) many += ":1\r\n";
    EXPECT_THAT(read_cache_reply(many).error(), HasSubstr("more values than 100000 in lists"));
    std::string deep;
    for (std::size_t i = 0; i < script::max_value_depth + 1; ++i) deep += "*1\r\n";
    EXPECT_THAT(read_cache_reply(deep + ":1\r\n").error(), HasSubstr("too many lists"));
}

}  // namespace
}  // namespace eddy::runtime
