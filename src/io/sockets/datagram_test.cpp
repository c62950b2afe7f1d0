// Datagrams: bounds, sender, truncation, loss without a receiver.
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(datagram_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(datagram_kernel_io);

task<void> expect_conversation(loop& here, const char* host) {
    datagram a = must(here.bind_datagram(must(endpoint::ip(host, 0))));
    datagram b = must(here.bind_datagram(must(endpoint::ip(host, 0))));
    EXPECT_NE(a.local().port(), 0);
    must(a.send_to(as_bytes("question"), b.local()));
    const datagram_message question = must(co_await b.receive());
    EXPECT_EQ(question.payload.text(), "question");
    EXPECT_EQ(question.from, a.local());
    EXPECT_FALSE(question.truncated);
    must(b.send_to(as_bytes("answer"), question.from));
    const datagram_message answer = must(co_await a.receive());
    EXPECT_EQ(answer.payload.text(), "answer");
    EXPECT_EQ(answer.from, b.local());
}

TEST_P(datagram_io, go_both_ways_over_ipv4) {
    run([this]() -> task<> { co_await expect_conversation(here(), "127.0.0.1"); });
}

/// A Unix message socket of that name.
datagram bind_unix(loop& here, const std::string& name) {
    const endpoint local = must(endpoint::unix_path(name));
    unique_fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::bind(socket.get(), local.data(), local.size()) < 0)
        throw std::runtime_error("bind: " + name);
    return must(here.adopt_datagram(std::move(socket)));
}

TEST_P(datagram_kernel_io, unix_senders_are_known_only_by_short_names) {
    run([this]() -> task<> {
        const temporary_folder folder;
        const std::string own = std::to_string(getpid());
        datagram to = bind_unix(here(), "@eddy-to-" + own);
        // The folder's own path may be long.
        const unique_fd opened(::open(folder.path().c_str(), O_PATH | O_CLOEXEC));
        const std::string in = "/proc/self/fd/" + std::to_string(opened.get()) + "/";
        const std::string names[] = {"@e" + own, in + std::string(29 - in.size(), 'x'),
                                     in + std::string(30 - in.size(), 'x'),
                                     "@e" + own + std::string(40, 'x')};
        const bool known[] = {true, true, false, false};
        for (std::size_t i = 0; i < std::size(names); ++i) {
            datagram from = bind_unix(here(), names[i]);
            must(from.send_to(as_bytes(names[i]), to.local()));
            const datagram_message got = must(co_await to.receive());
            EXPECT_EQ(got.payload.text(), names[i]);
            EXPECT_EQ(got.from, known[i] ? from.local() : endpoint()) << names[i];
        }
        datagram nameless =
            must(here().adopt_datagram(unique_fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))));
        must(nameless.send_to(as_bytes("x"), to.local()));
        EXPECT_EQ(must(co_await to.receive()).from, endpoint());
    });
}

TEST_P(datagram_io, go_both_ways_over_ipv6) {
    run([this]() -> task<> { co_await expect_conversation(here(), "::1"); });
}

TEST_P(datagram_io, stay_apart_and_in_order) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        for (int round = 0; round < 20; ++round) {
            for (int i = 0; i < 20; ++i)
                must(from.send_to(as_bytes(std::string(static_cast<std::size_t>(i), 'x')),
                                  to.local()));
            for (std::size_t i = 0; i < 20; ++i)
                EXPECT_EQ(must(co_await to.receive()).payload.size(), i) << "empty ones count";
        }
    });
}

TEST_P(datagram_io, one_that_is_too_long_is_cut_and_says_so) {
    loop_options small;
    small.datagram_size = 1024;
    make_loop(small);
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        for (const std::size_t size : {1023u, 1024u, 1025u, 9000u}) {
            const std::vector<std::byte> bytes = pattern(1).next(size);
            must(from.send_to(bytes, to.local()));
            const datagram_message got = must(co_await to.receive());
            EXPECT_EQ(got.truncated, size > 1024);
            EXPECT_EQ(got.payload.size(), std::min<std::size_t>(size, 1024));
            EXPECT_TRUE(pattern(1).continues_with(got.payload.bytes()));
        }
    });
}

TEST_P(datagram_io, the_longest_one_arrives_whole) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        for (const std::size_t size : {65'506u, 65'507u}) {
            const std::vector<std::byte> bytes = pattern(size).next(size);
            must(from.send_to(bytes, to.local()));
            const datagram_message got = must(co_await to.receive());
            EXPECT_FALSE(got.truncated);
            EXPECT_EQ(got.payload.size(), size);
            EXPECT_TRUE(pattern(size).continues_with(got.payload.bytes()));
        }
        const std::vector<std::byte> more(65'508);
        EXPECT_EQ(error_of(from.send_to(more, to.local())), errno_code(EMSGSIZE));
    });
}

