// The UDP echo server as a user of the library writes it: one loop, one coroutine.
//
//     udp_eddy --port N [--backend auto|uring|epoll] [--spin-us N] [--segments 0|1]
//
// With --segments 1 it lets the kernel join what it receives (UDP_GRO); what came joined goes back
// as segments of one buffer (UDP_SEGMENT).
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include "../echo/eddy_program.hpp"
#include "buffer.hpp"

#include <cstdint>
#include <utility>

namespace {

using namespace eddy;

task<void> echo(datagram socket) {
    for (;;) {
        auto got = co_await socket.receive();
        if (!got) co_return;
        const auto segment = static_cast<std::uint16_t>(got->segment_size);
        auto sent = co_await socket.send(got->payload.bytes(), got->from, segment);
        if (!sent) std::fprintf(stderr, "udp_eddy: %s\n", sent.error().message().c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto loop = make_loop(argc, argv);
    datagram_options how;
    how.receive_buffer = udp_receive_buffer;
    how.join_segments = number_option(argc, argv, "--segments", 0, 0, 1) == 1;
    auto bound = must(loop->bind_datagram(local_endpoint(argc, argv), how), "bind");
    say_ready(port_option(argc, argv));
    loop->run(echo(std::move(bound)));
}
