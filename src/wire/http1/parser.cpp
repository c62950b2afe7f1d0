// The incremental parsers. A head that has arrived whole is scanned in one pass; otherwise, and
// when something is wrong with it, its lines are gathered and read one by one. Content is passed
// through.
#include <eddy/base/assert.hpp>
#include <eddy/wire/http1.hpp>

#include "wire/http1/authority.hpp"
#include "wire/http1/head_scan.hpp"
#include "wire/http1/text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

namespace eddy::http1 {
namespace {

// Sizes in hexadecimal; more digits than these could not be a size in bytes.
constexpr std::size_t chunk_digits_limit = 16;
/// Largest body: other recipients count in signed numbers of 64 bits.
constexpr std::uint64_t largest_body = INT64_MAX;

}  // namespace

bool message_parser::fail(int status, std::string_view what) noexcept {
    error_ = {reads_ == role::response ? 502 : status, what};
    state_ = state::failed;
    return false;
}

void message_parser::begin_message() noexcept {
    clear_head();
    trailers_.clear();
    line_.clear();
    line_taken_ = false;
    blank_lines_ = 0;
    field_bytes_ = 0;
    body_size_ = 0;
    state_ = state::start_line;
}

void message_parser::release_memory() noexcept {
    EDDY_ASSERT(idle());
    release_head();
    trailers_ = header_list();
    line_ = std::string();
    begin_message();
}

step message_parser::begin_or_continue(std::string_view input) {
    if (state_ == state::between && !input.empty()) {
        std::size_t used = 0;
        if (take_whole_head(input, used))
            return {state_ == state::failed ? event::error : event::head, used, {}};
        begin_message();
    }
    return continue_message(input);
}

step message_parser::continue_message(std::string_view input) {
    for (std::size_t used = 0;;) {
        switch (state_) {
            case state::between: return {event::need_more, used, {}};
            case state::start_line:
                if (std::exchange(line_taken_, false)) line_.clear();
                if (line_.empty() && take_whole_head(input, used)) {
                    if (state_ != state::failed) return {event::head, used, {}};
                    break;
                }
                [[fallthrough]];
            case state::header_line:
            case state::chunk_line:
            case state::chunk_end:
            case state::trailer_line: {
                std::string_view line;
                const line_result got = take_line(input, used, line);
                if (got == line_result::partial) return {event::need_more, used, {}};
                if (got == line_result::failed || !read_line(line)) break;
                if (std::exchange(head_ready_, false)) return {event::head, used, {}};
                break;
            }
            case state::body_begin: begin_body(); break;
            case state::body_sized:
            case state::body_until_close:
            case state::chunk_data: {
                if (used == input.size()) return {event::need_more, used, {}};
                const step taken = take_body(input, used);
                if (state_ != state::failed) return taken;
                break;
            }
            case state::message_end:
                state_ = framing_ == framing::tunnel ? state::tunnel : state::between;
                return {event::end, used, {}};
            case state::tunnel: return {event::end, used, {}};
            case state::failed: return {event::error, used, {}};
        }
    }
}

step message_parser::collect(std::string_view input, byte_buffer& body) {
    for (std::size_t used = 0;;) {
        step one = parse(input.substr(used));
        used += one.consumed;
        if (one.what != event::body) return {one.what, used, {}};
        body.append(one.body);
    }
}

event message_parser::finish() {
    // Events that need no more bytes come first: an end that was not returned yet.
    const step last = parse({});
    if (last.what != event::need_more || idle()) return last.what;
    if (state_ == state::body_until_close) {
        state_ = state::between;
        return event::end;
    }
    fail(400, "the message was cut off");
    return event::error;
}

// True when the head was whole: it has been read, or has failed. Both ways of reading give the same
// events, since the scan leaves whatever it does not accept to the lines.
bool message_parser::take_whole_head(std::string_view input, std::size_t& used) {
    const std::size_t size = take_head(input.substr(used));
    if (size == 0) return false;
    used += size;
    trailers_.clear();
    body_size_ = 0;
    if (state_ != state::failed) state_ = state::body_begin;
    return true;
}

bool message_parser::take_fields(std::string_view input, const head_scan& scan, message_head& head,
                                 field_facts& facts) {
    const std::string_view fields = input.substr(scan.fields_at, scan.fields_size);
    head.headers.assign_valid(fields, scan.fields.data(), scan.field_count);
    head.chunked = false;
    head.content_length.reset();
    for (std::uint64_t rest = scan.candidates; rest != 0;) {
        const auto index = static_cast<unsigned>(std::countl_zero(rest));
        rest &= ~(std::uint64_t{1} << 63 >> index);
        const head_scan::field& field = scan.fields[index];
        const std::string_view name = fields.substr(field.name_at, field.name_size);
        const std::string_view value = fields.substr(field.value_at, field.value_size);
        const field_kind kind = kind_of(name);
        if (kind == field_kind::host)
            facts.add_host(is_host(value));  // the most frequent one, spared a call
        else if (!read_deciding_field(kind, value, head, facts))
            return false;
    }
    return decide_framing(facts, head);
}

bool message_parser::is_within_limits(const head_scan& scan) const noexcept {
    return scan.fields_at - 2 <= limits_.start_line && scan.fields_size <= limits_.header_bytes &&
           scan.field_count <= limits_.header_count;
}

// Most bytes of the current line, its CRLF included.
std::size_t message_parser::line_budget() const noexcept {
    constexpr std::size_t crlf = 2;
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() - crlf;
    switch (state_) {
        case state::start_line: return std::min(limits_.start_line, most) + crlf;
        case state::chunk_line: return std::min(limits_.chunk_line, most) + crlf;
        case state::chunk_end: return crlf;
        default: return limits_.header_bytes - field_bytes_;
    }
}

bool message_parser::fail_line_too_long() noexcept {
    switch (state_) {
        case state::start_line: return fail(414, "the first line is too long");
        case state::chunk_line: return fail(400, "a chunk's size line is too long");
        case state::chunk_end: return fail(400, "a chunk is longer than its size");
        default: return fail(431, "the header fields are too long");
    }
}

// Gathers bytes up to LF. The length is judged before the content, and a beginning only when no
// end could make it short enough: so the verdict does not depend on how the input was cut.
message_parser::line_result message_parser::take_line(std::string_view input, std::size_t& used,
                                                      std::string_view& line) {
    if (std::exchange(line_taken_, false)) line_.clear();
    const std::string_view rest = input.substr(used);
    const std::size_t budget = line_budget();
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
        const std::size_t gathered = line_.size() + rest.size();
        if (gathered > 0 && gathered + 1 > budget) {
            fail_line_too_long();
            return line_result::failed;
        }
        line_.append(rest);
        used = input.size();
        return line_result::partial;
    }
    std::string_view whole = rest.substr(0, end);
    const char last = !whole.empty() ? whole.back() : line_.empty() ? '\0' : line_.back();
    const std::size_t content = line_.size() + whole.size() - (last == '\r' ? 1 : 0);
    if (content + 2 > budget) {
        fail_line_too_long();
        return line_result::failed;
    }
    if (last != '\r') {
        fail(400, "a line does not end in CRLF");
        return line_result::failed;
    }
    used += end + 1;
    if (!line_.empty()) {
        line_.append(whole);
        line_taken_ = true;
        whole = line_;
    }
    line = whole.substr(0, content);
    return line_result::complete;
}

