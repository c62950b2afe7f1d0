// Route source: a route as an option names it, with backends that may be names.
#pragma once

#include "base/problem.hpp"
#include "proxy/routes.hpp"
#include "runtime/proxy/backend_source.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::proxy {

struct route_source {
    eddy::proxy::route by;                 ///< without its balancer
    std::string alpn = {};                 ///< of TLS: protocol that clients must offer; empty: any
    std::vector<backend_source> backends;  ///< empty with a redirection

    friend bool operator==(const route_source& a, const route_source& b) {
        return a.by.host == b.by.host && a.by.path == b.by.path && a.by.prefix == b.by.prefix &&
               a.by.redirect == b.by.redirect && a.alpn == b.alpn && a.backends == b.backends;
    }
};

/// Reads "HOST/PATH=BACKENDS" and "HOST/PATH>PREFIX=BACKENDS". The refusal says what is wrong.
outcome<route_source> read_route(std::string_view text);

/// Reads "HOST=BACKENDS" and "HOST/ALPN=BACKENDS", of TLS connections that are not decrypted.
outcome<route_source> read_tls_route(std::string_view text);

/// Reads "HOST/PATH=URL".
outcome<route_source> read_redirect(std::string_view text);

}  // namespace eddy::runtime::proxy
