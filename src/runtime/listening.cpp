// Address of a runtime: reading of the options, and explanations of errors.
#include "runtime/listening.hpp"

#include "base/files/descriptors.hpp"
#include "transport/shm_path.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using transport::address;
using transport::scheme;

/// The runtime that the host knows to serve there; empty if there is none.
std::string server_at(const host* of, const endpoint& where, bool is_datagram) {
    return of == nullptr ? std::string() : of->server_at(where, is_datagram);
}

/// True for the path of a Unix socket.
bool is_path(const address& where) noexcept {
    return where.kind == scheme::unix_socket || where.kind == scheme::handoff ||
           where.kind == scheme::shm;
}

result<endpoint> endpoint_of(const address& where) {
    if (is_path(where)) return endpoint::unix_path(where.path);
    return endpoint::ip(where.host == "localhost" ? "127.0.0.1" : where.host, where.port);
}

problem explain_path_failure(const std::string& path, std::error_code error, const host* of) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (error == std::errc::address_in_use) {
        const result<endpoint> where = endpoint::unix_path(path);
        const std::string owner = where ? server_at(of, *where, false) : std::string();
        if (!owner.empty()) {
            return {409, fmt::format("the runtime {} serves on {} already; stop it with `eddy stop "
                                     "{}`, or take another path",
                                     owner, path, owner)};
        }
        return {409, fmt::format("another program serves on {}, or a file is in the way; take "
                                 "another path",
                                 path)};
    }
    if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
        return {400,
                fmt::format("cannot make the socket {}: there is no folder {}; create it first",
                            path, folder)};
    }
    if (error == std::errc::permission_denied || error == std::errc::read_only_file_system) {
        return {403, fmt::format("cannot make the socket {}: no permission to write in {}", path,
                                 folder)};
    }
    const bool is_full = error == std::errc::no_space_on_device;
    const bool is_wrong_path = error == std::errc::filename_too_long ||
                               error == std::errc::too_many_symbolic_link_levels ||
                               error == std::errc::invalid_argument;
    return {is_full         ? 507
            : is_wrong_path ? 400
                            : 500,
            fmt::format("cannot make the socket {}: {}", path, error.message())};
}

/// True for a link-local address without its link.
bool lacks_scope(const address& where) {
    const result<endpoint> parsed = endpoint_of(where);
    if (!parsed || parsed->family() != AF_INET6) return false;
    sockaddr_in6 v6;
    std::memcpy(&v6, parsed->data(), sizeof v6);
    return v6.sin6_scope_id == 0 &&
           (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&v6.sin6_addr));
}

}  // namespace

namespace {

/// About a file of TLS: the option and the file. The URI that was made of them says nothing more.
std::string explain_tls_files(const address& wanted) {
    std::string why = transport::explain(wanted.to_string(), errc::unusable_certificate);
    constexpr std::string_view mark = " cannot be opened: ";
    if (const std::size_t at = why.find(mark); at != std::string::npos)
        why.erase(0, at + mark.size());
    for (const auto& [called, option] :
         {std::pair<std::string_view, std::string_view>("the certificate ", "--cert "),
          {"the key ", "--key "},
          {"the CA ", "--ca "}})
        if (why.starts_with(called)) why.replace(0, called.size(), option);
    return why;
}

}  // namespace