bool message_parser::read_line(std::string_view line) {
    switch (state_) {
        case state::start_line:
            if (line.empty() && reads_ == role::request && blank_lines_ < blank_line_limit) {
                ++blank_lines_;
                return true;
            }
            if (!read_start_line(line)) return false;
            state_ = state::header_line;
            return true;
        case state::header_line:
            if (!line.empty()) return read_field(line, base_head().headers);
            if (!read_fields()) return false;
            state_ = state::body_begin;
            head_ready_ = true;
            return true;
        case state::chunk_line: return read_chunk_line(line);
        case state::chunk_end: state_ = state::chunk_line; return true;
        default:
            if (!line.empty()) return read_field(line, trailers_);
            state_ = state::message_end;
            return true;
    }
}

bool message_parser::read_version(std::string_view text) noexcept {
    const bool formed = text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) &&
                        text[6] == '.' && is_digit(text[7]);
    if (!formed) return fail(400, "the first line has no HTTP version");
    if (text[5] != '1') return fail(505, "the version of HTTP is not 1");
    base_head().minor_version = text[7] == '0' ? 0 : 1;
    return true;
}

bool message_parser::read_field(std::string_view line, header_list& into) {
    if (line[0] == ' ' || line[0] == '\t') return fail(400, "a header field is folded");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return fail(400, "a header field has no colon");
    const std::string_view name = line.substr(0, colon);
    // A space before the colon is no token either.
    if (!is_token(name)) return fail(400, "a header field's name is not a token");
    const std::string_view value = trim(line.substr(colon + 1));
    if (!is_field_value(value)) return fail(400, "a header field holds a control byte");
    if (into.size() >= limits_.header_count) return fail(431, "there are too many header fields");
    if (!into.has_room(name, value)) return fail_line_too_long();
    into.append_valid(name, value);
    field_bytes_ += line.size() + 2;
    return true;
}

