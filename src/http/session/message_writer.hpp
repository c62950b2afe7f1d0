// Sending side of a message: a head that goes out with the first piece of the body, and its
// framing.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/body.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include "http/traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

namespace eddy::http {

/// Writer of one message. Nothing is copied but the head; a slice goes out as one vectored write,
/// and a file from the kernel's memory where the stream can do that.
/// Stream and head must outlive it. One loop's thread.
class message_writer final : public body_writer {
public:
    /// At most so much is written within one limit of time: a large piece takes several.
    static constexpr std::size_t slice_limit = 256 * 1024;
    /// A file that meets a full socket waits for room with so much of it.
    static constexpr std::size_t waiting_slice_bytes = 16 * 1024;

    /// `head` has the written head, and is empty once that was sent. Each slice may take
    /// `write_time`.
    message_writer(stream& to, byte_buffer& head, http1::body_framing framing, duration write_time,
                   traffic& counted) noexcept
        : to_(to),
          head_(head),
          left_(framing.size),
          write_time_(write_time),
          counted_(counted),
          framing_(framing.how) {}

    task<result<>> write(std::string_view piece) override;
    task<result<>> write_file(file& from, std::uint64_t offset, std::uint64_t size) override;
    task<result<>> write_mapped(std::string_view piece, int memory, std::uint64_t offset) override;
    bool set_trailers(http1::header_list fields) override;

    /// The peer takes trailers.
    void allow_trailers() noexcept { allows_trailers_ = true; }

    /// Sends the head if it still waits.
    task<result<>> flush();
    /// Ends the body in `head`, which is to be sent; a chunked body ends with `trailers`, or the
    /// ones that were set. errc::truncated when the body is shorter than declared, and failure().
    result<> end(const http1::header_list* trailers = nullptr);
    /// Ends the body and sends that.
    task<result<>> finish();
    /// Records the result of the owner's sending of `head`.
    result<> note_sent(std::error_code error) noexcept;

    /// The stream's error, or errc::timed_out, that ended sending; none before.
    std::error_code failure() const noexcept { return failure_; }

private:
    /// Where the pages of a file are.
    struct pages {
        file* of;  // null for mapped pages
        int descriptor;
        std::string_view mapped;
    };

    task<result<>> send(std::string_view before, std::string_view content, std::string_view after,
                        time_point deadline);
    task<result<>> write_pages(pages from, std::uint64_t offset, std::uint64_t size);
    std::size_t try_send_file(int from, std::uint64_t offset, std::size_t size);
    result<> end_by(std::error_code failure) noexcept;

    stream& to_;
    byte_buffer& head_;
    std::uint64_t left_;  // of the declared size
    duration write_time_;
    traffic& counted_;
    std::unique_ptr<http1::header_list> trailers_;  // null for none, as nearly always
    std::error_code failure_;
    http1::body_framing::kind framing_;
    bool allows_trailers_ = false;
    bool copies_files_ = false;  // the stream does so anyway
};

}  // namespace eddy::http
