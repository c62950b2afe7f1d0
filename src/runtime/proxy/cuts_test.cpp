// Cuts: a side of a proxy that is reset, or ends TLS without close_notify, must not look to the
// other side as if it had finished. Every transport before every one, in both directions.
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/shm/shm.hpp>
#include <eddy/tls/tls.hpp>

#include "runtime/proxy/proxy_worker.hpp"
#include "runtime/proxy/testing.hpp"
#include "transport/test_certificates.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;

enum class carrier : std::uint8_t { tcp, tls, shm, unix_socket };
enum class cut : std::uint8_t { reset, end_without_close_notify };

std::string_view name_of(carrier which) {
    constexpr std::string_view names[] = {"tcp", "tls", "shm", "unix"};
    return names[static_cast<std::size_t>(which)];
}

/// An end of a connection in the hands of a test.
struct hand {
    talker its;
    stream_driver* below = nullptr;  // of TLS
};

/// Ends a connection in the middle of what it says.
void cut_off(hand& which, cut how) {
    if (how == cut::end_without_close_notify)
        must(which.below->shutdown_write());
    else
        which.its.socket.abort();
}

class proxy_cuts : public on_io_backend {
protected:
    proxy_cuts() { transport::write_test_certificates(folder_); }

    /// Transports that this loop has.
    std::vector<carrier> carriers() const {
        std::vector<carrier> all = {carrier::tcp, carrier::tls, carrier::unix_socket};
        if (!simulated()) all.push_back(carrier::shm);
        return all;
    }

    std::string new_path() { return folder_.file("s" + std::to_string(++paths_)); }

    static task<void> accept_into(listener& from, stream& to) { to = must(co_await from.accept()); }

    tls::context server_context() {
        return tls::must(tls::context::server({.certificates = {tls::localhost_certificate()}}));
    }
    tls::context client_context() {
        return tls::must(tls::context::client({.ca = tls::test_authority().pem()}));
    }

    /// A listener of a backend, and its URI as --backend takes it.
    struct place {
        listener listening;
        std::string uri;
    };
    place open_backend(carrier over) {
        place made;
        const std::string path = new_path();
        switch (over) {
            case carrier::tcp:
            case carrier::tls:
                made.listening = must(here().listen(loopback()));
                made.uri = made.listening.local().to_string();
                if (over == carrier::tls)
                    made.uri = "tls://" + made.uri + "?ca=" + folder_.file("ca.pem");
                break;
            case carrier::unix_socket:
                made.listening = must(here().listen(must(endpoint::unix_path(path))));
                made.uri = "unix://" + path;
                break;
            case carrier::shm:
                made.listening = must(shm::listen(path));
                made.uri = "shm://" + path;
                break;
        }
        return made;
    }

    task<void> accept_backend(place& from, carrier over, hand& to) {
        stream plain = must(co_await from.listening.accept());
        if (over == carrier::tls) {
            to.below = &plain.driver();
            plain = must(co_await tls::accept(std::move(plain), server_context()));
        }
        to.its = talker(std::move(plain));
    }

    json options_of(carrier clients, const std::string& path) const {
        switch (clients) {
            case carrier::tcp: return any_port;
            case carrier::tls: return with({{"tls", true}, {"cert", folder_.file("both.pem")}});
            case carrier::unix_socket: return {{"listen", "unix://" + path}};
            case carrier::shm: return {{"listen", "shm://" + path}};
        }
        return {};
    }

    task<void> connect_client(subject& to, carrier over, const std::string& path, hand& made) {
        stream plain;
        switch (over) {
            case carrier::tcp:
            case carrier::tls: plain = must(co_await here().connect(to->local())); break;
            case carrier::unix_socket:
                plain = must(co_await here().connect(must(endpoint::unix_path(path))));
                break;
            case carrier::shm: plain = must(co_await shm::connect(path)); break;
        }
        if (over == carrier::tls) {
            made.below = &plain.driver();
            plain = must(co_await tls::connect(std::move(plain), client_context(), "localhost"));
        }
        made.its = talker(std::move(plain));
    }

