// The script of injected pages.
#include "runtime/server/page_client.hpp"

#include "http/fields/conditionals.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace eddy::runtime::server {
namespace {

/// An EventTarget `eddy`: its events are "open", "message" with the text in `data`, and "close".
/// send() before the connection is open waits for that, up to 1,000 texts. A connection that ends
/// is made again, after 0.25 s and then after twice as long, up to 30 s.
constexpr std::string_view script = R"((function () {
    'use strict';
    const longest = 30000, most = 1000;
    const eddy = new EventTarget();
    const waiting = [];
    let socket = null, pause = 250, ended = false;

    function connect() {
        socket = new WebSocket(location.protocol.replace('http', 'ws') + '//' + location.host + '/');
        socket.onopen = function () {
            pause = 250;
            while (waiting.length > 0) socket.send(waiting.shift());
            eddy.dispatchEvent(new Event('open'));
        };
        socket.onmessage = function (event) {
            eddy.dispatchEvent(new MessageEvent('message', { data: event.data }));
        };
        socket.onclose = function () {
            eddy.dispatchEvent(new Event('close'));
            if (ended) return;
            setTimeout(connect, pause * (0.5 + Math.random() / 2));
            pause = Math.min(2 * pause, longest);
        };
    }

    // False if the text is dropped.
    eddy.send = function (text) {
        if (socket.readyState === WebSocket.OPEN) {
            socket.send(text);
            return true;
        }
        if (ended || waiting.length >= most) return false;
        waiting.push(text);
        return true;
    };
    eddy.close = function () {
        ended = true;
        socket.close();
    };
    window.eddy = eddy;
    connect();
})();
)";

std::string make_tag() {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char each : script) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    return fmt::format("\"{:x}\"", hash);
}

}  // namespace

eddy::http::response serve_page_client(const eddy::http::request& incoming) {
    static const std::string tag = make_tag();
    if (incoming.method() != "GET" && incoming.method() != "HEAD") {
        eddy::http::response refused(405, "text/plain; charset=utf-8", "Method Not Allowed\n");
        refused.add("Allow", "GET, HEAD");
        return refused;
    }
    eddy::http::validators valid;
    valid.etag = tag;
    const bool is_known = eddy::http::evaluate_preconditions(incoming.headers(), valid, true) ==
                          eddy::http::precondition::not_modified;
    eddy::http::response made =
        is_known ? eddy::http::response(304)
                 : eddy::http::response(200, "text/javascript; charset=utf-8", std::string(script));
    made.add("ETag", tag);
    made.add("Cache-Control", "no-cache");
    return made;
}

}  // namespace eddy::runtime::server
