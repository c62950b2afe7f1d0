// Tests of servers over TLS, on one loop and on several: certificates of a file and of a folder,
// those of clients, application protocols, and new certificates beside open connections.
#include <eddy/http/client_pool.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/transport/transport.hpp>

#include "serving/testing.hpp"
#include "transport/test_certificates.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::testing::error_of;
using eddy::testing::must;
using serving::testing::talker;

task<response> show_connection(request& incoming) {
    const auto secure = tls::info(*incoming.connection());
    if (!secure) co_return text("plain", 500);
    co_return text(secure->server_name + " " + secure->alpn + " " + secure->peer_subject);
}

task<void> echo(websocket peer) {
    while (auto message = co_await peer.receive()) {
        const auto sent = co_await peer.send(*message);
        if (!sent) co_return;
    }
}

task<response> open_echo(request& incoming) {
    co_return upgrade(incoming, websocket_options(), echo);
}

class http_server_tls : public eddy::testing::on_io_backend {
protected:
    http_server_tls() {
        transport::write_test_certificates(folder_);
        app_.get("/", show_connection).get("/echo", open_echo);
    }

    std::string file(const std::string& name) const { return folder_.file(name); }
    void write(const std::string& name, const tls::certificate& what) {
        std::ofstream(file(name)) << what.chain + what.key;
    }
    void issue(const std::string& name, const std::string& subject, const std::string& dns) {
        write(name, tls::test_authority().issue({.subject = subject, .names = {"DNS:" + dns}}));
    }

    /// Serves by a URI with this query, on one loop and on three.
    void with_server(const std::string& query, std::function<task<void>(server& site)> body) {
        for (const std::size_t threads : {1U, 3U}) {
            SCOPED_TRACE(threads);
            run([&]() -> task<void> {
                server_options options;
                options.listen = {"tls://127.0.0.1:0?" + query};
                options.threads = threads;
                server site(app_, options);
                must(co_await site.start());
                co_await body(site);
                co_await site.stop(1h);
            });
        }
    }

    transport::tls_parameters trusting() const {
        transport::tls_parameters made;
        made.ca = file("ca.pem");
        return made;
    }

    /// The address by which a client asks for a host of that name.
    static transport::address at(const server& site, const transport::tls_parameters& by) {
        transport::address made;
        made.kind = transport::scheme::tls;
        made.host = "localhost";
        made.port = site.addresses()[0].port();
        made.tls = by;
        return made;
    }

    task<std::string> fetch(const server& site, transport::tls_parameters by,
                            std::string host = "localhost") {
        client_pool_options options;
        options.proxies = {};
        options.tls = std::move(by);
        client_pool web(options);
        pool_request wanted;
        wanted.url = "https://" + host + ":" + std::to_string(site.addresses()[0].port()) + "/";
        wanted.connect_to =
            must(transport::parse("tcp://127.0.0.1:" + std::to_string(site.addresses()[0].port())));
        auto answered = co_await web.send(std::move(wanted));
        if (!answered) co_return "error: " + answered.error().message();
        co_return must(co_await answered->body().whole(1000));
    }
    static std::string failure(std::error_code of) { return "error: " + of.message(); }

    eddy::testing::temporary_folder folder_;
    router app_;
};

