// State machine of the frame parser.
#include <eddy/wire/websocket/parser.hpp>

#include "wire/websocket/head.hpp"

#include <algorithm>
#include <cstring>

namespace eddy::websocket {
namespace {

// Masked data is unmasked and checked in blocks of this size, so that the check reads from the
// cache.
constexpr std::size_t block_size = 8 * 1024;

bool is_opcode(unsigned number) noexcept {
    return number <= 0x2 || (number >= 0x8 && number <= 0xa);
}

}  // namespace

bool parser::fail(close_code code, std::string_view what) noexcept {
    error_ = {code, what};
    state_ = state::failed;
    return false;
}

bool parser::check_first_byte() noexcept {
    const unsigned byte = head_[0];
    const unsigned number = byte & opcode_bits;
    if ((byte & other_reserved_bits) != 0)
        return fail(close_code::protocol_error, "a reserved bit of a frame is set");
    if (!is_opcode(number))
        return fail(close_code::protocol_error, "a frame has a reserved opcode");
    kind_ = opcode{static_cast<unsigned char>(number)};
    const bool has_rsv1 = (byte & rsv1_bit) != 0;
    if (is_control(kind_)) {
        if ((byte & fin_bit) == 0)
            return fail(close_code::protocol_error, "a control frame is fragmented");
        if (has_rsv1) return fail(close_code::protocol_error, "a control frame is compressed");
        return true;
    }
    const bool continues = kind_ == opcode::continuation;
    if (continues && !is_in_message_)
        return fail(close_code::protocol_error, "a continuation frame belongs to no message");
    if (!continues && is_in_message_)
        return fail(close_code::protocol_error, "a message begins before the last one's end");
    if (has_rsv1 && continues)
        return fail(close_code::protocol_error, "a continuation frame is marked as compressed");
    if (has_rsv1 && !may_be_compressed_)
        return fail(close_code::protocol_error, "a message is compressed without an agreement");
    return true;
}

bool parser::check_second_byte() noexcept {
    const bool is_masked = (head_[1] & mask_bit) != 0;
    if (is_masked != (role_ == role::server)) {
        return fail(close_code::protocol_error, is_masked ? "a frame of the server is masked"
                                                          : "a frame of the client is not masked");
    }
    const unsigned length = head_[1] & length_bits;
    if (is_control(kind_) && length > control_payload_limit)
        return fail(close_code::protocol_error, "a control frame has more than 125 bytes");
    head_wanted_ = static_cast<std::uint8_t>(2 + extended_length_size(length));
    return true;
}

bool parser::check_length() noexcept {
    std::uint64_t length = head_[1] & length_bits;
    if (const std::size_t extended = extended_length_size(head_[1] & length_bits); extended > 0) {
        length = 0;
        for (std::size_t i = 0; i < extended; ++i) length = length << 8 | head_[2 + i];
        if (length > payload_limit)
            return fail(close_code::protocol_error, "the length of a frame has 64 bits");
        const std::uint64_t least = extended == 2 ? length_of_16_bits : 1U << 16;
        if (length < least)
            return fail(close_code::protocol_error,
                        "the length of a frame is not in its shortest form");
    }
    if (!is_control(kind_)) {
        const std::uint64_t before = kind_ == opcode::continuation ? message_.size : 0;
        if (length > limits_.frame)
            return fail(close_code::message_too_big, "a frame is larger than the limit");
        if (before > limits_.message || length > limits_.message - before)
            return fail(close_code::message_too_big, "a message is larger than the limit");
    }
    left_ = length;
    if (role_ == role::server)
        head_wanted_ = static_cast<std::uint8_t>(head_wanted_ + mask_.size());
    return true;
}

bool parser::read_head(std::string_view input, std::size_t& used) noexcept {
    for (;;) {
        const std::size_t missing = std::size_t{head_wanted_} - head_size_;
        const std::size_t here = std::min(missing, input.size() - used);
        if (here > 0) std::memcpy(head_.data() + head_size_, input.data() + used, here);
        used += here;
        head_size_ = static_cast<std::uint8_t>(head_size_ + here);
        if (here < missing) return false;
        switch (part_) {
            case head_part::first_byte:
                if (!check_first_byte()) return true;
                head_wanted_ = 2;
                part_ = head_part::second_byte;
                break;
            case head_part::second_byte:
                if (!check_second_byte()) return true;
                part_ = head_part::length;
                break;
            case head_part::length:
                if (!check_length()) return true;
                part_ = head_part::mask;
                break;
            case head_part::mask:
                if (role_ == role::server) {
                    std::memcpy(mask_.data(), head_.data() + head_wanted_ - mask_.size(),
                                mask_.size());
                }
                return true;
        }
    }
}

bool parser::begin_frame() {
    mask_offset_ = 0;
    if (is_control(kind_)) {
        if (left_ > 0) control_ = std::make_unique_for_overwrite<control_payload>();
        control_size_ = 0;
        state_ = state::control;
    } else {
        is_last_ = (head_[0] & fin_bit) != 0;
        state_ = state::payload;
        if (kind_ != opcode::continuation) {
            message_ = {kind_, (head_[0] & rsv1_bit) != 0, 0};
            text_.reset();
            is_in_message_ = true;
        }
        message_.size += left_;
    }
    // The next head follows the frame's payload.
    head_size_ = 0;
    head_wanted_ = 1;
    part_ = head_part::first_byte;
    return state_ == state::payload && kind_ != opcode::continuation;
}

bool parser::take_control(std::string_view input, std::size_t& used) noexcept {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - used));
    if (here > 0) {
        auto* const to = reinterpret_cast<std::byte*>(control_->data() + control_size_);
        copy_masked(to, as_bytes(input.substr(used, here)), mask_, mask_offset_);
    }
    used += here;
    left_ -= here;
    mask_offset_ += here;
    control_size_ = static_cast<std::uint8_t>(control_size_ + here);
    return left_ == 0;
}

