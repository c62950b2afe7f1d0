// Reply parser: one call reads one line, and the string behind it if its type has one.
#include <eddy/wire/resp/reply_parser.hpp>

#include <algorithm>
#include <charconv>

namespace eddy::resp {
namespace {

// A line's type, CR and LF.
constexpr std::size_t line_framing = 3;

// All of `text` is the number.
template <class Number>
bool read_plain(std::string_view text, Number& value) noexcept {
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, value);
    return fault == std::errc() && at == end;
}

// One '+' may stand before a value, not before a length.
template <class Number>
bool read_signed(std::string_view text, Number& value) noexcept {
    if (!text.starts_with('+')) return read_plain(text, value);
    text.remove_prefix(1);
    return !text.starts_with('-') && read_plain(text, value);
}

// A map is counted in pairs, and so is an attribute.
std::uint64_t elements_each(char type) noexcept { return type == '%' || type == '|' ? 2 : 1; }

bool is_big_number(std::string_view text) noexcept {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

reply_outcome reply_parser::next(std::string_view input) noexcept {
    if (!error_.empty()) return fail(error_);
    reply_outcome outcome;
    const std::size_t longest = limits_.max_line + line_framing;
    const std::size_t readable = std::min(input.size(), longest);
    const std::size_t newline = input.substr(0, readable).find('\n', scanned_);
    if (newline == std::string_view::npos) {
        if (readable == longest) return fail("a line is too long");
        scanned_ = readable;
        outcome.wanted = 1;
        return outcome;
    }
    scanned_ = newline;
    if (newline < 2 || input[newline - 1] != '\r') return fail("a line does not end with CR LF");

    const char type = input[0];
    const std::string_view text = input.substr(1, newline - 2);
    reply_event& event = outcome.event;
    event.depth = static_cast<std::uint32_t>(depth_);
    std::size_t consumed = newline + 1;
    const bool null = text == "-1" && (type == '$' || type == '*');
    switch (type) {
        case '+':
        case '-':
        case ':':
        case '_':
        case '#':
        case ',':
        case '(':
            if (!parse_scalar(type, text, event)) return fail("a value does not fit its type");
            close_value(event);
            break;
        case '$':
        case '!':
        case '=': {
            if (null) {
                event.type = reply_type::null;
                close_value(event);
                break;
            }
            std::uint64_t size = 0;
            if (!read_plain(text, size)) return fail("a string's length is no number");
            if (size > limits_.max_bulk) return fail("a string is too long");
            const std::size_t end = consumed + static_cast<std::size_t>(size) + 2;
            if (input.size() < end) {
                outcome.wanted = end - input.size();
                return outcome;
            }
            if (input.substr(end - 2, 2) != "\r\n") return fail("a string does not end with CR LF");
            if (!parse_string(type, input.substr(consumed, size), event)) {
                return fail("a verbatim string has no format");
            }
            consumed = end;
            close_value(event);
            break;
        }
        case '*':
        case '%':
        case '~':
        case '>':
        case '|': {
            if (null) {
                event.type = reply_type::null;
                close_value(event);
                break;
            }
            std::uint64_t count = 0;
            if (!read_plain(text, count)) return fail("an aggregate's length is no number");
            if (count > limits_.max_elements / elements_each(type))
                return fail("an aggregate has too many elements");
            if (depth_ == max_depth) return fail("aggregates are nested too deeply");
            open(type, count, event);
            break;
        }
        default: return fail("a value has an unknown type");
    }
    scanned_ = 0;
    within_reply_ = !event.ends_reply;
    outcome.status = parse_status::complete;
    outcome.consumed = consumed;
    return outcome;
}

bool reply_parser::parse_scalar(char type, std::string_view text, reply_event& event) noexcept {
    switch (type) {
        case '+':
            event.type = reply_type::simple;
            event.text = text;
            return true;
        case '-':
            event.type = reply_type::error;
            event.text = text;
            return true;
        case ':': event.type = reply_type::integer; return read_signed(text, event.integer);
        case '_': event.type = reply_type::null; return text.empty();
        case '#':
            event.type = reply_type::boolean;
            event.integer = text == "t" ? 1 : 0;
            return text == "t" || text == "f";
        case ',': event.type = reply_type::number; return read_signed(text, event.number);
        default:
            event.type = reply_type::big_number;
            event.text = text;
            return is_big_number(text);
    }
}

bool reply_parser::parse_string(char type, std::string_view text, reply_event& event) noexcept {
    event.text = text;
    if (type == '$') {
        event.type = reply_type::bulk;
    } else if (type == '!') {
        event.type = reply_type::error;
    } else {
        if (text.size() < 4 || text[3] != ':') return false;
        event.type = reply_type::verbatim;
        event.format = text.substr(0, 3);
        event.text = text.substr(4);
    }
    return true;
}

// The head of an aggregate. An empty one is complete at once.
void reply_parser::open(char type, std::uint64_t count, reply_event& event) noexcept {
    switch (type) {
        case '*': event.type = reply_type::array; break;
        case '%': event.type = reply_type::map; break;
        case '~': event.type = reply_type::set; break;
        case '>': event.type = reply_type::push; break;
        default: event.type = reply_type::attribute; break;
    }
    event.count = count * elements_each(type);
    if (event.count > 0) {
        levels_[depth_++] = {event.count, type == '|'};
    } else if (type != '|') {
        close_value(event);
    }
}

// A value is complete, and with it perhaps the aggregates that it is the last of.
void reply_parser::close_value(reply_event& event) noexcept {
    while (depth_ > 0) {
        level& innermost = levels_[depth_ - 1];
        if (--innermost.left > 0) return;
        --depth_;
        if (innermost.attribute) return;  // the value that it describes is still to come
    }
    event.ends_reply = true;
}

reply_outcome reply_parser::fail(std::string_view text) noexcept {
    error_ = text;
    reply_outcome outcome;
    outcome.status = parse_status::error;
    outcome.error = text;
    return outcome;
}

}  // namespace eddy::resp
