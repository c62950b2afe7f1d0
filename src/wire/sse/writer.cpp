// Writer of event streams: fields, and data line by line.
#include <eddy/wire/sse.hpp>

#include <array>
#include <charconv>

namespace eddy::sse {
namespace {

using namespace std::string_view_literals;

void write_field(byte_buffer& out, std::string_view name, std::string_view value) {
    out.append(name);
    out.append(": "sv);
    out.append(value);
    out.append('\n');
}

/// Writes each line of `text` behind `prefix`; a text without a line end is one line.
void write_lines(byte_buffer& out, std::string_view prefix, std::string_view text) {
    for (;;) {
        const std::size_t end = text.find_first_of("\r\n");
        out.append(prefix);
        out.append(text.substr(0, end));
        out.append('\n');
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
    }
}

}  // namespace

result<> write_event(byte_buffer& out, const event& of) {
    if (of.type.find_first_of("\r\n") != std::string::npos) return fail(errc::malformed);
    if (of.id && of.id->find_first_of("\r\n\0"sv) != std::string::npos)
        return fail(errc::malformed);
    if (of.retry && of.retry->count() < 0) return fail(errc::malformed);
    if (of.retry) {
        std::array<char, 24> digits;
        const auto written =
            std::to_chars(digits.data(), digits.data() + digits.size(), of.retry->count());
        write_field(out, "retry", {digits.data(), written.ptr});
    }
    if (of.id) write_field(out, "id", *of.id);
    if (!of.type.empty()) write_field(out, "event", of.type);
    write_data(out, of.data);
    return {};
}

void write_data(byte_buffer& out, std::string_view data) {
    write_lines(out, "data: ", data);
    out.append('\n');
}

void write_comment(byte_buffer& out, std::string_view text) {
    write_lines(out, text.empty() ? ":" : ": ", text);
}

}  // namespace eddy::sse
