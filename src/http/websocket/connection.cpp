// Life of a WebSocket after its handshake.
#include "http/websocket/connection.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/timeout.hpp>

#include "http/session/spare_buffers.hpp"
#include "http/websocket/mask_source.hpp"
#include "io/sockets/linger.hpp"

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <limits>
#include <new>
#include <utility>
#include <variant>

namespace eddy::http::detail {
namespace {

using eddy::websocket::deflate_terms;
using eddy::websocket::event;
using eddy::websocket::role;
using eddy::websocket::step;

/// Input of one inflation step, so that a piece has at most about a thousand times as many bytes.
constexpr std::size_t inflated_slice = 4 * 1024;

bool keeps_context(const deflate_terms& terms, role sender) noexcept {
    return sender == role::server ? !terms.server_no_context_takeover
                                  : !terms.client_no_context_takeover;
}

/// Window, in bits, that `sender` compresses with.
unsigned window_bits(const deflate_terms& terms, role sender) noexcept {
    return sender == role::server ? terms.server_max_window_bits : terms.client_max_window_bits;
}

/// The most that a message may take when it is not compressed, head included.
std::size_t plain_frame_size(std::size_t size) noexcept {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    return size > most / 2 ? most : size + eddy::websocket::frame_head::size_limit;
}

/// The most that a message may take when it is compressed, head included.
std::size_t most_frame_size(std::size_t size) noexcept {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    if (size > most / 2) return most;
    return size + size / 1024 + 64 + eddy::websocket::frame_head::size_limit;
}

/// Limits of the queue of frames: a message of max_queued_bytes has room for its head, and for what
/// compression adds to incompressible content.
queued_writer_options frame_limits(queued_writer_options of, bool is_deflated) noexcept {
    of.max_queued_bytes =
        is_deflated ? most_frame_size(of.max_queued_bytes) : plain_frame_size(of.max_queued_bytes);
    return of;
}

/// A block of the thread's spare ones for a frame, given back at the end.
class frame_buffer {
public:
    frame_buffer() noexcept { take_spare(bytes); }
    ~frame_buffer() {
        bytes.clear();
        give_spare(bytes);
    }
    frame_buffer(const frame_buffer&) = delete;
    frame_buffer& operator=(const frame_buffer&) = delete;

    byte_buffer bytes;
};

}  // namespace

std::optional<eddy::websocket::deflate_policy> deflate_policy_of(const websocket_options& options) {
    auto policy = options.deflate;
    // The peer could not inflate what follows a message that was dropped.
    if (policy && options.queue.policy == slow_reader_policy::drop_oldest)
        policy->resets_own_context = true;
    return policy;
}

websocket_terms::websocket_terms(eddy::websocket::agreement&& agreed)
    : protocol(agreed.protocol.empty()
                   ? nullptr
                   : std::make_unique<const std::string>(std::move(agreed.protocol))),
      deflate(agreed.deflate) {}

std::shared_ptr<websocket_connection> websocket_connection::make(
    stream peer, byte_buffer received, role own, websocket_terms agreed,
    std::shared_ptr<const websocket_options> options) {
    return {new websocket_connection(std::move(peer), std::move(received), own, std::move(agreed),
                                     std::move(options)),
            retire};
}

websocket_connection::websocket_connection(stream peer, byte_buffer received, role own,
                                           websocket_terms agreed,
                                           std::shared_ptr<const websocket_options> options)
    : peer_(std::move(peer)),
      options_(std::move(options)),
      writer_(peer_, tasks_, frame_limits(options_->queue, agreed.deflate.has_value())),
      parser_(own),
      input_(std::move(received)),
      protocol_(std::move(agreed.protocol)),
      last_arrival_(loop::current().now()),
      own_(own) {
    if (agreed.deflate) {
        deflate_ = std::make_unique<deflating>();
        deflate_->terms = *agreed.deflate;
    }
    parser_.allow_compressed(agreed.deflate.has_value());
    watch();
}

void websocket_connection::retire(websocket_connection* unowned) noexcept {
    websocket_connection& self = *unowned;
    EDDY_PRECONDITION(
        !self.is_receiving_,
        "a websocket was destroyed while a coroutine receives from it: await that first");
    if (!self.has_sent_close_ && !self.error_)
        static_cast<void>(self.send_close(close_code::going_away, {}));
    self.set_error(errc::closed);
    self.writer_.abort();
    self.run();
}

/// The writer's coroutine may take several turns to end.
void websocket_connection::run() noexcept {
    if (tasks_.children() == 0)
        delete this;
    else
        loop::current().post(static_cast<posted_work&>(*this));
}

void websocket_connection::set_error(std::error_code why) noexcept {
    if (!error_) error_ = why;
    if (armed()) loop::current().disarm(*this);
    ended_.set();
}

const websocket_close& websocket_connection::closed_with() const noexcept {
    static const websocket_close none;
    return closed_with_ ? *closed_with_ : none;
}

// --- Receiving ---

/// Wait for a message, one read after another. It stays in the frame of receive() while a WebSocket
/// is idle, so a read and the message that it brings share their memory, and what is not needed
/// meanwhile is done in functions that are not inlined: 1,842 bytes for an idle WebSocket, and
/// 1,972 where a read is awaited plainly (http/memory_test.cpp, 2026-11-29).
class websocket_connection::reception {
public:
    using keeps_frame_memory = void;

