// The echo server with TLS 1.3, as a user of the library writes it: echo_eddy.cpp over
// tls::listen().
//
//     echo_tls_eddy --port N [--backend auto|uring|epoll] [--spin-us N]
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/tls/tls.hpp>

#include "test_certificate.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;

task<void> echo(stream peer) {
    for (;;) {
        auto received = co_await peer.read();
        if (!received) co_return;
        auto sent = co_await peer.write_all(received->bytes());
        if (!sent) co_return;
    }
}

bool passes(std::error_code error) {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system ||
           error == std::errc::no_buffer_space || error == std::errc::not_enough_memory;
}

task<void> serve(listener listening) {
    co_await with_scope([&](scope& children) -> task<void> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer) {
                children.spawn(echo(std::move(*peer)));
            } else if (passes(peer.error())) {
                static_cast<void>(
                    co_await loop::current().sleep_for(std::chrono::milliseconds(10)));
            } else {
                co_return;
            }
        }
    });
}

int usage() {
    std::fputs("usage: echo_tls_eddy --port N [--backend auto|uring|epoll] [--spin-us N]\n",
               stderr);
    return 1;
}

bool number(std::string_view text, std::uint32_t& value) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

int fail_with(const char* what, std::error_code error) {
    std::fprintf(stderr, "echo_tls_eddy: %s: %s\n", what, error.message().c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint32_t port = 7000;
    loop_options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        if (i + 1 == argc) return usage();
        const std::string_view value = argv[i + 1];
        std::uint32_t spin_us = 0;
        if (name == "--port" && number(value, port) && port <= 65535) {
            continue;
        } else if (name == "--spin-us" && number(value, spin_us)) {
            options.spin = std::chrono::microseconds(spin_us);
        } else if (const auto kind = parse_backend_kind(value); name == "--backend" && kind) {
            options.kind = *kind;
        } else {
            return usage();
        }
    }

    auto made = loop::create(options);
    if (!made) return fail_with("no event loop can be had", made.error());
    auto local = endpoint::ip("127.0.0.1", static_cast<std::uint16_t>(port));
    if (!local) return fail_with("the address", local.error());
    auto listening = (*made)->listen(*local);
    if (!listening) return fail_with(local->to_string().c_str(), listening.error());
    const bench_certificate own = make_bench_certificate();
    tls::server_options secure;
    secure.certificates = {{own.chain, own.key}};
    secure.min = tls::version::tls1_3;
    const auto context = tls::context::server(secure);
    if (!context) {
        std::fprintf(stderr, "echo_tls_eddy: %s\n", context.error().c_str());
        return 1;
    }
    std::printf("listening on %s\n", listening->local().to_string().c_str());
    std::fflush(stdout);
    (*made)->run(serve(tls::listen(std::move(*listening), *context)));
}
