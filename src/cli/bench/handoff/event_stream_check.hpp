// Check of an answer that is an event stream: status line, lines of events, the mark of the end.
// Made for a load generator: bytes are looked at once, where they lie, and a check has no memory
// but itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cli::bench {

/// Reads one answer: `HTTP/1.x STATUS`, fields with `Content-Type: text/event-stream`, and a body
/// that the connection's end ends, of event-stream lines (`data:`, `id:`, `event:`, `retry:`,
/// comments) in which `data: [DONE]` comes last. A chunked body is no such stream. One thread.
class event_stream_check {
public:
    /// Bytes of a field of the head at most, so that a broken server is noticed.
    static constexpr std::uint32_t head_limit = 64 * 1024;

    /// Reads on. False once the answer is wrong, or its status is known and not 200: what follows
    /// does not matter then.
    bool feed(std::string_view bytes);

    /// The status; 0 until it is known.
    unsigned status() const noexcept { return status_; }
    /// Events with data that have ended, without the mark of the end.
    std::uint64_t events() const noexcept { return events_; }
    /// The mark of the end has come, and is the last event.
    bool is_done() const noexcept { return phase_ == phase::done; }
    /// Why the answer is wrong; null while it is right.
    const char* error() const noexcept { return error_; }

private:
    enum class phase : unsigned char { status_line, fields, events, done };

    bool read_line(std::string_view line);
    bool read_field(std::string_view line);
    bool read_event_line(std::string_view line);
    bool refuse(const char* why) noexcept {
        error_ = why;
        return false;
    }

    // Beginning of a line that a piece of input ended within: enough to know which line it is.
    static constexpr std::size_t kept = 40;
    char begin_[kept];
    std::uint8_t begin_size_ = 0;
    phase phase_ = phase::status_line;
    bool has_data_ = false;  // in the event that has not ended
    bool has_mark_ = false;
    bool has_type_ = false;  // text/event-stream
    std::uint16_t status_ = 0;
    std::uint32_t line_size_ = 0;  // of that line, as far as it has come
    std::uint32_t head_size_ = 0;
    std::uint64_t events_ = 0;
    const char* error_ = nullptr;
};

}  // namespace eddy::cli::bench
