// A rival: the echo server on libuv, as a careful user writes it. One loop, callbacks, one receive
// buffer for all, and uv_try_write() at once; what the socket does not take is copied and queued.
//
//     echo_uv --port N
#include "socket.hpp"

#include <uv.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace {

char received[64 * 1024];

struct queued_write {
    uv_write_t request;
    std::vector<char> bytes;
};

void must(int outcome, const char* what) {
    if (outcome >= 0) return;
    std::fprintf(stderr, "%s: %s\n", what, uv_strerror(outcome));
    std::exit(1);
}

void end(uv_stream_t* peer) {
    auto* handle = reinterpret_cast<uv_handle_t*>(peer);
    if (uv_is_closing(handle)) return;
    uv_close(handle, [](uv_handle_t* closed) { delete reinterpret_cast<uv_tcp_t*>(closed); });
}

void echo(uv_stream_t* peer, const char* bytes, std::size_t size) {
    uv_buf_t all = uv_buf_init(const_cast<char*>(bytes), static_cast<unsigned>(size));
    int sent = peer->write_queue_size == 0 ? uv_try_write(peer, &all, 1) : UV_EAGAIN;
    if (sent < 0 && sent != UV_EAGAIN) return end(peer);
    if (sent < 0) sent = 0;
    if (static_cast<std::size_t>(sent) == size) return;
    auto* rest = new queued_write{{}, std::vector<char>(bytes + sent, bytes + size)};
    rest->request.data = rest;
    uv_buf_t left = uv_buf_init(rest->bytes.data(), static_cast<unsigned>(rest->bytes.size()));
    uv_write(&rest->request, peer, &left, 1, [](uv_write_t* done, int status) {
        if (status < 0) end(done->handle);
        delete static_cast<queued_write*>(done->data);
    });
}

void on_connection(uv_stream_t* listening, int status) {
    if (status < 0) return;
    auto* peer = new uv_tcp_t;
    uv_tcp_init(listening->loop, peer);
    auto* stream = reinterpret_cast<uv_stream_t*>(peer);
    if (uv_accept(listening, stream) < 0) return end(stream);
    uv_tcp_nodelay(peer, 1);
    uv_read_start(
        stream,
        [](uv_handle_t*, std::size_t, uv_buf_t* into) {
            *into = uv_buf_init(received, sizeof received);
        },
        [](uv_stream_t* from, ssize_t size, const uv_buf_t* bytes) {
            if (size > 0)
                echo(from, bytes->base, static_cast<std::size_t>(size));
            else if (size < 0)
                end(from);
        });
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    uv_loop_t* loop = uv_default_loop();
    uv_tcp_t listening;
    must(uv_tcp_init(loop, &listening), "uv_tcp_init");
    const sockaddr_in address = loopback(port);
    must(uv_tcp_bind(&listening, reinterpret_cast<const sockaddr*>(&address), 0), "uv_tcp_bind");
    must(uv_listen(reinterpret_cast<uv_stream_t*>(&listening), 4096, on_connection), "uv_listen");
    say_ready(port);
    uv_run(loop, UV_RUN_DEFAULT);
}
