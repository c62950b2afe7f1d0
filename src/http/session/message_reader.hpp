// Receiving side of a connection: a parser, the bytes that it has not taken yet, and the body of
// the current message. Sessions and clients share it.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/body.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include "http/session/spare_buffers.hpp"
#include "http/traffic.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

namespace eddy::http {

/// Reader of messages from a stream. Memory: what one read() of the stream lends, and what was
/// received ahead; none while it waits for more of a body. Stream, parser and `counted` must
/// outlive it. One loop's thread.
class message_reader final : public body_reader {
public:
    /// Terms of receiving a body.
    struct terms {
        duration pause = duration::max();       ///< of waiting for `least` bytes
        std::size_t least = 1;                  ///< at most `pause` goes by until they are there
        duration whole_time = duration::max();  ///< for whole(): until the last byte
        bool expects_continue = false;  ///< the peer waits for "100 Continue" before it sends it
        duration write_time = duration::max();  ///< for that
        std::uint64_t limit = UINT64_MAX;       ///< on the content, as the parser has it
    };

    message_reader(stream& from, http1::message_parser& parser, traffic& counted) noexcept
        : from_(from), parser_(parser), counted_(counted) {}

    // --- Heads: for the owner, between bodies ---

    /// Parses on. The content of an event::body is valid until the next call.
    http1::step parse();
    /// Awaits more bytes. Fails as stream::read(), and with errc::timed_out.
    task<result<>> receive(time_point deadline);
    /// Appends bytes that were received elsewhere.
    void append(const_bytes bytes) {
        counted_.in += bytes.size();
        take_spare(in_);
        in_.append(bytes);
    }
    /// Bytes received and not parsed.
    std::size_t waiting() const noexcept { return in_.size() - pending_; }
    /// Takes the bytes behind the last message, for another protocol.
    byte_buffer take_rest() noexcept;
    /// Frees memory while no message has begun.
    void release_memory();

    // --- The body ---

    /// Begins the body of the message whose head has been parsed.
    void begin_body(const terms& how);
    /// Takes the end of a message that needs no more bytes, such as one without a body.
    void probe_end();
    /// Leaves "100 Continue" to others.
    void take_expectation() noexcept { terms_.expects_continue = false; }
    /// The error that ended the body early; none while it can be read.
    std::error_code failure() const noexcept { return failure_; }
    /// The next piece as read() yields it, and its errors, as far as that needs no more bytes from
    /// the peer; none where it does.
    std::optional<result<std::string_view>> take_received();
    /// Drops what has been received of the body; true when that was all of it.
    bool skip_received();
    /// Set when the body has ended.
    event& body_end() noexcept { return body_end_; }

    task<result<std::string_view>> read() override;
    task<result<std::string>> whole(std::size_t limit) override;
    void set_limit(std::uint64_t bytes) noexcept override {
        terms_.limit = bytes;
        parser_.set_body_limit(bytes);
    }
    std::uint64_t limit() const noexcept override { return terms_.limit; }
    bool ended() const noexcept override { return body_end_.is_set(); }
    const http1::header_list& trailers() const noexcept override;

private:
    task<result<std::string_view>> next(time_point last);
    void note_received(time_point since, std::size_t bytes) noexcept;
    task<result<>> announce_continue();
    void end_at_close();

    stream& from_;
    http1::message_parser& parser_;
    traffic& counted_;
    byte_buffer in_;
    std::size_t pending_ = 0;  // bytes at the front of in_ that the last step has taken
    terms terms_;
    // Waited part of `terms_.pause`: the handler's time between waits is not the peer's.
    duration waited_{};
    std::size_t received_ = 0;  // of `terms_.least`
    std::error_code failure_;
    event body_end_;
};

}  // namespace eddy::http
