// Typed bytes: carriers for what is no UTF-8.
#include "cli/text/typed_bytes.hpp"

#include "base/text/terminal_text.hpp"

#include <algorithm>

namespace eddy::cli {
namespace {

constexpr unsigned char least_carried = 0x80;

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; }

/// True when more bytes may complete the character that they begin.
bool is_incomplete(std::string_view bytes) noexcept {
    const auto lead = static_cast<unsigned char>(bytes.front());
    const std::size_t size = lead < 0xc0   ? 1
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf8 ? 4
                                           : 1;
    return bytes.size() < size && std::ranges::all_of(bytes.substr(1), is_continuation);
}

bool is_carrier(char32_t code) noexcept { return code >= first_carrier && code <= last_carrier; }

/// Number of bytes in front that make a character standing for itself; 0 where the first one is
/// carried.
std::size_t plain_size(std::string_view bytes) noexcept {
    const text_unit unit = first_unit(bytes);
    const bool is_byte =
        unit.size == 1 && static_cast<unsigned char>(bytes.front()) >= least_carried;
    return is_byte || is_carrier(unit.code) ? 0 : unit.size;
}

char32_t carrier_of(char byte) noexcept {
    return first_carrier + (static_cast<unsigned char>(byte) - least_carried);
}

}  // namespace

std::optional<char32_t> typed_bytes::take() {
    if (bytes_.empty()) return {};
    if (whole_ == 0) {
        if (is_incomplete(bytes_)) return {};
        if (const std::size_t size = plain_size(bytes_); size > 0) {
            const char32_t code = first_unit(bytes_).code;
            bytes_.erase(0, size);
            return code;
        }
        // All bytes of a carrier, else the first one.
        whole_ = first_unit(bytes_).size;
    }
    --whole_;
    const char32_t code = carrier_of(bytes_.front());
    bytes_.erase(0, 1);
    return code;
}

std::string carry_bytes(std::string_view text) {
    std::string carried;
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        if (plain_size(text) > 0) {
            carried += text.substr(0, unit.size);
        } else {
            for (const char byte : text.substr(0, unit.size)) {
                const auto low = static_cast<unsigned char>(byte);
                // U+EF80 is EE BE 80, U+EFC0 is EE BF 80.
                carried += {'\xee', low < 0xc0 ? '\xbe' : '\xbf',
                            static_cast<char>(least_carried | (low & 0x3fU))};
            }
        }
        text.remove_prefix(unit.size);
    }
    return carried;
}

std::string uncarry_bytes(std::string_view text) {
    std::string bytes;
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        if (is_carrier(unit.code))
            bytes += static_cast<char>(unit.code - first_carrier + least_carried);
        else
            bytes += text.substr(0, unit.size);
        text.remove_prefix(unit.size);
    }
    return bytes;
}

}  // namespace eddy::cli
