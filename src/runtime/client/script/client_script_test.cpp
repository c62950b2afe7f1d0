// Scripts of clients: what a server and `eddy send` see of callbacks and functions, their order,
// renewal, and scripts that go wrong.
#include "runtime/client/script/client_script.hpp"

#include "runtime/client/client_runtime.hpp"
#include "runtime/client/script/client_library.hpp"
#include "runtime/client/testing.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/scripting/send_callback.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "script/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::client {
namespace {

using namespace client::testing;
using ::testing::HasSubstr;

class scripted_client : public on_io_backend {
protected:
    void write(std::string_view script) { std::ofstream(file_) << script; }
    subject make(std::string_view script, json options) {
        write(script);
        options["lua"] = file_;
        return subject("client", options);
    }
    static task<void> has_line(subject& s, std::string line) {
        co_await until([&] { return s.events.has(line); });
    }
    static double errors(subject& s, std::string_view reason) {
        for (const metric_sample& each : s->count().samples)
            if (each.of->name == "script_errors_total" && each.labels.at(0) == reason)
                return std::get<double>(each.value);
        return -1;
    }

    temporary_folder folder_;
    const std::string file_ = folder_.file("feed.lua");
};

INSTANTIATE_TEST_SUITE_P(io, scripted_client,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(scripted_client, sees_its_connection_from_begin_to_end) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_start() self.log("start " .. tostring(self.connected())) end
            function on_connect() self.send("hello " .. tostring(client.connected())) end
            function on_message(text) self.send("got " .. text) end
            function on_disconnect(reason) self.log("end: " .. tostring(reason)) end
            function on_stop() self.log("stop") end)",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        EXPECT_EQ(co_await peer.line(), "hello true");
        EXPECT_TRUE(s.events.has("script: start false"));
        co_await peer.say("one\ntwo\r\n\n");
        for (const std::string_view each : {"got one", "got two", "got "})
            EXPECT_EQ(co_await peer.line(), each);
        EXPECT_TRUE(s.events.has("received: two")) << "the journal has messages as without it";
        peer.socket.close();
        co_await has_line(s, "script: end: " + make_error_code(errc::end_of_stream).message());
        peer = co_await accept(server);
        EXPECT_EQ(co_await peer.line(), "hello true");
        co_await s->stop(1h);
        EXPECT_TRUE(s.events.has("script: stop"));
        EXPECT_TRUE(s.events.has("script: end: nil"));
        EXPECT_EQ(s->lost(), "");
    });
}

TEST_P(scripted_client, decides_what_the_journal_shows) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_message(text)
                if text == "late" then eddy.sleep(0.01) end
                if text == "wrong" then error("spoilt") end
                return text ~= "secret" and nil
            end)",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        co_await peer.say("secret\nlate\nwrong\nlast\n");
        co_await has_line(s, "received: last");
        EXPECT_TRUE(s.events.has("received: late"));
        EXPECT_TRUE(s.events.has("received: wrong"));
        EXPECT_FALSE(s.events.has("secret"));
        EXPECT_TRUE(s.events.has("feed.lua:4: spoilt"));
        EXPECT_EQ(errors(s, "script_failed"), 1);
        EXPECT_EQ(s->count().messages_in, 4U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, changes_and_drops_what_is_sent) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_send(text)
                if text == "drop" then return false end
                if text == "wrong" then error("spoilt") end
                if text == "late" then eddy.sleep(0.01) end
                if text ~= "as it is" then return text:upper() end
            end)",
                         to(server));
        EXPECT_EQ((co_await s->send("early")).error().status, 409);
        co_await s.start();
        talker peer = co_await accept(server);
        co_await connected(s);
        EXPECT_EQ(must_do(co_await s->send("one")), 1U);
        EXPECT_EQ(must_do(co_await s->send("drop")), 0U);
        EXPECT_EQ(must_do(co_await s->send("late")), 1U);
        EXPECT_EQ(must_do(co_await s->send("as it is")), 1U);
        for (const std::string_view each : {"ONE", "LATE", "as it is"})
            EXPECT_EQ(co_await peer.line(), each);
        const auto refused = co_await s->send("wrong");
        EXPECT_EQ(refused.error().status, 500);
        EXPECT_THAT(refused.error().message, HasSubstr("feed.lua:4: spoilt"));
        EXPECT_EQ(s->count().dropped, 0U);
        co_await s->stop(0s);
    });
}

task<void> send_into(subject& s, std::string text, outcome<std::uint64_t>& to) {
    to = co_await s->send(std::move(text));
}

