// Mapping of OpenSSL's reasons and the peer's alerts to eddy::errc.
#include "tls/errors.hpp"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

namespace eddy::tls {
namespace {

errc certificate_error(long verification) noexcept {
    switch (verification) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH: return errc::certificate_name_mismatch;
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID: return errc::certificate_expired;
        default: return errc::untrusted_certificate;
    }
}

/// OpenSSL gives an alert that was received the reason 1000 and the alert's number.
errc alert_error(SSL* ssl, int alert, bool in_handshake) noexcept {
    switch (alert) {
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
        case SSL_AD_ACCESS_DENIED:
        case SSL_AD_CERTIFICATE_REQUIRED: return errc::certificate_refused;
        case SSL_AD_PROTOCOL_VERSION:
        case SSL_AD_INSUFFICIENT_SECURITY:
        case SSL_AD_NO_APPLICATION_PROTOCOL: return errc::no_common_protocol;
        case SSL_AD_HANDSHAKE_FAILURE:
            // Once a client has seen the server's certificate, all else is agreed on: what is left
            // is its own (RFC 5246, section 7.4.6).
            if (!SSL_is_server(ssl) && SSL_get0_peer_certificate(ssl))
                return errc::certificate_refused;
            return in_handshake ? errc::no_common_protocol : errc::handshake_failed;
        default: return errc::handshake_failed;
    }
}

errc reason_error(int reason, bool in_handshake) noexcept {
    switch (reason) {
        case SSL_R_HTTP_REQUEST:
        case SSL_R_HTTPS_PROXY_REQUEST:
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_UNKNOWN_PROTOCOL: return in_handshake ? errc::not_tls : errc::malformed;
        case SSL_R_NO_SHARED_CIPHER:
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_WRONG_SSL_VERSION:
        case SSL_R_NO_PROTOCOLS_AVAILABLE:
        case SSL_R_UNSUPPORTED_SSL_VERSION:
        case SSL_R_NO_APPLICATION_PROTOCOL: return errc::no_common_protocol;
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return errc::untrusted_certificate;
        default: return in_handshake ? errc::handshake_failed : errc::malformed;
    }
}

}  // namespace

std::error_code take_error(SSL* ssl, bool in_handshake) noexcept {
    const unsigned long error = ERR_peek_last_error();
    ERR_clear_error();
    if (ERR_GET_LIB(error) != ERR_LIB_SSL)
        return in_handshake ? errc::handshake_failed : errc::malformed;
    const int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return certificate_error(SSL_get_verify_result(ssl));
    if (reason > SSL_AD_REASON_OFFSET)
        return alert_error(ssl, reason - SSL_AD_REASON_OFFSET, in_handshake);
    return reason_error(reason, in_handshake);
}

std::string take_reason() {
    const unsigned long error = ERR_peek_error();
    ERR_clear_error();
    const char* reason = ERR_reason_error_string(error);
    return reason ? reason : "error " + std::to_string(error);
}

}  // namespace eddy::tls
