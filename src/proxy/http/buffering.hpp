// Buffering of content: what a proxy takes from one side at that side's speed while the other one
// is slower or not chosen yet, within a limit for each message and one for all of them together.
//
// Beyond a limit content is streamed as without buffering; no message is refused for it.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "http/client/connection.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::proxy {

/// Bytes that are buffered for all messages of a proxy at most.
inline constexpr std::uint64_t max_buffered_bytes = std::uint64_t{256} << 20;

/// Bytes that may be buffered. Any thread.
class buffer_budget {
public:
    explicit buffer_budget(std::uint64_t most = max_buffered_bytes) noexcept : most_(most) {}

    /// False, and nothing is taken, where fewer are left.
    bool take(std::size_t bytes) noexcept;
    void give_back(std::size_t bytes) noexcept;
    std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

private:
    const std::uint64_t most_;
    std::atomic<std::uint64_t> taken_{0};
};

/// Bytes that one message has taken of a budget; its end gives them back. One thread.
class budget_share {
public:
    explicit budget_share(std::shared_ptr<buffer_budget> of) noexcept : of_(std::move(of)) {}
    budget_share(const budget_share&) = delete;
    budget_share& operator=(const budget_share&) = delete;
    ~budget_share() {
        if (bytes_ > 0) of_->give_back(bytes_);
    }

    bool take(std::size_t bytes) noexcept {
        if (!of_->take(bytes)) return false;
        bytes_ += bytes;
        return true;
    }
    void give_back(std::size_t bytes) noexcept;

private:
    const std::shared_ptr<buffer_budget> of_;
    std::size_t bytes_ = 0;
};

/// Content of a request that was read before it is forwarded, or the beginning of it. One loop's
/// thread.
struct held_content {
    explicit held_content(std::shared_ptr<buffer_budget> of) noexcept : share(std::move(of)) {}

    budget_share share;
    byte_buffer bytes;
    bool is_whole = false;
};

/// Reads content until its end, or until it is larger than `most` bytes or than the budget has
/// left: one received piece comes on top then. `from` must live until then. Yields a
/// result<std::shared_ptr<const held_content>>; errors as of body_reader::read(). A loop's thread.
task<result<std::shared_ptr<const held_content>>> hold_content(http::body_reader& from,
                                                               std::size_t most,
                                                               std::shared_ptr<buffer_budget> of);

/// Queue of a response's content between its backend and a client that reads slower: at most `most`
/// bytes, with the piece that is being written; none that the budget does not have. One loop's
/// thread.
class content_queue {
public:
    content_queue(std::size_t most, std::shared_ptr<buffer_budget> of) noexcept
        : most_(most), share_(std::move(of)) {}
    content_queue(const content_queue&) = delete;
    content_queue& operator=(const content_queue&) = delete;

    /// Reads the content of the response to its end, as fast as there is room. Yields the
    /// std::error_code of the end, errc::end_of_stream where it is whole; end() must follow. Throws
    /// std::bad_alloc.
    task<std::error_code> fill(http::client_connection& from);
    /// End of the content: drain() ends with the rest.
    void end(std::error_code how) noexcept;
    /// Writes what comes. Yields a result<>: the error of end() unless that is errc::end_of_stream,
    /// errors as of body_writer::write(), and errc::cancelled.
    task<result<>> drain(http::body_writer& to);

private:
    task<bool> put(std::string_view piece);

    const std::size_t most_;
    budget_share share_;
    byte_buffer queued_;
    std::size_t held_ = 0;       // bytes of the queue, and of what is being written of it
    std::string_view borrowed_;  // a piece of the backend's connection that the budget has none for
    bool has_ended_ = false;
    std::error_code end_;
    event changed_;  // for drain()
    event room_;     // for fill()
};

}  // namespace eddy::proxy
