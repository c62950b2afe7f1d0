// Tests of --upstream: servers whose messages another server's clients get.
#include "runtime/server/upstreams.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

class server_upstreams : public on_io_backend {
protected:
    static json fed_by(const std::vector<subject*>& sources, json more = json::object()) {
        more["upstream"] = json::array();
        for (subject* const each : sources)
            more["upstream"].push_back((*each)->local().to_string());
        more.update({{"port", 0}, {"bind", "127.0.0.1"}});
        return more;
    }
    json scripted(const std::vector<subject*>& sources, std::string_view script,
                  json more = json::object()) {
        std::ofstream(file_) << script;
        more["lua"] = file_;
        return fed_by(sources, std::move(more));
    }
    static task<talker> join(subject& s) {
        const std::uint64_t before = s->count().connections_now;
        talker made = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now > before; });
        co_return made;
    }
    static task<void> connected(subject& s, double most) {
        co_await until([&, most] { return sample_of(*s, "upstreams_connected") == most; });
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("feed.lua");
};

INSTANTIATE_TEST_SUITE_P(io, server_upstreams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

const json local{{"port", 0}, {"bind", "127.0.0.1"}};

TEST_P(server_upstreams, give_their_messages_to_all_clients) {
    run([]() -> task<void> {
        subject first("server", local);
        subject second("server", local);
        co_await first.start();
        co_await second.start();
        subject s("server", fed_by({&first, &second}));
        co_await s.start();
        talker a = co_await join(s);
        talker b = co_await join(s);
        co_await connected(s, 2);
        EXPECT_EQ(s->fault(), "");
        for (subject* const each : {&first, &second}) {
            EXPECT_EQ(must_do(co_await (*each)->send("one\ntwo")), 1U);
            for (talker* const to : {&a, &b}) {
                EXPECT_EQ(co_await to->line(), "one");
                EXPECT_EQ(co_await to->line(), "two");
            }
        }
        EXPECT_EQ(sample_of(*s, "upstream_messages_in_total"), 4);
        // Clients' own messages stay here.
        co_await a.say("among us\n");
        EXPECT_EQ(co_await b.line(), "among us");
        EXPECT_EQ(first->count().messages_in, 0U);
        co_await s->stop(0s);
        co_await first->stop(0s);
        co_await second->stop(0s);
    });
}

TEST_P(server_upstreams, are_found_again) {
    run([]() -> task<void> {
        subject source("server", local);
        co_await source.start();
        const std::uint16_t port = source->local().port();
        subject s("server", fed_by({&source}));
        co_await s.start();
        talker a = co_await join(s);
        co_await connected(s, 1);
        co_await source->stop(0s);
        co_await until([&] { return !s->fault().empty(); });
        EXPECT_THAT(s->fault(), HasSubstr("--upstream: not connected: "));
        EXPECT_EQ(sample_of(*s, "upstreams_connected"), 0);
        subject again("server", {{"port", port}, {"bind", "127.0.0.1"}});
        co_await again.start();
        co_await connected(s, 1);
        EXPECT_EQ(s->fault(), "");
        co_await until([&] { return again->count().connections_now == 1; });
        must_do(co_await again->send("here again"));
        EXPECT_EQ(co_await a.line(), "here again");
        co_await s->stop(0s);
        co_await again->stop(0s);
    });
}

TEST_P(server_upstreams, are_the_scripts) {
    run([this]() -> task<void> {
        subject first("server", local);
        subject second("server", local);
        co_await first.start();
        co_await second.start();
        subject s("server", scripted({&first, &second}, R"(
            function on_upstream_connect(n) self.upstream_send(n, "login " .. n) end
            function on_upstream(n, text)
                if text == "slow" then self.sleep(0.02) end
                self.broadcast(n .. " says " .. text)
            end
            function on_upstream_disconnect(n, why) self.broadcast(n .. " has gone") end
            function on_message(c, text)
                if text == "who" then return self.send(c, table.concat(self.upstreams(), " ")) end
                if text == "none" then return self.send(c, select(2, pcall(self.upstream_send, 3, "x"))) end
                local n, rest = text:match("^(%d) (.*)$")
                if n then return self.upstream_send(tonumber(n), rest) end
                self.send(c, "to " .. self.upstream_broadcast(text))
            end)"));
        talker at_first = co_await join(first);
        talker at_second = co_await join(second);
        co_await s.start();
        EXPECT_EQ(co_await at_first.line(), "login 1");
        EXPECT_EQ(co_await at_second.line(), "login 2");
        talker a = co_await join(s);
        // One event after the other, also where a callback waits.
        must_do(co_await first->send("slow\nquick"));
        EXPECT_EQ(co_await a.line(), "1 says slow");
        EXPECT_EQ(co_await a.line(), "1 says quick");
        EXPECT_EQ(co_await at_first.line(), "slow");
        EXPECT_EQ(co_await at_first.line(), "quick");
        co_await a.say("2 for you\nall of you\nwho\nnone\n");
        EXPECT_EQ(co_await at_second.line(), "for you");
        EXPECT_EQ(co_await at_second.line(), "all of you");
        EXPECT_EQ(co_await at_first.line(), "all of you");
        EXPECT_EQ(co_await a.line(), "to 2");
        EXPECT_EQ(co_await a.line(), "1 2");
        EXPECT_THAT(co_await a.line(), HasSubstr("no such server"));
        co_await second->stop(0s);
        EXPECT_EQ(co_await a.line(), "2 has gone");
        co_await s->stop(0s);
        co_await first->stop(0s);
    });
}

TEST_P(server_upstreams, reach_the_clients_of_all_threads) {
    run([this]() -> task<void> {
        subject source("server", local);
        co_await source.start();
        talker beside = co_await join(source);
        for (const bool has_script : {false, true}) {
            const json threads{{"threads", 3}};
            subject s("server", has_script ? scripted({&source}, R"(
                function on_upstream(n, text) self.broadcast(text) end
                function on_message(c, text) self.upstream_send(1, text) end)",
                                                      threads)
                                           : fed_by({&source}, threads));
            co_await s.start();
            std::vector<talker> all;
            for (int i = 0; i < 4; ++i) all.push_back(co_await join(s));
            co_await connected(s, 1);
            must_do(co_await source->send("to all"));
            EXPECT_EQ(co_await beside.line(), "to all");
            for (talker& each : all) EXPECT_EQ(co_await each.line(), "to all");
            for (std::size_t i = 0; has_script && i < all.size(); ++i) {
                co_await all[i].say(std::to_string(i) + "\n");
                EXPECT_EQ(co_await beside.line(), std::to_string(i));
            }
            co_await s->stop(0s);
        }
        co_await source->stop(0s);
    });
}

TEST_P(server_upstreams, wait_for_slow_readers_and_lose_nothing) {
    run([]() -> task<void> {
        json waits = local;
        waits["slow_reader"] = "wait";
        subject source("server", waits);
        co_await source.start();
        subject s("server", fed_by({&source}, {{"slow_reader", "wait"}}));
        co_await s.start();
        talker a = co_await join(s);
        co_await connected(s, 1);
        // 12 MB, of which the queues and the kernel hold a part.
        const std::string text(60'000, 'x');
        constexpr int count = 200;
        const auto send_all = [&]() -> task<void> {
            for (int i = 0; i < count; ++i)
                while (!co_await source->send(std::to_string(i) + " " + text))
                    must(co_await sleep_for(1ms));
        };
        co_await with_scope([&](scope& sending) -> task<void> {
            sending.spawn(send_all());
            for (int i = 0; i < count; ++i) {
                if (i % 50 == 0) must(co_await sleep_for(20ms));
                EXPECT_EQ(co_await a.line(), std::to_string(i) + " " + text);
            }
            co_await sending.join();
        });
        EXPECT_EQ(sample_of(*s, "upstream_dropped_total"), 0);
        co_await s->stop(0s);
        co_await source->stop(0s);
    });
}

TEST_P(server_upstreams, have_limits) {
    run([this]() -> task<void> {
        subject source("server", local);
        co_await source.start();
        // Without a connection nothing leaves the queue.
        const json options = scripted({&source}, R"(
            function on_message(c, text)
                local count = 0
                while self.upstream_send(1, string.rep("x", 60000)) do count = count + 1 end
                self.send(c, "took " .. count)
            end)");
        co_await source->stop(0s);
        subject s("server", options);
        co_await s.start();
        talker a = co_await join(s);
        co_await a.say("go\n");
        const std::string line = co_await a.line();
        EXPECT_THAT(line, HasSubstr("took "));
        EXPECT_LT(std::stoi(line.substr(5)), 20) << "of 60 kB, in a queue of 1 MiB";
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
