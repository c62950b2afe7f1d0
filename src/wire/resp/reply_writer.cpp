// Replies that are too rare to be inline.
#include <eddy/wire/resp/reply_writer.hpp>

#include <eddy/base/assert.hpp>

#include "wire/resp/grisu.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

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

namespace {

char* put(char* to, std::string_view text) noexcept {
    detail::copy(to, text);
    return to + text.size();
}

char* put_zeros(char* to, int count) noexcept {
    std::memset(to, '0', static_cast<std::size_t>(count));
    return to + count;
}

}  // namespace

char* write_number(char* to, double value) noexcept {
    // Whole numbers of this size are written out, though not all of them are exact.
    constexpr auto most_whole = static_cast<double>(INT64_MAX / 2);
    // Zeros that may stand for an exponent, behind the digits or in front of them.
    constexpr int most_zeros_behind = 6;
    constexpr int most_decimals = 6;
    constexpr int least_exponent = 4;

    const std::size_t room = max_number_text;
    if (std::isnan(value)) return put(to, "nan");
    if (std::signbit(value)) {
        *to++ = '-';
        value = -value;
    }
    if (std::isinf(value)) return put(to, "inf");
    if (value <= most_whole && value == std::trunc(value))
        return std::to_chars(to, to + room - 1, static_cast<std::int64_t>(value)).ptr;

    const decimal d = grisu_digits(value);
    const auto count = static_cast<int>(d.count);
    const int decimals = count - 1 - d.exponent;  // digits behind the point
    if (decimals <= 0 && d.exponent <= count + most_zeros_behind)
        return put_zeros(put(to, {d.digits, d.count}), -decimals);
    if (decimals > 0 && (decimals <= most_decimals || std::abs(d.exponent) < least_exponent)) {
        if (d.exponent < 0) {
            to = put_zeros(put(to, "0."), -d.exponent - 1);
            return put(to, {d.digits, d.count});
        }
        const auto whole = static_cast<std::size_t>(d.exponent) + 1;
        to = put(to, {d.digits, whole});
        *to++ = '.';
        return put(to, {d.digits + whole, d.count - whole});
    }
    *to++ = d.digits[0];
    if (count > 1) {
        *to++ = '.';
        to = put(to, {d.digits + 1, d.count - 1});
    }
    *to++ = 'e';
    if (d.exponent > 0) *to++ = '+';
    return std::to_chars(to, to + 4, d.exponent).ptr;
}

void reply_writer::number(double value) {
    char digits[max_number_text];
    char* const end = write_number(digits, value);
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
