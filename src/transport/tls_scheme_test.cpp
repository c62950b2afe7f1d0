// Scheme tls://: certificates named by the URI, and the errors when they are wrong.
#include <eddy/io/scope.hpp>
#include <eddy/tls/tls.hpp>
#include <eddy/transport/transport.hpp>

#include "tls/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace eddy::transport {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::must;

class transport_tls : public testing::on_io_backend {
protected:
    void SetUp() override {
        on_io_backend::SetUp();
        const tls::certificate& own = tls::localhost_certificate();
        write("cert.pem", own.chain);
        write("key.pem", own.key);
        write("both.pem", own.chain + own.key);
        write("ca.pem", tls::test_authority().pem());
    }
    void write(const std::string& name, const std::string& text) {
        std::ofstream(folder_.file(name)) << text;
    }
    std::string file(const std::string& name) const { return folder_.file(name); }

    /// The error of a connection's first exchange, if any.
    task<std::error_code> exchange(std::string listen_query, std::string connect_query) {
        listener accepting = must(transport::listen("tls://127.0.0.1:0" + listen_query));
        const std::string to =
            "tls://localhost:" + std::to_string(accepting.local().port()) + connect_query;
        std::error_code error;
        co_await with_scope([&](scope& tasks) -> task<> {
            const auto serve = [](listener& from) -> task<> {
                stream peer = must(co_await from.accept());
                static_cast<void>(co_await peer.write_all("over TLS"));
                static_cast<void>(co_await peer.read());
            };
            tasks.spawn(serve(accepting));
            auto client = co_await transport::connect(to);
            if (!client) {
                error = client.error();
                co_return;
            }
            const auto received = co_await client->read();
            error = error_of(received);
            if (received) EXPECT_EQ(received->text(), "over TLS");
        });
        co_return error;
    }

private:
    testing::temporary_folder folder_;
};
INSTANTIATE_TEST_SUITE_P(transport, transport_tls,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         testing::io_backend_name);

TEST_P(transport_tls, a_listener_in_parts_is_finished_where_the_connection_has_come_to) {
    run([&]() -> task<> {
        const auto served = [&](std::string uri, std::string query) -> task<std::string> {
            listener_parts parts =
                must(transport::listen_in_parts(must(transport::parse(uri + query))));
            std::string heard;
            co_await with_scope([&](scope& tasks) -> task<> {
                tasks.spawn([](listener_parts& from) -> task<> {
                    stream peer = must(co_await from.below.accept());
                    // The simulator's connections stay on their loop.
                    if (loop::current().kind() != io_backend_kind::sim)
                        peer = must(loop::current().adopt(must(peer.detach())));
                    if (from.finish)
                        peer = must(co_await from.finish(std::move(peer), std::chrono::seconds(9)));
                    static_cast<void>(co_await peer.write_all("in parts"));
                    static_cast<void>(co_await peer.read());
                }(parts));
                const std::string port = std::to_string(parts.below.local().port());
                const std::string scheme = uri.substr(0, uri.find(':'));
                const std::string ca = scheme == "tls" ? "?ca=" + file("ca.pem") : "";
                stream client =
                    must(co_await transport::connect(scheme + "://localhost:" + port + ca));
                heard = must(co_await client.read()).text();
            });
            co_return heard;
        };
        EXPECT_EQ(co_await served("tls://127.0.0.1:0", "?cert=" + file("both.pem")), "in parts");
        EXPECT_EQ(co_await served("tcp://127.0.0.1:0", ""), "in parts");
        EXPECT_EQ(error_of(transport::listen_in_parts(
                      must(transport::parse("tls://127.0.0.1:0?cert=" + file("none.pem"))))),
                  errc::unusable_certificate);
        EXPECT_EQ(error_of(transport::listen_in_parts(must(transport::parse("udp://:0")))),
                  errc::unsupported);
    });
}

