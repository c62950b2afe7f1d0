// Translation of OpenSSL's errors for users.
#pragma once

#include <eddy/base/result.hpp>

#include <openssl/ssl.h>

#include <string>

namespace eddy::tls {

/// The code for the failure that the last call on `ssl` reported, which empties OpenSSL's queue of
/// errors. `in_handshake` says whether the handshake was still going on.
std::error_code take_error(SSL* ssl, bool in_handshake) noexcept;

/// The first reason in the queue of errors, in OpenSSL's words, which empties it.
std::string take_reason();

}  // namespace eddy::tls