    [[gnu::noinline]] reception(websocket_connection& of, bool in_pieces)
        : of_(of), in_pieces_(in_pieces) {
        EDDY_PRECONDITION(!of_.is_receiving_,
                          "a second receive of one websocket: await the first before the next");
        of_.begin_receiving(in_pieces);
        note(of_.take_received(in_pieces));
        of_.is_receiving_ = true;
    }
    [[gnu::noinline]] ~reception() { of_.is_receiving_ = false; }
    reception(const reception&) = delete;
    reception& operator=(const reception&) = delete;

    bool waits() const noexcept { return std::holds_alternative<arrival>(state_); }

    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiter) {
        return std::get_if<arrival>(&state_)->begin(waiter, waiter.promise().source());
    }
    static void await_resume() noexcept {}

    /// After a wait.
    [[gnu::noinline]] void go_on() {
        note(of_.take(std::get_if<arrival>(&state_)->take_result(), in_pieces_));
    }
    /// The message, or why there is none.
    result<websocket_message> take() noexcept {
        return *std::get_if<result<websocket_message>>(&state_);
    }

private:
    class arrival final : public read_operation {
    public:
        explicit arrival(stream_driver& driver) noexcept : read_operation(driver, {}) {}
        result<lease> take_result() noexcept {
            if (error_) return fail(error_);
            return std::move(received_);
        }
    };

    void note(found next) {
        if (next)
            state_.emplace<result<websocket_message>>(*next);
        else
            state_.emplace<arrival>(of_.peer_.driver());
    }

    websocket_connection& of_;
    std::variant<std::monostate, arrival, result<websocket_message>> state_;
    bool in_pieces_;
};

task<result<websocket_message>> websocket_connection::receive(bool in_pieces) {
    if (is_receiving_ && has_sent_close_) {
        // close() drops what comes.
        const result<> over = co_await ended_.wait();
        co_return fail(over ? error_ : over.error());
    }
    reception next(*this, in_pieces);
    while (next.waits()) {
        co_await next;
        next.go_on();
    }
    co_return next.take();
}

/// Takes a message from bytes received before. None without one; no memory is held then.
websocket_connection::found websocket_connection::take_received(bool in_pieces) {
    if (error_) return fail(error_);
    std::size_t used = 0;
    found next = process(input_.text(), used, in_pieces);
    input_.consume(std::min(used, input_.size()));
    if (!next) release_idle_memory();
    return next;
}

