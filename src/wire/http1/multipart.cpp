// Forms with files: boundaries, parts and their fields.
#include <eddy/wire/http1/multipart.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/wire/http1/parameters.hpp>

#include "wire/http1/text.hpp"

#include <algorithm>
#include <utility>

namespace eddy::http1 {
namespace {

/// bcharsnospace of RFC 2046, 5.1.1.
constexpr byte_set boundary_bytes("'()+_,-./:=?");

bool is_boundary(std::string_view text) noexcept {
    return !text.empty() && text.size() <= boundary_size_limit && !text.ends_with(' ') &&
           std::ranges::all_of(text, [](char c) { return c == ' ' || boundary_bytes.has(c); });
}

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }

}  // namespace

result<std::string> boundary_of(std::string_view content_type) {
    parameter_reader reader(content_type);
    if (!equal_ignoring_case(reader.value(), "multipart/form-data"))
        return eddy::fail(errc::unsupported);
    std::optional<std::string> boundary;
    while (auto parameter = reader.next()) {
        if (!equal_ignoring_case(parameter->name, "boundary")) continue;
        if (boundary) return eddy::fail(errc::malformed);
        boundary = std::move(parameter->value);
    }
    if (reader.malformed() || !boundary || !is_boundary(*boundary))
        return eddy::fail(errc::malformed);
    return std::move(*boundary);
}

multipart_parser::multipart_parser(std::string_view boundary, const multipart_limits& limits)
    : limits_(limits), delimiter_("\r\n--") {
    EDDY_ASSERT(is_boundary(boundary));
    delimiter_ += boundary;
    begin_text();
}

// A delimiter may stand at the very beginning of a body, and of a part's content: the line break
// before it is not part of these.
void multipart_parser::begin_text() noexcept { matched_ = presumed_ = 2; }

// The next bytes that belong to no delimiter; none when the input is used up, or a delimiter is
// complete. As its only CR is the first byte, a match that fails cannot hide the beginning of
// another one: no byte is searched twice.
std::string_view multipart_parser::take_text(std::string_view input, std::size_t& used) noexcept {
    if (matched_ > 0) {
        while (used < input.size() && !is_at_delimiter() && input[used] == delimiter_[matched_]) {
            ++used;
            ++matched_;
        }
        if (is_at_delimiter() || used == input.size()) return {};
        const std::string_view failed =
            std::string_view(delimiter_).substr(presumed_, matched_ - presumed_);
        matched_ = presumed_ = 0;
        if (!failed.empty()) return failed;
    }
    const std::string_view rest = input.substr(used);
    std::size_t at = 0;
    for (;;) {
        at = rest.find('\r', at);
        if (at == std::string_view::npos) {
            used = input.size();
            return rest;
        }
        const std::string_view candidate = rest.substr(at, delimiter_.size());
        const auto differs = std::ranges::mismatch(candidate, delimiter_).in1;
        const auto same = static_cast<std::size_t>(differs - candidate.begin());
        if (same == candidate.size()) {  // the whole delimiter, or the end of the input
            matched_ = same;
            used += at + same;
            return rest.substr(0, at);
        }
        at += same;
    }
}

multipart_step multipart_parser::parse(std::string_view input) {
    std::size_t used = 0;
    for (;;) {
        switch (state_) {
            case state::preamble: {
                const std::string_view text = take_text(input, used);
                if (!count_outside(text.size())) break;
                if (is_at_delimiter())
                    state_ = state::delimiter_end;
                else if (text.empty())
                    return {multipart_event::need_more, used, {}};
                break;
            }
            case state::delimiter_end:
                if (const auto found = read_delimiter_end(input, used)) return *found;
                break;
            case state::header:
                if (const auto found = read_header(input, used)) return *found;
                break;
            case state::content: {
                const std::string_view text = take_text(input, used);
                if (!text.empty()) return {multipart_event::content, used, text};
                if (!is_at_delimiter()) return {multipart_event::need_more, used, {}};
                is_in_part_ = true;
                state_ = state::delimiter_end;
                break;
            }
            case state::part_opens: begin_header(); break;
            case state::form_ends:
                state_ = state::epilogue;
                return {multipart_event::end, used, {}};
            case state::epilogue:
                if (!count_outside(input.size() - used)) break;
                return {multipart_event::need_more, input.size(), {}};
            case state::failed: return {multipart_event::error, used, {}};
        }
    }
}

