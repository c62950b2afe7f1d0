// Chat over WebSocket, with its page: each message goes to all clients of the room.
//
//     websocket_chat [PORT]        then open http://127.0.0.1:8080/ in two windows
//
// /?name=Ada&say=hello enters and speaks by itself.
#include <eddy/http/broadcast.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/websocket.hpp>

#include <memory>
#include <string>
#include <utility>

namespace http = eddy::http;

namespace {

constexpr const char* page = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Chat</title><style>
body { font: 16px/1.5 sans-serif; max-width: 40em; margin: 2em auto; padding: 0 1em; }
#log { border: 1px solid #bbb; border-radius: 6px; min-height: 12em; padding: .5em 1em; }
#log p { margin: .2em 0; }
form { display: flex; gap: .5em; margin-top: 1em; }
input { font: inherit; padding: .3em .5em; }
#text { flex: 1; }
</style></head><body><h1>Chat</h1><p id="state">connecting</p><div id="log"></div>
<form id="form"><input id="name" size="8" aria-label="your name"><input id="text" autofocus
autocomplete="off" aria-label="message"><button>Send</button></form><script>
const asked = new URLSearchParams(location.search);
const at = id => document.getElementById(id);
at('name').value = asked.get('name') || 'guest';
const secure = location.protocol === 'https:' ? 'wss://' : 'ws://';
const socket = new WebSocket(secure + location.host + '/chat', ['chat.example']);
socket.onopen = () => {
    at('state').textContent = 'connected, ' + socket.protocol;
    if (asked.get('say')) say(asked.get('say'));
};
socket.onclose = event => { at('state').textContent = 'closed, ' + event.code; };
socket.onmessage = event => {
    const line = document.createElement('p');
    line.textContent = event.data;
    at('log').append(line);
    document.title = 'Chat (' + at('log').children.length + ')';
};
function say(text) { socket.send(at('name').value + ': ' + text); }
at('form').onsubmit = event => {
    event.preventDefault();
    if (at('text').value) say(at('text').value);
    at('text').value = '';
};
</script></body></html>
)";

class room {
public:
    room() {
        auto chosen = std::make_shared<http::websocket_options>();
        chosen->protocols = {"chat.example"};
        chosen->deflate = http::frugal_deflate;
        chosen->max_message = 4096;
        // A client that reads slowly misses the oldest messages, and delays no other.
        chosen->queue.max_queued_bytes = 256 * 1024;
        chosen->queue.policy = eddy::slow_reader_policy::drop_oldest;
        options_ = std::move(chosen);
    }

    eddy::task<http::response> enter(http::request& incoming) {
        co_return http::upgrade(incoming, options_,
                                [this](http::websocket peer) { return talk(std::move(peer)); });
    }

private:
    eddy::task<> talk(http::websocket peer) {
        const auto place = present_.join(peer);
        while (auto message = co_await peer.receive()) {
            if (!message->is_text) continue;
            const http::prepared_message news(message->data);
            const auto sent = co_await present_.broadcast(news);
            if (!sent) co_return;
        }
    }

    std::shared_ptr<const http::websocket_options> options_;
    http::websocket_group present_;
};

eddy::task<http::response> show_page(http::request&) { co_return http::html(page); }

}  // namespace

int main(int argc, char** argv) {
    room lobby;
    http::router routes;
    routes.get("/", show_page).get("/chat", [&](http::request& request) {
        return lobby.enter(request);
    });
    http::server_options options;
    options.listen = {std::string("tcp://127.0.0.1:") + (argc > 1 ? argv[1] : "8080")};
    return http::run(routes, options);
}
