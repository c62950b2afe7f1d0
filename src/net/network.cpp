// Prefixes of addresses.
#include "net/network.hpp"

#include <eddy/base/assert.hpp>

#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>

namespace eddy {
namespace {

using address_bytes = std::array<std::uint8_t, 16>;
constexpr std::size_t mapped_prefix = 12;  // bytes before a mapped IPv4 address

std::optional<address_bytes> bytes_of(const endpoint& from) noexcept {
    address_bytes made{};
    if (from.family() == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, from.data(), sizeof(v6));
        std::memcpy(made.data(), &v6.sin6_addr, made.size());
        return made;
    }
    if (from.family() != AF_INET) return std::nullopt;
    sockaddr_in v4{};
    std::memcpy(&v4, from.data(), sizeof(v4));
    made[10] = made[11] = 0xff;
    std::memcpy(made.data() + mapped_prefix, &v4.sin_addr, sizeof(v4.sin_addr));
    return made;
}

/// True if the first `bits` are equal.
bool has_equal_prefix(const address_bytes& a, const address_bytes& b, unsigned bits) noexcept {
    for (std::size_t i = 0; i < a.size() && bits > 0; ++i) {
        const unsigned of_this = std::min(bits, 8U);
        const auto mask = static_cast<std::uint8_t>(0xff << (8U - of_this));
        if (((a[i] ^ b[i]) & mask) != 0) return false;
        bits -= of_this;
    }
    return true;
}

}  // namespace

result<network> network::parse(std::string_view text) {
    network made;
    if (text == "unix") {
        made.is_unix_ = true;
        return made;
    }
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::string_view host = text.substr(0, slash);
    if (host.empty() || host == "*" || host.find('%') != std::string_view::npos)
        return fail(errc::bad_address);
    const auto address = endpoint::ip(host, 0);
    if (!address) return fail(errc::bad_address);
    const auto bytes = bytes_of(*address);
    if (!bytes) return fail(errc::bad_address);
    made.address_ = *bytes;
    const unsigned most = address->family() == AF_INET ? 32 : 128;
    unsigned bits = most;
    if (slash < text.size()) {
        const std::string_view number = text.substr(slash + 1);
        const auto [end, error] =
            std::from_chars(number.data(), number.data() + number.size(), bits);
        if (error != std::errc() || end != number.data() + number.size() || bits > most)
            return fail(errc::bad_address);
    }
    made.bits_ = static_cast<std::uint8_t>(bits + (most == 32 ? mapped_prefix * 8 : 0));
    // Bits behind the prefix are a slip, such as 10.1.0.0/8.
    address_bytes rest = made.address_;
    for (unsigned i = 0; i < made.bits_; ++i)
        rest[i / 8] = static_cast<std::uint8_t>(rest[i / 8] & ~(0x80U >> (i % 8)));
    if (std::ranges::any_of(rest, [](std::uint8_t each) { return each != 0; }))
        return fail(errc::bad_address);
    return made;
}

bool network::contains(const endpoint& address) const noexcept {
    if (is_unix_) return address.is_unix();
    const auto bytes = bytes_of(address);
    return bytes && has_equal_prefix(*bytes, address_, bits_);
}

bool contains(std::span<const network> any, const endpoint& address) noexcept {
    return std::ranges::any_of(any, [&](const network& each) { return each.contains(address); });
}

std::string host_text(const endpoint& address) {
    const endpoint plain = unmapped(address);
    if (plain.is_unix() || plain.family() == AF_UNSPEC) return {};
    std::string host = plain.host();
    EDDY_ASSERT(!host.empty());
    host.resize(std::min(host.find('%'), host.size()));
    return host;
}

endpoint unmapped(const endpoint& from) noexcept {
    if (from.family() != AF_INET6) return from;
    sockaddr_in6 v6{};
    std::memcpy(&v6, from.data(), sizeof(v6));
    if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return from;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = v6.sin6_port;
    std::memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    return {reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)};
}

}  // namespace eddy
