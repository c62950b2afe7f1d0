// tls://: the files that the address names, and TCP below.
#include <eddy/net/tcp.hpp>
#include <eddy/tls/tls.hpp>

#include "transport/schemes.hpp"

#include <expected>
#include <utility>

namespace eddy::transport {
namespace {

using made_context = std::expected<tls::context, std::string>;

tls::certificate own_certificate(const tls_files& files) {
    return {files.cert, files.key.empty() ? files.cert : files.key};
}

made_context server_context(const tls_files& files) {
    tls::server_options options;
    if (!files.cert.empty()) options.certificates.push_back(own_certificate(files));
    if (!files.ca.empty()) {
        options.clients = tls::client_verification::required;
        options.client_ca = files.ca;
    }
    return tls::context::server(options);
}

made_context client_context(const tls_files& files) {
    if (files == tls_files()) {
        // The system's list is long and costs some milliseconds to read.
        static const made_context usual = tls::context::client();
        return usual;
    }
    tls::client_options options;
    options.ca = files.ca;
    if (!files.cert.empty()) options.own = own_certificate(files);
    return tls::context::client(options);
}

result<listener> listen_tls(const address& where, const listen_options& options) {
    auto context = server_context(where.tls);
    if (!context) return fail(errc::unusable_certificate);
    auto plain = tcp::listen(where.host, where.port, options);
    if (!plain) return plain;
    return tls::listen(std::move(*plain), std::move(*context));
}

task<result<stream>> connect_tls(address where, tcp::connect_options options) {
    if (where.port == 0 || where.host.empty()) co_return fail(errc::bad_address);
    const auto context = client_context(where.tls);
    if (!context) co_return fail(errc::unusable_certificate);
    auto plain = co_await tcp::connect(where.host, where.port, options);
    if (!plain) co_return plain;
    co_return co_await tls::connect(std::move(*plain), *context, where.host);
}

}  // namespace

constinit const scheme_entry tls_entry = {"tls",
                                          scheme::tls,
                                          false,
                                          listen_tls,
                                          connect_tls,
                                          nullptr,
                                          "tls:// carries streams, not datagrams; use udp://"};

std::string explain_certificates(const address& where) {
    // A listener needs a certificate; whatever else is wrong is wrong for a client, too.
    const made_context context = where.tls.cert.empty() && !where.tls.ca.empty()
                                     ? client_context(where.tls)
                                     : server_context(where.tls);
    return context ? std::string() : context.error();
}

}  // namespace eddy::transport
