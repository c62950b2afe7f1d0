// Queued writers with a peer that reads slowly or never: bytes queued, refused, dropped, and their
// cost.
#include <eddy/net/queued_writer.hpp>

#include <eddy/io/frames.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "io/counting_resource.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

namespace eddy {
namespace {

using testing::connection;
using testing::error_of;
using testing::must;
using testing::pattern;
using namespace std::chrono_literals;

std::vector<std::byte> bytes_of(std::string_view text) {
    const const_bytes view = as_bytes(text);
    return {view.begin(), view.end()};
}

class a_queued_writer : public testing::on_io_backend {
protected:
    /// A Unix socket's ends: the kernel takes a fixed amount without a reader, and no more later.
    task<connection> connect_ends() {
        static int counter = 0;
        const endpoint name = must(endpoint::unix_path("@eddy-net-" + std::to_string(getpid()) +
                                                       "-" + std::to_string(++counter)));
        listener accepting = must(here().listen(name));
        connection made;
        made.client = must(co_await here().connect(name));
        made.server = must(co_await accepting.accept());
        co_return made;
    }

    /// Sends until the socket takes no more; returns the number of bytes.
    static std::size_t fill(stream& to) {
        const std::vector<std::byte> much(64 * 1024, std::byte{'-'});
        std::size_t sent = 0;
        for (;;) {
            if (to.native_handle() >= 0) {
                const ssize_t now = ::send(to.native_handle(), much.data(), much.size(),
                                           MSG_DONTWAIT | MSG_NOSIGNAL);
                if (now <= 0) return sent;
                sent += static_cast<std::size_t>(now);
            } else {
                const std::size_t now = must(to.try_write(much));
                if (now == 0) return sent;
                sent += now;
            }
        }
    }

    static task<void> skip(stream& from, std::size_t count) {
        std::vector<std::byte> room(64 * 1024);
        while (count > 0)
            count -=
                must(co_await from.read_some(std::span(room).first(std::min(count, room.size()))));
    }

    static task<std::string> read_exactly(stream& from, std::size_t count) {
        std::string text;
        std::vector<std::byte> room(4096);
        while (text.size() < count) {
            const std::size_t left = std::min(count - text.size(), room.size());
            const std::size_t got = must(co_await from.read_some(std::span(room).first(left)));
            text += as_text(std::span(room).first(got));
        }
        co_return text;
    }

    static task<std::string> read_to_end(stream& from) {
        std::string text;
        for (;;) {
            auto got = co_await from.read();
            if (!got) co_return text;
            text += got->text();
        }
    }

    static task<void> record(awaiting<queued_writer::wait_operation>& wait, std::string name,
                             std::string& log) {
        auto done = co_await wait;
        log += name + (done ? " ok " : " " + done.error().message() + " ");
    }

