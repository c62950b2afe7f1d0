// Scheme tls:// in a build without the layer tls: an error that says so.
#include "transport/digest.hpp"
#include "transport/schemes.hpp"
#include "transport/secure.hpp"

namespace eddy::transport {

constinit const scheme_entry tls_entry = {
    "tls",
    scheme::tls,
    false,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    "tls:// needs the tls layer (OpenSSL), which this build does not have; use tcp://"};

result<> renew_tls(listener&, const address&) { return fail(errc::unsupported); }

task<result<stream>> secure(stream, address, duration) { co_return fail(errc::unsupported); }

std::optional<std::string> md5(std::string_view) { return std::nullopt; }

bool is_secure(const stream&) noexcept { return false; }

std::string verified_subject(const stream&) { return {}; }

std::string explain_certificates(const address&) { return {}; }

}  // namespace eddy::transport
