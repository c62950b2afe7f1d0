// Check of an answer that is an event stream.
#include "cli/bench/handoff/event_stream_check.hpp"

#include "base/text/text.hpp"

#include <algorithm>
#include <cstring>

namespace eddy::cli::bench {

bool event_stream_check::feed(std::string_view bytes) {
    if (error_) return false;
    while (!bytes.empty()) {
        const void* const found = std::memchr(bytes.data(), '\n', bytes.size());
        const std::size_t size =
            found ? static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data())
                  : bytes.size();
        if (!found || line_size_ > 0) {
            const std::size_t room = std::min(kept - begin_size_, size);
            std::memcpy(begin_ + begin_size_, bytes.data(), room);
            begin_size_ = static_cast<std::uint8_t>(begin_size_ + room);
            // Saturated: only whether it is longer than what is kept matters.
            line_size_ += static_cast<std::uint32_t>(std::min<std::size_t>(size, head_limit));
            line_size_ = std::min(line_size_, head_limit);
        }
        if (phase_ < phase::events) {
            head_size_ += static_cast<std::uint32_t>(std::min<std::size_t>(size, head_limit));
            if (head_size_ > head_limit) return refuse("the answer's head has no end");
        }
        if (!found) return true;
        const bool is_whole = line_size_ == 0;
        const std::string_view line =
            is_whole ? bytes.substr(0, size) : std::string_view(begin_, begin_size_);
        if (!read_line(line)) return false;
        begin_size_ = 0;
        line_size_ = 0;
        bytes.remove_prefix(size + 1);
    }
    return true;
}

/// A line without its end, or as much of its beginning as is kept.
bool event_stream_check::read_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    switch (phase_) {
        case phase::status_line: {
            constexpr std::string_view version = "HTTP/1.";
            const bool is_status = line.size() >= 12 && line.starts_with(version) &&
                                   is_digit(line[7]) && line[8] == ' ' && is_digit(line[9]) &&
                                   is_digit(line[10]) && is_digit(line[11]) &&
                                   (line.size() == 12 || line[12] == ' ');
            if (!is_status) return refuse("the answer does not begin with an HTTP/1 status line");
            status_ = static_cast<std::uint16_t>((line[9] - '0') * 100 + (line[10] - '0') * 10 +
                                                 (line[11] - '0'));
            if (status_ != 200) return refuse("the status is not 200");
            phase_ = phase::fields;
            return true;
        }
        case phase::fields:
            if (!line.empty()) return read_field(line);
            if (!has_type_) return refuse("the answer is no text/event-stream");
            phase_ = phase::events;
            return true;
        case phase::events: return read_event_line(line);
        case phase::done:
            // Further empty lines change nothing.
            return line.empty() || refuse("there are bytes behind data: [DONE]");
    }
    return false;
}

/// A field of the head, as much as is kept of it.
bool event_stream_check::read_field(std::string_view line) {
    constexpr std::string_view name = "Content-Type:";
    line = line.substr(0, kept);
    if (!equal_in_any_case(line.substr(0, name.size()), name)) return true;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    constexpr std::string_view type = "text/event-stream";
    const bool is_stream = equal_in_any_case(line.substr(0, type.size()), type);
    line.remove_prefix(std::min(type.size(), line.size()));
    has_type_ = is_stream && (line.empty() || line[0] == ';' || line[0] == ' ' || line[0] == '\t');
    return has_type_ || refuse("the answer is no text/event-stream");
}

bool event_stream_check::read_event_line(std::string_view line) {
    constexpr std::string_view mark = "[DONE]";
    if (line.empty()) {
        if (has_mark_)
            phase_ = phase::done;
        else if (has_data_)
            ++events_;
        has_data_ = false;
        return true;
    }
    if (line == "data" || line.starts_with("data:")) {
        line.remove_prefix(std::min<std::size_t>(line.size(), 5));
        if (line.starts_with(' ')) line.remove_prefix(1);
        if (line == mark && !has_data_) has_mark_ = true;
        has_data_ = true;
        return true;
    }
    for (const std::string_view field : {":", "id:", "event:", "retry:"})
        if (line.starts_with(field)) return true;
    for (const std::string_view field : {"id", "event", "retry"})
        if (line == field) return true;
    return refuse("a line of the event stream is none of its fields");
}

}  // namespace eddy::cli::bench
