// Opening, feeding and closing of zlib's streams.
#include "http/codings/zlib_stream.hpp"

#include <eddy/base/assert.hpp>

#include <zlib.h>

#include <algorithm>
#include <new>

namespace eddy::http {
namespace {

// Output room at each call; zlib wants more than six bytes for a flush.
constexpr std::size_t least_room = 256;
constexpr std::size_t most_room = 64 * 1024;

}  // namespace

void deflate_deleter::operator()(z_stream_s* stream) const noexcept {
    deflateEnd(stream);
    delete stream;
}

void inflate_deleter::operator()(z_stream_s* stream) const noexcept {
    inflateEnd(stream);
    delete stream;
}

deflate_stream open_deflate(int level, int window_bits, int memory_level) noexcept {
    auto* const made = new (std::nothrow) z_stream_s();
    if (made == nullptr) return nullptr;
    if (deflateInit2(made, level, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        delete made;
        return nullptr;
    }
    return deflate_stream(made);
}

inflate_stream open_inflate(int window_bits) noexcept {
    auto* const made = new (std::nothrow) z_stream_s();
    if (made == nullptr) return nullptr;
    if (inflateInit2(made, window_bits) != Z_OK) {
        delete made;
        return nullptr;
    }
    return inflate_stream(made);
}

int memory_level_for(unsigned window_bits) noexcept {
    return std::clamp(static_cast<int>(window_bits) - 7, 1, 8);
}

std::size_t room_for(std::size_t input) noexcept {
    return std::clamp(input, least_room, most_room);
}

void set_input(z_stream_s& stream, std::string_view data) noexcept {
    EDDY_ASSERT(data.size() <= most_zlib_input);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<unsigned>(data.size());
}

void deflate_into(z_stream_s& stream, std::string_view data, int flush, byte_buffer& out) {
    do {
        const std::string_view part = data.substr(0, most_zlib_input);
        data.remove_prefix(part.size());
        set_input(stream, part);
        const int how = data.empty() ? flush : Z_NO_FLUSH;
        do {
            const std::size_t room = room_for(stream.avail_in);
            stream.next_out = reinterpret_cast<Bytef*>(out.reserve(room));
            stream.avail_out = static_cast<unsigned>(room);
            const int status = deflate(&stream, how);
            EDDY_ASSERT(status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END);
            out.commit(room - stream.avail_out);
        } while (stream.avail_out == 0);
    } while (!data.empty());
}

}  // namespace eddy::http