    /// Yields until ready coroutines have run.
    static task<void> settle() {
        for (int i = 0; i < 10; ++i) co_await loop::current().yield();
    }
};

INSTANTIATE_TEST_SUITE_P(net, a_queued_writer,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(a_queued_writer, sends_every_kind_of_message_in_order) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        {
            queued_writer out(ends.client, tasks);
            const std::size_t stuffed = fill(ends.client);
            EXPECT_TRUE(out.enqueue("copied "));
            EXPECT_TRUE(out.enqueue(bytes_of("moved ")));
            auto buffer = std::make_shared<byte_buffer>();
            buffer->append("shared buffer ");
            EXPECT_TRUE(out.enqueue(std::shared_ptr<const byte_buffer>(buffer)));
            EXPECT_TRUE(
                out.enqueue(std::make_shared<const std::vector<std::byte>>(1000, std::byte{'v'})));
            EXPECT_TRUE(out.enqueue(std::string_view()));
            EXPECT_TRUE(out.enqueue(" end"));
            EXPECT_EQ(out.queued_bytes(), 7U + 6 + 14 + 1000 + 4);
            EXPECT_EQ(out.queued_messages(), 5U);
            EXPECT_EQ(tasks.children(), 1U) << "one coroutine writes it out";

            co_await skip(ends.server, stuffed);
            EXPECT_EQ(co_await read_exactly(ends.server, 1031),
                      "copied moved shared buffer " + std::string(1000, 'v') + " end");
            must(co_await out.flush());
            EXPECT_EQ(out.queued_bytes(), 0U);
            EXPECT_EQ(out.queued_messages(), 0U);
            co_await settle();
            EXPECT_EQ(tasks.children(), 0U);

            EXPECT_TRUE(out.enqueue("again"));
            EXPECT_EQ(co_await read_exactly(ends.server, 5), "again");
        }
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, loses_and_swaps_nothing_under_load) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 200'000;
        options.high_watermark = 100'000;
        queued_writer out(ends.client, tasks, options);
        constexpr std::size_t total = 4 * 1024 * 1024;
        pattern sent(1);
        pattern received(1);
        tasks.spawn([](stream& from, pattern& expected) -> task<> {
            while (expected.position() < total) {
                auto got = must(co_await from.read());
                EXPECT_TRUE(expected.continues_with(got.bytes()));
            }
        }(ends.server, received));
        while (sent.position() < total) {
            const std::uint64_t size =
                std::min<std::uint64_t>(total - sent.position(), 1 + random().below(30'000));
            std::vector<std::byte> message = sent.next(size);
            must(co_await out.reserve(size));
            switch (random().below(3)) {
                case 0: must(out.enqueue(const_bytes(message))); break;
                case 1: must(out.enqueue(std::move(message))); break;
                case 2: {
                    auto shared =
                        std::make_shared<const std::vector<std::byte>>(std::move(message));
                    must(out.enqueue(std::move(shared)));
                    break;
                }
            }
            EXPECT_LE(out.queued_bytes(), options.max_queued_bytes);
            if (random().chance(0.3)) must(co_await out.ready());
        }
        must(co_await out.flush());
        co_await tasks.join();
        EXPECT_EQ(received.position(), total);
    });
}

TEST_P(a_queued_writer, refuses_at_its_limit_and_grants_room_in_order) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 1000;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        EXPECT_TRUE(out.enqueue(std::string(900, 'a')));
        EXPECT_TRUE(out.enqueue(std::string(100, 'b'))) << "exactly full";
        EXPECT_EQ(out.queued_bytes(), 1000U);
        EXPECT_EQ(error_of(out.enqueue("c")), errc::limit_reached);
        EXPECT_EQ(error_of(out.enqueue(bytes_of("c"))), errc::limit_reached);
        EXPECT_EQ(out.queued_bytes(), 1000U);
        EXPECT_FALSE(out.error()) << "a full queue is no failure of the connection";
        EXPECT_EQ(error_of(co_await out.reserve(1001)), errc::limit_reached) << "it never fits";

        std::string log;
        auto big = out.reserve(1000);
        auto small = out.reserve(1);
        tasks.spawn(record(big, "big", log));
        tasks.spawn(record(small, "small", log));
        co_await settle();
        EXPECT_EQ(log, "") << "nobody reads";
        co_await skip(ends.server, stuffed);
        EXPECT_EQ(co_await read_exactly(ends.server, 1000),
                  std::string(900, 'a') + std::string(100, 'b'));
        co_await tasks.join();
        EXPECT_EQ(log, "big ok small ok ") << "the small one does not overtake";
        EXPECT_EQ(out.queued_bytes(), 0U);
    });
}

TEST_P(a_queued_writer, keeps_granted_room_for_the_waiting_coroutine) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 100;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::string(100, 'a')));
        std::string log;
        const auto producer = [](queued_writer& to, char name, std::string& outcomes) -> task<> {
            for (int i = 0; i < 20; ++i) {
                must(co_await to.reserve(100));
                if (!to.enqueue(std::string(100, name))) outcomes += "refused ";
            }
        };
        for (char name : {'b', 'c', 'd'}) tasks.spawn(producer(out, name, log));
        co_await skip(ends.server, stuffed);
        const std::string got = co_await read_exactly(ends.server, 61 * 100);
        co_await tasks.join();
        EXPECT_EQ(log, "");
        EXPECT_EQ(std::count(got.begin(), got.end(), 'c'), 2000);
    });
}

