// Application protocol of HTTP over TLS (ALPN, RFC 7301): its name, and addresses that ask for it.
#pragma once

#include <eddy/transport/transport.hpp>

namespace eddy::http {

/// HTTP/1.1 in the registry of protocols, the one that this layer speaks.
inline constexpr const char* alpn_name = "http/1.1";

/// Makes a TLS listener agree on it, unless its address names other protocols.
inline void accept_by_alpn(transport::address& where) {
    if (where.kind == transport::scheme::tls && where.tls.alpn.empty()) where.tls.alpn = alpn_name;
}

/// Makes a TLS client offer it alone, since the client speaks no other protocol.
inline void offer_by_alpn(transport::address& server) {
    if (server.kind == transport::scheme::tls) server.tls.alpn = alpn_name;
}

}  // namespace eddy::http