bool message_parser::read_content_length(std::string_view value, message_head& head) noexcept {
    if (value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
        return fail(400, "Content-Length is not a number");
    }
    std::uint64_t length = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), length);
    if (parsed.ec != std::errc() || length > largest_body)
        return fail(413, "Content-Length is too large");
    std::optional<std::uint64_t>& known = head.content_length;
    // Refused in a request even if equal: another recipient on its way may take another one. In a
    // server's response the same length twice is common, and clients take it.
    if (known && reads_ == role::request) return fail(400, "Content-Length is given twice");
    if (known && *known != length) return fail(400, "Content-Length is given twice, differently");
    known = length;
    return true;
}

// Notes the codings; what they mean is decided behind the last line of the field.
bool message_parser::read_transfer_encoding(std::string_view value, message_head& head,
                                            field_facts& facts) noexcept {
    std::string_view item;
    while (next_item(value, item)) {
        if (item.empty()) continue;
        head.chunked = equal_ignoring_case(item, "chunked");
        facts.unknown_coding |= !head.chunked;
        if (head.chunked && std::exchange(facts.chunked_coding, true))
            return fail(400, "the transfer coding chunked is given twice");
    }
    return true;
}

bool message_parser::read_fields() noexcept {
    message_head& head = base_head();
    field_facts facts;
    for (const header h : head.headers) {
        if (!read_deciding_field(kind_of(h.name), h.value, head, facts)) return false;
    }
    return decide_framing(facts, head) && read_head(facts, framing_);
}

bool message_parser::read_deciding_field(field_kind kind, std::string_view value,
                                         message_head& head, field_facts& facts) noexcept {
    switch (kind) {
        case field_kind::other: return true;
        case field_kind::connection: {
            // Alone in most requests.
            if (value.size() == 10 && is_token_in_lower_case(value, "keep-alive")) {
                facts.keep_alive = true;
                return true;
            }
            std::string_view item;
            while (next_item(value, item)) {
                facts.close |= is_lower_case_of(item, "close");
                facts.keep_alive |= is_lower_case_of(item, "keep-alive");
                facts.upgrade_token |= is_lower_case_of(item, "upgrade");
            }
            return true;
        }
        case field_kind::content_length: return read_content_length(value, head);
        case field_kind::expect:
            facts.continue_expected |= is_lower_case_of(value, "100-continue");
            return true;
        case field_kind::host: facts.add_host(is_host(value)); return true;
        case field_kind::transfer_encoding:
            facts.transfer_encoding = true;
            return read_transfer_encoding(value, head, facts);
        case field_kind::upgrade: facts.upgrade_field = true; return true;
    }
    return true;
}

// Fills message_head from the fields that say where the message ends and what follows it.
bool message_parser::decide_framing(const field_facts& facts, message_head& head) noexcept {
    if (facts.transfer_encoding) {
        // Without chunked at the end nothing says where the content ends (RFC 9112, 6.3).
        if (!head.chunked) return fail(400, "the last transfer coding is not chunked");
        if (head.content_length)
            return fail(400, "both Content-Length and Transfer-Encoding are given");
        if (head.minor_version == 0)
            return fail(400, "Transfer-Encoding does not exist in HTTP/1.0");
        if (facts.unknown_coding) return fail(501, "a transfer coding is unknown");
    }
    head.keep_alive = !facts.close && (head.minor_version > 0 || facts.keep_alive);
    head.upgrade = facts.upgrade_field && facts.upgrade_token;
    return true;
}

