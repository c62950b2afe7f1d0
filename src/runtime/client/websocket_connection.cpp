// Connection over WebSocket: messages are texts. Received ones may be binary, too.
#include <eddy/http/websocket.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/client/connection.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace eddy::runtime::client {
namespace {

/// Pause between two polls of the WebSocket's queue, while the server reads slowly.
constexpr duration queue_pause = std::chrono::milliseconds(2);

class websocket_connection final : public connection {
public:
    explicit websocket_connection(http::websocket connected) : socket_(std::move(connected)) {}

    task<std::error_code> receive(connection_events& to) override {
        std::string message;
        bool is_cut = false;
        for (;;) {
            if (!to.ready().is_set() && !co_await to.ready().wait()) co_return errc::cancelled;
            const auto piece = co_await socket_.receive_piece();
            if (!piece) co_return piece.error();
            to.note_bytes(piece->data.size());
            const std::size_t room =
                to.longest_message() - std::min(message.size(), to.longest_message());
            is_cut = is_cut || piece->data.size() > room;
            message.append(piece->data.substr(0, room));
            if (!piece->is_last) continue;
            to.note_message(message, is_cut);
            // No memory stays for the longest message of an idle connection.
            message = std::string();
            is_cut = false;
        }
    }
    task<result<>> send(std::string_view message) override {
        result<> sent = co_await socket_.send(message);
        // Messages that wait do so in the client's own queue, from which a lost connection takes
        // none.
        while (sent && socket_.queued_bytes() > 0) sent = co_await sleep_for(queue_pause);
        co_return sent;
    }

private:
    http::websocket socket_;
};

}  // namespace

task<result<std::unique_ptr<connection>>> open_websocket(config chosen) {
    http::websocket_client_options how;
    how.connect.timeout = chosen.connect_timeout;
    how.connect.socket = tcp::keepalive_after(keepalive_of(chosen));
    how.handshake_time = chosen.connect_timeout;
    how.tls = chosen.target.where.tls;
    how.session.idle_time = chosen.ping == duration{} ? duration::max() : chosen.ping;
    how.session.write_time = duration::max();  // the server's silence is what ends it
    how.session.queue.max_queued_bytes = 2 * max_websocket_message;
    auto made = co_await with_timeout(chosen.connect_timeout,
                                      http::connect_websocket(chosen.target.url, std::move(how)));
    if (!made) co_return fail(made.error());
    co_return std::make_unique<websocket_connection>(std::move(*made));
}

}  // namespace eddy::runtime::client
