// Tests of routes and pipes of a server's clients: order, replies, ends, and what waits.
#include "runtime/server/script/client_route.hpp"

#include <eddy/base/assert.hpp>

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

constexpr std::string_view router = R"(
    function on_message(c, text)
        local word, rest = text:match("^/(%w+) ?(.*)$")
        if word == "route" then
            local done, why = self.route(c, rest)
            self.send(c, "routed " .. tostring(done) .. " " .. tostring(why))
        elseif word == "pipe" then self.send(c, tostring(self.pipe(c, tonumber(rest))))
        elseif word == "free" then
            self.send(c, tostring(self.unroute(tonumber(rest))) .. tostring(self.unpipe(tonumber(rest))))
        elseif word == "which" then self.send(c, tostring(self.get_route(tonumber(rest))))
        else self.send(c, "script: " .. text) end
    end)";
constexpr std::string_view shouting = "function on_message(c, text) self.send(c, text:upper()) end";

class client_routes : public on_io_backend {
protected:
    subject make(const std::string& name, std::string_view script,
                 std::shared_ptr<test_host>& host) {
        const std::string file = folder_.file(name + ".lua");
        std::ofstream(file) << script;
        host = std::make_shared<test_host>(among_, name);
        return subject("server", with({{"lua", file}}), name, host);
    }
    static task<talker> join(subject& s) {
        const std::uint64_t before = s->count().connections_now;
        talker made = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now > before; });
        co_return made;
    }
    static task<std::string> say(talker& to, std::string text) {
        co_await to.say(text + "\n");
        co_return co_await to.line();
    }

    temporary_folder folder_;
    neighbours among_;
    std::shared_ptr<test_host> front_;
    std::shared_ptr<test_host> back_;
};

