// Search for delimiters in the received bytes of a stream.
#include <eddy/io/line_reader.hpp>

#include <utility>

namespace eddy {
namespace {

/// The error of a read that found a stream's end with bytes before it that are no whole message.
std::error_code end_within(std::error_code error, bool has_begun) noexcept {
    if (has_begun && error == errc::end_of_stream) return errc::truncated;
    return error;
}

}  // namespace

task<result<std::size_t>> read_until(stream& from, std::string& kept, std::string delimiter,
                                     std::size_t limit) {
    EDDY_PRECONDITION(!delimiter.empty(), "read_until() an empty delimiter: it is in every text");
    std::size_t searched = 0;
    for (;;) {
        const std::size_t at = kept.find(delimiter, searched);
        const bool is_found = at != std::string::npos;
        if (is_found && at + delimiter.size() <= limit) co_return at + delimiter.size();
        if (is_found || kept.size() >= limit) co_return fail(errc::limit_reached);
        // The beginning of a delimiter may have come.
        searched = kept.size() < delimiter.size() ? 0 : kept.size() - delimiter.size() + 1;
        auto received = co_await from.read();
        if (!received) co_return fail(end_within(received.error(), !kept.empty()));
        kept += received->text();
    }
}

/// True if `begun`, which has no "\n", begins a line of more than longest() bytes. A "\r" at its
/// end may belong to the line's end.
bool line_reader::is_too_long(std::string_view begun) const noexcept {
    if (begun.size() <= longest_) return false;
    return begun.size() > longest_ + 1 || begun.back() != '\r';
}

task<result<std::string_view>> line_reader::next() {
    buffer_.consume(std::exchange(yielded_, 0));
    for (;;) {
        const std::string_view text = buffer_.text();
        if (const std::size_t end = text.find('\n', searched_); end != std::string_view::npos) {
            const bool has_return = end > 0 && text[end - 1] == '\r';
            const std::string_view line = text.substr(0, has_return ? end - 1 : end);
            if (line.size() > longest_) co_return fail(errc::limit_reached);
            yielded_ = end + 1;
            searched_ = 0;
            co_return line;
        }
        if (is_too_long(text)) co_return fail(errc::limit_reached);
        searched_ = text.size();
        buffer_.release_if_empty();
        auto received = co_await from_->read();
        if (!received) co_return fail(end_within(received.error(), !buffer_.empty()));
        buffer_.append(received->text());
    }
}

}  // namespace eddy
