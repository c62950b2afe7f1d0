// Memory of idle connections in user space: a server's HTTP that rests, WebSockets, and responses
// that a client waits for more of.
#include <eddy/base/frame_pool.hpp>
#include <eddy/http/client_pool.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/websocket.hpp>
#include <eddy/io/scope.hpp>

#include "http/server/server_worker.hpp"
#include "http/session/pausing_server.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::testing::must;

class http_memory : public eddy::testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(http, http_memory,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

constexpr std::size_t connections = 2000;

/// Bytes that malloc has given out, however they were allocated: operator new, frames, mappings.
std::size_t bytes_in_use() {
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

task<void> echo(websocket peer) {
    while (auto message = co_await peer.receive()) {
        const auto sent = co_await peer.send(*message);
        if (!sent) co_return;
    }
}

/// Answers with a text, and with a WebSocket where that is asked for.
class both final : public request_handler {
public:
    task<response> handle(request& incoming) override {
        if (eddy::websocket::is_upgrade(incoming.head()))
            co_return upgrade(incoming, options, echo);
        co_return text("here");
    }
    response reject(int status, std::string_view) override { return response(status); }

    /// With heartbeats, as by default.
    std::shared_ptr<const websocket_options> options = std::make_shared<websocket_options>();
};

/// A connection without any memory of this process: a bare socket.
unique_fd connect_to(const endpoint& where) {
    unique_fd made(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(made.get(), where.data(), where.size()) != 0)
        throw std::runtime_error("connect failed");
    return made;
}

struct exchange {
    std::string sent;
    std::string_view answer_end;  // the last bytes of the answer
};

class idle_clients {
public:
    idle_clients(const server& site, std::vector<exchange> talk)
        : site_(site), talk_(std::move(talk)) {
        peers_.reserve(2 * connections);
    }

    /// Connects `count` clients, each of which talks before it falls silent for `quiet`.
    task<void> add(std::size_t count, duration quiet) {
        const std::size_t first = peers_.size();
        for (std::size_t i = 0; i < count; ++i) {
            peers_.push_back(connect_to(site_.addresses()[0]));
            if (i % 50 != 49) continue;
            while (site_.connections() < peers_.size())
                must(co_await loop::current().sleep_for(1ms));
        }
        for (std::size_t i = first; i < peers_.size(); ++i)
            for (const exchange& each : talk_) co_await ask(peers_[i].get(), each);
        must(co_await loop::current().sleep_for(quiet));
    }
    task<void> ask_each(exchange what) {
        for (const unique_fd& peer : peers_) co_await ask(peer.get(), what);
    }

private:
    static task<void> ask(int peer, const exchange& what) {
        EXPECT_EQ(::send(peer, what.sent.data(), what.sent.size(), 0),
                  static_cast<ssize_t>(what.sent.size()));
        std::string got;
        for (std::string piece(4096, ' '); !got.ends_with(what.answer_end);) {
            const ssize_t size = ::recv(peer, piece.data(), piece.size(), MSG_DONTWAIT);
            if (size == 0) throw std::runtime_error("the connection ended after " + got);
            if (size > 0)
                got.append(piece, 0, static_cast<std::size_t>(size));
            else
                must(co_await loop::current().sleep_for(100us));
        }
    }

    const server& site_;
    std::vector<exchange> talk_;
    std::vector<unique_fd> peers_;
};

/// Returns the bytes that each idle connection costs after `talk`. Each then still answers `last`.
task<std::size_t> cost_of_each(std::vector<exchange> talk, exchange last) {
    both handler;
    server_options options;
    options.listen = {"tcp://127.0.0.1:0"};
    server site(handler, options);
    must(co_await site.start());
    std::size_t each = 0;
    {
        idle_clients clients(site, std::move(talk));
        constexpr duration quiet = server_worker::rest_after + 500ms;
        // As many before: what pools keep for later connections is no connection's.
        co_await clients.add(connections, quiet);
        const std::size_t before = bytes_in_use();
        co_await clients.add(connections, quiet);
        each = (bytes_in_use() - before) / connections;
        co_await clients.ask_each(last);
    }
    co_await site.stop(1s);
    co_return each;
}

const exchange request{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "here"};
const exchange opening{
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n",
    "\r\n\r\n"};

exchange message(std::string_view text) {
    byte_buffer made;
    eddy::websocket::frame head;
    head.kind = eddy::websocket::opcode::text;
    head.mask = eddy::websocket::mask_key{0x12, 0x34, 0x56, 0x78};
    eddy::websocket::write_frame(made, head, text);
    return {std::string(made.text()), text};
}

TEST_P(http_memory, a_resting_connection_costs_512_bytes_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([]() -> task<void> {
        const std::size_t each = co_await cost_of_each({request}, request);
        RecordProperty("bytes_each", std::to_string(each));
        std::printf("%zu bytes for each idle connection\n", each);
        EXPECT_LE(each, 512U);
    });
}

TEST_P(http_memory, an_idle_websocket_costs_1900_bytes_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([]() -> task<void> {
        const std::size_t each =
            co_await cost_of_each({opening, message("hello")}, message("still here"));
        RecordProperty("bytes_each", std::to_string(each));
        std::printf("%zu bytes for each idle WebSocket\n", each);
        EXPECT_LE(each, 1900U);
    });
}

/// No coroutine, so that the request goes with the task.
task<result<pool_response>> ask(client_pool& web, const transport::address& at) {
    pool_request asked;
    asked.url = "http://pausing/events";
    asked.connect_to = at;
    return web.send(std::move(asked));
}

task<void> follow(client_pool& web, const transport::address& at, std::size_t& pieces) {
    auto answer = co_await ask(web, at);
    if (!answer) co_return;
    while (co_await answer->body().read()) ++pieces;
}

/// Bytes that each of many requests costs while its response pauses.
task<std::size_t> cost_of_each_response(bool has_head) {
    const eddy::testing::temporary_folder folder;
    testing::pausing_server site(
        folder.file("site.sock"),
        has_head ? std::optional<std::string_view>("piece") : std::nullopt);
    transport::address at;
    at.kind = transport::scheme::unix_socket;
    at.path = folder.file("site.sock");
    client_pool_options options;
    options.host_connections = options.connections = 2 * connections;
    client_pool web(std::move(options));
    scope readers;
    std::size_t pieces = 0;
    std::size_t before = 0;
    for (std::size_t i = 1; i <= 2 * connections; ++i) {
        readers.spawn(follow(web, at, pieces));
        if (i % 50 != 0) continue;
        while (site.requests() < i || (has_head && pieces < i)) {
            site.serve();
            must(co_await loop::current().sleep_for(100us));
        }
        // As many before: what pools keep for later connections is no connection's.
        if (i == connections) before = bytes_in_use();
    }
    const std::size_t each = (bytes_in_use() - before) / connections;
    readers.cancel();
    co_await readers.join();
    co_return each;
}

TEST_P(http_memory, a_response_that_pauses_costs_2400_bytes_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([]() -> task<void> {
        const std::size_t each = co_await cost_of_each_response(/*has_head*/ true);
        RecordProperty("bytes_each", std::to_string(each));
        std::printf("%zu bytes for each response that pauses\n", each);
        EXPECT_LE(each, 2400U);
    });
}

TEST_P(http_memory, a_response_that_has_not_begun_costs_6500_bytes_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([]() -> task<void> {
        const std::size_t each = co_await cost_of_each_response(/*has_head*/ false);
        RecordProperty("bytes_each", std::to_string(each));
        std::printf("%zu bytes for each response that has not begun\n", each);
        EXPECT_LE(each, 6500U);
    });
}

}  // namespace
}  // namespace eddy::http
