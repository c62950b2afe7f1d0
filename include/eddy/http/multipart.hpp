// Forms with files: a request's multipart/form-data body part by part as it arrives, or whole, with
// large files in temporary ones.
//
//     http::multipart_reader form(request);
//     while (auto part = co_await form.next()) {
//         while (auto piece = co_await part->read()) bytes += piece->size();
//     }
//     if (!form.is_whole()) co_return http::response();
//     co_return http::text(std::to_string(bytes));
//
// The session's limit on bodies (session_limits::parser.body, 1 MiB) holds for these, too:
// request.body().set_limit() raises it for one request.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/http1/multipart.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::http {

class multipart_reader;

/// A part whose header has arrived. A handle: valid until the reader's next next(), as are the
/// views that it gives out. One loop's thread.
class multipart_part {
public:
    /// The form field's name, as of http1::part_head.
    std::string_view name() const noexcept;
    /// True for a file; a browser's user may have chosen none, and filename() is empty then.
    bool is_file() const noexcept;
    /// The file's name as it was sent: it may be a path, or "..". Empty for other fields.
    std::string_view filename() const noexcept;
    /// A name made of it that may stand in a folder of the server: http1::safe_file_name().
    std::string safe_filename() const;
    /// The media type that the client presumes; "text/plain" where it names none.
    std::string_view content_type() const noexcept;
    /// All fields of its header.
    const header_list& headers() const noexcept;

    /// Awaits the next piece of its content. Yields a result<std::string_view>: never empty, valid
    /// until the next read. Fails with errc::end_of_stream after the last piece, else as
    /// multipart_reader::next(). The reader must live until then.
    task<result<std::string_view>> read();
    /// Awaits the rest of its content, at most `limit` bytes; more are errc::limit_reached, and the
    /// request is answered with 413. Yields a result<std::string>; other errors as of read(). The
    /// reader must live until then.
    task<result<std::string>> whole(std::size_t limit);

private:
    friend class multipart_reader;
    explicit multipart_part(multipart_reader& of) noexcept : of_(&of) {}

    multipart_reader* of_;
};

/// Reader of a request's multipart/form-data body. Unread content stays with the client, and at
/// most one piece is in memory. A fault of the client's is declared to the request: its session
/// answers 415 for another type, 400 for what is malformed, 413 beyond a limit, whatever the
/// handler returns. One loop's thread.
class multipart_reader {
public:
    /// Reads the body of `incoming`, which must outlive it, with the default limits. The body must
    /// not have been read in part.
    explicit multipart_reader(request& incoming);
    /// The same with limits.
    multipart_reader(request& incoming, const http1::multipart_limits& limits);
    multipart_reader(const multipart_reader&) = delete;
    multipart_reader& operator=(const multipart_reader&) = delete;

    /// Awaits the next part, and drops what is left of the one before. Yields a
    /// result<multipart_part>. Fails with errc::end_of_stream behind the last one; with
    /// errc::unsupported for a body of another type; with errc::malformed, errc::limit_reached, and
    /// as body_reader::read().
    task<result<multipart_part>> next();

    /// True once the form has been read to its end: next() has failed with errc::end_of_stream.
    bool is_whole() const noexcept { return failure_ == errc::end_of_stream; }
    /// The error that ended reading; none while it can continue.
    std::error_code failure() const noexcept { return failure_; }
    /// Ends reading by a rule of the handler's: the request is answered with this status (400 to
    /// 599) and text, which must always live. Yields the error: errc::limit_reached for 413,
    /// errc::unsupported for 415, else errc::malformed.
    std::error_code refuse(int status, std::string_view what) noexcept;

private:
    friend class multipart_part;
    task<result<http1::multipart_event>> advance();
    task<result<std::string_view>> read_content();
    void end_of_body() noexcept;

    request& incoming_;
    std::optional<http1::multipart_parser> parser_;
    std::string_view input_;    // received and not parsed
    std::string_view content_;  // of the last event
    bool is_in_part_ = false;
    std::error_code failure_;
};

/// Limits on a form that is read whole. Beyond one the request is answered with 413.
struct form_data_limits {
    /// Parts, their headers and names.
    http1::multipart_limits parser = {};
    /// Bytes of the body; none: the session's limit.
    std::optional<std::uint64_t> bytes = std::nullopt;
    std::uint64_t file = 64 * 1024 * 1024;  ///< bytes of one file
    std::size_t field = 64 * 1024;          ///< bytes of one field that is no file

    std::size_t fields = 1024 * 1024;  ///< bytes of all fields, names and types, kept in memory

    std::size_t memory = 256 * 1024;  ///< bytes of all files in memory; others become temporary

    /// The folder of temporary files, which have no name there, and are gone once they are closed.
    std::string folder = "/tmp";
};

/// A part of a form that was read whole. One loop's thread.
class form_data_part {
public:
    std::string name;                     ///< as of http1::part_head
    std::optional<std::string> filename;  ///< as it was sent; none for what is no file
    std::string content_type;             ///< "text/plain" where the client names none
    std::string text;                     ///< the content; empty when it is in a file
    std::optional<file> stored;           ///< the temporary file that has it, open for both ways
    std::uint64_t size = 0;               ///< bytes of the content

    /// A name made of `filename` that may stand in a folder: http1::safe_file_name().
    std::string safe_filename() const;
    /// Writes the content to `to`, from its beginning. Yields a result<>; errors are those of
    /// file::read_at() and file::write_at(). Both must live until then.
    task<result<>> copy_to(file& to);
};

/// A form that was read whole: its parts in their order. One loop's thread.
class form_data {
public:
    /// The parts.
    std::vector<form_data_part> parts;

    /// The first part of that name; null where there is none.
    form_data_part* find(std::string_view name) noexcept;
};

/// Reads a multipart/form-data body whole. Fields, and files as far as they fit, stay in memory;
/// the others go to temporary files, by the loop's ring or threads: the loop is never blocked.
/// Yields a result<form_data>. Fails as multipart_reader::next(), after which the session answers
/// by itself, and with the errors of a file (507 where the disk is full, else 500). The request
/// must live until then. The loop's thread.
task<result<form_data>> read_form_data(request& incoming, form_data_limits limits);
/// The same with the default limits. Yields and fails as the other one; the request must live until
/// then.
task<result<form_data>> read_form_data(request& incoming);

/// A line that separates parts, of 128 random bits, so that no content has it but by chance: for
/// http1::multipart_writer. Any thread.
std::string make_boundary();

}  // namespace eddy::http