TEST_P(datagram_io, empty_ones_are_messages_and_no_end) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        for (int i = 0; i < 50; ++i) {
            must(from.send_to({}, to.local()));
            must(from.send_to({}, to.local()));
            must(from.send_to(as_bytes("x"), to.local()));
            for (const std::size_t size : {0u, 0u, 1u}) {
                const datagram_message got = must(co_await to.receive());
                EXPECT_EQ(got.payload.size(), size);
                EXPECT_EQ(got.from, from.local());
                EXPECT_EQ(got.segments().size(), 1u);
            }
        }
    });
}

TEST_P(datagram_io, a_connected_socket_needs_no_address_and_receives_only_from_its_peer) {
    run([this]() -> task<> {
        datagram there = must(here().bind_datagram(loopback()));
        datagram stranger = must(here().bind_datagram(loopback()));
        datagram socket = must(here().connect_datagram(there.local()));
        EXPECT_EQ(socket.peer(), there.local());
        EXPECT_EQ(stranger.peer(), endpoint());
        must(socket.send_to(as_bytes("hello"), {}));
        must(co_await socket.send(as_bytes("again")));
        EXPECT_EQ(must(co_await there.receive()).payload.text(), "hello");
        const datagram_message got = must(co_await there.receive());
        EXPECT_EQ(got.payload.text(), "again");
        EXPECT_EQ(got.from, socket.local());
        must(stranger.send_to(as_bytes("let me in"), got.from));
        must(there.send_to(as_bytes("welcome"), got.from));
        const datagram_message welcome = must(co_await socket.receive());
        EXPECT_EQ(welcome.payload.text(), "welcome");
        EXPECT_EQ(welcome.from, there.local());

        // Another peer, then none.
        must(socket.connect(stranger.local()));
        must(socket.send_to(as_bytes("you?"), {}));
        EXPECT_EQ(must(co_await stranger.receive()).payload.text(), "you?");
        must(socket.connect({}));
        EXPECT_EQ(socket.peer(), endpoint());
        EXPECT_EQ(error_of(socket.send_to(as_bytes("x"), {})), errno_code(EDESTADDRREQ));
    });
}

task<result<datagram_message>> receive_one(datagram& from) { co_return co_await from.receive(); }

/// Sends until the port is closed: io_uring releases a closed socket's port a little later.
task<> ask_until_refused(datagram& socket) {
    const std::error_code refused = errno_code(ECONNREFUSED);
    for (;;) {
        // A late refusal is reported to the send after it.
        const result<> sent = socket.send_to(as_bytes("anybody?"), {});
        if (error_of(sent) == refused) co_return;
        must(sent);
        const auto got = co_await with_timeout(10ms, receive_one(socket));
        if (error_of(got) == refused) co_return;
        EXPECT_EQ(error_of(got), errc::timed_out);
    }
}

TEST_P(datagram_io, refusal_is_an_error_of_the_next_call_and_no_end) {
    run([this]() -> task<> {
        datagram there = must(here().bind_datagram(loopback()));
        const endpoint where = there.local();
        datagram socket = must(here().connect_datagram(where));
        const endpoint back = socket.local();
        const std::error_code refused = errno_code(ECONNREFUSED);
        for (int round = 0; round < 5; ++round) {
            there.close();
            co_await ask_until_refused(socket);
            must(socket.send_to(as_bytes("anybody?"), {}));
            EXPECT_EQ(error_of(co_await socket.receive()), refused);

            // A send reports it, too, once the kernel and the loop have processed it.
            result<> sent;
            while ((sent = socket.send_to(as_bytes("x"), {}))) must(co_await here().sleep_for(1ms));
            EXPECT_EQ(error_of(sent), refused);
            while ((sent = co_await socket.send(as_bytes("x")))) co_await here().yield();
            EXPECT_EQ(error_of(sent), refused);

            // The socket stays usable; leftover refusals are errors of calls.
            there = must(here().bind_datagram(where));
            while (!(sent = socket.send_to(as_bytes("now"), {})))
                EXPECT_EQ(error_of(sent), refused);
            EXPECT_EQ(must(co_await there.receive()).payload.text(), "now");
            must(there.send_to(as_bytes("here"), back));
            auto got = co_await socket.receive();
            for (; !got; got = co_await socket.receive()) EXPECT_EQ(error_of(got), refused);
            EXPECT_EQ(got->payload.text(), "here");
        }
    });
}

task<> count_messages(datagram& to, int& count) {
    while (co_await to.receive()) ++count;
}

