// Digests by OpenSSL that the layers above need of old protocols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy::tls {

/// MD5 (RFC 1321), 16 bytes, for logins of old protocols, not for keeping secrets. Nothing where
/// OpenSSL has none, as in its FIPS mode.
std::optional<std::string> md5(std::string_view bytes);

}  // namespace eddy::tls
