// Interoperability of TLS: openssl(1) as client and as server, and curl. Skipped where they are
// missing.
#include <eddy/io/process.hpp>
#include <eddy/net/tcp.hpp>

#include "tls/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace eddy::tls {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::must;

bool have(const std::string& program) {
    const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        if (access((path.substr(at, end - at) + '/' + program).c_str(), X_OK) == 0) return true;
        at = end + 1;
    }
    return false;
}

class tls_peers : public testing::on_io_backend {
protected:
    void SetUp() override {
        on_io_backend::SetUp();
        const auto write = [&](const std::string& name, const std::string& text) {
            std::ofstream(folder_.file(name)) << text;
        };
        write("ca.pem", test_authority().pem());
        write("cert.pem", localhost_certificate().chain);
        write("key.pem", localhost_certificate().key);
    }
    std::string file(const std::string& name) const { return folder_.file(name); }
    context server() const { return tls::must(context::server(usual_server())); }
    context client() const { return tls::must(context::client(usual_client())); }

private:
    testing::temporary_folder folder_;
};
INSTANTIATE_TEST_SUITE_P(tls, tls_peers,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

/// The output of a program until its end.
task<std::string> output_of(process& program) {
    std::string all;
    while (auto piece = co_await program.output.read()) all += piece->text();
    co_return all;
}

task<> serve_lines(listener& from, std::size_t connections) {
    for (std::size_t i = 0; i < connections; ++i) {
        auto peer = co_await from.accept();
        if (!peer) co_return;
        // In upper case, so that an answer is no echo of the client's own.
        while (auto received = co_await peer->read()) {
            std::string text(received->text());
            for (char& c : text)
                if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
            if (!co_await peer->write_all(text)) break;
            if (text.ends_with("\n")) break;
        }
    }
}

TEST_P(tls_peers, openssl_is_our_client) {
    if (!have("openssl")) GTEST_SKIP() << "the program openssl is not installed";
    run([&]() -> task<> {
        listener accepting = tls::listen(must(tcp::listen("127.0.0.1", 0)), server());
        const std::string to = "127.0.0.1:" + std::to_string(accepting.local().port());
        co_await with_scope([&](scope& tasks) -> task<> {
            tasks.spawn(serve_lines(accepting, 4));
            for (const std::string& option : {"-tls1_2", "-tls1_3"}) {
                process program = must(process::start(
                    {"openssl", "s_client", "-connect", to, "-CAfile", file("ca.pem"),
                     "-servername", "localhost", "-verify_return_error", "-quiet", option},
                    {.input = stdio::stream, .output = stdio::stream, .error = stdio::null}));
                must(co_await program.input.write_all("hello\n"));
                const std::string said = co_await output_of(program);
                EXPECT_EQ(said, "HELLO\n") << option;
                must(co_await program.wait());
            }
        });
    });
}

TEST_P(tls_peers, openssl_updates_its_keys) {
    if (!have("openssl")) GTEST_SKIP() << "the program openssl is not installed";
    run([&]() -> task<> {
        listener accepting = tls::listen(must(tcp::listen("127.0.0.1", 0)), server());
        const std::string to = "127.0.0.1:" + std::to_string(accepting.local().port());
        process program = must(process::start(
            {"openssl", "s_client", "-connect", to, "-CAfile", file("ca.pem"), "-tls1_3"},
            {.input = stdio::stream, .output = stdio::stream, .error = stdio::stream}));
        stream peer = must(co_await accepting.accept());
        must(co_await program.input.write_all("one\n"));
        EXPECT_EQ(must(co_await peer.read()).text(), "one\n");
        // Lines of the one letter K ask for an update, which must be answered.
        for (int i = 0; i < 3; ++i) {
            must(co_await program.input.write_all("K\n"));
            // It says so when it did: both lines at once it would take for text.
            for (std::string said; !said.contains("KEYUPDATE");)
                said += must(co_await program.error.read()).text();
            must(co_await program.input.write_all("two\n"));
            EXPECT_EQ(must(co_await peer.read()).text(), "two\n");
            must(co_await peer.write_all("answer\n"));
        }
        peer.close();
        EXPECT_THAT(co_await output_of(program), HasSubstr("answer\n"));
        must(co_await program.wait());
    });
}

TEST_P(tls_peers, curl_is_our_client) {
    if (!have("curl")) GTEST_SKIP() << "the program curl is not installed";
    run([&]() -> task<> {
        listener accepting = tls::listen(must(tcp::listen("127.0.0.1", 0)), server());
        const std::string port = std::to_string(accepting.local().port());
        const std::string body(1'000'000, 'b');
        co_await with_scope([&](scope& tasks) -> task<> {
            const auto serve = [](listener& from, const std::string& text) -> task<> {
                for (;;) {
                    auto peer = co_await from.accept();
                    if (!peer) co_return;
                    if (!co_await peer->read()) continue;
                    // Its end is the body's end, so it must be an orderly one.
                    static_cast<void>(co_await peer->write_all("HTTP/1.0 200 OK\r\n\r\n"));
                    static_cast<void>(co_await peer->write_all(text));
                    static_cast<void>(peer->shutdown_write());
                    while (co_await peer->read()) {
                    }
                }
            };
            tasks.spawn(serve(accepting, body));
            const auto curl = [&](std::vector<std::string> options) -> task<exit_status> {
                std::vector<std::string> all{"curl", "--silent",   "--noproxy",
                                             "*",    "--max-time", "20"};
                all.insert(all.end(), options.begin(), options.end());
                all.push_back("https://localhost:" + port + "/");
                process program =
                    must(process::start(all, {.input = stdio::null, .output = stdio::stream}));
                const std::string said = co_await output_of(program);
                const exit_status status = must(co_await program.wait());
                if (status.success()) EXPECT_EQ(said, body);
                co_return status;
            };
            const std::string resolve = "localhost:" + port + ":127.0.0.1";
            const std::vector<std::string> good{"--resolve", resolve, "--cacert", file("ca.pem")};
            std::vector<std::string> old = good;
            old.insert(old.end(), {"--tls-max", "1.2"});
            EXPECT_EQ((co_await curl(good)).code, 0);
            EXPECT_EQ((co_await curl(old)).code, 0);
            EXPECT_EQ((co_await curl({"--resolve", resolve})).code, 60) << "not trusted";
        });
    });
}

TEST_P(tls_peers, openssl_is_our_server) {
    if (!have("openssl")) GTEST_SKIP() << "the program openssl is not installed";
    run([&]() -> task<> {
        for (const std::string& option : {"-tls1_2", "-tls1_3"}) {
            // A port that was free a moment ago: s_server cannot report its own.
            const std::uint16_t port = must(tcp::listen("127.0.0.1", 0)).local().port();
            process program = must(process::start(
                {"openssl", "s_server", "-accept", "127.0.0.1:" + std::to_string(port), "-cert",
                 file("cert.pem"), "-key", file("key.pem"), "-rev", "-alpn", "reverse", option},
                {.input = stdio::stream, .output = stdio::stream, .error = stdio::null}));
            result<stream> plain = co_await tcp::connect("127.0.0.1", port);
            while (!plain) {
                must(co_await here().sleep_for(5ms));
                plain = co_await tcp::connect("127.0.0.1", port);
            }
            client_options options = usual_client();
            options.alpn = {"reverse"};
            const context trust = tls::must(context::client(options));
            stream secure = must(co_await tls::connect(std::move(*plain), trust, "localhost"));
            EXPECT_EQ(info(secure)->alpn, "reverse");
            EXPECT_TRUE(info(secure)->peer_verified);
            must(co_await secure.write_all("olleh\n"));
            std::string said;
            while (said.size() < 6) said += must(co_await secure.read()).text();
            EXPECT_EQ(said, "hello\n");
            secure.close();
            must(program.kill(SIGTERM));
            must(co_await program.wait());
        }
    });
}

}  // namespace
}  // namespace eddy::tls
