// Parser of the addresses of programs' sockets.
#include "runtime/socket_address.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace eddy::runtime {

using transport::address;
using transport::scheme;

outcome<address> read_socket_address(const std::string& text) {
    constexpr std::string_view this_host = "127.0.0.1";
    std::string uri = text;
    const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (is_port) uri.insert(0, ":");
    if (!uri.contains("://")) uri.insert(0, "tcp://");
    auto where = transport::parse(uri);
    if (!where)
        return refuse(400, fmt::format("--listen cannot be \"{}\": write HOST:PORT, :PORT, *:PORT, "
                                       "udp://HOST:PORT or unix:///PATH ({})",
                                       text, transport::explain(uri, where.error())));
    if (where->kind != scheme::tcp && where->kind != scheme::udp &&
        where->kind != scheme::unix_socket)
        return refuse(400, fmt::format("--listen cannot be \"{}\": a program gets sockets of "
                                       "tcp://, udp:// and unix://, and does what is above them "
                                       "itself",
                                       text));
    if (where->path.empty() && uri.contains("://:")) where->host = this_host;
    return std::move(*where);
}

}  // namespace eddy::runtime
