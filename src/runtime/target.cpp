// Addresses that a runtime connects to: reading and checks.
#include "runtime/target.hpp"

#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace eddy::runtime {

using transport::scheme;

outcome<transport::address> read_target(std::string_view text, std::string_view flag) {
    std::string uri(text);
    if (!text.contains("://")) {
        if (text.starts_with(':')) uri.insert(0, this_machine);
        uri.insert(0, "tcp://");
    }
    auto read = transport::parse(uri);
    if (!read)
        return refuse(400, fmt::format("{} cannot be \"{}\": write HOST:PORT, or a URI such as "
                                       "tcp://HOST:PORT or unix:///PATH ({})",
                                       flag, text, transport::explain(uri, read.error())));
    if (read->kind == scheme::udp || read->kind == scheme::handoff)
        return refuse(400, fmt::format("{} cannot be \"{}\": {}:// has no connections to make; "
                                       "write tcp://, tls://, unix:// or shm://",
                                       flag, text, transport::to_string(read->kind)));
    if (has_port(*read) && read->host.empty())
        return refuse(400,
                      fmt::format("{} cannot be \"{}\": name the host to connect to", flag, text));
    if (has_port(*read) && read->port == 0)
        return refuse(400,
                      fmt::format("{} cannot be \"{}\": name the port to connect to", flag, text));
    if (auto whole = check_tls_files(read->tls); !whole) return std::unexpected(whole.error());
    return std::move(*read);
}

outcome<> check_target_files(const transport::address& of, std::string_view flag) {
    auto fine = check_tls_readable(of.tls, {.cert = "cert", .key = "key", .ca = "ca"});
    if (fine) return fine;
    return refuse(fine.error().status,
                  fmt::format("{} {}: {}", flag, of.to_string(), fine.error().message));
}

}  // namespace eddy::runtime