TEST_P(transport_tls, carries_streams) {
    run([&]() -> task<> {
        const std::string pair = "?cert=" + file("cert.pem") + "&key=" + file("key.pem");
        const std::string both = "?cert=" + file("both.pem");
        const std::string ca = "ca=" + file("ca.pem");
        EXPECT_EQ(co_await exchange(pair, "?" + ca), std::error_code());
        EXPECT_EQ(co_await exchange(both, "?" + ca), std::error_code());
        EXPECT_EQ(co_await exchange(pair, ""), errc::untrusted_certificate);
        EXPECT_EQ(co_await exchange(both + "&" + ca, both + "&" + ca), std::error_code());
        EXPECT_EQ(co_await exchange(both + "&" + ca, "?" + ca), errc::certificate_refused);
        for (const std::string whom : {"&clients=optional", "&clients=no"}) {
            const std::string some = both + "&" + ca + whom;
            EXPECT_EQ(co_await exchange(some, "?" + ca), std::error_code());
            EXPECT_EQ(co_await exchange(some, both + "&" + ca), std::error_code());
        }
    });
}

TEST_P(transport_tls, takes_versions_ciphers_and_how_to_verify_from_the_uri) {
    run([&]() -> task<> {
        const std::string own = "?cert=" + file("both.pem");
        const std::string ca = "?ca=" + file("ca.pem");
        const std::error_code good;
        EXPECT_EQ(co_await exchange(own + "&min=1.3", ca + "&max=1.2"), errc::no_common_protocol);
        EXPECT_EQ(co_await exchange(own + "&min=1.3", ca), good);
        EXPECT_EQ(co_await exchange(own + "&max=1.2", ca), good);
        const std::string suite = "&min=1.3&ciphersuites=TLS_AES_256_GCM_SHA384";
        const std::string other = "&ciphersuites=TLS_CHACHA20_POLY1305_SHA256";
        EXPECT_EQ(co_await exchange(own + suite, ca), good);
        EXPECT_EQ(co_await exchange(own + suite, ca + other), errc::no_common_protocol);
        const std::string old = "&max=1.2&ciphers=ECDHE-ECDSA-AES256-GCM-SHA384";
        EXPECT_EQ(co_await exchange(own + old, ca), good);
        EXPECT_EQ(co_await exchange(own + old, ca + "&ciphers=ECDHE+CHACHA20"),
                  errc::no_common_protocol);
        EXPECT_EQ(error_of(transport::listen("tls://127.0.0.1:0" + own + "&ciphers=RUBBISH")),
                  errc::unusable_certificate);
        EXPECT_THAT(
            explain("tls://127.0.0.1:0" + own + "&ciphers=RUBBISH", errc::unusable_certificate),
            AllOf(HasSubstr("RUBBISH"), HasSubstr("openssl ciphers")));
        EXPECT_THAT(explain("tls://127.0.0.1:1?ciphers=RUBBISH", errc::unusable_certificate),
                    AllOf(HasSubstr("RUBBISH"), HasSubstr("openssl ciphers")));
        // For another name.
        const tls::certificate strange = tls::test_authority().issue({.names = {"DNS:a.example"}});
        write("strange.pem", strange.chain + strange.key);
        const std::string theirs = "?cert=" + file("strange.pem");
        EXPECT_EQ(co_await exchange(theirs, ca), errc::certificate_name_mismatch);
        EXPECT_EQ(co_await exchange(theirs, ca + "&verify=name"), errc::certificate_name_mismatch);
        EXPECT_EQ(co_await exchange(theirs, ca + "&verify=chain"), good);
        EXPECT_EQ(co_await exchange(theirs, ca + "&name=a.example"), good);
        EXPECT_EQ(co_await exchange(theirs, ca + "&name=b.example"),
                  errc::certificate_name_mismatch);
        write("another.pem", tls::authority("another").pem());
        EXPECT_EQ(co_await exchange(theirs, "?ca=" + file("another.pem") + "&verify=chain"),
                  errc::untrusted_certificate);
    });
}