TEST_P(datagram_io, several_sockets_share_a_port_on_request) {
    run([this]() -> task<> {
        datagram_options shared;
        shared.reuse_port = true;
        datagram first = must(here().bind_datagram(loopback(), shared));
        datagram second = must(here().bind_datagram(first.local(), shared));
        EXPECT_EQ(first.local(), second.local());
        EXPECT_EQ(error_of(here().bind_datagram(first.local())), errno_code(EADDRINUSE));

        // The kernel chooses by a hash of both addresses: that one socket gets nothing from 100
        // ports has a probability of 2 * 0.5^100, less than 2e-30.
        std::vector<datagram> senders;
        int by_socket[2] = {0, 0};
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(count_messages(first, by_socket[0]));
            children.spawn(count_messages(second, by_socket[1]));
            for (int i = 0; i < 100; ++i) {
                senders.push_back(must(here().bind_datagram(loopback())));
                must(senders.back().send_to(as_bytes("x"), first.local()));
                while (by_socket[0] + by_socket[1] <= i) must(co_await here().sleep_for(10us));
            }
        });
        for (const int got : by_socket) EXPECT_GT(got, 0);
        EXPECT_EQ(by_socket[0] + by_socket[1], 100);
    });
}

TEST_P(datagram_io, returns_the_destination_address) {
    run([this]() -> task<> {
        datagram_options telling;
        telling.local_address = true;
        datagram any = must(here().bind_datagram(must(endpoint::ip("*", 0)), telling));
        datagram four = must(here().bind_datagram(must(endpoint::ip("0.0.0.0", 0)), telling));
        const auto ask = [](datagram& to, const char* host, const char* seen) -> task<> {
            datagram from = must(loop::current().bind_datagram(must(endpoint::ip(host, 0))));
            must(from.send_to(as_bytes("x"), must(endpoint::ip(host, to.local().port()))));
            const datagram_message got = must(co_await to.receive());
            EXPECT_EQ(got.to.host(), seen);
            EXPECT_EQ(got.to.port(), to.local().port());
            EXPECT_EQ(got.interface, 1u) << "the loopback device";
        };
        co_await ask(any, "::1", "::1");
        co_await ask(any, "127.0.0.1", "::ffff:127.0.0.1");
        co_await ask(four, "127.0.0.1", "127.0.0.1");

        must(four.set({}));
        must(four.send_to(as_bytes("x"), loopback(four.local().port())));
        EXPECT_EQ(must(co_await four.receive()).to, endpoint());
    });
}

TEST_P(datagram_io, an_answer_comes_from_the_address_that_was_asked) {
    run([this]() -> task<> {
        datagram_options telling;
        telling.local_address = true;
        for (const char* wildcard : {"*", "0.0.0.0"}) {
            datagram server = must(here().bind_datagram(must(endpoint::ip(wildcard, 0)), telling));
            endpoint asked = must(endpoint::ip("127.0.0.2", server.local().port()));
            datagram client = must(here().bind_datagram(loopback()));
            must(client.send_to(as_bytes("?"), asked));
            const datagram_message question = must(co_await server.receive());
            // One alone, some of a batch, and one that is cut into segments.
            const std::vector<outgoing_datagram> batch{
                {as_bytes("1"), &question.from, 0, &question.to},
                {as_bytes("2"), &question.from, 0, &question.to},
                {as_bytes("3a4b"), &question.from, 2, &question.to}};
            EXPECT_EQ(must(server.try_send(std::span(batch).first(1))), 1U);
            EXPECT_EQ(must(co_await server.send(std::span(batch).subspan(1))), 2U);
            for (const char* text : {"1", "2", "3a", "4b"}) {
                const datagram_message answer = must(co_await client.receive());
                EXPECT_EQ(answer.payload.text(), text);
                EXPECT_EQ(answer.from, asked);
            }
            // A connected socket gets nothing from other addresses.
            must(client.connect(asked));
            must(client.send_to(as_bytes("?"), {}));
            EXPECT_EQ(must(co_await server.receive()).to, question.to);
            EXPECT_EQ(must(server.try_send(std::span(batch).first(1))), 1U);
            EXPECT_EQ(must(co_await client.receive()).payload.text(), "1");
        }
        datagram server = must(here().bind_datagram(must(endpoint::ip("*", 0)), telling));
        datagram client = must(here().bind_datagram(must(endpoint::ip("::1", 0))));
        const endpoint asked = must(endpoint::ip("::1", server.local().port()));
        must(client.send_to(as_bytes("?"), asked));
        const datagram_message question = must(co_await server.receive());
        const outgoing_datagram one{as_bytes("!"), &question.from, 0, &question.to};
        EXPECT_EQ(must(server.try_send({&one, 1})), 1U);
        EXPECT_EQ(must(co_await client.receive()).from, asked);
    });
}

