// Construction of TLS contexts: certificates and keys are read, and their faults described.
#include <eddy/base/assert.hpp>
#include <eddy/tls/tls.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/text.hpp"
#include "tls/context_state.hpp"
#include "tls/engine.hpp"
#include "tls/errors.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace eddy::tls {
namespace {

using owned_bio = owned<BIO, BIO_free_all>;
using owned_certificate = owned<X509, X509_free>;
using owned_key = owned<EVP_PKEY, EVP_PKEY_free>;
using fault = std::unexpected<std::string>;

constexpr std::size_t largest_pem = 16 * 1024 * 1024;
/// Authorities of one folder.
constexpr std::size_t most_in_folder = 4096;

fault wrong(std::string what) { return std::unexpected(std::move(what)); }

bool is_pem_text(std::string_view given) noexcept { return given.contains("-----BEGIN"); }

/// Name of a given file or text in a sentence.
std::string name_of(std::string_view kind, std::string_view given) {
    std::string name = "the " + std::string(kind);
    return is_pem_text(given) ? name + " given as text" : name + " \"" + std::string(given) + '"';
}

/// The PEM text given, or the content of the file named.
std::expected<std::string, std::string> read_pem(std::string_view kind, const std::string& given) {
    const auto too_large = [&] { return wrong(name_of(kind, given) + " is larger than 16 MiB"); };
    if (is_pem_text(given)) {
        if (given.size() > largest_pem) return too_large();
        return given;
    }
    if (given.empty()) return wrong("the " + std::string(kind) + " is missing: name a PEM file");
    auto text = read_regular(given, largest_pem);
    if (text) return std::move(*text);
    if (text.error() == errc::limit_reached) return too_large();
    return wrong(name_of(kind, given) + " cannot be read: " + text.error().message());
}

/// "a1b2c3d4.0": the name of an authority in a folder where OpenSSL searches them.
bool is_hashed_name(std::string_view name) noexcept {
    constexpr std::size_t digits = 8;
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (name.size() < digits + 2 || name[digits] != '.') return false;
    return std::all_of(name.begin(), name.begin() + digits, is_hex) &&
           std::all_of(name.begin() + digits + 1, name.end(), is_digit);
}

owned_bio reader_of(const std::string& text) {
    return owned_bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// No user is there to enter a pass phrase.
int no_pass_phrase(char*, int, int, void*) { return -1; }

std::expected<std::vector<owned_certificate>, std::string> read_certificates(
    std::string_view kind, const std::string& given) {
    const auto text = read_pem(kind, given);
    if (!text) return wrong(text.error());
    const owned_bio from = reader_of(*text);
    std::vector<owned_certificate> found;
    ERR_clear_error();
    while (X509* next = PEM_read_bio_X509(from.get(), nullptr, no_pass_phrase, nullptr))
        found.emplace_back(next);
    const unsigned long error = ERR_peek_last_error();
    // The end of the text looks like a certificate without a first line.
    if (!found.empty() && ERR_GET_REASON(error) == PEM_R_NO_START_LINE) {
        ERR_clear_error();
        return found;
    }
    return wrong(name_of(kind, given) + " holds no usable certificate (" + take_reason() +
                 "): give PEM, which begins with -----BEGIN CERTIFICATE-----");
}

std::expected<owned_key, std::string> read_key(const std::string& given) {
    const auto text = read_pem("key", given);
    if (!text) return wrong(text.error());
    const owned_bio from = reader_of(*text);
    ERR_clear_error();
    owned_key key(PEM_read_bio_PrivateKey(from.get(), nullptr, no_pass_phrase, nullptr));
    if (!key)
        return wrong(name_of("key", given) + " cannot be used (" + take_reason() +
                     "): give a private key in PEM without a pass phrase");
    return key;
}

std::string comparable(std::string_view name) {
    std::string made = lower(name);
    while (made.ends_with('.')) made.pop_back();
    return made;
}

/// The names that a certificate is for: its DNS names, or without one its common name.
std::vector<std::string> names_in(X509* certificate) {
    std::vector<std::string> names;
    const auto text_of = [](const ASN1_STRING* from) {
        return std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(from)),
                                static_cast<std::size_t>(ASN1_STRING_length(from)));
    };
    const owned<GENERAL_NAMES, GENERAL_NAMES_free> all(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
        const GENERAL_NAME* one = sk_GENERAL_NAME_value(all.get(), i);
        if (one->type == GEN_DNS) names.push_back(comparable(text_of(one->d.dNSName)));
    }
    if (!all) {
        const X509_NAME* subject = X509_get_subject_name(certificate);
        const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
        if (at >= 0)
            names.push_back(
                comparable(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)))));
    }
    return names;
}

