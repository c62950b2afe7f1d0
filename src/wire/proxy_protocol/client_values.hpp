// Additional values (TLV) of a PROXY header about the client's connection to the proxy.
#pragma once

#include "wire/proxy_protocol/header.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::proxy_protocol {

/// Description of a client by its proxy, as it was sent: any bytes, at most max_content in all.
/// Absent values are empty. Any thread.
struct client_values {
    std::string alpn;       ///< application protocol that was agreed on, such as "h2"
    std::string authority;  ///< host that the client has named, such as by SNI
    std::string unique_id;  ///< of the connection, at most max_unique_id bytes

    bool has_tls = false;      ///< the client has connected by TLS:
    std::string tls_version;   ///< such as "TLSv1.3"
    std::string tls_cipher;    ///< as OpenSSL names it
    std::string tls_name;      ///< common name of its certificate
    bool is_verified = false;  ///< its certificate was shown and is valid

    friend bool operator==(const client_values&, const client_values&) = default;
};

/// Longest unique id that counts, as the protocol limits it.
inline constexpr std::size_t max_unique_id = 128;

/// Reads those of parser::tlvs(). Of several of a type the first one counts; one that is malformed
/// within counts as absent.
client_values read_client_values(std::string_view tlvs);

}  // namespace eddy::proxy_protocol
