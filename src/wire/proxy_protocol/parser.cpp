// PROXY protocol headers: reading, and their checksum.
#include "wire/proxy_protocol/parser.hpp"

#include <eddy/base/assert.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace eddy::proxy_protocol {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::string_view line_begin = "PROXY "sv;
constexpr std::string_view shortest_line = "PROXY UNKNOWN\r\n"sv;
static_assert(shortest_line.size() < binary_prefix);

// Version 2: its second half of a byte each.
constexpr unsigned binary_version = 2;
constexpr unsigned command_local = 0;
constexpr unsigned command_proxy = 1;
constexpr std::uint8_t unspecified = 0x00;
constexpr std::uint8_t tcp_v4 = 0x11;
constexpr std::uint8_t udp_v4 = 0x12;
constexpr std::uint8_t tcp_v6 = 0x21;
constexpr std::uint8_t udp_v6 = 0x22;
constexpr std::uint8_t unix_stream = 0x31;
constexpr std::uint8_t unix_datagram = 0x32;

constexpr std::size_t v4_bytes = 4;
constexpr std::size_t v6_bytes = 16;
constexpr std::size_t unix_content = 216;
constexpr std::size_t tlv_prefix = 3;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
    constexpr std::uint32_t reversed_polynomial = 0x82f63b78;
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
        std::uint32_t rest = i;
        for (int bit = 0; bit < 8; ++bit)
            rest = (rest >> 1U) ^ ((rest & 1U) != 0 ? reversed_polynomial : 0);
        made[i] = rest;
    }
    return made;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_crc_table();

std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

std::uint16_t number_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint16_t>(byte_at(text, at) << 8U | byte_at(text, at + 1));
}

bool is_prefix(std::string_view part, std::string_view of) noexcept {
    return of.starts_with(part.substr(0, of.size()));
}

/// The text up to the next space, which is removed with it.
std::string_view take_field(std::string_view& rest) noexcept {
    const std::string_view field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    return field;
}

/// Decimal, without a sign or leading zeros.
std::optional<std::uint16_t> read_port(std::string_view text) noexcept {
    if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return port;
}

std::optional<ip_address> read_address(std::string_view text, bool is_v6) noexcept {
    std::array<char, INET6_ADDRSTRLEN> ended{};
    // A zero byte within would end it early.
    if (text.empty() || text.size() >= ended.size() || text.contains('\0')) return std::nullopt;
    std::memcpy(ended.data(), text.data(), text.size());
    ip_address made;
    made.is_v6 = is_v6;
    if (inet_pton(is_v6 ? AF_INET6 : AF_INET, ended.data(), made.bytes.data()) != 1)
        return std::nullopt;
    return made;
}

ip_address binary_address(std::string_view content, bool is_v6, bool is_source) noexcept {
    const std::size_t size = is_v6 ? v6_bytes : v4_bytes;
    ip_address made;
    made.is_v6 = is_v6;
    std::memcpy(made.bytes.data(), content.data() + (is_source ? 0 : size), size);
    made.port = number_at(content, 2 * size + (is_source ? 0 : 2));
    return made;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
    std::uint32_t rest = ~std::uint32_t{0};
    for (const char each : bytes)
        rest = (rest >> 8U) ^ crc_table[(rest ^ static_cast<std::uint8_t>(each)) & 0xffU];
    return ~rest;
}

std::optional<tlv> take_tlv(std::string_view& rest) noexcept {
    if (rest.size() < tlv_prefix) return std::nullopt;
    const std::size_t size = number_at(rest, 1);
    if (size > rest.size() - tlv_prefix) return std::nullopt;
    const tlv made{byte_at(rest, 0), rest.substr(tlv_prefix, size)};
    rest.remove_prefix(tlv_prefix + size);
    return made;
}

parser::parser() noexcept : wanted_(shortest_line.size()) {}

result<std::size_t> parser::feed(std::string_view piece) {
    std::size_t taken = 0;
    while (!is_complete_ && !failure_ && taken < piece.size()) {
        const std::string_view next = piece.substr(taken, wanted_);
        text_ += next;
        taken += next.size();
        wanted_ -= next.size();
        if (const auto fine = advance(); !fine) {
            failure_ = fine.error();
            wanted_ = 0;
            is_complete_ = false;
            found_.reset();
        }
    }
    if (failure_) return fail(failure_);
    return taken;
}

std::string_view parser::tlvs() const noexcept {
    return tlvs_at_ == 0 ? std::string_view() : std::string_view(text_).substr(tlvs_at_);
}

/// Checks what there is of the header, and sets wanted_ for the rest.
result<> parser::advance() {
    const bool is_binary = text_.front() == signature.front();
    if (!is_prefix(text_, is_binary ? signature : line_begin)) return fail(errc::malformed);
    if (!is_binary) return read_line();
    if (wanted_ > 0) return {};
    if (text_.size() < binary_prefix) {
        wanted_ = binary_prefix - text_.size();
        return {};
    }
    if (text_.size() == binary_prefix) {
        if (const auto fine = read_prefix(); !fine || wanted_ > 0) return fine;
    }
    return read_content();
}