/// The same of what has been read.
websocket_connection::found websocket_connection::take(result<lease> got, bool in_pieces) {
    if (!got) return fail(read_error(got.error()));
    last_arrival_ = loop::current().now();
    awaits_pong_ = false;
    std::size_t used = 0;
    found next = process(got->text(), used, in_pieces);
    if (used < got->size()) input_.append(got->text().substr(used));
    return next ? std::move(next) : take_received(in_pieces);
}

void websocket_connection::begin_receiving(bool in_pieces) {
    EDDY_PRECONDITION(in_pieces || !is_in_pieces_,
                      "receive() of a websocket within a message that is received in pieces");
    if (std::exchange(is_taken_, false)) {
        if (deflate_) deflate_->inflated.clear();
        // The rest of a message that is inflated in slices stays.
        if (!parser_.message().is_compressed) message_.clear();
    }
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    // Incompressible content grows when it is compressed.
    if (!in_pieces)
        most = deflate_ ? most_frame_size(options_->max_message) : options_->max_message;
    parser_.set_limits({most, most});
}

void websocket_connection::release_idle_memory() noexcept {
    if (input_.empty()) give_spare(input_);
    if (message_.empty()) give_spare(message_);
    if (deflate_ && deflate_->inflated.empty()) give_spare(deflate_->inflated);
}

std::error_code websocket_connection::read_error(std::error_code of_stream) {
    // The end that came while it waited is why the stream was closed.
    if (error_) return error_;
    if (of_stream == errc::cancelled) return of_stream;
    if (of_stream == errc::no_buffers) return of_stream;
    set_error(of_stream == errc::end_of_stream ? make_error_code(errc::truncated) : of_stream);
    return error_;
}

/// Parses until there is an event for the caller. `used` is the number of input bytes consumed.
websocket_connection::found websocket_connection::process(std::string_view input, std::size_t& used,
                                                          bool in_pieces) {
    const bool has_rest = is_complete_ || !message_.empty();
    if (in_pieces && parser_.message().is_compressed && has_rest) {
        if (found rest = inflate_next(true)) return rest;
    }
    for (;;) {
        if (message_.capacity() == 0) take_spare(message_);
        const step now = parser_.collect(input.substr(used), message_);
        if (now.what == event::error) {
            used = input.size();
            const auto why = parser_.error().code == close_code::message_too_big
                                 ? errc::limit_reached
                                 : errc::malformed;
            return break_off(parser_.error().code, why);
        }
        used += now.consumed;
        switch (now.what) {
            case event::need_more:
                if (in_pieces && !message_.empty()) return take_message(true);
                return std::nullopt;
            case event::message_end: {
                is_complete_ = true;
                if (found whole = take_message(in_pieces)) return whole;
                break;
            }
            case event::ping:
                // A peer that does not read gets no more pongs than its queue holds.
                if (!has_sent_close_) static_cast<void>(enqueue_control(opcode::pong, now.data));
                break;
            case event::close:
                note_close(now);
                used = input.size();
                return fail(error_);
            default: break;  // a pong: that something came is noted
        }
    }
}

void websocket_connection::note_close(const step& now) {
    has_peer_closed_ = true;
    closed_with_ = std::make_unique<websocket_close>();
    closed_with_->code = now.code;
    closed_with_->reason = now.data;
    if (!has_sent_close_) static_cast<void>(send_close(now.code, {}));
    set_error(errc::end_of_stream);
}

/// Ends the connection for what the peer did.
websocket_connection::found websocket_connection::break_off(close_code code,
                                                            std::error_code error) {
    if (!has_sent_close_) static_cast<void>(send_close(code, {}));
    message_.clear();
    if (deflate_) deflate_->inflated.clear();
    is_complete_ = false;
    set_error(error);
    return fail(error_);
}