TEST_P(a_queued_writer, counts_messages_too) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_messages = 3;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        for (int i = 0; i < 3; ++i) must(out.enqueue("x"));
        EXPECT_EQ(out.queued_messages(), 3U);
        EXPECT_EQ(error_of(out.enqueue("y")), errc::limit_reached);
        std::string log;
        auto room = out.reserve(1);
        tasks.spawn(record(room, "room", log));
        co_await skip(ends.server, stuffed + 3);
        co_await tasks.join();
        EXPECT_EQ(log, "room ok ");
    });
}

TEST_P(a_queued_writer, drops_the_oldest_whole_messages) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.policy = slow_reader_policy::drop_oldest;
        options.max_queued_bytes = 10'000;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        constexpr int count = 1000;
        const auto line = [](int number) {
            const std::string text = std::to_string(number);
            return std::string(99 - text.size(), '0') + text + "\n";
        };
        for (int i = 0; i < count; ++i) {
            must(out.enqueue(line(i)));
            EXPECT_LE(out.queued_bytes(), options.max_queued_bytes);
            if (i % 100 == 0) co_await settle();
        }
        EXPECT_GT(out.dropped(), 800U);
        EXPECT_EQ(out.dropped_bytes(), out.dropped() * 100);
        EXPECT_EQ(out.dropped() + out.queued_messages(), 1000U);
        const std::size_t left = out.queued_bytes();

        co_await skip(ends.server, stuffed);
        const std::string got = co_await read_exactly(ends.server, left);
        int last = -1;
        for (std::size_t at = 0; at < got.size(); at += 100) {
            const int number = std::stoi(got.substr(at, 99));
            EXPECT_EQ(got.substr(at, 100), line(number)) << "whole lines only";
            EXPECT_GT(number, last) << "in order";
            last = number;
        }
        EXPECT_EQ(last, count - 1) << "the newest is kept";
        must(co_await out.flush());
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, drops_the_new_message_when_nothing_else_may_go) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.policy = slow_reader_policy::drop_oldest;
        options.max_queued_bytes = 1000;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::string(900, 'a')));
        co_await settle();  // its write has begun
        must(out.enqueue(std::string(100, 'b')));
        must(out.enqueue(std::string(900, 'c')));
        EXPECT_EQ(out.dropped(), 1U);
        EXPECT_EQ(out.dropped_bytes(), 900U);
        co_await skip(ends.server, stuffed);
        EXPECT_EQ(co_await read_exactly(ends.server, 1000),
                  std::string(900, 'a') + std::string(100, 'b'));
        must(co_await out.flush());
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, disconnects_a_peer_that_does_not_read) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.policy = slow_reader_policy::disconnect;
        options.max_queued_bytes = 1000;
        queued_writer out(ends.client, tasks, options);
        std::error_code read_end;
        tasks.spawn([](stream& from, std::error_code& end) -> task<> {
            end = error_of(co_await from.read());
        }(ends.client, read_end));
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::string(1000, 'a')));
        co_await settle();
        EXPECT_TRUE(ends.client);
        std::string log;
        auto flushing = out.flush();
        tasks.spawn(record(flushing, "flush", log));
        EXPECT_EQ(error_of(out.enqueue("b")), errc::limit_reached);
        EXPECT_FALSE(ends.client) << "the stream is closed";
        EXPECT_EQ(out.queued_bytes(), 0U);
        EXPECT_EQ(out.error(), errc::limit_reached);
        EXPECT_EQ(error_of(out.enqueue("c")), errc::limit_reached);
        co_await tasks.join();
        EXPECT_EQ(read_end, errc::cancelled);
        EXPECT_EQ(log, "flush " + make_error_code(errc::limit_reached).message() + " ");
        // The peer gets what the kernel had, then the end.
        const std::string got = co_await read_to_end(ends.server);
        EXPECT_LE(got.size(), stuffed + 1000);
    });
}

