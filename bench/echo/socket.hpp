// Shared parts of this folder's programs: their options, and the listening socket of those without
// a library.
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
#include <limits>

/// Says what failed, with errno's text, and ends the program.
[[noreturn]] inline void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// The argument after `name`, else `otherwise`.
inline const char* text_option(int argc, char** argv, const char* name, const char* otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
    return otherwise;
}

/// The number after `name`, else `otherwise`. One that is out of bounds ends the program.
inline long number_option(int argc, char** argv, const char* name, long otherwise, long least = 0,
                          long most = std::numeric_limits<long>::max()) {
    const char* text = text_option(argc, argv, name, nullptr);
    if (!text) return otherwise;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most) {
        std::fprintf(stderr, "%s takes a number from %ld to %ld\n", name, least, most);
        std::exit(1);
    }
    return value;
}

inline long port_option(int argc, char** argv) {
    return number_option(argc, argv, "--port", 7000, 1, 65535);
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
