// multipart/form-data without I/O (RFC 7578, RFC 2046 section 5.1): an incremental parser of forms
// with files, and a writer.
//
// A body reads like this; `input` holds the received bytes of it:
//
//     http1::multipart_step step = parser.parse(input.text());
//     switch (step.what) {
//         case http1::multipart_event::part: ...       // parser.head() is the part's
//         case http1::multipart_event::content: ...    // use step.content
//         case http1::multipart_event::part_end: ...   // the part is whole
//         case http1::multipart_event::end: ...        // there are no more parts
//         case http1::multipart_event::error: ...      // answer parser.error().status
//         case http1::multipart_event::need_more: ...  // receive, or parser.finish() at the end
//     }
//     input.consume(step.consumed);
//
// The events do not depend on how the bytes were cut, except that content comes in other pieces.
// Each byte is compared a bounded number of times, whatever the content. Content is passed through:
// memory stays below the limits on one part's header.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/wire/http1.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::http1 {

/// Bytes that a boundary may have (RFC 2046, 5.1.1).
inline constexpr std::size_t boundary_size_limit = 70;

/// The boundary that the value of a Content-Type names. errc::unsupported when it is not
/// multipart/form-data; errc::malformed without a boundary of 1 to boundary_size_limit bytes that
/// the RFC allows, or with two.
[[nodiscard]] result<std::string> boundary_of(std::string_view content_type);

/// Limits on a form. Beyond one, a multipart_parser ends with an error of status 413.
struct multipart_limits {
    std::size_t parts = 1000;             ///< parts of a body
    std::size_t header_bytes = 8 * 1024;  ///< a part's field lines with their CRLFs
    std::size_t header_count = 32;        ///< a part's field lines
    std::size_t name = 1024;              ///< bytes of a field's name, and of a file's
    std::size_t outside = 4 * 1024;       ///< bytes before the first part and behind the last
};

/// The header of a part.
struct part_head {
    /// The form field's, as it was sent: browsers write '"' as %22, CR as %0D and LF as %0A.
    std::string name;
    /// The file's, as it was sent, which may be a path; empty where a browser's user has chosen no
    /// file; none for other fields. safe_file_name() makes a name of it that may be used. A
    /// "filename*" is ignored, since the RFC forbids it here (RFC 7578, 4.2).
    std::optional<std::string> filename;
    /// The media type that the client presumes; "text/plain" where it names none.
    std::string content_type;
    /// All fields.
    header_list headers;
};

/// Events of a multipart_parser; see multipart_step.
enum class multipart_event : unsigned char { need_more, part, content, part_end, end, error };

/// Result of one call of multipart_parser::parse().
struct multipart_step {
    /// The event.
    multipart_event what = multipart_event::need_more;
    /// Bytes of the input that were consumed; all of them at need_more.
    std::size_t consumed = 0;
    /// At multipart_event::content: a view into the input, or into the parser until its next call.
    std::string_view content;
};

/// Parser of multipart/form-data. Strict: lines end in CRLF, a line that begins with the boundary
/// is a delimiter or an error, each part has a name, and none a Content-Transfer-Encoding that
/// would have to be undone. Statuses of errors: 400, 413. One thread.
class multipart_parser {
public:
    /// `boundary` is as boundary_of() gives it.
    explicit multipart_parser(std::string_view boundary, const multipart_limits& limits = {});

    /// Parses further. Call it until it yields need_more: it stops at every event. After the end it
    /// drops all input; after an error it only repeats that.
    multipart_step parse(std::string_view input);

    /// The body has ended. True when it is whole; else there is an error. Call it after need_more.
    bool finish() noexcept;

    /// The part at hand, from multipart_event::part until the parse() after its part_end. May be
    /// moved from.
    part_head& head() noexcept { return head_; }
    /// Meaningful after an error.
    const parse_error& error() const noexcept { return error_; }

private:
    enum class state : unsigned char {
        preamble,
        delimiter_end,
        part_opens,
        header,
        content,
        form_ends,
        epilogue,
        failed,
    };

    std::string_view take_text(std::string_view input, std::size_t& used) noexcept;
    bool is_at_delimiter() const noexcept { return matched_ == delimiter_.size(); }
    bool count_outside(std::size_t bytes) noexcept;
    std::optional<multipart_step> read_delimiter_end(std::string_view input, std::size_t& used);
    std::optional<multipart_step> read_header(std::string_view input, std::size_t& used);
    void begin_text() noexcept;
    bool begin_header();
    bool read_field(std::string_view line);
    bool read_fields();
    bool read_disposition(std::string_view value);
    bool fail(int status, std::string_view what) noexcept;

    multipart_limits limits_;
    std::string delimiter_;  // CRLF, two dashes, the boundary
    state state_ = state::preamble;
    std::size_t matched_ = 0;        // bytes of delimiter_ that the last bytes have
    std::size_t presumed_ = 0;       // of these: that were no bytes of this text
    char end_byte_ = '\0';           // the last byte behind a delimiter
    bool is_in_part_ = false;        // the delimiter at hand ends one
    std::size_t parts_ = 0;          // so far
    std::size_t outside_bytes_ = 0;  // so far
    std::size_t header_bytes_ = 0;   // of this part so far
    std::string line_;               // the beginning of a field line whose end has not come
    part_head head_;
    parse_error error_;
};

/// A name for a file in a folder of the server, made of the one that a client has sent: what stands
/// behind the last slash or backslash, without dots and blanks before it and behind it, '_' for
/// control bytes and for what is no UTF-8, at most 255 bytes; "unnamed" when nothing is left. Any
/// thread.
std::string safe_file_name(std::string_view sent);

/// Writer of multipart/form-data to the end of a buffer, for a client:
///
///     http1::multipart_writer form(out, "9a0f364b9e99bb48");
///     form.field("user", "me").file("photo", "me.png", "image/png", pixels);
///     result<> written = form.end();
///     result<> typed = fields.add("Content-Type", form.content_type());
///
/// No content may have the boundary in it, so that is long and random. Large content is appended to
/// the buffer by its owner, between begin_file() and end_part(), and may be sent in between. The
/// buffer must outlive the writer. One thread.
class multipart_writer {
public:
    /// `boundary` is a token of at most boundary_size_limit bytes that a boundary may have;
    /// asserted.
    multipart_writer(byte_buffer& out, std::string_view boundary);
    multipart_writer(const multipart_writer&) = delete;
    multipart_writer& operator=(const multipart_writer&) = delete;

    /// Writes a field. In names, quotes, backslashes, CR and LF become %22, %5C, %0D and
    /// %0A.
    multipart_writer& field(std::string_view name, std::string_view value);
    /// Writes a file whole.
    multipart_writer& file(std::string_view name, std::string_view filename,
                           std::string_view content_type, std::string_view content);
    /// Writes the header of a file whose content follows.
    multipart_writer& begin_file(std::string_view name, std::string_view filename,
                                 std::string_view content_type);
    /// Ends that content.
    multipart_writer& end_part();
    /// Ends the form. errc::malformed when a name or a type had a control byte; what was written
    /// must not be sent then.
    [[nodiscard]] result<> end();

    /// The value of Content-Type for it.
    std::string content_type() const;

private:
    void begin_part(std::string_view name);

    byte_buffer& out_;
    std::string boundary_;
    bool refused_ = false;
};

}  // namespace eddy::http1
