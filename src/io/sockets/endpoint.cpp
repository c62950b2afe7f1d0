// Parsing, printing and comparing socket addresses.
#include <eddy/io/endpoint.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace eddy {
namespace {

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t longest_path = sizeof(sockaddr_un::sun_path) - 1;

const sockaddr_in& v4(const sockaddr_storage& address) noexcept {
    return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& v6(const sockaddr_storage& address) noexcept {
    return reinterpret_cast<const sockaddr_in6&>(address);
}

/// The path as the kernel knows it: abstract names begin with a zero byte, unnamed sockets are
/// empty, and a file's name ends at its first zero byte.
std::string_view raw_path(const sockaddr_storage& address, socklen_t size) noexcept {
    if (size <= path_offset) return {};
    const char* path = reinterpret_cast<const sockaddr_un&>(address).sun_path;
    const std::size_t length = size - path_offset;
    if (path[0] == '\0') return {path, length};
    return {path, strnlen(path, length)};
}

/// An interface's index from its name or number; 0 when there is none.
unsigned scope_index(std::string_view zone) noexcept {
    unsigned index = 0;
    const auto [end, error] = std::from_chars(zone.data(), zone.data() + zone.size(), index);
    if (error == std::errc{} && end == zone.data() + zone.size()) return index;
    if (zone.empty() || zone.size() >= IF_NAMESIZE) return 0;
    std::array<char, IF_NAMESIZE> name{};
    std::copy(zone.begin(), zone.end(), name.begin());
    return if_nametoindex(name.data());
}

}  // namespace

endpoint::endpoint() noexcept : address_{} {}

endpoint::endpoint(const sockaddr* address, socklen_t size) noexcept
    : address_{}, size_(std::min(size, capacity())) {
    std::memcpy(&address_, address, size_);
}

result<endpoint> endpoint::ip(std::string_view address, std::uint16_t port) {
    if (address.empty() || address == "*") address = "::";
    const std::size_t percent = address.find('%');
    const std::string_view digits = address.substr(0, percent);

    std::array<char, INET6_ADDRSTRLEN> text{};
    if (digits.size() >= text.size() || digits.contains('\0')) return fail(errc::bad_address);
    std::copy(digits.begin(), digits.end(), text.begin());

    endpoint made;
    auto& as_v4 = reinterpret_cast<sockaddr_in&>(made.address_);
    auto& as_v6 = reinterpret_cast<sockaddr_in6&>(made.address_);
    if (percent == std::string_view::npos &&
        inet_pton(AF_INET, text.data(), &as_v4.sin_addr) == 1) {
        as_v4.sin_family = AF_INET;
        made.size_ = sizeof(sockaddr_in);
    } else if (inet_pton(AF_INET6, text.data(), &as_v6.sin6_addr) == 1) {
        as_v6.sin6_family = AF_INET6;
        made.size_ = sizeof(sockaddr_in6);
        if (percent != std::string_view::npos) {
            as_v6.sin6_scope_id = scope_index(address.substr(percent + 1));
            if (as_v6.sin6_scope_id == 0) return fail(errc::bad_address);
        }
    } else {
        return fail(errc::bad_address);
    }
    made.set_port(port);
    return made;
}

result<endpoint> endpoint::unix_path(std::string_view path) {
    if (path.empty() || path == "@" || path.size() > longest_path || path.contains('\0'))
        return fail(errc::bad_address);
    endpoint made;
    auto& address = reinterpret_cast<sockaddr_un&>(made.address_);
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    const bool is_abstract = path.front() == '@';
    if (is_abstract) address.sun_path[0] = '\0';
    // A file's name counts with its terminating zero, an abstract name is its bytes alone.
    made.size_ = static_cast<socklen_t>(path_offset + path.size() + (is_abstract ? 0 : 1));
    return made;
}

std::uint16_t endpoint::port() const noexcept {
    switch (family()) {
        case AF_INET: return ntohs(v4(address_).sin_port);
        case AF_INET6: return ntohs(v6(address_).sin6_port);
        default: return 0;
    }
}

void endpoint::set_port(std::uint16_t port) noexcept {
    if (family() == AF_INET)
        reinterpret_cast<sockaddr_in&>(address_).sin_port = htons(port);
    else if (family() == AF_INET6)
        reinterpret_cast<sockaddr_in6&>(address_).sin6_port = htons(port);
}

std::string endpoint::host() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    switch (family()) {
        case AF_INET:
            inet_ntop(AF_INET, &v4(address_).sin_addr, text.data(), text.size());
            return text.data();
        case AF_INET6: {
            inet_ntop(AF_INET6, &v6(address_).sin6_addr, text.data(), text.size());
            std::string host = text.data();
            if (const unsigned scope = v6(address_).sin6_scope_id; scope != 0) {
                std::array<char, IF_NAMESIZE> name{};
                host += '%';
                host += if_indextoname(scope, name.data()) ? std::string(name.data())
                                                           : std::to_string(scope);
            }
            return host;
        }
        case AF_UNIX: {
            std::string path(raw_path(address_, size_));
            if (!path.empty() && path.front() == '\0') path.front() = '@';
            return path;
        }
        default: return {};
    }
}

std::string endpoint::to_string() const {
    switch (family()) {
        case AF_INET: return host() + ":" + std::to_string(port());
        case AF_INET6: return "[" + host() + "]:" + std::to_string(port());
        default: return host();
    }
}

void endpoint::resize(socklen_t size) noexcept { size_ = std::min(size, capacity()); }

bool operator==(const endpoint& a, const endpoint& b) noexcept {
    if (a.family() != b.family()) return false;
    switch (a.family()) {
        case AF_INET:
            return v4(a.address_).sin_port == v4(b.address_).sin_port &&
                   v4(a.address_).sin_addr.s_addr == v4(b.address_).sin_addr.s_addr;
        case AF_INET6:
            return v6(a.address_).sin6_port == v6(b.address_).sin6_port &&
                   v6(a.address_).sin6_scope_id == v6(b.address_).sin6_scope_id &&
                   std::memcmp(&v6(a.address_).sin6_addr, &v6(b.address_).sin6_addr,
                               sizeof(in6_addr)) == 0;
        case AF_UNIX: return raw_path(a.address_, a.size_) == raw_path(b.address_, b.size_);
        default: return true;
    }
}

}  // namespace eddy
