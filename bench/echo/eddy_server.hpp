// The echo server as a user of the library writes it: one coroutine a connection, and one that
// accepts them. Whether a connection has TLS is the listener's business.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <chrono>
#include <system_error>
#include <utility>

inline eddy::task<void> echo(eddy::stream peer) {
    for (;;) {
        auto received = co_await peer.read();
        if (!received) co_return;
        auto sent = co_await peer.write_all(received->bytes());
        if (!sent) co_return;
    }
}

/// True for errors of accepting that pass after a while.
inline bool passes(std::error_code error) {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system ||
           error == std::errc::no_buffer_space || error == std::errc::not_enough_memory;
}

inline eddy::task<void> serve(eddy::listener listening) {
    co_await eddy::with_scope([&](eddy::scope& children) -> eddy::task<void> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer) {
                children.spawn(echo(std::move(*peer)));
            } else if (passes(peer.error())) {
                static_cast<void>(
                    co_await eddy::loop::current().sleep_for(std::chrono::milliseconds(10)));
            } else {
                co_return;
            }
        }
    });
}
