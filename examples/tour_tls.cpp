// The part of docs/tour.md that is about TLS: a server and a client in one program, with a
// certificate that openssl(1) makes. Without that command it says so, and ends with status 77.
#include <eddy/io/loop.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/tls/tls.hpp>
#include <eddy/transport/transport.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

task<bool> make_certificate(std::string chain, std::string key) {
    process_options quiet;
    quiet.error = stdio::null;
    const std::vector<std::string> command{"openssl",
                                           "req",
                                           "-x509",
                                           "-newkey",
                                           "ec",
                                           "-pkeyopt",
                                           "ec_paramgen_curve:P-256",
                                           "-nodes",
                                           "-days",
                                           "2",
                                           "-subj",
                                           "/CN=localhost",
                                           "-addext",
                                           "subjectAltName=DNS:localhost",
                                           "-keyout",
                                           key,
                                           "-out",
                                           chain};
    auto openssl = process::start(command, quiet);
    if (!openssl) co_return false;
    const auto status = co_await openssl->wait();
    co_return status && status->success();
}

result<listener> listen_safely(std::string chain, std::string key) {
    tls::server_options options;
    options.certificates = {{chain, key}};
    auto identity = tls::context::server(options);
    if (!identity) std::fprintf(stderr, "%s\n", identity.error().c_str());
    auto plain = tcp::listen("localhost", 0);
    if (!identity || !plain) return fail(errc::unusable_certificate);
    return tls::listen(std::move(*plain), *identity);
}

task<result<stream>> connect_safely(std::string host, std::uint16_t port, tls::context trust) {
    auto plain = co_await tcp::connect(host, port);
    if (!plain) co_return fail(plain.error());
    auto secure = co_await tls::connect(std::move(*plain), trust, host);
    if (secure) std::printf("%s\n", tls::info(*secure)->version.c_str());
    co_return secure;
}

task<> echo(stream peer) {
    while (auto received = co_await peer.read())
        if (!co_await peer.write_all(received->bytes())) co_return;
}

task<> serve(listener& from) {
    co_await with_scope([&from](scope& clients) -> task<> {
        while (auto peer = co_await from.accept()) clients.spawn(echo(std::move(*peer)));
    });
}

task<bool> says_hello(stream server) {
    if (!co_await server.write_all("hello")) co_return false;
    auto received = co_await server.read();
    co_return received && received->text() == "hello";
}

/// A server that accepts on one loop and makes the handshake on another.
task<bool> serve_in_parts(transport::listener_parts& parts) {
    auto plain = co_await parts.below.accept();
    if (!plain) co_return false;
    auto secure = co_await parts.finish(std::move(*plain), 5s);
    if (!secure) co_return false;
    const std::optional<tls::connection_info> agreed = tls::info(*secure);
    co_await echo(std::move(*secure));
    co_return agreed && agreed->server_name == "localhost" && !agreed->peer_verified;
}

task<bool> greet_in_parts(std::uint16_t port, tls::context trust) {
    auto client = co_await connect_safely("localhost", port, trust);
    co_return client&& co_await says_hello(std::move(*client));
}

task<bool> talk_in_parts(std::string chain, std::string key, tls::context trust) {
    transport::tls_parameters files;
    files.cert = chain;
    files.key = key;
    transport::address where;
    where.kind = transport::scheme::tls;
    where.host = "localhost";
    where.tls = files;
    auto parts = transport::listen_in_parts(where);
    if (!parts) co_return false;
    const std::uint16_t port = parts->below.local().port();
    const auto [served, greeted] =
        co_await when_all(serve_in_parts(*parts), greet_in_parts(port, trust));
    co_return served&& greeted;
}

task<bool> talk(std::string chain, std::string key) {
    auto listening = listen_safely(chain, key);
    tls::client_options options;
    options.ca = chain;
    auto trust = tls::context::client(options);
    if (!listening || !trust) co_return false;
    const std::uint16_t port = listening->local().port();
    bool good = false;
    co_await with_scope([&](scope& children) -> task<> {
        children.spawn(serve(*listening));
        auto client = co_await connect_safely("localhost", port, *trust);
        good = client && co_await says_hello(std::move(*client));
        auto other = co_await connect_safely("127.0.0.1", port, *trust);
        good = good && !other && other.error() == errc::certificate_name_mismatch;
        const std::string uri = "tls://localhost:" + std::to_string(port) + "?ca=" + chain;
        auto third = co_await transport::connect(uri);
        good = good && third && co_await says_hello(std::move(*third));
        good = good && co_await talk_in_parts(chain, key, *trust);
    });
    co_return good;
}

task<int> everything() {
    const std::string name = "/tmp/eddy-tour-" + std::to_string(::getpid());
    const std::string chain = name + ".crt";
    const std::string key = name + ".key";
    const bool made = co_await make_certificate(chain, key);
    const bool good = made && co_await talk(chain, key);
    ::unlink(chain.c_str());
    ::unlink(key.c_str());
    if (!made) std::puts("skipped: openssl(1) is missing (`apt install openssl`)");
    co_return made ? (good ? 0 : 1) : 77;
}

}  // namespace

int main() {
    auto made = loop::create();
    if (!made) return 1;
    const int status = (*made)->run(everything());
    std::puts(status == 0 ? "all of it works" : "it does not work");
    return status;
}
