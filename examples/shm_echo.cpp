// Echo server over shared memory, for clients in C++ and in Java: what a client sends comes back.
//
//     shm_echo PATH             serves each client in a thread
//     shm_echo PATH TEXT        a client: sends the text, and prints what comes back
#include <eddy/base/bytes.hpp>
#include <eddy/shm/connection.hpp>

#include <array>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>

namespace shm = eddy::shm;

void echo(shm::connection peer) {
    std::array<std::byte, 16 * 1024> buffer;
    while (auto size = peer.read_some(buffer)) {
        if (!peer.write_all(eddy::const_bytes(buffer.data(), *size))) return;
    }
}

int serve(std::string_view path) {
    auto server = shm::acceptor::listen(path);
    if (!server) {
        std::fprintf(stderr, "%s\n", server.error().message().c_str());
        return 1;
    }
    std::puts("listening");
    std::fflush(stdout);
    while (auto peer = server->accept()) std::thread(echo, std::move(*peer)).detach();
    return 1;
}

int ask(std::string_view path, std::string_view text) {
    auto peer = shm::connection::connect(path);
    if (!peer) {
        std::fprintf(stderr, "%s\n", peer.error().message().c_str());
        return 1;
    }
    std::array<std::byte, 16 * 1024> buffer;
    if (!peer->write_all(eddy::as_bytes(text)) || !peer->shutdown_write()) return 1;
    while (auto size = peer->read_some(buffer)) std::fwrite(buffer.data(), 1, *size, stdout);
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2) return serve(argv[1]);
    if (argc == 3) return ask(argv[1], argv[2]);
    std::fputs("usage: shm_echo PATH [TEXT]\n", stderr);
    return 2;
}
