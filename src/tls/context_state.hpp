// State of a TLS context: OpenSSL's contexts, one for each certificate, and the sessions that a
// client may resume.
#pragma once

#include <eddy/tls/tls.hpp>

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::tls {

/// Frees an object of OpenSSL's by its own function.
template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
template <class T, auto Free>
using owned = std::unique_ptr<T, freed_by<Free>>;

using owned_context = owned<SSL_CTX, SSL_CTX_free>;
using owned_ssl = owned<SSL, SSL_free>;
using owned_session = owned<SSL_SESSION, SSL_SESSION_free>;

/// All of it is fixed once the connections use it, but for the sessions, which a lock guards.
class context_state {
public:
    bool is_server() const noexcept { return server_; }
    bool verifies() const noexcept { return verifies_; }
    bool verifies_name() const noexcept { return verifies_name_; }
    SSL_CTX* first() const noexcept { return contexts_.front().get(); }

    /// The context of the certificate for that name, or null for the first one.
    SSL_CTX* for_name(std::string_view name) const;

    /// Takes the session that was kept for a server. One of TLS 1.3 is used once (RFC 8446,
    /// appendix C.4).
    owned_session take_session(const std::string& server) const;
    void keep_session(const std::string& server, owned_session session) const;

    /// The protocols in the form of RFC 7301: each behind its length.
    const std::string& alpn() const noexcept { return alpn_; }

private:
    friend class context_builder;

    bool server_ = false;
    bool verifies_ = false;
    bool verifies_name_ = true;
    std::vector<owned_context> contexts_;
    std::unordered_map<std::string, SSL_CTX*> names_;  // in lower case, wildcards as "*.x"
    std::string alpn_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::string, owned_session> sessions_;
};

}  // namespace eddy::tls