INSTANTIATE_TEST_SUITE_P(io, client_routes,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(client_routes, pass_messages_on_and_answers_back) {
    run([this]() -> task<void> {
        subject front = make("front", router, front_);
        subject back = make("back", shouting, back_);
        co_await front.start();
        co_await back.start();
        back_->has_started();
        talker one = co_await join(front);
        talker other = co_await join(front);
        EXPECT_EQ(co_await say(one, "hello"), "script: hello");
        EXPECT_EQ(co_await say(other, "/which 1"), "nil");
        EXPECT_EQ(co_await say(one, "/route back"), "routed true nil");
        EXPECT_EQ(co_await say(one, "hello"), "HELLO");
        co_await one.say("a\nb\nc\n");
        for (const std::string_view each : {"A", "B", "C"}) EXPECT_EQ(co_await one.line(), each);
        EXPECT_EQ(co_await say(other, "/which 1"), "back");
        EXPECT_EQ(co_await say(other, "hello"), "script: hello") << "it is one client's alone";
        EXPECT_EQ(co_await say(other, "/free 1"), "truefalse");
        EXPECT_EQ(co_await say(other, "/free 1"), "falsefalse");
        EXPECT_EQ(co_await say(one, "hello"), "script: hello");
        co_await until([&] { return back->count().connections_now == 0; });
        EXPECT_EQ(co_await say(one, "/route back"), "routed true nil");
        one.socket = stream();
        co_await until([&] { return back->count().connections_now == 0; });
        co_await front->stop(0s);
        co_await back->stop(0s);
    });
}

TEST_P(client_routes, end_with_the_other_runtime) {
    run([this]() -> task<void> {
        subject front = make("front", router, front_);
        subject back = make("back", shouting, back_);
        co_await front.start();
        co_await back.start();
        back_->has_started();
        talker one = co_await join(front);
        talker other = co_await join(front);
        EXPECT_EQ(co_await say(one, "/route back"), "routed true nil");
        EXPECT_EQ(co_await say(one, "hello"), "HELLO");
        back_->stops();
        co_await back->stop(0s);
        for (;;) {
            if (co_await say(other, "/which 1") == "nil") break;
            co_await loop::current().yield();
        }
        EXPECT_EQ(co_await say(one, "hello"), "script: hello");
        EXPECT_THAT(co_await say(one, "/route back"),
                    HasSubstr("routed nil \"back\" has no address"));
        EXPECT_THAT(co_await say(one, "/route bakc"), HasSubstr("there is no runtime \"bakc\""));
        EXPECT_THAT(co_await say(one, "/route front"), HasSubstr("be another runtime"));
        co_await front->stop(0s);
    });
}

TEST_P(client_routes, wait_for_a_runtime_that_reads_slowly) {
    run([this]() -> task<void> {
        subject front = make("front", router, front_);
        subject back = make("back", R"(
            function on_message(c, text) self.sleep(0.0001) self.send(c, #text) end)",
                            back_);
        co_await front.start();
        co_await back.start();
        back_->has_started();
        talker one = co_await join(front);
        EXPECT_EQ(co_await say(one, "/route back"), "routed true nil");
        constexpr int count = 100;
        constexpr std::size_t size = 20'000;
        scope sending;
        sending.spawn([](talker& from) -> task<void> {
            for (int i = 0; i < count; ++i) co_await from.say(std::string(size, 'x') + "\n");
        }(one));
        for (int i = 0; i < count; ++i) EXPECT_EQ(co_await one.line(), std::to_string(size));
        co_await sending.join();
        co_await front->stop(0s);
        co_await back->stop(0s);
    });
}

TEST_P(client_routes, are_possible_without_on_message) {
    run([this]() -> task<void> {
        subject front = make("front", "function on_connect(c) self.route(c, 'back') end", front_);
        subject back = make("back", shouting, back_);
        co_await back.start();
        back_->has_started();
        co_await front.start();
        talker one = co_await join(front);
        EXPECT_EQ(co_await say(one, "hello"), "HELLO");
        co_await front->stop(0s);
        co_await back->stop(0s);
    });
}

TEST_P(client_routes, pipes_go_to_another_client) {
    run([this]() -> task<void> {
        subject front = make("front", router, front_);
        co_await front.start();
        talker one = co_await join(front);
        talker two = co_await join(front);
        EXPECT_EQ(co_await say(one, "/pipe 7"), "false");
        EXPECT_EQ(co_await say(one, "/pipe 1"), "false") << "itself";
        EXPECT_EQ(co_await say(one, "/pipe 2"), "true");
        co_await one.say("hello\n");
        EXPECT_EQ(co_await two.line(), "hello");
        EXPECT_EQ(co_await say(two, "/free 1"), "falsetrue");
        EXPECT_EQ(co_await say(one, "hello"), "script: hello");
        EXPECT_EQ(co_await say(one, "/pipe 2"), "true");
        two.socket = stream();
        co_await until([&] { return front->count().connections_now == 1; });
        EXPECT_EQ(co_await say(one, "hello"), "script: hello");
        co_await front->stop(0s);
    });
}

TEST_P(client_routes, pipes_and_data_of_clients_are_those_of_their_thread) {
    run([this]() -> task<void> {
        const std::string file = folder_.file("threads.lua");
        std::ofstream(file) << R"(
            local function all(...)
                local words = {}
                for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
                return table.concat(words, " ")
            end
            local about = {
                pipe = function(c, id) return self.pipe(c, id) end,
                reverse = function(c, id) return self.pipe(id, c) end,
                unpipe = function(c, id) return self.unpipe(id) end,
                route = function(c, id) return self.route(id, "back") end,
                unroute = function(c, id) return self.unroute(id) end,
                which = function(c, id) return self.get_route(id) end,
                set = function(c, id) return self.set_data(id, "k", "v") end,
                get = function(c, id) return self.get_data(id, "k") end,
                del = function(c, id) return self.del_data(id, "k") end,
                join = function(c, id) return self.join_group(id, "g") end,
                leave = function(c, id) return self.leave_group(id, "g") end,
                ip = function(c, id) return self.peer_ip(id) end,
                web = function(c, id) return self.ws_headers(id) end,
                tell = function(c, id) return self.send(id, "told") end,
                close = function(c, id) return self.disconnect(id) end,
            }
            function on_connect(c) self.send(c, "id " .. c) end
            function on_message(c, text)
                local word, id = text:match("^/(%S+) ?(.*)$")
                self.send(c, word and all(about[word](c, tonumber(id))) or "script: " .. text)
            end)";
        subject front("server", with({{"lua", file}, {"threads", 2}}));
        co_await front.start();
        std::vector<talker> clients;
        std::vector<std::uint64_t> ids;
        for (int i = 0; i < 4; ++i) {
            clients.push_back(co_await join(front));
            ids.push_back(std::stoull((co_await clients.back().line()).substr(3)));
        }
        talker& one = clients[0];
        std::size_t same = 0;
        std::size_t foreign = 0;
        for (std::size_t i = 1; i < 4; ++i) (ids[i] % 2 == ids[0] % 2 ? same : foreign) = i;
        EDDY_ASSERT(same != 0 && foreign != 0);
        const auto ask = [&](std::string_view word, std::uint64_t id) {
            return say(one, "/" + std::string(word) + " " + std::to_string(id));
        };
        for (const std::string_view word :
             {"pipe", "reverse", "unpipe", "route", "unroute", "which", "set", "get", "del", "join",
              "leave", "ip", "web"})
            EXPECT_EQ(co_await ask(word, ids[foreign]), "nil the client is one of another thread")
                << word;
        EXPECT_EQ(co_await say(one, "hello"), "script: hello") << "nothing has changed";
        EXPECT_EQ(co_await ask("set", ids[same]), "true");
        EXPECT_EQ(co_await ask("get", ids[same]), "v");
        // Messages go to all; a client of this thread is known to have gone.
        EXPECT_EQ(co_await ask("tell", ids[foreign]), "true");
        EXPECT_EQ(co_await clients[foreign].line(), "told");
        EXPECT_EQ(co_await ask("tell", ids[0] + 1000), "false");
        EXPECT_EQ(co_await ask("close", ids[0] + 1000), "false");
        EXPECT_EQ(co_await ask("pipe", ids[0] + 1000), "false");
        EXPECT_EQ(co_await ask("pipe", ids[same]), "true");
        co_await one.say("hello\n");
        EXPECT_EQ(co_await clients[same].line(), "hello");
        co_await front->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
