// Heads and whole frames.
#include <eddy/wire/websocket/writer.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>

#include "wire/websocket/head.hpp"

namespace eddy::websocket {

frame_head::frame_head(const frame& of, std::uint64_t payload_size) noexcept {
    EDDY_ASSERT(payload_size <= payload_limit);
    EDDY_ASSERT(!is_control(of.kind) ||
                (of.is_last && !of.is_compressed && payload_size <= control_payload_limit));
    EDDY_ASSERT(!of.is_compressed || of.kind != opcode::continuation);
    const unsigned length = payload_size <= control_payload_limit
                                ? static_cast<unsigned>(payload_size)
                            : payload_size <= 0xffff ? length_of_16_bits
                                                     : length_of_64_bits;
    bytes_[0] = static_cast<char>(static_cast<unsigned>(of.kind) | (of.is_last ? fin_bit : 0) |
                                  (of.is_compressed ? rsv1_bit : 0));
    bytes_[1] = static_cast<char>(length | (of.mask ? mask_bit : 0));
    size_ = 2;
    for (std::size_t left = extended_length_size(length); left > 0; --left)
        bytes_[size_++] = static_cast<char>(payload_size >> 8 * (left - 1));
    if (!of.mask) return;
    for (const std::uint8_t byte : *of.mask) bytes_[size_++] = static_cast<char>(byte);
}

void write_frame(byte_buffer& out, const frame& of, std::string_view payload) {
    const frame_head head(of, payload.size());
    out.reserve(head.text().size() + payload.size());
    out.append(head.text());
    if (!of.mask) {
        out.append(payload);
        return;
    }
    auto* const to = reinterpret_cast<std::byte*>(out.reserve(payload.size()));
    copy_masked(to, as_bytes(payload), *of.mask);
    out.commit(payload.size());
}

result<> write_control(byte_buffer& out, opcode kind, std::string_view payload,
                       std::optional<mask_key> mask) {
    EDDY_ASSERT(kind == opcode::ping || kind == opcode::pong);
    if (payload.size() > control_payload_limit) return fail(errc::limit_reached);
    write_frame(out, {.kind = kind, .mask = mask}, payload);
    return {};
}

result<> write_close(byte_buffer& out, close_code code, std::string_view reason,
                     std::optional<mask_key> mask) {
    std::array<char, control_payload_limit> payload;
    std::size_t size = 0;
    if (code == close_code::none) {
        if (!reason.empty()) return fail(errc::malformed);
    } else {
        if (!is_sendable(code) || !is_utf8(reason)) return fail(errc::malformed);
        std::size_t kept = reason.size();
        if (kept > close_reason_limit) {
            kept = close_reason_limit;
            while ((static_cast<unsigned char>(reason[kept]) & 0xc0U) == 0x80) --kept;
        }
        payload[0] = static_cast<char>(static_cast<unsigned>(code) >> 8);
        payload[1] = static_cast<char>(code);
        reason.copy(payload.data() + 2, kept);
        size = 2 + kept;
    }
    write_frame(out, {.kind = opcode::close, .mask = mask}, {payload.data(), size});
    return {};
}

frame fragments::next(bool is_last, std::optional<mask_key> mask) noexcept {
    const frame made{kind_, is_last, is_compressed_, mask};
    kind_ = opcode::continuation;
    is_compressed_ = false;
    return made;
}

}  // namespace eddy::websocket
