// Parser of event streams: lines of any of the three ends, fields, and events at blank lines.
#include <eddy/wire/sse.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace eddy::sse {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Reconnection time in milliseconds: digits alone. None for other texts and for numbers too large.
std::optional<std::chrono::milliseconds> read_retry(std::string_view text) noexcept {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    return std::chrono::milliseconds(value);
}

/// Position of the first CR or LF; npos for none.
std::size_t find_line_end(std::string_view text) noexcept {
    const auto at = std::ranges::find_if(text, [](char c) { return c == '\n' || c == '\r'; });
    return at == text.end() ? std::string_view::npos : static_cast<std::size_t>(at - text.begin());
}

}  // namespace

step parser::parse(std::string_view input) {
    if (!error_.empty()) return {step_kind::error, 0};
    if (is_complete_) {
        event_.data.clear();
        event_.type.clear();
        event_.retry.reset();
        is_complete_ = false;
    }
    const std::string_view all = input;
    const auto consumed = [&] { return all.size() - input.size(); };
    skip_mark(input);
    for (;;) {
        if (skips_lf_ && !input.empty()) {
            skips_lf_ = false;
            if (input.front() == '\n') input.remove_prefix(1);
        }
        const std::size_t end = find_line_end(input);
        const std::string_view piece = input.substr(0, end);
        if (piece.size() > limits_.line - std::min(limits_.line, line_.size())) {
            error_ = "a line of the event stream is above the limit";
            return {step_kind::error, consumed()};
        }
        if (end == std::string_view::npos) {
            line_ += piece;
            return {step_kind::need_more, all.size()};
        }
        skips_lf_ = input[end] == '\r';
        input.remove_prefix(end + 1);
        bool completes = false;
        if (line_.empty()) {
            completes = take_line(piece);
        } else {
            line_ += piece;
            completes = take_line(line_);
            line_.clear();
        }
        if (!error_.empty()) return {step_kind::error, consumed()};
        if (completes) return {step_kind::event, consumed()};
    }
}

/// Drops the byte order mark that may stand before the first line; a part of one is the line's.
void parser::skip_mark(std::string_view& input) noexcept {
    while (mark_ < byte_order_mark.size() && !input.empty()) {
        if (input.front() != byte_order_mark[mark_]) {
            line_.assign(byte_order_mark.substr(0, mark_));
            mark_ = static_cast<unsigned char>(byte_order_mark.size());
            return;
        }
        ++mark_;
        input.remove_prefix(1);
    }
}

/// True when the line completes an event.
bool parser::take_line(std::string_view line) {
    if (line.empty()) return complete_event();
    const std::size_t colon = line.find(':');
    if (colon == 0) {
        ++comments_;
        return false;
    }
    const std::string_view name = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) {
        value = line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
    }
    if (name == "data") return append_data(value);
    if (name == "event") {
        event_.type = value;
    } else if (name == "id") {
        if (value.find('\0') == std::string_view::npos) id_ = value;
    } else if (name == "retry") {
        if (const auto time = read_retry(value)) event_.retry = retry_ = time;
    }
    return false;
}

bool parser::append_data(std::string_view value) {
    // The LF behind the last line goes with the end of the event.
    if (value.size() + event_.data.size() > limits_.data) {
        error_ = "an event's data is above the limit";
        return false;
    }
    event_.data += value;
    event_.data += '\n';
    return false;
}

bool parser::complete_event() {
    last_id_ = id_;
    if (event_.data.empty()) {
        event_.type.clear();
        event_.retry.reset();
        return false;
    }
    event_.data.pop_back();
    event_.id.reset();
    if (!last_id_.empty()) event_.id = last_id_;
    is_complete_ = true;
    return true;
}

}  // namespace eddy::sse
