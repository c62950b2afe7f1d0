// Several datagrams in one call: batches to several peers, buffers sent as segments, and messages
// joined by the kernel.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(segments_io);

std::vector<std::string> texts_of(const datagram_message& message) {
    std::vector<std::string> texts;
    for (const const_bytes one : message.segments()) texts.emplace_back(as_text(one));
    return texts;
}

TEST(datagram_segments_test, cuts_evenly_and_keeps_the_odd_tail) {
    const auto cut = [](std::string_view text, std::size_t segment) {
        const datagram_segments segments(as_bytes(text), segment);
        std::vector<std::string> parts;
        for (const const_bytes one : segments) parts.emplace_back(as_text(one));
        EXPECT_EQ(parts.size(), segments.size());
        return parts;
    };
    using strings = std::vector<std::string>;
    EXPECT_EQ(cut("abcdef", 3), (strings{"abc", "def"}));
    EXPECT_EQ(cut("abcdefg", 3), (strings{"abc", "def", "g"}));
    EXPECT_EQ(cut("ab", 3), (strings{"ab"}));
    EXPECT_EQ(cut("ab", 2), (strings{"ab"}));
    EXPECT_EQ(cut("", 0), (strings{""})) << "an empty datagram is one, too";
    EXPECT_EQ(cut("", 5), (strings{""}));
    static_assert(std::forward_iterator<datagram_segments::iterator>);
}

/// True if this kernel cuts and joins; both are as old as Linux 5.0.
bool kernel_has_segments() {
    const unique_fd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    return setsockopt(probe.get(), SOL_UDP, UDP_GRO, &on, sizeof(on)) == 0 &&
           setsockopt(probe.get(), SOL_UDP, UDP_SEGMENT, &on, sizeof(on)) == 0;
}

#define EDDY_NEEDS_SEGMENTS()                   \
    if (!simulated() && !kernel_has_segments()) \
    GTEST_SKIP() << "this kernel has no UDP_SEGMENT or no UDP_GRO"

datagram bind_joining(loop& here, bool joining) {
    datagram_options options;
    options.join_segments = joining;
    return must(here.bind_datagram(must(endpoint::ip("127.0.0.1", 0)), options));
}

struct shape {
    std::size_t total;
    std::uint16_t segment;
};

TEST_P(segments_io, one_buffer_arrives_as_single_datagrams_however_it_is_received) {
    EDDY_NEEDS_SEGMENTS();
    run([this]() -> task<> {
        for (const bool joining : {false, true}) {
            datagram to = bind_joining(here(), joining);
            datagram from = must(here().bind_datagram(loopback()));
            const endpoint where = to.local();
            for (const shape each :
                 {shape{10, 3}, shape{64 * 64, 64}, shape{64 * 64 - 1, 64}, shape{63 * 64 + 1, 64},
                  shape{1000, 999}, shape{999, 1000}, shape{1000, 1000}, shape{1, 1}, shape{0, 7},
                  shape{64, 1}, shape{65'507, 1200}}) {
                const std::vector<std::byte> bytes = pattern(each.total).next(each.total);
                must(from.send_segments(bytes, each.segment, where));
                const std::size_t expected = datagram_segments(bytes, each.segment).size();
                pattern check(each.total);
                std::size_t datagrams = 0;
                std::size_t messages = 0;
                std::size_t left = each.total;
                while (datagrams < expected) {
                    const datagram_message got = must(co_await to.receive());
                    EXPECT_EQ(got.from, from.local());
                    EXPECT_FALSE(got.truncated);
                    ++messages;
                    for (const const_bytes one : got.segments()) {
                        EXPECT_EQ(one.size(), std::min<std::size_t>(left, each.segment));
                        EXPECT_TRUE(check.continues_with(one));
                        left -= one.size();
                        ++datagrams;
                    }
                }
                EXPECT_EQ(datagrams, expected);
                EXPECT_EQ(left, 0u);
                if (!joining) EXPECT_EQ(messages, expected);
                if (joining && expected == datagram::max_segments) EXPECT_LT(messages, expected);
            }
        }
    });
}

TEST_P(segments_io, joins_only_what_belongs_together) {
    EDDY_NEEDS_SEGMENTS();
    run([this]() -> task<> {
        datagram to = bind_joining(here(), true);
        datagram one = must(here().bind_datagram(loopback()));
        datagram other = must(here().bind_datagram(loopback()));
        for (const char* text : {"aa", "bb", "c", "dd", "", "", "eee", "f"})
            must(one.send_to(as_bytes(text), to.local()));
        must(other.send_to(as_bytes("g"), to.local()));
        std::vector<std::string> all;
        while (all.size() < 9) {
            const datagram_message got = must(co_await to.receive());
            const std::vector<std::string> texts = texts_of(got);
            EXPECT_EQ(got.from, texts.front() == "g" ? other.local() : one.local());
            all.insert(all.end(), texts.begin(), texts.end());
        }
        EXPECT_EQ(all, (std::vector<std::string>{"aa", "bb", "c", "dd", "", "", "eee", "f", "g"}));
    });
}

TEST_P(segments_io, have_limits) {
    EDDY_NEEDS_SEGMENTS();
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        const std::vector<std::byte> bytes(70'000);
        const auto first = [&](std::size_t size) { return const_bytes(bytes).first(size); };
        EXPECT_EQ(error_of(from.send_segments(first(datagram::max_segments + 1), 1, to.local())),
                  errno_code(EINVAL));
        EXPECT_EQ(error_of(from.send_segments(first(65'508), 2000, to.local())),
                  errno_code(EMSGSIZE));
        const endpoint where = to.local();
        EXPECT_EQ(error_of(co_await from.send(first(datagram::max_segments + 1), where, 1)),
                  errno_code(EINVAL));
        must(from.send_to(as_bytes("only this"), to.local()));
        EXPECT_EQ(must(co_await to.receive()).payload.text(), "only this");
    });
}

TEST_P(segments_io, a_batch_goes_to_many_peers) {
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(loopback()));
        std::array<datagram, 5> peers;
        std::array<endpoint, 5> places;
        for (std::size_t i = 0; i < peers.size(); ++i) {
            peers[i] = must(here().bind_datagram(loopback()));
            places[i] = peers[i].local();
        }
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < datagram::max_batch; ++i) texts.push_back(std::to_string(i));
        for (const bool awaited : {false, true}) {
            std::vector<outgoing_datagram> batch;
            for (std::size_t i = 0; i < texts.size(); ++i)
                batch.push_back({as_bytes(texts[i]), &places[i % places.size()]});
            std::size_t sent = 0;
            if (awaited)
                sent = must(co_await from.send(batch));
            else
                sent = must(from.try_send(batch));
            EXPECT_EQ(sent, datagram::max_batch);
            for (std::size_t i = 0; i < texts.size(); ++i) {
                datagram& peer = peers[i % peers.size()];
                EXPECT_EQ(must(co_await peer.receive()).payload.text(), texts[i]);
            }
        }
    });
}

