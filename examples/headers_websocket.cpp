// Code in the comments of the headers of WebSockets, so that the compiler and tools/tidy.py see
// that it is right. Nothing of it runs.
#include <eddy/http/broadcast.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/task.hpp>

using namespace eddy;

task<void> echo(http::websocket peer);

const http::websocket_options options;

task<http::response> enter(http::request& incoming) {
    co_return http::upgrade(incoming, options, echo);
}

task<void> echo(http::websocket peer) {
    while (auto message = co_await peer.receive()) {
        auto sent = co_await peer.send(*message);
        if (!sent) co_return;
    }
}

http::websocket_group room;

task<void> talk(http::websocket peer) {
    const auto place = room.join(peer);
    while (auto message = co_await peer.receive()) {
        const http::prepared_message news(message->data);
        auto sent = co_await room.broadcast(news);
        if (!sent) co_return;
    }
}

int main() { return 0; }
