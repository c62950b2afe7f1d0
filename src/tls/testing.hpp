// Helpers of the TLS tests: an authority that signs certificates, and pairs of connected TLS
// streams.
#pragma once

#include <eddy/tls/tls.hpp>

#include "io/testing.hpp"
#include "tls/context_state.hpp"
#include "tls/tls_stream.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::tls {

/// Content of a certificate.
struct request {
    std::string subject = "test";
    std::vector<std::string> names = {};  ///< "DNS:a.example", "IP:127.0.0.1"
    int first_day = -1;                   ///< from today
    int last_day = 30;
};

/// Signs certificates. Its own is self-signed.
class authority {
public:
    explicit authority(std::string subject = "test authority")
        : key_(make_key()), certificate_(make(*key_, {std::move(subject)}, nullptr, *key_)) {}

    std::string pem() const { return text_of(*certificate_); }

    certificate issue(const request& wanted) const {
        const auto key = make_key();
        const auto made = make(*key, wanted, certificate_.get(), *key_);
        return {text_of(*made), text_of(*key)};
    }

    /// Self-signed.
    static certificate self_signed(const request& wanted) {
        const auto key = make_key();
        const auto made = make(*key, wanted, nullptr, *key);
        return {text_of(*made), text_of(*key)};
    }

private:
    using key_handle = owned<EVP_PKEY, EVP_PKEY_free>;
    using certificate_handle = owned<X509, X509_free>;

    static key_handle make_key() {
        key_handle made(EVP_EC_gen("P-256"));
        if (!made) throw std::runtime_error("no key can be made");
        return made;
    }

    static void add(X509& to, X509* issuer, int kind, const std::string& value) {
        X509V3_CTX where;
        X509V3_set_ctx(&where, issuer ? issuer : &to, &to, nullptr, nullptr, 0);
        X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, &where, kind, value.c_str());
        if (!made) throw std::runtime_error("no such extension: " + value);
        X509_add_ext(&to, made, -1);
        X509_EXTENSION_free(made);
    }

    static certificate_handle make(EVP_PKEY& key, const request& wanted, X509* issuer,
                                   EVP_PKEY& signing) {
        static long serial = 0;
        certificate_handle made(X509_new());
        X509_set_version(made.get(), X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
        X509_gmtime_adj(X509_getm_notBefore(made.get()), wanted.first_day * 86'400L);
        X509_gmtime_adj(X509_getm_notAfter(made.get()), wanted.last_day * 86'400L);
        X509_set_pubkey(made.get(), &key);
        X509_NAME* name = X509_get_subject_name(made.get());
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(wanted.subject.c_str()),
                                   -1, -1, 0);
        X509_set_issuer_name(made.get(), issuer ? X509_get_subject_name(issuer) : name);
        if (!issuer) add(*made, issuer, NID_basic_constraints, "critical,CA:TRUE");
        std::string names;
        for (const std::string& one : wanted.names) names += (names.empty() ? "" : ",") + one;
        if (!names.empty()) add(*made, issuer, NID_subject_alt_name, names);
        if (X509_sign(made.get(), &signing, EVP_sha256()) == 0)
            throw std::runtime_error("the certificate cannot be signed");
        return made;
    }

    static std::string text_in(BIO& memory) {
        char* data = nullptr;
        const long size = BIO_get_mem_data(&memory, &data);
        return {data, static_cast<std::size_t>(size)};
    }
    static std::string text_of(X509& from) {
        const owned<BIO, BIO_free_all> memory(BIO_new(BIO_s_mem()));
        PEM_write_bio_X509(memory.get(), &from);
        return text_in(*memory);
    }
    static std::string text_of(EVP_PKEY& from) {
        const owned<BIO, BIO_free_all> memory(BIO_new(BIO_s_mem()));
        PEM_write_bio_PrivateKey(memory.get(), &from, nullptr, nullptr, 0, nullptr, nullptr);
        return text_in(*memory);
    }

    key_handle key_;
    certificate_handle certificate_;
};

/// The authority of all tests; keys take a moment to make.
inline const authority& test_authority() {
    static const authority made;
    return made;
}

inline const certificate& localhost_certificate() {
    static const certificate made = test_authority().issue(
        {.subject = "localhost", .names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}});
    return made;
}

/// The value, or a failed test.
inline context must(std::expected<context, std::string> made) {
    if (!made) throw std::runtime_error(made.error());
    return *made;
}

/// Options under which the two ends below agree.
inline server_options usual_server() { return {.certificates = {localhost_certificate()}}; }
inline client_options usual_client() { return {.ca = test_authority().pem()}; }

/// Both ends of a connection; what failed has an error.
struct both_ends {
    result<stream> client = fail(errc::closed);
    result<stream> server = fail(errc::closed);
};

inline task<> accept_into(stream plain, context as, result<stream>& place) {
    place = co_await accept(std::move(plain), std::move(as));
}
inline task<> connect_into(stream plain, context as, std::string name, result<stream>& place) {
    place = co_await connect(std::move(plain), std::move(as), name);
}

/// OpenSSL's own object, for what the library has no words for.
inline SSL* ssl_of(const stream& secure) {
    return dynamic_cast<tls_stream&>(secure.driver()).finished_engine()->ssl();
}

/// Makes the handshake at both ends of a connection.
inline task<both_ends> shake_hands(testing::connection plain, context client, context server,
                                   std::string name = "localhost") {
    both_ends made;
    co_await join_scope([&](scope& ends) -> task<> {
        ends.spawn(accept_into(std::move(plain.server), server, made.server));
        ends.spawn(connect_into(std::move(plain.client), client, name, made.client));
        co_return;
    });
    co_return made;
}

/// A fixture whose connections are made under the usual options.
class with_secure_pairs : public testing::on_io_backend {
protected:
    task<testing::connection> secure() {
        both_ends made = co_await shake_hands(co_await connect(), client_, server_);
        co_return testing::connection{testing::must(std::move(made.client)),
                                      testing::must(std::move(made.server))};
    }

    context client_ = tls::must(context::client(usual_client()));
    context server_ = tls::must(context::server(usual_server()));
};

}  // namespace eddy::tls
