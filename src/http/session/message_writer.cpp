// Sending side: heads, chunks and slices.
#include "http/session/message_writer.hpp"

#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/timer.hpp>

#include "http/file_slices.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <coroutine>
#include <optional>
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

/// True if the first and the last byte of an extent are in the page cache, so reading probably
/// waits for no disk. True also where the file has ended before.
bool is_in_memory(file& from, std::uint64_t offset, std::size_t size) noexcept {
    std::byte byte;
    const mutable_bytes into(&byte, 1);
    return from.try_read_at(offset, into).has_value() &&
           from.try_read_at(offset + size - 1, into).has_value();
}

/// Bytes that the kernel has of a peer's and that the peer has not acknowledged; none where that is
/// not known.
std::optional<int> unacknowledged(const stream& to) noexcept {
    int bytes = 0;
    const int socket = to.driver().option_handle();
    if (socket < 0 || ::ioctl(socket, SIOCOUTQ, &bytes) < 0) return std::nullopt;
    return bytes;
}

/// Time of a write. A writer that waits has room when a third of the socket's buffer is free, which
/// may be a megabyte, and its peer may be reading all the while. So a peer that has acknowledged
/// its share of `least` bytes in the second half of the time gets another.
class write_watch final : private timer {
public:
    write_watch(cancel_source* parent, const stream& to, time_point deadline, duration time,
                int least) noexcept
        : source_(parent), to_(to), deadline_(deadline), time_(time), least_(least) {
        loop& here = loop::current();
        here.arm(*this, here.now() + (deadline - here.now()) / 2);
    }
    ~write_watch() { loop::current().disarm(*this); }

    cancel_source& source() noexcept { return source_; }
    bool expired() const noexcept { return expired_; }

private:
    void fire() noexcept override {
        if (source_.requested()) return;
        loop& here = loop::current();
        const std::optional<int> before = std::exchange(waiting_, unacknowledged(to_));
        if (here.now() < deadline_) return here.arm(*this, deadline_);
        if (before && waiting_ && *before - *waiting_ >= least_ / 2) {
            deadline_ = here.after(time_);
            return here.arm(*this, here.now() + time_ / 2);
        }
        expired_ = true;
        source_.request();
    }

    cancel_source source_;
    const stream& to_;
    time_point deadline_;
    const duration time_;
    const int least_;
    std::optional<int> waiting_;
    bool expired_ = false;
};

/// Awaits a write under a write_watch, without a coroutine of its own.
template <class Op>
class watched_write {
public:
    using keeps_frame_memory = void;

    watched_write(const stream& to, time_point deadline, duration time, int least,
                  awaiting<Op>&& work) noexcept
        : to_(to), deadline_(deadline), time_(time), least_(least), work_(work) {}
    watched_write(const watched_write&) = delete;
    watched_write& operator=(const watched_write&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiter) {
        watch_.emplace(work_.source_under(waiter.promise().source()), to_, deadline_, time_,
                       least_);
        return work_.begin(waiter, &watch_->source());
    }
    [[nodiscard]] auto await_resume() {
        const bool expired = watch_->expired();
        watch_.reset();
        auto value = work_.await_resume();
        if (!value && expired && value.error() == errc::cancelled) value = fail(errc::timed_out);
        return value;
    }

private:
    const stream& to_;
    const time_point deadline_;
    const duration time_;
    const int least_;
    awaiting<Op>& work_;
    std::optional<write_watch> watch_;
};

}  // namespace

task<result<>> message_writer::write(std::string_view piece) {
    using kind = http1::body_framing::kind;
    if (failure_) co_return fail(failure_);
    if (framing_ == kind::none && !piece.empty()) co_return fail(errc::limit_reached);
    if (framing_ == kind::sized) {
        if (piece.size() > left_) co_return fail(errc::limit_reached);
        left_ -= piece.size();
    }
    while (!piece.empty()) {
        const std::string_view slice = piece.substr(0, slice_limit);
        piece.remove_prefix(slice.size());
        std::array<char, 24> line;
        const bool in_chunks = framing_ == kind::chunked;
        const std::string_view before =
            in_chunks ? write_chunk_line(line, slice.size()) : std::string_view();
        const auto sent = co_await send(before, slice, in_chunks ? line_end : std::string_view(),
                                        loop::current().after(write_time_));
        if (!sent) co_return sent;
    }
    co_return result<>();
}

bool message_writer::set_trailers(http1::header_list fields) {
    if (!allows_trailers_ || framing_ != http1::body_framing::kind::chunked) return false;
    trailers_ = std::make_unique<http1::header_list>(std::move(fields));
    return true;
}

task<result<>> message_writer::flush() {
    return send({}, {}, {}, loop::current().after(write_time_));
}