int number_of(version chosen) noexcept {
    return chosen == version::tls1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
}

/// OpenSSL's list for a version, in a server's order: AES-128-GCM first, where the keys are
/// ephemeral. The content of the list stays as it is, since the system may have a policy.
std::string usual_ciphers(const SSL_CTX* of, version spoken) {
    const auto is_first = [](const SSL_CIPHER* one) {
        const int exchange = SSL_CIPHER_get_kx_nid(one);
        return SSL_CIPHER_get_cipher_nid(one) == NID_aes_128_gcm &&
               (exchange == NID_kx_ecdhe || exchange == NID_kx_any);
    };
    const STACK_OF(SSL_CIPHER)* const all = SSL_CTX_get_ciphers(of);
    std::string first;
    std::string others;
    for (int i = 0; i < sk_SSL_CIPHER_num(all); ++i) {
        const SSL_CIPHER* const one = sk_SSL_CIPHER_value(all, i);
        const bool is_new = SSL_CIPHER_get_kx_nid(one) == NID_kx_any;
        if (is_new != (spoken == version::tls1_3)) continue;
        (is_first(one) ? first : others) += std::string(SSL_CIPHER_get_name(one)) + ':';
    }
    first += others;
    if (!first.empty()) first.pop_back();
    return first;
}

