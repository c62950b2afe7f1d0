// HTTP/1.1 without I/O (RFC 9112): parsers for requests and responses, and the writer of heads and
// chunks. Bytes in, events out.
//
// A connection reads like this; `input` holds the received bytes:
//
//     http1::step step = parser.parse(input.text());
//     switch (step.what) {
//         case http1::event::head: ...      // parser.head(); answer "Expect: 100-continue" here
//         case http1::event::body: ...      // use step.body
//         case http1::event::end: ...       // answer; the next call begins the next request
//         case http1::event::error: ...     // answer parser.error().status and close
//         case http1::event::need_more: ... // receive, or parser.finish() when the peer has ended
//     }
//     input.consume(step.consumed);
//
// The events do not depend on how the bytes were cut, except that a body comes in other pieces.
// The parser is strict where leniency lets a proxy and a server disagree about where a message
// ends: CRLF only, no folded lines, never both framings.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/wire/http1/headers.hpp>
#include <eddy/wire/http1/target.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// HTTP messages without I/O.
namespace eddy::http1 {

struct head_scan;
enum class field_kind : unsigned char;

/// Limits on a peer's message. Beyond one, a parser ends in event::error with the status named here
/// (a response parser always with 502).
struct limits {
    std::size_t start_line = 8 * 1024;     ///< bytes of the first line without its CRLF; 414
    std::size_t header_bytes = 16 * 1024;  ///< field lines and the blank one with their CRLFs; 431
    std::size_t header_count = 100;        ///< field lines; 431. Trailers are counted anew
    std::size_t chunk_line = 256;          ///< a chunk's size and extensions without CRLF; 400
    std::uint64_t body = 1024 * 1024;      ///< bytes of content, decoded; 413
};

/// Most blank lines before a request; old clients send one after a body.
inline constexpr unsigned blank_line_limit = 1;

/// Events of a parser; see step.
enum class event : unsigned char { need_more, head, body, end, error };

/// Result of one call of parse().
struct step {
    /// The event.
    event what = event::need_more;
    /// Bytes of the input that were consumed. All of them at need_more; at end exactly up to the
    /// first byte behind the message.
    std::size_t consumed = 0;
    /// At event::body: content, a view into the input.
    std::string_view body;
};

/// Reason of a parsing error: the status to answer, and text for the log.
struct parse_error {
    /// The status to answer with.
    int status = 0;
    /// End of a sentence about the fault; a static text.
    std::string_view what;
};

/// Common part of the heads of requests and responses.
struct message_head {
    unsigned minor_version = 1;  ///< 0 or 1; higher ones are read as 1
    bool keep_alive = false;     ///< the connection may carry another message after this one
    bool chunked = false;        ///< the content comes in chunks
    bool upgrade = false;        ///< "Connection: upgrade" together with an Upgrade field

    /// Value of the field; none with chunks and without the field.
    std::optional<std::uint64_t> content_length;
    /// The fields, all of them.
    header_list headers;
};

/// A request's first line and fields.
struct request_head : message_head {
    /// "GET", "POST" and so on; a token.
    std::string method;
    std::string target;  ///< of one of the four forms; split_target() takes it apart

    /// The client waits for "100 Continue" before it sends the body.
    bool expect_continue = false;

    /// True if content follows.
    bool has_body() const noexcept { return chunked || content_length.value_or(0) > 0; }
};

/// A response's first line and fields.
struct response_head : message_head {
    /// 100 to 999.
    int status = 0;
    /// As it was sent; may be empty.
    std::string reason;
};

/// Common base of both parsers. Memory stays below the limits on start line and headers (a few
/// times their sum); bodies are passed through. One thread.
class message_parser {
public:
    virtual ~message_parser() = default;

    /// Parses further. Call it until it yields need_more, also with an empty input: it stops at
    /// every event. After end it begins the next message; after error it only repeats the error.
    step parse(std::string_view input) {
        // The end of a message without content, inline: it is as frequent as heads are.
        if (state_ == state::body_begin && framing_ == framing::none) {
            state_ = state::between;
            return {event::end, 0, {}};
        }
        if (state_ == state::between && input.empty()) return {};
        return begin_or_continue(input);
    }

    /// As parse(), except that content goes to the end of `body`: a message comes as head and
    /// end alone. The limit on the body bounds what is added.
    step collect(std::string_view input, byte_buffer& body);

    /// The peer has finished sending. end: a body that runs until the close is complete; need_more:
    /// no message was open; error: one was cut off. Call it after need_more.
    event finish();

    /// Sets the limit on the body for the current message, best at event::head, and for later ones.
    /// A declared length beyond it is refused by the next parse(), so a call with an empty input
    /// checks it before "100 Continue" is sent.
    void set_body_limit(std::uint64_t bytes) noexcept { limits_.body = bytes; }

    /// Fields behind a chunked body; complete at end, valid until the next parse().
    const header_list& trailers() const noexcept { return trailers_; }

    /// Meaningful after event::error.
    const parse_error& error() const noexcept { return error_; }

