// What the raw echo servers share: their one argument and their listening socket.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Says what failed, with errno's text, and ends the program.
[[noreturn]] inline void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// The number after `--name` in the arguments, else `otherwise`.
inline long number_option(int argc, char** argv, const char* name, long otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (std::strcmp(argv[i], name) == 0) return std::strtol(argv[i + 1], nullptr, 10);
    return otherwise;
}

inline sockaddr_in loopback(long port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// Accepted sockets inherit TCP_NODELAY. `flags` are socket(2)'s.
inline int listen_on(long port, int flags) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) die("socket");
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr_in address = loopback(port);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) die("bind");
    if (listen(fd, 4096) < 0) die("listen");
    return fd;
}

/// The line that the harness waits for.
inline void say_ready(long port) {
    std::printf("listening on 127.0.0.1:%ld\n", port);
    std::fflush(stdout);
}
