// The UDP echo server as a user of the library writes it: one loop, one coroutine.
//
//     udp_eddy --port N [--backend auto|uring|epoll] [--segments 0|1]
//
// With --segments 1 it lets the kernel join what it receives (UDP_GRO); what came joined goes back
// as segments of one buffer (UDP_SEGMENT).
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include "../echo/socket.hpp"
#include "buffer.hpp"

#include <string_view>
#include <system_error>
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

int fail_with(const char* what, std::error_code error) {
    std::fprintf(stderr, "udp_eddy: %s: %s\n", what, error.message().c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    const long port = number_option(argc, argv, "--port", 7000);
    loop_options options;
    for (int i = 1; i + 1 < argc; ++i)
        if (std::string_view(argv[i]) == "--backend")
            if (const auto kind = parse_backend_kind(argv[i + 1])) options.kind = *kind;
    datagram_options how;
    how.receive_buffer = udp_receive_buffer;
    how.join_segments = number_option(argc, argv, "--segments", 0) == 1;

    auto made = loop::create(options);
    if (!made) return fail_with("no event loop can be had", made.error());
    auto local = endpoint::ip("127.0.0.1", static_cast<std::uint16_t>(port));
    if (!local) return fail_with("the address", local.error());
    auto bound = (*made)->bind_datagram(*local, how);
    if (!bound) return fail_with(local->to_string().c_str(), bound.error());
    say_ready(port);
    (*made)->run(echo(std::move(*bound)));
}