INSTANTIATE_TEST_SUITE_P(http, http_server_tls,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(http_server_tls, serves_requests_and_websockets) {
    with_server("cert=" + file("both.pem"), [&](server& site) -> task<void> {
        for (int i = 0; i < 4; ++i)
            EXPECT_EQ(co_await fetch(site, trusting()), "localhost http/1.1 ");
        EXPECT_EQ(co_await fetch(site, {}), failure(errc::untrusted_certificate));
        std::vector<websocket> open;
        for (int i = 0; i < 4; ++i)
            open.push_back(must(co_await connect_websocket(at(site, trusting()), "/echo")));
        for (websocket& each : open) {
            must(co_await each.send("hello"));
            EXPECT_EQ(must(co_await each.receive()).data, "hello");
            must(co_await each.close());
        }
    });
}

TEST_P(http_server_tls, a_folder_has_a_certificate_for_each_name) {
    std::filesystem::create_directory(file("site"));
    issue("site/a.pem", "A", "a.example");
    issue("site/b.pem", "B", "*.b.example");
    with_server("cert=" + file("site"), [&](server& site) -> task<void> {
        EXPECT_EQ(co_await fetch(site, trusting(), "a.example"), "a.example http/1.1 ");
        EXPECT_EQ(co_await fetch(site, trusting(), "www.b.example"), "www.b.example http/1.1 ");
        // The first one is for all other names.
        EXPECT_EQ(co_await fetch(site, trusting(), "c.example"),
                  failure(errc::certificate_name_mismatch));
    });
}

TEST_P(http_server_tls, clients_show_certificates) {
    issue("ada.pem", "Ada", "ada.example");
    write("stranger.pem", tls::authority("another").issue({.subject = "Eve"}));
    auto ada = trusting();
    ada.cert = file("ada.pem");
    auto stranger = trusting();
    stranger.cert = file("stranger.pem");
    const std::string query = "cert=" + file("both.pem") + "&ca=" + file("ca.pem");
    with_server(query, [&](server& site) -> task<void> {
        EXPECT_EQ(co_await fetch(site, ada), "localhost http/1.1 CN=Ada");
        EXPECT_EQ(co_await fetch(site, trusting()), failure(errc::certificate_refused));
        EXPECT_EQ(co_await fetch(site, stranger), failure(errc::certificate_refused));
    });
    with_server(query + "&clients=optional", [&](server& site) -> task<void> {
        EXPECT_EQ(co_await fetch(site, ada), "localhost http/1.1 CN=Ada");
        EXPECT_EQ(co_await fetch(site, trusting()), "localhost http/1.1 ");
        EXPECT_EQ(co_await fetch(site, stranger), failure(errc::certificate_refused));
    });
}

TEST_P(http_server_tls, agrees_on_http_1_1_and_refuses_other_protocols) {
    const auto agreed = [](const server& site, transport::tls_parameters by) -> task<std::string> {
        const transport::address where = at(site, by);
        auto peer = co_await transport::connect(where, tcp::connect_options());
        if (!peer) co_return peer.error().message();
        talker client(std::move(*peer));
        // TLS 1.3: the server's refusal comes with the first read.
        static_cast<void>(co_await client.socket.write_all(
            std::string_view("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
        const std::string all = co_await client.rest();
        co_return all.substr(all.find("\r\n\r\n") + 4);
    };
    with_server("cert=" + file("both.pem"), [&](server& site) -> task<void> {
        for (const auto& [offered, result] : {std::pair{"h2,http/1.1", "localhost http/1.1 "},
                                              {"http/1.1", "localhost http/1.1 "},
                                              {"", "localhost  "}}) {
            auto by = trusting();
            by.alpn = offered;
            EXPECT_EQ(co_await agreed(site, by), result) << offered;
        }
        for (const char* offered : {"h2", "http/1.0,spdy/3"}) {
            auto by = trusting();
            by.alpn = offered;
            EXPECT_EQ(co_await agreed(site, by),
                      make_error_code(errc::no_common_protocol).message())
                << offered;
        }
        // A client of this library offers what it speaks, whatever its parameters say.
        auto by = trusting();
        by.alpn = "h2";
        EXPECT_EQ(co_await fetch(site, by), "localhost http/1.1 ");
        client direct(at(site, by));
        const auto answered = must(co_await direct.send(client_request()));
        EXPECT_EQ(must(co_await answered.body().whole(100)), "localhost http/1.1 ");
    });
    // An address that names protocols has these alone.
    with_server("cert=" + file("both.pem") + "&alpn=h2", [&](server& site) -> task<void> {
        EXPECT_EQ(co_await fetch(site, trusting()), failure(errc::no_common_protocol));
        client direct(at(site, trusting()));
        EXPECT_EQ(error_of(co_await direct.send(client_request())), errc::no_common_protocol);
        EXPECT_EQ(error_of(co_await connect_websocket(at(site, trusting()), "/echo")),
                  errc::no_common_protocol);
    });
}

TEST_P(http_server_tls, takes_new_certificates_while_connections_go_on) {
    write("late.pem", tls::localhost_certificate());
    with_server("cert=" + file("late.pem"), [&](server& site) -> task<void> {
        const std::string before = "localhost http/1.1 ";
        client old(at(site, trusting()));
        const auto ask = [](client& by) -> task<std::string> {
            auto answered = co_await by.send(client_request());
            if (!answered) co_return "error: " + answered.error().message();
            co_return must(co_await answered->body().whole(100));
        };
        EXPECT_EQ(co_await ask(old), before);
        websocket peer = must(co_await connect_websocket(at(site, trusting()), "/echo"));

        // A file that is no certificate changes nothing.
        std::ofstream(file("late.pem")) << "rubbish";
        EXPECT_EQ(error_of(site.renew_certificates()), errc::unusable_certificate);
        EXPECT_EQ(co_await fetch(site, trusting()), before);

        issue("late.pem", "new", "new.example");
        must(site.renew_certificates());
        EXPECT_EQ(co_await fetch(site, trusting(), "new.example"), "new.example http/1.1 ");
        EXPECT_EQ(co_await fetch(site, trusting()), failure(errc::certificate_name_mismatch));
        EXPECT_TRUE(old.is_reusable());
        EXPECT_EQ(co_await ask(old), before);
        must(co_await peer.send("still there"));
        EXPECT_EQ(must(co_await peer.receive()).data, "still there");
        must(co_await peer.close());
        old.close();
        write("late.pem", tls::localhost_certificate());
    });
}

int choose_h2(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char*,
              unsigned, void*) {
    *chosen = reinterpret_cast<const unsigned char*>("h2");
    *size = 2;
    return SSL_TLSEXT_ERR_OK;
}

// An unasked h2 breaks RFC 7301 (section 3.2).
TEST_P(http_server_tls, a_server_that_chooses_h2_unasked_is_an_error) {
    run([&]() -> task<void> {
        tls::server_options options;
        options.certificates = {{file("both.pem"), file("both.pem")}};
        const tls::context context = tls::must(tls::context::server(options));
        SSL_CTX_set_alpn_select_cb(context.state().first(), choose_h2, nullptr);
        listener accepting = tls::listen(must(here().listen(loopback())), context);
        transport::address where;
        where.kind = transport::scheme::tls;
        where.host = "localhost";
        where.port = accepting.local().port();
        where.tls = trusting();
        co_await with_scope([&](scope& serving) -> task<void> {
            serving.spawn([](listener& from) -> task<void> {
                stream peer = must(co_await from.accept());
                // An empty SETTINGS frame of HTTP/2, if it came so far.
                constexpr std::string_view settings("\0\0\0\4\0\0\0\0\0", 9);
                static_cast<void>(co_await peer.write_all(settings));
                static_cast<void>(co_await peer.read());
            }(accepting));
            client asking(where);
            const std::error_code why = error_of(co_await asking.send(client_request()));
            // OpenSSL of late finds it, and http1's parser does without.
            EXPECT_TRUE(why == errc::handshake_failed || why == errc::malformed) << why.message();
        });
    });
}

}  // namespace
}  // namespace eddy::http
