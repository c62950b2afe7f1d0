// Client of a session that a fuzz target tests, in the simulator: it sends the input in seeded
// pieces and keeps what comes back.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::fuzz {

/// Bits of an input's first byte that all sessions have in common. The others are a target's own.
enum choice : std::uint8_t {
    half_closes = 1,    // the client finishes sending, and keeps reading
    small_sockets = 2,  // of the simulated network
    shuffled = 8,       // the order of what is ready
};

/// An input: the first byte chooses, the second seeds the cuts; the rest is what the client sends.
struct session_input {
    std::uint8_t flags = 0;
    std::uint8_t seed = 0;
    std::string_view text;
};

/// Both ends of a simulated connection.
struct connected_pair {
    stream client;
    stream server;
};

inline task<connected_pair> connect_pair() {
    auto listening = loop::current().listen(*endpoint::ip("127.0.0.1", 80));
    auto client = co_await loop::current().connect(listening->local());
    auto server = co_await listening->accept();
    EDDY_ASSERT(client && server);
    co_return connected_pair{std::move(*client), std::move(*server)};
}

/// Sends the text in pieces, with `pause` between them.
inline task<void> send_pieces(stream& to, session_input what, std::chrono::nanoseconds pause = {}) {
    random_generator random(what.seed);
    while (!what.text.empty()) {
        const std::size_t size =
            what.seed == 0 ? what.text.size()
                           : std::min<std::size_t>(what.text.size(), 1 + random.below(what.seed));
        const auto sent = co_await to.write_all(what.text.substr(0, size));
        if (!sent) co_return;
        what.text.remove_prefix(size);
        if (pause.count() > 0) static_cast<void>(co_await loop::current().sleep_for(pause));
    }
    if ((what.flags & half_closes) != 0) static_cast<void>(to.shutdown_write());
}

inline task<void> receive_all(stream& from, std::string& all) {
    for (;;) {
        const auto received = co_await from.read();
        if (!received) co_return;
        all += received->text();
    }
}

/// Runs talk(session_input) in a simulator; an input of less than two bytes is none.
template <class Talk>
int run_session(const std::uint8_t* data, std::size_t size, Talk talk) {
    if (size < 2) return 0;
    const session_input what{data[0], data[1], {reinterpret_cast<const char*>(data) + 2, size - 2}};
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim.seed = what.seed;
    if ((what.flags & small_sockets) != 0) options.sim.socket_buffer = 256;
    if ((what.flags & shuffled) != 0) options.sim.shuffle = true;
    auto here = loop::create(options);
    EDDY_ASSERT(here);
    (*here)->run(talk(what));
    return 0;
}

}  // namespace eddy::fuzz
