// Attempts to connect, with exponential backoff, and the lines of each connection.
#include "runtime/client/client_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>

#include "base/rollback.hpp"
#include "runtime/line_splitter.hpp"
#include "runtime/logs/message_text.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace eddy::runtime::client {

std::vector<option> option_table() {
    return {
        {.name = "target",
         .letter = 't',
         .value_name = "ADDRESS",
         .help = "server to connect to: HOST:PORT, :PORT for this machine, or a URI, "
                 "tcp://HOST:PORT, tls://HOST:PORT, unix:///PATH or shm:///PATH",
         .is_uri = true},
        {.name = "connect-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "5s",
         .help = "time for the server to accept a connection, such as 500ms",
         .minimum = 1,
         .live = true},
        {.name = "max-line",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "64KiB",
         .help = "longest line, such as 4096, 64k or 1M; a longer one is cut in the journal, and "
                 "counts as an error",
         .minimum = 1,
         .maximum = std::int64_t{1} << 30,
         .live = true},
    };
}

outcome<> check(const settings& chosen) {
    const auto read = read_target(chosen.text("target"), "--target");
    return read ? outcome<>() : std::unexpected(read.error());
}

client_runtime::client_runtime(creation from)
    : name_(std::move(from.name)), options_(std::move(from.options)), events_(*from.events) {}

task<outcome<>> client_runtime::start() {
    if (tasks_) co_return refuse(409, name_ + " runs already");
    auto read = read_target(options_.text("target"), "--target");
    if (!read) co_return std::unexpected(read.error());
    target_ = std::move(*read);
    pauses_.reset();
    reported_ = {};
    tasks_.emplace().spawn(keep_connected());
    co_return outcome<>();
}

task<void> client_runtime::stop(duration /*drain*/) {
    if (!tasks_) co_return;
    tasks_->cancel();
    co_await tasks_->join();
    EDDY_ASSERT(out_ == nullptr && counted_.connections_now == 0);
    tasks_.reset();
}

task<outcome<std::uint64_t>> client_runtime::send(std::string message) {
    if (!out_)
        co_return refuse(tasks_ ? 503 : 409,
                         fmt::format("{0} is not connected to {1}; `eddy logs {0}` has the reason",
                                     name_, target_.to_string()));
    if (!message.ends_with('\n')) message += '\n';
    const auto lines = std::count(message.begin(), message.end(), '\n');
    const auto sent = out_->enqueue(as_bytes(message), static_cast<std::uint32_t>(lines));
    if (sent) co_return 1;
    if (sent.error() != errc::limit_reached) out_->abort();
    co_return refuse(
        503, fmt::format("{} cannot send {} bytes: {}; {} bytes wait, at most {} may", name_,
                         message.size(), sent.error().message(), out_->queued_bytes(), max_queued));
}

outcome<> client_runtime::apply(const settings& changed) {
    options_ = changed;
    return {};
}

task<void> client_runtime::keep_connected() {
    for (;;) {
        try {
            co_await connect();
        } catch (const std::bad_alloc&) {
            ++counted_.errors;
        }
        if (!co_await sleep_for(pauses_.next())) co_return;
    }
}

/// An attempt to connect, and the connection.
task<void> client_runtime::connect() {
    tcp::connect_options how;
    how.timeout = duration(options_.number("connect-timeout"));
    how.socket = tcp::keepalive_after(std::chrono::minutes(5));
    auto made = co_await with_timeout(how.timeout, transport::connect(target_, how));
    // TCP may connect a port of this machine on which nothing listens to itself.
    if (made && made->local().port() != 0 && made->local() == made->peer())
        made = fail(errno_code(ECONNREFUSED));
    const bool was_made = made.has_value();
    std::error_code end = was_made ? std::error_code() : made.error();
    if (was_made) end = co_await converse(std::move(*made));
    if (tasks_->source().requested()) co_return;
    if (end != errc::end_of_stream) ++counted_.errors;
    if (was_made)
        events_.write("the connection has ended: " + end.message());
    else if (end != reported_)  // once for all attempts with the same end
        events_.write(transport::explain(target_.to_string(), end));
    reported_ = was_made ? std::error_code() : end;
}

/// Receives until the connection ends; yields why.
task<std::error_code> client_runtime::converse(stream server) {
    queued_writer_options limits;
    limits.max_queued_bytes = max_queued;
    limits.observer = &delivered_;
    queued_writer out(server, *tasks_, limits);
    const rollback end([&, begun = loop::current().now()] {
        out.abort();
        out_ = nullptr;
        counted_.connections_now = 0;
        if (loop::current().now() - begun >= longest_pause) pauses_.reset();
    });
    out_ = &out;
    counted_.connections_now = 1;
    ++counted_.connections_total;
    events_.write("connected to " + target_.to_string());
    line_splitter lines;
    const auto note = [this](std::string_view line, bool is_cut) { note_line(line, is_cut); };
    std::vector<std::byte> piece(std::size_t{16} << 10);
    for (;;) {
        const result<std::size_t> got = co_await server.read_some(piece);
        const auto longest = static_cast<std::size_t>(options_.number("max-line"));
        if (!got) {
            if (got.error() == errc::end_of_stream) lines.finish(longest, note);
            co_return out.error() ? out.error() : got.error();
        }
        counted_.bytes_in += *got;
        lines.take(as_text(std::span(piece).first(*got)), longest, note);
    }
}

void client_runtime::note_line(std::string_view line, bool is_cut) {
    ++counted_.messages_in;
    if (is_cut) ++counted_.errors;
    events_.write(fmt::format("received: {}{}", shown_message(line),
                              is_cut ? "... (longer than --max-line)" : ""));
}

}  // namespace eddy::runtime::client
