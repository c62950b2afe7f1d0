// Sockets of scripts, beside a peer that the test is: what is received and in which parts, waits
// that end, connections that are kept, and limits.
#include "script/sockets.hpp"

#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>

#include "base/files/temporary_folder.hpp"
#include "io/testing.hpp"
#include "script/coroutine_host.hpp"
#include "script/modules.hpp"
#include "script/testing.hpp"
#include "script/time_library.hpp"
#include "transport/digest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(script_sockets);

class handle_call final : public call {
public:
    handle_call(coroutine_host& in, int port) : call(in), port_(port) {}

private:
    int push_arguments(lua::stack in) override {
        in.pushinteger(port_);
        return 1;
    }
    int port_;
};

/// A script whose handle(port) has these statements, and a listener at that port.
struct subject {
    explicit subject(std::string_view statements, socket_limits limits = {},
                     std::vector<std::string> folders = {})
        : all(limits), found(std::move(folders)), host(options()) {
        const auto loaded = host.load(
            "local s = eddy.tcp() is_begun = false count = false\nfunction handle(port)\n" +
                std::string(statements) + "\nend",
            "s.lua");
        EXPECT_TRUE(loaded) << loaded.error();
    }

    /// The text that handle() returns, or its failure.
    task<std::string> text() {
        handle_call made(host, listens.local().port());
        const call_end end = co_await host.run(made);
        if (end.what == call_end::kind::returned && end.results[0].text() != nullptr)
            co_return *end.results[0].text();
        co_return std::string(end.reason) + ": " + end.text;
    }
    task<void> serve(std::function<task<void>(stream peer)> peer) {
        for (;;) {
            auto accepted = co_await listens.accept();
            if (!accepted) break;
            co_await peer(std::move(*accepted));
        }
    }

    host_options options() {
        return {.callbacks = {{.name = "handle", .is_required = true, .results = 1}},
                .libraries = {all.functions(), found.functions(), time_library()},
                .preludes = {{"sockets", socket_prelude()}, {"modules", module_prelude()}}};
    }

    listener listens = must(tcp::listen("127.0.0.1", 0));
    sockets all;
    modules found;
    coroutine_host host;
};

using peer_code = std::function<task<void>(stream peer)>;

task<std::string> text_beside(subject& s, peer_code peer) {
    scope peers;
    peers.spawn(s.serve(std::move(peer)));
    std::string text = co_await s.text();
    s.listens.close();
    peers.cancel();
    co_await peers.join();
    co_return text;
}

task<void> say(stream& peer, std::string text) { static_cast<void>(co_await peer.write_all(text)); }
task<std::string> next(stream& peer) {
    auto got = co_await peer.read();
    co_return got ? std::string(got->text()) : std::string();
}

/// Sends the pieces in turns of the loop of their own, and closes when `closes`.
peer_code saying(std::vector<std::string> pieces, bool closes = false) {
    return [pieces, closes](stream peer) -> task<void> {
        for (const std::string& each : pieces) {
            co_await say(peer, each);
            co_await loop::current().yield();
        }
        if (!closes) co_await next(peer);
    };
}

/// Sends back what comes.
task<void> echo(stream peer) {
    for (;;) {
        const std::string text = co_await next(peer);
        if (text.empty()) co_return;
        co_await say(peer, text);
    }
}

TEST(script_sockets, have_documented_rows) {
    sockets all;
    testing::expect_documented(all.functions());
    modules found({});
    testing::expect_documented(found.functions());
}

