// The echo server on Eddy: one loop, one coroutine a connection.
//
//     echo_eddy --port N [--backend auto|uring|epoll] [--spin-us N] [--polling yes|no]
#include "eddy_program.hpp"
#include "eddy_server.hpp"

#include <utility>

int main(int argc, char** argv) {
    const auto loop = make_loop(argc, argv);
    auto listening = must(loop->listen(local_endpoint(argc, argv)), "listen");
    say_ready(port_option(argc, argv));
    loop->run(serve(std::move(listening)));
}