/// Takes the current message: all of it, or the part that is there.
websocket_connection::found websocket_connection::take_message(bool in_pieces) {
    const auto& info = parser_.message();
    if (info.kind == opcode::binary && !options_->takes_binary)
        return break_off(close_code::unsupported_data, errc::unsupported);
    if (info.is_compressed) return inflate_next(in_pieces);
    if (!in_pieces && message_.size() > options_->max_message)
        return break_off(close_code::message_too_big, errc::limit_reached);
    websocket_message made;
    made.is_text = info.kind == opcode::text;
    made.is_last = std::exchange(is_complete_, false);
    made.data = message_.text();
    is_taken_ = true;
    is_in_pieces_ = !made.is_last;
    return made;
}

/// The message inflated whole, or its next slice.
websocket_connection::found websocket_connection::inflate_next(bool in_pieces) {
    const bool is_text = parser_.message().kind == opcode::text;
    const role sender = own_ == role::server ? role::client : role::server;
    deflating& by = *deflate_;
    if (!by.inflater) by.inflater = std::make_unique<message_inflater>(by.terms, sender);
    take_spare(by.inflated);
    while (!message_.empty() || is_complete_) {
        const std::size_t most = in_pieces ? inflated_slice : message_.size();
        const std::string_view slice = message_.text().substr(0, most);
        const bool is_last = is_complete_ && slice.size() == message_.size();
        const std::uint64_t limit =
            in_pieces ? std::numeric_limits<std::uint64_t>::max() : options_->max_message;
        const result<> done = by.inflater->add(slice, is_last, by.inflated, limit);
        if (!done) {
            if (done.error() == errc::limit_reached)
                return break_off(close_code::message_too_big, errc::limit_reached);
            if (done.error() == errc::malformed)
                return break_off(close_code::invalid_payload, errc::malformed);
            return break_off(close_code::internal_error, done.error());
        }
        message_.consume(slice.size());
        const bool is_valid =
            !is_text || (by.text.check(by.inflated.text()) == by.inflated.size() &&
                         (!is_last || by.text.is_complete()));
        if (!is_valid) return break_off(close_code::invalid_payload, errc::malformed);
        if (is_last) {
            is_complete_ = false;
            by.text.reset();
            if (!keeps_context(by.terms, sender)) by.inflater.reset();
        }
        if (by.inflated.empty() && !is_last) continue;
        is_taken_ = true;
        is_in_pieces_ = !is_last;
        return websocket_message{is_text, is_last, by.inflated.text()};
    }
    return std::nullopt;
}

// --- Sending ---

std::optional<eddy::websocket::mask_key> websocket_connection::mask() const noexcept {
    if (own_ == role::server) return std::nullopt;
    return next_mask();
}

result<> websocket_connection::check_sending(opcode kind, std::string_view data) const {
    if (error_) return fail(error_ == errc::end_of_stream ? make_error_code(errc::closed) : error_);
    if (has_sent_close_) return fail(errc::closed);
    if (kind == opcode::text && !is_utf8(data)) return fail(errc::malformed);
    return {};
}

task<result<>> websocket_connection::send(opcode kind, std::string_view data) {
    const result<> may = check_sending(kind, data);
    if (!may) co_return may;
    if (options_->queue.policy == slow_reader_policy::wait) {
        if (data.size() > options_->queue.max_queued_bytes) co_return fail(errc::limit_reached);
        const std::size_t size =
            deflate_ ? most_frame_size(data.size()) : plain_frame_size(data.size());
        const result<> room = co_await reserve(size);
        if (!room) co_return room;
    }
    co_return enqueue(kind, data);
}

/// Awaits room in the queue, at most write_time unless it is empty.
task<result<>> websocket_connection::reserve(std::size_t size) {
    result<> room;
    if (writer_.queued_bytes() == 0)
        room = co_await writer_.reserve(size);
    else
        room = co_await with_timeout(options_->write_time, writer_.reserve(size));
    if (!room && room.error() == errc::timed_out) {
        set_error(errc::timed_out);
        writer_.abort();
    }
    if (!room) co_return room;
    co_return check_sending(opcode::binary, {});
}

result<> websocket_connection::try_send(opcode kind, std::string_view data) {
    const result<> may = check_sending(kind, data);
    if (!may) return may;
    if (deflate_ && is_full_for(data.size())) return fail(errc::limit_reached);
    return enqueue(kind, data);
}

