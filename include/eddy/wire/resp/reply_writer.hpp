// Encoder of RESP replies. Small ones are inline: one reserve() a reply, no allocation beyond the
// buffer's own growth.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/encode.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::resp {

/// The bytes that write_number() may take.
inline constexpr std::size_t max_number_text = 32;

/// Writes the fewest digits that read back as the same number, as Redis does since 7.2: "3", "0.1",
/// "1e+20", "2.5e-7", "-0", "inf", "-inf", "nan". `to` has room for max_number_text bytes. Returns
/// the end. Any thread.
char* write_number(char* to, double value) noexcept;

/// Appends RESP2 or RESP3 replies to a byte_buffer. Types of RESP3 only are written to a RESP2
/// client as Redis writes it. The buffer must outlive the writer; bounding the buffer is the
/// caller's part. A writer is two words: make one for each batch. One thread.
class reply_writer {
public:
    /// `protocol` is 2 or 3.
    explicit reply_writer(byte_buffer& out, int protocol = 2) noexcept
        : out_(&out), protocol_(protocol) {}

    /// 2 or 3.
    int protocol() const noexcept { return protocol_; }
    /// 2 or 3, for the replies that follow; set by HELLO.
    void set_protocol(int protocol) noexcept { protocol_ = protocol; }
    /// Where the replies go.
    byte_buffer& buffer() noexcept { return *out_; }

    /// "+OK".
    void ok() { raw("+OK\r\n"); }

    /// A status line. CR and LF in `text` become spaces: they would end the reply.
    void simple(std::string_view text) {
        char* const at = out_->reserve(text.size() + 3);
        at[0] = '+';
        detail::copy_without_newlines(at + 1, text);
        detail::put_crlf(at + 1 + text.size());
        out_->commit(text.size() + 3);
    }

    /// An error line; `text` begins with its code word ("ERR ...", "WRONGTYPE ..."). CR and LF are
    /// trimmed at the ends and become spaces elsewhere, as in Redis.
    void error(std::string_view text);

    /// ":7".
    void integer(std::int64_t value) {
        char* const at = out_->reserve(detail::header_room);
        out_->commit(static_cast<std::size_t>(detail::put_number(at, ':', value) - at));
    }

    /// A string of any bytes.
    void bulk(std::string_view text) {
        char* const at = out_->reserve(text.size() + detail::header_room + 2);
        char* to = detail::put_count(at, '$', text.size());
        detail::copy(to, text);
        to = detail::put_crlf(to + text.size());
        out_->commit(static_cast<std::size_t>(to - at));
    }

    /// The value in decimal digits, as a bulk string.
    void bulk_integer(std::int64_t value) {
        char* const at = out_->reserve(2 * detail::header_room);
        char digits[detail::header_room];
        const auto size = static_cast<std::size_t>(detail::put_decimal(digits, value) - digits);
        char* to = detail::put_count(at, '$', size);
        detail::copy(to, {digits, size});
        to = detail::put_crlf(to + size);
        out_->commit(static_cast<std::size_t>(to - at));
    }

    /// RESP2 "$-1", RESP3 "_".
    void null() { protocol_ == 2 ? raw("$-1\r\n") : raw("_\r\n"); }
    /// RESP2 "*-1", RESP3 "_".
    void null_array() { protocol_ == 2 ? raw("*-1\r\n") : raw("_\r\n"); }

    /// The head of an aggregate; its elements follow as replies of their own.
    void array(std::size_t n) { head('*', n); }
    /// `pairs` keys, each followed by its value. RESP2: an array of twice as many.
    void map(std::size_t pairs) { protocol_ == 2 ? head('*', pairs * 2) : head('%', pairs); }
    /// The head of a set. RESP2: an array.
    void set(std::size_t n) { head(protocol_ == 2 ? '*' : '~', n); }
    /// The head of a push. RESP2: an array.
    void push(std::size_t n) { head(protocol_ == 2 ? '*' : '>', n); }

    /// RESP2: the integer 1 or 0.
    void boolean(bool value) {
        if (protocol_ == 2) {
            value ? raw(":1\r\n") : raw(":0\r\n");
        } else {
            value ? raw("#t\r\n") : raw("#f\r\n");
        }
    }

    /// As write_number() writes it. RESP2: a bulk string.
    void number(double value);

    /// An integer of any size, in decimal digits. RESP2: a bulk string.
    void big_number(std::string_view digits);

    /// Text with a three-letter format such as "txt". RESP2: a bulk string of only the text.
    void verbatim(std::string_view format, std::string_view text);

    /// Bytes that are RESP already.
    void raw(std::string_view encoded) {
        char* const at = out_->reserve(encoded.size());
        detail::copy(at, encoded);
        out_->commit(encoded.size());
    }

private:
    void head(char type, std::size_t n) {
        char* const at = out_->reserve(detail::header_room);
        out_->commit(static_cast<std::size_t>(detail::put_count(at, type, n) - at));
    }

    byte_buffer* out_;
    int protocol_;
};

/// Appends a command as clients send it: an array of bulk strings.
void write_command(byte_buffer& out, std::span<const std::string_view> args);

}  // namespace eddy::resp
