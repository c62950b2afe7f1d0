// Slow decoder of WebSocket frames, written apart from the parser: the whole input at once, one
// step of the standard after the other. It yields what transcript() does.
#pragma once

#include "wire/websocket/transcript.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace eddy::websocket {

class reference_decoder {
public:
    reference_decoder(role reads, const limits& bounds, bool may_be_compressed)
        : is_server_(reads == role::server),
          bounds_(bounds),
          may_be_compressed_(may_be_compressed) {}

    std::string decode(std::string_view input) {
        input_ = input;
        while (const std::optional<unsigned> first = take()) {
            if (!decode_frame(*first)) break;
        }
        if (error_ != 0) return out_ + open_message() + "error " + std::to_string(error_) + "\n";
        out_ += open_message();
        if (is_closed_) return out_ + "closed\n";
        return out_ + (is_in_frame_ || is_in_message_ ? "unfinished\n" : "idle\n");
    }

private:
    // The next byte, if there is one.
    std::optional<unsigned> take() {
        if (at_ == input_.size()) return std::nullopt;
        return static_cast<unsigned char>(input_[at_++]);
    }

    bool fail(unsigned code) {
        error_ = code;
        return false;
    }

    std::string open_message() const {
        if (message_.empty()) return {};
        return describe("open", kind_, is_compressed_, message_);
    }

    // False at the end of the input, of the connection, or at an error.
    bool decode_frame(unsigned first) {
        is_in_frame_ = true;
        const bool is_last = first >= 128;
        const unsigned number = first % 16;
        const bool is_control = number >= 8;
        if (first / 16 % 4 != 0) return fail(1002);
        if (number > 10 || (number > 2 && number < 8)) return fail(1002);
        const bool has_rsv1 = first / 64 % 2 == 1;
        if (is_control && (!is_last || has_rsv1)) return fail(1002);
        if (!is_control) {
            if ((number == 0) != is_in_message_) return fail(1002);
            if (has_rsv1 && (number == 0 || !may_be_compressed_)) return fail(1002);
        }
        const std::optional<unsigned> second = take();
        if (!second) return false;
        if ((*second >= 128) != is_server_) return fail(1002);
        std::uint64_t length = *second % 128;
        if (is_control && length > 125) return fail(1002);
        if (length >= 126) {
            const int bytes = length == 126 ? 2 : 8;
            std::uint64_t given = 0;
            for (int i = 0; i < bytes; ++i) {
                const std::optional<unsigned> byte = take();
                if (!byte) return false;
                given = given * 256 + *byte;
            }
            if (given >> 63 != 0) return fail(1002);
            if (given < 126 || (bytes == 8 && given <= 0xffff)) return fail(1002);
            length = given;
        }
        if (!is_control && (length > bounds_.frame || size_ + length > bounds_.message))
            return fail(1009);
        unsigned mask[4] = {};
        for (int i = 0; is_server_ && i < 4; ++i) {
            const std::optional<unsigned> byte = take();
            if (!byte) return false;
            mask[i] = *byte;
        }
        if (!is_control) {
            if (number != 0) {
                kind_ = opcode{static_cast<unsigned char>(number)};
                is_compressed_ = has_rsv1;
            }
            is_in_message_ = true;
            size_ += length;
        }
        std::string payload;
        for (std::uint64_t i = 0; i < length; ++i) {
            const std::optional<unsigned> byte = take();
            if (!byte) return false;
            const char plain = static_cast<char>(*byte ^ mask[i % 4]);
            if (is_control) {
                payload += plain;
                continue;
            }
            if (kind_ == opcode::text && !is_compressed_ && !continues_text(plain))
                return fail(1007);
            message_ += plain;
        }
        is_in_frame_ = false;
        return is_control ? end_control(number, payload) : !is_last || end_message();
    }

    bool end_message() {
        if (!character_.empty()) return fail(1007);
        out_ += describe("message", kind_, is_compressed_, message_);
        message_.clear();
        size_ = 0;
        is_in_message_ = false;
        return true;
    }

    bool end_control(unsigned number, std::string payload) {
        if (number != 8) {
            out_ += (number == 9 ? "ping '" : "pong '") + payload + "'\n";
            return true;
        }
        unsigned code = 1005;
        if (payload.size() == 1) return fail(1002);
        if (!payload.empty()) {
            code = static_cast<unsigned char>(payload[0]) * 256U +
                   static_cast<unsigned char>(payload[1]);
            const bool is_free = code >= 3000 && code <= 4999;
            if (!is_free && (code < 1000 || code > 1014 || (code > 1003 && code < 1007)))
                return fail(1002);
            payload.erase(0, 2);
            character_.clear();
            for (const char c : payload) {
                if (!continues_text(c)) return fail(1007);
            }
            if (!character_.empty()) return fail(1007);
        }
        out_ += "close " + std::to_string(code) + " '" + payload + "'\n";
        is_closed_ = true;
        return false;
    }

    // Adds a byte to the open character: true if some code point begins like that.
    bool continues_text(char byte) {
        character_ += byte;
        const auto first = static_cast<unsigned char>(character_[0]);
        const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        if (first >= 0x80 && first < 0xc0) return false;
        if (first >= 0xf8) return false;
        // The least and the largest number that the missing bytes can make of it.
        unsigned least = size == 1 ? first : first & (0x7fU >> size);
        unsigned most = least;
        for (std::size_t i = 1; i < size; ++i) {
            unsigned low = 0;
            unsigned high = 0x3f;
            if (i < character_.size()) {
                const auto next = static_cast<unsigned char>(character_[i]);
                if (next < 0x80 || next > 0xbf) return false;
                low = high = next & 0x3fU;
            }
            least = least * 64 + low;
            most = most * 64 + high;
        }
        const unsigned smallest = size == 1 ? 0 : size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
        bool is_possible = false;
        for (unsigned code = std::max(least, smallest); code <= std::min(most, 0x10ffffU); ++code) {
            if (code >= 0xd800 && code < 0xe000) continue;
            is_possible = true;
            break;
        }
        if (is_possible && character_.size() == size) character_.clear();
        return is_possible;
    }

    bool is_server_;
    limits bounds_;
    bool may_be_compressed_;
    std::string_view input_;
    std::size_t at_ = 0;
    std::string out_;
    unsigned error_ = 0;
    bool is_closed_ = false;
    bool is_in_frame_ = false;
    bool is_in_message_ = false;
    opcode kind_ = opcode::text;
    bool is_compressed_ = false;
    std::uint64_t size_ = 0;
    std::string message_;
    std::string character_;
};

}  // namespace eddy::websocket