bool message_parser::begin_body() noexcept {
    switch (framing_) {
        case framing::none:
        case framing::tunnel: state_ = state::message_end; return true;
        case framing::sized:
            remaining_ = base_head().content_length.value_or(0);
            if (remaining_ > limits_.body) return fail(413, "Content-Length is above the limit");
            state_ = remaining_ > 0 ? state::body_sized : state::message_end;
            return true;
        case framing::chunked: state_ = state::chunk_line; return true;
        case framing::until_close: state_ = state::body_until_close; return true;
    }
    return true;
}

step message_parser::take_body(std::string_view input, std::size_t used) noexcept {
    std::string_view content = input.substr(used);
    if (state_ == state::body_until_close) {
        const std::uint64_t room = limits_.body - std::min(limits_.body, body_size_);
        if (room == 0) fail(413, "the body is above the limit");
        content = content.substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(room, content.size())));
        body_size_ += content.size();
    } else {
        content = content.substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, content.size())));
        remaining_ -= content.size();
        if (remaining_ == 0) {
            state_ = state_ == state::chunk_data ? state::chunk_end : state::message_end;
        }
    }
    return {event::body, used + content.size(), content};
}

namespace {

bool skip_one(std::string_view& text, char c) noexcept {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

bool skip_token(std::string_view& text) noexcept {
    std::size_t size = 0;
    while (size < text.size() && token_bytes.has(text[size])) ++size;
    text.remove_prefix(size);
    return size > 0;
}

/// Behind the opening quote; bytes that no quoted string has are none of a field's value either.
bool skip_quoted(std::string_view& text) noexcept {
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '"') {
            text.remove_prefix(at + 1);
            return true;
        }
        if (text[at] == '\\') ++at;
    }
    return false;
}

/// True for what may follow a chunk's size (RFC 9112, 7.1.1): nothing, or each time a semicolon, a
/// name, and perhaps "=" and a value, with blanks before and behind both signs.
bool are_chunk_extensions(std::string_view text) noexcept {
    while (!text.empty()) {
        skip_blanks(text);
        if (!skip_one(text, ';')) return false;
        skip_blanks(text);
        if (!skip_token(text)) return false;
        std::string_view value = text;
        skip_blanks(value);
        if (!skip_one(value, '=')) continue;
        skip_blanks(value);
        if (!(skip_one(value, '"') ? skip_quoted(value) : skip_token(value))) return false;
        text = value;
    }
    return true;
}

}  // namespace

bool message_parser::read_chunk_line(std::string_view line) noexcept {
    std::uint64_t size = 0;
    std::size_t digits = 0;
    while (digits < line.size() && hex_value(line[digits]) >= 0) {
        if (digits == chunk_digits_limit) return fail(400, "a chunk's size has too many digits");
        size = size << 4 | static_cast<std::uint64_t>(hex_value(line[digits]));
        ++digits;
    }
    if (digits == 0) return fail(400, "a chunk has no size");
    // Extensions mean nothing here, but their end must be beyond doubt: "5 \r\n" and "5;\"\r\n" are
    // read differently by others.
    const std::string_view extensions = line.substr(digits);
    if (!is_field_value(extensions)) return fail(400, "a chunk's extension holds a control byte");
    if (!are_chunk_extensions(extensions)) return fail(400, "a chunk's extension is malformed");
    if (size == 0) {
        field_bytes_ = 0;
        state_ = state::trailer_line;
        return true;
    }
    const std::uint64_t most = std::min(limits_.body, largest_body);
    if (size > most - std::min(most, body_size_)) return fail(413, "the body is above the limit");
    body_size_ += size;
    remaining_ = size;
    state_ = state::chunk_data;
    return true;
}

namespace {

// Keeps the memory of the strings and the list for the next message.
void clear_common(message_head& head) noexcept {
    head.minor_version = 1;
    head.keep_alive = head.chunked = head.upgrade = false;
    head.content_length.reset();
    head.headers.clear();
}

}  // namespace

namespace {

// Consecutive requests of a connection often have texts of one length.
void overwrite(std::string& text, std::string_view by) {
    if (text.size() == by.size())
        copy_short(text.data(), by.data(), by.size());
    else
        text.assign(by);
}

}  // namespace

void request_parser::clear_head() noexcept {
    clear_common(head_);
    head_.method.clear();
    head_.target.clear();
    head_.expect_continue = false;
}

