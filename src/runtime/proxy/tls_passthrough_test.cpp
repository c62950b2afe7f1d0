// TLS that is passed on without decrypting it: connections of real clients by the name and protocol
// that they ask for; and the parser of their first message beside OpenSSL.
#include <eddy/base/random.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/tls/tls.hpp>

#include "base/test_seed.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/proxy/testing.hpp"
#include "tls/testing.hpp"
#include "wire/client_hello/parser.hpp"
#include "wire/client_hello/transcript.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;

class tls_passthrough : public on_io_backend {
protected:
    struct asked {
        std::string name;
        std::vector<std::string> alpn;
    };

    static task<void> accept_tls(backend_end& at, stream& to) {
        talker plain = co_await at.accept();
        auto context = tls::must(tls::context::server(
            {.certificates = {tls::localhost_certificate()}, .alpn = {"h2", "http/1.1"}}));
        to = must(co_await tls::accept(std::move(plain.socket), std::move(context)));
    }
    static task<void> connect_tls(subject& proxy, asked what, stream& to) {
        auto context = tls::must(tls::context::client({.verify = false, .alpn = what.alpn}));
        stream plain = must(co_await loop::current().connect(proxy->local()));
        to = must(co_await tls::connect(std::move(plain), std::move(context), what.name));
    }
    /// A client whose handshake is with this backend, itself.
    static task<void> expect_at(subject& proxy, backend_end& at, asked what) {
        stream accepted;
        stream connected;
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(accept_tls(at, accepted));
            both.spawn(connect_tls(proxy, what, connected));
            co_return;
        });
        talker client(std::move(connected));
        talker backend(std::move(accepted));
        const auto info = tls::info(backend.socket);
        EXPECT_TRUE(info);
        // An address is no server name (RFC 6066, 3).
        if (info) EXPECT_EQ(info->server_name, what.name == "127.0.0.1" ? "" : what.name);
        co_await client.say("ping\n");
        EXPECT_EQ(co_await backend.line(), "ping");
        co_await backend.say("pong\n");
        EXPECT_EQ(co_await client.line(), "pong");
    }
};
INSTANTIATE_TEST_SUITE_P(io, tls_passthrough,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(tls_passthrough, clients_reach_the_backend_of_their_name) {
    run([]() -> task<void> {
        backend_end a;
        backend_end a_h2;
        backend_end below;
        backend_end others;
        json options = before({others.address()},
                              {{"route",
                                {"a.example=" + a.address(), "a.example/h2=" + a_h2.address(),
                                 "*.example=" + below.address()}}});
        subject s("proxy", options);
        co_await s.start();
        co_await expect_at(s, a, {"a.example", {}});
        co_await expect_at(s, a, {"A.example", {"http/1.1"}});
        co_await expect_at(s, a_h2, {"a.example", {"h2", "http/1.1"}});
        co_await expect_at(s, below, {"b.example", {"h2"}});
        co_await expect_at(s, others, {"elsewhere", {}});
        co_await expect_at(s, others, {"127.0.0.1", {}});  // without a name
        // Another protocol.
        tunnel_ends plain;
        plain.client = co_await talker::to(s->local());
        co_await plain.client.say("hello\n");
        plain.backend = co_await others.accept();
        EXPECT_EQ(co_await plain.backend.line(), "hello");
        // Routes change without a restart.
        options["route"] = {"a.example=" + below.address()};
        must_do(s->apply(s.parse(options)));
        co_await expect_at(s, below, {"a.example", {"h2"}});
        co_await s->stop(0s);
    });
}

TEST_P(tls_passthrough, clients_without_a_backend_or_a_hello_are_reset) {
    run([]() -> task<void> {
        using namespace client_hello;
        backend_end a;
        subject s("proxy", with({{"route", {"a.example=" + a.address()}}}));
        co_await s.start();
        const auto end_of = [&](std::string said) -> task<std::error_code> {
            talker client = co_await talker::to(s->local());
            co_await client.say(std::move(said));
            const last_bytes rest = co_await rest_of(client);
            EXPECT_EQ(rest.text, "");
            co_return rest.end;
        };
        const std::string other = records_of(hello_of(server_name_of("b.example")));
        EXPECT_EQ(co_await end_of(other), errno_code(ECONNRESET));
        EXPECT_EQ(co_await end_of("GET / HTTP/1.1\r\n\r\n"), errno_code(ECONNRESET));
        EXPECT_TRUE(s.events.has("no route is for its name"));
        EXPECT_EQ(co_await end_of(std::string("\x16\x03\x01\0\0", 5)), errno_code(ECONNRESET));
        EXPECT_EQ(s->count().errors, 3U);
        // One that ends without a byte is a health check.
        {
            talker silent = co_await talker::to(s->local());
            must(silent.socket.shutdown_write());
            static_cast<void>(co_await rest_of(silent));
        }
        EXPECT_EQ(s->count().errors, 3U);
        // A stop waits for none that has said nothing.
        talker silent = co_await talker::to(s->local());
        co_await until([&] { return s->count().connections_now == 1; });
        co_await s->stop(10min);
    });
}

TEST_P(tls_passthrough, hellos_come_in_any_number_of_records_behind_a_proxy_header) {
    run([]() -> task<void> {
        using namespace client_hello;
        backend_end a;
        subject s("proxy", with({{"route", {"a.example=" + a.address()}}, {"send_proxy", "v1"}}));
        co_await s.start();
        const std::string hello = records_of(hello_of(server_name_of("a.example")), 9);
        talker client = co_await talker::to(s->local());
        co_await client.say(hello.substr(0, 50));
        must(co_await loop::current().sleep_for(5ms));
        co_await client.say(hello.substr(50) + "early data");
        talker backend = co_await a.accept();
        const std::string header = co_await backend.line();
        EXPECT_THAT(header, HasSubstr("PROXY TCP4 127.0.0.1"));
        EXPECT_EQ(co_await backend.bytes(hello.size() + 10), hello + "early data");
        EXPECT_EQ(by_backend(s, "backend_bytes_sent_total")[a.name()],
                  static_cast<double>(header.size() + 1 + hello.size() + 10));
        EXPECT_EQ(s->count().bytes_in, hello.size() + 10);
        co_await s->stop(0s);
    });
}

TEST(tls_passthrough_options, are_checked) {
    const auto refusal = [](json options) {
        options["port"] = 7;
        const auto parsed = settings::parse(table_of(option_rows()), options);
        if (!parsed) return parsed.error().message;
        const auto read = read_config(*parsed);
        return read ? std::string() : read.error().message;
    };
    const auto of = [&](json routes) { return refusal({{"route", std::move(routes)}}); };
    EXPECT_EQ(of({"a.example=:1", "*.example/h2=:1,:2", "/acme-tls/1=:3"}), "");
    for (const char* const bad : {"a", "a=", "=:1", "a/=:1"})
        EXPECT_THAT(of({bad}), HasSubstr("write HOST=BACKENDS")) << bad;
    EXPECT_THAT(of({"a b=:1"}), HasSubstr("\"a b\" is no host name"));
    EXPECT_THAT(of({"a:1=:1"}), HasSubstr("\"a:1\" is no host name"));
    EXPECT_THAT(of({"a=:7"}), HasSubstr("is the proxy itself"));
    EXPECT_THAT(of({"a=:1", "A.=:2"}), HasSubstr("two routes"));
    EXPECT_THAT(refusal({{"route", {"a=:1"}}, {"tls", true}, {"cert", "/c"}}),
                HasSubstr("leave out --tls"));
}

/// First message of OpenSSL's client.
std::string hello_of_openssl(const std::string& name, const std::string& alpn, int version,
                             bool has_tickets, std::size_t padding) {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                               SSL_CTX_free);
    const std::unique_ptr<SSL, void (*)(SSL*)> client(SSL_new(context.get()), SSL_free);
    SSL* const its = client.get();
    SSL_set_max_proto_version(its, version);
    if (!name.empty()) SSL_set_tlsext_host_name(its, name.c_str());
    if (!alpn.empty())
        SSL_set_alpn_protos(its, reinterpret_cast<const unsigned char*>(alpn.data()),
                            static_cast<unsigned>(alpn.size()));
    if (!has_tickets) SSL_set_options(its, SSL_OP_NO_TICKET);
    if (padding > 0) SSL_set_options(its, SSL_OP_TLSEXT_PADDING);
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(its, in, out);  // which owns them
    EXPECT_EQ(SSL_connect(its), -1);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out, &bytes);
    return {bytes, static_cast<std::size_t>(size)};
}

