// The load's connection with TLS 1.3: OpenSSL on the blocking socket.
#pragma once

#include "socket.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

struct bench_connection {
    SSL* ssl = nullptr;

    static SSL_CTX* shared() {
        static SSL_CTX* const made = [] {
            std::signal(SIGPIPE, SIG_IGN);
            SSL_CTX* context = SSL_CTX_new(TLS_client_method());
            SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
            // Fewer calls of recv(2): the load shall not be what limits.
            SSL_CTX_set_read_ahead(context, 1);
            return context;
        }();
        return made;
    }

    /// `--ciphers LIST` are those of TLS 1.3 that it offers; without it OpenSSL's own, AES-256
    /// first.
    static void configure(int argc, char** argv) {
        const char* const chosen = text_option(argc, argv, "--ciphers", nullptr);
        if (chosen && SSL_CTX_set_ciphersuites(shared(), chosen) != 1) {
            ERR_print_errors_fp(stderr);
            std::exit(1);
        }
    }

    void open(int connected) {
        ssl = SSL_new(shared());
        if (!ssl || SSL_set_fd(ssl, connected) != 1 || SSL_connect(ssl) != 1) {
            ERR_print_errors_fp(stderr);
            std::exit(1);
        }
    }
    void close() {
        SSL_free(ssl);
        ssl = nullptr;
    }
    ssize_t send(const char* bytes, std::size_t size) const {
        return SSL_write(ssl, bytes, static_cast<int>(size));
    }
    ssize_t receive(char* into, std::size_t room) const {
        const int got = SSL_read(ssl, into, static_cast<int>(room));
        return got > 0 ? got : 0;
    }
};
