// Parser of addresses of etcd.
#include "cluster/etcd/etcd_address.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cluster {
namespace {

constexpr std::string_view plain_scheme = "etcd://";
constexpr std::string_view secure_scheme = "etcds://";
constexpr std::size_t longest_shown = 200;

std::string shown(std::string_view text) { return in_quotes(text, longest_shown); }

bool has_scheme(std::string_view uri, std::string_view scheme) noexcept {
    return is_word(uri.substr(0, scheme.size()), scheme);
}

/// True if a port stands behind the host, which may be an IPv6 address in brackets.
bool has_port(std::string_view endpoint) noexcept {
    const std::size_t colon = endpoint.rfind(':');
    if (colon == std::string_view::npos) return false;
    return endpoint.find(']', colon) == std::string_view::npos;
}

outcome<transport::address> parse_endpoint(std::string_view text) {
    std::string uri = "tcp://" + std::string(text);
    if (!has_port(text)) uri += fmt::format(":{}", default_etcd_port);
    auto parsed = transport::parse(uri);
    if (!parsed)
        return refuse(400, fmt::format("{} is no endpoint of etcd: {}", shown(text),
                                       transport::explain(uri, parsed.error())));
    if (parsed->host.empty() || parsed->port == 0)
        return refuse(400, fmt::format("{} is no endpoint of etcd: name a host and its port, as in "
                                       "10.0.0.1:2379",
                                       shown(text)));
    return std::move(*parsed);
}

outcome<> parse_endpoints(std::string_view text, etcd_address& into) {
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(text.find(','), text.size());
        auto parsed = parse_endpoint(text.substr(0, end));
        if (!parsed) return std::unexpected(std::move(parsed.error()));
        if (std::ranges::find(into.endpoints, *parsed) == into.endpoints.end())
            into.endpoints.push_back(std::move(*parsed));
        if (into.endpoints.size() > max_etcd_endpoints)
            return refuse(400, fmt::format("the address of etcd names more than {} endpoints: "
                                           "leave some out, a few of a cluster suffice",
                                           max_etcd_endpoints));
        is_last = end == text.size();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return {};
}

outcome<> parse_prefix(std::string_view text, etcd_address& into) {
    while (text.starts_with('/')) text.remove_prefix(1);
    while (text.ends_with('/')) text.remove_suffix(1);
    if (text.empty()) return {};
    if (text.size() > max_etcd_prefix)
        return refuse(400,
                      fmt::format("the prefix of etcd's keys has over {} bytes", max_etcd_prefix));
    if (printable(text) != text)
        return refuse(400, fmt::format("the prefix {} of etcd's keys has characters that cannot be "
                                       "printed",
                                       shown(text)));
    into.prefix = text;
    return {};
}

struct parameter {
    std::string_view name;
    std::string_view value;
};

outcome<> set_parameter(parameter given, bool is_secure, etcd_address& into,
                        transport::tls_parameters& files) {
    const auto [name, value] = given;
    if (value.empty())
        return refuse(400, fmt::format("{}= of the address of etcd has no value", name));
    if (name == "user") {
        into.user = value;
        return {};
    }
    if (name == "password-file") {
        into.password_file = value;
        return {};
    }
    std::string* const file = name == "ca"     ? &files.ca
                              : name == "cert" ? &files.cert
                              : name == "key"  ? &files.key
                                               : nullptr;
    if (file == nullptr)
        return refuse(400, fmt::format("{} is no parameter of an address of etcd: there are ca, "
                                       "cert, key, user and password-file",
                                       shown(name)));
    if (!is_secure)
        return refuse(
            400, fmt::format("{}= is for etcds://, and the address says etcd://, which is without "
                             "TLS",
                             name));
    *file = value;
    return {};
}

outcome<> parse_parameters(std::string_view query, bool is_secure, etcd_address& into) {
    transport::tls_parameters files;
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const std::size_t sign = std::min(pair.find('='), pair.size());
        const parameter given{pair.substr(0, sign), pair.substr(std::min(sign + 1, pair.size()))};
        if (auto set = set_parameter(given, is_secure, into, files); !set) return set;
    }
    if (into.user.empty() != into.password_file.empty())
        return refuse(400, "user= and password-file= of the address of etcd go together");
    if (!files.key.empty() && files.cert.empty())
        return refuse(400, "key= of the address of etcd is the key of cert=, which is missing");
    if (!is_secure) return {};
    for (transport::address& each : into.endpoints) {
        each.kind = transport::scheme::tls;
        each.tls = files;
    }
    return {};
}

}  // namespace

bool is_etcd_address(std::string_view uri) noexcept {
    return has_scheme(uri, plain_scheme) || has_scheme(uri, secure_scheme);
}

outcome<etcd_address> parse_etcd_address(std::string_view uri) {
    if (uri.size() > max_etcd_uri)
        return refuse(400, fmt::format("the address of etcd has over {} bytes", max_etcd_uri));
    const bool is_secure = has_scheme(uri, secure_scheme);
    if (!is_secure && !has_scheme(uri, plain_scheme))
        return refuse(400, fmt::format("{} is no address of etcd: it begins with etcd:// or "
                                       "etcds://, as in etcd://10.0.0.1:2379",
                                       shown(uri)));
    std::string_view rest = uri.substr((is_secure ? secure_scheme : plain_scheme).size());
    const std::size_t query = std::min(rest.find('?'), rest.size());
    const std::size_t path = std::min(rest.find('/'), query);
    etcd_address made;
    auto parsed = parse_endpoints(rest.substr(0, path), made);
    if (parsed) parsed = parse_prefix(rest.substr(path, query - path), made);
    if (parsed)
        parsed = parse_parameters(rest.substr(std::min(query + 1, rest.size())), is_secure, made);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    return made;
}

std::string etcd_endpoint_name(const transport::address& of) {
    transport::address plain;
    plain.host = of.host;
    plain.port = of.port;
    const std::string uri = plain.to_string();
    const bool is_secure = of.kind == transport::scheme::tls;
    return std::string(is_secure ? secure_scheme : plain_scheme) + uri.substr(uri.find("//") + 2);
}

}  // namespace eddy::cluster
