// Faults of TLS connections at every moment: rubbish, cut connections, deadlines, cancellations,
// closing. No bytes may be lost silently, and nothing may be left behind, which the sanitizers see.
#include "tls/testing.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>

#include <array>
#include <string>

namespace eddy::tls {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;
using testing::pattern;

class tls_faults : public with_secure_pairs {};
INSTANTIATE_TEST_SUITE_P(tls, tls_faults,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(tls_faults, distinguish_rubbish_from_tls) {
    run([&]() -> task<> {
        const auto server_says = [&](std::string sent) -> task<std::error_code> {
            testing::connection ends = co_await connect();
            must(co_await ends.client.write_all(sent));
            must(ends.client.shutdown_write());
            co_return error_of(co_await accept(std::move(ends.server), server_));
        };
        EXPECT_EQ(co_await server_says("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), errc::not_tls);
        EXPECT_EQ(co_await server_says("CONNECT x:1 HTTP/1.1\r\n\r\n"), errc::not_tls);
        EXPECT_EQ(co_await server_says("*1\r\n$4\r\nPING\r\n"), errc::not_tls);
        EXPECT_EQ(co_await server_says(""), errc::truncated);
        EXPECT_EQ(co_await server_says("\x16"), errc::truncated);
        EXPECT_EQ(co_await server_says("\x16\x03\x01\x40"), errc::truncated);

        const auto client_says = [&](std::string sent) -> task<std::error_code> {
            testing::connection ends = co_await connect();
            must(co_await ends.server.write_all(sent));
            must(ends.server.shutdown_write());
            co_return error_of(co_await tls::connect(std::move(ends.client), client_, "localhost"));
        };
        EXPECT_EQ(co_await client_says("HTTP/1.1 400 Bad Request\r\n\r\n"), errc::not_tls);
        EXPECT_EQ(co_await client_says("-ERR unknown command\r\n"), errc::not_tls);
        EXPECT_EQ(co_await client_says(""), errc::truncated);
        // Fatal alerts (RFC 8446, section 6): handshake_failure, internal_error.
        EXPECT_EQ(co_await client_says({"\x15\x03\x03\x00\x02\x02\x28", 7}),
                  errc::no_common_protocol);
        EXPECT_EQ(co_await client_says({"\x15\x03\x03\x00\x02\x02\x50", 7}),
                  errc::handshake_failed);

        // Any bytes end it with some error.
        for (int i = 0; i < 200; ++i) {
            std::string rubbish;
            if (random().chance(0.5)) rubbish = {"\x16\x03\x01\x00\x40\x01", 6};
            const std::uint64_t size = 1 + random().below(100);
            for (std::uint64_t n = 0; n < size; ++n)
                rubbish += static_cast<char>(random().below(256));
            EXPECT_TRUE(co_await server_says(rubbish));
            EXPECT_TRUE(co_await client_says(rubbish));
        }
    });
}

/// As another user of OpenSSL on this thread may.
void leave_an_error() { ERR_raise(ERR_LIB_USER, 1); }

TEST_P(tls_faults, errors_that_others_left_on_the_thread_are_not_the_connections) {
    run([&]() -> task<> {
        leave_an_error();
        testing::connection ends = co_await secure();
        leave_an_error();
        must(co_await ends.client.write_all("last words"));
        must(ends.client.shutdown_write());
        leave_an_error();
        EXPECT_EQ(must(co_await ends.server.read()).text(), "last words");
        leave_an_error();
        EXPECT_EQ(error_of(co_await ends.server.read()), errc::end_of_stream);
        leave_an_error();
        must(co_await ends.server.write_all("answer"));
        ends.server.close();
        leave_an_error();
        EXPECT_EQ(must(co_await ends.client.read()).text(), "answer");
        leave_an_error();
        EXPECT_EQ(error_of(co_await ends.client.read()), errc::end_of_stream);
        ERR_clear_error();
    });
}

/// The result after all bytes of a stream.
task<std::error_code> end_of(stream& from) {
    for (;;) {
        const auto received = co_await from.read();
        if (!received) co_return received.error();
    }
}

TEST_P(tls_faults, a_cancelled_handshake_closes_the_connection) {
    run([&]() -> task<> {
        for (const bool as_client : {true, false}) {
            for (const bool before : {true, false}) {
                testing::connection ends = co_await connect();
                stream peer = std::move(as_client ? ends.server : ends.client);
                task<result<stream>> work =
                    as_client ? tls::connect(std::move(ends.client), client_, "localhost")
                              : tls::accept(std::move(ends.server), server_);
                std::error_code ended;
                if (before)
                    ended = co_await testing::cancelled_before(std::move(work));
                else
                    ended = co_await testing::cancelled_during(std::move(work));
                EXPECT_EQ(ended, errc::cancelled) << as_client << before;
                // The peer has said nothing, so nothing of it was lost: no reset.
                EXPECT_EQ(co_await end_of(peer), errc::end_of_stream) << as_client << before;
            }
        }
    });
}

TEST_P(tls_faults, a_handshake_cancelled_half_way_closes_the_connection) {
    run([&]() -> task<> {
        // After each number of turns of the loop, until the handshake is complete first.
        bool done = false;
        for (int turns = 0; turns < 200 && !done; ++turns) {
            testing::connection ends = co_await connect();
            cancel_source stop(co_await current_source());
            result<stream> client = fail(errc::closed);
            result<stream> server = fail(errc::closed);
            co_await join_scope([&](scope& tasks) -> task<> {
                tasks.spawn(accept_into(std::move(ends.server), server_, server));
                tasks.spawn(
                    connect_into(std::move(ends.client), client_, "localhost", client).under(stop));
                for (int i = 0; i < turns; ++i) co_await loop::current().yield();
                stop.request();
            });
            done = client.has_value();
            if (!done) {
                EXPECT_EQ(error_of(client), errc::cancelled);
                // TLS 1.3's server may have been done before: it says so at its first read.
                if (server) EXPECT_TRUE(error_of(co_await server->read()));
            }
        }
        EXPECT_TRUE(done);
    });
}

TEST_P(tls_faults, a_cut_connection_is_no_orderly_end) {
    run([&]() -> task<> {
        // The orderly end: shutdown_write() by one side, while the other still sends.
        testing::connection ends = co_await secure();
        must(co_await ends.client.write_all("last words"));
        must(ends.client.shutdown_write());
        must(ends.client.shutdown_write());
        EXPECT_EQ(error_of(co_await ends.client.write_all("more")), errno_code(EPIPE));
        EXPECT_EQ(must(co_await ends.server.read()).text(), "last words");
        EXPECT_EQ(error_of(co_await ends.server.read()), errc::end_of_stream);
        must(co_await ends.server.write_all("answer"));
        ends.server.close();
        EXPECT_EQ(must(co_await ends.client.read()).text(), "answer");
        EXPECT_EQ(error_of(co_await ends.client.read()), errc::end_of_stream);

        // The same bytes through a man in the middle that cuts off the last ones.
        for (const std::size_t missing : {1U, 10U, 24U, 30U}) {
            testing::connection left = co_await connect();
            testing::connection right = co_await connect();
            std::error_code end;
            co_await join_scope([&](scope& tasks) -> task<> {
                const auto relay = [](stream& from, stream& to) -> task<> {
                    while (auto bytes = co_await from.read())
                        if (!co_await to.write_all(bytes->bytes())) break;
                };
                const auto serve = [&](stream plain) -> task<> {
                    stream peer = must(co_await accept(std::move(plain), server_));
                    EXPECT_EQ(must(co_await peer.read()).text(), "hello");
                    must(co_await peer.write_all("the answer"));
                    EXPECT_EQ(must(co_await peer.read()).text(), "got it");
                    peer.close();
                };
                tasks.spawn(serve(std::move(right.server)));
                tasks.spawn(relay(left.server, right.client));
                const auto relay_but_end = [](stream& from, stream& to, std::size_t cut) -> task<> {
                    std::string held;
                    while (auto bytes = co_await from.read()) {
                        // The bytes held back are as long as close_notify with its record.
                        held += bytes->text();
                        if (held.size() > 24) {
                            const std::size_t go = held.size() - 24;
                            const std::string_view begin = std::string_view(held).substr(0, go);
                            if (!co_await to.write_all(begin)) break;
                            held.erase(0, go);
                        }
                        // All but the last record must arrive for the conversation to continue.
                        if (bytes->size() != 24) {
                            if (!co_await to.write_all(held)) break;
                            held.clear();
                        }
                    }
                    held.resize(held.size() - std::min(held.size(), cut));
                    if (!held.empty()) static_cast<void>(co_await to.write_all(held));
                    to.close();
                };
                tasks.spawn(relay_but_end(right.client, left.server, missing));
                stream client =
                    must(co_await tls::connect(std::move(left.client), client_, "localhost"));
                must(co_await client.write_all("hello"));
                EXPECT_EQ(must(co_await client.read()).text(), "the answer");
                must(co_await client.write_all("got it"));
                end = error_of(co_await client.read());
                EXPECT_EQ(error_of(co_await client.read()), end) << "it stays";
            });
            // A relay that closes with bytes unread resets the connection, which is no end, either.
            EXPECT_TRUE(end == errc::truncated || end == errno_code(ECONNRESET)) << end.message();
        }
    });
}

TEST_P(tls_faults, a_changed_byte_is_noticed) {
    // A record whose length has changed is one of which the rest never comes.
    static constexpr duration handshake_limit = 200ms;
    // The minor version before the server's hello has no meaning and is ignored (RFC 8446 5.1).
    static constexpr std::size_t ignored = 2;
    run([&]() -> task<> {
        for (int i = 0; i < 30; ++i) {
            testing::connection left = co_await connect();
            testing::connection right = co_await connect();
            std::size_t place = random().below(2'600);
            if (place == ignored) ++place;
            co_await with_scope([&](scope& tasks) -> task<> {
                const auto relay = [](stream& from, stream& to, std::size_t wrong) -> task<> {
                    std::size_t at = 0;
                    while (auto bytes = co_await from.read()) {
                        std::string copy(bytes->text());
                        if (wrong >= at && wrong < at + copy.size())
                            copy[wrong - at] = static_cast<char>(copy[wrong - at] ^ 0x10);
                        at += copy.size();
                        if (!co_await to.write_all(copy)) break;
                    }
                    static_cast<void>(to.shutdown_write());
                };
                const auto serve = [&](stream plain) -> task<> {
                    auto peer = co_await accept(std::move(plain), server_, handshake_limit);
                    if (!peer) co_return;
                    const std::string page(3'000, 's');
                    if (!co_await peer->write_all(page)) co_return;
                    static_cast<void>(co_await loop::current().sleep_for(handshake_limit));
                };
                tasks.spawn(serve(std::move(right.server)));
                tasks.spawn(relay(left.server, right.client, SIZE_MAX));
                tasks.spawn(relay(right.client, left.server, place));
                auto client = co_await tls::connect(std::move(left.client), client_, "localhost",
                                                    handshake_limit);
                std::string got;
                std::error_code end = error_of(client);
                while (!end && got.size() < 3'000) {
                    auto received = co_await client->read();
                    if (received)
                        got += received->text();
                    else
                        end = received.error();
                }
                EXPECT_TRUE(end) << "byte " << place;
                EXPECT_EQ(got, std::string(got.size(), 's')) << "nothing false comes out";
            });
        }
    });
}

TEST_P(tls_faults, a_handshake_has_a_deadline) {
    run([&]() -> task<> {
        testing::connection ends = co_await connect();
        EXPECT_EQ(error_of(co_await accept(std::move(ends.server), server_, 20ms)),
                  errc::timed_out);
        ends = co_await connect();
        EXPECT_EQ(error_of(co_await tls::connect(std::move(ends.client), client_, "x", 20ms)),
                  errc::timed_out);
        // Over a listener, a wait for the stream fails.
        listener accepting = tls::listen(must(here().listen(loopback())), server_, 20ms);
        stream silent = must(co_await here().connect(accepting.local()));
        stream peer = must(co_await accepting.accept());
        EXPECT_EQ(error_of(co_await peer.read()), errc::timed_out);
        EXPECT_EQ(error_of(co_await peer.write_all("x")), errc::timed_out);
        EXPECT_EQ(error_of(peer.shutdown_write()), errc::timed_out);
        // A deadline ends with the handshake.
        both_ends made = co_await shake_hands(co_await connect(), client_, server_);
        stream client = must(std::move(made.client));
        must(co_await here().sleep_for(40ms));
        must(co_await client.write_all("x"));
        EXPECT_EQ(must(co_await made.server->read()).text(), "x");
    });
}

/// Lets `turns` turns of the loop pass. In the simulator nothing happens while a coroutine is
/// ready, so there time passes instead.
task<> pass(std::size_t turns) {
    loop& here = loop::current();
    if (here.kind() == io_backend_kind::sim) must(co_await here.sleep_for(turns * 20us));
    for (std::size_t i = 0; i < turns; ++i) co_await here.yield();
}

task<> cancel_after(std::size_t turns, cancel_source& what) {
    co_await pass(turns);
    what.request();
}

task<> talk(stream plain, context as, bool server, std::size_t& done) {
    result<stream> peer = fail(errc::closed);
    if (server)
        peer = co_await accept(std::move(plain), std::move(as));
    else
        peer = co_await tls::connect(std::move(plain), std::move(as), "localhost");
    if (!peer) co_return;
    const std::vector<std::byte> message(100'000);
    for (int round = 0; round < 3; ++round) {
        if (!server && !co_await peer->write_all(const_bytes(message))) co_return;
        for (std::size_t got = 0; got < message.size();) {
            auto received = co_await peer->read();
            if (!received) co_return;
            got += received->size();
        }
        if (server && !co_await peer->write_all(const_bytes(message))) co_return;
    }
    ++done;
}

TEST_P(tls_faults, cancelled_after_any_number_of_turns) {
    loop_options options;
    options.sim.socket_buffer = 20'000;
    options.sim.min_delay = 1us;
    options.sim.max_delay = 20us;
    make_loop(options);
    std::size_t done = 0;
    for (std::size_t turns = 0; turns < 120; ++turns)
        for (const bool victim_is_server : {false, true})
            run([&]() -> task<> {
                testing::connection ends = co_await connect();
                cancel_source stop(co_await current_source());
                co_await join_scope([&](scope& tasks) -> task<> {
                    const auto under = [](task<> work, cancel_source& source) -> task<> {
                        co_await std::move(work).under(source);
                    };
                    task<> one = talk(std::move(ends.client), client_, false, done);
                    task<> other = talk(std::move(ends.server), server_, true, done);
                    if (victim_is_server) std::swap(one, other);
                    tasks.spawn(under(std::move(one), stop));
                    tasks.spawn(std::move(other));
                    tasks.spawn(cancel_after(turns, stop));
                    co_return;
                });
            });
    std::printf("%zu ends were done before they were cancelled\n", done);
}

TEST_P(tls_faults, closed_after_any_number_of_turns) {
    loop_options options;
    options.sim.socket_buffer = 20'000;
    options.sim.min_delay = 10us;
    options.sim.max_delay = 30us;
    make_loop(options);
    for (std::size_t turns = 0; turns < 60; ++turns)
        run([&]() -> task<> {
            testing::connection ends = co_await connect();
            listener accepting = tls::listen(must(here().listen(loopback())), server_);
            stream plain = must(co_await here().connect(accepting.local()));
            stream server = must(co_await accepting.accept());
            co_await with_scope([&](scope& tasks) -> task<> {
                const auto read = [](stream& from) -> task<> {
                    while (co_await from.read()) {
                    }
                };
                const auto write = [](stream& to) -> task<> {
                    const std::vector<std::byte> much(400'000);
                    while (co_await to.write_all(const_bytes(much))) {
                    }
                };
                const auto client = [&](stream below) -> task<> {
                    auto made = co_await tls::connect(std::move(below), client_, "localhost");
                    if (!made) co_return;
                    while (co_await made->read())
                        if (!co_await made->write_all("x")) co_return;
                };
                tasks.spawn(read(server));
                tasks.spawn(write(server));
                tasks.spawn(client(std::move(plain)));
                co_await pass(turns);
                server.close();
            });
        });
}

TEST_P(tls_faults, a_cancelled_read_loses_nothing) {
    run([&]() -> task<> {
        testing::connection ends = co_await secure();
        const auto take = [](stream& from) -> task<result<lease>> {
            co_return co_await from.read();
        };
        pattern sent(1);
        pattern received(1);
        for (int i = 0; i < 100; ++i) {
            const auto piece = sent.next(1 + random().below(40'000));
            co_await join_scope([&](scope& tasks) -> task<> {
                const auto write = [](stream& to, const_bytes bytes) -> task<> {
                    must(co_await to.write_all(bytes));
                };
                tasks.spawn(write(ends.client, piece));
                while (received.position() < sent.position()) {
                    auto got = co_await with_timeout(std::chrono::microseconds(random().below(30)),
                                                     take(ends.server));
                    if (got)
                        EXPECT_TRUE(received.continues_with(got->bytes()));
                    else
                        EXPECT_EQ(got.error(), errc::timed_out);
                }
            });
        }
    });
}

TEST_P(tls_faults, an_end_with_a_cancelled_write_is_not_orderly) {
    loop_options options;
    options.sim.socket_buffer = 20'000;
    make_loop(options);
    run([&]() -> task<> {
        testing::connection ends = co_await secure();
        const auto write = [](stream& to) -> task<result<>> {
            const std::vector<std::byte> much(64 * 1024 * 1024);
            co_return co_await to.write_all(const_bytes(much));
        };
        EXPECT_EQ(error_of(co_await with_timeout(5ms, write(ends.client))), errc::timed_out);
        ends.client.close();
        std::error_code end;
        while (!end) end = error_of(co_await ends.server.read());
        EXPECT_TRUE(end == errc::truncated || end == errno_code(ECONNRESET)) << end.message();
    });
}

TEST_P(tls_faults, an_abort_sends_no_orderly_end) {
    run([&]() -> task<> {
        for (const bool waits : {false, true}) {
            testing::connection ends = co_await secure();
            must(co_await ends.client.write_all("part of it"));
            EXPECT_EQ(must(co_await ends.server.read()).text(), "part of it");
            std::error_code waited;
            scope waiting(co_await current_source());
            if (waits)
                waiting.spawn([](stream& from, std::error_code& end) -> task<> {
                    end = error_of(co_await from.read());
                }(ends.client, waited));
            ends.client.abort();
            EXPECT_FALSE(ends.client);
            co_await waiting.join();
            if (waits) EXPECT_EQ(waited, errc::cancelled);
            EXPECT_EQ(error_of(co_await ends.server.read()), errno_code(ECONNRESET));
        }
    });
}

/// Over a Unix socket there is no reset, but no close_notify either.
TEST_P(tls_faults, an_abort_is_seen_over_a_unix_socket) {
    run([&]() -> task<> {
        const testing::temporary_folder folder;
        listener accepting = must(here().listen(must(endpoint::unix_path(folder.file("s")))));
        testing::connection plain;
        plain.client = must(co_await here().connect(accepting.local()));
        plain.server = must(co_await accepting.accept());
        both_ends made = co_await shake_hands(std::move(plain), client_, server_);
        stream client = must(std::move(made.client));
        stream server = must(std::move(made.server));
        must(co_await server.write_all("part of it"));
        EXPECT_EQ(must(co_await client.read()).text(), "part of it");
        server.abort();
        const std::error_code end = error_of(co_await client.read());
        EXPECT_TRUE(end == errc::truncated || end == errno_code(ECONNRESET)) << end.message();
    });
}

/// A client of TLS 1.3 detects its refusal only by the alert, and sends its request before.
TEST_P(tls_faults, a_refused_client_that_sends_gets_the_alert) {
    run([&]() -> task<> {
        server_options options = usual_server();
        options.clients = client_verification::required;
        options.client_ca = test_authority().pem();
        const context strict = tls::must(context::server(options));
        for (int i = 0; i < 10; ++i) {
            testing::connection plain = co_await connect();
            result<stream> served = fail(errc::closed);
            co_await join_scope([&](scope& ends) -> task<> {
                ends.spawn(accept_into(std::move(plain.server), strict, served));
                stream client =
                    must(co_await tls::connect(std::move(plain.client), client_, "localhost"));
                const std::vector<std::byte> piece(64 * 1024);
                for (int sent = 0; sent < 32; ++sent)
                    if (!co_await client.write_all(const_bytes(piece))) break;
                EXPECT_EQ(error_of(co_await client.read()), errc::certificate_refused);
            });
            EXPECT_EQ(error_of(served), errc::untrusted_certificate);
        }
    });
}

TEST_P(tls_faults, resets_at_any_moment_end_both_sides) {
    if (!simulated()) GTEST_SKIP() << "the simulator resets";
    loop_options options;
    options.sim = {.short_read = 0.3,
                   .reset = 0.02,
                   .no_buffers = 0.1,
                   .max_delay = 100us,
                   .socket_buffer = 9'000};
    make_loop(options);
    std::size_t done = 0;
    for (int i = 0; i < 300; ++i)
        run([&]() -> task<> {
            testing::connection ends = co_await connect();
            co_await join_scope([&](scope& tasks) -> task<> {
                tasks.spawn(talk(std::move(ends.client), client_, false, done));
                tasks.spawn(talk(std::move(ends.server), server_, true, done));
                co_return;
            });
        });
}

TEST_P(tls_faults, key_updates_on_both_sides_are_followed) {
    run([&]() -> task<> {
        testing::connection ends = co_await secure();
        const auto update = [](const stream& of) {
            SSL* ssl = ssl_of(of);
            EXPECT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        };
        for (int i = 0; i < 20; ++i) {
            update(i % 2 ? ends.client : ends.server);
            must(co_await ends.client.write_all("question"));
            EXPECT_EQ(must(co_await ends.server.read()).text(), "question");
            must(co_await ends.server.write_all("answer"));
            EXPECT_EQ(must(co_await ends.client.read()).text(), "answer");
        }
    });
}

TEST_P(tls_faults, streams_may_outlive_their_use) {
    // A root task that ends with connections in every state leaves nothing to the loop.
    for (std::size_t turns = 0; turns < 12; ++turns)
        run([&]() -> task<> {
            testing::connection ends = co_await connect();
            listener accepting = tls::listen(must(here().listen(loopback())), server_);
            stream plain = must(co_await here().connect(accepting.local()));
            stream server = must(co_await accepting.accept());
            must(co_await plain.write_all("\x16\x03\x01"));
            co_await pass(turns);
            static_cast<void>(server.shutdown_write());
        });
}

}  // namespace
}  // namespace eddy::tls