TEST_P(datagram_io, a_source_that_is_none_is_refused) {
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(must(endpoint::ip("0.0.0.0", 0))));
        datagram to = must(here().bind_datagram(loopback()));
        const endpoint where = to.local();
        for (const char* source : {"224.0.0.1", "255.255.255.255"}) {
            const endpoint group = must(endpoint::ip(source, 0));
            const outgoing_datagram one{as_bytes("x"), &where, 0, &group};
            EXPECT_EQ(error_of(from.try_send({&one, 1})), errno_code(EINVAL)) << source;
        }
        // None is the socket's own.
        const endpoint none;
        const endpoint wildcard = must(endpoint::ip("0.0.0.0", 0));
        for (const endpoint* source : {&none, &wildcard}) {
            const outgoing_datagram one{as_bytes("x"), &where, 0, source};
            EXPECT_EQ(must(from.try_send({&one, 1})), 1U);
            EXPECT_EQ(must(co_await to.receive()).from.host(), "127.0.0.1");
        }
    });
}

TEST_P(datagram_io, a_waiting_receive_gets_the_next_one) {
    run([this]() -> task<> {
        datagram to = must(here().bind_datagram(loopback()));
        datagram from = must(here().bind_datagram(loopback()));
        for (int i = 0; i < 100; ++i) {
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](datagram& at, int number) -> task<> {
                    EXPECT_EQ(must(co_await at.receive()).payload.text(), std::to_string(number));
                }(to, i));
                co_await here().yield();
                must(from.send_to(as_bytes(std::to_string(i)), to.local()));
            });
        }
    });
}

TEST_P(datagram_io, closing_ends_a_receive_that_waits) {
    run([this]() -> task<> {
        datagram socket = must(here().bind_datagram(loopback()));
        const endpoint where = socket.local();
        std::error_code seen;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](datagram& at, std::error_code& error) -> task<> {
                error = error_of(co_await at.receive());
            }(socket, seen));
            co_await here().yield();
            socket.close();
        });
        EXPECT_EQ(seen, errc::cancelled);
        // The port is free once the kernel has released the receive.
        const time_point deadline = here().now() + 10s;
        result<datagram> again = here().bind_datagram(where);
        while (!again && here().now() < deadline) {
            must(co_await here().sleep_for(1ms));
            again = here().bind_datagram(where);
        }
        EXPECT_TRUE(again);
    });
}

TEST_P(datagram_io, a_receiver_may_close_its_socket) {
    run([this]() -> task<> {
        datagram from = must(here().bind_datagram(loopback()));
        for (int i = 0; i < 20; ++i) {
            datagram to = must(here().bind_datagram(loopback()));
            const endpoint where = to.local();
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](datagram at) -> task<> {
                    static_cast<void>(must(co_await at.receive()));
                    at.close();
                }(std::move(to)));
                co_await here().yield();
                must(from.send_to(as_bytes("x"), where));
            });
        }
    });
}

TEST_P(datagram_io, a_closed_handle_answers_closed) {
    run([this]() -> task<> {
        datagram socket = must(here().bind_datagram(loopback()));
        const endpoint where = socket.local();
        socket.close();
        EXPECT_FALSE(socket);
        EXPECT_EQ(error_of(co_await socket.receive()), errc::closed);
        EXPECT_EQ(error_of(socket.send_to(as_bytes("x"), where)), errc::closed);
    });
}

TEST_P(datagram_io, a_port_in_use_is_refused) {
    run([this]() -> task<> {
        datagram first = must(here().bind_datagram(loopback()));
        EXPECT_EQ(error_of(here().bind_datagram(first.local())), errno_code(EADDRINUSE));
        co_return;
    });
}

TEST_P(datagram_io, a_dual_stack_socket_serves_both_families) {
    run([this]() -> task<> {
        datagram both = must(here().bind_datagram(must(endpoint::ip("*", 0))));
        for (const char* host : {"127.0.0.1", "::1"}) {
            datagram from = must(here().bind_datagram(must(endpoint::ip(host, 0))));
            must(from.send_to(as_bytes("hello"), must(endpoint::ip(host, both.local().port()))));
            const datagram_message got = must(co_await both.receive());
            EXPECT_EQ(got.payload.text(), "hello");
            EXPECT_EQ(got.from.port(), from.local().port());
            must(both.send_to(as_bytes("back"), got.from));
            EXPECT_EQ(must(co_await from.receive()).payload.text(), "back");
        }
    });
}

TEST_P(datagram_kernel_io, one_that_is_too_long_for_ip_is_refused) {
    run([this]() -> task<> {
        datagram socket = must(here().bind_datagram(loopback()));
        const std::vector<std::byte> bytes(70'000);
        EXPECT_EQ(error_of(socket.send_to(bytes, socket.local())), errno_code(EMSGSIZE));
        co_return;
    });
}

}  // namespace
}  // namespace eddy::testing
