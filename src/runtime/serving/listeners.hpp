// Listeners of one runtime: the one at its address, and beside it, where that is wanted, one with
// TLS and one for shared memory.
#pragma once

#include <eddy/transport/transport.hpp>

#include "runtime/listening.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace eddy::runtime {

/// The addresses that a runtime serves on.
struct listener_addresses {
    transport::address first;
    std::optional<transport::address> secure = {};  ///< tls, beside `first`
    std::optional<transport::address> shared = {};  ///< shm, as read_shm() makes it
    serving::accept_rules rules = {};               ///< its users are those of `first` alone
};

inline bool is_secure(const transport::address& where) noexcept {
    return where.kind == transport::scheme::tls;
}

/// One loop's thread.
struct listeners {
    noted_listener first;
    std::optional<noted_listener> secure;
    std::optional<noted_listener> shared;

    /// Their addresses, with the real ports.
    std::vector<endpoint> addresses() const;
    /// For connections that are accepted from then on; as listener_addresses::rules.
    void set_rules(const serving::accept_rules& rules);
    void close();
};

/// Opens them for the instance of this host, null without one. Handshakes of TLS are made on the
/// loops that connections are assigned to (acceptor, loop_pool); so are those of shared memory with
/// several `threads`, else by the listener itself, which ends the oldest of a process that has
/// many.
outcome<listeners> open_listeners(const listener_addresses& where, host* of, std::size_t threads);

/// As try_address() for all, of a runtime that serves on `own` now.
outcome<> try_addresses(listener_addresses wanted, std::span<const endpoint> own, const host* of);

/// Reads the certificates again, for the connections from then on. False where there are none. On
/// failure those that were read before stay.
outcome<bool> renew_certificates(listeners& of, const listener_addresses& where);

}  // namespace eddy::runtime
