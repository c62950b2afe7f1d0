// PROXY protocol headers: writing.
#include "wire/proxy_protocol/writer.hpp"

#include <eddy/base/assert.hpp>

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace eddy::proxy_protocol {
namespace {

using namespace std::string_view_literals;

// A LOCAL header, without a length: version 2 in the upper half of the 13th byte.
constexpr std::string_view local = "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"sv;
constexpr std::string_view proxy_v4 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c"sv;
constexpr std::string_view proxy_v6 = "\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x24"sv;
static_assert(local.size() == binary_prefix && proxy_v4.size() == binary_prefix);
static_assert(2 * (16 + 2) <= max_sent_content);

void write_bytes(byte_buffer& out, const ip_address& of) {
    const auto* const first = reinterpret_cast<const char*>(of.bytes.data());
    out.append(std::string_view(first, of.is_v6 ? 16 : 4));
}

void write_port(byte_buffer& out, const ip_address& of) {
    const std::array<char, 2> both{static_cast<char>(of.port >> 8U), static_cast<char>(of.port)};
    out.append(std::string_view(both.data(), both.size()));
}

void write_text(byte_buffer& out, const ip_address& of) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(of.is_v6 ? AF_INET6 : AF_INET, of.bytes.data(), text.data(), text.size());
    out.append(" "sv);
    out.append(std::string_view(text.data()));
}

void write_number(byte_buffer& out, std::uint16_t port) {
    out.append(" "sv);
    out.append(std::string_view(std::to_string(port)));
}

}  // namespace

void write_header(byte_buffer& out, version as, const std::optional<addresses>& of) {
    if (!of) return out.append(as == version::text ? "PROXY UNKNOWN\r\n"sv : local);
    EDDY_ASSERT(of->source.is_v6 == of->destination.is_v6);
    const bool is_v6 = of->source.is_v6;
    if (as == version::text) {
        out.append(is_v6 ? "PROXY TCP6"sv : "PROXY TCP4"sv);
        write_text(out, of->source);
        write_text(out, of->destination);
        write_number(out, of->source.port);
        write_number(out, of->destination.port);
        return out.append("\r\n"sv);
    }
    out.append(is_v6 ? proxy_v6 : proxy_v4);
    write_bytes(out, of->source);
    write_bytes(out, of->destination);
    write_port(out, of->source);
    write_port(out, of->destination);
}

}  // namespace eddy::proxy_protocol