TEST_P(a_queued_writer, refuses_what_can_never_fit) {
    run([&]() -> task<> {
        for (const auto policy : {slow_reader_policy::wait, slow_reader_policy::drop_oldest,
                                  slow_reader_policy::disconnect}) {
            connection ends = co_await connect_ends();
            scope tasks(co_await current_source());
            queued_writer_options options;
            options.policy = policy;
            options.max_queued_bytes = 10;
            queued_writer out(ends.client, tasks, options);
            EXPECT_EQ(error_of(out.enqueue(std::string(11, 'x'))), errc::limit_reached);
            EXPECT_TRUE(ends.client);
            must(out.enqueue(std::string(10, 'y')));
            EXPECT_EQ(co_await read_exactly(ends.server, 10), std::string(10, 'y'));
            co_await settle();
            co_await tasks.join();
        }
    });
}

TEST_P(a_queued_writer, has_watermarks) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.high_watermark = 300'000;
        options.low_watermark = 100'000;
        queued_writer out(ends.client, tasks, options);
        must(co_await out.ready());
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::vector<std::byte>(299'999)));
        EXPECT_FALSE(out.high_watermark_active());
        must(out.enqueue("x"));
        EXPECT_TRUE(out.high_watermark_active());
        must(out.enqueue(std::vector<std::byte>(300'000)));
        std::string log;
        auto readying = out.ready();
        tasks.spawn(record(readying, "ready", log));
        co_await settle();
        EXPECT_EQ(log, "");
        co_await skip(ends.server, stuffed + 100'000);
        EXPECT_TRUE(out.high_watermark_active()) << "500,000 are left at most";
        EXPECT_EQ(log, "");
        co_await skip(ends.server, 500'000);
        co_await tasks.join();
        EXPECT_EQ(log, "ready ok ");
        EXPECT_FALSE(out.high_watermark_active());
    });
}

TEST_P(a_queued_writer, keeps_its_watermarks_within_its_limit_and_in_order) {
    run([&]() -> task<> {
        struct {
            std::size_t high, low, seen_high, seen_low;
        } const cases[] = {
            {1'000'000, 10'000, 100'000, 10'000},  // above the limit: the limit
            {80'000, 80'000, 80'000, 20'000},      // not below the high one: a quarter of it
            {1'000'000, 2'000'000, 100'000, 25'000},
        };
        for (const auto& each : cases) {
            connection ends = co_await connect_ends();
            scope tasks(co_await current_source());
            queued_writer_options options;
            options.max_queued_bytes = 100'000;
            options.high_watermark = each.high;
            options.low_watermark = each.low;
            queued_writer out(ends.client, tasks, options);
            const std::size_t stuffed = fill(ends.client);
            must(out.enqueue(std::vector<std::byte>(each.seen_high - 1)));
            EXPECT_FALSE(out.high_watermark_active());
            must(out.enqueue("x"));
            EXPECT_TRUE(out.high_watermark_active());
            std::size_t left = SIZE_MAX;
            tasks.spawn([](queued_writer& of, std::size_t& into) -> task<> {
                must(co_await of.ready());
                into = of.queued_bytes();
            }(out, left));
            co_await skip(ends.server, stuffed + each.seen_high);
            co_await tasks.join();
            EXPECT_LE(left, each.seen_low);
        }
    });
}

TEST_P(a_queued_writer, bounds_the_number_of_messages_by_every_policy) {
    run([&]() -> task<> {
        for (const auto policy : {slow_reader_policy::wait, slow_reader_policy::drop_oldest,
                                  slow_reader_policy::disconnect}) {
            connection ends = co_await connect_ends();
            scope tasks(co_await current_source());
            queued_writer_options options;
            options.policy = policy;
            options.max_queued_messages = 3;
            {
                queued_writer out(ends.client, tasks, options);
                const std::size_t stuffed = fill(ends.client);
                for (const char* text : {"1", "2", "3"}) must(out.enqueue(text));
                EXPECT_EQ(out.queued_messages(), 3U);
                const std::error_code fourth = error_of(out.enqueue("4"));
                if (policy == slow_reader_policy::drop_oldest) {
                    EXPECT_FALSE(fourth);
                    EXPECT_EQ(out.queued_messages(), 3U);
                    EXPECT_EQ(out.dropped(), 1U);
                    EXPECT_EQ(out.dropped_bytes(), 1U);
                    co_await skip(ends.server, stuffed);
                    EXPECT_EQ(co_await read_exactly(ends.server, 3), "234");
                } else {
                    EXPECT_EQ(fourth, errc::limit_reached);
                    EXPECT_EQ(static_cast<bool>(ends.client), policy == slow_reader_policy::wait)
                        << "only `disconnect` closes";
                    EXPECT_EQ(out.dropped(), 0U);
                }
                if (policy == slow_reader_policy::wait) {
                    co_await skip(ends.server, stuffed);
                    EXPECT_EQ(co_await read_exactly(ends.server, 3), "123");
                }
                static_cast<void>(co_await out.flush());
            }
            co_await tasks.join();
        }
    });
}

TEST_P(a_queued_writer, notifies_all_when_it_is_aborted) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 100;
        options.high_watermark = 100;
        queued_writer out(ends.client, tasks, options);
        fill(ends.client);
        must(out.enqueue(std::string(100, 'x')));
        std::string log;
        auto flushing = out.flush();
        auto room = out.reserve(1);
        auto readying = out.ready();
        tasks.spawn(record(flushing, "1", log));
        tasks.spawn(record(room, "2", log));
        tasks.spawn(record(readying, "3", log));
        co_await settle();
        EXPECT_EQ(log, "");
        out.abort();
        EXPECT_EQ(log, "") << "it resumes nobody";
        co_await tasks.join();
        const std::string closed = make_error_code(errc::closed).message();
        EXPECT_EQ(log, "1 " + closed + " 2 " + closed + " 3 " + closed + " ");
        EXPECT_FALSE(ends.client);
        EXPECT_EQ(out.queued_bytes(), 0U);
        EXPECT_EQ(error_of(out.enqueue("x")), errc::closed);
        EXPECT_EQ(error_of(co_await out.flush()), errc::closed);
        EXPECT_EQ(error_of(co_await out.reserve(1)), errc::closed);
        out.abort();
    });
}

TEST_P(a_queued_writer, resets_the_connection_when_an_abort_drops_messages) {
    run([&]() -> task<> {
        for (const bool is_full : {false, true}) {
            connection ends = co_await connect();  // Unix sockets have no reset
            scope tasks(co_await current_source());
            queued_writer out(ends.client, tasks);
            if (is_full) fill(ends.client);
            must(out.enqueue("the last one"));
            EXPECT_EQ(out.queued_bytes() > 0, is_full);
            out.abort();
            co_await tasks.join();
            std::error_code end;
            while (!end) end = error_of(co_await ends.server.read());
            EXPECT_EQ(end, is_full ? errno_code(ECONNRESET) : make_error_code(errc::end_of_stream));
        }
    });
}

TEST_P(a_queued_writer, sends_a_part_of_what_an_owner_keeps) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        const auto owner = std::make_shared<const std::string>("<" + std::string(5000, 'p') + ">");
        const const_bytes inner = as_bytes(std::string_view(*owner)).subspan(1, 5000);
        // At once, where nothing is kept.
        must(out.enqueue(owner, inner));
        EXPECT_EQ(owner.use_count(), 1);
        EXPECT_EQ(co_await read_exactly(ends.server, 5000), std::string(5000, 'p'));
        // And out of the queue.
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(owner, inner));
        EXPECT_EQ(owner.use_count(), 2);
        EXPECT_EQ(out.queued_bytes(), 5000U);
        // Short messages are copied.
        must(out.enqueue(owner, inner.first(10)));
        EXPECT_EQ(owner.use_count(), 2);
        co_await skip(ends.server, stuffed);
        EXPECT_EQ(co_await read_exactly(ends.server, 5010), std::string(5010, 'p'));
        must(co_await out.flush());
        co_await tasks.join();
        EXPECT_EQ(owner.use_count(), 1);
    });
}