TEST_P(segments_io, a_batch_has_a_limit_and_ends_before_what_is_refused) {
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(loopback()));
        datagram to = must(here().bind_datagram(loopback()));
        const endpoint where = to.local();
        std::vector<outgoing_datagram> batch(datagram::max_batch + 1, {as_bytes("x"), &where});
        EXPECT_EQ(error_of(from.try_send(batch)), errc::limit_reached);
        EXPECT_EQ(error_of(co_await from.send(batch)), errc::limit_reached);
        EXPECT_EQ(must(from.try_send({})), 0u);
        EXPECT_EQ(must(co_await from.send(std::span<const outgoing_datagram>())), 0u);

        const std::vector<std::byte> much(65'508);
        batch.resize(5);
        for (const outgoing_datagram refused :
             {outgoing_datagram{much, &where},
              outgoing_datagram{const_bytes(much).first(1000), &where, 1}}) {
            batch[2] = refused;
            const std::error_code why = errno_code(refused.segment_size ? EINVAL : EMSGSIZE);
            EXPECT_EQ(must(from.try_send(batch)), 2u);
            EXPECT_EQ(error_of(from.try_send(std::span(batch).subspan(2))), why);
            EXPECT_EQ(must(co_await from.send(batch)), 2u);
            EXPECT_EQ(error_of(co_await from.send(std::span(batch).subspan(2))), why);
            for (int i = 0; i < 4; ++i) EXPECT_EQ(must(co_await to.receive()).payload.text(), "x");
        }
        must(from.send_to(as_bytes("end"), where));
        EXPECT_EQ(must(co_await to.receive()).payload.text(), "end") << "nothing else had gone";
    });
}

TEST_P(segments_io, a_batch_may_hold_segments) {
    EDDY_NEEDS_SEGMENTS();
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(loopback()));
        datagram to = bind_joining(here(), true);
        const endpoint where = to.local();
        const std::array<outgoing_datagram, 3> batch{
            outgoing_datagram{as_bytes("aabbc"), &where, 2},
            outgoing_datagram{as_bytes("d"), &where},
            outgoing_datagram{as_bytes("eeff"), &where, 2}};
        EXPECT_EQ(must(from.try_send(batch)), 3u);
        std::vector<std::string> all;
        while (all.size() < 6)
            for (std::string& text : texts_of(must(co_await to.receive())))
                all.push_back(std::move(text));
        EXPECT_EQ(all, (std::vector<std::string>{"aa", "bb", "c", "d", "ee", "ff"}));
    });
}

TEST_P(segments_io, what_came_together_is_there_without_waiting) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        EXPECT_EQ(error_of(to.try_receive()), errno_code(EAGAIN));
        for (int round = 0; round < 50; ++round) {
            for (int i = 0; i < 10; ++i)
                must(from.send_to(as_bytes(std::to_string(i)), to.local()));
            int next = 0;
            while (next < 10) {
                EXPECT_EQ(must(co_await to.receive()).payload.text(), std::to_string(next++));
                for (auto more = to.try_receive();; more = to.try_receive()) {
                    if (!more) {
                        EXPECT_EQ(more.error(), errno_code(EAGAIN));
                        break;
                    }
                    EXPECT_EQ(more->payload.text(), std::to_string(next++));
                }
            }
            EXPECT_EQ(next, 10);
        }
    });
}

}  // namespace
}  // namespace eddy::testing
