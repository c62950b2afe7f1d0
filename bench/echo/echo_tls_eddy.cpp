// The echo server on Eddy with TLS 1.3: echo_eddy.cpp over tls::listen().
//
//     echo_tls_eddy --port N [--backend auto|uring|epoll] [--spin-us N]
#include <eddy/tls/tls.hpp>

#include "eddy_program.hpp"
#include "eddy_server.hpp"
#include "test_certificate.hpp"

#include <utility>

int main(int argc, char** argv) {
    const auto loop = make_loop(argc, argv);
    auto listening = must(loop->listen(local_endpoint(argc, argv)), "listen");
    const bench_certificate own = make_bench_certificate();
    eddy::tls::server_options secure;
    secure.certificates = {{own.chain, own.key}};
    secure.min = eddy::tls::version::tls1_3;
    const auto context = eddy::tls::context::server(secure);
    if (!context) {
        std::fprintf(stderr, "the TLS context: %s\n", context.error().c_str());
        return 1;
    }
    say_ready(port_option(argc, argv));
    loop->run(serve(eddy::tls::listen(std::move(listening), *context)));
}
