// TLS contexts: explanations of certificates, keys and lists of authorities that cannot be used.
#include <eddy/io/endpoint.hpp>

#include "tls/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace eddy::tls {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string said(const std::expected<context, std::string>& made) {
    return made ? "it works" : made.error();
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(tls_context, reads_files_and_text_alike) {
    const testing::temporary_folder folder;
    const certificate& text = localhost_certificate();
    const certificate files{folder.file("cert.pem"), folder.file("key.pem")};
    write(files.chain, text.chain);
    write(files.key, text.key);
    write(folder.file("both.pem"), text.chain + text.key);
    const certificate both{folder.file("both.pem"), folder.file("both.pem")};
    for (const certificate& one : {text, files, both}) {
        EXPECT_EQ(said(context::server({.certificates = {one}})), "it works");
        EXPECT_EQ(said(context::client({.ca = one.chain, .own = one})), "it works");
    }
    EXPECT_EQ(said(context::client({.ca = folder.file("")})), "it works") << "a folder";
    EXPECT_EQ(said(context::client()), "it works") << "the system's list";
}

TEST(tls_context, names_the_file_and_the_reason) {
    const testing::temporary_folder folder;
    const certificate& good = localhost_certificate();
    const auto server = [](certificate own) {
        return said(context::server({.certificates = {std::move(own)}}));
    };
    const std::string nowhere = folder.file("nowhere.pem");
    EXPECT_THAT(server({nowhere, good.key}),
                AllOf(HasSubstr(nowhere), HasSubstr("No such file or directory")));
    EXPECT_THAT(server({good.chain, nowhere}),
                AllOf(HasSubstr("the key"), HasSubstr(nowhere), HasSubstr("No such file")));
    const std::string rubbish = folder.file("rubbish.pem");
    write(rubbish, "rubbish\n");
    EXPECT_THAT(server({rubbish, good.key}),
                AllOf(HasSubstr(rubbish), HasSubstr("start line"), HasSubstr("BEGIN CERTIFICATE")));
    EXPECT_THAT(server({good.chain, rubbish}), AllOf(HasSubstr(rubbish), HasSubstr("pass phrase")));
    EXPECT_THAT(server({good.chain.substr(0, good.chain.size() / 2), good.key}),
                HasSubstr("no usable certificate"));
    const certificate other = test_authority().issue({.subject = "other"});
    EXPECT_THAT(server({good.chain, other.key}),
                AllOf(HasSubstr("does not belong to"), HasSubstr("mismatch")));
    EXPECT_THAT(server({"", good.key}), HasSubstr("missing"));
    EXPECT_THAT(said(context::server({})), HasSubstr("needs a certificate"));
    EXPECT_THAT(said(context::client({.ca = nowhere})), HasSubstr(nowhere));
    EXPECT_THAT(said(context::client({.own = {.chain = good.chain, .key = {}}})),
                HasSubstr("go together"));
    server_options asks = usual_server();
    asks.clients = client_verification::required;
    EXPECT_THAT(said(context::server(asks)), HasSubstr("CA file"));
}

TEST(tls_context, reads_regular_files_of_a_limited_size_only) {
    const testing::temporary_folder folder;
    const certificate& good = localhost_certificate();
    const auto server = [&](std::string chain) {
        return said(context::server({.certificates = {{std::move(chain), good.key}}}));
    };
    // Each of these would never end, or wait for ever.
    EXPECT_THAT(server("/dev/zero"), AllOf(HasSubstr("/dev/zero"), HasSubstr("regular file")));
    const std::string pipe = folder.file("pipe.pem");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(server(pipe), AllOf(HasSubstr(pipe), HasSubstr("regular file")));
    EXPECT_THAT(said(context::client({.ca = pipe})), HasSubstr("regular file"));
    EXPECT_THAT(server(folder.file("")), HasSubstr("Is a directory"));
    EXPECT_THAT(said(context::server({.certificates = {{good.chain, "/dev/zero"}}})),
                AllOf(HasSubstr("the key"), HasSubstr("regular file")));
    const std::string socket = folder.file("socket.pem");
    {
        const auto where = endpoint::unix_path(socket);
        ASSERT_TRUE(where);
        const unique_fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::bind(listening.get(), where->data(), where->size()), 0);
    }
    EXPECT_THAT(server(socket), AllOf(HasSubstr(socket), HasSubstr("cannot be read")));

    // Authorities of a folder are read with it, not during a handshake.
    const testing::temporary_folder authorities;
    write(authorities.file("0123abcd.0"), good.chain);
    write(authorities.file("0123abcd.1"), "no certificate");
    write(authorities.file("README"), "text");
    ASSERT_EQ(::symlink("gone", authorities.file("89ab4567.0").c_str()), 0);
    EXPECT_EQ(said(context::client({.ca = authorities.path()})), "it works");
    const std::string hashed = authorities.file("fedcba98.10");
    ASSERT_EQ(::mkfifo(hashed.c_str(), 0600), 0);
    EXPECT_THAT(said(context::client({.ca = authorities.path()})),
                AllOf(HasSubstr(hashed), HasSubstr("regular file")));

    // Links are followed, as a renewed certificate is one.
    write(folder.file("real.pem"), good.chain);
    const std::string link = folder.file("link.pem");
    ASSERT_EQ(::symlink("real.pem", link.c_str()), 0);
    EXPECT_EQ(server(link), "it works");

    // 16 MiB are read, a byte more is not. Text before the first BEGIN is ignored.
    constexpr std::size_t limit = 16 * 1024 * 1024;
    const std::string large = folder.file("large.pem");
    const std::string filler(limit - good.chain.size(), '\n');
    write(large, filler + good.chain);
    EXPECT_EQ(server(large), "it works");
    write(large, '\n' + filler + good.chain);
    EXPECT_THAT(server(large), AllOf(HasSubstr(large), HasSubstr("larger than 16 MiB")));
    EXPECT_THAT(server('\n' + filler + good.chain),
                AllOf(HasSubstr("given as text"), HasSubstr("larger than 16 MiB")));
}

