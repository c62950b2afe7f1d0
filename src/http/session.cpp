// The life of a control connection.
#include "http/session.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include <utility>

namespace eddy::http {
namespace {

/// Requests that a client may send ahead while an answer is under way.
constexpr std::size_t pipeline_limit = 64 * 1024;

task<result<lease>> receive(stream& from) { co_return co_await from.read(); }

task<result<>> transmit(stream& to, const_bytes bytes) { co_return co_await to.write_all(bytes); }

class http_session {
public:
    http_session(stream peer, request_handler& handler, const session_limits& limits)
        : peer_(std::move(peer)), handler_(handler), limits_(limits), parser_(limits.parser) {}

    task<void> run();

private:
    enum class arrival { request, malformed, timed_out, ended };

    task<arrival> await_request();
    task<result<>> answer(response response, bool keep);
    task<result<>> answer_in_pieces(body_source& pieces);
    task<void> send_pieces(body_source& pieces, cancel_source& waiting, result<>& sent);
    task<result<>> flush();
    task<void> watch_for_hangup(cancel_source& to_cancel);
    task<void> linger();
    std::optional<request> take_request();
    void write_head(const response& response, http1::body_framing framing, bool keep);

    stream peer_;
    request_handler& handler_;
    const session_limits& limits_;
    http1::request_parser parser_;
    byte_buffer in_;
    byte_buffer body_;
    byte_buffer out_;
};

task<void> http_session::run() {
    for (;;) {
        const arrival what = co_await await_request();
        if (what == arrival::ended) co_return;
        if (what == arrival::timed_out || what == arrival::malformed) {
            const int status = what == arrival::timed_out ? 408 : parser_.error().status;
            const std::string_view why = what == arrival::timed_out
                                             ? "the request did not arrive whole in time"
                                             : parser_.error().what;
            const auto told = co_await answer(handler_.reject(status, why), false);
            if (told) co_await linger();
            co_return;
        }
        const bool keep = parser_.head().keep_alive;
        response response;
        if (auto request = take_request())
            response = co_await handler_.handle(std::move(*request));
        else
            response = handler_.reject(400, "the request's target is malformed");
        const auto told = co_await answer(std::move(response), keep);
        if (!told) co_return;
        if (!keep) {
            co_await linger();
            co_return;
        }
    }
}

task<http_session::arrival> http_session::await_request() {
    loop& here = loop::current();
    time_point deadline = here.now() + limits_.idle_time;
    body_.clear();
    body_.release_if_empty();
    bool begun = false;
    for (;;) {
        const http1::step step = parser_.collect(in_.text(), body_);
        in_.consume(step.consumed);
        if (step.what == http1::event::error) co_return arrival::malformed;
        if (step.what == http1::event::end) co_return arrival::request;
        if (step.what == http1::event::head && parser_.head().expect_continue) {
            // A body that is declared too long is refused here, before the client sends it.
            const http1::step refused = parser_.collect({}, body_);
            if (refused.what == http1::event::error) co_return arrival::malformed;
            if (refused.what == http1::event::end) co_return arrival::request;
            out_.append("HTTP/1.1 100 Continue\r\n\r\n");
            const auto told = co_await flush();
            if (!told) co_return arrival::ended;
        }
        if (step.what != http1::event::need_more) continue;
        if (!begun && !parser_.idle()) {
            begun = true;
            deadline = here.now() + limits_.request_time;
        }
        if (!begun) {
            in_.release_if_empty();
            parser_.release_memory();
        }
        auto received = co_await with_deadline(deadline, receive(peer_));
        if (received) {
            in_.append(received->bytes());
            continue;
        }
        if (received.error() == errc::timed_out && begun) co_return arrival::timed_out;
        // A request that was cut off is answered, for clients that closed their half only.
        if (received.error() == errc::end_of_stream && parser_.finish() == http1::event::error)
            co_return arrival::malformed;
        co_return arrival::ended;
    }
}

std::optional<request> http_session::take_request() {
    request request;
    request.method = parser_.head().method;
    const auto parts = http1::split_target(request.method, parser_.head().target);
    if (!parts) return std::nullopt;
    request.path = parts->path.empty() ? "/" : std::string(parts->path);
    http1::query_reader reader(parts->query);
    while (auto parameter = reader.next()) request.query.push_back(std::move(*parameter));
    if (reader.malformed()) return std::nullopt;
    request.body = body_.text();
    return request;
}

void http_session::write_head(const response& response, http1::body_framing framing, bool keep) {
    http1::head_writer writer(out_);
    writer.response(response.status);
    if (framing.how != http1::body_framing::kind::none)
        writer.field("Content-Type", response.content_type);
    writer.field("Cache-Control", "no-store");
    if (!response.allow.empty()) writer.field("Allow", response.allow);
    if (!keep)
        writer.field("Connection", "close");
    else if (parser_.head().minor_version == 0)
        writer.field("Connection", "keep-alive");
    // Our own fields hold nothing that could be refused.
    const auto written = writer.end(framing);
    EDDY_ASSERT(written.has_value());
}

task<result<>> http_session::answer(response response, bool keep) {
    const bool head_only = parser_.head().method == "HEAD";
    if (response.pieces && !head_only) {
        // HTTP/1.0 knows no chunks; a followed log is of no use to such a client.
        if (parser_.head().minor_version == 0) {
            co_return co_await answer(
                handler_.reject(400, "a stream of lines needs HTTP/1.1, and the request is 1.0"),
                keep);
        }
        write_head(response, http1::body_framing::chunked(), keep);
        co_return co_await answer_in_pieces(*response.pieces);
    }
    if (response.status == 204)
        write_head(response, http1::body_framing::none(), keep);
    else
        write_head(response, http1::body_framing::sized(response.body.size()), keep);
    if (!head_only && response.status != 204) out_.append(response.body);
    co_return co_await flush();
}

task<result<>> http_session::flush() {
    const auto sent = co_await with_timeout(limits_.write_time, transmit(peer_, out_.bytes()));
    out_.clear();
    out_.release_if_empty();
    co_return sent;
}

task<result<>> http_session::answer_in_pieces(body_source& pieces) {
    result<> sent;
    cancel_source waiting(co_await current_source());
    co_await with_scope([&](scope& watcher) {
        // The client's going away must end the wait for the next piece, so somebody reads
        // meanwhile.
        watcher.spawn(watch_for_hangup(waiting));
        return send_pieces(pieces, waiting, sent);
    });
    co_return sent;
}

task<void> http_session::send_pieces(body_source& pieces, cancel_source& waiting, result<>& sent) {
    sent = co_await flush();
    while (sent) {
        auto piece = co_await pieces.next().under(waiting);
        if (waiting.requested()) {
            sent = fail(errc::cancelled);
            co_return;
        }
        if (piece)
            http1::write_chunk(out_, *piece);
        else
            http1::write_last_chunk(out_);
        sent = co_await flush();
        if (!piece) co_return;
    }
}

task<void> http_session::watch_for_hangup(cancel_source& to_cancel) {
    for (;;) {
        auto received = co_await peer_.read();
        if (!received) {
            if (received.error() != errc::cancelled) to_cancel.request();
            co_return;
        }
        if (in_.size() + received->size() > pipeline_limit) {
            to_cancel.request();
            co_return;
        }
        in_.append(received->bytes());
    }
}

task<void> http_session::linger() {
    if (!peer_.shutdown_write()) co_return;
    const time_point deadline = loop::current().now() + limits_.linger_time;
    std::size_t left = limits_.linger_bytes;
    while (left > 0) {
        const auto received = co_await with_deadline(deadline, receive(peer_));
        if (!received) co_return;
        left -= std::min(left, received->size());
    }
}

}  // namespace

std::optional<std::string_view> request::parameter(std::string_view name) const noexcept {
    for (const http1::query_parameter& p : query)
        if (p.name == name) return p.value;
    return std::nullopt;
}

task<void> serve(stream peer, request_handler& handler, session_limits limits) {
    http_session session(std::move(peer), handler, limits);
    co_await session.run();
}

}  // namespace eddy::http