void request_parser::release_head() noexcept { head_ = request_head(); }

bool request_parser::read_start_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) {
        return fail(400, "the request line does not have three parts");
    }
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, last - first - 1);
    if (!is_token(method)) return fail(400, "the method is not a token");
    if (!read_version(line.substr(last + 1))) return false;
    if (!split_target(method, target)) return fail(400, "the request's target is malformed");
    head_.method = method;
    head_.target = target;
    return true;
}

bool request_parser::read_head(const field_facts& facts, framing& body) noexcept {
    if (facts.host_malformed) return fail(400, "the Host field is malformed");
    if (facts.hosts > 1) return fail(400, "there is more than one Host field");
    if (facts.hosts == 0 && head_.minor_version > 0) return fail(400, "the Host field is missing");
    head_.expect_continue = facts.continue_expected && head_.minor_version > 0 && head_.has_body();
    body = head_.chunked ? framing::chunked : head_.content_length ? framing::sized : framing::none;
    return true;
}

std::size_t request_parser::take_head(std::string_view input) {
    head_scan scan;
    if (!scan_request(input, scan) || !is_within_limits(scan)) return 0;
    const std::string_view method = input.substr(0, scan.method_size);
    const std::string_view target = input.substr(scan.method_size + 1, scan.target_size);
    // The scan has checked the bytes, which is all for the usual form.
    if ((target[0] != '/' || method == "CONNECT") && !split_target(method, target)) return 0;
    overwrite(head_.method, method);
    overwrite(head_.target, target);
    head_.minor_version = scan.minor_version;
    field_facts facts;
    if (take_fields(input, scan, head_, facts)) read_head(facts, framing_);
    return scan.fields_at + scan.fields_size;
}

void response_parser::clear_head() noexcept {
    clear_common(head_);
    head_.status = 0;
    head_.reason.clear();
}

void response_parser::release_head() noexcept { head_ = response_head(); }

void response_parser::expect_response_to(std::string_view method) noexcept {
    to_head_ = method == "HEAD";
    to_connect_ = method == "CONNECT";
}

bool response_parser::read_start_line(std::string_view line) {
    // "HTTP/1.1 200 OK"; many servers leave the reason out, and the space before it.
    if (!read_version(line.substr(0, line.find(' ')))) return false;
    const std::string_view rest = line.size() > 9 ? line.substr(9) : std::string_view();
    const bool formed = rest.size() >= 3 && rest[0] >= '1' && is_digit(rest[0]) &&
                        is_digit(rest[1]) && is_digit(rest[2]) &&
                        (rest.size() == 3 || rest[3] == ' ');
    if (!formed) return fail(502, "the status line has no status");
    const std::string_view reason = rest.size() > 4 ? rest.substr(4) : std::string_view();
    if (!is_field_value(reason)) return fail(502, "the reason phrase holds a control byte");
    head_.status = (rest[0] - '0') * 100 + (rest[1] - '0') * 10 + (rest[2] - '0');
    head_.reason = reason;
    return true;
}

std::size_t response_parser::take_head(std::string_view input) {
    const std::size_t line_end = input.find('\n');
    if (line_end == std::string_view::npos || line_end == 0 || input[line_end - 1] != '\r')
        return 0;
    head_scan scan;
    if (!scan_fields(input, line_end + 1, scan) || !is_within_limits(scan)) return 0;
    field_facts facts;
    if (read_start_line(input.substr(0, line_end - 1)) && take_fields(input, scan, head_, facts))
        read_head(facts, framing_);
    return scan.fields_at + scan.fields_size;
}

bool response_parser::read_head(const field_facts&, framing& body) noexcept {
    const int status = head_.status;
    const bool interim = status < 200 && status != 101;
    tunnel_ = status == 101 || (to_connect_ && status >= 200 && status < 300);
    if (tunnel_) {
        body = framing::tunnel;
    } else if (interim || to_head_ || status == 204 || status == 304) {
        body = framing::none;
    } else if (head_.chunked) {
        body = framing::chunked;
    } else if (head_.content_length) {
        body = framing::sized;
    } else {
        body = framing::until_close;
        head_.keep_alive = false;
    }
    if (!interim) to_head_ = to_connect_ = false;
    return true;
}

}  // namespace eddy::http1
