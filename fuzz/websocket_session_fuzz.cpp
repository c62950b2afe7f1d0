// Fuzz target of WebSocket sessions, in the simulator: whatever a client sends behind its request,
// and however it is cut, the session neither crashes nor hangs, and all that it sends are valid
// frames, of which a close frame is the last.
//
// The input is a session_input, with choices of how the server receives and compresses.
#include <eddy/base/assert.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "simulated_client.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;

// Bits of the flags.
constexpr std::uint8_t in_pieces = 4;       // the server receives pieces
constexpr std::uint8_t keeps_context = 16;  // of compression

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

task<void> send(stream& to, fuzz::session_input what) {
    const std::string request =
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    const auto asked = co_await to.write_all(request);
    if (!asked) co_return;
    co_await fuzz::send_pieces(to, what);
}

task<void> talk(fuzz::session_input what) {
    fuzz::connected_pair ends = co_await fuzz::connect_pair();
    http::websocket_options options;
    options.max_message = 4096;
    options.compressed_from = 16;
    options.deflate = http::frugal_deflate;
    if ((what.flags & keeps_context) != 0) options.deflate = eddy::websocket::deflate_policy{};
    http::router routes;
    routes.get("/", [&](http::request& incoming) -> task<http::response> {
        co_return http::upgrade(incoming, options,
                                (what.flags & in_pieces) != 0 ? echo_pieces : echo);
    });
    std::string all;
    co_await join_scope([&](scope& both) -> task<void> {
        both.spawn(send(ends.client, what));
        both.spawn(fuzz::receive_all(ends.client, all));
        // Time passes at once here: silent clients are pinged and closed.
        co_await http::serve(std::move(ends.server), routes, {});
    });
    check(all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::run_session(data, size, talk);
}
