// Reading of the options that all runtimes which serve streams have.
#include "runtime/serving/serving_config.hpp"

#include "runtime/listening.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/tls_options.hpp"

#include <string>
#include <utility>

namespace eddy::runtime {

outcome<> read_serving_config(const settings& chosen, transport::scheme port_scheme,
                              std::string_view no_stream, serving_config& to) {
    auto where = choose_address(chosen, port_scheme);
    if (!where) return std::unexpected(where.error());
    if (where->kind == transport::scheme::udp && !no_stream.empty())
        return refuse(400, std::string(no_stream));
    to.where = std::move(*where);
    auto tls = read_tls(chosen);
    if (!tls) return std::unexpected(tls.error());
    if (*tls) {
        if (auto added = add_tls(to.where, std::move(**tls)); !added) return added;
        to.is_tls_by_option = true;
    }
    auto shared = read_shm(chosen, to.where);
    if (!shared) return std::unexpected(shared.error());
    to.shared = std::move(*shared);
    auto rules = read_accept_rules(chosen, to.where);
    if (!rules) return std::unexpected(rules.error());
    to.rules = std::move(*rules);
    to.threads = static_cast<std::size_t>(chosen.number("threads"));
    return {};
}

outcome<> check_certificates(const serving_config& of) {
    if (!of.is_tls_by_option) return {};
    return check_tls_readable(of.where.tls);
}

}  // namespace eddy::runtime
