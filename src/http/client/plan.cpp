// Connecting to a server.
#include "http/client/plan.hpp"

#include "http/alpn.hpp"

#include <utility>

namespace eddy::http::detail {
namespace {

/// The value of Host. Unix sockets and their like have none of their own.
std::string host_of(const transport::address& server) {
    if (server.host.empty()) return "localhost";
    const bool is_ipv6 = server.host.find(':') != std::string::npos;
    // A zone (%eth0) means something on this machine alone.
    const std::string name = server.host.substr(0, server.host.find('%'));
    return (is_ipv6 ? "[" + name + "]" : name) + ":" + std::to_string(server.port);
}

}  // namespace

client_plan::client_plan(transport::address server, client_options chosen)
    : at(std::move(server)), options(std::move(chosen)), host(host_of(at)) {
    offer_by_alpn(at);
}

task<result<std::shared_ptr<client_connection>>> open_connection(
    std::shared_ptr<const client_plan> by) {
    const client_options& options = by->options;
    auto connected = co_await (options.connector ? options.connector()
                                                 : transport::connect(by->at, options.connect));
    if (!connected) co_return fail(connected.error());
    if (options.check) {
        const result<> fine = options.check(*connected);
        if (!fine) co_return fail(fine.error());
    }
    co_return std::make_shared<client_connection>(
        std::move(*connected), std::shared_ptr<const client_limits>(by, &options.limits));
}

}  // namespace eddy::http::detail
