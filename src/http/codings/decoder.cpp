// Decoders over zlib, libbrotlidec and libzstd.
#include "http/codings/decoder.hpp"

#include <eddy/base/assert.hpp>

#include "http/codings/zlib_stream.hpp"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <utility>

namespace eddy::http {
namespace {

/// Inflates a stream of one format, or several, one behind the other.
class inflater {
public:
    explicit inflater(inflate_stream stream) noexcept : stream_(std::move(stream)) {}

    /// Takes `room` down by what it appends.
    result<> inflate_some(std::string_view& input, byte_buffer& out, std::size_t& room,
                          bool may_repeat) {
        while (room > 0) {
            if (has_ended_) {
                if (input.empty()) return {};
                if (!may_repeat) return fail(errc::malformed);
                inflateReset(stream_.get());
                has_ended_ = false;
            }
            const std::string_view part = input.substr(0, most_zlib_input);
            const std::size_t size = std::min(room, most_zlib_input);
            set_input(*stream_, part);
            stream_->next_out = reinterpret_cast<Bytef*>(out.reserve(size));
            stream_->avail_out = static_cast<unsigned>(size);
            const int status = inflate(stream_.get(), Z_SYNC_FLUSH);
            input.remove_prefix(part.size() - stream_->avail_in);
            out.commit(size - stream_->avail_out);
            room -= size - stream_->avail_out;
            if (status == Z_MEM_ERROR) return fail(std::errc::not_enough_memory);
            if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
                return fail(errc::malformed);
            has_ended_ = status == Z_STREAM_END;
            if (input.empty() && !has_ended_) return {};
        }
        return {};
    }

    bool has_ended() const noexcept { return has_ended_; }

private:
    inflate_stream stream_;
    bool has_ended_ = false;
};

class gzip_format final : public decoder::format {
public:
    explicit gzip_format(inflate_stream stream) noexcept : inflater_(std::move(stream)) {}

    result<> decode(std::string_view& input, byte_buffer& out, std::size_t room) override {
        return inflater_.inflate_some(input, out, room, true);
    }
    bool is_complete() const noexcept override { return inflater_.has_ended(); }

private:
    inflater inflater_;
};

/// The zlib format, or raw deflate, which some senders take for it. The first two bytes decide: a
/// raw stream that began like a header of zlib's would be a stored block with padding that no
/// compressor writes.
class deflate_format final : public decoder::format {
public:
    result<> decode(std::string_view& input, byte_buffer& out, std::size_t room) override {
        if (!inflater_) {
            while (begun_ < begin_.size() && !input.empty()) {
                begin_[begun_++] = input.front();
                input.remove_prefix(1);
            }
            if (begun_ < begin_.size()) return {};
            constexpr int bits = deflate_decoder_window_bits;
            inflate_stream stream = open_inflate(is_zlib() ? bits : -bits);
            if (!stream) return fail(std::errc::not_enough_memory);
            inflater_ = std::make_unique<inflater>(std::move(stream));
            held_ = {begin_.data(), begin_.size()};
        }
        if (!held_.empty()) {
            auto done = inflater_->inflate_some(held_, out, room, false);
            if (!done || !held_.empty()) return done;
        }
        return inflater_->inflate_some(input, out, room, false);
    }
    bool is_complete() const noexcept override {
        return inflater_ && held_.empty() && inflater_->has_ended();
    }

private:
    /// Method 8, a window of at most 32 KiB, and the check of both bytes (RFC 1950, 2.2).
    bool is_zlib() const noexcept {
        const auto first = static_cast<unsigned char>(begin_[0]);
        const auto second = static_cast<unsigned char>(begin_[1]);
        return (first & 15) == 8 && (first >> 4) <= 7 && (first * 256 + second) % 31 == 0;
    }

    std::array<char, 2> begin_{};
    std::size_t begun_ = 0;
    std::string_view held_;  // of begin_, not inflated yet
    std::unique_ptr<inflater> inflater_;
};

class br_format final : public decoder::format {
public:
    br_format() noexcept : state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {}
    ~br_format() override { BrotliDecoderDestroyInstance(state_); }
    /// False without memory.
    bool is_open() const noexcept { return state_ != nullptr; }

    result<> decode(std::string_view& input, byte_buffer& out, std::size_t room) override {
        if (is_complete()) {
            if (input.empty()) return {};
            return fail(errc::malformed);
        }
        const auto* next = reinterpret_cast<const std::uint8_t*>(input.data());
        std::size_t left = input.size();
        auto* to = reinterpret_cast<std::uint8_t*>(out.reserve(room));
        std::size_t free = room;
        const BrotliDecoderResult done =
            BrotliDecoderDecompressStream(state_, &left, &next, &free, &to, nullptr);
        input.remove_prefix(input.size() - left);
        out.commit(room - free);
        if (done == BROTLI_DECODER_RESULT_ERROR) {
            const BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(state_);
            const bool is_memory = code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                                   code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
            if (is_memory) return fail(std::errc::not_enough_memory);
            return fail(errc::malformed);
        }
        if (done == BROTLI_DECODER_RESULT_SUCCESS && !input.empty()) return fail(errc::malformed);
        return {};
    }
    bool is_complete() const noexcept override { return BrotliDecoderIsFinished(state_) != 0; }

private:
    BrotliDecoderState* state_;
};

class zstd_format final : public decoder::format {
public:
    zstd_format() noexcept : context_(ZSTD_createDCtx()) {
        if (context_ != nullptr)
            ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, zstd_decoder_window_bits);
    }
    ~zstd_format() override { ZSTD_freeDCtx(context_); }
    /// False without memory.
    bool is_open() const noexcept { return context_ != nullptr; }

