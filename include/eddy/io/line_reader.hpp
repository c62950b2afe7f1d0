// read_until() and line_reader: messages of a stream that end with a delimiter.
//
//     line_reader lines(peer);
//     for (;;) {
//         auto line = co_await lines.next();
//         if (!line) break;  // the end of the stream, or a line that is too long
//         ...
//     }
//
// Both keep what came behind the delimiter for the next call, and nothing is lost when a wait is
// cancelled. The result depends on the bytes alone, not on the pieces in which they come. One
// loop's thread.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy {

/// Limit of read_until(), in bytes, unless another is given.
inline constexpr std::size_t default_read_until_limit = 64 * 1024;

/// Awaits that `kept` contains `delimiter`: appends what `from` receives. Yields the number of
/// bytes up to the end of the first delimiter, which the caller takes from the front; what came
/// behind it stays for the next call:
///
///     result<std::size_t> size = co_await read_until(peer, kept, "\r\n\r\n");
///     if (!size) co_return fail(size.error());
///     const std::string head = kept.substr(0, *size);
///     kept.erase(0, *size);
///
/// `from` and `kept` must live until it ends; `kept` must not change meanwhile, and has after an
/// error, too, all bytes that came. At most `limit` bytes, those of the delimiter included:
/// errc::limit_reached when there are more without one. `kept` grows to that and what one read()
/// brings. Otherwise errc::end_of_stream when the peer finished and `kept` is empty,
/// errc::truncated when it finished with bytes that no delimiter follows, and read()'s errors. A
/// delimiter that is there already passes without a wait, also in a cancelled task. Throws
/// std::bad_alloc. One loop's thread.
task<result<std::size_t>> read_until(stream& from, std::string& kept, std::string delimiter,
                                     std::size_t limit = default_read_until_limit);

/// Reader of lines. It buffers received bytes that it has not yielded yet, so all reads of the
/// stream must go through it. One loop's thread.
class line_reader {
public:
    /// Bytes of the longest line, unless another limit is given.
    static constexpr std::size_t default_longest = 64 * 1024;

    /// Reads from `from`, which must outlive it and must not be moved. A line has at most `longest`
    /// bytes without its end.
    explicit line_reader(stream& from, std::size_t longest = default_longest) noexcept
        : from_(&from), longest_(longest) {}
    line_reader(const line_reader&) = delete;
    line_reader& operator=(const line_reader&) = delete;

    /// Awaits the next line; one caller at a time. Yields it without the "\n" or "\r\n" that ends
    /// it; its bytes are the reader's and stay valid until the next next() is awaited.
    ///
    /// errc::end_of_stream when the peer finished behind a line's end, errc::truncated when it
    /// finished within a line, whose beginning is rest(); errc::limit_reached for a line of more
    /// than longest() bytes, from then on; read()'s errors. After all other errors a further call
    /// continues where this one stopped. A line that is there already needs no wait, also in a
    /// cancelled task. Throws std::bad_alloc.
    task<result<std::string_view>> next();

    /// Received bytes that belong to no yielded line, for what follows the lines. They stay valid
    /// until the next next() is awaited. At most longest() and what one read() brings.
    std::string_view rest() const noexcept { return buffer_.text().substr(yielded_); }
    /// Most bytes of a line.
    std::size_t longest() const noexcept { return longest_; }

private:
    bool is_too_long(std::string_view begun) const noexcept;

    stream* from_;
    std::size_t longest_;
    byte_buffer buffer_;        // the line that was yielded, then rest()
    std::size_t yielded_ = 0;   // bytes of that line, with its end
    std::size_t searched_ = 0;  // bytes of rest() without an end of a line
};

}  // namespace eddy