/// True if send() would wait; known before the message is compressed.
bool websocket_connection::is_full_for(std::size_t size) const noexcept {
    const queued_writer_options limits = frame_limits(options_->queue, true);
    const std::size_t queued = writer_.queued_bytes();
    if (limits.policy != slow_reader_policy::wait || queued == 0) return false;
    return queued + most_frame_size(size) > limits.max_queued_bytes ||
           writer_.queued_messages() >= limits.max_queued_messages;
}

task<result<>> websocket_connection::send(std::shared_ptr<prepared_frames> message) {
    if (own_ == role::client) co_return co_await send(message->kind(), message->content());
    const auto chosen = choose(*message);
    if (!chosen) co_return fail(chosen.error());
    if (options_->queue.policy == slow_reader_policy::wait) {
        const result<> room = co_await reserve(chosen->frame->size());
        if (!room) co_return room;
    }
    co_return enqueue(*chosen);
}

result<> websocket_connection::try_send(prepared_frames& message) {
    // A client's frames are masked.
    if (own_ == role::client) return try_send(message.kind(), message.content());
    const auto chosen = choose(message);
    if (!chosen) return fail(chosen.error());
    return enqueue(*chosen);
}

/// The form that this peer takes.
result<prepared_frames::form> websocket_connection::choose(prepared_frames& message) const {
    const result<> may = check_sending(opcode::binary, {});
    if (!may) return fail(may.error());
    if (!message.is_valid()) return fail(errc::malformed);
    const std::size_t size = message.content().size();
    if (size > options_->queue.max_queued_bytes) return fail(errc::limit_reached);
    if (!deflate_ || size < options_->compressed_from) return message.plain();
    return message.compressed(window_bits(deflate_->terms, own_));
}

result<> websocket_connection::enqueue(const prepared_frames::form& message) {
    const result<> sent = writer_.enqueue(message.frame);
    // It is in the peer's window, and was not compressed with this end's.
    if (sent && message.is_compressed && deflate_->compressor)
        deflate_->compressor->forget_context();
    if (!sent && writer_.error()) set_error(sent.error());
    return sent;
}

result<> websocket_connection::enqueue(opcode kind, std::string_view data) try {
    if (data.size() > options_->queue.max_queued_bytes) return fail(errc::limit_reached);
    frame_buffer made;
    frame_buffer packed;
    eddy::websocket::frame head;
    head.kind = kind;
    head.mask = mask();
    if (deflate_ && data.size() >= options_->compressed_from) {
        const auto compressed = compress(data, packed.bytes);
        if (!compressed) return fail(compressed.error());
        head.is_compressed = true;
        data = *compressed;
    }
    eddy::websocket::write_frame(made.bytes, head, data);
    const result<> sent = writer_.enqueue(made.bytes.text());
    // A refused message must not stay in the context of later ones.
    if (!sent && deflate_) deflate_->compressor.reset();
    if (!sent && writer_.error()) set_error(sent.error());
    return sent;
} catch (const std::bad_alloc&) {
    return fail(errno_code(ENOMEM));
}

result<std::string_view> websocket_connection::compress(std::string_view data, byte_buffer& into) {
    message_compressor* by = nullptr;
    if (keeps_context(deflate_->terms, own_)) {
        if (!deflate_->compressor)
            deflate_->compressor = std::make_unique<message_compressor>(deflate_->terms, own_);
        by = deflate_->compressor.get();
    } else {
        by = &single_message_compressor(window_bits(deflate_->terms, own_));
    }
    const result<> done = by->add(data, true, into);
    if (!done) return fail(done.error());
    return into.text();
}

result<> websocket_connection::enqueue_control(opcode kind, std::string_view payload) try {
    frame_buffer made;
    const result<> written = eddy::websocket::write_control(made.bytes, kind, payload, mask());
    if (!written) return written;
    return writer_.enqueue(made.bytes.text());
} catch (const std::bad_alloc&) {
    return fail(errno_code(ENOMEM));
}