problem explain_listen_failure(const address& wanted, std::error_code error, const host* of) {
    if (const std::string shortage = descriptors::explain_shortage(error); !shortage.empty())
        return {503, fmt::format("cannot serve on {}: {}", wanted.to_string(), shortage)};
    if (is_path(wanted) && error != errc::unsupported)
        return explain_path_failure(wanted.path, error, of);
    if (wanted.kind == scheme::tls && error == errc::unusable_certificate)
        return {400, explain_tls_files(wanted)};
    if (wanted.kind != scheme::tcp && wanted.kind != scheme::udp)
        return {400, transport::explain(wanted.to_string(), error)};

    const bool datagram = wanted.kind == scheme::udp;
    const std::string_view protocol = datagram ? "UDP" : "TCP";
    const std::string host = wanted.host.empty() ? "*" : wanted.host;
    if (error == std::errc::address_in_use) {
        const result<endpoint> where = endpoint_of(wanted);
        const std::string owner = where ? server_at(of, *where, datagram) : std::string();
        if (!owner.empty()) {
            return {409,
                    fmt::format("the runtime {} serves on {} port {} already; stop it with `eddy "
                                "stop {}`, or take another port with -p",
                                owner, protocol, wanted.port, owner)};
        }
        return {409,
                fmt::format("{} port {} is in use by another program; `ss -lpn{} 'sport = :{}'` "
                            "shows which. Stop it, or take another port with -p (0: any free one)",
                            protocol, wanted.port, datagram ? 'u' : 't', wanted.port)};
    }
    if (error == std::errc::permission_denied) {
        return {403,
                fmt::format("no permission to serve on {} port {}: ports below 1024 need root or "
                            "CAP_NET_BIND_SERVICE; take a higher one with -p",
                            protocol, wanted.port)};
    }
    if (lacks_scope(wanted)) {
        return {400, fmt::format("{0} is an address of one link: say of which with its interface "
                                 "behind it, such as {0}%eth0; `ip address` lists them",
                                 host)};
    }
    if (error == std::errc::address_not_available || error == std::errc::no_such_device) {
        return {400, fmt::format("this machine has no address {}; `ip address` lists those it has, "
                                 "--bind chooses one",
                                 host)};
    }
    if (error == errc::bad_address) {
        return {400, fmt::format("\"{}\" is no address to serve on; write a numeric one of this "
                                 "machine, such as 127.0.0.1 or ::1, or * for all",
                                 host)};
    }
    const bool is_wrong_address =
        error == std::errc::invalid_argument || error == std::errc::address_family_not_supported ||
        error == std::errc::operation_not_supported || error == std::errc::network_unreachable;
    return {is_wrong_address ? 400 : 500,
            fmt::format("cannot serve on {} port {} of {}: {}", protocol, wanted.port, host,
                        error.message())};
}

namespace {

template <class T>
std::error_code failure_of(const result<T>& opened) noexcept {
    return opened ? std::error_code() : opened.error();
}

/// True for an address such as tcp://:PORT, which means this machine's programs, as without --bind;
/// tcp://*:PORT would be all addresses. Paths begin otherwise.
bool names_no_host(std::string_view uri) {
    constexpr std::string_view before_host = "://";
    return uri.substr(uri.find(before_host) + before_host.size()).starts_with(':');
}

/// shm://:4242 by the name at which this process serves it, which other programs are shown.
outcome<address> named_port(address of) {
    std::uint16_t port = 0;
    std::from_chars(of.path.data() + 1, of.path.data() + of.path.size(), port);
    if (port == 0) return refuse(400, "--listen shm://:PORT needs a port from 1 to 65535");
    of.path = transport::shm_path_of(port);
    return of;
}

outcome<> only(const settings& chosen, std::string_view one,
               std::initializer_list<std::string_view> others) {
    for (const std::string_view other : others) {
        if (!chosen.given(other)) continue;
        return refuse(
            400, fmt::format("--{} and --{} exclude each other; give one of them", one, other));
    }
    return {};
}

}  // namespace

option port_option() {
    return {.name = "port",
            .letter = 'p',
            .kind = option_kind::integer,
            .value_name = "N",
            .help = "port to serve on; 0 takes any free one",
            .maximum = 65535};
}

option bind_option(std::string_view help) {
    return {.name = "bind", .value_name = "ADDRESS", .default_value = "127.0.0.1", .help = help};
}

option unix_option() {
    return {.name = "unix",
            .value_name = "PATH",
            .help = "serve on a Unix socket instead of a port; @NAME is one without a file",
            .is_path = true,
            .is_socket = true};
}

option listen_option(std::string_view help) {
    return {.name = "listen", .value_name = "URI", .help = help, .is_uri = true};
}

option max_connections_option() {
    return {
        .name = "max-connections",
        .kind = option_kind::integer,
        .value_name = "N",
        .default_value = "10000",
        .help = "clients at a time; further ones get an error and are closed, with TLS by a reset",
        .minimum = 1,
        .maximum = 10'000'000,
        .live = true};
}

