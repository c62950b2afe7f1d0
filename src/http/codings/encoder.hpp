// Encoder of a content coding: gzip, deflate (the zlib format, RFC 9110, 8.4.1.2), br or zstd,
// piece by piece.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>

#include "http/fields/content_coding.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace eddy::http {

/// Windows of the encoders, as powers of two, which bound their memory: about 256 KiB for gzip and
/// deflate, 1.5 MiB for br, 2 MiB for zstd. Content of a known, smaller size takes less.
inline constexpr unsigned deflate_window_bits = 15;
inline constexpr unsigned br_window_bits = 18;
inline constexpr unsigned zstd_window_bits = 17;

/// Compressor of one content. The work of a call is in proportion to its piece: cut what is large.
/// One thread.
class encoder {
public:
    /// Role of a piece's end.
    enum class after : std::uint8_t {
        more,   ///< other pieces follow; the encoder may hold output back
        flush,  ///< a wait follows: all bytes added so far can be decoded from the output
        end,    ///< the content is complete
    };

    /// An encoder of `coding`, which is not identity. `size` is the content's, where it is known.
    /// Fails with ENOMEM.
    [[nodiscard]] static result<std::unique_ptr<encoder>> make(content_coding coding,
                                                               std::optional<std::uint64_t> size);

    encoder() noexcept = default;
    virtual ~encoder() = default;
    encoder(const encoder&) = delete;
    encoder& operator=(const encoder&) = delete;

    /// Appends the encoded form of a piece to `out`; an empty piece may flush or end. Nothing after
    /// the end, or after an error. Fails with ENOMEM; throws std::bad_alloc, as all that grows.
    [[nodiscard]] virtual result<> add(std::string_view piece, after then, byte_buffer& out) = 0;
};

}  // namespace eddy::http
