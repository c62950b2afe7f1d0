// Choice of a connection by its transport, and those over streams of bytes.
#include "runtime/client/connection.hpp"

#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>

#include "base/text/line_splitter.hpp"

#include <cerrno>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace eddy::runtime::client {
namespace {

/// Bytes of one read.
constexpr std::size_t read_size = std::size_t{16} << 10;

class stream_connection final : public connection {
public:
    stream_connection(stream connected, framing messages)
        : stream_(std::move(connected)), messages_(messages) {}

    task<std::error_code> receive(connection_events& to) override {
        const auto note = [&to](std::string_view line, bool is_cut) {
            to.note_message(line, is_cut);
        };
        std::vector<std::byte> piece(read_size);
        for (;;) {
            if (!to.ready().is_set() && !co_await to.ready().wait()) co_return errc::cancelled;
            const result<std::size_t> got = co_await stream_.read_some(piece);
            const std::size_t longest = to.longest_message();
            if (!got) {
                if (got.error() == errc::end_of_stream) lines_.finish(longest, note);
                co_return got.error();
            }
            to.note_bytes(*got);
            const std::string_view text = as_text(std::span(piece).first(*got));
            if (messages_ == framing::raw)
                to.note_message(text, false);
            else
                lines_.take(text, longest, note);
        }
    }
    task<result<>> send(std::string_view message) override {
        co_return co_await stream_.write_all(message);
    }
    void abort() noexcept override { stream_.abort(); }

private:
    stream stream_;
    line_splitter lines_;
    framing messages_;
};

}  // namespace

std::chrono::seconds keepalive_of(const config& chosen) noexcept {
    return std::chrono::ceil<std::chrono::seconds>(chosen.ping);
}

task<result<std::unique_ptr<connection>>> open_stream(config chosen) {
    tcp::connect_options how;
    how.timeout = chosen.connect_timeout;
    how.socket = tcp::keepalive_after(keepalive_of(chosen));
    auto made = co_await with_timeout(how.timeout, transport::connect(chosen.target.where, how));
    if (!made) co_return fail(made.error());
    // TCP may connect a port of this machine on which nothing listens to itself.
    if (made->local().port() != 0 && made->local() == made->peer())
        co_return fail(errno_code(ECONNREFUSED));
    co_return std::make_unique<stream_connection>(std::move(*made), chosen.messages);
}

task<result<std::unique_ptr<connection>>> open_connection(config chosen) {
    if (chosen.target.is_websocket()) return open_websocket(std::move(chosen));
    if (chosen.target.is_datagram()) return open_datagrams(std::move(chosen));
    return open_stream(std::move(chosen));
}

}  // namespace eddy::runtime::client