outcome<address> choose_address(const settings& chosen, scheme port_scheme) {
    constexpr std::string_view this_machine = "127.0.0.1";
    if (chosen.has("listen")) {
        if (auto alone = only(chosen, "listen", {"port", "bind", "unix"}); !alone)
            return std::unexpected(alone.error());
        const std::string& uri = chosen.text("listen");
        result<address> where = transport::parse(uri);
        if (!where) return refuse(400, "--listen: " + transport::explain(uri, where.error()));
        if (where->kind == scheme::shm && where->path.starts_with(':')) return named_port(*where);
        if (names_no_host(uri)) where->host = this_machine;
        return *where;
    }
    if (chosen.has("unix")) {
        if (auto alone = only(chosen, "unix", {"port", "bind"}); !alone)
            return std::unexpected(alone.error());
        const std::string& path = chosen.text("unix");
        if (port_scheme == scheme::udp)
            return refuse(400, "--udp needs --port: a Unix socket carries streams only");
        if (!endpoint::unix_path(path)) {
            return refuse(400,
                          fmt::format("--unix cannot be \"{}\": a socket's path has at most 107 "
                                      "bytes",
                                      path));
        }
        address where;
        where.kind = scheme::unix_socket;
        where.path = path;
        return where;
    }
    if (!chosen.has("port")) {
        return refuse(400,
                      "give an address to serve on: a port such as -p 9000 (-p 0 takes any free "
                      "one), --unix PATH, or --listen URI");
    }
    // A script's empty variable must not open it to the network.
    if (chosen.text("bind").empty())
        return refuse(
            400,
            "--bind needs an address: 127.0.0.1 for clients of this machine alone, * for all "
            "addresses of this machine");
    address where;
    where.kind = port_scheme;
    where.port = static_cast<std::uint16_t>(chosen.number("port"));
    where.host = chosen.text("bind") == "*" ? std::string() : chosen.text("bind");
    if (!endpoint_of(where))
        return std::unexpected(
            explain_listen_failure(where, make_error_code(errc::bad_address), nullptr));
    return where;
}

socket_file socket_file::at(const std::string& path) noexcept {
    struct stat info{};
    if (!path.starts_with('/') || ::lstat(path.c_str(), &info) != 0) return {};
    return {info.st_dev, info.st_ino};
}

problem not_listening(const address& at, const problem& why) {
    return {why.status, fmt::format("not listening on {}: {}", at.to_string(), why.message)};
}

outcome<noted_listener> listen_on(const address& where, host& of) {
    result<listener> opened = transport::listen(where);
    if (!opened) return std::unexpected(explain_listen_failure(where, opened.error(), &of));
    address_note note = of.note_address(where, opened->local());
    return noted_listener{
        {.socket = std::move(*opened)}, std::move(note), socket_file::at(where.path)};
}

outcome<noted_listener> listen_in_parts_on(const address& where, host& of) {
    result<transport::listener_parts> opened = transport::listen_in_parts(where);
    if (!opened) return std::unexpected(explain_listen_failure(where, opened.error(), &of));
    address_note note = of.note_address(where, opened->below.local());
    return noted_listener{{.socket = std::move(opened->below),
                           .finish = std::move(opened->finish),
                           .renew = std::move(opened->renew)},
                          std::move(note),
                          socket_file::at(where.path)};
}

outcome<noted_datagram> bind_datagram_on(const address& where, host& of) {
    result<datagram> opened = transport::bind_datagram(where);
    if (!opened) return std::unexpected(explain_listen_failure(where, opened.error(), &of));
    address_note note = of.note_address(where, opened->local());
    return noted_datagram{std::move(*opened), std::move(note)};
}

outcome<> try_address(address wanted, std::span<const endpoint> own, const host& of) {
    const auto has_it = [&](const endpoint& each) {
        if (!is_path(wanted)) return !each.is_unix() && each.port() == wanted.port;
        const result<endpoint> path = endpoint::unix_path(wanted.path);
        return path && each == *path;
    };
    const bool is_own = std::any_of(own.begin(), own.end(), has_it);
    if (is_own && is_path(wanted)) return {};
    if (is_own) wanted.port = 0;
    const std::error_code failure = wanted.kind == scheme::udp
                                        ? failure_of(transport::bind_datagram(wanted))
                                        : failure_of(transport::listen(wanted));
    // Where ports are used up the trial of another one proves nothing.
    if (is_own && failure == std::errc::address_in_use) return {};
    if (failure) return std::unexpected(explain_listen_failure(wanted, failure, &of));
    return {};
}

outcome<> renew_certificates(noted_listener& of, const address& where) {
    const result<> renewed = of.renew ? of.renew(where) : transport::renew(of.socket, where);
    if (!renewed) return std::unexpected(explain_listen_failure(where, renewed.error(), nullptr));
    return {};
}

}  // namespace eddy::runtime
