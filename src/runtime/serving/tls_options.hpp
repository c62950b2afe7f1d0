// TLS options of runtimes that serve streams: --tls --cert --key --ca --client-auth, and the checks
// that they share with a type's own names for the same, such as the cache's --tls-cert-file.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Rows for a type's table of options.
std::vector<option> tls_options();

/// Names of the options that say the same, for messages. Texts live as long as the program.
struct tls_names {
    std::string_view on = "--tls";
    std::string_view cert = "--cert";
    std::string_view key = "--key";
    std::string_view ca = "--ca";
    std::string_view client_auth = "--client-auth";
    std::string_view no_client_auth = "--client-auth no";
};

/// Files have whole paths, as the daemon's folder is not the user's.
outcome<> check_tls_files(const transport::tls_parameters& of);
/// Checks that a listener can be made of these: it has a certificate, and an authority if clients
/// must show one. `client_auth` is what the user gave.
outcome<> check_tls_listener(const transport::tls_parameters& of, std::string_view client_auth,
                             const tls_names& names = {});

/// Checks that the files can be read now; a failure names the option and the file.
outcome<> check_tls_readable(const transport::tls_parameters& of, const tls_names& names = {});

/// Parameters by the rows of tls_options(); none without --tls.
outcome<std::optional<transport::tls_parameters>> read_tls(const settings& chosen);

/// Makes a tls address of a tcp one. Refuses others.
outcome<> add_tls(transport::address& to, transport::tls_parameters with);

}  // namespace eddy::runtime
