// TLS engine: OpenSSL with a BIO of our own, which reads from a lease and writes to the stream
// below.
#include "tls/engine.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>

#include "tls/buffers.hpp"
#include "tls/errors.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace eddy::tls {

/// The BIO's functions; see BIO_meth_new(3).
struct engine_bio {
    static engine& of(BIO* bio) noexcept { return *static_cast<engine*>(BIO_get_data(bio)); }

    static int read(BIO* bio, char* into, std::size_t room, std::size_t* size) noexcept {
        engine& self = of(bio);
        const const_bytes left = self.input_.bytes().subspan(self.used_);
        BIO_clear_retry_flags(bio);
        if (left.empty()) {
            self.starved_ = true;
            BIO_set_retry_read(bio);
            return 0;
        }
        *size = std::min(room, left.size());
        std::memcpy(into, left.data(), *size);
        self.used_ += *size;
        // The buffer is the loop's, and others may want it.
        if (*size == left.size()) self.drop_input();
        return 1;
    }

    /// Takes everything, so that no call of OpenSSL's is left half done.
    static int write(BIO* bio, const char* from, std::size_t size, std::size_t* written) noexcept {
        engine& self = of(bio);
        BIO_clear_retry_flags(bio);
        *written = size;
        if (self.output_error_) return 1;
        std::string_view text(from, size);
        if (self.output_.empty() && !self.holding_) {
            const auto taken = self.below_.try_write(as_bytes(text));
            if (!taken) {
                self.output_error_ = taken.error();
                return 1;
            }
            text.remove_prefix(*taken);
            if (text.empty()) return 1;
        }
        try {
            if (self.output_.capacity() == 0) self.output_ = take_ciphertext_buffer();
            self.output_.append(text);
        } catch (const std::bad_alloc&) {
            self.output_error_ = errno_code(ENOMEM);
        }
        return 1;
    }

    static long control(BIO*, int what, long, void*) noexcept { return what == BIO_CTRL_FLUSH; }

    static const BIO_METHOD* methods() {
        static const BIO_METHOD* const made = [] {
            BIO_METHOD* method =
                BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "eddy stream");
            if (!method) return method;
            BIO_meth_set_read_ex(method, read);
            BIO_meth_set_write_ex(method, write);
            BIO_meth_set_ctrl(method, control);
            return method;
        }();
        return made;
    }
};

engine::engine(context as, std::string server_name, stream& below)
    : context_(std::move(as)), server_name_(std::move(server_name)), below_(below) {
    ssl_.reset(SSL_new(context_.state().first()));
    const BIO_METHOD* const methods = engine_bio::methods();
    BIO* bio = ssl_ && methods ? BIO_new(methods) : nullptr;
    if (!bio) {
        ssl_.reset();
        return;
    }
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), this);
    if (context_.state().is_server())
        SSL_set_accept_state(ssl_.get());
    else if (!prepare_client())
        ssl_.reset();
}

engine::~engine() {
    if (output_.capacity() > 0) give_back_ciphertext_buffer(std::move(output_));
}

bool engine::prepare_client() {
    SSL* const ssl = ssl_.get();
    SSL_set_connect_state(ssl);
    while (server_name_.ends_with('.')) server_name_.pop_back();
    const bool is_address = endpoint::ip(server_name_, 0).has_value() && !server_name_.empty();
    const bool checks = context_.state().verifies_name();
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (is_address && checks) {
        // Without the scope of a link-local address, which only this machine knows.
        const std::string bare = server_name_.substr(0, server_name_.find('%'));
        if (X509_VERIFY_PARAM_set1_ip_asc(wanted, bare.c_str()) != 1) return false;
    } else if (!is_address) {
        // An empty name would switch the check off; this one is reserved (RFC 2606).
        const char* const name = server_name_.empty() ? "no-name.invalid" : server_name_.c_str();
        if (checks && SSL_set1_host(ssl, name) != 1) return false;
        if (!server_name_.empty() && SSL_set_tlsext_host_name(ssl, name) != 1) return false;
    }
    if (const owned_session kept = context_.state().take_session(server_name_))
        SSL_set_session(ssl, kept.get());
    return true;
}

int engine::on_new_session(SSL* ssl, SSL_SESSION* session) noexcept {
    const engine& self = *static_cast<engine*>(SSL_get_app_data(ssl));
    if (!SSL_SESSION_is_resumable(session)) return 0;
    try {
        self.context_.state().keep_session(self.server_name_, owned_session(session));
    } catch (const std::bad_alloc&) {
        // The session is gone with its owner; the next connection makes a full handshake.
    }
    return 1;
}

/// Errors left in this thread's queue by other code would be taken for this connection's:
/// SSL_get_error(3) reads the queue first.
void engine::begin_call() noexcept {
    starved_ = false;
    if (ERR_peek_error() != 0) ERR_clear_error();
}

engine::status engine::outcome_of(int returned, bool in_handshake) noexcept {
    if (returned == 1) return status::done;
    if (starved_) return status::want_input;
    if (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN &&
        SSL_get_error(ssl_.get(), returned) == SSL_ERROR_ZERO_RETURN)
        error_ = errc::end_of_stream;
    else
        error_ = take_error(ssl_.get(), in_handshake);
    return status::failed;
}

engine::status engine::handshake() {
    begin_call();
    return outcome_of(SSL_do_handshake(ssl_.get()), true);
}

engine::status engine::read(mutable_bytes into, std::size_t& size) {
    begin_call();
    size = 0;
    return outcome_of(SSL_read_ex(ssl_.get(), into.data(), into.size(), &size), false);
}

engine::status engine::peek() {
    begin_call();
    char byte = 0;
    std::size_t size = 0;
    return outcome_of(SSL_peek_ex(ssl_.get(), &byte, 1, &size), false);
}

engine::status engine::write(const_bytes bytes) {
    EDDY_ASSERT(!bytes.empty() && bytes.size() <= max_record);
    begin_call();
    std::size_t written = 0;
    const status outcome =
        outcome_of(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written), false);
    if (outcome != status::want_input) return outcome;
    // No input can be needed after the handshake: there is no renegotiation.
    error_ = errc::malformed;
    return status::failed;
}

void engine::finish() noexcept {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
}

void engine::feed(lease received) noexcept {
    EDDY_ASSERT(input_.bytes().size() == 0);
    input_ = std::move(received);
    used_ = 0;
}

bool engine::has_input() const noexcept { return input_.size() > 0 || SSL_pending(ssl_.get()) > 0; }

byte_buffer engine::take_output() noexcept { return std::exchange(output_, byte_buffer()); }

}  // namespace eddy::tls
