// Connecting to known addresses without a look-up.
#include "proxy/connect.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>

#include "transport/secure.hpp"

#include <algorithm>
#include <utility>

namespace eddy::proxy {

task<result<stream>> connect(const backend& to, duration timeout, std::chrono::seconds keepalive) {
    tcp::connect_options options;
    options.timeout = timeout;
    options.socket = tcp::keepalive_after(keepalive);
    if (to.numeric()) {
        const time_point end = loop::current().after(timeout);
        auto made = co_await with_deadline(end, loop::current().connect(*to.numeric()));
        if (made) static_cast<void>(tcp::apply(*made, options.socket));
        if (!made || to.where().kind != transport::scheme::tls) co_return made;
        const duration left = std::max(end - loop::current().now(), duration{1});
        co_return co_await transport::secure(std::move(*made), to.where(), left);
    }
    co_return co_await with_timeout(timeout, transport::connect(to.where(), options));
}

std::string authority_of(const backend& of) {
    const transport::address& where = of.where();
    if (where.host.empty()) return "localhost";
    // A zone means something on this machine alone.
    const std::string& host = where.tls.name.empty() ? where.host : where.tls.name;
    const std::string name = host.substr(0, host.find('%'));
    const bool is_ipv6 = name.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + name + "]" : name) + ":" + std::to_string(where.port);
}

}  // namespace eddy::proxy
