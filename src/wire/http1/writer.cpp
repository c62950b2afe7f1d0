// Writing heads and chunks.
#include <eddy/wire/http1.hpp>

#include "wire/http1/head_scan.hpp"
#include "wire/http1/text.hpp"

#include <charconv>

namespace eddy::http1 {
namespace {

// `name` is a token.
bool is_framing_field(std::string_view name) noexcept {
    const field_kind kind = kind_of(name);
    return kind == field_kind::content_length || kind == field_kind::transfer_encoding;
}

void append_field(byte_buffer& out, std::string_view name, std::string_view value) {
    const std::size_t size = name.size() + value.size() + 4;
    char* at = out.reserve(size);
    const auto put = [&at](std::string_view text) {
        copy_short(at, text.data(), text.size());
        at += text.size();
    };
    put(name);
    put(": ");
    put(value);
    put("\r\n");
    out.commit(size);
}

void append_number(byte_buffer& out, std::uint64_t value, int base) {
    constexpr std::size_t most_digits = 20;
    char* begin = out.reserve(most_digits);
    const auto written = std::to_chars(begin, begin + most_digits, value, base);
    out.commit(static_cast<std::size_t>(written.ptr - begin));
}

}  // namespace

head_writer& head_writer::response(int status, std::string_view reason) {
    if (first_line_ != first_line::missing || status < 100 || status > 999 ||
        !is_field_value(reason)) {
        refused_ = true;
        return *this;
    }
    first_line_ = first_line::response;
    status_ = status;
    if (status == 200 && reason.empty()) {  // the most frequent one
        out_.append("HTTP/1.1 200 OK\r\n");
        return *this;
    }
    out_.append("HTTP/1.1 ");
    append_number(out_, static_cast<std::uint64_t>(status), 10);
    out_.append(' ');
    out_.append(reason.empty() ? reason_phrase(status) : reason);
    out_.append("\r\n");
    return *this;
}

head_writer& head_writer::request(std::string_view method, std::string_view target) {
    if (first_line_ != first_line::missing || !is_token(method) || !split_target(method, target)) {
        refused_ = true;
        return *this;
    }
    first_line_ = first_line::request;
    out_.append(method);
    out_.append(' ');
    out_.append(target);
    out_.append(" HTTP/1.1\r\n");
    return *this;
}

void head_writer::write_field(std::string_view name, std::string_view value) {
    append_field(out_, name, value);
}

head_writer& head_writer::field(std::string_view name, std::string_view value) {
    if (first_line_ == first_line::missing || !is_token(name) || !is_field_value(value) ||
        is_framing_field(name)) {
        refused_ = true;
        return *this;
    }
    write_field(name, value);
    return *this;
}

head_writer& head_writer::field(std::string_view name, std::uint64_t value) {
    char digits[20];
    const auto written = std::to_chars(digits, digits + sizeof digits, value);
    return field(name, std::string_view(digits, static_cast<std::size_t>(written.ptr - digits)));
}

head_writer& head_writer::parsed_field(header parsed) {
    if (first_line_ == first_line::missing) refused_ = true;
    if (!is_framing_field(parsed.name)) write_field(parsed.name, parsed.value);
    return *this;
}

head_writer& head_writer::fields(const header_list& headers) {
    if (first_line_ == first_line::missing && !headers.empty()) refused_ = true;
    for (const header h : headers) {  // the list has checked them
        if (!is_framing_field(h.name)) write_field(h.name, h.value);
    }
    return *this;
}

head_writer& head_writer::framing(body_framing body) {
    const bool bodiless = first_line_ == first_line::response && (status_ < 200 || status_ == 204);
    switch (body.how) {
        case body_framing::kind::none: break;
        case body_framing::kind::sized:
            refused_ |= bodiless;
            out_.append("Content-Length: ");
            append_number(out_, body.size, 10);
            out_.append("\r\n");
            break;
        case body_framing::kind::chunked:
            refused_ |= bodiless;
            write_field("Transfer-Encoding", "chunked");
            break;
        case body_framing::kind::until_close:
            refused_ |= bodiless || first_line_ != first_line::response;
            write_field("Connection", "close");
            break;
    }
    return *this;
}

result<> head_writer::end() {
    if (refused_ || first_line_ == first_line::missing) {
        out_.truncate(start_);
        refused_ = true;
        return fail(errc::malformed);
    }
    out_.append("\r\n");
    return {};
}

void write_chunk(byte_buffer& out, std::string_view content) {
    if (content.empty()) return;
    append_number(out, content.size(), 16);
    out.append("\r\n");
    out.append(content);
    out.append("\r\n");
}

void write_last_chunk(byte_buffer& out, const header_list& trailers) {
    out.append("0\r\n");
    for (const header h : trailers) {
        if (is_framing_field(h.name)) continue;
        append_field(out, h.name, h.value);
    }
    out.append("\r\n");
}

}  // namespace eddy::http1
