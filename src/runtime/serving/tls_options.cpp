// TLS options: reading and checks.
#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace eddy::runtime {

using transport::scheme;
using transport::tls_parameters;

std::vector<option> tls_options() {
    return {
        {.name = "tls", .kind = option_kind::flag, .help = "serve TLS on the port; needs --cert"},
        {.name = "cert",
         .value_name = "FILE",
         .help = "with --tls: the certificate chain, as PEM; or a folder of files NAME.pem, each "
                 "with its key, or with NAME.key beside it, for several host names",
         .is_path = true},
        {.name = "key",
         .value_name = "FILE",
         .help = "with --tls: the private key of that certificate, if it is not in the same file",
         .is_path = true},
        {.name = "ca",
         .value_name = "FILE",
         .help = "with --tls: authorities of client certificates, as PEM, or a folder of them made "
                 "by openssl-rehash(1)",
         .is_path = true},
        {.name = "client-auth",
         .kind = option_kind::choice,
         .value_name = "WHETHER",
         .help = "with --tls: whether clients must show a certificate: no; optional: only a shown "
                 "one must be valid; required: the default with --ca",
         .choices = {"no", "optional", "required"}},
    };
}

outcome<> check_tls_files(const tls_parameters& of) {
    for (const std::string* const each : {&of.cert, &of.key, &of.ca}) {
        if (!each->empty() && !each->starts_with('/'))
            return refuse(400, fmt::format("the TLS file \"{}\" has a relative path: "
                                           "write the whole path, from /",
                                           *each));
    }
    return {};
}

outcome<> check_tls_listener(const tls_parameters& of, std::string_view client_auth,
                             const tls_names& names) {
    if (of.cert.empty())
        return refuse(400,
                      fmt::format("{} needs a certificate: add {} FILE", names.on, names.cert));
    if (of.ca.empty() && of.clients != "no")
        return refuse(
            400, fmt::format("{} {} needs the authority of clients' certificates: add {} FILE, "
                             "or {}",
                             names.client_auth, client_auth, names.ca, names.no_client_auth));
    return {};
}

outcome<> check_tls_readable(const tls_parameters& of, const tls_names& names) {
    const std::pair<std::string_view, const std::string&> files[] = {
        {names.cert, of.cert}, {names.key, of.key}, {names.ca, of.ca}};
    for (const auto& [option, path] : files) {
        if (path.empty() || ::access(path.c_str(), R_OK) == 0) continue;
        const std::error_code why(errno, std::system_category());
        return refuse(why == std::errc::permission_denied ? 403 : 400,
                      fmt::format("{} {} cannot be read: {}", option, path, why.message()));
    }
    return {};
}

outcome<std::optional<tls_parameters>> read_tls(const settings& chosen) {
    if (!chosen.flag("tls")) {
        for (const std::string_view name : {"cert", "key", "ca", "client-auth"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --tls", name));
        }
        return std::nullopt;
    }
    const auto text = [&](std::string_view name) {
        return chosen.has(name) ? chosen.text(name) : std::string();
    };
    tls_parameters made;
    made.cert = text("cert");
    made.key = text("key");
    made.ca = text("ca");
    const std::string asked = text("client-auth");
    if (asked.empty())
        made.clients = made.ca.empty() ? "no" : "yes";
    else
        made.clients = asked == "required" ? "yes" : asked;
    if (auto good = check_tls_files(made); !good) return std::unexpected(good.error());
    if (auto good = check_tls_listener(made, asked); !good) return std::unexpected(good.error());
    return made;
}

outcome<> add_tls(transport::address& to, tls_parameters with) {
    if (to.kind == scheme::tls)
        return refuse(400,
                      "--tls and --listen tls://... mean the same: give the certificate in the URI "
                      "and leave out --tls, or write --listen tcp://HOST:PORT");
    if (to.kind == scheme::udp)
        return refuse(400, "--tls has no effect with UDP: TLS is for streams; leave it out");
    if (to.kind != scheme::tcp)
        return refuse(400, "--tls is served on a port: give -p N or --listen tcp://HOST:PORT");
    to.kind = scheme::tls;
    to.tls = std::move(with);
    return {};
}

}  // namespace eddy::runtime
