// Connection over UDP: a message is a datagram. There is no connection that could end; errors that
// ICMP reports, such as a closed port, are of single datagrams.
#include <eddy/net/udp.hpp>

#include "runtime/client/connection.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace eddy::runtime::client {
namespace {

/// An error that the network reports about a datagram which was sent before.
bool is_report(std::error_code error) noexcept {
    return error == std::errc::connection_refused || error == std::errc::host_unreachable ||
           error == std::errc::network_unreachable || error == std::errc::message_size;
}

class datagram_connection final : public connection {
public:
    explicit datagram_connection(datagram socket) : socket_(std::move(socket)) {}

    task<std::error_code> receive(connection_events& to) override {
        for (;;) {
            if (!to.ready().is_set() && !co_await to.ready().wait()) co_return errc::cancelled;
            const result<datagram_message> got = co_await socket_.receive();
            if (!got && !is_report(got.error())) co_return got.error();
            if (!got) {
                to.note_error(got.error());
                continue;
            }
            const std::string_view text = got->payload.text();
            const std::size_t longest = to.longest_message();
            to.note_bytes(text.size());
            to.note_message(text.substr(0, longest), got->truncated || text.size() > longest);
        }
    }
    task<result<>> send(std::string_view message) override {
        result<> sent = co_await socket_.send(as_bytes(message));
        // The report of an earlier datagram takes the place of the send.
        if (!sent && is_report(sent.error())) sent = co_await socket_.send(as_bytes(message));
        co_return sent;
    }

private:
    datagram socket_;
};

}  // namespace

task<result<std::unique_ptr<connection>>> open_datagrams(config chosen) {
    udp::connect_options how;
    how.timeout = chosen.connect_timeout;
    auto made = co_await udp::connect(chosen.target.where.host, chosen.target.where.port, how);
    if (!made) co_return fail(made.error());
    co_return std::make_unique<datagram_connection>(std::move(*made));
}

}  // namespace eddy::runtime::client