    /// True if no byte has come since the end of the last message.
    bool idle() const noexcept {
        return (state_ == state::start_line && line_.empty()) || state_ == state::between;
    }

    /// Frees what the last message took, so that an idle connection costs little. Only when
    /// idle(); head() is empty afterwards.
    void release_memory() noexcept;

    /// \cond
protected:
    enum class role : unsigned char { request, response };
    message_parser(role reads, const limits& l) noexcept : limits_(l), reads_(reads) {}
    message_parser(message_parser&&) = default;
    message_parser& operator=(message_parser&&) = default;

    enum class framing : unsigned char { none, sized, chunked, until_close, tunnel };

    // Findings about the fields that decide about framing, the connection and validity.
    struct field_facts {
        bool close = false;
        bool keep_alive = false;
        bool upgrade_token = false;
        bool upgrade_field = false;
        bool transfer_encoding = false;
        bool chunked_coding = false;
        bool unknown_coding = false;
        bool continue_expected = false;
        bool host_malformed = false;
        std::size_t hosts = 0;

        void add_host(bool well_formed) noexcept {
            host_malformed |= !well_formed;
            ++hosts;
        }
    };

    virtual message_head& base_head() noexcept = 0;
    virtual void clear_head() noexcept = 0;
    virtual void release_head() noexcept = 0;
    // These two return false after fail().
    virtual bool read_start_line(std::string_view line) = 0;
    virtual bool read_head(const field_facts& facts, framing& body) noexcept = 0;
    // Reads the head that is the input's beginning and sets every member of it. Returns its size,
    // or 0 when it is not whole, or not well-formed: then its lines must be read one by one.
    virtual std::size_t take_head(std::string_view input) = 0;

    // Ends parsing; returns false. `what` must live as long as the program.
    bool fail(int status, std::string_view what) noexcept;
    bool read_version(std::string_view text) noexcept;
    bool is_within_limits(const head_scan& scan) const noexcept;
    // Sets the members that follow from the fields, except for read_head().
    bool take_fields(std::string_view input, const head_scan& scan, message_head& head,
                     field_facts& facts);
    framing framing_ = framing::none;
    /// \endcond

private:
    enum class state : unsigned char {
        between,  // the last message's head is still to be seen by the caller
        start_line,
        header_line,
        body_begin,
        body_sized,
        body_until_close,
        chunk_line,
        chunk_data,
        chunk_end,
        trailer_line,
        message_end,
        tunnel,
        failed,
    };
    enum class line_result : unsigned char { complete, partial, failed };

    void begin_message() noexcept;
    step begin_or_continue(std::string_view input);
    step continue_message(std::string_view input);
    bool take_whole_head(std::string_view input, std::size_t& used);
    line_result take_line(std::string_view input, std::size_t& used, std::string_view& line);
    std::size_t line_budget() const noexcept;
    bool fail_line_too_long() noexcept;
    bool read_line(std::string_view line);
    bool read_field(std::string_view line, header_list& into);
    bool read_fields() noexcept;
    bool read_deciding_field(field_kind kind, std::string_view value, message_head& head,
                             field_facts& facts) noexcept;
    bool decide_framing(const field_facts& facts, message_head& head) noexcept;
    bool read_content_length(std::string_view value, message_head& head) noexcept;
    bool read_transfer_encoding(std::string_view value, message_head& head,
                                field_facts& facts) noexcept;
    bool read_chunk_line(std::string_view line) noexcept;
    bool begin_body() noexcept;
    step take_body(std::string_view input, std::size_t used) noexcept;

    limits limits_;
    role reads_;
    state state_ = state::start_line;
    unsigned blank_lines_ = 0;
    bool head_ready_ = false;
    bool line_taken_ = false;      // line_ holds a line that has been read
    std::size_t field_bytes_ = 0;  // of this head's or trailer's lines so far
    std::uint64_t remaining_ = 0;  // of the sized body or the chunk
    std::uint64_t body_size_ = 0;  // of the content so far, with the chunk at hand
    std::string line_;             // the beginning of a line whose end has not come
    header_list trailers_;
    parse_error error_;
};

/// Server side. Statuses of errors: 400, 413, 414, 431, 501 (an unknown transfer coding before
/// chunked), 505. One thread.
class request_parser final : public message_parser {
public:
    /// Begins with the first byte of a connection.
    explicit request_parser(const limits& l = {}) noexcept : message_parser(role::request, l) {}

    /// The request at hand, from event::head until the parse() after event::end. It may be moved
    /// from at event::end.
    const request_head& head() const noexcept { return head_; }
    /// The same, for moving from.
    request_head& head() noexcept { return head_; }

private:
    message_head& base_head() noexcept override { return head_; }
    void clear_head() noexcept override;
    void release_head() noexcept override;
    bool read_start_line(std::string_view line) override;
    bool read_head(const field_facts& facts, framing& body) noexcept override;
    std::size_t take_head(std::string_view input) override;

