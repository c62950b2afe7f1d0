// Server-sent events without I/O (WHATWG HTML, 9.2): writer and parser of the event stream, the
// content of type text/event-stream.
//
// A client reads like this; `input` holds the received bytes of the content:
//
//     sse::step step = parser.parse(input.text());
//     switch (step.what) {
//         case sse::step_kind::event: ...      // use parser.event()
//         case sse::step_kind::error: ...      // beyond a limit: close the connection
//         case sse::step_kind::need_more: ...  // receive more; the rest of an event is no event
//     }
//     input.consume(step.consumed);
//
// The events do not depend on how the bytes were cut.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Server-sent events without I/O. A parser belongs to one thread; functions are for any thread.
namespace eddy::sse {

/// Content-Type of an event stream.
inline constexpr std::string_view content_type = "text/event-stream";

/// An event. Texts should be UTF-8: a browser replaces what is not.
struct event {
    /// The content. Line ends within it are CR, LF or CRLF, and arrive as LF.
    std::string data = {};
    /// Name of the event; empty stands for "message". Without CR and LF.
    std::string type = {};
    /// Last-Event-ID for the client's next connection; none keeps the one of the event before, an
    /// empty one removes it. Without CR, LF and NUL.
    std::optional<std::string> id = {};
    /// Time before the client connects again; none keeps its own time.
    std::optional<std::chrono::milliseconds> retry = {};
};

/// Appends an event. Fails with errc::malformed, and appends nothing, where `type` has CR or LF,
/// `id` has CR, LF or NUL, or `retry` is negative.
[[nodiscard]] result<> write_event(byte_buffer& out, const event& of);

/// Appends an event of that data alone.
void write_data(byte_buffer& out, std::string_view data);

/// Appends a comment, which receivers ignore: a heartbeat for intermediaries. Each of its lines is
/// a comment line.
void write_comment(byte_buffer& out, std::string_view text = {});

/// Limits of a parser; beyond one it ends in an error.
struct limits {
    /// Bytes of a line, comments included. By default an event's data may be one line, behind its
    /// field's name.
    std::size_t line = 1024 * 1024 + 64;
    std::size_t data = 1024 * 1024;  ///< bytes of an event's data
};

/// Kind of result of parse().
enum class step_kind : unsigned char { need_more, event, error };

/// Result of one call of parser::parse().
struct step {
    /// The kind.
    step_kind what = step_kind::need_more;
    /// Bytes of the input that were consumed: all of them at need_more.
    std::size_t consumed = 0;
};

/// Parser of one event stream. It keeps an incomplete line and an incomplete event. One thread.
class parser {
public:
    /// Begins with the first byte of the content.
    explicit parser(const limits& bounds = {}) noexcept : limits_(bounds) {}

    /// Parses what has arrived behind the bytes that were consumed before. An error is final.
    step parse(std::string_view input);

    /// The event, valid until the next parse(). Its id is the last one that was sent, its retry the
    /// one among its own lines.
    const sse::event& event() const noexcept { return event_; }

    /// The last id of all events: Last-Event-ID for the next connection.
    std::string_view last_event_id() const noexcept { return last_id_; }
    /// The last reconnection time that was sent; none so far.
    std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }
    /// Comment lines so far, such as those of heartbeats.
    std::uint64_t comments() const noexcept { return comments_; }
    /// Description of an error; a static text.
    std::string_view error() const noexcept { return error_; }

private:
    bool take_line(std::string_view line);
    bool append_data(std::string_view value);
    bool complete_event();
    void skip_mark(std::string_view& input) noexcept;

    limits limits_;
    std::string line_;  // the beginning of a line whose end has not arrived
    sse::event event_;  // its data ends with LF until it is complete
    std::string last_id_;
    std::string id_;  // of the lines so far; last_id_ once the event ends
    std::optional<std::chrono::milliseconds> retry_;
    std::uint64_t comments_ = 0;
    std::string_view error_;
    unsigned char mark_ = 0;    // bytes of the byte order mark that came; 3: behind it
    bool skips_lf_ = false;     // the last byte was CR
    bool is_complete_ = false;  // event() has been yielded
};

}  // namespace eddy::sse
