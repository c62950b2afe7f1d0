// Fuzz target of WebSocket sessions, in the simulator: whatever a client sends behind its request,
// and however it is cut, the session neither crashes nor hangs, and all that it sends are valid
// frames, of which a close frame is the last.
//
// The first byte chooses what `choice` names, the second seeds the cuts; the rest is what the
// client sends.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

enum choice : std::uint8_t {
    half_closes = 1,    // the client finishes sending, and goes on reading
    small_sockets = 2,  // of the simulated network
    in_pieces = 4,      // the server receives pieces
    shuffled = 8,       // the order of what is ready
    keeps_context = 16  // of compression
};

task<void> echo(http::websocket peer) {
    while (auto message = co_await peer.receive()) {
        auto sent = co_await peer.send(*message);
        if (!sent) co_return;
    }
}

task<void> echo_pieces(http::websocket peer) {
    while (auto piece = co_await peer.receive_piece()) {
        if (piece->data.empty()) continue;
        auto sent = co_await peer.send(as_bytes(piece->data));
        if (!sent) co_return;
    }
}

/// Everything behind the response must be frames.
void check(std::string_view sent) {
    const std::size_t head = sent.find("\r\n\r\n");
    EDDY_ASSERT(sent.starts_with("HTTP/1.1 101 ") && head != std::string_view::npos);
    sent.remove_prefix(head + 4);
    eddy::websocket::parser parser(eddy::websocket::role::client);
    parser.allow_compressed(true);
    byte_buffer message;
    for (;;) {
        const auto step = parser.collect(sent, message);
        EDDY_ASSERT(step.what != eddy::websocket::event::error);
        sent.remove_prefix(step.consumed);
        if (step.what == eddy::websocket::event::need_more) break;
        EDDY_ASSERT(step.what != eddy::websocket::event::close || sent.empty());
        message.clear();
    }
}

task<void> send(stream& to, std::string_view text, std::uint8_t flags, std::uint8_t seed) {
    const std::string request =
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    const auto asked = co_await to.write_all(request);
    if (!asked) co_return;
    random_generator random(seed);
    while (!text.empty()) {
        const std::size_t size =
            seed == 0 ? text.size() : std::min<std::size_t>(text.size(), 1 + random.below(seed));
        const auto sent = co_await to.write_all(text.substr(0, size));
        if (!sent) co_return;
        text.remove_prefix(size);
    }
    if ((flags & half_closes) != 0) static_cast<void>(to.shutdown_write());
}

task<void> receive(stream& from, std::string& all) {
    for (;;) {
        const auto received = co_await from.read();
        if (!received) co_return;
        all += received->text();
    }
}

task<void> talk(std::string_view text, std::uint8_t flags, std::uint8_t seed) {
    auto listening = loop::current().listen(*endpoint::ip("127.0.0.1", 80));
    auto client = co_await loop::current().connect(listening->local());
    auto server = co_await listening->accept();
    EDDY_ASSERT(client && server);
    http::websocket_options options;
    options.max_message = 4096;
    options.compressed_from = 16;
    options.deflate = http::frugal_deflate;
    if ((flags & keeps_context) != 0) options.deflate = eddy::websocket::deflate_policy{};
    http::router routes;
    routes.get("/", [&](http::request& incoming) -> task<http::response> {
        co_return http::upgrade(incoming, options, (flags & in_pieces) != 0 ? echo_pieces : echo);
    });
    std::string all;
    co_await join_scope([&](scope& both) -> task<void> {
        both.spawn(send(*client, text, flags, seed));
        both.spawn(receive(*client, all));
        // Time passes at once here: silent clients are pinged and closed.
        co_await http::serve(std::move(*server), routes, {});
    });
    check(all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::uint8_t flags = data[0];
    const std::uint8_t seed = data[1];
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    loop_options options;
    options.kind = backend_kind::sim;
    options.sim.seed = seed;
    if ((flags & small_sockets) != 0) options.sim.socket_buffer = 256;
    if ((flags & shuffled) != 0) options.sim.shuffle = true;
    auto here = loop::create(options);
    EDDY_ASSERT(here);
    (*here)->run(talk(text, flags, seed));
    return 0;
}