result<> message_writer::end(const http1::header_list* trailers) {
    using kind = http1::body_framing::kind;
    if (failure_) return fail(failure_);
    if (framing_ == kind::sized && left_ > 0) return fail(errc::truncated);
    if (framing_ != kind::chunked) return {};
    if (trailers == nullptr) trailers = trailers_.get();
    if (trailers != nullptr)
        http1::write_last_chunk(head_, *trailers);
    else
        http1::write_last_chunk(head_);
    return {};
}

task<result<>> message_writer::finish() {
    const result<> ended = end();
    if (!ended) co_return ended;
    co_return co_await flush();
}

result<> message_writer::note_sent(std::error_code error) noexcept {
    if (!error) counted_.out += head_.size();
    head_.clear();
    if (error) return end_by(error);
    return {};
}

task<result<>> message_writer::send(std::string_view before, std::string_view content,
                                    std::string_view after, time_point deadline) {
    std::array<const_bytes, 4> pieces;
    std::size_t count = 0;
    for (const std::string_view each : {head_.text(), before, content, after})
        if (!each.empty()) pieces[count++] = as_bytes(each);
    if (count == 0) co_return result<>();
    const std::span<const const_bytes> all(pieces.data(), count);
    const auto sent =
        co_await watched_write(to_, deadline, write_time_, int{slice_limit}, to_.write_all(all));
    head_.clear();
    if (!sent) co_return end_by(sent.error());
    for (const const_bytes each : all) counted_.out += each.size();
    counted_.content_out += content.size();
    co_return sent;
}

result<> message_writer::end_by(std::error_code failure) noexcept {
    failure_ = failure;
    return fail(failure);
}

task<result<>> message_writer::write_file(file& from, std::uint64_t offset, std::uint64_t size) {
    return write_pages(pages{&from, from.native_handle(), {}}, offset, size);
}

task<result<>> message_writer::write_mapped(std::string_view piece, int memory,
                                            std::uint64_t offset) {
    return write_pages(pages{nullptr, memory, piece}, offset, piece.size());
}

task<result<>> message_writer::write_pages(pages from, std::uint64_t offset, std::uint64_t size) {
    if (failure_) co_return fail(failure_);
    const bool is_sized = framing_ == http1::body_framing::kind::sized;
    if (is_sized && size > left_) co_return fail(errc::limit_reached);
    copies_files_ = copies_files_ || !is_sized;
    loop& here = loop::current();
    const cancel_source* const stop = co_await current_source();
    time_point deadline = here.after(write_time_);
    // A slow peer has as much time as for slices.
    const std::size_t in_time = from.of ? file_slice_bytes : slice_limit;
    std::uint64_t next_deadline_at = offset + in_time;
    file_slice slice;
    bool is_full = false;  // the socket
    while (size > 0 && !copies_files_) {
        if (stop && stop->requested()) co_return end_by(errc::cancelled);
        if (offset >= next_deadline_at) {
            deadline = here.after(write_time_);
            next_deadline_at = offset + in_time;
        }
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(size, stream::max_sent_of_file));
        std::size_t taken = 0;
        if (!is_full && (!from.of || is_in_memory(*from.of, offset, wanted))) {
            taken = try_send_file(from.descriptor, offset, wanted);
            is_full = taken < wanted;
            // A peer may read as fast as this writes.
            if (!is_full && taken < size) co_await here.yield();
        }
        if (taken == 0 && !copies_files_) {
            const std::size_t most =
                std::min(wanted, is_full ? waiting_slice_bytes : file_slice_bytes);
            std::string_view next = from.mapped.substr(0, most);
            if (from.of) {
                const auto got = co_await slice.read(*from.of, offset, most);
                if (!got) co_return fail(got.error());
                next = *got;
            }
            const auto sent = co_await send({}, next, {}, deadline);
            if (!sent) co_return sent;
            taken = next.size();
            left_ -= taken;
            is_full = false;
        }
        offset += taken;
        size -= taken;
        if (!from.of) from.mapped.remove_prefix(taken);
    }
    if (size == 0) co_return result<>();
    if (from.of) co_return co_await body_writer::write_file(*from.of, offset, size);
    co_return co_await write(from.mapped);
}

/// Sends what goes without waiting, and returns how many bytes of the file that was. Whatever fails
/// is reported by the slices that follow.
std::size_t message_writer::try_send_file(int from, std::uint64_t offset, std::size_t size) {
    const std::size_t waiting = head_.size();
    const auto sent = to_.try_send_file(head_.bytes(), from, offset, size);
    if (!sent) {
        copies_files_ = true;
        return 0;
    }
    const std::size_t of_head = std::min(*sent, waiting);
    const std::size_t of_file = *sent - of_head;
    head_.consume(of_head);
    left_ -= of_file;
    counted_.out += *sent;
    counted_.content_out += of_file;
    return of_file;
}

}  // namespace eddy::http