step parser::end_control(std::size_t used) noexcept {
    step found;
    found.consumed = used;
    if (control_) found.data = {control_->data(), control_size_};
    state_ = state::head;
    if (kind_ != opcode::close) {
        found.what = kind_ == opcode::ping ? event::ping : event::pong;
        return found;
    }
    found.what = event::error;
    if (!found.data.empty()) {
        if (found.data.size() < 2) {
            fail(close_code::protocol_error, "a close frame has one byte");
            return found;
        }
        found.code =
            close_code{static_cast<std::uint16_t>(static_cast<unsigned char>(found.data[0]) << 8 |
                                                  static_cast<unsigned char>(found.data[1]))};
        found.data.remove_prefix(2);
        if (!is_sendable(found.code)) {
            fail(close_code::protocol_error, "a close frame has a code that may not be sent");
            return found;
        }
        if (!is_utf8(found.data)) {
            fail(close_code::invalid_payload, "the reason of a close frame is no UTF-8");
            return found;
        }
    }
    found.what = event::close;
    state_ = state::closed;
    return found;
}

std::size_t parser::take_data(std::string_view input, std::byte* in_place, byte_buffer* message) {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
    std::byte* to = in_place;
    if (message != nullptr) {
        const auto announced =
            static_cast<std::size_t>(std::min<std::uint64_t>(left_, reserve_limit));
        to = reinterpret_cast<std::byte*>(message->reserve(std::max(here, announced)));
    }
    const bool is_checked = message_.kind == opcode::text && !message_.is_compressed;
    std::size_t done = 0;
    while (done < here) {
        const std::size_t size = std::min(block_size, here - done);
        const mutable_bytes block(to + done, size);
        if (role_ == role::server) {
            if (message != nullptr)
                copy_masked(block.data(), as_bytes(input.substr(done, size)), mask_,
                            mask_offset_ + done);
            else
                apply_mask(block, mask_, mask_offset_ + done);
        } else if (message != nullptr) {
            std::memcpy(block.data(), input.data() + done, size);
        }
        const std::size_t valid = is_checked ? text_.check(as_text(block)) : size;
        done += valid;
        if (valid < size) {
            fail(close_code::invalid_payload, "a text is no UTF-8");
            break;
        }
    }
    if (message != nullptr) message->commit(done);
    left_ -= done;
    mask_offset_ += done;
    return done;
}

step parser::run(std::string_view input, std::byte* in_place, byte_buffer* message) {
    if (state_ != state::control) control_.reset();
    std::size_t used = 0;
    for (;;) {
        switch (state_) {
            case state::failed: return {event::error, close_code::none, used, {}};
            case state::closed: return {event::need_more, close_code::none, input.size(), {}};
            case state::head:
                if (!read_head(input, used)) return {event::need_more, close_code::none, used, {}};
                if (state_ == state::failed) break;
                if (begin_frame() && message == nullptr)
                    return {event::message_begin, close_code::none, used, {}};
                break;
            case state::control:
                if (!take_control(input, used))
                    return {event::need_more, close_code::none, used, {}};
                return end_control(used);
            case state::payload: {
                if (left_ > 0) {
                    if (used == input.size()) return {event::need_more, close_code::none, used, {}};
                    std::byte* const at = message == nullptr ? in_place + used : nullptr;
                    const std::size_t taken = take_data(input.substr(used), at, message);
                    const std::string_view data = input.substr(used, taken);
                    used += taken;
                    if (message == nullptr && taken > 0)
                        return {event::data, close_code::none, used, data};
                    break;
                }
                state_ = state::head;
                if (!is_last_) break;
                if (!text_.is_complete()) {
                    fail(close_code::invalid_payload, "a text ends within a character");
                    break;
                }
                is_in_message_ = false;
                return {event::message_end, close_code::none, used, {}};
            }
        }
    }
}

step parser::parse(mutable_bytes input) { return run(as_text(input), input.data(), nullptr); }

step parser::collect(std::string_view input, byte_buffer& message) {
    return run(input, nullptr, &message);
}

result<> parser::finish() const noexcept {
    if (state_ == state::closed) return {};
    return eddy::fail(state_ == state::failed ? errc::malformed : errc::truncated);
}

}  // namespace eddy::websocket
