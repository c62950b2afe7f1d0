// The replies that are too rare to be inline.
#include <eddy/wire/resp/reply_writer.hpp>

#include <eddy/base/assert.hpp>

#include <charconv>
#include <cmath>

namespace eddy::resp {

void reply_writer::error(std::string_view text) {
    constexpr std::string_view newlines = "\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(newlines), text.size()));
    text = text.substr(0, text.find_last_not_of(newlines) + 1);
    char* const at = out_->reserve(text.size() + 3);
    at[0] = '-';
    detail::copy_without_newlines(at + 1, text);
    detail::put_crlf(at + 1 + text.size());
    out_->commit(text.size() + 3);
}

void reply_writer::number(double value) {
    constexpr double short_integer = 1e15;  // written without an exponent, and exact
    char digits[detail::header_room];       // %.17g takes 24 bytes at most
    char* end;
    if (std::fabs(value) < short_integer && value == std::trunc(value) &&
        (value != 0 || !std::signbit(value))) {
        end = detail::put_decimal(digits, static_cast<std::int64_t>(value));
    } else if (std::isnan(value)) {
        end = digits + 3;
        detail::copy(digits, "nan");
    } else {
        // As printf's %.17g, in a third of its time.
        end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 17)
                  .ptr;
    }
    const std::string_view text(digits, static_cast<std::size_t>(end - digits));
    if (protocol_ == 2) return bulk(text);
    char* const at = out_->reserve(text.size() + 3);
    at[0] = ',';
    detail::copy(at + 1, text);
    detail::put_crlf(at + 1 + text.size());
    out_->commit(text.size() + 3);
}

void reply_writer::big_number(std::string_view digits) {
    if (protocol_ == 2) return bulk(digits);
    char* const at = out_->reserve(digits.size() + 3);
    at[0] = '(';
    detail::copy_without_newlines(at + 1, digits);
    detail::put_crlf(at + 1 + digits.size());
    out_->commit(digits.size() + 3);
}

void reply_writer::verbatim(std::string_view format, std::string_view text) {
    EDDY_ASSERT(format.size() == 3);
    if (protocol_ == 2) return bulk(text);
    char* const at = out_->reserve(text.size() + 4 + detail::header_room + 2);
    char* to = detail::put_count(at, '=', text.size() + 4);
    detail::copy(to, format);
    to[3] = ':';
    detail::copy(to + 4, text);
    to = detail::put_crlf(to + 4 + text.size());
    out_->commit(static_cast<std::size_t>(to - at));
}

void write_command(byte_buffer& out, std::span<const std::string_view> args) {
    reply_writer writer(out);
    writer.array(args.size());
    for (const std::string_view arg : args) writer.bulk(arg);
}

}  // namespace eddy::resp
