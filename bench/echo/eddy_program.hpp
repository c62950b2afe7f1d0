// Options and loop of the programs on Eddy.
#pragma once

#include <eddy/io/loop.hpp>

#include "socket.hpp"

#include <chrono>
#include <memory>
#include <utility>

/// The value; without one, prints `what` and ends the program.
template <typename T>
T must(eddy::result<T> made, const char* what) {
    if (made) return std::move(*made);
    std::fprintf(stderr, "%s: %s\n", what, made.error().message().c_str());
    std::exit(1);
}

/// Loop options of `--backend auto|uring|epoll`, `--spin-us N` and `--polling yes|no`.
inline eddy::loop_options options_of(int argc, char** argv) {
    eddy::loop_options options;
    options.kind = must(eddy::parse_io_backend_kind(text_option(argc, argv, "--backend", "auto")),
                        "--backend takes auto, uring or epoll");
    options.spin = std::chrono::microseconds(number_option(argc, argv, "--spin-us", 0));
    options.polling = text_option(argc, argv, "--polling", "yes") != std::string_view("no");
    return options;
}

/// A loop with these options.
inline std::unique_ptr<eddy::loop> make_loop(int argc, char** argv) {
    return must(eddy::loop::create(options_of(argc, argv)), "no event loop can be had");
}

/// 127.0.0.1 with the port that `--port` names.
inline eddy::endpoint local_endpoint(int argc, char** argv) {
    const auto port = static_cast<std::uint16_t>(port_option(argc, argv));
    return must(eddy::endpoint::ip("127.0.0.1", port), "the address");
}