TEST_P(scripted_client, has_few_sends_that_wait) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make("function on_send(text) eddy.sleep(1000) end", to(server));
        co_await s.start();
        std::vector<outcome<std::uint64_t>> ends(max_waiting_sends);
        scope sending;
        for (auto& each : ends) sending.spawn(send_into(s, "x", each));
        const auto refused = co_await s->send("one more");
        EXPECT_EQ(refused.error().status, 503);
        EXPECT_THAT(refused.error().message, HasSubstr("100 messages wait for on_send"));
        co_await s->stop(0s);
        co_await sending.join();
        for (const auto& each : ends) EXPECT_EQ(each.error().status, 503);
    });
}

TEST_P(scripted_client, greets_before_what_waits) {
    run([this]() -> task<void> {
        listener server = any_server();
        const endpoint where = server.local();
        subject s = make(R"(
            function on_connect()
                self.send("login")
                eddy.sleep(0.01)
                self.send("join")
            end)",
                         to(server));
        server.close();
        co_await s.start();
        co_await disconnected(s);
        must_do(co_await s->send("waits"));
        server = server_on(where);
        talker peer = co_await accept(server);
        EXPECT_EQ(co_await peer.line(), "login");
        must_do(co_await s->send("later"));
        for (const std::string_view each : {"join", "waits", "later"})
            EXPECT_EQ(co_await peer.line(), each);
        co_await until([&] { return sample_of(*s, "queued_messages") == 0.0; });
        co_await s->stop(1h);
    });
}

TEST_P(scripted_client, handles_events_one_after_the_other) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            local depth = 0
            function on_connect() depth = depth + 1 eddy.sleep(0.01) depth = depth - 1 end
            function on_message(text)
                assert(depth == 0)
                depth = 1
                if text:match("3$") then eddy.sleep(0.001) end
                if text:match("4$") then for i = 1, 3e5 do end end
                depth = 0
                self.log("did " .. text .. ".")
            end
            function on_disconnect() assert(depth == 0) self.log("gone") end)",
                         to(server, {{"journal", "no"}, {"lua_slice", "50us"}}));
        co_await s.start();
        {
            talker peer = co_await accept(server);
            std::string all;
            for (int i = 1; i <= 40; ++i) all += std::to_string(i) + "\n";
            co_await peer.say(all);
            must(peer.socket.shutdown_write());
            co_await has_line(s, "script: gone");
        }
        std::vector<std::string> did;
        for (const std::string& each : s.events.lines)
            if (each.starts_with("script: did ")) did.push_back(each);
        EXPECT_EQ(did.size(), 40U);
        for (std::size_t i = 0; i < did.size(); ++i)
            EXPECT_EQ(did[i], "script: did " + std::to_string(i + 1) + ".");
        EXPECT_EQ(errors(s, "script_failed"), 0);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, reads_no_more_while_a_callback_waits) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make("function on_message(text) eddy.sleep(1000) end", to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        scope saying;
        std::string all;
        for (int i = 0; i < 1'000'000; ++i) all += "a line\n";
        saying.spawn([](talker& by, const std::string& what) -> task<void> {
            static_cast<void>(co_await by.socket.write_all(what));
        }(peer, all));
        co_await until([&] { return s->count().messages_in > 0; });
        must(co_await loop::current().sleep_for(5ms));
        EXPECT_LE(s->count().bytes_in, std::size_t{16} << 10) << "those of one read";
        saying.cancel();
        co_await saying.join();
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, closes_its_connection_after_what_is_queued) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_message(text)
                self.send("bye")
                self.log("closes " .. tostring(self.disconnect()))
            end
            function on_disconnect(reason) self.log("end: " .. reason .. tostring(self.disconnect())) end)",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        co_await peer.say("x\n");
        EXPECT_EQ(co_await peer.rest(), "bye\n");
        peer = co_await accept(server);
        co_await connected(s);
        EXPECT_TRUE(s.events.has("script: closes true"));
        EXPECT_TRUE(
            s.events.has("script: end: the script has closed it"
                         "false"));
        EXPECT_EQ(s->count().errors, 0U);
        EXPECT_EQ(s->count().dropped, 0U);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, closes_a_connection_whose_server_reads_nothing) {
    if (GetParam() != io_backend_kind::sim) GTEST_SKIP() << "it takes five seconds";
    run([this]() -> task<void> {
        listener server = any_server();
        subject s =
            make("function on_message(text) self.disconnect() end", to(server, {{"queue", "64M"}}));
        co_await s.start();
        talker stuck = co_await accept(server);
        must_do(co_await s->send(std::string(16 << 20, 'x')));
        const time_point begun = loop::current().now();
        co_await stuck.say("x\n");
        const talker next = co_await accept(server);
        EXPECT_GE(loop::current().now() - begun, client_runtime::disconnect_patience);
        EXPECT_EQ(s->count().dropped, 1U) << "it may have been sent";
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, is_loaded_again_under_its_connection) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s =
            make("count = 0 function on_message(text) count = count + 1 self.send('old') end",
                 to(server));
        EXPECT_EQ((co_await s->reload_script()).error().status, 409);
        co_await s.start();
        talker peer = co_await accept(server);
        EXPECT_EQ(co_await ask(peer, "x"), "old");
        write("function on_message(");
        EXPECT_THAT((co_await s->reload_script()).error().message,
                    HasSubstr("--lua: feed.lua:1: "));
        EXPECT_EQ(co_await ask(peer, "x"), "old");
        write(R"(function on_reload(old) count = old.count end
                 function on_message(text) self.send("new " .. count) end)");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await ask(peer, "x"), "new 2");
        write("function on_message(text) self.send('newest') end");
        EXPECT_TRUE(must_do(co_await s->reread()));
        EXPECT_EQ(co_await ask(peer, "x"), "newest");
        EXPECT_EQ(s->count().connections_total, 1U);
        EXPECT_EQ(sample_of(*s, "script_reloads_total"), 2);
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, is_loaded_again_while_callbacks_wait) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_message(text)
                self.send("waits") eddy.sleep(1) self.send("old " .. text)
            end)",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        co_await peer.say("1\n2\n");
        EXPECT_EQ(co_await peer.line(), "waits");
        write("function on_message(text) self.send('new ' .. text) end");
        must_do(co_await s->reload_script());
        EXPECT_EQ(co_await peer.line(), "old 1");
        EXPECT_EQ(co_await peer.line(), "new 2");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, fails_to_start_by_its_script) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make("function on_start() self.send('x') error('no') end", to(server));
        EXPECT_THAT(co_await s.failure_to_start(), HasSubstr("--lua: feed.lua:1: no"));
        EXPECT_EQ(sample_of(*s, "queued_messages"), 0.0);
        write("function on_connect() self.send('y') end");
        co_await s.start();
        talker peer = co_await accept(server);
        EXPECT_EQ(co_await peer.line(), "y");
        co_await s->stop(0s);
    });
}