TEST_P(a_queued_writer, shares_a_payload_between_peers) {
    run([&]() -> task<> {
        constexpr std::size_t peers = 3;
        connection ends[peers];
        std::size_t stuffed[peers];
        scope tasks(co_await current_source());
        std::vector<std::unique_ptr<queued_writer>> writers;
        auto payload = std::make_shared<const std::vector<std::byte>>(100'000, std::byte{'p'});
        for (std::size_t i = 0; i < peers; ++i) {
            ends[i] = co_await connect_ends();
            stuffed[i] = fill(ends[i].client);
            writers.push_back(std::make_unique<queued_writer>(ends[i].client, tasks));
            must(writers.back()->enqueue(payload));
        }
        EXPECT_EQ(payload.use_count(), 4) << "one payload, however many peers";
        for (std::size_t i = 0; i < peers; ++i) {
            EXPECT_EQ(writers[i]->queued_bytes(), 100'000U);
            co_await skip(ends[i].server, stuffed[i]);
            EXPECT_EQ(co_await read_exactly(ends[i].server, 100'000), std::string(100'000, 'p'));
            must(co_await writers[i]->flush());
        }
        co_await tasks.join();
        EXPECT_EQ(payload.use_count(), 1);
    });
}

TEST_P(a_queued_writer, flushes_within_a_limit) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        must(co_await out.flush_within(0s));
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue("still here"));
        EXPECT_EQ(error_of(co_await out.flush_within(1ms)), errc::timed_out);
        EXPECT_EQ(out.queued_bytes(), 10U);
        co_await skip(ends.server, stuffed);
        must(co_await out.flush_within(30s));
        EXPECT_EQ(co_await read_exactly(ends.server, 10), "still here");
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, shuts_down_after_the_last_byte) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue("last words"));
        std::string got;
        tasks.spawn([](stream& from, std::size_t before, std::string& into) -> task<> {
            co_await skip(from, before);
            into = co_await read_to_end(from);
        }(ends.server, stuffed, got));
        must(co_await out.graceful_shutdown(30s));
        EXPECT_EQ(error_of(out.enqueue("too late")), errc::closed);
        EXPECT_EQ(error_of(co_await out.reserve(1)), errc::closed);
        co_await tasks.join();
        EXPECT_EQ(got, "last words");
        EXPECT_TRUE(ends.client) << "reading goes on";
        must(co_await ends.server.write_all("answer"));
        EXPECT_EQ(co_await read_exactly(ends.client, 6), "answer");
    });
}