    request_head head_;
};

/// Client side. The status of every error is 502, what a proxy answers. One thread.
class response_parser final : public message_parser {
public:
    /// Begins with the first byte of a connection.
    explicit response_parser(const limits& l = {}) noexcept : message_parser(role::response, l) {}

    /// Sets the method that the next final response answers: responses to HEAD and CONNECT have no
    /// body. Call it before the response's first byte is parsed; without it, GET is presumed.
    void expect_response_to(std::string_view method) noexcept;

    /// The response at hand, from event::head until the parse() after event::end. Interim ones
    /// (1xx) come as messages of their own, before the final one.
    const response_head& head() const noexcept { return head_; }
    /// The same, for moving from.
    response_head& head() noexcept { return head_; }

    /// True if the connection left HTTP with this response (101, or 2xx to CONNECT). The bytes
    /// after event::end are not HTTP: parse() then takes nothing and repeats the end.
    bool tunnel() const noexcept { return tunnel_; }

private:
    message_head& base_head() noexcept override { return head_; }
    void clear_head() noexcept override;
    void release_head() noexcept override;
    bool read_start_line(std::string_view line) override;
    bool read_head(const field_facts& facts, framing& body) noexcept override;
    std::size_t take_head(std::string_view input) override;

    response_head head_;
    bool to_head_ = false;
    bool to_connect_ = false;
    bool tunnel_ = false;
};

/// Framing of a message's content.
struct body_framing {
    /// The ways to say where content ends (RFC 9112, 6).
    enum class kind : unsigned char { none, sized, chunked, until_close };
    /// The kind in use.
    kind how = kind::none;
    /// Bytes, for kind::sized.
    std::uint64_t size = 0;

    /// No content and no field about it: requests without a body, 1xx, 204, 304, and what answers
    /// HEAD or CONNECT. Other responses with it would leave the client waiting for the close.
    static constexpr body_framing none() noexcept { return {}; }
    /// Exactly `size` bytes follow, or would in answer to another method than HEAD.
    static constexpr body_framing sized(std::uint64_t size) noexcept { return {kind::sized, size}; }
    /// The content comes by write_chunk() and ends with write_last_chunk().
    static constexpr body_framing chunked() noexcept { return {kind::chunked, 0}; }
    /// Responses only: the close of the connection ends the content. Adds "Connection: close".
    static constexpr body_framing until_close() noexcept { return {kind::until_close, 0}; }
};

/// Writes the head of one message to the end of a buffer:
///
///     http1::head_writer writer(out);
///     writer.response(200).field("Content-Type", "application/json");
///     result<> written = writer.end(http1::body_framing::sized(text.size()));
///     out.append(text);
///
/// What cannot be written safely (CR, LF or NUL in a value, a name that is no token, a target with
/// a space) makes end() fail with errc::malformed and leaves the buffer as it was. Content-Length
/// and Transfer-Encoding come from end() alone; giving them to field() is such an error too. The
/// buffer must outlive the writer and not be touched before end(). One thread.
class head_writer {
public:
    /// Appends to `out`.
    explicit head_writer(byte_buffer& out) noexcept : out_(out), start_(out.size()) {}
    head_writer(const head_writer&) = delete;
    head_writer& operator=(const head_writer&) = delete;

    /// The first line of a response; `status` is 100..999. An empty reason means the usual one.
    head_writer& response(int status, std::string_view reason = {});
    /// The first line of a request.
    head_writer& request(std::string_view method, std::string_view target);
    /// Adds a field; the text is copied.
    head_writer& field(std::string_view name, std::string_view value);
    /// The same with a number.
    head_writer& field(std::string_view name, std::uint64_t value);
    /// Adds a field of a parsed message, which is not checked again; Content-Length and
    /// Transfer-Encoding are left out.
    head_writer& parsed_field(header parsed);
    /// All of them but Content-Length and Transfer-Encoding, which are left out: for passing on
    /// what was parsed.
    head_writer& fields(const header_list& headers);

    /// Writes the framing field and the blank line. errc::malformed when something was given that
    /// cannot be written (see above), when there is no first line, for a body of a 1xx or 204
    /// response, and for a request whose body runs until the close; the buffer is then as it was.
    [[nodiscard]] result<> end(body_framing body) { return framing(body).end(); }

    /// Writes the framing field in this place, where the order of the fields is given: then end().
    head_writer& framing(body_framing body);
    /// Writes the blank line of a head whose framing has been written; errors as above.
    [[nodiscard]] result<> end();

private:
    enum class first_line : unsigned char { missing, response, request };
    void write_field(std::string_view name, std::string_view value);

    byte_buffer& out_;
    std::size_t start_;
    int status_ = 0;
    first_line first_line_ = first_line::missing;
    bool refused_ = false;
};

/// Appends one chunk. An empty one is left out, since it would end the body.
void write_chunk(byte_buffer& out, std::string_view content);

/// Ends a chunked body, with fields behind it if there are any; Content-Length and
/// Transfer-Encoding, which would be wrong there, are left out.
void write_last_chunk(byte_buffer& out, const header_list& trailers = {});

}  // namespace eddy::http1