// ---- version 1

/// Reads a line once it is whole, and checks as much as is there before.
result<> parser::read_line() {
    if (text_.size() < shortest_line.size()) return {};
    if (!text_.ends_with("\r\n")) {
        const std::size_t end = text_.find_first_of("\r\n"sv);
        if (end != std::string::npos && (end + 1 < text_.size() || text_[end] == '\n'))
            return fail(errc::malformed);
        if (text_.size() >= max_line) return fail(errc::malformed);
        if (wanted_ > 0) return {};
        if (end != std::string::npos) {
            wanted_ = 1;  // its second half
            return {};
        }
        wanted_ = std::min(least_rest(), max_line - text_.size());
        return {};
    }
    if (text_.size() > max_line) return fail(errc::malformed);
    return read_fields();
}

/// So many bytes at least end a line whose end has not begun.
std::size_t parser::least_rest() const noexcept {
    constexpr std::size_t line_end = 2;
    if (!text_.starts_with("PROXY TCP")) return line_end;
    // Each field that is still to come has a space before it, and one byte.
    constexpr std::size_t spaces = 5;
    const auto seen = static_cast<std::size_t>(std::ranges::count(text_, ' '));
    return line_end + 2 * (spaces - std::min(seen, spaces)) + (text_.back() == ' ' ? 1 : 0);
}

/// Reads a whole line.
result<> parser::read_fields() {
    std::string_view rest = text_;
    rest.remove_suffix(2);
    if (rest.find_first_of("\r\n"sv) != std::string_view::npos) return fail(errc::malformed);
    rest.remove_prefix(line_begin.size());
    const std::string_view family = take_field(rest);
    wanted_ = 0;
    is_complete_ = true;
    // The rest of such a line is to be ignored.
    if (family == "UNKNOWN") return {};
    const bool is_v6 = family == "TCP6";
    if (!is_v6 && family != "TCP4") return fail(errc::malformed);
    auto source = read_address(take_field(rest), is_v6);
    auto destination = read_address(take_field(rest), is_v6);
    const auto source_port = read_port(take_field(rest));
    const auto destination_port = read_port(rest);
    if (!source || !destination || !source_port || !destination_port) return fail(errc::malformed);
    source->port = *source_port;
    destination->port = *destination_port;
    found_ = {*source, *destination};
    return {};
}

// ---- version 2

result<> parser::read_prefix() {
    const std::uint8_t first = byte_at(text_, signature.size());
    const std::uint8_t family = byte_at(text_, signature.size() + 1);
    const std::size_t size = number_at(text_, signature.size() + 2);
    const unsigned command = first & 0xfU;
    if (first >> 4U != binary_version || command > command_proxy) return fail(errc::malformed);
    std::size_t least = 0;
    switch (family) {
        case unspecified: break;
        case tcp_v4:
        case udp_v4: least = 2 * (v4_bytes + 2); break;
        case tcp_v6:
        case udp_v6: least = 2 * (v6_bytes + 2); break;
        case unix_stream:
        case unix_datagram: least = unix_content; break;
        // The family of LOCAL is to be ignored.
        default:
            if (command == command_proxy) return fail(errc::malformed);
    }
    if (command == command_proxy && size < least) return fail(errc::malformed);
    if (size > max_content) return fail(errc::limit_reached);
    wanted_ = size;
    return {};
}

result<> parser::read_content() {
    is_complete_ = true;
    const unsigned command = byte_at(text_, signature.size()) & 0xfU;
    const std::uint8_t family = byte_at(text_, signature.size() + 1);
    const bool is_v6 = family == tcp_v6 || family == udp_v6;
    if (command == command_local || (!is_v6 && family != tcp_v4 && family != udp_v4)) return {};
    const std::string_view content = std::string_view(text_).substr(binary_prefix);
    found_ = {binary_address(content, is_v6, true), binary_address(content, is_v6, false)};
    tlvs_at_ = binary_prefix + 2 * ((is_v6 ? v6_bytes : v4_bytes) + 2);
    return check_tlvs();
}

/// Checks their lengths, and the checksum where there is one.
result<> parser::check_tlvs() const {
    std::string_view rest = tlvs();
    bool has_checksum = false;
    while (!rest.empty()) {
        const auto each = take_tlv(rest);
        if (!each) return fail(errc::malformed);
        if (each->type != tlv_crc32c) continue;
        constexpr std::size_t checksum_bytes = 4;
        if (each->value.size() != checksum_bytes || std::exchange(has_checksum, true))
            return fail(errc::malformed);
        // It counts as zeros.
        const auto at = static_cast<std::size_t>(each->value.data() - text_.data());
        std::string whole = text_;
        whole.replace(at, checksum_bytes, checksum_bytes, '\0');
        const std::uint32_t written =
            std::uint32_t{number_at(text_, at)} << 16U | number_at(text_, at + 2);
        if (crc32c(whole) != written) return fail(errc::malformed);
    }
    return {};
}

}  // namespace eddy::proxy_protocol