TEST_P(a_queued_writer, closes_when_a_shutdown_takes_too_long) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        fill(ends.client);
        must(out.enqueue("never read"));
        EXPECT_EQ(error_of(co_await out.graceful_shutdown(1ms)), errc::timed_out);
        EXPECT_FALSE(ends.client);
        EXPECT_EQ(out.queued_bytes(), 0U);
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, notifies_all_when_the_peer_is_gone) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 100;
        options.high_watermark = 100;
        queued_writer out(ends.client, tasks, options);
        fill(ends.client);
        must(out.enqueue(std::string(100, 'x')));
        std::string log;
        auto flushing = out.flush();
        auto room = out.reserve(1);
        auto readying = out.ready();
        tasks.spawn(record(flushing, "1", log));
        tasks.spawn(record(room, "2", log));
        tasks.spawn(record(readying, "3", log));
        co_await settle();
        ends.server.close();
        co_await tasks.join();
        const std::error_code error = out.error();
        EXPECT_TRUE(error == errno_code(EPIPE) || error == errno_code(ECONNRESET)) << error;
        EXPECT_EQ(log,
                  "1 " + error.message() + " 2 " + error.message() + " 3 " + error.message() + " ");
        EXPECT_EQ(error_of(out.enqueue("x")), error);
        EXPECT_EQ(error_of(co_await out.flush()), error);
        EXPECT_EQ(out.queued_bytes(), 0U);
    });
}