TEST_P(script_sockets, ngx_has_digests_and_codings) {
    run([]() -> task<void> {
        subject s(R"(
            assert(ngx.md5("") == "d41d8cd98f00b204e9800998ecf8427e" and ngx.md5(nil) == ngx.md5(""))
            assert(ngx.md5("a\0b") == "70350f6027bce3713f6b76473084309b")
            assert(#ngx.md5_bin("x") == 16 and #ngx.sha1_bin("x") == 20)
            for i = 0, 9 do
                local text = ("\0\255a"):rep(4):sub(1, i)
                assert(ngx.decode_base64(ngx.encode_base64(text)) == text)
                assert(ngx.decode_base64(ngx.encode_base64(text, true)) == text)
            end
            assert(ngx.encode_base64("ab") == "YWI=" and ngx.encode_base64("ab", true) == "YWI")
            for _, each in ipairs({"a", "a===", "YW I=", "YWI=x", "=", "YWI\n"}) do
                assert(ngx.decode_base64(each) == nil, each)
            end
            return "fine")");
        const std::string got = co_await s.text();
        if (transport::md5("x"))
            EXPECT_EQ(got, "fine");
        else
            EXPECT_THAT(got, HasSubstr("needs a build with TLS"));
    });
}

TEST_P(script_sockets, receives_in_any_split) {
    constexpr std::string_view statements = R"(
        assert(s:connect("127.0.0.1", port))
        local line, size, more = s:receive(), s:receive(5), s:receive("*l")
        local until_ = s:receiveuntil("--end")
        local part, second = until_(4), until_(4)
        local third, over = until_(4), until_(4)
        local whole = s:receiveuntil("--end", {inclusive = true})()
        return table.concat({line, size, more, part, second, third, tostring(over), whole}, "|"))";
    const std::string sent = "one\r\ntwo\nxthree\nhello, world--endagain--end";
    for (std::size_t cut = 0; cut < sent.size(); ++cut)
        run([&]() -> task<void> {
            subject s(statements);
            EXPECT_EQ(co_await text_beside(s, saying({sent.substr(0, cut), sent.substr(cut)})),
                      "one|two\nx|three|hell|o, w|orld|nil|again--end")
                << cut;
            EXPECT_EQ(s.all.count(), 0U) << "its sockets end with the call";
        });
}

TEST_P(script_sockets, an_end_leaves_what_had_come) {
    run([]() -> task<void> {
        subject s(R"(
            assert(s:connect("127.0.0.1", port))
            local text, why, partial = s:receive(10)
            local sent, closed = s:send("x")
            return tostring(text) .. why .. partial .. tostring(sent) .. closed)");
        EXPECT_EQ(co_await text_beside(s, saying({"abc"}, true)), "nilclosedabcnilclosed");
        subject all("assert(s:connect('127.0.0.1', port)) return s:receive('*a')");
        EXPECT_EQ(co_await text_beside(all, saying({"abc", "def"}, true)), "abcdef");
    });
}

TEST_P(script_sockets, waits_end_in_time) {
    run([]() -> task<void> {
        subject s(R"(
            s:settimeout(20)
            assert(s:connect("127.0.0.1", port))
            local text, why, partial = s:receive(10)
            assert(s:send("x"))
            return why .. partial .. s:receive(1))");
        const auto slow = [](stream peer) -> task<void> {
            co_await say(peer, "ab");
            co_await next(peer);
            co_await say(peer, "c");
            co_await next(peer);
        };
        EXPECT_EQ(co_await text_beside(s, slow), "timeoutabc");
    });
}

