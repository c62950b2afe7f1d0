// Exchanges over a connection to a server.
#include "http/client/connection.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <limits>
#include <utility>

namespace eddy::http {
namespace {

http1::limits parser_limits(const client_limits& bounds) noexcept {
    http1::limits made;
    made.start_line = bounds.start_line;
    made.header_bytes = bounds.header_bytes;
    made.header_count = bounds.header_count;
    made.body = std::numeric_limits<std::uint64_t>::max();
    return made;
}

/// True for errors by which the server's close shows.
bool is_closed_by(std::error_code error) noexcept {
    return error == errc::end_of_stream || error == std::errc::broken_pipe ||
           error == std::errc::connection_reset;
}

task<result<>> receive(stream& from, message_reader& into) {
    const auto received = co_await from.read();
    if (!received) co_return fail(received.error());
    into.append(received->bytes());
    co_return result<>();
}

}  // namespace

/// A wait for a head whose deadline is not known before the request has been sent.
struct client_connection::early_wait final : timer {
    explicit early_wait(cancel_source* parent) noexcept : source(parent) {}
    early_wait(const early_wait&) = delete;
    early_wait& operator=(const early_wait&) = delete;
    ~early_wait() {
        if (armed()) loop::current().disarm(*this);
    }
    void fire() noexcept override {
        if (source.requested()) return;
        is_late = true;
        source.request();
    }

    cancel_source source;
    bool is_late = false;
};

client_connection::client_connection(stream connected, std::shared_ptr<const client_limits> limits)
    : peer_(std::move(connected)), limits_(std::move(limits)), parser_(parser_limits(*limits_)) {}

client_connection::~client_connection() {
    EDDY_ASSERT(waiting_ == nullptr);
    close();
}

void client_connection::note_begun(std::string_view method, http1::body_framing framing,
                                   bool is_written) noexcept {
    if (!is_written) {
        if (out_.empty()) give_spare(out_);
        return;
    }
    EDDY_ASSERT(exchanges_ == 0 || (reader_.ended() && is_sent()));
    ++exchanges_;
    interim_ = 0;
    sending_ = progress::begun;
    keeps_ = has_received_ = has_final_head_ = was_closed_ = false;
    writer_.emplace(peer_, out_, framing, limits_->write_time, counted_);
    parser_.expect_response_to(method);
}

task<result<>> client_connection::finish(const http1::header_list& trailers) {
    return send_end(writer_->end(&trailers));
}

task<result<>> client_connection::finish() { return send_end(writer_->end()); }

/// Its own write, so that a request without content takes one frame.
task<result<>> client_connection::send_end(result<> ended) {
    if (ended && !out_.empty()) {
        const auto sent = co_await with_timeout(limits_->write_time, peer_.write_all(out_.bytes()));
        ended = writer_->note_sent(sent ? std::error_code() : sent.error());
    }
    end_sending(ended ? progress::complete : progress::given_up);
    co_return ended;
}

void client_connection::give_up_sending() noexcept {
    if (sending_ == progress::begun) end_sending(progress::given_up);
}

void client_connection::end_sending(progress as) noexcept {
    sending_ = as;
    if (out_.empty()) give_spare(out_);
    if (has_final_head_) return;
    response_time_ = loop::current().after(limits_->response_time);
    if (waiting_ != nullptr) loop::current().arm(*waiting_, response_time_);
}

std::error_code client_connection::write_failure() const noexcept {
    return writer_ ? writer_->failure() : std::error_code();
}

/// The next head as far as it has been received; none where more must come.
std::optional<result<>> client_connection::take_head() {
    for (;;) {
        const http1::step step = reader_.parse();
        if (step.what == http1::event::need_more) return std::nullopt;
        if (step.what == http1::event::error) return end_head(errc::malformed);
        if (step.what == http1::event::end) continue;  // of an interim response
        EDDY_ASSERT(step.what == http1::event::head);
        const int status = parser_.head().status;
        if (status >= 200 || status == 101) return end_head({});
        if (++interim_ > limits_->interim_responses) return end_head(errc::limit_reached);
        return result<>();
    }
}

task<result<>> client_connection::read_head() {
    EDDY_ASSERT(sending_ != progress::none && !has_final_head_);
    for (;;) {
        if (const auto taken = take_head()) co_return *taken;
        if (sending_ == progress::begun) {
            const auto waited = co_await receive_while_sending();
            if (!waited) co_return end_head(waited.error());
            continue;
        }
        const auto received = co_await with_deadline(response_time_, peer_.read());
        if (!received) co_return end_head(received.error());
        reader_.append(received->bytes());
        has_received_ = true;
    }
}

task<result<>> client_connection::receive_while_sending() {
    early_wait wait(co_await current_source());
    waiting_ = &wait;
    const result<> received = co_await receive(peer_, reader_).under(wait.source);
    waiting_ = nullptr;
    if (received) has_received_ = true;
    if (!received && wait.is_late && received.error() == errc::cancelled)
        co_return fail(errc::timed_out);
    co_return received;
}

/// Ends the wait for heads, by the final one or by an error.
result<> client_connection::end_head(std::error_code error) noexcept {
    if (error) {
        const std::error_code written = write_failure();
        was_closed_ = is_closed_by(written ? written : error);
        return fail(error);
    }
    has_final_head_ = true;
    keeps_ = parser_.head().keep_alive && !parser_.tunnel();
    response_time_ = loop::current().now();
    message_reader::terms terms;
    terms.pause = limits_->read_time;
    reader_.begin_body(terms);
    reader_.probe_end();
    return {};
}

bool client_connection::is_reusable() {
    if (exchanges_ == 0) return static_cast<bool>(peer_);
    return keeps_ && is_sent() && has_final_head_ && reader_.skip_received() &&
           reader_.waiting() == 0;  // unrequested bytes answer no request
}

task<bool> client_connection::is_quiet() {
    const auto early = co_await with_timeout(duration{}, peer_.read());
    co_return !early && early.error() == errc::timed_out;
}

client_connection::taken client_connection::take_over() {
    EDDY_ASSERT(has_final_head_ && parser_.tunnel());
    keeps_ = false;
    return {std::move(peer_), reader_.take_rest()};
}

void client_connection::close() noexcept {
    keeps_ = false;
    if (write_failure())
        peer_.abort();
    else
        peer_.close();
}

}  // namespace eddy::http
