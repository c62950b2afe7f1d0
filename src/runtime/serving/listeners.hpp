// Listeners of one runtime: the one at its address, and beside it, where that is wanted, one with
// TLS and one for shared memory.
#pragma once

#include <eddy/transport/transport.hpp>

#include "runtime/listening.hpp"
#include "runtime/serving/inherited_listeners.hpp"

#include <array>
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
    /// True for each of the three that is open.
    std::array<bool, 3> are_open() const;
    /// True while the files of Unix sockets are the ones that were made.
    bool have_files() const;
    /// For connections that are accepted from then on; as listener_addresses::rules.
    void set_rules(const serving::accept_rules& rules);
    void close();
};

/// Opens them for the instance of this host, or takes them out of `inherited`, null without any.
/// Handshakes of TLS and shared memory are made on the loops that connections are assigned to
/// (acceptor, loop_pool). On failure `inherited` has the taken listeners again.
outcome<listeners> open_listeners(const listener_addresses& where, host& of, std::size_t threads,
                                  inherited_listeners* inherited = nullptr);

/// Gives them to the next instance; `of` is closed then.
void hand_over(listeners& of, const listener_addresses& where, inherited_listeners& to);
/// Takes back the listeners of hand_over(), and opens the closed ones anew; open ones stay.
/// Handshakes stay what they were. The port of `where` is the real one. Fails with all listeners
/// that are still closed.
outcome<> take_back(listeners& of, const listener_addresses& where, host& its, std::size_t threads,
                    inherited_listeners& from);

/// As try_address() for all, of a runtime that serves on `own` now.
outcome<> try_addresses(listener_addresses wanted, std::span<const endpoint> own, const host& of);

/// Reads the certificates again, for the connections from then on. False where there are none. On
/// failure the ones that were read before stay.
outcome<bool> renew_certificates(listeners& of, const listener_addresses& where);

}  // namespace eddy::runtime
