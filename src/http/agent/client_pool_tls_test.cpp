// Pools of clients over TLS: verification, redirects between https and http, tunnels of proxies.
#include <eddy/http/client_pool.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>

#include "http/testing.hpp"
#include "transport/test_certificates.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

using testing::error_of;
using testing::must;

class http_client_pool_tls : public testing::with_server {
protected:
    http_client_pool_tls() {
        limits_ = session_limits();
        transport::write_test_certificates(folder_);
        options_.proxies = {};
        options_.tls.ca = folder_.file("ca.pem");
        handler_.answer = [this](request& incoming) -> task<response> {
            if (incoming.path() == "/to-http") co_return redirect(plain_ + "/end");
            if (incoming.path() == "/to-https") co_return redirect(secure_ + "/end");
            co_return text(std::string(incoming.target()));
        };
    }

    using steps = std::function<task<void>(client_pool& web)>;

    /// Runs `body` with a server of http, one of https, and a proxy.
    void with_pool(steps body) {
        run([&]() -> task<void> {
            listener plain = must(here().listen(loopback()));
            listener secure =
                must(transport::listen("tls://127.0.0.1:0?cert=" + folder_.file("both.pem")));
            listener proxy = must(here().listen(loopback()));
            const auto port = [](const listener& of) { return std::to_string(of.local().port()); };
            plain_ = "http://localhost:" + port(plain);
            secure_ = "https://localhost:" + port(secure);
            proxy_ = "http://me:pw@127.0.0.1:" + port(proxy);
            if (uses_proxy_) options_.proxies.https = proxy_;
            client_pool web(options_);
            co_await with_scope([&](scope& serving) {
                serving.spawn(accept_all(plain, serving));
                serving.spawn(accept_all(secure, serving));
                serving.spawn(tunnel_all(proxy, serving));
                return body(web);
            });
        });
    }

    task<void> accept_all(listener& from, scope& serving) {
        while (auto accepted = co_await from.accept())
            serving.spawn(serve(std::move(*accepted), handler_, limits_));
    }

    task<void> tunnel_all(listener& from, scope& serving) {
        while (auto accepted = co_await from.accept()) serving.spawn(tunnel(std::move(*accepted)));
    }

    task<void> tunnel(stream client) {
        ++tunnels_;
        std::string head;
        if (!co_await read_until(client, head, "\r\n\r\n")) co_return;
        asked_ = head;
        const auto answered = co_await client.write_all(tunnel_answer_);
        if (!answered || !tunnel_answer_.starts_with("HTTP/1.1 200 OK\r\nVia")) co_return;
        const std::size_t colon = head.find(':');
        auto server = co_await tcp::connect(
            "127.0.0.1", static_cast<std::uint16_t>(std::stoi(head.substr(colon + 1))));
        if (!server) co_return;
        co_await with_scope([&](scope& both) {
            both.spawn(pass_on(client, *server));
            return pass_on(*server, client);
        });
    }

    static task<void> pass_on(stream& from, stream& to) {
        while (auto received = co_await from.read()) {
            const auto sent = co_await to.write_all(received->bytes());
            if (!sent) co_return;
        }
    }

    static task<std::string> fetch(client_pool& web, std::string url) {
        auto answered = co_await web.get(std::move(url));
        if (!answered) co_return "error: " + answered.error().message();
        auto text = co_await answered->body().whole(1000);
        if (!text) co_return "error: " + text.error().message();
        co_return std::to_string(answered->status) + " " + *text;
    }
    static std::string failure(std::error_code of) { return "error: " + of.message(); }

    eddy::testing::temporary_folder folder_;
    client_pool_options options_;
    std::string plain_;
    std::string secure_;
    std::string proxy_;
    std::string tunnel_answer_ = "HTTP/1.1 200 OK\r\nVia: x\r\n\r\n";
    std::string asked_;
    bool uses_proxy_ = false;
    int tunnels_ = 0;
};

TEST_P(http_client_pool_tls, servers_are_verified) {
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, secure_ + "/a"), "200 /a");
        EXPECT_EQ(co_await fetch(web, secure_ + "/b"), "200 /b");
        EXPECT_EQ(web.connections(), 1U);
        pool_request other;
        other.url = "https://other.example/";
        other.connect_to = transport::address();
        other.connect_to->host = "127.0.0.1";
        other.connect_to->port =
            static_cast<std::uint16_t>(std::stoi(secure_.substr(secure_.rfind(':') + 1)));
        EXPECT_EQ(error_of(co_await web.send(std::move(other))), errc::certificate_name_mismatch);
    });
    options_.tls = {};
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, secure_ + "/a"), failure(errc::untrusted_certificate));
        EXPECT_EQ(web.connections(), 0U);
    });
}

TEST_P(http_client_pool_tls, redirects_do_not_lead_out_of_tls) {
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, plain_ + "/to-https"), "200 /end");
        EXPECT_EQ(co_await fetch(web, secure_ + "/to-http"), "302 ");
    });
    options_.insecure_redirects = true;
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, secure_ + "/to-http"), "200 /end");
    });
}

TEST_P(http_client_pool_tls, proxies_tunnel_https) {
    uses_proxy_ = true;
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, secure_ + "/a"), "200 /a");
        EXPECT_EQ(co_await fetch(web, secure_ + "/b"), "200 /b");
        EXPECT_EQ(tunnels_, 1);
        const std::string to = secure_.substr(8);
        EXPECT_EQ(asked_, "CONNECT " + to + " HTTP/1.1\r\nHost: " + to +
                              "\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n");
        EXPECT_EQ(co_await fetch(web, plain_ + "/c"), "200 /c") << "http has no proxy";
        EXPECT_EQ(tunnels_, 1);
    });
}

TEST_P(http_client_pool_tls, proxies_that_do_not_connect_are_an_error) {
    uses_proxy_ = true;
    const std::pair<const char*, std::error_code> answers[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
         errno_code(EACCES)},
        {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nfull",
         errno_code(ECONNREFUSED)},
        {"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
         errno_code(ECONNREFUSED)},
        {"nonsense\r\n\r\n", errc::malformed},
        {"HTTP/1.1 200 OK\r\n\r\nmore than was asked for", errc::malformed},
        {"HTTP/1.1 200", errc::truncated}};
    for (const auto& [text, error] : answers) {
        tunnel_answer_ = text;
        with_pool([&](client_pool& web) -> task<void> {
            const std::string got = co_await fetch(web, secure_ + "/a");
            if (error == errc::truncated)
                EXPECT_TRUE(got.starts_with("error: ")) << got;
            else
                EXPECT_EQ(got, failure(error)) << text;
            EXPECT_EQ(web.connections(), 0U);
        });
    }
}

EDDY_HTTP_ON_EVERY_BACKEND(http_client_pool_tls);

}  // namespace
}  // namespace eddy::http
