// A server that sends large messages without end to each client: the cost of a write that is copied
// into the socket, and of one that is not.
//
//     send_eddy --port N --payload BYTES [--zero-copy 0|1] [--backend auto|uring|epoll]
//
// With --zero-copy 1 every write asks the kernel to send from the message itself (io_uring only).
#include <eddy/io/scope.hpp>

#include "eddy_program.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace {

eddy::task<> send_all(eddy::stream peer, const std::vector<std::byte>& message) {
    while (co_await peer.write_all(message)) {
    }
}

eddy::task<> send_to_all(eddy::listener listening, const std::vector<std::byte>& message) {
    co_await eddy::with_scope([&](eddy::scope& peers) -> eddy::task<> {
        while (auto peer = co_await listening.accept())
            peers.spawn(send_all(std::move(*peer), message));
    });
}

}  // namespace

int main(int argc, char** argv) {
    const auto size = number_option(argc, argv, "--payload", 65536, 1, 64 * 1024 * 1024);
    const std::vector<std::byte> message(static_cast<std::size_t>(size), std::byte{'x'});
    eddy::loop_options options = options_of(argc, argv);
    if (number_option(argc, argv, "--zero-copy", 0) != 0) options.zero_copy_threshold = 1;
    const auto loop = must(eddy::loop::create(options), "no event loop can be had");
    auto listening = must(loop->listen(local_endpoint(argc, argv)), "listen");
    say_ready(port_option(argc, argv));
    loop->run(send_to_all(std::move(listening), message));
}
