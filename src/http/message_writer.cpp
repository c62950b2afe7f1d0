// Sending side: heads, chunks and slices.
#include "http/message_writer.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>

namespace eddy::http {
namespace {

constexpr std::string_view line_end = "\r\n";

/// The line before a chunk's content. The text is in `into`.
std::string_view write_chunk_line(std::array<char, 24>& into, std::size_t size) noexcept {
    char* const end = std::to_chars(into.data(), into.data() + 16, size, 16).ptr;
    std::copy(line_end.begin(), line_end.end(), end);
    return {into.data(), static_cast<std::size_t>(end - into.data()) + line_end.size()};
}

}  // namespace

void reset_if_stuck(stream& peer, std::error_code failure) noexcept {
    if (failure != errc::timed_out) return;
    tcp::socket_options options;
    options.linger = std::chrono::seconds(0);
    static_cast<void>(tcp::apply(peer, options));  // a stream that is no socket has no such backlog
}

task<result<>> message_writer::write(std::string_view piece) {
    using kind = http1::body_framing::kind;
    if (failure_) co_return fail(failure_);
    if (framing_.how == kind::none && !piece.empty()) co_return fail(errc::limit_reached);
    if (framing_.how == kind::sized) {
        if (piece.size() > left_) co_return fail(errc::limit_reached);
        left_ -= piece.size();
    }
    while (!piece.empty()) {
        const std::string_view slice = piece.substr(0, slice_limit);
        piece.remove_prefix(slice.size());
        std::array<char, 24> line;
        const bool in_chunks = framing_.how == kind::chunked;
        const std::string_view before =
            in_chunks ? write_chunk_line(line, slice.size()) : std::string_view();
        const auto sent = co_await send(before, slice, in_chunks ? line_end : std::string_view());
        if (!sent) co_return sent;
    }
    co_return result<>();
}

bool message_writer::set_trailers(http1::header_list fields) {
    if (!allows_trailers_ || framing_.how != http1::body_framing::kind::chunked) return false;
    trailers_ = std::move(fields);
    return true;
}

task<result<>> message_writer::flush() { return send({}, {}, {}); }

task<result<>> message_writer::finish() {
    if (failure_) co_return fail(failure_);
    if (framing_.how == http1::body_framing::kind::sized && left_ > 0)
        co_return fail(errc::truncated);
    if (framing_.how == http1::body_framing::kind::chunked)
        http1::write_last_chunk(head_, trailers_);
    co_return co_await flush();
}

task<result<>> message_writer::send(std::string_view before, std::string_view content,
                                    std::string_view after) {
    std::array<const_bytes, 4> pieces;
    std::size_t count = 0;
    for (const std::string_view each : {head_.text(), before, content, after})
        if (!each.empty()) pieces[count++] = as_bytes(each);
    if (count == 0) co_return result<>();
    const std::span<const const_bytes> all(pieces.data(), count);
    const auto sent = co_await with_timeout(write_time_, to_.write_all(all));
    if (sent) {
        for (const const_bytes each : all) counted_.out += each.size();
        counted_.content_out += content.size();
    } else {
        failure_ = sent.error();
        reset_if_stuck(to_, failure_);
    }
    head_.clear();
    co_return sent;
}

}  // namespace eddy::http