/// The server's choice of an application protocol (RFC 7301, section 3.2).
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* of) {
    const std::string& ours = static_cast<const context_state*>(of)->alpn();
    unsigned char* found = nullptr;
    const int outcome =
        SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(ours.data()),
                              static_cast<unsigned>(ours.size()), offered, offered_size);
    if (outcome != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

int choose_certificate(SSL* ssl, int*, void* of) {
    const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (!name) return SSL_TLSEXT_ERR_NOACK;
    if (SSL_CTX* other = static_cast<const context_state*>(of)->for_name(name))
        SSL_set_SSL_CTX(ssl, other);
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace

SSL_CTX* context_state::for_name(std::string_view name) const {
    const std::string wanted = comparable(name);
    if (const auto found = names_.find(wanted); found != names_.end()) return found->second;
    // A wildcard stands for exactly one label (RFC 6125, section 6.4.3).
    const std::size_t dot = wanted.find('.');
    if (dot == std::string::npos || dot == 0) return nullptr;
    const auto found = names_.find('*' + wanted.substr(dot));
    return found == names_.end() ? nullptr : found->second;
}

owned_session context_state::take_session(const std::string& server) const {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(server);
    if (found == sessions_.end()) return nullptr;
    if (SSL_SESSION_get_protocol_version(found->second.get()) < TLS1_3_VERSION) {
        SSL_SESSION_up_ref(found->second.get());
        return owned_session(found->second.get());
    }
    owned_session taken = std::move(found->second);
    sessions_.erase(found);
    return taken;
}

void context_state::keep_session(const std::string& server, owned_session session) const {
    const std::lock_guard lock(mutex_);
    if (sessions_.size() >= max_kept_sessions && !sessions_.contains(server))
        sessions_.erase(sessions_.begin());
    sessions_[server] = std::move(session);
}

/// Builds a state step by step; each step fails with a sentence.
class context_builder {
public:
    using step = std::expected<void, std::string>;

    context_builder() : state_(std::make_shared<context_state>()) {}

    step add_context(bool server, version min, version max) {
        state_->server_ = server;
        if (min > max) return wrong("min is TLS 1.3 and max TLS 1.2: no version lies between them");
        ERR_clear_error();
        owned_context made(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
        if (!made) return wrong("OpenSSL cannot be used: " + take_reason());
        SSL_CTX_set_min_proto_version(made.get(), number_of(min));
        SSL_CTX_set_max_proto_version(made.get(), number_of(max));
        SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        // An idle connection keeps no buffers for records.
        SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_app_data(made.get(), state_.get());
        state_->contexts_.push_back(std::move(made));
        return {};
    }

    step set_ciphers(cipher_lists chosen) {
        if (state_->server_) {
            if (chosen.tls1_2.empty()) chosen.tls1_2 = usual_ciphers(last(), version::tls1_2);
            if (chosen.tls1_3.empty()) chosen.tls1_3 = usual_ciphers(last(), version::tls1_3);
        }
        ERR_clear_error();
        if (!chosen.tls1_2.empty() && SSL_CTX_set_cipher_list(last(), chosen.tls1_2.c_str()) != 1)
            return wrong("no cipher of TLS 1.2 is left by \"" + chosen.tls1_2 + "\" (" +
                         take_reason() + "): `openssl ciphers -v -tls1_2` lists them");
        if (!chosen.tls1_3.empty() && SSL_CTX_set_ciphersuites(last(), chosen.tls1_3.c_str()) != 1)
            return wrong("\"" + chosen.tls1_3 + "\" is no list of ciphers of TLS 1.3 (" +
                         take_reason() + "): `openssl ciphers -s -tls1_3` lists them");
        return {};
    }

    void prefer_own_ciphers() {
        SSL_CTX_set_options(last(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    }

    step set_protocols(const std::vector<std::string>& protocols) {
        std::string& wire = state_->alpn_;
        wire.clear();
        for (const std::string& one : protocols) {
            if (one.empty() || one.size() > 255)
                return wrong("the application protocol \"" + one.substr(0, 40) +
                             "\" must have 1 to 255 bytes");
            wire += static_cast<char>(one.size());
            wire += one;
        }
        if (wire.size() > 65535) return wrong("the application protocols have over 65535 bytes");
        if (wire.empty()) return {};
        if (state_->server_)
            SSL_CTX_set_alpn_select_cb(last(), choose_protocol, state_.get());
        else if (SSL_CTX_set_alpn_protos(last(),
                                         reinterpret_cast<const unsigned char*>(wire.data()),
                                         static_cast<unsigned>(wire.size())) != 0)
            return wrong("the application protocols cannot be used: " + take_reason());
        return {};
    }

    step use(const certificate& own) {
        auto chain = read_certificates("certificate", own.chain);
        if (!chain) return wrong(chain.error());
        const auto key = read_key(own.key);
        if (!key) return wrong(key.error());
        ERR_clear_error();
        if (SSL_CTX_use_certificate(last(), chain->front().get()) != 1)
            return wrong(name_of("certificate", own.chain) + " cannot be used: " + take_reason());
        if (SSL_CTX_use_PrivateKey(last(), key->get()) != 1 ||
            SSL_CTX_check_private_key(last()) != 1)
            return wrong(name_of("key", own.key) + " does not belong to " +
                         name_of("certificate", own.chain) + " (" + take_reason() +
                         "): the file's first certificate must be the key's own");
        for (std::size_t i = 1; i < chain->size(); ++i)
            if (SSL_CTX_add1_chain_cert(last(), (*chain)[i].get()) != 1)
                return wrong(name_of("certificate", own.chain) +
                             " cannot be used: " + take_reason());
        // The first certificate for a name serves it.
        for (std::string& name : names_in(chain->front().get()))
            state_->names_.try_emplace(std::move(name), last());
        return {};
    }

    step trust(const std::string& ca) {
        ERR_clear_error();
        struct stat info{};
        if (ca.empty()) {
            if (SSL_CTX_set_default_verify_paths(last()) != 1)
                return wrong("the system's list of certificate authorities cannot be read: " +
                             take_reason() + "; install ca-certificates, or name a CA file");
        } else if (!is_pem_text(ca) && ::stat(ca.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
            return trust_folder(ca);
        } else {
            const auto authorities = read_certificates("CA file", ca);
            if (!authorities) return wrong(authorities.error());
            X509_STORE* store = SSL_CTX_get_cert_store(last());
            for (const owned_certificate& one : *authorities) {
                if (X509_STORE_add_cert(store, one.get()) != 1)
                    return wrong(name_of("CA file", ca) + " cannot be used: " + take_reason());
                // A server sends its clients the authorities that it accepts.
                if (state_->server_) SSL_CTX_add_client_CA(last(), one.get());
            }
        }
        return {};
    }

    /// The authorities of a folder as openssl-rehash(1) makes it. OpenSSL by itself would open them
    /// in the middle of a handshake, on the loop, and wait for a FIFO.
    step trust_folder(const std::string& folder) {
        std::vector<std::string> names;
        std::error_code error;
        for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
             at.increment(error)) {
            std::string name = at->path().filename().string();
            if (is_hashed_name(name)) names.push_back(std::move(name));
            if (names.size() > most_in_folder)
                return wrong(name_of("CA folder", folder) + " has more than " +
                             std::to_string(most_in_folder) + " authorities");
        }
        if (error)
            return wrong(name_of("CA folder", folder) + " cannot be read: " + error.message());
        X509_STORE* const store = SSL_CTX_get_cert_store(last());
        std::size_t size = 0;
        for (const std::string& name : names) {
            const std::string path = folder + "/" + name;
            const auto text = read_regular(path, largest_pem - size);
            // A dangling link.
            if (!text && text.error() == std::errc::no_such_file_or_directory) continue;
            if (!text && text.error() == errc::limit_reached)
                return wrong(name_of("CA folder", folder) + " has more than 16 MiB");
            if (!text)
                return wrong(name_of("CA file", path) +
                             " cannot be read: " + text.error().message());
            size += text->size();
            const owned_bio from = reader_of(*text);
            while (X509* next =
                       PEM_read_bio_X509_AUX(from.get(), nullptr, no_pass_phrase, nullptr)) {
                const owned_certificate one(next);
                if (X509_STORE_add_cert(store, one.get()) != 1)
                    return wrong(name_of("CA file", path) + " cannot be used: " + take_reason());
            }
            // Files that are no certificates are skipped, as OpenSSL does.
            ERR_clear_error();
        }
        return {};
    }

    void verify(int mode, bool name = true) {
        state_->verifies_ = true;
        state_->verifies_name_ = name;
        SSL_CTX_set_verify(last(), mode, nullptr);
    }

    void keep_sessions() {
        SSL_CTX_set_session_cache_mode(last(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(last(), engine::on_new_session);
    }

    void serve_sessions(bool tickets) {
        static constexpr unsigned char name[] = "eddy";
        SSL_CTX_set_session_id_context(last(), name, sizeof(name) - 1);
        // Tickets store at the client what a cache would store here.
        SSL_CTX_set_session_cache_mode(last(), SSL_SESS_CACHE_OFF);
        if (!tickets) SSL_CTX_set_options(last(), SSL_OP_NO_TICKET);
        // One ticket suffices for the next connection. OpenSSL's second one in TLS 1.3 costs its
        // encryption and a send(2).
        SSL_CTX_set_num_tickets(last(), tickets ? 1 : 0);
    }

    void choose_by_name() {
        SSL_CTX_set_tlsext_servername_callback(state_->first(), choose_certificate);
        SSL_CTX_set_tlsext_servername_arg(state_->first(), state_.get());
    }

    std::shared_ptr<const context_state> finish() { return std::move(state_); }

private:
    SSL_CTX* last() noexcept { return state_->contexts_.back().get(); }

    std::shared_ptr<context_state> state_;
};

std::expected<context, std::string> context::client(const client_options& options) {
    context_builder made;
    if (auto done = made.add_context(false, options.min, options.max); !done)
        return wrong(done.error());
    if (auto done = made.set_ciphers(options.ciphers); !done) return wrong(done.error());
    if (auto done = made.set_protocols(options.alpn); !done) return wrong(done.error());
    if (options.own.chain.empty() != options.own.key.empty())
        return wrong("a certificate and its key go together: give both or neither");
    if (!options.own.chain.empty())
        if (auto done = made.use(options.own); !done) return wrong(done.error());
    if (options.verify) {
        if (auto done = made.trust(options.ca); !done) return wrong(done.error());
        made.verify(SSL_VERIFY_PEER, options.verify_name);
    }
    if (options.resume) made.keep_sessions();
    return context(made.finish());
}

std::expected<context, std::string> context::server(const server_options& options) {
    if (options.certificates.empty())
        return wrong("a TLS server needs a certificate and its key: give two PEM files");
    const bool asks = options.clients != client_verification::off;
    if (asks && options.client_ca.empty())
        return wrong("clients shall be verified: name the CA file that signs their certificates");
    context_builder made;
    for (const certificate& own : options.certificates) {
        if (auto done = made.add_context(true, options.min, options.max); !done)
            return wrong(done.error());
        if (auto done = made.set_ciphers(options.ciphers); !done) return wrong(done.error());
        if (options.prefer_own_ciphers) made.prefer_own_ciphers();
        if (auto done = made.set_protocols(options.alpn); !done) return wrong(done.error());
        if (auto done = made.use(own); !done) return wrong(done.error());
        made.serve_sessions(options.tickets);
        if (!asks) continue;
        if (auto done = made.trust(options.client_ca); !done) return wrong(done.error());
        const bool required = options.clients == client_verification::required;
        made.verify(SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0));
    }
    made.choose_by_name();
    return context(made.finish());
}

}  // namespace eddy::tls
