// Encoders over zlib, libbrotlienc and libzstd.
#include "http/codings/encoder.hpp"

#include <eddy/base/assert.hpp>

#include "http/codings/zlib_stream.hpp"

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace eddy::http {
namespace {

// Levels for content that is compressed while a client waits: of each library the one above which
// time grows much faster than the content shrinks.
constexpr int zlib_level = 6;
constexpr std::uint32_t br_quality = 4;
constexpr int zstd_level = 3;

/// The bits of a window that holds content of this size, within what a library takes.
unsigned window_bits_for(std::optional<std::uint64_t> size, unsigned least, unsigned most) {
    if (!size) return most;
    return std::clamp(static_cast<unsigned>(std::bit_width(*size)), least, most);
}

class zlib_encoder final : public encoder {
public:
    explicit zlib_encoder(deflate_stream stream) noexcept : stream_(std::move(stream)) {}

    result<> add(std::string_view piece, after then, byte_buffer& out) override {
        const int flush = then == after::end     ? Z_FINISH
                          : then == after::flush ? Z_SYNC_FLUSH
                                                 : Z_NO_FLUSH;
        deflate_into(*stream_, piece, flush, out);
        return {};
    }

private:
    deflate_stream stream_;
};

class br_encoder final : public encoder {
public:
    br_encoder() noexcept : state_(BrotliEncoderCreateInstance(nullptr, nullptr, nullptr)) {}
    ~br_encoder() override { BrotliEncoderDestroyInstance(state_); }
    /// Null without memory.
    BrotliEncoderState* state() const noexcept { return state_; }

    result<> add(std::string_view piece, after then, byte_buffer& out) override {
        const BrotliEncoderOperation how = then == after::end     ? BROTLI_OPERATION_FINISH
                                           : then == after::flush ? BROTLI_OPERATION_FLUSH
                                                                  : BROTLI_OPERATION_PROCESS;
        const auto* next = reinterpret_cast<const std::uint8_t*>(piece.data());
        std::size_t left = piece.size();
        do {
            // Without room of ours, output stays in the encoder's own.
            std::size_t room = 0;
            if (!BrotliEncoderCompressStream(state_, how, &left, &next, &room, nullptr, nullptr))
                return fail(std::errc::not_enough_memory);
            std::size_t size = 0;
            const std::uint8_t* const made = BrotliEncoderTakeOutput(state_, &size);
            out.append(std::string_view(reinterpret_cast<const char*>(made), size));
        } while (left > 0 || BrotliEncoderHasMoreOutput(state_) ||
                 (then == after::end && !BrotliEncoderIsFinished(state_)));
        return {};
    }

private:
    BrotliEncoderState* state_;
};

class zstd_encoder final : public encoder {
public:
    zstd_encoder() noexcept : context_(ZSTD_createCCtx()) {}
    ~zstd_encoder() override { ZSTD_freeCCtx(context_); }
    /// Null without memory.
    ZSTD_CCtx* context() const noexcept { return context_; }

    result<> add(std::string_view piece, after then, byte_buffer& out) override {
        const ZSTD_EndDirective how = then == after::end     ? ZSTD_e_end
                                      : then == after::flush ? ZSTD_e_flush
                                                             : ZSTD_e_continue;
        ZSTD_inBuffer in{piece.data(), piece.size(), 0};
        for (;;) {
            const std::size_t size = room_for(in.size - in.pos);
            ZSTD_outBuffer to{out.reserve(size), size, 0};
            const std::size_t left = ZSTD_compressStream2(context_, &to, &in, how);
            // The calls are right, so the only possible error is lack of memory.
            if (ZSTD_isError(left)) return fail(std::errc::not_enough_memory);
            out.commit(to.pos);
            if (in.pos == in.size && (left == 0 || how == ZSTD_e_continue)) return {};
        }
    }

private:
    ZSTD_CCtx* context_;
};

std::unique_ptr<encoder> make_zlib(int format, std::optional<std::uint64_t> size) {
    // One of 9 bits is the least that gzip's and zlib's formats take.
    const unsigned bits = window_bits_for(size, 9, deflate_window_bits);
    deflate_stream stream =
        open_deflate(zlib_level, static_cast<int>(bits) + format, memory_level_for(bits));
    return stream ? std::make_unique<zlib_encoder>(std::move(stream)) : nullptr;
}

std::unique_ptr<encoder> make_br(std::optional<std::uint64_t> size) {
    auto made = std::make_unique<br_encoder>();
    BrotliEncoderState* const state = made->state();
    if (state == nullptr) return nullptr;
    BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, br_quality);
    BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN,
                              window_bits_for(size, BROTLI_MIN_WINDOW_BITS, br_window_bits));
    if (size)
        BrotliEncoderSetParameter(
            state, BROTLI_PARAM_SIZE_HINT,
            static_cast<std::uint32_t>(std::min<std::uint64_t>(*size, std::uint32_t{1} << 30)));
    return made;
}

std::unique_ptr<encoder> make_zstd(std::optional<std::uint64_t> size) {
    auto made = std::make_unique<zstd_encoder>();
    ZSTD_CCtx* const context = made->context();
    if (context == nullptr) return nullptr;
    const unsigned bits = window_bits_for(size, 10, zstd_window_bits);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, zstd_level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, static_cast<int>(bits));
    return made;
}

}  // namespace

result<std::unique_ptr<encoder>> encoder::make(content_coding coding,
                                               std::optional<std::uint64_t> size) {
    constexpr int zlib_format = 0;
    constexpr int gzip_format = 16;
    std::unique_ptr<encoder> made;
    switch (coding) {
        case content_coding::gzip: made = make_zlib(gzip_format, size); break;
        case content_coding::deflate: made = make_zlib(zlib_format, size); break;
        case content_coding::br: made = make_br(size); break;
        case content_coding::zstd: made = make_zstd(size); break;
        case content_coding::identity: EDDY_ASSERT(false);
    }
    if (!made) return fail(std::errc::not_enough_memory);
    return made;
}

}  // namespace eddy::http
