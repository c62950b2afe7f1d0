// Order of TLS routes, and the reading of ClientHellos.
#include "proxy/tls_routes.hpp"

#include <eddy/io/lease.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "proxy/routes.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace eddy::proxy {

tls_route_table::tls_route_table(std::vector<tls_route> all) : all_(std::move(all)) {
    std::ranges::sort(all_, std::ranges::greater(),
                      [](const tls_route& of) { return host_specificity(of.host); });
}

const tls_route* tls_route_table::find(const client_hello::contents& of) const noexcept {
    const tls_route* best = nullptr;
    std::size_t best_rank = 0;
    for (const tls_route& each : all_) {
        if (best != nullptr && each.host != best->host) continue;
        if (!matches_host(each.host, of.server_name)) continue;
        // The place in the client's order; behind all of them without a protocol.
        const auto offered = std::ranges::find(of.alpn, each.alpn);
        if (!each.alpn.empty() && offered == of.alpn.end()) continue;
        const auto rank = static_cast<std::size_t>(offered - of.alpn.begin());
        if (best != nullptr && rank >= best_rank) continue;
        best = &each;
        best_rank = rank;
    }
    return best;
}

task<result<client_hello::contents>> read_hello(stream& from, byte_buffer& received) {
    const time_point deadline = loop::current().after(hello_time);
    client_hello::parser hello;
    for (;;) {
        const result<lease> got = co_await with_deadline(deadline, from.read());
        if (!got) co_return fail(got.error());
        received.append(got->bytes());
        const result<bool> is_complete = hello.feed(got->text());
        if (!is_complete && is_complete.error() == errc::unsupported)
            co_return client_hello::contents();
        if (!is_complete) co_return fail(is_complete.error());
        if (*is_complete) co_return hello.found();
    }
}

}  // namespace eddy::proxy