TEST_P(a_queued_writer, sends_on_after_the_frame_memory_of_the_producer_is_gone) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        {
            queued_writer out(ends.client, tasks);
            const std::size_t sent = fill(ends.client);
            {
                testing::counting_resource memory;
                co_await with_frames(memory, [&]() -> task<void> {
                    must(out.enqueue("the rest"));
                    co_await settle();
                });
                EXPECT_EQ(memory.outstanding(), 0u);
            }
            EXPECT_EQ(out.queued_messages(), 1u);
            co_await skip(ends.server, sent);
            EXPECT_EQ(co_await read_exactly(ends.server, 8), "the rest");
            must(co_await out.flush());
        }
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, may_die_with_a_full_queue) {
    run([&]() -> task<> {
        scope tasks(co_await current_source());
        auto payload = std::make_shared<const std::vector<std::byte>>(1000);
        for (const bool write_begun : {false, true}) {
            connection ends = co_await connect_ends();
            queued_writer out(ends.client, tasks);
            fill(ends.client);
            for (int i = 0; i < 100; ++i) must(out.enqueue(payload));
            if (write_begun) co_await settle();
        }
        co_await tasks.join();
        EXPECT_EQ(payload.use_count(), 1);
    });
}

TEST_P(a_queued_writer, stops_with_its_scope) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        fill(ends.client);
        must(out.enqueue("x"));
        co_await settle();
        tasks.cancel();
        co_await tasks.join();
        EXPECT_EQ(out.error(), errc::cancelled);

        connection others = co_await connect_ends();
        queued_writer late(others.client, tasks);
        fill(others.client);
        EXPECT_EQ(error_of(late.enqueue("x")), errc::cancelled) << "nobody would write it out";
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, cancels_its_waits) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        scope waits(co_await current_source());
        queued_writer out(ends.client, tasks);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue("x"));
        std::string log;
        auto flushing = out.flush();
        waits.spawn(record(flushing, "flush", log));
        waits.cancel();
        co_await waits.join();
        EXPECT_EQ(log, "flush " + make_error_code(errc::cancelled).message() + " ");
        co_await skip(ends.server, stuffed + 1);
        must(co_await out.flush());
        co_await tasks.join();
    });
}

task<void> send_reserved(queued_writer& out, std::string text, std::string& log) {
    const auto room = co_await out.reserve(text.size());
    if (room) must(out.enqueue(text));
    log += text.substr(0, 1) + (room ? " ok " : " " + room.error().message() + " ");
}

TEST_P(a_queued_writer, cancels_a_reserve_and_grants_what_it_waited_for_to_the_next) {
    run([&]() -> task<> {
        const std::string cancelled = make_error_code(errc::cancelled).message();
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer_options options;
        options.max_queued_bytes = 100;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::string(80, 'x')));
        co_await settle();

        // The peer reads nothing: only a cancellation makes room for the waits behind it.
        std::string log;
        scope first(co_await current_source());
        scope second(co_await current_source());
        scope third(co_await current_source());
        first.spawn(send_reserved(out, std::string(50, 'a'), log));
        second.spawn(send_reserved(out, std::string(15, 'b'), log));
        third.spawn(send_reserved(out, std::string(10, 'c'), log));
        co_await settle();
        EXPECT_EQ(log, "");
        first.cancel();
        co_await first.join();
        co_await settle();
        EXPECT_EQ(log, "a " + cancelled + " b ok ");
        EXPECT_EQ(out.queued_bytes(), 95U);
        // A cancelled waiter takes no room.
        third.cancel();
        co_await third.join();
        co_await second.join();
        EXPECT_EQ(log, "a " + cancelled + " b ok c " + cancelled + " ");
        must(out.enqueue(std::string(5, 'd')));
        co_await skip(ends.server, stuffed);
        EXPECT_EQ(co_await read_exactly(ends.server, 100),
                  std::string(80, 'x') + std::string(15, 'b') + std::string(5, 'd'));
        must(co_await out.flush());
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, cancels_a_wait_for_its_watermark_and_no_other) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        scope waits(co_await current_source());
        queued_writer_options options;
        options.high_watermark = 100;
        queued_writer out(ends.client, tasks, options);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue(std::string(100, 'x')));
        std::string log;
        auto given_up = out.ready();
        auto kept = out.ready();
        waits.spawn(record(given_up, "1", log));
        tasks.spawn(record(kept, "2", log));
        co_await settle();
        waits.cancel();
        co_await waits.join();
        EXPECT_EQ(log, "1 " + make_error_code(errc::cancelled).message() + " ");
        EXPECT_TRUE(out.high_watermark_active());
        log.clear();
        co_await skip(ends.server, stuffed + 100);
        co_await tasks.join();
        EXPECT_EQ(log, "2 ok ");
    });
}

