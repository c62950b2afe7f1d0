// Listeners of one runtime: opening, trial and renewal.
#include "runtime/serving/listeners.hpp"

#include "runtime/serving/shm_options.hpp"

#include <utility>

namespace eddy::runtime {

std::vector<endpoint> listeners::addresses() const {
    std::vector<endpoint> all = {first.socket.local()};
    if (secure) all.push_back(secure->socket.local());
    if (shared) all.push_back(shared->socket.local());
    return all;
}

void listeners::set_rules(const serving::accept_rules& rules) {
    serving::set_rules(first, rules);
    if (secure) serving::set_rules(*secure, {.keepalive = rules.keepalive});
}

void listeners::close() {
    first.socket.close();
    if (secure) secure->socket.close();
    if (shared) shared->socket.close();
}

outcome<listeners> open_listeners(const listener_addresses& where, host* of, std::size_t threads) {
    const auto listen = [&](const transport::address& at, host* its) {
        return threads > 1 || is_secure(at) ? listen_in_parts_on(at, its) : listen_on(at, its);
    };
    auto first = listen(where.first, of);
    if (!first) return std::unexpected(first.error());
    listeners opened{std::move(*first), std::nullopt, std::nullopt};
    if (where.secure) {
        auto second = listen(*where.secure, of);
        if (!second) return std::unexpected(second.error());
        opened.secure = std::move(*second);
    }
    if (where.shared) {
        const std::uint16_t port = opened.first.socket.local().port();
        auto third = listen(shm_address(*where.shared, port), of);
        if (!third) return std::unexpected(third.error());
        opened.shared = std::move(*third);
    }
    opened.set_rules(where.rules);
    return opened;
}

outcome<> try_addresses(listener_addresses wanted, std::span<const endpoint> own, const host* of) {
    const std::uint16_t port = wanted.first.port;
    if (auto free = try_address(std::move(wanted.first), own, of); !free) return free;
    if (wanted.secure)
        if (auto free = try_address(std::move(*wanted.secure), own, of); !free) return free;
    // The name of a port that the kernel is to choose is not known yet.
    if (!wanted.shared || (wanted.shared->path.empty() && port == 0)) return {};
    return try_address(shm_address(std::move(*wanted.shared), port), own, of);
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