    /// A proxy between two transports, and both ends.
    struct tunnel {
        std::unique_ptr<subject> proxy;
        place backend_at;
        hand client;
        hand backend;
    };
    task<std::unique_ptr<tunnel>> open(carrier clients, carrier backends, json options = {}) {
        auto made = std::make_unique<tunnel>();
        made->backend_at = open_backend(backends);
        const std::string path = new_path();
        for (const auto& [name, value] : options_of(clients, path).items()) options[name] = value;
        options["backend"] = made->backend_at.uri;
        made->proxy = std::make_unique<subject>("proxy", options);
        co_await made->proxy->start();
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(accept_backend(made->backend_at, backends, made->backend));
            both.spawn(connect_client(*made->proxy, clients, path, made->client));
            co_return;
        });
        co_return made;
    }

    /// One case: the end that the other side sees.
    task<void> expect_cut(carrier from, cut how, carrier to, bool from_client) {
        const std::string what = std::string(from_client ? "client " : "backend ")
                                     .append(name_of(from))
                                     .append(how == cut::reset ? " reset, " : " ended, ")
                                     .append(name_of(to));
        std::unique_ptr<tunnel> t = co_await open(from_client ? from : to, from_client ? to : from);
        hand& first = from_client ? t->client : t->backend;
        hand& second = from_client ? t->backend : t->client;
        // A Unix socket that is closed with unread bytes is reset.
        co_await second.its.say("never read");
        subject& proxy = *t->proxy;
        co_await until([&] {
            const metrics now = proxy->count();
            return now.bytes_in + now.bytes_out >= 10 &&
                   (from_client ? now.bytes_out : serving::tally(sent_to_backends(proxy))) == 10;
        });
        co_await first.its.say("part of it");
        EXPECT_EQ(co_await second.its.bytes(10), "part of it") << what;
        cut_off(first, how);
        const last_bytes rest = co_await rest_of(second.its);
        EXPECT_EQ(rest.text, "") << what;
        // A Unix socket has no reset, unless bytes were unread there.
        if (to != carrier::unix_socket)
            EXPECT_NE(rest.end, errc::end_of_stream) << what << " must not look whole";
        EXPECT_NE(rest.end, errc::cancelled) << what;
        co_await until([&] { return proxy->count().connections_now == 0; });
        co_await proxy->stop(0s);
    }
    static std::uint64_t sent_to_backends(subject& of) {
        double sum = 0;
        for (const auto& [name, value] : by_backend(of, "backend_bytes_sent_total")) sum += value;
        return static_cast<std::uint64_t>(sum);
    }

    temporary_folder folder_;
    int paths_ = 0;
};
INSTANTIATE_TEST_SUITE_P(io, proxy_cuts,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(proxy_cuts, are_no_ends_to_the_other_side) {
    run([&]() -> task<void> {
        co_await join_scope([&](scope& cases) -> task<void> {
            for (const bool from_client : {true, false})
                for (const carrier from : carriers())
                    for (const carrier to : carriers()) {
                        cases.spawn(expect_cut(from, cut::reset, to, from_client));
                        if (from == carrier::tls)
                            cases.spawn(
                                expect_cut(from, cut::end_without_close_notify, to, from_client));
                    }
            co_return;
        });
    });
}

TEST_P(proxy_cuts, ends_are_ends_over_every_transport) {
    run([&]() -> task<void> {
        for (const carrier clients : carriers()) {
            for (const carrier backends : carriers()) {
                std::unique_ptr<tunnel> t = co_await open(clients, backends);
                for (const bool from_client : {true, false}) {
                    hand& first = from_client ? t->client : t->backend;
                    hand& second = from_client ? t->backend : t->client;
                    co_await first.its.say("all of it");
                    must(first.its.socket.shutdown_write());
                    const last_bytes rest = co_await rest_of(second.its);
                    EXPECT_EQ(rest.text, "all of it");
                    EXPECT_EQ(rest.end, errc::end_of_stream)
                        << name_of(clients) << " before " << name_of(backends);
                }
                co_await (*t->proxy)->stop(0s);
            }
        }
    });
}

/// Ends by the proxy itself must not look like an orderly end of the other side: an idle tunnel,
/// one at the deadline of a stop, one that is stopped at once, a client without a backend, one
/// beyond the limit.
TEST_P(proxy_cuts, ends_by_the_proxy_itself_are_resets) {
    run([&]() -> task<void> {
        for (const carrier over : carriers()) {
            if (over == carrier::unix_socket) continue;
            for (const duration drain : {duration(0s), duration(5ms)}) {
                std::unique_ptr<tunnel> t = co_await open(over, over);
                co_await t->backend.its.say("part of it");
                EXPECT_EQ(co_await t->client.its.bytes(10), "part of it");
                co_await (*t->proxy)->stop(drain);
                EXPECT_NE((co_await rest_of(t->client.its)).end, errc::end_of_stream);
                EXPECT_NE((co_await rest_of(t->backend.its)).end, errc::end_of_stream);
            }
            std::unique_ptr<tunnel> idle = co_await open(over, over, {{"idle_timeout", "20ms"}});
            EXPECT_NE((co_await rest_of(idle->client.its)).end, errc::end_of_stream);
            EXPECT_NE((co_await rest_of(idle->backend.its)).end, errc::end_of_stream);
            co_await (*idle->proxy)->stop(0s);
        }
        subject alone("proxy", before({dead_address()}, {{"max_connections", 1}}));
        co_await alone.start();
        EXPECT_EQ(co_await end_of_rejected(alone), errno_code(ECONNRESET));
        co_await alone->stop(0s);
        std::unique_ptr<tunnel> full =
            co_await open(carrier::tcp, carrier::tcp, {{"max_connections", 1}});
        EXPECT_EQ(co_await end_of_rejected(*full->proxy), errno_code(ECONNRESET));
        co_await (*full->proxy)->stop(0s);
    });
}

// ---- early answers

constexpr std::string_view refusal =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Reads a part of the request, answers, and closes with the rest unread.
task<void> refuse_early(stream peer) {
    static_cast<void>(co_await peer.read());
    must(co_await peer.write_all(refusal));
    peer.close();
}

TEST_P(proxy_cuts, an_early_answer_reaches_a_client_that_sends_much_more) {
    run([&]() -> task<void> {
        std::vector<carrier> all = carriers();
        for (const carrier over : all) {
            for (int i = 0; i < 5; ++i) {
                std::unique_ptr<tunnel> t = co_await open(over, over);
                co_await join_scope([&](scope& serving) -> task<void> {
                    serving.spawn(refuse_early(std::move(t->backend.its.socket)));
                    const std::vector<std::byte> piece(std::size_t{128} << 10);
                    // As a client that reads only after its last byte.
                    for (int sent = 0; sent < 64; ++sent)
                        must(co_await t->client.its.socket.write_all(const_bytes(piece)));
                    EXPECT_EQ(co_await t->client.its.bytes(refusal.size()), refusal);
                });
                t->client.its.socket.close();
                subject& proxy = *t->proxy;
                co_await until([&] { return proxy->count().connections_now == 0; });
                co_await proxy->stop(0s);
            }
        }
    });
}

TEST_P(proxy_cuts, a_client_that_goes_on_sending_after_a_cut_is_reset) {
    if (GetParam() != io_backend_kind::sim)
        GTEST_SKIP() << "it takes seconds, which the simulator skips";
    run([&]() -> task<void> {
        std::unique_ptr<tunnel> t = co_await open(carrier::tcp, carrier::tcp);
        co_await t->backend.its.say("answer");
        EXPECT_EQ(co_await t->client.its.bytes(6), "answer");
        t->backend.its.socket.abort();
        // No silence of a second ends it.
        const time_point begun = here().now();
        while (co_await t->client.its.socket.write_all("more"))
            must(co_await here().sleep_for(100ms));
        EXPECT_LE(here().now() - begun, 6s);
        co_await (*t->proxy)->stop(0s);
    });
}

TEST_P(proxy_cuts, a_client_that_is_gone_is_not_kept_by_a_backend_that_does_not_read) {
    if (GetParam() != io_backend_kind::sim)
        GTEST_SKIP() << "it takes half a minute, which the simulator skips";
    run([&]() -> task<void> {
        std::unique_ptr<tunnel> t = co_await open(carrier::tcp, carrier::tcp);
        subject& proxy = *t->proxy;
        // Until the sockets between them are full.
        const std::string piece(100'000, 'x');
        while (co_await with_timeout(1s, t->client.its.socket.write_all(piece))) {
        }
        t->client.its.socket.abort();
        const time_point begun = here().now();
        while (co_await t->backend.its.socket.write_all("event"))
            must(co_await here().sleep_for(300ms));
        EXPECT_GE(here().now() - begun, 29s);
        EXPECT_LE(here().now() - begun, 35s);
        co_await until([&] { return proxy->count().connections_now == 0; });
        co_await proxy->stop(0s);
    });
}

TEST_P(proxy_cuts, a_stop_ends_a_client_that_lingers_at_once) {
    run([&]() -> task<void> {
        std::unique_ptr<tunnel> t = co_await open(carrier::tcp, carrier::tcp);
        subject& proxy = *t->proxy;
        co_await t->backend.its.say("answer");
        must(t->backend.its.socket.shutdown_write());
        EXPECT_EQ((co_await rest_of(t->client.its)).text, "answer");
        t->backend.its.socket.close();
        // Until the backend's refusal is known.
        while (lingering_connections() == 0) {
            static_cast<void>(co_await t->client.its.socket.write_all("more"));
            must(co_await here().sleep_for(1ms));
        }
        co_await proxy->stop(1h);
        EXPECT_EQ(lingering_connections(), 0U);
    });
}

}  // namespace
}  // namespace eddy::runtime::proxy
