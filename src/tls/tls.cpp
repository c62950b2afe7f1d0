// Factories of TLS streams, and queries of their negotiated properties.
#include <eddy/tls/tls.hpp>

#include "io/sockets/linger.hpp"
#include "tls/tls_listener.hpp"
#include "tls/tls_stream.hpp"

#include <openssl/x509.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::tls {
namespace {

/// For a client that reads the alert which has refused it.
constexpr linger_limits alert_linger{.whole = std::chrono::seconds(5),
                                     .idle = std::chrono::seconds(1)};

task<result<stream>> shake_hands(stream plain, context as, std::string server_name,
                                 duration timeout) {
    const bool is_server = as.state().is_server();
    result<stream> made =
        start_handshake(std::move(plain), std::move(as), std::move(server_name), timeout, nullptr);
    if (!made) co_return made;
    auto& driver = static_cast<tls_stream&>(made->driver());
    const result<> done = co_await awaiting<handshake_operation>(driver);
    if (done) co_return made;
    // A client of TLS 1.3 that is refused for its certificate has sent its request already, and
    // would lose the alert if that were unread at the close.
    stream* const below = is_server ? driver.refused_below() : nullptr;
    if (below != nullptr && below->shutdown_write()) co_await linger(*below, alert_linger);
    co_return fail(done.error());
}

std::string subject_of(X509* certificate) {
    const owned<BIO, BIO_free_all> text(BIO_new(BIO_s_mem()));
    if (!text) return {};
    X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace

result<stream> start_handshake(stream plain, context as, std::string server_name, duration timeout,
                               handshakes* counted) {
    try {
        auto* driver = new tls_stream(std::move(plain), std::move(as), std::move(server_name));
        stream made(*driver);
        if (!driver->usable()) return fail_errno(ENOMEM);
        driver->begin(timeout, counted);
        return made;
    } catch (const std::bad_alloc&) {
        return fail_errno(ENOMEM);
    }
}

task<result<stream>> connect(stream plain, context as, std::string_view server_name,
                             duration timeout) {
    EDDY_PRECONDITION(!as.state().is_server(),
                      "tls::connect() with a server's context: it takes one of context::client()");
    return shake_hands(std::move(plain), std::move(as), std::string(server_name), timeout);
}

task<result<stream>> accept(stream plain, context as, duration timeout) {
    EDDY_PRECONDITION(as.state().is_server(),
                      "tls::accept() with a client's context: it takes one of context::server()");
    return shake_hands(std::move(plain), std::move(as), std::string(), timeout);
}

listener listen(listener plain, context as, duration timeout, std::size_t max_handshakes) {
    EDDY_PRECONDITION(as.state().is_server(),
                      "tls::listen() with a client's context: it takes one of context::server()");
    EDDY_PRECONDITION(max_handshakes > 0,
                      "tls::listen() of no handshake: max_handshakes is at least 1");
    return listener(*new tls_listener(std::move(plain), std::move(as), timeout, max_handshakes));
}

bool renew(listener& of, context as) {
    auto* const driver = dynamic_cast<tls_listener*>(&of.driver());
    if (driver != nullptr) driver->use(std::move(as));
    return driver != nullptr;
}

bool is_tls(const stream& connection) noexcept {
    return dynamic_cast<const tls_stream*>(&connection.driver()) != nullptr;
}

std::optional<connection_info> info(const stream& connection) {
    const auto* driver = dynamic_cast<const tls_stream*>(&connection.driver());
    const engine* of = driver ? driver->finished_engine() : nullptr;
    if (!of) return std::nullopt;
    SSL* const ssl = of->ssl();
    connection_info made;
    made.version = SSL_get_version(ssl);
    made.cipher = SSL_get_cipher_name(ssl);
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &size);
    if (size > 0) made.alpn.assign(reinterpret_cast<const char*>(protocol), size);
    if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name))
        made.server_name = name;
    if (X509* certificate = SSL_get0_peer_certificate(ssl)) {
        made.peer_subject = subject_of(certificate);
        made.peer_verified = of->verifies() && SSL_get_verify_result(ssl) == X509_V_OK;
    }
    made.resumed = SSL_session_reused(ssl) == 1;
    return made;
}

}  // namespace eddy::tls