TEST(tls_client_hello, of_openssl_is_read_as_it_was_meant) {
    using namespace client_hello;
    random_generator random(eddy::testing::seed_of_this_run());
    for (int round = 0; round < 200; ++round) {
        contents meant;
        const auto name_size = random.below(40);
        for (std::uint64_t i = 0; i < name_size; ++i)
            meant.server_name += static_cast<char>('a' + random.below(26));
        std::string alpn;
        const auto protocols = random.below(4);
        for (std::uint64_t i = 0; i < protocols; ++i) {
            meant.alpn.emplace_back(1 + random.below(20), static_cast<char>('a' + i));
            alpn += vector_of(meant.alpn.back(), 1);
        }
        const int version = random.below(2) == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
        const std::string hello = hello_of_openssl(meant.server_name, alpn, version,
                                                   random.below(2) == 0, random.below(2));
        ASSERT_GT(hello.size(), 5U);
        parser reader;
        const auto whole = reader.feed(hello);
        ASSERT_TRUE(whole && *whole);
        EXPECT_EQ(reader.found(), meant);
        // The same message in other records, and in pieces.
        const std::string cut = records_of(std::string_view(hello).substr(5), 1 + random.below(99));
        const std::size_t at = random.below(cut.size());
        parser again;
        const auto first = again.feed(std::string_view(cut).substr(0, at));
        ASSERT_TRUE(first && !*first);
        const auto second = again.feed(std::string_view(cut).substr(at));
        ASSERT_TRUE(second && *second);
        EXPECT_EQ(again.found(), meant);
    }
}

}  // namespace
}  // namespace eddy::runtime::proxy
