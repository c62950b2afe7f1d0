// PROXY headers of accepted connections: what is read, what follows it, addresses, and operations
// on the stream with other addresses.
#include "serving/proxy_header.hpp"

#include <eddy/net/tcp.hpp>

#include "serving/acceptor.hpp"
#include "serving/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::serving {
namespace {

using namespace serving::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(proxy_headers);

const std::string header = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";

/// Both ends of a connection.
struct ends {
    talker proxy;
    stream accepted;
};
task<ends> connected() {
    listener from = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    ends made;
    made.proxy = co_await talker::to(from.local());
    made.accepted = must(co_await from.accept());
    co_return made;
}

task<std::error_code> refused(std::string bytes, bool ends_then) {
    ends both = co_await connected();
    if (!bytes.empty()) co_await both.proxy.say(bytes);
    if (ends_then) must(both.proxy.socket.shutdown_write());
    const auto taken = co_await take_proxy_header(std::move(both.accepted), 30s);
    co_return taken ? std::error_code() : taken.error();
}

TEST_P(proxy_headers, the_connection_has_the_addresses_of_the_header) {
    run([]() -> task<void> {
        ends both = co_await connected();
        co_await both.proxy.say(header + "hello\n");
        talker taken(must(co_await take_proxy_header(std::move(both.accepted), 30s)).its);
        EXPECT_EQ(taken.socket.peer().to_string(), "192.0.2.7:4711");
        EXPECT_EQ(taken.socket.local().to_string(), "198.51.100.1:443");
        EXPECT_EQ(co_await taken.line(), "hello");
        co_await taken.say("answer\n");
        EXPECT_EQ(co_await both.proxy.line(), "answer");
        must(taken.socket.shutdown_write());
        EXPECT_EQ(co_await both.proxy.rest(), "");
    });
}

TEST_P(proxy_headers, in_any_pieces_and_nothing_behind_them_is_lost) {
    run([]() -> task<void> {
        for (std::size_t at = 1; at < header.size() + 3; ++at) {
            ends both = co_await connected();
            scope writing;
            writing.spawn([](talker& by, std::size_t cut) -> task<> {
                const std::string all = header + "hello\n";
                co_await by.say(all.substr(0, cut));
                for (int i = 0; i < 3; ++i) co_await loop::current().yield();
                co_await by.say(all.substr(cut));
            }(both.proxy, at));
            talker taken(must(co_await take_proxy_header(std::move(both.accepted), 30s)).its);
            EXPECT_EQ(taken.socket.peer().to_string(), "192.0.2.7:4711");
            EXPECT_EQ(co_await taken.line(), "hello");
            co_await writing.join();
        }
    });
}

TEST_P(proxy_headers, own_addresses_stay_without_others) {
    run([]() -> task<void> {
        for (const std::string& each : {std::string("PROXY UNKNOWN\r\n"),
                                        std::string("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16)}) {
            ends both = co_await connected();
            const endpoint peer = both.accepted.peer();
            co_await both.proxy.say(each + "hello\n");
            talker taken(must(co_await take_proxy_header(std::move(both.accepted), 30s)).its);
            EXPECT_EQ(taken.socket.peer(), peer);
            EXPECT_EQ(co_await taken.line(), "hello");
        }
    });
}

TEST_P(proxy_headers, additional_values_come_with_the_connection_at_all_splits) {
    using namespace std::string_literals;
    const std::string content = "\1\2\3\4\5\6\7\10\1\2\0\x50"s + "\2\0\x09"s + "a.example";
    const std::string binary =
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\0"s + static_cast<char>(content.size()) + content;
    run([&]() -> task<void> {
        for (std::size_t at = 0; at <= binary.size(); ++at) {
            ends both = co_await connected();
            scope writing;
            writing.spawn([](talker& by, std::string all, std::size_t cut) -> task<> {
                if (cut > 0) co_await by.say(all.substr(0, cut));
                for (int i = 0; i < 3; ++i) co_await loop::current().yield();
                co_await by.say(all.substr(cut) + "hello\n");
            }(both.proxy, binary, at));
            auto taken = must(co_await take_proxy_header(std::move(both.accepted), 30s));
            if (!taken.values) throw std::runtime_error("there are no values");
            EXPECT_EQ(taken.values->authority, "a.example");
            talker its(std::move(taken.its));
            EXPECT_EQ(its.socket.peer().to_string(), "1.2.3.4:258");
            EXPECT_EQ(co_await its.line(), "hello");
            co_await writing.join();
        }
        ends both = co_await connected();
        co_await both.proxy.say(header);
        const auto taken = co_await take_proxy_header(std::move(both.accepted), 30s);
        EXPECT_EQ(taken.value().values, nullptr) << "a header without any";
    });
}

TEST_P(proxy_headers, failures) {
    run([]() -> task<void> {
        EXPECT_EQ(co_await refused("GET / HTTP/1.1\r\n\r\n", false), errc::malformed);
        EXPECT_EQ(co_await refused("", true), errc::end_of_stream);
        EXPECT_EQ(co_await refused(header.substr(0, 20), true), errc::truncated);
        std::string too_long("\r\n\r\n\0\r\nQUIT\n\x21\x11\x20\0", 16);
        EXPECT_EQ(co_await refused(too_long, false), errc::limit_reached);
    });
}

TEST_P(proxy_headers, a_late_one_times_out) {
    run([]() -> task<void> {
        ends both = co_await connected();
        co_await both.proxy.say("PROXY ");
        const auto taken = co_await take_proxy_header(std::move(both.accepted), 20ms);
        EXPECT_EQ(taken.error(), errc::timed_out);
        EXPECT_EQ(co_await both.proxy.rest(), "");
    });
}

TEST_P(proxy_headers, waits_on_the_stream_end_with_it_and_by_cancellation) {
    run([]() -> task<void> {
        ends both = co_await connected();
        co_await both.proxy.say(header);
        stream taken = must(co_await take_proxy_header(std::move(both.accepted), 30s)).its;
        std::array<std::byte, 8> room{};
        // A cancelled wait loses nothing.
        EXPECT_EQ((co_await with_timeout(5ms, taken.read())).error(), errc::timed_out);
        EXPECT_EQ((co_await with_timeout(5ms, taken.read_some(room))).error(), errc::timed_out);
        // The handle closes while a wait of it is under way, which is cancelled afterwards.
        cancel_source stop;
        std::error_code seen;
        scope waiting;
        waiting.spawn(
            [](stream& from, mutable_bytes into, std::error_code& end) -> task<> {
                end = (co_await from.read_exactly(into)).error();
            }(taken, room, seen)
                                                                              .under(stop));
        co_await loop::current().yield();
        taken.close();
        stop.request();
        co_await waiting.join();
        EXPECT_EQ(seen, errc::cancelled);
    });
}

TEST_P(proxy_headers, the_stream_can_be_reset) {
    run([]() -> task<void> {
        ends both = co_await connected();
        co_await both.proxy.say(header);
        stream taken = must(co_await take_proxy_header(std::move(both.accepted), 30s)).its;
        taken.abort();
        const auto got = co_await both.proxy.socket.read();
        EXPECT_EQ(got.error(), errno_code(ECONNRESET));
    });
}

TEST(proxy_header_addresses, are_of_one_family) {
    const auto at = [](const char* host, std::uint16_t port) {
        return must(endpoint::ip(host, port));
    };
    const auto v4 = addresses_between(at("10.0.0.7", 1), at("10.0.0.8", 2));
    ASSERT_TRUE(v4);
    EXPECT_FALSE(v4->source.is_v6);
    EXPECT_EQ(v4->source.bytes[3], 7);
    EXPECT_EQ(v4->destination.port, 2);
    EXPECT_EQ(addresses_between(at("::ffff:10.0.0.7", 1), at("::ffff:10.0.0.8", 2)), v4);
    const auto mixed = addresses_between(at("10.0.0.7", 1), at("fd00::8", 2));
    ASSERT_TRUE(mixed);
    EXPECT_TRUE(mixed->source.is_v6 && mixed->destination.is_v6);
    EXPECT_EQ(mixed->source.bytes[11], 0xff);
    EXPECT_EQ(mixed->source.bytes[15], 7);
    EXPECT_EQ(mixed->source.bytes[0], 0);
    EXPECT_FALSE(addresses_between(must(endpoint::unix_path("/s")), at("::1", 1)));
    EXPECT_FALSE(addresses_between(endpoint(), endpoint()));
}

}  // namespace
}  // namespace eddy::serving