TEST_P(script_sockets, sends_lists_and_more_than_the_kernel_takes) {
    run([]() -> task<void> {
        subject s(R"(
            assert(s:connect("127.0.0.1", port))
            assert(s:send({"a", 1, {"b", true}}))
            assert(s:receive(7) == "a1btrue")
            local big = ("x"):rep(4 * 1024 * 1024)
            assert(s:send(big) == #big)
            return s:receive("*l"))");
        const auto counting = [](stream peer) -> task<void> {
            std::size_t count = 0;
            while (count < 7 + 4 * 1024 * 1024) {
                auto got = co_await peer.read();
                if (!got) co_return;
                const std::string text(got->text());
                if (count == 0) co_await say(peer, text);
                count += text.size();
            }
            co_await say(peer, "all\n");
            co_await next(peer);
        };
        EXPECT_EQ(co_await text_beside(s, counting), "all");
    });
}

TEST_P(script_sockets, a_kept_connection_is_used_again) {
    run([]() -> task<void> {
        subject s(R"(
            assert(s:connect("127.0.0.1", port))
            local first = s:getreusedtimes()
            s:send("ab")
            s:receive(1)
            local _, unread = s:setkeepalive(1000)
            s:receive(1)
            assert(s:setkeepalive(1000))
            assert(select(2, s:send("x")) == "closed")
            assert(s:connect("127.0.0.1", port))
            assert(s:send("c"))
            return first .. s:receive(1) .. s:getreusedtimes() .. unread)");
        EXPECT_EQ(co_await text_beside(s, echo), "0c1unread data in buffer");
        EXPECT_EQ(s.all.count(), 0U);
    });
}

TEST_P(script_sockets, a_kept_connection_that_its_peer_ends_is_dropped) {
    run([]() -> task<void> {
        subject s(R"(
            assert(s:connect("127.0.0.1", port))
            s:send("a")
            s:receive(1)
            s:setkeepalive(60000)
            sleep(1500)
            assert(s:connect("127.0.0.1", port))
            s:send("b")
            return s:receive(1) .. s:getreusedtimes())");
        const auto once = [](stream peer) -> task<void> {
            auto got = co_await peer.read();
            if (!got) co_return;
            const std::string text(got->text());
            co_await say(peer, text);
        };
        EXPECT_EQ(co_await text_beside(s, once), "b0");
    });
}

TEST_P(script_sockets, a_kept_connection_that_is_in_use_is_not_looked_at) {
    run([]() -> task<void> {
        subject s(R"(
            assert(s:connect("127.0.0.1", port))
            s:send("a")
            s:receive(1)
            assert(s:setkeepalive(60000))
            assert(s:connect("127.0.0.1", port))
            sleep(1500)
            s:send("b")
            return s:receive(1) .. s:getreusedtimes())");
        EXPECT_EQ(co_await text_beside(s, echo), "b1");
    });
}

TEST_P(script_sockets, have_limits) {
    run([]() -> task<void> {
        subject s(R"(
            local all = {}
            for i = 1, 3 do all[i] = eddy.tcp() end
            local none, why = eddy.tcp()
            assert(all[2] and not all[3])
            return why)",
                  {.sockets = 3});
        EXPECT_EQ(co_await text_beside(s, echo), "too many sockets");
        EXPECT_EQ(co_await text_beside(s, echo), "too many sockets") << "a second call";
        subject large(R"(
            assert(s:connect("127.0.0.1", port))
            return select(2, s:receive("*l")))",
                      {.received = 1000});
        EXPECT_EQ(co_await text_beside(large, saying({std::string(2000, 'x')})), "too large");
        const auto silent = [](stream peer) -> task<void> {
            static_cast<void>(co_await peer.write_all(as_bytes(std::string(2000, 'x'))));
            while (co_await loop::current().sleep_for(1ms)) {
            }
        };
        subject receives(R"(
            assert(s:connect("127.0.0.1", port))
            return select(2, s:receive("*l")))",
                         {.waiting = 1000});
        EXPECT_EQ(co_await text_beside(receives, silent), "too large");
        subject sends(R"(
            assert(s:connect("127.0.0.1", port))
            return select(2, s:send(("x"):rep(30000000))) .. tostring(s:send("x")))",
                      {.waiting = 1000});
        EXPECT_EQ(co_await text_beside(sends, silent), "too much waits to be sentnil");
    });
}

/// Result of a call that waits, while later ones run until one of them returns `end`.
task<std::string> woken_by(subject& s, peer_code peer, std::string end) {
    std::string first;
    co_await with_scope([&](scope& calls) -> task<> {
        calls.spawn(s.serve(std::move(peer)));
        calls.spawn(
            [](subject& of, std::string& to) -> task<void> { to = co_await of.text(); }(s, first));
        while (co_await s.text() != end) co_await loop::current().yield();
        while (first.empty()) co_await loop::current().yield();
        s.listens.close();
        calls.cancel();
        co_await calls.join();
    });
    co_return first;
}

TEST_P(script_sockets, close_wakes_what_waits) {
    run([]() -> task<void> {
        for (const std::string wait :
             {"s:receive()", "s:receive('*a')", "s:receiveuntil('x')()", "s:receiveany(9)",
              "s:send(('x'):rep(9e6))", "s:sslhandshake(nil, 'x', false)"}) {
            subject s(R"(
                if count then return is_begun and s:close() and "closes" or "none" end
                count = 1
                assert(s:connect("127.0.0.1", port))
                is_begun = true
                local got, why = )" +
                      wait + R"(
                return tostring(got) .. " " .. why .. " " .. tostring(select(2, s:receive())))");
            EXPECT_EQ(co_await woken_by(
                          s,
                          [](stream peer) -> task<void> {
                              static_cast<void>(co_await loop::current().sleep_for(1h));
                              peer.close();
                          },
                          "closes"),
                      "nil closed closed")
                << wait;
        }
        subject udp(R"(
            if count then return is_begun and u:close() and "closes" or "none" end
            count, u = 1, eddy.udp()
            assert(u:setpeername("127.0.0.1", port))
            is_begun = true
            return select(2, u:receive()))");
        EXPECT_EQ(co_await woken_by(udp, echo, "closes"), "closed");
    });
}

