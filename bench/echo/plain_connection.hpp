// The load's connection without TLS: the socket itself.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

struct bench_connection {
    int fd = -1;

    static void configure(int, char**) {}
    void open(int connected) { fd = connected; }
    void close() {}
    ssize_t send(const char* bytes, std::size_t size) const {
        return ::send(fd, bytes, size, MSG_NOSIGNAL);
    }
    ssize_t receive(char* into, std::size_t room) const { return ::recv(fd, into, room, 0); }
};
