// Connection to an HTTP/1.1 server: a machine for one exchange at a time, each step of which the
// caller drives. What an exchange means (retries, redirects, early refusals) is the caller's.
//
//     const result<> begun = connection.begin("GET", "/", framing, [&](http1::head_writer& head) {
//         head.field("Host", host);
//     });
//     sent = co_await connection.finish();
//     do {
//         received = co_await connection.read_head();
//     } while (received && !connection.has_final_head());
//     // connection.head(), then connection.content()
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/client.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include "http/session/message_reader.hpp"
#include "http/session/message_writer.hpp"
#include "http/session/spare_buffers.hpp"
#include "http/traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

namespace eddy::http {

/// Client side of one connection. The request is sent by begin(), writes of content() and finish();
/// the response is read by read_head() and reads of response_body(). Both sides may be in progress
/// at once, one wait of each, so a response that comes before its request has been sent whole is
/// read meanwhile.
///
/// Memory: no buffer is held while nothing is sent and nothing received waits to be read. A text of
/// the request is built nowhere but in the output buffer. Exchanges of a kept connection allocate
/// nothing once its parser has the memory for their heads.
///
/// It must outlive its tasks. One loop's thread.
class client_connection final {
public:
    /// Takes a connected stream that is used for HTTP/1.1 alone.
    client_connection(stream connected, std::shared_ptr<const client_limits> limits);
    ~client_connection();
    client_connection(const client_connection&) = delete;
    client_connection& operator=(const client_connection&) = delete;

    // --- The request ---

    /// Begins an exchange: writes the head of a request, which goes out with the first piece of its
    /// content, or with finish(). `write_fields` is called with an http1::head_writer at once, for
    /// the fields but those of framing; Host is among them. The connection must be new or reusable.
    /// errc::malformed for a head that cannot be written: no exchange has begun then.
    template <class WriteFields>
    [[nodiscard]] result<> begin(std::string_view method, std::string_view target,
                                 http1::body_framing framing, WriteFields&& write_fields) {
        take_spare(out_);
        http1::head_writer head(out_);
        head.request(method, target);
        write_fields(head);
        const result<> written = head.end(framing);
        note_begun(method, framing, written.has_value());
        return written;
    }

    /// Writer of the request's content, with the framing that begin() was given; errors as of
    /// body_writer.
    body_writer& content() noexcept { return *writer_; }
    /// Sends the head without content, such as with "Expect: 100-continue". Yields a result<>;
    /// errors as of body_writer::write().
    task<result<>> flush() { return writer_->flush(); }
    /// Ends the request, and sends what waits of it; `trailers` follow content in chunks, and are
    /// copied at once. Yields a result<>; errors as of body_writer::write(), and errc::truncated
    /// for content that is shorter than declared.
    task<result<>> finish(const http1::header_list& trailers);
    /// The same without trailers.
    task<result<>> finish();
    /// Gives the rest of the request up: the connection is not used again. The time for the
    /// response begins.
    void give_up_sending() noexcept;
    /// True once the whole request has been sent.
    bool is_sent() const noexcept { return sending_ == progress::complete; }
    /// The failure of sending: the stream's error or errc::timed_out; none without one.
    std::error_code write_failure() const noexcept;

    // --- The response ---

    /// Awaits the next head: of an interim response (1xx but 101), each of which is a message of
    /// its own, or the final one. Yields a result<>: errc::malformed, errc::limit_reached for one
    /// interim response too many, errc::end_of_stream when the server closes before it,
    /// errc::timed_out, errc::cancelled, or the stream's error. The time for the response ends with
    /// the final head and begins when the request has been sent, or its sending has failed.
    task<result<>> read_head();
    /// The head that came last, until the next read_head() or begin().
    const http1::response_head& head() const noexcept { return parser_.head(); }
    /// The same, for moving its fields out.
    http1::response_head& head() noexcept { return parser_.head(); }
    /// True if that is the final one; response_body() is its content then.
    bool has_final_head() const noexcept { return has_final_head_; }
    /// The content of the response, and its trailers; ended at once where there is none.
    body_reader& response_body() noexcept { return reader_; }
    /// The next piece of that content, as body_reader::read() yields it, as far as it has been
    /// received; none where more must come.
    std::optional<result<std::string_view>> try_read() { return reader_.take_received(); }

    // --- The connection ---

    /// As they were given.
    const client_limits& limits() const noexcept { return *limits_; }
    /// True if another exchange can begin: the connection is new, or the last exchange was complete
    /// both ways and the server keeps the connection. The rest of a received content is dropped for
    /// it.
    bool is_reusable();
    /// True if the server has sent nothing since the last response: neither bytes that answer no
    /// request nor its end. Asked of a reusable connection before the next exchange; one that is
    /// not quiet must be closed.
    task<bool> is_quiet();
    /// True if the exchange failed because a connection kept from an earlier exchange was closed or
    /// reset by the server before any byte of a response: a server that closes idle connections may
    /// have done so while the request was on its way. An idempotent request may be sent again on
    /// another connection.
    bool was_closed_unanswered() const noexcept {
        return exchanges_ > 1 && !has_received_ && was_closed_;
    }
    /// True once a byte of this exchange's responses has come.
    bool has_received() const noexcept { return has_received_; }
    /// True if received bytes wait to be read.
    bool has_waiting() const noexcept { return reader_.waiting() > 0; }
    /// True if the server may have sent something since the last response, as far as the loop has
    /// noticed; is_quiet() says for certain.
    bool may_have_input() const noexcept { return peer_.may_have_input(); }
    /// Exchanges that have begun.
    std::uint64_t exchanges() const noexcept { return exchanges_; }
    /// When the last final head came. Between exchanges.
    time_point last_response() const noexcept { return response_time_; }
    /// Bytes that went each way.
    const traffic& counted() const noexcept { return counted_; }
    /// The stream, for its peer's address and certificate.
    const stream& peer() const noexcept { return peer_; }

    /// A connection that another protocol has from now on.
    struct taken {
        stream peer;           ///< for the other protocol
        byte_buffer received;  ///< what the server has sent behind its response
    };
    /// Takes the connection over after a response 101, or a success of CONNECT.
    taken take_over();
    /// Closes the connection; reads of a content end with errc::closed. One that the request could
    /// not be written to is reset, since the server would still be sent what the kernel has taken.
    void close() noexcept;

private:
    enum class progress : std::uint8_t { none, begun, given_up, complete };
    struct early_wait;

    void note_begun(std::string_view method, http1::body_framing framing, bool is_written) noexcept;
    task<result<>> send_end(result<> ended);
    void end_sending(progress as) noexcept;
    result<> end_head(std::error_code error) noexcept;
    std::optional<result<>> take_head();
    task<result<>> receive_while_sending();

    stream peer_;
    std::shared_ptr<const client_limits> limits_;
    http1::response_parser parser_;
    traffic counted_;
    message_reader reader_{peer_, parser_, counted_};
    byte_buffer out_;
    std::optional<message_writer> writer_;  // of this exchange
    std::uint64_t exchanges_ = 0;
    time_point response_time_{};     // when the final head has come, or has to: once that is known
    early_wait* waiting_ = nullptr;  // for a head while the request is being sent
    std::uint32_t interim_ = 0;      // responses of this exchange
    progress sending_ = progress::none;
    bool keeps_ = false;         // the server, after this exchange
    bool has_received_ = false;  // any byte of this exchange's response
    bool has_final_head_ = false;
    bool was_closed_ = false;  // by the server, before the final head
};

}  // namespace eddy::http
