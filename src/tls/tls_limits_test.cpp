// Limits of a TLS connection and of a listener: a full socket, too many handshakes, a peer that
// sends requests and does not read.
#include "tls/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

namespace eddy::tls {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;
using testing::pattern;

class tls_limits : public with_secure_pairs {};
INSTANTIATE_TEST_SUITE_P(tls, tls_limits,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

// ---- a full socket

/// A stream over another one that lets only so many bytes through, like a socket whose peer does
/// not read.
class valve final : public stream_driver {
public:
    explicit valve(stream below) noexcept : below_(std::move(below)) {}

    bool start(read_operation& op) override { return below_.driver().start(op); }
    bool start(write_operation& op) override {
        if (push(op)) return true;
        writer_ = &op;
        return false;
    }
    result<std::size_t> try_write(const_bytes bytes) noexcept override {
        return writer_ ? 0 : let_through(bytes);
    }
    void cancel(read_operation& op) noexcept override { below_.driver().cancel(op); }
    void cancel(write_operation& op) noexcept override {
        writer_ = nullptr;
        op.set_error(errc::cancelled);
        op.complete_later();
    }
    result<> shutdown_write() noexcept override { return below_.shutdown_write(); }
    endpoint local() const noexcept override { return below_.local(); }
    endpoint peer() const noexcept override { return below_.peer(); }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {
        if (writer_) cancel(*writer_);
        delete this;
    }

    /// Lets `room` bytes through from now on.
    void open(std::size_t room) {
        room_ = room;
        if (writer_ && push(*writer_)) std::exchange(writer_, nullptr)->complete_later();
    }
    /// The write that waits fails.
    void break_down() {
        writer_->set_error(errno_code(EPIPE));
        std::exchange(writer_, nullptr)->complete_later();
    }

private:
    ~valve() = default;

    result<std::size_t> let_through(const_bytes bytes) noexcept {
        const auto taken = below_.try_write(bytes.first(std::min(bytes.size(), room_)));
        if (taken) room_ -= *taken;
        return taken;
    }
    bool push(write_operation& op) {
        while (op.pieces_left() > 0) {
            const auto taken = let_through(op.piece(0));
            if (!taken) {
                op.set_error(taken.error());
                return true;
            }
            if (*taken == 0) return false;
            op.advance(*taken);
        }
        return true;
    }

    stream below_;
    std::size_t room_ = SIZE_MAX;
    write_operation* writer_ = nullptr;
};

struct valved {
    testing::connection ends;
    valve* tap = nullptr;  // of the server's end
};

class tls_full_socket : public tls_limits {
protected:
    task<valved> secure_with_valve() {
        testing::connection plain = co_await connect();
        valved made;
        made.tap = new valve(std::move(plain.server));
        plain.server = stream(*made.tap);
        both_ends shaken = co_await shake_hands(std::move(plain), client_, server_);
        made.ends = {must(std::move(shaken.client)), must(std::move(shaken.server))};
        co_return made;
    }

    /// All bytes that `from` reads, and the result at its end.
    static task<std::error_code> read_all(stream& from, std::string& got) {
        for (;;) {
            const auto received = co_await from.read();
            if (!received) co_return received.error();
            got += received->text();
        }
    }
};
INSTANTIATE_TEST_SUITE_P(tls, tls_full_socket,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

/// A record of TLS 1.3 adds 22 bytes; close_notify is two of plaintext.
constexpr std::size_t record_overhead = 22;
constexpr std::size_t end_size = record_overhead + 2;

TEST_P(tls_full_socket, loses_only_the_end_when_it_is_closed) {
    run([&]() -> task<> {
        const std::string text(20'000, 't');
        for (std::size_t room = 0; room <= end_size; ++room) {
            for (const bool shut : {false, true}) {
                valved made = co_await secure_with_valve();
                must(co_await made.ends.server.write_all(text));
                made.tap->open(room);
                if (shut) must(made.ends.server.shutdown_write());
                made.ends.server.close();
                std::string got;
                const std::error_code end = co_await read_all(made.ends.client, got);
                EXPECT_EQ(got, text) << "what write_all() took arrives";
                EXPECT_EQ(end, room < end_size ? errc::truncated : errc::end_of_stream)
                    << "room for " << room;
            }
        }
    });
}

TEST_P(tls_full_socket, sends_the_end_once_there_is_room) {
    run([&]() -> task<> {
        valved made = co_await secure_with_valve();
        must(co_await made.ends.server.write_all("text"));
        made.tap->open(0);
        must(made.ends.server.shutdown_write());
        made.tap->open(10);
        made.tap->open(SIZE_MAX);
        std::string got;
        // It stays open until the peer has answered: nothing is lost that way.
        EXPECT_EQ(co_await read_all(made.ends.client, got), errc::end_of_stream);
        EXPECT_EQ(got, "text");
        made.ends.client.close();
        EXPECT_EQ(error_of(co_await made.ends.server.read()), errc::end_of_stream);
    });
}

TEST_P(tls_full_socket, reads_the_end_once_its_own_is_out) {
    run([&]() -> task<> {
        const auto read = [](stream& from, std::error_code& end) -> task<> {
            end = error_of(co_await from.read());
        };
        const auto read_result = [](stream& from) -> task<result<lease>> {
            co_return co_await from.read();
        };
        for (const std::size_t room : {0U, 10U}) {
            for (const bool peer_goes : {false, true}) {
                valved made = co_await secure_with_valve();
                stream& server = made.ends.server;
                made.tap->open(room);
                must(server.shutdown_write());
                must(made.ends.client.shutdown_write());
                EXPECT_EQ(error_of(co_await with_timeout(5ms, read_result(server))),
                          errc::timed_out)
                    << "the peer's end is there, but ours is not out";
                std::error_code end;
                std::string got;
                co_await join_scope([&](scope& tasks) -> task<> {
                    tasks.spawn(read(server, end));
                    co_await here().yield();
                    if (peer_goes)
                        made.tap->break_down();
                    else
                        made.tap->open(SIZE_MAX);
                });
                EXPECT_EQ(end, errc::end_of_stream);
                server.close();
                EXPECT_EQ(co_await read_all(made.ends.client, got),
                          peer_goes ? errc::truncated : errc::end_of_stream);
            }
        }
    });
}

TEST_P(tls_full_socket, completes_a_write_with_its_last_byte_only) {
    run([&]() -> task<> {
        const auto write = [](stream& to, std::string_view text, bool& done) -> task<> {
            done = (co_await to.write_all(text)).has_value();
        };
        const std::string text(300, 'w');
        for (std::size_t room = 0; room <= text.size() + record_overhead; room += 23) {
            valved made = co_await secure_with_valve();
            made.tap->open(room);
            bool done = false;
            co_await with_scope([&](scope& tasks) -> task<> {
                tasks.spawn(write(made.ends.server, text, done));
                for (int i = 0; i < 10; ++i) co_await here().yield();
                EXPECT_EQ(done, room == text.size() + record_overhead) << room;
                if (done) co_return;
                made.tap->open(text.size() + record_overhead - room);
                while (!done) co_await here().yield();
                made.ends.server.close();
                std::string got;
                EXPECT_EQ(co_await read_all(made.ends.client, got), errc::truncated);
                EXPECT_EQ(got, text);
            });
        }
    });
}

TEST_P(tls_full_socket, takes_a_single_byte_by_a_write_that_waits) {
    run([&]() -> task<> {
        for (std::size_t room = 0; room <= record_overhead + 1; ++room) {
            valved made = co_await secure_with_valve();
            made.tap->open(room);
            const std::size_t taken = must(made.ends.server.try_write(as_bytes("x")));
            made.ends.server.close();
            std::string got;
            co_await read_all(made.ends.client, got);
            EXPECT_EQ(got.size(), taken) << "what was taken arrives, and nothing else";
        }
    });
}

TEST_P(tls_full_socket, goes_on_with_the_bytes_that_were_left) {
    run([&]() -> task<> {
        for (const std::size_t room : {0U, 10U, 60U}) {
            const std::string text = "a message of more than a byte";
            {
                valved made = co_await secure_with_valve();
                made.tap->open(room);
                const std::size_t taken = must(made.ends.server.try_write(as_bytes(text)));
                made.tap->open(SIZE_MAX);
                if (taken == text.size()) {
                    EXPECT_EQ(room, 60U);
                } else {
                    EXPECT_EQ(taken, text.size() - 1);
                    for (int i = 0; i < 10; ++i) co_await here().yield();
                    EXPECT_EQ(must(made.ends.server.try_write(as_bytes(text).subspan(taken))), 1U);
                }
                must(co_await made.ends.server.write_all("!"));
                made.ends.server.close();
                std::string got;
                EXPECT_EQ(co_await read_all(made.ends.client, got), errc::end_of_stream);
                EXPECT_EQ(got, text + "!");
            }
            // Other bytes would arrive in place of the accepted ones.
            for (const bool waits : {false, true}) {
                valved made = co_await secure_with_valve();
                made.tap->open(0);
                EXPECT_EQ(must(made.ends.server.try_write(as_bytes(text))), text.size() - 1);
                made.tap->open(SIZE_MAX);
                for (int i = 0; i < 10; ++i) co_await here().yield();
                std::error_code said;
                if (waits)
                    said = error_of(co_await made.ends.server.write_all("another"));
                else
                    said = error_of(made.ends.server.try_write(as_bytes("another")));
                EXPECT_EQ(said, errno_code(EINVAL));
                EXPECT_EQ(error_of(co_await made.ends.server.write_all(text)), errno_code(EINVAL));
                made.ends.server.close();
                std::string got;
                EXPECT_EQ(co_await read_all(made.ends.client, got), errc::truncated);
            }
            // A message that was given up in its middle is no orderly end.
            valved made = co_await secure_with_valve();
            made.tap->open(0);
            must(made.ends.server.try_write(as_bytes(text)));
            made.tap->open(SIZE_MAX);
            for (int i = 0; i < 10; ++i) co_await here().yield();
            made.ends.server.close();
            std::string got;
            EXPECT_EQ(co_await read_all(made.ends.client, got), errc::truncated);
        }
    });
}

/// The same on a socket that is really full.
TEST_P(tls_full_socket, keeps_what_was_written_on_a_real_one) {
    loop_options options;
    options.sim.socket_buffer = 100'000;
    make_loop(options);
    run([&]() -> task<> {
        testing::connection ends = co_await secure();
        pattern sent(1);
        std::uint64_t written = 0;
        const auto write = [](stream& to, const_bytes bytes) -> task<result<>> {
            co_return co_await to.write_all(bytes);
        };
        for (;;) {
            const std::vector<std::byte> piece = sent.next(10'000);
            if (!co_await with_timeout(20ms, write(ends.server, piece))) break;
            written = sent.position();
        }
        EXPECT_GT(written, 0U);
        // The abandoned bytes wait here still, and so does the end.
        must(ends.server.shutdown_write());
        ends.server.close();
        pattern expected(1);
        std::error_code end;
        while (!end) {
            const auto received = co_await ends.client.read();
            end = error_of(received);
            if (received) EXPECT_TRUE(expected.continues_with(received->bytes()));
        }
        EXPECT_GE(expected.position(), written);
        EXPECT_EQ(end, errc::truncated);
    });
}

TEST_P(tls_full_socket, ends_before_the_handshake_is_done) {
    run([&]() -> task<> {
        listener accepting = tls::listen(must(here().listen(loopback())), server_);
        stream plain = must(co_await here().connect(accepting.local()));
        stream server = must(co_await accepting.accept());
        EXPECT_EQ(server.native_handle(), -1);
        co_await join_scope([&](scope& tasks) -> task<> {
            const auto write = [](stream& to) -> task<> {
                EXPECT_EQ(error_of(co_await to.write_all("never sent")), errno_code(EPIPE));
            };
            tasks.spawn(write(server));
            co_await here().yield();
            must(server.shutdown_write());
            EXPECT_EQ(error_of(co_await server.write_all("more")), errno_code(EPIPE));
            stream client = must(co_await tls::connect(std::move(plain), client_, "localhost"));
            EXPECT_EQ(error_of(co_await client.read()), errc::end_of_stream);
        });
        listener nowhere = tls::listen(listener(), server_);
        EXPECT_EQ(error_of(co_await nowhere.accept()), errc::closed);
        EXPECT_EQ(nowhere.native_handle(), -1);
    });
}

// ---- handshakes under way

class tls_handshake_limit : public tls_limits {
protected:
    static constexpr std::size_t limit = 3;

    listener listen_with_limit(duration timeout = default_handshake_timeout) {
        return tls::listen(must(here().listen(loopback())), server_, timeout, limit);
    }
    task<stream> plain_client(const listener& to) {
        co_return must(co_await here().connect(to.local()));
    }
    static task<result<stream>> take(listener& from) { co_return co_await from.accept(); }

    /// As many silent clients as there may be.
    task<std::vector<testing::connection>> fill(listener& from) {
        std::vector<testing::connection> silent(limit);
        for (testing::connection& one : silent) {
            one.client = co_await plain_client(from);
            one.server = must(co_await from.accept());
        }
        co_return silent;
    }
    /// A whole client, which is answered.
    task<> greet(listener& from) {
        const auto serve = [](listener& accepting) -> task<> {
            stream peer = must(co_await accepting.accept());
            must(co_await peer.write_all("welcome"));
            EXPECT_EQ(error_of(co_await peer.read()), errc::end_of_stream);
        };
        co_await join_scope([&](scope& tasks) -> task<> {
            tasks.spawn(serve(from));
            stream plain = co_await plain_client(from);
            stream client = must(co_await tls::connect(std::move(plain), client_, "localhost"));
            EXPECT_EQ(must(co_await client.read()).text(), "welcome");
            client.close();
        });
    }
};
INSTANTIATE_TEST_SUITE_P(tls, tls_handshake_limit,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(tls_handshake_limit, waits_for_a_place) {
    run([&]() -> task<> {
        listener accepting = listen_with_limit();
        // One below the limit, no handshake waits.
        std::vector<testing::connection> silent = co_await fill(accepting);
        silent.back().server.close();
        co_await greet(accepting);
        co_await greet(accepting);

        // At the limit, accept() waits; each way to end a handshake makes room.
        for (const int how : {0, 1, 2}) {
            silent.clear();
            silent = co_await fill(accepting);
            stream next = co_await plain_client(accepting);
            EXPECT_EQ(error_of(co_await with_timeout(20ms, take(accepting))), errc::timed_out);
            const auto free_a_place = [&](stream& client, stream& server) -> task<> {
                if (how == 0) server.close();
                if (how == 1) must(co_await client.write_all("GET / HTTP/1.1\r\n\r\n"));
                if (how == 2) client.close();
            };
            co_await join_scope([&](scope& tasks) -> task<> {
                tasks.spawn(free_a_place(silent[1].client, silent[1].server));
                stream peer = must(co_await accepting.accept());
                EXPECT_EQ(peer.peer(), next.local());
            });
            co_await greet(accepting);
        }
    });
}

TEST_P(tls_handshake_limit, counts_no_stream_whose_handshake_is_done) {
    run([&]() -> task<> {
        listener accepting = listen_with_limit();
        std::vector<testing::connection> done;
        for (std::size_t i = 0; i < 3 * limit; ++i) {
            result<stream> client = fail(errc::closed);
            testing::connection made;
            stream plain = co_await plain_client(accepting);
            co_await join_scope([&](scope& tasks) -> task<> {
                tasks.spawn(connect_into(std::move(plain), client_, "localhost", client));
                made.server = must(co_await accepting.accept());
                must(co_await made.server.write_all("x"));
            });
            made.client = must(std::move(client));
            done.push_back(std::move(made));
        }
    });
}

TEST_P(tls_handshake_limit, gives_up_the_oldest_for_others) {
    run([&]() -> task<> {
        listener accepting = listen_with_limit();
        const time_point begin = here().now();
        std::vector<testing::connection> silent = co_await fill(accepting);
        co_await greet(accepting);
        EXPECT_GE(here().now() - begin, pressed_handshake_timeout) << "not before its time";
        EXPECT_EQ(error_of(co_await silent[0].server.read()), errc::timed_out);
        // The others were unaffected.
        EXPECT_EQ(must(silent[1].server.try_write(as_bytes("12"))), 0U);
        if (simulated()) EXPECT_LT(here().now() - begin, 2 * pressed_handshake_timeout);
    });
}

TEST_P(tls_handshake_limit, leaves_the_oldest_its_time_while_none_waits) {
    run([&]() -> task<> {
        listener accepting = listen_with_limit();
        std::vector<testing::connection> silent = co_await fill(accepting);
        // The wait of an accept() has ended.
        EXPECT_EQ(error_of(co_await with_timeout(1ms, take(accepting))), errc::timed_out);
        must(co_await here().sleep_for(pressed_handshake_timeout + 10ms));
        EXPECT_EQ(must(silent[0].server.try_write(as_bytes("12"))), 0U);
    });
}

TEST_P(tls_handshake_limit, keeps_a_shorter_deadline) {
    run([&]() -> task<> {
        listener accepting = listen_with_limit(10ms);
        std::vector<testing::connection> silent = co_await fill(accepting);
        const stream next = co_await plain_client(accepting);
        const stream peer = must(co_await accepting.accept());
        EXPECT_EQ(error_of(co_await silent[0].server.read()), errc::timed_out);
    });
}

TEST_P(tls_handshake_limit, closes_while_one_waits) {
    run([&]() -> task<> {
        for (const bool pending : {false, true}) {
            listener accepting = listen_with_limit();
            std::vector<testing::connection> silent = co_await fill(accepting);
            stream next;
            if (pending) next = co_await plain_client(accepting);
            co_await join_scope([&](scope& tasks) -> task<> {
                const auto wait = [](listener& from) -> task<> {
                    EXPECT_EQ(error_of(co_await from.accept()), errc::cancelled);
                };
                tasks.spawn(wait(accepting));
                co_await here().yield();
                accepting.close();
            });
            // Handshakes continue without their listener.
            both_ends late;
            co_await join_scope([&](scope& tasks) -> task<> {
                tasks.spawn(
                    connect_into(std::move(silent[0].client), client_, "localhost", late.client));
                must(co_await silent[0].server.write_all("late"));
                EXPECT_TRUE(info(silent[0].server).has_value());
            });
            EXPECT_EQ(must(co_await late.client->read()).text(), "late");
        }
    });
}

// ---- a peer that does not read

/// OpenSSL over memory: a client that speaks as no ordinary one does.
class strange_client {
public:
    strange_client() : context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
        SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_connect_state(ssl_.get());
    }

    /// A client of TLS 1.2, with only these ciphers.
    explicit strange_client(const char* ciphers) : strange_client() {
        SSL_set_max_proto_version(ssl_.get(), TLS1_2_VERSION);
        SSL_set_cipher_list(ssl_.get(), ciphers);
    }

    std::string first_flight() {
        SSL_do_handshake(ssl_.get());
        return take();
    }

    task<> shake_hands(stream& over) {
        while (SSL_do_handshake(ssl_.get()) != 1) {
            const std::string next = take();
            must(co_await over.write_all(next));
            const auto received = must(co_await over.read());
            BIO_write(SSL_get_rbio(ssl_.get()), received.bytes().data(),
                      static_cast<int>(received.size()));
        }
        const std::string last = take();
        must(co_await over.write_all(last));
    }

    /// Asks for new keys, many times.
    std::string ask_for_keys(std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) {
            EXPECT_EQ(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED), 1);
            EXPECT_EQ(SSL_do_handshake(ssl_.get()), 1);
        }
        return take();
    }

private:
    std::string take() {
        std::string all(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())), '\0');
        if (!all.empty())
            BIO_read(SSL_get_wbio(ssl_.get()), all.data(), static_cast<int>(all.size()));
        return all;
    }

    owned_context context_;
    owned_ssl ssl_;
};

TEST_P(tls_limits, a_peer_without_a_common_cipher_gets_an_alert) {
    run([&]() -> task<> {
        testing::connection ends = co_await connect();
        // Key exchange by RSA, for which the server's certificate is none.
        const std::string hello = strange_client("AES128-SHA").first_flight();
        must(co_await ends.client.write_all(hello));
        EXPECT_EQ(error_of(co_await accept(std::move(ends.server), server_)),
                  errc::no_common_protocol);
        const auto alert = must(co_await ends.client.read());
        EXPECT_EQ(alert.text(), std::string_view("\x15\x03\x03\x00\x02\x02\x28", 7));
    });
}

TEST_P(tls_limits, a_peer_that_asks_and_does_not_read_is_held_back) {
    loop_options options;
    options.sim.socket_buffer = 30'000;
    make_loop(options);
    run([&]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        if (accepting.native_handle() >= 0) {
            // Inherited by what is accepted; the kernel's own sizes would take megabytes.
            const int small = 4'096;
            for (const int which : {SO_SNDBUF, SO_RCVBUF})
                setsockopt(accepting.native_handle(), SOL_SOCKET, which, &small, sizeof(small));
        }
        stream plain = must(co_await here().connect(accepting.local()));
        stream below = must(co_await accepting.accept());
        if (plain.native_handle() >= 0) {
            const int small = 4'096;
            for (const int which : {SO_SNDBUF, SO_RCVBUF})
                setsockopt(plain.native_handle(), SOL_SOCKET, which, &small, sizeof(small));
        }
        result<stream> server = fail(errc::closed);
        strange_client peer;
        co_await join_scope([&](scope& tasks) -> task<> {
            tasks.spawn(accept_into(std::move(below), server_, server));
            co_await peer.shake_hands(plain);
        });
        stream ours = must(std::move(server));
        std::size_t taken = 0;
        co_await with_scope([&](scope& tasks) -> task<> {
            const auto read = [](stream& from) -> task<> {
                while (co_await from.read()) {
                }
            };
            tasks.spawn(read(ours));
            const auto write = [](stream& to, std::string_view bytes) -> task<result<>> {
                co_return co_await to.write_all(bytes);
            };
            while (taken < 1'000'000) {
                const std::string asked = peer.ask_for_keys(500);
                if (!co_await with_timeout(500ms, write(plain, asked))) break;
                taken += asked.size();
            }
        });
        // The bytes that the sockets hold on both ways, and the limit.
        EXPECT_LT(taken, 500'000U);
    });
}

TEST_P(tls_limits, leases_beyond_the_limit_are_refused_and_nothing_is_lost) {
    if (!simulated()) GTEST_SKIP() << "the buffers are the thread's, whatever its loop is";
    run([&]() -> task<> {
        testing::connection ends = co_await secure();
        std::vector<lease> held;
        while (held.size() < max_lent_records) {
            must(co_await ends.client.write_all("held"));
            held.push_back(must(co_await ends.server.read()));
        }
        must(co_await ends.client.write_all("late"));
        EXPECT_EQ(error_of(co_await ends.server.read()), errc::no_buffers);
        std::array<std::byte, 2> own{};
        EXPECT_EQ(must(co_await ends.server.read_some(own)), 2u);
        EXPECT_EQ(as_text(own), "la");
        held.pop_back();
        EXPECT_EQ(must(co_await ends.server.read()).text(), "te");
        // Writing needs one only to save records.
        must(co_await ends.client.write_all("held"));
        held.push_back(must(co_await ends.server.read()));
        const std::array<const_bytes, 2> pieces{as_bytes("on"), as_bytes("wards")};
        must(co_await ends.client.write_all(std::span<const const_bytes>(pieces)));
        held.clear();
        std::string got;
        while (got.size() < 7) got += must(co_await ends.server.read()).text();
        EXPECT_EQ(got, "onwards");
    });
}

}  // namespace
}  // namespace eddy::tls
