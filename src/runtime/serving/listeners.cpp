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

std::array<bool, 3> listeners::are_open() const {
    return {static_cast<bool>(first.socket), secure && secure->socket, shared && shared->socket};
}

bool listeners::have_files() const {
    const auto has_file = [](const noted_listener& each) {
        const endpoint where = each.socket.local();
        return !where.is_unix() || socket_file::at(where.host()) == each.file;
    };
    return has_file(first) && (!secure || has_file(*secure)) && (!shared || has_file(*shared));
}

void listeners::set_rules(const serving::accept_rules& rules) {
    serving::set_rules(first, rules);
    if (secure)
        serving::set_rules(*secure, {.keepalive = rules.keepalive, .proxies = rules.proxies});
}

void listeners::close() {
    first.socket.close();
    if (secure) secure->socket.close();
    if (shared) shared->socket.close();
}

namespace {

/// Real port of the first address, which may be closed.
std::uint16_t port_of(const listeners& of, const listener_addresses& where) {
    return of.first.socket ? of.first.socket.local().port() : where.first.port;
}

/// Handshakes of TLS and shared memory are never the listener's own, so that its socket can pass to
/// an instance with other threads.
bool is_in_parts(const transport::address& at, std::size_t threads) noexcept {
    return threads > 1 || is_secure(at) || at.kind == transport::scheme::shm;
}

outcome<noted_listener> open_or_take(const transport::address& at, host& of, std::size_t threads,
                                     inherited_listeners* inherited) {
    const bool in_parts = is_in_parts(at, threads);
    if (inherited != nullptr) {
        auto taken = inherited->take(at, in_parts);
        if (!taken) return std::unexpected(explain_listen_failure(at, taken.error(), &of));
        if (*taken) {
            // The note of the instance before goes last: proxies find the address all the time.
            (*taken)->note = of.note_address(at, (*taken)->socket.local());
            return std::move(**taken);
        }
    }
    return in_parts ? listen_in_parts_on(at, of) : listen_on(at, of);
}

}  // namespace

outcome<listeners> open_listeners(const listener_addresses& where, host& of, std::size_t threads,
                                  inherited_listeners* inherited) {
    listeners opened;
    // Listeners that were taken go back, for the instance before.
    const auto failed = [&](problem& why) -> outcome<listeners> {
        if (inherited != nullptr) hand_over(opened, where, *inherited);
        return std::unexpected(std::move(why));
    };
    auto first = open_or_take(where.first, of, threads, inherited);
    if (!first) return failed(first.error());
    opened.first = std::move(*first);
    if (where.secure) {
        auto second = open_or_take(*where.secure, of, threads, inherited);
        if (!second) return failed(second.error());
        opened.secure = std::move(*second);
    }
    if (where.shared) {
        const std::uint16_t port = opened.first.socket.local().port();
        auto third = open_or_take(shm_address(*where.shared, port), of, threads, inherited);
        if (!third) return failed(third.error());
        opened.shared = std::move(*third);
    }
    opened.set_rules(where.rules);
    return opened;
}

void hand_over(listeners& of, const listener_addresses& where, inherited_listeners& to) {
    const auto give = [&](const transport::address& at, noted_listener& from) {
        if (!from.socket) return;
        inherited_listeners::entry given;
        given.where = at;
        given.port = from.socket.local().port();
        // Handshakes that are under way use what else `from` has.
        given.from.socket = std::move(from.socket);
        given.from.note = std::move(from.note);
        given.from.file = from.file;
        to.all.push_back(std::move(given));
    };
    const std::uint16_t port = port_of(of, where);
    give(where.first, of.first);
    if (of.secure && where.secure) give(*where.secure, *of.secure);
    if (of.shared && where.shared) give(shm_address(*where.shared, port), *of.shared);
}

outcome<> take_back(listeners& of, const listener_addresses& where, host& its, std::size_t threads,
                    inherited_listeners& from) {
    outcome<> all;
    const auto take = [&](const transport::address& at, noted_listener& to) {
        if (to.socket) return;
        const bool in_parts = is_in_parts(at, threads);
        auto taken = from.take_back(at);
        if (!taken) {
            auto opened = in_parts ? listen_in_parts_on(at, its) : listen_on(at, its);
            if (!opened) {
                problem lost = not_listening(at, opened.error());
                if (!all) lost.message.insert(0, all.error().message + "; ");
                all = std::unexpected(std::move(lost));
                return;
            }
            taken = std::move(*opened);
        }
        to.socket = std::move(taken->socket);
        to.note = its.note_address(at, to.socket.local());
        to.file = taken->file;
    };
    take(where.first, of.first);
    if (where.secure && of.secure) take(*where.secure, *of.secure);
    if (where.shared && of.shared) take(shm_address(*where.shared, port_of(of, where)), *of.shared);
    of.set_rules(where.rules);
    return all;
}

outcome<> try_addresses(listener_addresses wanted, std::span<const endpoint> own, const host& of) {
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
