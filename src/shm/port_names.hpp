// Ports as addresses of shared memory: names of sockets that follow from a number, layout.h. Header
// only: the layers above also parse and print them in builds without shm.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/shm/layout.h>

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::shm {

/// Abstract name of a port at which a server of `user` listens: "@eddy-shm-1000-4242".
inline std::string port_name(std::uint16_t port, uid_t user) {
    return "@" EDDY_SHM_PORT_NAME + std::to_string(user) + '-' + std::to_string(port);
}

/// Port of a path ":4242"; none for other paths. errc::bad_address for a number that is no port.
inline result<std::optional<std::uint16_t>> port_in(std::string_view path) noexcept {
    if (!path.starts_with(':')) return std::optional<std::uint16_t>();
    constexpr std::size_t most_digits = 5;
    const char* const begin = path.data() + 1;
    const char* const end = path.data() + path.size();
    std::uint16_t port = 0;
    const auto [stop, error] = std::from_chars(begin, end, port);
    if (error != std::errc{} || stop != end || path.size() > 1 + most_digits)
        return fail(errc::bad_address);
    return std::optional(port);
}

/// True if the socket at `path` has a file, and permissions.
inline bool has_file(std::string_view path) noexcept {
    return !path.starts_with('@') && !path.starts_with(':');
}

/// Paths that a client tries in turn: of a port the name for each user whose server it accepts, by
/// default its own and root. errc::bad_address.
inline result<std::vector<std::string>> paths_of(std::string_view path, std::vector<uid_t> users) {
    const auto port = port_in(path);
    if (!port) return fail(port.error());
    std::vector<std::string> all;
    if (!*port) {
        all.emplace_back(path);
        return all;
    }
    if (**port == 0) return fail(errc::bad_address);
    if (users.empty()) users = {::geteuid(), 0};
    for (const uid_t each : users)
        if (std::string name = port_name(**port, each); std::ranges::find(all, name) == all.end())
            all.push_back(std::move(name));
    return all;
}

/// True if no server has the name of a port, so that the next one is tried.
inline bool is_no_server(std::error_code error) noexcept {
    return error == errno_code(ECONNREFUSED);
}

/// Calls `open` with the path at which a server listens; for port 0 with those of one port after
/// the other, from `first` on, until one is free. EADDRINUSE if none is.
template <class Open>
auto open_at(std::string_view path, std::uint64_t first, Open open)
    -> decltype(open(std::string())) {
    const auto port = port_in(path);
    if (!port) return fail(port.error());
    if (!*port) return open(std::string(path));
    if (**port != 0) return open(port_name(**port, ::geteuid()));
    constexpr std::uint32_t count = EDDY_SHM_LAST_FREE_PORT - EDDY_SHM_FIRST_FREE_PORT + 1;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto number =
            EDDY_SHM_FIRST_FREE_PORT + static_cast<std::uint32_t>((first + i) % count);
        auto made = open(port_name(static_cast<std::uint16_t>(number), ::geteuid()));
        if (made || made.error() != errno_code(EADDRINUSE)) return made;
    }
    return fail_errno(EADDRINUSE);
}

}  // namespace eddy::shm
