// Listeners of one runtime: opening, trial and renewal.
#include "runtime/serving/listeners.hpp"

#include <utility>

namespace eddy::runtime {

std::vector<endpoint> listeners::addresses() const {
    std::vector<endpoint> all = {first.socket.local()};
    if (secure) all.push_back(secure->socket.local());
    return all;
}

void listeners::close() {
    first.socket.close();
    if (secure) secure->socket.close();
}

outcome<listeners> open_listeners(const listener_addresses& where, host* of, std::size_t threads) {
    const auto listen = threads > 1 ? listen_in_parts_on : listen_on;
    auto first = listen(where.first, of);
    if (!first) return std::unexpected(first.error());
    listeners opened{std::move(*first), std::nullopt};
    if (where.secure) {
        auto second = listen(*where.secure, of);
        if (!second) return std::unexpected(second.error());
        opened.secure = std::move(*second);
    }
    return opened;
}

outcome<> try_addresses(listener_addresses wanted, std::span<const endpoint> own, const host* of) {
    if (auto free = try_address(std::move(wanted.first), own, of); !free) return free;
    if (!wanted.secure) return {};
    return try_address(std::move(*wanted.secure), own, of);
}

outcome<bool> renew_certificates(listeners& of, const listener_addresses& where) {
    if (is_secure(where.first)) {
        auto renewed = renew_certificates(of.first, where.first);
        if (!renewed) return std::unexpected(renewed.error());
    }
    if (where.secure) {
        auto renewed = renew_certificates(*of.secure, *where.secure);
        if (!renewed) return std::unexpected(renewed.error());
    }
    return is_secure(where.first) || where.secure.has_value();
}

}  // namespace eddy::runtime