result<> websocket_connection::send_close(close_code code, std::string_view reason) try {
    frame_buffer made;
    const result<> written = eddy::websocket::write_close(made.bytes, code, reason, mask());
    if (!written) return written;
    has_sent_close_ = true;
    return writer_.enqueue(made.bytes.text());
} catch (const std::bad_alloc&) {
    return fail(errno_code(ENOMEM));
}

result<> websocket_connection::ping(std::string_view payload) {
    const result<> may = check_sending(opcode::ping, {});
    if (!may) return may;
    return enqueue_control(opcode::ping, payload);
}

// --- The end ---

task<result<>> websocket_connection::close(close_code code, std::string_view reason) {
    if (error_ && !has_peer_closed_) co_return fail(error_);
    const time_point until = loop::current().after(options_->close_time);
    if (!has_sent_close_) {
        const std::size_t size = reason.size() + 32;
        if (options_->queue.policy == slow_reader_policy::wait && writer_.queued_bytes() > 0)
            static_cast<void>(co_await with_deadline(until, writer_.reserve(size)));
        if (!has_sent_close_) {
            const result<> sent = send_close(code, reason);
            if (!sent && !has_sent_close_) co_return sent;
        }
    }
    if (!has_peer_closed_ && !error_) co_await drop_messages(until);
    const std::error_code before = error_;
    co_await end(until);
    if (has_peer_closed_) co_return result<>();
    co_return fail(before ? before : make_error_code(errc::timed_out));
}

/// Until the peer's close frame, or another end.
task<void> websocket_connection::drop_messages(time_point until) {
    if (is_receiving_) {
        static_cast<void>(co_await with_deadline(until, ended_.wait()));
        co_return;
    }
    while (!error_) {
        const auto dropped = co_await with_deadline(until, receive(true));
        if (!dropped) co_return;
    }
}

/// Flushes, and ends the connection so that the last frame reaches the peer.
task<void> websocket_connection::end(time_point until) {
    if (std::exchange(is_ending_, true)) co_return;
    const bool may_linger = !is_receiving_;
    set_error(errc::closed);
    const duration left = std::max(until - loop::current().now(), duration::zero());
    const result<> flushed = co_await writer_.graceful_shutdown(left);
    // After both close frames the server closes first (RFC 6455, 7.1.1).
    const bool is_over = has_peer_closed_ && own_ == role::server;
    if (flushed && !is_over && may_linger) {
        linger_limits limits;
        limits.whole = limits.idle = std::max(until - loop::current().now(), duration::zero());
        co_await linger(peer_, limits);
    }
    writer_.abort();
    co_await tasks_.join();
}

task<void> websocket_connection::finish(close_code code) {
    if (!has_sent_close_ && !error_) static_cast<void>(send_close(code, {}));
    const time_point until = loop::current().after(options_->close_time);
    if (!has_peer_closed_ && !error_) co_await drop_messages(until);
    co_await end(until);
}

// --- The watch over an idle peer ---

void websocket_connection::watch() noexcept {
    loop& here = loop::current();
    if (options_->idle_time == duration::max()) return;
    here.arm(*this, here.after(options_->idle_time));
}

void websocket_connection::fire() noexcept {
    loop& here = loop::current();
    if (error_ || has_sent_close_) return;
    if (awaits_pong_) {
        // Silence counts only while the connection receives.
        if (is_receiving_) {
            set_error(errc::timed_out);
            writer_.abort();
            return;
        }
        here.arm(*this, here.after(options_->pong_time));
        return;
    }
    const duration idle = here.now() - last_arrival_;
    if (idle < options_->idle_time) {
        here.arm(*this, last_arrival_ + options_->idle_time);
        return;
    }
    awaits_pong_ = true;
    static_cast<void>(enqueue_control(opcode::ping, {}));
    if (error_) return;
    here.arm(*this, here.after(options_->pong_time));
}

}  // namespace eddy::http::detail
