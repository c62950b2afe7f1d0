// Network: a range of IP addresses, in CIDR notation.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy {

/// A value, for any thread. An IPv4 network holds the addresses also where they are mapped into
/// IPv6 (::ffff:10.0.0.1).
class network {
public:
    /// "10.0.0.0/8", "fd00::/8", one address, or "unix", which holds all clients of Unix sockets
    /// and of shared memory. errc::bad_address for other texts, and for bits behind the prefix.
    [[nodiscard]] static result<network> parse(std::string_view text);

    /// True if the address is in it; its port does not count.
    bool contains(const endpoint& address) const noexcept;

    /// The same range.
    friend bool operator==(const network&, const network&) = default;

private:
    std::array<std::uint8_t, 16> address_{};  // IPv4 is mapped
    std::uint8_t bits_ = 0;
    bool is_unix_ = false;
};

/// True if one of them holds the address.
bool contains(std::span<const network> any, const endpoint& address) noexcept;

/// An address as logs and headers have it: IPv4 in the place of one that is mapped, without port
/// and zone, which means something on this machine alone. Empty for a Unix socket, or none.
std::string host_text(const endpoint& address);

/// IPv4 in the place of an IPv6 address that it is mapped into; others stay.
endpoint unmapped(const endpoint& from) noexcept;

}  // namespace eddy