TEST_P(script_sockets, to_connect_anew_wakes_what_waits) {
    run([]() -> task<void> {
        subject s(R"(
            local is_first = not count
            count = 1
            if not is_first and not is_begun then return "not yet" end
            assert(s:connect("127.0.0.1", port))
            if not is_first then return "anew" end
            is_begun = true
            return select(2, s:receive()))");
        EXPECT_EQ(co_await woken_by(s, echo, "anew"), "closed");
        EXPECT_EQ(s.all.count(), 0U);
    });
}

TEST_P(script_sockets, one_wait_of_a_kind_at_a_time) {
    run([]() -> task<void> {
        subject s(R"(
            if not is_begun then
                is_begun = true
                assert(s:connect("127.0.0.1", port))
                return s:receive()
            end
            local text, why = s:receive()
            s:send("x\n")
            return why)");
        std::string first;
        co_await with_scope([&](scope& calls) -> task<> {
            calls.spawn(s.serve(echo));
            calls.spawn([](subject& of, std::string& to) -> task<void> { to = co_await of.text(); }(
                                                             s, first));
            while (s.all.count() == 0) co_await loop::current().yield();
            std::string second;
            while (second != "socket busy reading") {
                second = co_await s.text();
                co_await loop::current().yield();
                if (second != "socket busy reading" && second != "closed") break;
            }
            EXPECT_EQ(second, "socket busy reading");
            while (first.empty()) co_await loop::current().yield();
            s.listens.close();
            calls.cancel();
            co_await calls.join();
        });
        EXPECT_EQ(first, "x");
    });
}

TEST_P(script_sockets, faults_have_their_words) {
    run([]() -> task<void> {
        subject s(R"(
            local words = {}
            words[1] = select(2, s:receive())
            words[2] = select(2, s:connect("127.0.0.1", 99999))
            words[3] = select(2, s:connect("unix:/nowhere/there"))
            words[4] = tostring(pcall(s.receive, s, "x"))
            return table.concat(words, "|"))");
        const std::string text = co_await s.text();
        EXPECT_THAT(text, StartsWith("closed|bad port number|"));
        EXPECT_THAT(text, HasSubstr("|false"));
    });
}

TEST_P(script_sockets, datagrams) {
    run([]() -> task<void> {
        datagram peer = must(udp::bind("127.0.0.1", 0));
        subject s("local u = eddy.udp() u:settimeout(5000) assert(u:setpeername('127.0.0.1', " +
                  std::to_string(peer.local().port()) +
                  ")) assert(u:send('ping')) return u:receive()");
        scope peers;
        peers.spawn([](datagram& of) -> task<void> {
            auto got = co_await of.receive();
            if (!got) co_return;
            const std::string text(got->payload.text());
            EXPECT_TRUE(of.send_to(as_bytes(text + "pong"), got->from));
        }(peer));
        EXPECT_EQ(co_await s.text(), "pingpong");
        co_await peers.join();
    });
}

TEST_P(script_sockets, luasocket_counts_seconds_and_bounds) {
    run([]() -> task<void> {
        subject s(R"(
            local c = assert(require("socket").connect("127.0.0.1", port))
            c:settimeout(5)
            assert(c:send("xabcy", 2, 4) == 4)
            return c:receive(3, "<"))");
        EXPECT_EQ(co_await text_beside(s, echo), "<abc");
    });
}

TEST_P(script_sockets, modules_come_from_the_folders) {
    const temporary_folder folder;
    const auto write = [&](const char* name, const char* text) {
        std::ofstream(folder.path() + "/" + name) << text;
    };
    write("one.lua", "local two = require('two') shared = 'x' return {name = ..., two = two}");
    write("two.lua", "return 'two'");
    write("broken.lua", "return (");
    write("circle.lua", "return require('circle')");
    run([&]() -> task<void> {
        subject s(R"(
            local one = require("one")
            assert(one == require("one") and one.name == "one" and one.two == "two")
            assert(shared == "x" and require("bit") == bit)
            local words = {}
            for i, name in ipairs({"none", "../one", "broken", "circle"}) do
                words[i] = select(2, pcall(require, name))
            end
            return table.concat(words, "\n"))",
                  {}, {folder.path()});
        const std::string text = co_await s.text();
        EXPECT_THAT(text, HasSubstr("module 'none' not found: no file " + folder.path()));
        EXPECT_THAT(text, HasSubstr("module '../one' not found: this is no module's name"));
        EXPECT_THAT(text, HasSubstr("module 'broken': "));
        EXPECT_THAT(text, HasSubstr("requires itself"));
        co_return;
    });
}

}  // namespace
}  // namespace eddy::script