    result<> decode(std::string_view& input, byte_buffer& out, std::size_t room) override {
        ZSTD_outBuffer to{out.reserve(room), room, 0};
        ZSTD_inBuffer in{input.data(), input.size(), 0};
        // A frame that is complete takes no call without input: it would ask for the next one.
        while (to.pos < to.size && (in.pos < in.size || !is_complete_)) {
            if (is_complete_) begun_ = 0;
            if (!takes_magic(input.substr(in.pos))) return fail(errc::malformed);
            const std::size_t taken = in.pos;
            const std::size_t made = to.pos;
            const std::size_t left = ZSTD_decompressStream(context_, &to, &in);
            if (ZSTD_isError(left)) {
                input.remove_prefix(in.pos);
                return fail(error_of(left));
            }
            is_complete_ = left == 0;
            begun_ = std::min(begun_ + in.pos - taken, magic_size);
            if (in.pos == taken && to.pos == made) break;
        }
        input.remove_prefix(in.pos);
        out.commit(to.pos);
        return {};
    }
    bool is_complete() const noexcept override { return is_complete_; }

private:
    static constexpr std::size_t magic_size = 4;

    /// True if the next bytes of a frame's magic number are one of RFC 8878, 3.1.1 and 3.1.2. The
    /// library may accept frames of versions before 0.8, too, if their first five bytes come at
    /// once.
    bool takes_magic(std::string_view next) const noexcept {
        constexpr std::string_view frame = "\x28\xb5\x2f\xfd";
        constexpr std::string_view skippable = "\x50\x2a\x4d\x18";
        constexpr char skippable_kinds = 0x0f;  // of its first byte
        const std::size_t count = std::min(next.size(), magic_size - begun_);
        if (next.substr(0, count) == frame.substr(begun_, count)) return true;
        for (std::size_t i = 0; i < count; ++i) {
            const auto byte =
                static_cast<char>(begun_ + i == 0 ? next[i] & ~skippable_kinds : next[i]);
            if (byte != skippable[begun_ + i]) return false;
        }
        return true;
    }

    static std::error_code error_of(std::size_t code) noexcept {
        switch (ZSTD_getErrorCode(code)) {
            case ZSTD_error_frameParameter_windowTooLarge: return errc::limit_reached;
            case ZSTD_error_memory_allocation:
                return std::make_error_code(std::errc::not_enough_memory);
            default: return errc::malformed;
        }
    }

    ZSTD_DCtx* context_;
    std::size_t begun_ = 0;  // bytes of the frame's magic number that were taken
    bool is_complete_ = false;
};

std::unique_ptr<decoder::format> make_gzip() {
    constexpr int of_gzip_alone = 16;
    inflate_stream stream = open_inflate(deflate_decoder_window_bits + of_gzip_alone);
    return stream ? std::make_unique<gzip_format>(std::move(stream)) : nullptr;
}

template <class Format>
std::unique_ptr<decoder::format> make_open() {
    auto made = std::make_unique<Format>();
    return made->is_open() ? std::move(made) : nullptr;
}

}  // namespace

decoder::decoder(std::unique_ptr<format> by) noexcept : format_(std::move(by)) {}

result<decoder> decoder::make(content_coding coding) {
    std::unique_ptr<format> made;
    switch (coding) {
        case content_coding::gzip: made = make_gzip(); break;
        case content_coding::deflate: made = std::make_unique<deflate_format>(); break;
        case content_coding::br: made = make_open<br_format>(); break;
        case content_coding::zstd: made = make_open<zstd_format>(); break;
        case content_coding::identity: EDDY_ASSERT(false);
    }
    if (!made) return fail(std::errc::not_enough_memory);
    return decoder(std::move(made));
}

result<> decoder::decode(std::string_view& input, byte_buffer& out, std::size_t room,
                         std::uint64_t limit, const expansion_limits& expansion) {
    EDDY_ASSERT(room > 0);
    const std::size_t given = input.size();
    const std::size_t before = out.size();
    result<> done = format_->decode(input, out, room);
    taken_ += given - input.size();
    made_ += out.size() - before;
    if (!done) return done;
    if (made_ > limit) return fail(errc::limit_reached);
    if (!is_within(expansion, taken_)) return fail(errc::limit_reached);
    return {};
}

bool decoder::is_within(const expansion_limits& expansion, std::uint64_t taken) const noexcept {
    return made_ <= expansion.free_bytes || made_ / std::max(expansion.ratio, 1U) <= taken;
}

result<> decoder::finish() const noexcept {
    if (taken_ > 0 && !format_->is_complete()) return fail(errc::truncated);
    return {};
}

}  // namespace eddy::http
