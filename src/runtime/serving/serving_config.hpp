// Serving configuration: the part of a type's options that every runtime which serves streams has.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/serving/listeners.hpp"
#include "serving/served_listener.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace eddy::runtime {

/// Base of a type's own configuration.
struct serving_config {
    transport::address where;
    bool is_tls_by_option = false;                  ///< `where` is tls by --tls
    std::optional<transport::address> secure = {};  ///< tls, beside `where`
    std::optional<transport::address> shared = {};  ///< shm, beside `where`
    serving::accept_rules rules = {};
    std::size_t threads = 1;  ///< that serve clients

    listener_addresses addresses() const { return {where, secure, shared, rules}; }
};

/// Reads the options of choose_address(), tls_options(), shm_options(), --allow-users,
/// --tcp-keepalive and --threads into `to`. A --port's scheme is `port_scheme`. An address without
/// streams is refused with `no_stream`, unless that is empty.
outcome<> read_serving_config(const settings& chosen, transport::scheme port_scheme,
                              std::string_view no_stream, serving_config& to);

/// Checks that its certificates can be read now.
outcome<> check_certificates(const serving_config& of);

}  // namespace eddy::runtime
