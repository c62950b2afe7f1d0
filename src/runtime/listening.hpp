// Where a runtime serves: the options that say so, and errors that say what to do.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/option.hpp"
#include "runtime/problem.hpp"
#include "runtime/settings.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Notes, for as long as it lives, that a runtime of this process serves on an address, so that
/// another one which wants the same can be told who has it. Any thread.
class address_note {
public:
    address_note() noexcept = default;
    address_note(const endpoint& where, bool datagram, std::string runtime);
    address_note(address_note&& other) noexcept;
    address_note& operator=(address_note&& other) noexcept;
    ~address_note();

private:
    std::uint64_t id_ = 0;
};

/// A listener and the note that it is there.
struct noted_listener {
    listener socket;
    address_note note;
    /// Of one that listens in parts: see transport::listener_parts.
    transport::listener_parts::finisher finish = nullptr;
    transport::listener_parts::renewer renew = nullptr;
};
struct noted_datagram {
    datagram socket;
    address_note note;
};

/// The options --port, --bind, --unix, --listen and --max-connections, the same for every type that
/// listens.
option port_option();
/// `default_address` and `help` must live as long as the program.
option bind_option(std::string_view default_address, std::string_view help);
option unix_option();
option listen_option(std::string_view help);
option max_connections_option();

/// The address that those options of `chosen` name, a --port's as `port_scheme` (tcp or udp).
/// Refuses what contradicts itself and what names nothing.
outcome<transport::address> choose_address(const settings& chosen, transport::scheme port_scheme);

/// Listens there for the runtime `name`; a failure says what to do.
outcome<noted_listener> listen_on(const transport::address& where, const std::string& name);
/// The same, as transport::listen_in_parts().
outcome<noted_listener> listen_in_parts_on(const transport::address& where,
                                           const std::string& name);
outcome<noted_datagram> bind_datagram_on(const transport::address& where, const std::string& name);

/// Whether the runtime `name`, which serves on `own` now, could serve on the address after a
/// restart: listens there for a moment, which reads certificates, too. A port or path that it has
/// already is not opened a second time.
outcome<> try_address(transport::address wanted, std::span<const endpoint> own,
                      const std::string& name);
/// Reads the certificates of a tls address again, for the connections from then on. On failure
/// those that were read before stay.
outcome<> renew_certificates(noted_listener& of, const transport::address& where);

}  // namespace eddy::runtime