TEST_P(scripted_client, ends_while_callbacks_wait) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_connect() self.send("x") eddy.sleep(1000) end
            function on_disconnect() eddy.sleep(1000) end
            function on_stop() self.send("last") eddy.sleep(1000) end
            eddy.timer.every(0.001, function() eddy.sleep(1000) end))",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        EXPECT_EQ(co_await peer.line(), "x");
        co_await s->stop(10ms);
        EXPECT_EQ(co_await peer.line(), "last") << "on_connect has not ended, and goes first";
        EXPECT_EQ(co_await peer.rest(), "");
    });
}

TEST_P(scripted_client, shares_the_time_of_a_stop_among_its_callbacks) {
    if (GetParam() != io_backend_kind::sim) GTEST_SKIP() << "it would take seconds";
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_message(text) self.log("begins") eddy.sleep(1000) end
            function on_stop() eddy.sleep(1000) end)",
                         to(server));
        co_await s.start();
        talker peer = co_await accept(server);
        co_await peer.say("x\n");
        co_await has_line(s, "script: begins");
        const time_point began = loop::current().now();
        co_await s->stop(1s);
        EXPECT_LT(loop::current().now() - began, 1100ms);
    });
}

TEST_P(scripted_client, cannot_send_what_its_transport_does_not_carry) {
    run([this]() -> task<void> {
        listener server = any_server();
        subject s = make(R"(
            function on_message(text)
                local ok, why = pcall(self.send, text)
                self.log(tostring(ok) .. " " .. tostring(why))
            end)",
                         to(server, {{"mode", "in"}}));
        co_await s.start();
        talker peer = co_await accept(server);
        co_await peer.say("x\n");
        co_await has_line(s, "only receives (--mode in)");
        must_do(s->apply(s.parse(to(server, {{"lua", file_}, {"queue", "8"}}))));
        co_await peer.say("much too long\n");
        co_await has_line(s, "script: true false");
        co_await s->stop(0s);
    });
}

TEST(client_library_rows, are_documented) {
    class none final : public script_link {
        outcome<bool> queue(std::string_view) override { return false; }
        bool is_connected() const noexcept override { return false; }
        bool disconnect() noexcept override { return false; }
        void end_greeting() noexcept override {}
        void show(std::string_view, bool) override {}
    } link;
    const std::string page = content("docs/scripting.md");
    const script::library all = client_library(link);
    script::testing::expect_documented(all);
    for (const script::library_function& row : all.functions)
        EXPECT_THAT(page, HasSubstr("\n" + script::testing::documented_row(all, row)));
    for (const script::callback& each : client_callbacks())
        EXPECT_THAT(page, HasSubstr("\n| `" + std::string(each.name) + "(" +
                                    std::string(each.arguments) + ")` | "));
}

}  // namespace
}  // namespace eddy::runtime::client
