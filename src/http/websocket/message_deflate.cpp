// Raw deflate streams that are flushed at each message's end.
#include "http/websocket/message_deflate.hpp"

#include <eddy/base/assert.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace eddy::http {
namespace {

using eddy::websocket::deflate_terms;
using eddy::websocket::role;

// The empty block that a flush ends with, which is not sent.
constexpr std::string_view tail("\x00\x00\xff\xff", 4);

// An empty message, as one empty block without its tail.
constexpr char empty_message = '\x00';

thread_local std::uint64_t begun_messages = 0;

std::unexpected<std::error_code> no_memory() noexcept { return fail(std::errc::not_enough_memory); }

}  // namespace

message_compressor::message_compressor(const deflate_terms& terms, role sender, int level) noexcept
    : level_(level),
      window_bits_(sender == role::server ? terms.server_max_window_bits
                                          : terms.client_max_window_bits),
      keeps_context_(sender == role::server ? !terms.server_no_context_takeover
                                            : !terms.client_no_context_takeover) {}

result<> message_compressor::open() noexcept {
    if (stream_) {
        if (!keeps_context_ || is_context_stale_) deflateReset(stream_.get());
        is_context_stale_ = false;
        return {};
    }
    is_context_stale_ = false;
    // zlib has no raw window of 8 bits. One of 9 has distances of at most 250, which fit: it stays
    // 262 bytes below the window's size.
    const int bits = static_cast<int>(std::max(window_bits_, 9U));
    stream_ = open_deflate(level_, -bits, memory_level_for(window_bits_));
    if (!stream_) return no_memory();
    return {};
}

result<> message_compressor::add(std::string_view piece, bool is_last, byte_buffer& out) {
    if (!is_in_message_) {
        has_data_ = false;
        ++begun_messages;
        if (result<> opened = open(); !opened) return opened;
    }
    is_in_message_ = !is_last;
    has_data_ |= !piece.empty();
    if (!has_data_) {
        // Two flushes without data in between yield nothing.
        if (is_last) out.append(empty_message);
        return {};
    }
    try {
        deflate_into(*stream_, piece, is_last ? Z_SYNC_FLUSH : Z_NO_FLUSH, out);
    } catch (...) {
        is_in_message_ = false;
        stream_.reset();
        throw;
    }
    if (is_last) {
        EDDY_ASSERT(out.text().ends_with(tail));
        out.truncate(out.size() - tail.size());
    }
    return {};
}

std::uint64_t message_compressor::messages_begun() noexcept { return begun_messages; }

message_compressor& single_message_compressor(unsigned window_bits) {
    using eddy::websocket::least_window_bits;
    using eddy::websocket::most_window_bits;
    using by_window = std::array<std::unique_ptr<message_compressor>, most_window_bits + 1>;
    thread_local by_window kept;
    EDDY_ASSERT(window_bits >= least_window_bits && window_bits <= most_window_bits);
    auto& one = kept[window_bits];
    if (!one) {
        deflate_terms alone;
        alone.server_no_context_takeover = true;
        alone.server_max_window_bits = window_bits;
        one = std::make_unique<message_compressor>(alone, role::server);
    }
    return *one;
}

message_inflater::message_inflater(const deflate_terms& terms, role sender) noexcept
    : window_bits_(sender == role::server ? terms.server_max_window_bits
                                          : terms.client_max_window_bits),
      keeps_context_(sender == role::server ? !terms.server_no_context_takeover
                                            : !terms.client_no_context_takeover) {}

result<> message_inflater::open() noexcept {
    if (stream_) {
        if (!keeps_context_) inflateReset(stream_.get());
        return {};
    }
    stream_ = open_inflate(-static_cast<int>(window_bits_));
    if (!stream_) return no_memory();
    return {};
}

// Behind a final block another stream may follow, with the window of the one before.
result<> message_inflater::begin_next_stream() {
    std::vector<Bytef> window(std::size_t{1} << eddy::websocket::most_window_bits);
    unsigned size = 0;
    if (inflateGetDictionary(stream_.get(), window.data(), &size) != Z_OK ||
        inflateReset(stream_.get()) != Z_OK ||
        inflateSetDictionary(stream_.get(), window.data(), size) != Z_OK) {
        return no_memory();
    }
    has_ended_ = false;
    return {};
}

result<> message_inflater::inflate_all(std::string_view data, byte_buffer& out,
                                       std::uint64_t limit) {
    set_input(*stream_, data);
    bool is_full = false;
    while (stream_->avail_in > 0 || is_full) {
        if (has_ended_) {
            if (stream_->avail_in == 0) break;
            if (result<> next = begin_next_stream(); !next) return next;
        }
        // At the limit there is room for one byte, which shows that the message is larger.
        const std::uint64_t left = limit - size_;
        const bool is_at_limit = left == 0;
        Bytef beyond = 0;
        std::size_t room = 1;
        if (is_at_limit) {
            stream_->next_out = &beyond;
        } else {
            room = static_cast<std::size_t>(
                std::min<std::uint64_t>(left, room_for(std::size_t{stream_->avail_in} * 2)));
            stream_->next_out = reinterpret_cast<Bytef*>(out.reserve(room));
        }
        stream_->avail_out = static_cast<unsigned>(room);
        const int status = inflate(stream_.get(), Z_SYNC_FLUSH);
        const std::size_t made = room - stream_->avail_out;
        if (is_at_limit && made > 0) return fail(errc::limit_reached);
        if (!is_at_limit) out.commit(made);
        size_ += made;
        if (status == Z_MEM_ERROR) return no_memory();
        if (status == Z_STREAM_END)
            has_ended_ = true;
        else if (status != Z_OK && status != Z_BUF_ERROR)
            return fail(errc::malformed);
        is_full = stream_->avail_out == 0 && !has_ended_;
    }
    return {};
}

void message_inflater::drop_stream() noexcept {
    stream_.reset();
    is_in_message_ = false;
    has_ended_ = false;
}

result<> message_inflater::add(std::string_view piece, bool is_last, byte_buffer& out,
                               std::uint64_t limit) {
    const auto lost = [this](std::error_code why) {
        drop_stream();
        return fail(why);
    };
    if (!is_in_message_) {
        if (result<> opened = open(); !opened) return opened;
        size_ = 0;
        if (!keeps_context_) has_ended_ = false;
    }
    is_in_message_ = !is_last;
    if (size_ > limit) return lost(make_error_code(errc::limit_reached));
    try {
        while (!piece.empty()) {
            const std::string_view part = piece.substr(0, most_zlib_input);
            piece.remove_prefix(part.size());
            if (result<> done = inflate_all(part, out, limit); !done) return lost(done.error());
        }
        // A sender without a flush may end with a final block, and nothing behind it.
        if (!is_last || has_ended_) return {};
        if (result<> done = inflate_all(tail, out, limit); !done) return lost(done.error());
    } catch (...) {
        drop_stream();
        throw;
    }
    constexpr int is_behind_a_block = 128;
    if ((stream_->data_type & is_behind_a_block) == 0)
        return lost(make_error_code(errc::malformed));
    return {};
}

}  // namespace eddy::http