/// Sends 300 kB in pieces that are no multiples of anything, and an orderly end.
task<> send_pieces(listener& from) {
    stream peer = must(co_await from.accept());
    testing::pattern content(4);
    while (content.position() < 300'000) {
        const std::vector<std::byte> bytes = content.next(7'001);
        must(co_await peer.write_all(bytes));
        co_await loop::current().yield();
    }
    must(peer.shutdown_write());
    static_cast<void>(co_await peer.read());
}

TEST_P(transport_tls, code_may_accept_any_certificate_and_have_full_handshakes) {
    run([&]() -> task<> {
        listener accepting = must(transport::listen("tls://127.0.0.1:0?cert=" + file("both.pem")));
        address to =
            must(transport::parse("tls://localhost:" + std::to_string(accepting.local().port())));
        to.tls.verify = "none";
        const tcp::connect_options usual;
        for (const std::string resume : {"no", ""}) {
            to.tls.resume = resume;
            bool was_resumed = false;
            for (int i = 0; i < 2; ++i) {
                co_await join_scope([&](scope& children) -> task<> {
                    children.spawn(send_pieces(accepting));
                    stream peer = must(co_await transport::connect(to, usual));
                    // Reads to the end, past the server's tickets.
                    while (co_await peer.read()) {
                    }
                    was_resumed = tls::info(peer)->resumed;
                });
            }
            EXPECT_EQ(was_resumed, resume != "no");
        }
    });
}

TEST_P(transport_tls, exact_reads_gather_records) {
    run([&]() -> task<> {
        listener accepting = must(transport::listen("tls://127.0.0.1:0?cert=" + file("both.pem")));
        const std::string to =
            "tls://localhost:" + std::to_string(accepting.local().port()) + "?ca=" + file("ca.pem");
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(send_pieces(accepting));
            stream client = must(co_await transport::connect(to));
            testing::pattern expected(4);
            for (const std::size_t size : {1u, 100u, 20'000u, 250'000u}) {
                std::vector<std::byte> into(size);
                must(co_await client.read_exactly(into));
                EXPECT_TRUE(expected.continues_with(into));
            }
            const std::size_t left = 43 * 7'001 - expected.position();
            std::vector<std::byte> into(left + 1);
            std::size_t received = 0;
            EXPECT_EQ(error_of(co_await client.read_exactly(into, &received)), errc::truncated);
            EXPECT_EQ(received, left);
            EXPECT_TRUE(expected.continues_with(const_bytes(into).first(received)));
            EXPECT_EQ(error_of(co_await client.read_exactly(into)), errc::end_of_stream);
        });
    });
}

/// Sessions belong to a context, so resuming one shows that the context is the same.
TEST_P(transport_tls, reads_files_again_when_they_have_changed) {
    run([&]() -> task<> {
        listener accepting = must(transport::listen("tls://127.0.0.1:0?cert=" + file("both.pem")));
        const std::string at = "tls://localhost:" + std::to_string(accepting.local().port());
        const auto serve = [](listener& from) -> task<> {
            while (auto peer = co_await from.accept()) {
                static_cast<void>(co_await peer->write_all("over TLS"));
                static_cast<void>(co_await peer->read());
            }
        };
        const auto resumes = [&](const std::string& ca) -> task<result<bool>> {
            const std::string to = at + "?ca=" + file(ca);
            auto client = co_await transport::connect(to);
            if (!client) co_return fail(client.error());
            EXPECT_EQ(must(co_await client->read()).text(), "over TLS");
            co_return tls::info(*client)->resumed;
        };
        const auto replace = [&](const std::string& name, const std::string& text) {
            write("new.pem", text);
            std::filesystem::rename(file("new.pem"), file(name));
        };
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(serve(accepting));
            EXPECT_FALSE(must(co_await resumes("ca.pem")));
            EXPECT_TRUE(must(co_await resumes("ca.pem"))) << "the files are not read again";
            EXPECT_TRUE(must(co_await resumes("ca.pem")));
            // The same text in another file.
            replace("ca.pem", tls::test_authority().pem());
            EXPECT_FALSE(must(co_await resumes("ca.pem")));
            EXPECT_TRUE(must(co_await resumes("ca.pem")));
            // Another authority; it is noticed, and so is the right one's return.
            replace("ca.pem", tls::authority("another").pem());
            EXPECT_EQ(error_of(co_await resumes("ca.pem")), errc::untrusted_certificate);
            write("ca.pem", tls::test_authority().pem() + "\n");
            EXPECT_FALSE(must(co_await resumes("ca.pem")));
            EXPECT_TRUE(must(co_await resumes("ca.pem")));
            // A file that has gone is an error, and none when it is back.
            std::filesystem::remove(file("ca.pem"));
            EXPECT_EQ(error_of(co_await resumes("ca.pem")), errc::unusable_certificate);
            write("ca.pem", tls::test_authority().pem());
            EXPECT_FALSE(must(co_await resumes("ca.pem")));

            // Beyond the limit the oldest is dropped.
            const auto name = [](std::size_t i) { return "ca" + std::to_string(i) + ".pem"; };
            for (std::size_t i = 0; i <= max_kept_tls_contexts; ++i) {
                write(name(i), tls::test_authority().pem());
                EXPECT_FALSE(must(co_await resumes(name(i))));
            }
            EXPECT_TRUE(must(co_await resumes(name(max_kept_tls_contexts))));
            EXPECT_TRUE(must(co_await resumes(name(1)))) << "the oldest that is kept";
            EXPECT_FALSE(must(co_await resumes(name(0))));
            EXPECT_TRUE(must(co_await resumes(name(1)))) << "it was used since";
            EXPECT_FALSE(must(co_await resumes(name(2))));
        });
    });
}

