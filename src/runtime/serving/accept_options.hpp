// Options of accepting, for all types: the users of a Unix socket's clients, TCP keepalive, and
// proxies that announce their clients.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "net/network.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "serving/served_listener.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// The option --allow-users of types that serve a Unix socket of their own.
option allow_users_option();
/// The option --tcp-keepalive.
option tcp_keepalive_option();

/// The option --accept-proxy, of types that serve streams.
option accept_proxy_option();

/// Networks joined by commas, as `flag` gives them.
outcome<std::vector<network>> read_networks(std::string_view list, std::string_view flag);

/// Value of accept_rules::proxies for a listener at `where`: that of --accept-proxy.
outcome<std::vector<network>> read_proxies(const settings& chosen, const transport::address& where);

/// Users by name or number, joined by commas, as --allow-users gives them.
outcome<std::vector<uid_t>> read_users(std::string_view list);

/// Value of accept_rules::users for a listener at `where`. Without --allow-users all users may
/// connect to a socket with a file, as its permissions admit, and the own one and root to one
/// without a file.
outcome<std::optional<std::vector<uid_t>>> read_allowed_users(const settings& chosen,
                                                              const transport::address& where);

/// Time of --tcp-keepalive in whole seconds; zero for none.
std::chrono::seconds read_tcp_keepalive(const settings& chosen);

/// The users and the time.
outcome<serving::accept_rules> read_accept_rules(const settings& chosen,
                                                 const transport::address& where);

}  // namespace eddy::runtime