TEST_P(a_queued_writer, cancels_a_bounded_flush_and_keeps_the_queue) {
    run([&]() -> task<> {
        connection ends = co_await connect_ends();
        scope tasks(co_await current_source());
        queued_writer out(ends.client, tasks);
        const std::size_t stuffed = fill(ends.client);
        must(out.enqueue("still here"));
        EXPECT_EQ(co_await testing::cancelled_before(out.flush_within(30s)), errc::cancelled);
        EXPECT_EQ(co_await testing::cancelled_during(out.flush_within(30s)), errc::cancelled);
        EXPECT_EQ(out.queued_bytes(), 10U);
        EXPECT_FALSE(out.error());
        co_await skip(ends.server, stuffed);
        EXPECT_EQ(co_await read_exactly(ends.server, 10), "still here");
        must(co_await out.flush());
        co_await tasks.join();
    });
}

TEST_P(a_queued_writer, closes_when_a_shutdown_is_cancelled) {
    run([&]() -> task<> {
        for (const bool beforehand : {false, true}) {
            connection ends = co_await connect_ends();
            scope tasks(co_await current_source());
            queued_writer out(ends.client, tasks);
            fill(ends.client);
            must(out.enqueue("never read"));
            auto ending = out.graceful_shutdown(30s);
            const auto seen = beforehand ? co_await testing::cancelled_before(std::move(ending))
                                         : co_await testing::cancelled_during(std::move(ending));
            EXPECT_EQ(seen, errc::cancelled);
            EXPECT_FALSE(ends.client);
            EXPECT_EQ(out.queued_bytes(), 0U);
            co_await tasks.join();
        }
    });
}

/// A stream that records how it is written to, and takes nothing until it is allowed to.
class recording_driver final : public stream_driver {
public:
    bool start(read_operation&) override { return false; }
    bool start(write_operation& op) override {
        std::size_t size = 0;
        for (std::size_t i = 0; i < op.pieces_left(); ++i) size += op.piece(i).size();
        pieces_written.push_back(op.pieces_left());
        op.advance(size);
        return true;
    }
    void cancel(read_operation&) noexcept override {}
    void cancel(write_operation&) noexcept override {}
    result<> shutdown_write() noexcept override { return {}; }
    endpoint local() const noexcept override { return {}; }
    endpoint peer() const noexcept override { return {}; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {}

    std::vector<std::size_t> pieces_written;
};

TEST(queued_writer, gathers_what_is_queued_into_few_writes) {
    loop_options options;
    options.kind = io_backend_kind::sim;
    auto here = must(loop::create(options));
    const auto body = []() -> task<> {
        for (const auto policy : {slow_reader_policy::wait, slow_reader_policy::drop_oldest}) {
            recording_driver driver;
            stream to(driver);
            scope tasks(co_await current_source());
            queued_writer_options limits;
            limits.policy = policy;
            queued_writer out(to, tasks, limits);
            for (int i = 0; i < 40; ++i) must(out.enqueue("message"));
            must(co_await out.flush());
            // Copies melt into one piece, unless each must stay droppable.
            const std::vector<std::size_t> merged = {1};
            const std::vector<std::size_t> apart = {16, 16, 8};
            EXPECT_EQ(driver.pieces_written, policy == slow_reader_policy::wait ? merged : apart);
            co_await tasks.join();
        }
    };
    here->run(body());
}

TEST(queued_writer, is_small_while_idle) { EXPECT_LE(sizeof(queued_writer), 160U); }

}  // namespace
}  // namespace eddy
