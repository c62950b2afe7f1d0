// A certificate for the TLS benchmarks' servers, made when they start: no client verifies it.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>

struct bench_certificate {
    std::string chain;
    std::string key;
};

inline std::string text_and_free(BIO* memory) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(memory);
    return text;
}

/// A self-signed certificate for `key`. The caller frees it.
inline X509* make_bench_x509(EVP_PKEY* key) {
    X509* made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 86'400);
    X509_set_pubkey(made, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made, X509_get_subject_name(made));
    X509_sign(made, key, EVP_sha256());
    return made;
}

/// For programs that use OpenSSL alone.
inline void use_bench_certificate(SSL_CTX* with) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* made = make_bench_x509(key);
    SSL_CTX_use_certificate(with, made);
    SSL_CTX_use_PrivateKey(with, key);
    X509_free(made);
    EVP_PKEY_free(key);
}

inline bench_certificate make_bench_certificate() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* made = make_bench_x509(key);
    BIO* chain_text = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(chain_text, made);
    BIO* key_text = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
    X509_free(made);
    EVP_PKEY_free(key);
    return {text_and_free(chain_text), text_and_free(key_text)};
}