bool multipart_parser::count_outside(std::size_t bytes) noexcept {
    if (bytes > limits_.outside - outside_bytes_)
        return fail(413, "there is too much outside of the parts");
    outside_bytes_ += bytes;
    return true;
}

// Blanks and CRLF go before a part, two dashes end the body.
std::optional<multipart_step> multipart_parser::read_delimiter_end(std::string_view input,
                                                                   std::size_t& used) {
    while (used < input.size()) {
        const char c = input[used++];
        const char before = std::exchange(end_byte_, c);
        const bool ends = before == '-' && c == '-';
        if (ends || (before == '\r' && c == '\n')) {
            state_ = ends ? state::form_ends : state::part_opens;
            if (!std::exchange(is_in_part_, false)) return std::nullopt;
            // Not before: content may have a line that only begins like a delimiter.
            return multipart_step{multipart_event::part_end, used, {}};
        }
        const bool is_blank = c == ' ' || c == '\t';
        const bool is_first = before == '\0';
        const bool is_padded = before == ' ' || before == '\t';
        if (is_blank && (is_first || is_padded)) {
            if (!count_outside(1)) return std::nullopt;
        } else if (!(c == '-' && is_first) && !(c == '\r' && (is_first || is_padded))) {
            fail(400, "a line of the form begins with the boundary and is no delimiter");
            return std::nullopt;
        }
    }
    return multipart_step{multipart_event::need_more, used, {}};
}

bool multipart_parser::begin_header() {
    if (parts_ == limits_.parts) return fail(413, "the form has too many parts");
    ++parts_;
    end_byte_ = '\0';
    header_bytes_ = 0;
    head_.name.clear();
    head_.filename.reset();
    head_.content_type.clear();
    head_.headers.clear();
    state_ = state::header;
    return true;
}

// Takes one field line, or a part of it.
std::optional<multipart_step> multipart_parser::read_header(std::string_view input,
                                                            std::size_t& used) {
    const std::string_view rest = input.substr(used);
    const std::size_t end = rest.find('\n');
    const std::string_view piece = rest.substr(0, end == std::string_view::npos ? end : end + 1);
    if (piece.size() > limits_.header_bytes - header_bytes_) {
        fail(413, "the header of a part is too long");
        return std::nullopt;
    }
    header_bytes_ += piece.size();
    used += piece.size();
    line_ += piece;
    if (end == std::string_view::npos) return multipart_step{multipart_event::need_more, used, {}};
    if (!line_.ends_with("\r\n")) {
        fail(400, "a line of a part's header does not end in CRLF");
        return std::nullopt;
    }
    const std::string_view line = std::string_view(line_).substr(0, line_.size() - 2);
    const bool is_last = line.empty();
    const bool is_right = is_last ? read_fields() : read_field(line);
    line_.clear();
    if (!is_right || !is_last) return std::nullopt;
    state_ = state::content;
    begin_text();
    return multipart_step{multipart_event::part, used, {}};
}

bool multipart_parser::read_field(std::string_view line) {
    if (line[0] == ' ' || line[0] == '\t') return fail(400, "a field of a part is folded");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return fail(400, "a field of a part has no colon");
    if (head_.headers.size() >= limits_.header_count)
        return fail(413, "a part has too many fields");
    const auto added = head_.headers.add(line.substr(0, colon), trim(line.substr(colon + 1)));
    if (!added) return fail(400, "a field of a part has a byte that may not stand there");
    return true;
}

bool multipart_parser::read_fields() {
    bool has_disposition = false;
    for (const header each : head_.headers) {
        if (equal_ignoring_case(each.name, "Content-Disposition")) {
            if (std::exchange(has_disposition, true))
                return fail(400, "a part has two fields Content-Disposition");
            if (!read_disposition(each.value)) return false;
        } else if (equal_ignoring_case(each.name, "Content-Type")) {
            if (!head_.content_type.empty()) return fail(400, "a part has two fields Content-Type");
            head_.content_type = each.value;
        } else if (equal_ignoring_case(each.name, "Content-Transfer-Encoding")) {
            const auto is = [&](std::string_view coding) {
                return equal_ignoring_case(each.value, coding);
            };
            if (!is("binary") && !is("8bit") && !is("7bit"))
                return fail(400, "a part has a Content-Transfer-Encoding");
        }
    }
    if (!has_disposition) return fail(400, "a part has no Content-Disposition");
    if (head_.content_type.empty()) head_.content_type = "text/plain";
    return true;
}

