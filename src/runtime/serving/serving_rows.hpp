// Rows of the options that read_serving_config() reads, for a type's table: `Config` is derived
// from serving_config.
#pragma once

#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_config.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/tls_options.hpp"

#include <string_view>
#include <utility>

namespace eddy::runtime {

/// Where it listens, without TLS and shared memory.
template <class Config>
bound_options<Config> listening_rows(std::string_view listen_help, option bind = bind_option()) {
    using row = bound_option<Config>;
    const auto users = nested(&Config::rules, &serving::accept_rules::users);
    return {row::unbound(port_option()), row::unbound(std::move(bind)), row::unbound(unix_option()),
            row::copied(users, allow_users_option()), row::unbound(listen_option(listen_help))};
}

/// TLS and shared memory.
template <class Config>
bound_options<Config> secure_rows() {
    using row = bound_option<Config>;
    return joined({row::unbound_all(tls_options()), row::unbound_all(shm_options())});
}

/// --tcp-keepalive.
template <class Config>
bound_option<Config> keepalive_row(option row = tcp_keepalive_option()) {
    return bound_option<Config>::copied(nested(&Config::rules, &serving::accept_rules::keepalive),
                                        std::move(row));
}

/// --accept-proxy, read after read_serving_config().
template <class Config>
bound_option<Config> accept_proxy_row() {
    return bound_option<Config>::read_by(
        nested(&Config::rules, &serving::accept_rules::proxies), accept_proxy_option(),
        [](const settings& chosen, const Config& of) { return read_proxies(chosen, of.where); });
}

}  // namespace eddy::runtime