TEST(tls_context, takes_chains_and_refuses_locked_keys) {
    const certificate& good = localhost_certificate();
    const context made =
        must(context::server({.certificates = {{good.chain + test_authority().pem(), good.key}}}));
    STACK_OF(X509)* behind = nullptr;
    SSL_CTX_get0_chain_certs(made.state().first(), &behind);
    EXPECT_EQ(sk_X509_num(behind), 1) << "the authority's, behind the own";

    const owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
    const owned<BIO, BIO_free_all> memory(BIO_new(BIO_s_mem()));
    char phrase[] = "phrase";
    ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(memory.get(), key.get(), EVP_aes_128_cbc(), phrase,
                                            sizeof(phrase) - 1, nullptr, nullptr),
              1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &data);
    const std::string locked(data, static_cast<std::size_t>(size));
    EXPECT_THAT(said(context::server({.certificates = {{good.chain, locked}}})),
                HasSubstr("without a pass phrase"));
}

TEST(tls_context, refuses_contradictions) {
    EXPECT_THAT(said(context::client({.min = version::tls1_3, .max = version::tls1_2})),
                HasSubstr("no version"));
    EXPECT_THAT(said(context::client({.alpn = {""}})), HasSubstr("1 to 255"));
    EXPECT_THAT(said(context::server(
                    {.certificates = {localhost_certificate()}, .alpn = {std::string(256, 'p')}})),
                HasSubstr("1 to 255"));
    EXPECT_THAT(said(context::client({.alpn = {std::string(256, 'p')}})), HasSubstr("1 to 255"));
    EXPECT_EQ(said(context::client({.alpn = {std::string(255, 'p')}})), "it works");
    EXPECT_THAT(
        said(context::client({.alpn = std::vector<std::string>(256, std::string(255, 'p'))})),
        HasSubstr("65535"));
}

TEST(tls_context, names_the_list_of_ciphers_that_cannot_be_used) {
    const auto client = [](cipher_lists lists) {
        return said(context::client({.ciphers = std::move(lists)}));
    };
    const auto server = [](cipher_lists lists) {
        server_options options = usual_server();
        options.ciphers = std::move(lists);
        return said(context::server(options));
    };
    EXPECT_THAT(client({.tls1_2 = "RUBBISH"}), AllOf(HasSubstr("RUBBISH"), HasSubstr("-tls1_2")));
    EXPECT_THAT(client({.tls1_3 = "RUBBISH"}), AllOf(HasSubstr("RUBBISH"), HasSubstr("-tls1_3")));
    EXPECT_THAT(server({.tls1_2 = "RUBBISH"}), AllOf(HasSubstr("RUBBISH"), HasSubstr("-tls1_2")));
    EXPECT_THAT(server({.tls1_3 = "RUBBISH"}), AllOf(HasSubstr("RUBBISH"), HasSubstr("-tls1_3")));
    const cipher_lists good{.tls1_2 = "ECDHE+AESGCM", .tls1_3 = "TLS_CHACHA20_POLY1305_SHA256"};
    EXPECT_EQ(client(good), "it works");
    EXPECT_EQ(server(good), "it works");
}

TEST(tls_context, the_usual_order_leaves_out_nothing_and_adds_nothing) {
    const auto names = [](const SSL_CTX* of) {
        std::vector<std::string> all;
        const STACK_OF(SSL_CIPHER)* const list = SSL_CTX_get_ciphers(of);
        for (int i = 0; i < sk_SSL_CIPHER_num(list); ++i)
            all.emplace_back(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(list, i)));
        return all;
    };
    const owned_context plain(SSL_CTX_new(TLS_server_method()));
    const context made = must(context::server(usual_server()));
    EXPECT_THAT(names(made.state().first()),
                ::testing::UnorderedElementsAreArray(names(plain.get())));
    EXPECT_EQ(names(made.state().first()).front(), "TLS_AES_128_GCM_SHA256");
}

TEST(tls_context, keeps_a_limited_number_of_sessions) {
    const context made = must(context::client({.verify = false}));
    for (std::size_t i = 0; i < max_kept_sessions + 100; ++i)
        made.state().keep_session("host" + std::to_string(i), owned_session(SSL_SESSION_new()));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < max_kept_sessions + 100; ++i)
        if (made.state().take_session("host" + std::to_string(i))) ++kept;
    EXPECT_EQ(kept, max_kept_sessions);
    EXPECT_TRUE(made.state().take_session("host" + std::to_string(max_kept_sessions + 99)))
        << "the newest is there";
}

}  // namespace
}  // namespace eddy::tls
