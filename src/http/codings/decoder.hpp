// Decoder of a content coding: gzip, deflate, br or zstd, piece by piece, with limits on what comes
// out.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/compression.hpp>

#include "http/fields/content_coding.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace eddy::http {

/// Windows of the decoders, as powers of two, which bound their memory to about twice as much:
/// deflate's and br's largest, and the one that RFC 9659 allows for zstd.
inline constexpr unsigned deflate_decoder_window_bits = 15;
inline constexpr unsigned br_decoder_window_bits = 24;
inline constexpr unsigned zstd_decoder_window_bits = 23;

/// Decoder of one content. Deflate may come in the zlib format or raw; gzip members and zstd frames
/// may follow one another. Content without a byte is empty. One thread.
class decoder {
public:
    /// A decoder of `coding`, which is not identity. Fails with ENOMEM.
    [[nodiscard]] static result<decoder> make(content_coding coding);

    /// Decodes from the front of `input`, off which it takes what it has used, and appends at most
    /// `room` bytes, 1 or more, to `out`. When it appends `room` there may be more, also with the
    /// input used up: call again. When it appends less, the input is used up.
    ///
    /// errc::malformed for damaged data, and for any behind the content's end; errc::limit_reached
    /// beyond `limit` bytes decoded, beyond the expansion that `expansion` allows, and for a window
    /// that is too large; ENOMEM. All are final. Throws std::bad_alloc, as all that grows.
    [[nodiscard]] result<> decode(std::string_view& input, byte_buffer& out, std::size_t room,
                                  std::uint64_t limit, const expansion_limits& expansion);

    /// Bytes of input that it has used.
    std::uint64_t taken() const noexcept { return taken_; }
    /// True while the decoded bytes are within `expansion` of `taken` bytes: of its own input, or
    /// of the input of the decoder before it.
    bool is_within(const expansion_limits& expansion, std::uint64_t taken) const noexcept;

    /// After the last input: errc::truncated when the content is not complete.
    [[nodiscard]] result<> finish() const noexcept;

    /// Decoder of a format, without limits.
    class format {
    public:
        format() noexcept = default;
        virtual ~format() = default;
        format(const format&) = delete;
        format& operator=(const format&) = delete;

        /// As decoder::decode().
        virtual result<> decode(std::string_view& input, byte_buffer& out, std::size_t room) = 0;
        /// True where the content may end.
        virtual bool is_complete() const noexcept = 0;
    };

private:
    explicit decoder(std::unique_ptr<format> by) noexcept;

    std::unique_ptr<format> format_;
    std::uint64_t taken_ = 0;
    std::uint64_t made_ = 0;
};

}  // namespace eddy::http
