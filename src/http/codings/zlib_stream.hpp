// Streams of zlib as owned objects, and the loops around deflate() that all formats of it share.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

struct z_stream_s;

namespace eddy::http {

struct deflate_deleter {
    void operator()(z_stream_s* stream) const noexcept;
};
struct inflate_deleter {
    void operator()(z_stream_s* stream) const noexcept;
};
using deflate_stream = std::unique_ptr<z_stream_s, deflate_deleter>;
using inflate_stream = std::unique_ptr<z_stream_s, inflate_deleter>;

/// A compressor; null when zlib gets no memory. `window_bits` are those of deflateInit2(): 9 to 15
/// for the zlib format, negative for raw deflate, 16 more for gzip.
deflate_stream open_deflate(int level, int window_bits, int memory_level) noexcept;
/// An inflater; null when zlib gets no memory.
inflate_stream open_inflate(int window_bits) noexcept;

/// zlib's level of memory that has a hash table in proportion to a window of so many bits: 128 KiB
/// for one of 32 KiB.
int memory_level_for(unsigned window_bits) noexcept;

/// Output room of a call for so much input.
std::size_t room_for(std::size_t input) noexcept;

/// zlib takes sizes of unsigned int.
inline constexpr std::size_t most_zlib_input = std::size_t{1} << 31;

/// Makes `data`, at most most_zlib_input bytes, the stream's input.
void set_input(z_stream_s& stream, std::string_view data) noexcept;

/// Compresses `data` to the end of `out`, and then flushes as `flush` says, a constant of zlib's.
/// Throws std::bad_alloc, as all that grows; the stream is unusable then.
void deflate_into(z_stream_s& stream, std::string_view data, int flush, byte_buffer& out);

}  // namespace eddy::http