bool multipart_parser::read_disposition(std::string_view value) {
    parameter_reader reader(value);
    if (!equal_ignoring_case(reader.value(), "form-data"))
        return fail(400, "the Content-Disposition of a part is not form-data");
    std::optional<std::string> name;
    while (auto parameter = reader.next()) {
        const bool is_name = equal_ignoring_case(parameter->name, "name");
        if (!is_name && !equal_ignoring_case(parameter->name, "filename")) continue;
        std::optional<std::string>& into = is_name ? name : head_.filename;
        if (into) return fail(400, "the Content-Disposition of a part has two names");
        if (parameter->value.size() > limits_.name)
            return fail(413, "the name of a part is too long");
        into = std::move(parameter->value);
    }
    if (reader.malformed()) return fail(400, "the Content-Disposition of a part is malformed");
    if (!name) return fail(400, "a part has no name");
    head_.name = std::move(*name);
    return true;
}

bool multipart_parser::finish() noexcept {
    if (state_ == state::epilogue) return true;
    if (state_ != state::failed) fail(400, "the form is cut off");
    return false;
}

bool multipart_parser::fail(int status, std::string_view what) noexcept {
    error_ = {status, what};
    state_ = state::failed;
    return false;
}

std::string safe_file_name(std::string_view sent) {
    constexpr std::size_t size_limit = 255;  // NAME_MAX of Linux
    constexpr std::string_view trimmed = ". \t";
    const std::size_t slash = sent.find_last_of("/\\");
    if (slash != std::string_view::npos) sent.remove_prefix(slash + 1);
    std::string name(sent);
    const bool is_text = is_utf8(name);
    std::ranges::replace_if(
        name,
        [is_text](char c) {
            return is_control(c) || (!is_text && static_cast<unsigned char>(c) >= 0x80);
        },
        '_');
    if (name.size() > size_limit) {
        std::size_t end = size_limit;
        // Not within a character.
        while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
        name.resize(end);
    }
    const std::size_t first = name.find_first_not_of(trimmed);
    if (first == std::string::npos) return "unnamed";
    return name.substr(first, name.find_last_not_of(trimmed) - first + 1);
}

multipart_writer::multipart_writer(byte_buffer& out, std::string_view boundary)
    : out_(out), boundary_(boundary) {
    EDDY_ASSERT(is_boundary(boundary) && is_token(boundary));
}

multipart_writer& multipart_writer::field(std::string_view name, std::string_view value) {
    begin_part(name);
    out_.append("\r\n\r\n");
    out_.append(value);
    return end_part();
}

multipart_writer& multipart_writer::file(std::string_view name, std::string_view filename,
                                         std::string_view content_type, std::string_view content) {
    begin_file(name, filename, content_type);
    out_.append(content);
    return end_part();
}

namespace {

// Within quotes, as the HTML standard has it ("multipart/form-data encoding algorithm"). A
// backslash, which some readers take for an escape, becomes %5C.
void append_quoted(byte_buffer& out, std::string_view name) {
    out.append('"');
    for (const char c : name) {
        if (c == '"')
            out.append("%22");
        else if (c == '\r')
            out.append("%0D");
        else if (c == '\n')
            out.append("%0A");
        else if (c == '\\')
            out.append("%5C");
        else
            out.append(c);
    }
    out.append('"');
}

bool may_be_named(std::string_view name) noexcept {
    return std::ranges::none_of(name,
                                [](char c) { return is_control(c) && c != '\r' && c != '\n'; });
}

}  // namespace

multipart_writer& multipart_writer::begin_file(std::string_view name, std::string_view filename,
                                               std::string_view content_type) {
    refused_ |= !may_be_named(filename) || content_type.empty() || !is_field_value(content_type);
    begin_part(name);
    out_.append("; filename=");
    append_quoted(out_, filename);
    out_.append("\r\nContent-Type: ");
    out_.append(content_type);
    out_.append("\r\n\r\n");
    return *this;
}

multipart_writer& multipart_writer::end_part() {
    out_.append("\r\n");
    return *this;
}

result<> multipart_writer::end() {
    out_.append("--");
    out_.append(boundary_);
    out_.append("--\r\n");
    if (refused_) return eddy::fail(errc::malformed);
    return {};
}

std::string multipart_writer::content_type() const {
    return "multipart/form-data; boundary=" + boundary_;
}

void multipart_writer::begin_part(std::string_view name) {
    refused_ |= !may_be_named(name);
    out_.append("--");
    out_.append(boundary_);
    out_.append("\r\nContent-Disposition: form-data; name=");
    append_quoted(out_, name);
}

}  // namespace eddy::http1
