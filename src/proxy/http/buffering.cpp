// Content that waits in memory.
#include "proxy/http/buffering.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>

namespace eddy::proxy {
namespace {

/// Content is written so many bytes at a time; each frees its room.
constexpr std::size_t most_a_write = std::size_t{64} * 1024;

}  // namespace

bool buffer_budget::take(std::size_t bytes) noexcept {
    std::uint64_t before = taken_.load(std::memory_order_relaxed);
    do {
        EDDY_ASSERT(before <= most_);
        if (bytes > most_ - before) return false;
    } while (!taken_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    return true;
}

void buffer_budget::give_back(std::size_t bytes) noexcept {
    const std::uint64_t before = taken_.fetch_sub(bytes, std::memory_order_relaxed);
    EDDY_ASSERT(before >= bytes);
}

void budget_share::give_back(std::size_t bytes) noexcept {
    EDDY_ASSERT(bytes <= bytes_);
    bytes_ -= bytes;
    of_->give_back(bytes);
}

task<result<std::shared_ptr<const held_content>>> hold_content(http::body_reader& from,
                                                               std::size_t most,
                                                               std::shared_ptr<buffer_budget> of) {
    auto made = std::make_shared<held_content>(std::move(of));
    for (;;) {
        const auto piece = co_await from.read();
        if (!piece) {
            made->is_whole = piece.error() == errc::end_of_stream;
            if (!made->is_whole) co_return fail(piece.error());
            break;
        }
        const bool has_room =
            piece->size() <= most - made->bytes.size() && made->share.take(piece->size());
        made->bytes.append(*piece);
        if (!has_room) break;
    }
    co_return std::shared_ptr<const held_content>(std::move(made));
}

task<std::error_code> content_queue::fill(http::client_connection& from) {
    http::body_reader& content = from.response_body();
    for (;;) {
        auto piece = from.try_read();
        if (!piece) piece = co_await content.read();
        if (!*piece) co_return piece->error();
        const bool is_put = co_await put(**piece);
        if (!is_put) co_return std::error_code(errc::cancelled);
    }
}

/// Queues a piece, which lives until then. False: it was cancelled.
task<bool> content_queue::put(std::string_view piece) {
    while (!piece.empty()) {
        const std::size_t size = std::min(piece.size(), most_ - held_);
        if (size > 0 && share_.take(size)) {
            queued_.append(piece.substr(0, size));
            held_ += size;
            piece.remove_prefix(size);
            changed_.set();
            continue;
        }
        if (held_ == 0) {
            borrowed_ = std::exchange(piece, {});
            changed_.set();
        }
        const std::size_t held = held_;
        while (!borrowed_.empty() || (held > 0 && held_ == held)) {
            room_.reset();
            const result<> waited = co_await room_.wait();
            if (!waited) co_return false;
        }
    }
    co_return true;
}

void content_queue::end(std::error_code how) noexcept {
    has_ended_ = true;
    end_ = how;
    changed_.set();
}

task<result<>> content_queue::drain(http::body_writer& to) {
    for (;;) {
        if (!borrowed_.empty()) {
            const result<> sent = co_await to.write(borrowed_);
            if (!sent) co_return sent;
            borrowed_ = {};
            room_.set();
            continue;
        }
        if (queued_.empty()) {
            if (has_ended_) break;
            changed_.reset();
            const result<> waited = co_await changed_.wait();
            if (!waited) co_return waited;
            continue;
        }
        byte_buffer piece = std::move(queued_);
        while (!piece.empty()) {
            const std::string_view next = piece.text().substr(0, most_a_write);
            const result<> sent = co_await to.write(next);
            if (!sent) co_return sent;
            EDDY_ASSERT(held_ >= next.size());
            held_ -= next.size();
            share_.give_back(next.size());
            piece.consume(next.size());
            room_.set();
        }
    }
    if (end_ != errc::end_of_stream) co_return fail(end_);
    co_return result<>();
}

}  // namespace eddy::proxy
