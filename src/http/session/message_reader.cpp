// Receiving side: heads and bodies.
#include "http/session/message_reader.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "http/session/spare_buffers.hpp"

#include <algorithm>
#include <utility>

namespace eddy::http {
namespace {

constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

http1::step message_reader::parse() {
    in_.consume(std::exchange(pending_, 0));
    const http1::step step = parser_.parse(in_.text());
    if (step.what == http1::event::body)
        pending_ = step.consumed;
    else
        in_.consume(step.consumed);
    return step;
}

task<result<>> message_reader::receive(time_point deadline) {
    auto received = co_await with_deadline(deadline, from_.read());
    if (!received) co_return fail(received.error());
    append(received->bytes());
    co_return result<>();
}

byte_buffer message_reader::take_rest() noexcept {
    in_.consume(std::exchange(pending_, 0));
    return std::move(in_);
}

void message_reader::release_memory() {
    if (in_.empty()) give_spare(in_);
    parser_.release_memory();
}

void message_reader::begin_body(const terms& how) {
    terms_ = how;
    waited_ = {};
    received_ = 0;
    failure_ = {};
    body_end_.reset();
}

void message_reader::probe_end() {
    if (parser_.parse({}).what == http1::event::end) body_end_.set();
}

bool message_reader::skip_received() {
    while (!ended() && !failure_) {
        const http1::step step = parse();
        if (step.what == http1::event::end) body_end_.set();
        if (step.what == http1::event::need_more || step.what == http1::event::error) return false;
    }
    return ended();
}

task<result<std::string_view>> message_reader::read() { return next(time_point::max()); }

task<result<std::string>> message_reader::whole(std::size_t limit) {
    const time_point last = loop::current().after(terms_.whole_time);
    std::string text;
    for (;;) {
        auto piece = co_await next(last);
        if (!piece && piece.error() == errc::end_of_stream) co_return text;
        if (!piece) co_return fail(piece.error());
        if (piece->size() > limit - text.size()) {
            failure_ = errc::limit_reached;
            co_return fail(failure_);
        }
        text += *piece;
    }
}

std::optional<result<std::string_view>> message_reader::take_received() {
    for (;;) {
        if (ended()) return fail(errc::end_of_stream);
        if (failure_) return fail(failure_);
        // A body that is declared too long is refused before the peer sends it.
        const http1::step step = terms_.expects_continue ? parser_.parse({}) : parse();
        if (step.what == http1::event::body) return step.body;
        if (step.what == http1::event::need_more) return std::nullopt;
        if (step.what == http1::event::end) {
            body_end_.set();
            if (in_.empty()) give_spare(in_);
            continue;
        }
        EDDY_ASSERT(step.what == http1::event::error);
        failure_ = parser_.error().status == 413 ? errc::limit_reached : errc::malformed;
    }
}

task<result<std::string_view>> message_reader::next(time_point last) {
    for (;;) {
        if (auto taken = take_received()) co_return *taken;
        if (terms_.expects_continue) {
            const auto announced = co_await announce_continue();
            if (!announced) co_return fail(announced.error());
            continue;
        }
        // All that came has been parsed: no buffer is held while nothing comes.
        give_spare(in_);
        const time_point began = loop::current().now();
        const duration left = std::max(terms_.pause - waited_, duration{});
        // A task for the wait would be another frame for as long as the peer pauses.
        const auto received =
            co_await with_deadline(std::min(last, loop::current().after(left)), from_.read());
        if (received) append(received->bytes());
        note_received(began, in_.size());
        if (received) continue;
        if (received.error() == errc::cancelled) co_return fail(errc::cancelled);
        if (received.error() == errc::end_of_stream)
            end_at_close();
        else
            failure_ = received.error();
    }
}

void message_reader::note_received(time_point since, std::size_t bytes) noexcept {
    waited_ += loop::current().now() - since;
    received_ += bytes;
    if (received_ < terms_.least) return;
    waited_ = {};
    received_ = 0;
}

const http1::header_list& message_reader::trailers() const noexcept {
    static const http1::header_list none;
    return ended() ? parser_.trailers() : none;
}

task<result<>> message_reader::announce_continue() {
    const auto sent = co_await with_timeout(terms_.write_time, from_.write_all(continue_head));
    if (sent) counted_.out += continue_head.size();
    terms_.expects_continue = false;
    if (!sent && sent.error() != errc::cancelled) failure_ = sent.error();
    co_return sent;
}

void message_reader::end_at_close() {
    if (parser_.finish() == http1::event::end)
        body_end_.set();
    else
        failure_ = errc::truncated;
}

}  // namespace eddy::http