TEST_P(transport_tls, a_listener_reads_its_files_again_when_it_is_renewed) {
    run([&]() -> task<> {
        const tls::authority another("another");
        write("other-ca.pem", another.pem());
        const address where = must(transport::parse("tls://127.0.0.1:0?cert=" + file("cert.pem") +
                                                    "&key=" + file("key.pem")));
        listener accepting = must(transport::listen(where));
        listener_parts parts = must(transport::listen_in_parts(where));
        const auto serve = [](listener& from) -> task<> {
            while (auto peer = co_await from.accept()) {
                static_cast<void>(co_await peer->write_all("over TLS"));
                static_cast<void>(co_await peer->read());
            }
        };
        const auto finish = [](listener_parts& from) -> task<> {
            while (auto plain = co_await from.below.accept()) {
                auto peer = co_await from.finish(std::move(*plain), std::chrono::seconds(9));
                if (!peer) continue;
                static_cast<void>(co_await peer->write_all("over TLS"));
                static_cast<void>(co_await peer->read());
            }
        };
        /// Authority that signed the certificates of a listener.
        const auto signer = [&](const listener& at) -> task<std::string> {
            for (const std::string ca : {"ca.pem", "other-ca.pem"}) {
                auto client = co_await transport::connect(
                    "tls://localhost:" + std::to_string(at.local().port()) + "?ca=" + file(ca));
                if (client && co_await client->read()) co_return ca;
            }
            co_return "none";
        };
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(serve(accepting));
            tasks.spawn(finish(parts));
            for (const listener* each : {&accepting, &parts.below})
                EXPECT_EQ(co_await signer(*each), "ca.pem");
            const tls::certificate renewed = another.issue({.names = {"DNS:localhost"}});
            // Half of it is not used.
            write("cert.pem", renewed.chain);
            EXPECT_EQ(transport::renew(accepting, where).error(), errc::unusable_certificate);
            EXPECT_EQ(parts.renew(where).error(), errc::unusable_certificate);
            for (const listener* each : {&accepting, &parts.below})
                EXPECT_EQ(co_await signer(*each), "ca.pem");
            write("key.pem", renewed.key);
            EXPECT_TRUE(transport::renew(accepting, where));
            EXPECT_TRUE(parts.renew(where));
            for (const listener* each : {&accepting, &parts.below})
                EXPECT_EQ(co_await signer(*each), "other-ca.pem");
        });
        listener plain = must(transport::listen("tcp://127.0.0.1:0"));
        EXPECT_EQ(transport::renew(plain, where).error(), errc::unsupported);
        EXPECT_EQ(transport::renew(plain, must(transport::parse("tcp://127.0.0.1:0"))).error(),
                  errc::unsupported);
    });
}

