// Fixture of tests of upstream connections: both ends of a connection, and the exchange as a text.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include "http/client/connection.hpp"
#include "http/testing.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http::testing {

/// Runs tests with a client_connection and the stream of its server, which the test plays.
class with_connection : public eddy::testing::on_io_backend {
protected:
    using steps = std::function<task<void>(client_connection& with, stream& server)>;

    void with(steps body) {
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            if (socket_buffer_ > 0) {
                tcp::socket_options small;
                small.send_buffer = small.receive_buffer = socket_buffer_;
                must(tcp::apply(both.client, small));
                must(tcp::apply(both.server, small));
            }
            client_connection over(std::move(both.client), limits_of_test());
            co_await body(over, both.server);
        });
    }

    std::shared_ptr<const client_limits> limits_of_test() const {
        return std::make_shared<const client_limits>(limits_);
    }

    /// Begins a request of these fields.
    static result<> begin(client_connection& over, std::string_view method = "GET",
                          http1::body_framing framing = http1::body_framing::none()) {
        return over.begin(method, "/a?b", framing,
                          [](http1::head_writer& head) { head.field("Host", "x"); });
    }

    /// Sends a request without content, and reads it at the server.
    static task<void> ask(client_connection& over, stream& server, std::string method = "GET") {
        must(begin(over, method));
        must(co_await over.finish());
        std::string got;
        EXPECT_TRUE(co_await read_until(server, got, "\r\n\r\n"));
    }

    /// The response as a text: "102 A=1|200 B=2|content|C=3", or with the error in the place where
    /// it came.
    static task<std::string> response(client_connection& over) {
        std::string seen;
        do {
            const auto received = co_await over.read_head();
            if (!received) co_return seen + "error: " + received.error().message();
            seen += std::to_string(over.head().status) + fields(over.head().headers) + "|";
        } while (!over.has_final_head());
        std::error_code end;
        while (!end) {
            const auto piece = co_await over.response_body().read();
            if (piece)
                seen += *piece;
            else
                end = piece.error();
        }
        if (end != errc::end_of_stream) co_return seen + "|error: " + end.message();
        co_return seen + "|" + fields(over.response_body().trailers());
    }

    static std::string fields(const http1::header_list& of) {
        std::string text;
        for (const http1::header each : of)
            text.append(" ").append(each.name).append("=").append(each.value);
        return text;
    }

    static std::string failure(std::error_code of) { return "error: " + of.message(); }

    /// Writes a text in two pieces, with turns of the loop between them.
    static task<void> write_split(stream& to, std::string text, std::size_t at) {
        const std::string_view all = text;
        must(co_await to.write_all(all.substr(0, at)));
        for (int i = 0; i < 3; ++i) co_await loop::current().yield();
        must(co_await to.write_all(all.substr(at)));
    }

    /// Reads until `into` holds `end`; false when the peer closes first.
    static task<bool> read_until(stream& from, std::string& into, std::string end) {
        while (into.find(end) == std::string::npos) {
            auto received = co_await from.read();
            if (!received) co_return false;
            into += received->text();
        }
        co_return true;
    }

    client_limits limits_;
    int socket_buffer_ = 0;  // bytes of the kernel's buffers; 0: as they are
};

}  // namespace eddy::http::testing
