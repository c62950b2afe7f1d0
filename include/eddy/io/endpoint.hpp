// Socket address: IPv4, IPv6 or a Unix path. A value, for any thread.
#pragma once

#include <eddy/base/result.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy {

/// A socket address by value; ip(7), ipv6(7), unix(7). An empty one has family AF_UNSPEC.
/// Any thread, as a value.
class endpoint {
public:
    endpoint() noexcept;
    /// Copies `size` bytes of a system call's address, at most capacity().
    endpoint(const sockaddr* address, socklen_t size) noexcept;

    /// `address` is a numeric IPv4 or IPv6 address ("127.0.0.1", "::1", "fe80::1%eth0"), or "" or
    /// "*" for the dual-stack wildcard "::". Host names are the resolver's work: they, and an
    /// interface that this machine does not have, are errc::bad_address.
    [[nodiscard]] static result<endpoint> ip(std::string_view address, std::uint16_t port);
    /// A Unix socket path, at most 107 bytes; a leading '@' names the abstract namespace.
    /// errc::bad_address when it is longer, holds a zero byte, or has no name.
    [[nodiscard]] static result<endpoint> unix_path(std::string_view path);

    /// AF_INET, AF_INET6, AF_UNIX, or AF_UNSPEC for none.
    int family() const noexcept { return address_.ss_family; }
    /// True for a path or an abstract name, unix(7).
    bool is_unix() const noexcept { return family() == AF_UNIX; }
    /// The port in host order; 0 for a Unix path.
    std::uint16_t port() const noexcept;
    /// Sets the port, in host order; does nothing to a Unix path.
    void set_port(std::uint16_t port) noexcept;
    /// The address without the port.
    std::string host() const;
    /// "127.0.0.1:80", "[::1]:80" or "/run/x.sock".
    std::string to_string() const;

    /// The address as system calls take it; valid as long as this object.
    const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
    /// The same for calls that write one: capacity() bytes. resize() then sets the size that they
    /// wrote.
    sockaddr* data() noexcept { return reinterpret_cast<sockaddr*>(&address_); }
    /// Bytes of data() in use.
    socklen_t size() const noexcept { return size_; }
    /// Sets the number of bytes that the kernel wrote to data(); at most capacity().
    void resize(socklen_t size) noexcept;
    /// Bytes that data() has room for.
    static constexpr socklen_t capacity() noexcept { return sizeof(sockaddr_storage); }

    /// The same family, address and port, or the same path.
    friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    sockaddr_storage address_;
    socklen_t size_ = 0;
};

}  // namespace eddy