TEST_P(transport_tls, a_folder_of_certificates_serves_each_by_its_names) {
    const auto issue = [](const std::string& name) {
        return tls::test_authority().issue({.subject = name, .names = {"DNS:" + name}});
    };
    const tls::certificate first = issue("a.example");
    const tls::certificate second = issue("b.example");
    std::filesystem::create_directory(file("certs"));
    write("certs/2.pem", second.chain + second.key);
    write("certs/1.pem", first.chain);
    write("certs/1.key", first.key);
    write("certs/README", "no certificate");
    run([&]() -> task<> {
        const std::string uri = "tls://127.0.0.1:0?cert=" + file("certs");
        listener accepting = must(transport::listen(uri));
        const auto serve = [](listener& from) -> task<> {
            while (auto peer = co_await from.accept()) {
                static_cast<void>(co_await peer->write_all("over TLS"));
                static_cast<void>(co_await peer->read());
            }
        };
        const auto subject = [&](std::string name) -> task<std::string> {
            tls::client_options options;
            options.ca = tls::test_authority().pem();
            options.verify_name = name != "other.example";
            auto trust = tls::context::client(options);
            stream plain = must(co_await tcp::connect("127.0.0.1", accepting.local().port()));
            auto client = co_await tls::connect(std::move(plain), *trust, name);
            co_return client ? tls::info(*client)->peer_subject : client.error().message();
        };
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(serve(accepting));
            EXPECT_EQ(co_await subject("a.example"), "CN=a.example");
            EXPECT_EQ(co_await subject("b.example"), "CN=b.example");
            EXPECT_EQ(co_await subject("other.example"), "CN=a.example");
        });
        const std::string with_key = uri + "&key=" + file("key.pem");
        EXPECT_EQ(error_of(transport::listen(with_key)), errc::unusable_certificate);
        EXPECT_THAT(explain(with_key, errc::unusable_certificate), HasSubstr("leave out"));
        std::filesystem::create_directory(file("empty"));
        EXPECT_THAT(explain("tls://127.0.0.1:0?cert=" + file("empty"), errc::unusable_certificate),
                    HasSubstr("has no certificate: add NAME.pem"));
    });
}

TEST_P(transport_tls, application_protocols_are_those_of_the_uri) {
    run([&]() -> task<> {
        const std::string own = "?cert=" + file("both.pem") + "&alpn=http/1.1,other";
        const std::string trusted = "?ca=" + file("ca.pem");
        for (const std::string offered : {"", "&alpn=http/1.1", "&alpn=h2,other"})
            EXPECT_EQ(co_await exchange(own, trusted + offered), std::error_code()) << offered;
        EXPECT_EQ(co_await exchange(own, trusted + "&alpn=h2"), errc::no_common_protocol);
        EXPECT_THAT(explain("tls://127.0.0.1:0" + own + ",,", errc::unusable_certificate),
                    HasSubstr("1 to 255"));
    });
}

TEST_P(transport_tls, says_what_is_wrong_with_certificates) {
    run([&]() -> task<> {
        EXPECT_EQ(error_of(transport::listen("tls://127.0.0.1:0")), errc::unusable_certificate);
        EXPECT_THAT(explain("tls://127.0.0.1:0", errc::unusable_certificate),
                    HasSubstr("needs a certificate"));
        const std::string uri = "tls://127.0.0.1:0?cert=" + file("none.pem");
        EXPECT_EQ(error_of(transport::listen(uri)), errc::unusable_certificate);
        EXPECT_THAT(explain(uri, errc::unusable_certificate),
                    AllOf(HasSubstr(file("none.pem")), HasSubstr("No such file")));
        const std::string to = "tls://127.0.0.1:1?ca=" + file("none.pem");
        EXPECT_EQ(error_of(co_await transport::connect(to)), errc::unusable_certificate);
        EXPECT_THAT(explain(to, errc::unusable_certificate), HasSubstr("No such file"));
        EXPECT_EQ(error_of(co_await transport::connect("tls://*:1")), errc::bad_address);
        EXPECT_EQ(error_of(bind_datagram("tls://127.0.0.1:0")), errc::unsupported);
        EXPECT_THAT(explain("tls://h:1", errc::unsupported), HasSubstr("use udp://"));
    });
}

}  // namespace
}  // namespace eddy::transport
