// Parsing and printing of URIs, with descriptions of their faults.
#include <eddy/io/endpoint.hpp>
#include <eddy/transport/transport.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "net/host_names.hpp"
#include "shm/port_names.hpp"
#include "transport/handoff_parameters.hpp"
#include "transport/schemes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::transport {
namespace {

constexpr std::size_t longest_host = 253;
/// Most bytes of a text that a message repeats.
constexpr std::size_t longest_shown = 120;

std::unexpected<fault> wrong(std::string what) { return std::unexpected(fault{std::move(what)}); }

/// A number in digits of `base`, at most `most`.
std::optional<std::uint32_t> number_of(std::string_view text, int base,
                                       std::uint32_t most) noexcept {
    std::uint32_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read, base);
    if (error != std::errc{} || end != text.data() + text.size() || read > most) return {};
    return read;
}

std::expected<std::uint16_t, fault> parse_port(std::string_view text) {
    if (text.empty()) return wrong("the port is missing after the colon");
    if (!std::all_of(text.begin(), text.end(), is_digit))
        return wrong("the port " + in_quotes(text, longest_shown) + " is no number");
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || text.size() > 5)
        return wrong("the port " + in_quotes(text, longest_shown) + " is beyond 65535");
    return port;
}

/// Checks a name's characters; a text that looks like an IPv4 address must be one. Existence of the
/// name is the resolver's business.
std::expected<std::string, fault> parse_name(std::string_view host) {
    if (host.empty() || host == "*") return std::string();
    if (host.size() > longest_host) return wrong("the host name is longer than 253 characters");
    const bool good = std::all_of(host.begin(), host.end(), [](char c) {
        return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_';
    });
    if (!good) return wrong(in_quotes(host, longest_shown) + " is no host name");
    std::string_view last = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
    last = last.substr(last.rfind('.') + 1);
    if (std::all_of(last.begin(), last.end(), is_digit) && !endpoint::ip(host, 0))
        return wrong(in_quotes(host, longest_shown) + " is no IPv4 address");
    return std::string(host);
}

std::expected<void, fault> parse_host_and_port(std::string_view text, address& into) {
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return wrong("the bracket of the IPv6 address is open");
        const std::string_view inside = text.substr(1, end - 1);
        const auto parsed = endpoint::ip(inside, 0);
        if (!inside.contains(':') || !parsed)
            return wrong(in_quotes(inside, longest_shown) + " is no IPv6 address");
        into.host = inside;
        port = text.substr(end + 1);
        if (!port.starts_with(':')) return wrong("the port is missing: add \":\" and a number");
    } else {
        const std::size_t colon = text.find(':');
        if (colon == std::string_view::npos)
            return wrong("the port is missing: add \":\" and a number");
        port = text.substr(colon);
        if (port.find(':', 1) != std::string_view::npos)
            return wrong("an IPv6 address stands in brackets, as in tcp://[::1]:80");
        auto host = parse_name(text.substr(0, colon));
        if (!host) return std::unexpected(host.error());
        into.host = std::move(*host);
    }
    const auto number = parse_port(port.substr(1));
    if (!number) return std::unexpected(number.error());
    into.port = *number;
    return {};
}

/// A parameter of a URI. Without choices any text will do.
template <class Parameters>
struct field {
    std::string_view name;
    std::string Parameters::* place;
    std::array<std::string_view, 3> choices = {};

    bool may_be(std::string_view value) const {
        return choices.front().empty() || std::ranges::find(choices, value) != choices.end();
    }
};

constexpr field<tls_parameters> tls_fields[] = {
    {"cert", &tls_parameters::cert},
    {"key", &tls_parameters::key},
    {"ca", &tls_parameters::ca},
    {"clients", &tls_parameters::clients, {"yes", "no", "optional"}},
    {"verify", &tls_parameters::verify, {"name", "chain"}},
    {"name", &tls_parameters::name},
    {"min", &tls_parameters::min, {"1.2", "1.3"}},
    {"max", &tls_parameters::max, {"1.2", "1.3"}},
    {"ciphers", &tls_parameters::ciphers},
    {"ciphersuites", &tls_parameters::ciphersuites},
    {"prefer", &tls_parameters::prefer, {"server", "client"}},
    {"alpn", &tls_parameters::alpn},
};

constexpr field<handoff_parameters> handoff_fields[] = {
    {"type", &handoff_parameters::type, {"seqpacket", "stream"}},
    {"mode", &handoff_parameters::mode},
    {"allow", &handoff_parameters::allow},
};

constexpr field<shm_parameters> shm_fields[] = {{"allow", &shm_parameters::allow}};

std::string joined(const std::array<std::string_view, 3>& choices) {
    std::string made(choices[0]);
    if (!choices[2].empty()) made += ", " + std::string(choices[1]);
    return made + " or " + std::string(choices[2].empty() ? choices[1] : choices[2]);
}

/// cert=/a.pem&key=/a.key&ca=/ca.pem&clients=no, each at most once.
template <class Parameters, std::size_t Count>
std::expected<void, fault> parse_parameters(std::string_view query,
                                            const field<Parameters> (&fields)[Count],
                                            Parameters& into) {
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const std::size_t equals = std::min(pair.find('='), pair.size());
        const std::string_view name = pair.substr(0, equals);
        const auto found = std::ranges::find(fields, name, &field<Parameters>::name);
        if (found == std::end(fields)) {
            std::string known;
            for (const field<Parameters>& one : fields)
                known += (known.empty() ? "" : ", ") + std::string(one.name);
            return wrong("after the ? stand NAME=VALUE, joined by &, with " + known + ", not " +
                         in_quotes(name, longest_shown));
        }
        std::string& place = into.*found->place;
        if (!place.empty()) return wrong("it names " + in_quotes(name, longest_shown) + " twice");
        if (equals + 1 >= pair.size())
            return wrong(in_quotes(name, longest_shown) + " has no value: write " +
                         std::string(name) + "=VALUE");
        place = pair.substr(equals + 1);
        if (place.contains('\0')) return wrong("the value holds a zero byte");
        if (!found->may_be(place))
            return wrong(std::string(name) + "= is " + joined(found->choices) + ", not " +
                         in_quotes(place, longest_shown));
    }
    return {};
}

std::expected<void, fault> parse_tls_parameters(std::string_view query, tls_parameters& into) {
    auto read = parse_parameters(query, tls_fields, into);
    if (!read) return read;
    if (into.cert.empty() && !into.key.empty())
        return wrong("the key has no certificate: add cert=FILE");
    if (!into.name.empty() && !endpoint::ip(into.name, 0) && !is_host_name(into.name))
        return wrong("name= is the server's name, such as db.example, not " +
                     in_quotes(into.name, longest_shown));
    if (into.verify == "chain" && into.ca.empty())
        return wrong("verify=chain accepts any certificate of ca: add ca=FILE");
    if (into.min == "1.3" && into.max == "1.2")
        return wrong("no version lies between min=1.3 and max=1.2");
    return {};
}

std::expected<void, fault> check_users(std::string_view allow) {
    if (users_of(allow)) return {};
    return wrong("allow= is the numbers of at most " + std::to_string(max_handoff_users) +
                 " users, joined by commas, not " + in_quotes(allow, longest_shown));
}

std::expected<void, fault> parse_handoff_parameters(std::string_view query,
                                                    handoff_parameters& into) {
    auto read = parse_parameters(query, handoff_fields, into);
    if (!read) return read;
    if (!into.mode.empty() && !mode_of(into.mode))
        return wrong("mode= is octal digits, such as 0660, not " +
                     in_quotes(into.mode, longest_shown));
    return check_users(into.allow);
}

std::expected<void, fault> parse_shm_parameters(std::string_view query, shm_parameters& into) {
    auto read = parse_parameters(query, shm_fields, into);
    if (!read) return read;
    return check_users(into.allow);
}

/// Reads the parameters, and returns the text before them.
std::expected<std::string_view, fault> parse_query(std::string_view rest, address& into) {
    const bool has_query =
        into.kind == scheme::tls || into.kind == scheme::handoff || into.kind == scheme::shm;
    // Else they would be a part of the path, and permissions would have no effect.
    if (into.kind == scheme::unix_socket && (rest.contains("?mode=") || rest.contains("?allow=")))
        return wrong("a Unix socket's address has no parameters; a runtime has --allow-users");
    if (!has_query) return rest;
    const std::string_view place = rest.substr(0, rest.find('?'));
    const std::string_view query = rest.substr(std::min(place.size() + 1, rest.size()));
    auto read = into.kind == scheme::tls       ? parse_tls_parameters(query, into.tls)
                : into.kind == scheme::handoff ? parse_handoff_parameters(query, into.handoff)
                                               : parse_shm_parameters(query, into.shm);
    if (!read) return std::unexpected(read.error());
    return place;
}

/// ?name=value&name=value with the parameters that are set.
template <class Parameters, std::size_t Count>
std::string query_of(const Parameters& given, const field<Parameters> (&fields)[Count]) {
    std::string made;
    char joint = '?';
    for (const field<Parameters>& one : fields) {
        const std::string& value = given.*one.place;
        if (value.empty()) continue;
        made += std::exchange(joint, '&') + std::string(one.name) + '=' + value;
    }
    return made;
}

/// ":4242", which stands for a name that depends on the user.
std::expected<void, fault> parse_shm_port(std::string_view path, address& into) {
    auto port = parse_port(path.substr(1));
    if (!port) return std::unexpected(port.error());
    into.path = ':' + std::to_string(*port);
    return {};
}

std::expected<void, fault> parse_path(std::string_view path, address& into) {
    if (into.kind == scheme::shm && path.starts_with(':')) return parse_shm_port(path, into);
    if (!path.starts_with('/') && !path.starts_with('@'))
        return wrong(
            "the path must be absolute, as in unix:///run/x.sock, or an abstract name, as "
            "in unix://@x");
    if (path.contains('\0')) return wrong("the path holds a zero byte");
    if (!endpoint::unix_path(path)) return wrong("the path must have 2 to 107 bytes");
    into.path = path;
    return {};
}

/// Advice for errors that a user can do something about; empty for others.
std::string_view advice(std::error_code error, const address& where) {
    if (error == errno_code(EADDRINUSE))
        return "; another program has it, stop that one or choose another address";
    if (error == errno_code(EACCES) && where.path.empty() && where.port < 1024)
        return "; ports below 1024 need root or CAP_NET_BIND_SERVICE";
    if (error == errno_code(EACCES) && where.kind == scheme::shm)
        return "; a server of another user is allowed by its number, as in shm://@name?allow=33";
    if (error == errno_code(EADDRNOTAVAIL)) return "; this machine does not have that address";
    if (error == errno_code(ECONNREFUSED) && where.path.starts_with(':'))
        return "; no server of this user or root, or of allow=, has the port; another user's is "
               "named by the user's number, as in shm://:4242?allow=33";
    if (error == errno_code(ECONNREFUSED)) return "; no server listens there";
    if (error == errno_code(ENOENT) && !where.path.empty())
        return "; there is no such socket or folder";
    if (error == errc::untrusted_certificate)
        return "; name the authority that signed it, as in tls://HOST:PORT?ca=FILE";
    if (error == errc::certificate_name_mismatch)
        return "; use the name that the certificate is for";
    if (error == errc::certificate_refused)
        return "; name one that it accepts, as in tls://HOST:PORT?cert=FILE&key=FILE";
    if (error == errc::not_tls) return "; it may be for tcp://";
    if (error == errno_code(EINVAL) && !shm::has_file(where.path))
        return "; a name without a file has no permissions";
    if (error == errno_code(EMFILE)) return "; raise the limit of open files (ulimit -n)";
    return {};
}

}  // namespace

std::expected<address, fault> parse_or_explain(std::string_view uri) {
    if (uri.size() > max_uri_size)
        return wrong("it is longer than " + std::to_string(max_uri_size) + " bytes");
    constexpr std::string_view separator = "://";
    const std::size_t end = uri.find(separator);
    if (end == std::string_view::npos)
        return wrong("it does not begin with a scheme, as in tcp://127.0.0.1:80");
    const std::string_view name = uri.substr(0, end);
    const std::string_view rest = uri.substr(end + separator.size());
    for (const scheme_entry& one : schemes()) {
        if (!is_word(name, one.name)) continue;
        address made;
        made.kind = one.kind;
        const auto place = parse_query(rest, made);
        if (!place) return std::unexpected(place.error());
        auto parsed = one.has_path ? parse_path(*place, made) : parse_host_and_port(*place, made);
        if (!parsed) return std::unexpected(parsed.error());
        if (made.path.starts_with('@') && !made.handoff.mode.empty())
            return wrong("mode= is for a socket's file, and " +
                         in_quotes(made.path, longest_shown) +
                         " has none: leave it out, and name other users than the own one and root "
                         "by allow=");
        return made;
    }
    std::string known;
    for (const scheme_entry& one : schemes())
        known += (known.empty() ? "" : ", ") + std::string(one.name) + "://";
    return wrong("its scheme is none of " + known);
}

std::optional<int> mode_of(std::string_view text) noexcept {
    const auto mode = number_of(text, 8, 0777);
    if (!mode) return std::nullopt;
    return static_cast<int>(*mode);
}

std::optional<std::vector<uid_t>> users_of(std::string_view text) {
    std::vector<uid_t> users;
    for (bool is_last = text.empty(); !is_last;) {
        const std::size_t end = std::min(text.find(','), text.size());
        const auto user = number_of(text.substr(0, end), 10, UINT32_MAX - 1);
        if (!user || users.size() == max_handoff_users) return std::nullopt;
        users.push_back(*user);
        is_last = end == text.size();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return users;
}

result<address> parse(std::string_view uri) {
    auto parsed = parse_or_explain(uri);
    if (!parsed) return fail(errc::bad_address);
    return std::move(*parsed);
}

std::string_view to_string(scheme kind) noexcept {
    for (const scheme_entry& one : schemes())
        if (one.kind == kind) return one.name;
    return "unknown";
}

std::string address::to_string() const {
    std::string made(transport::to_string(kind));
    made += "://";
    if (!path.empty())
        return made + path + query_of(handoff, handoff_fields) + query_of(shm, shm_fields);
    if (host.contains(':'))
        made += '[' + host + ']';
    else
        made += host.empty() ? "*" : host;
    return made + ':' + std::to_string(port) + query_of(tls, tls_fields);
}

std::string explain(std::string_view uri, std::error_code error) {
    const auto parsed = parse_or_explain(uri);
    if (!parsed)
        return in_quotes(uri, longest_shown) + " is no usable address: " + parsed.error().what;
    const std::string shown = in_quotes(uri, longest_shown);
    if (error == errc::unsupported) {
        for (const scheme_entry& one : schemes())
            if (one.kind == parsed->kind)
                return shown + " cannot be opened: " + std::string(one.unsupported);
    }
    if (error == errc::bad_address) {
        if (parsed->host.empty() && parsed->path.empty())
            return shown + " cannot be connected to: name a host, not every address";
        return shown +
               " cannot be listened on: give a numeric address of this machine, or * for all";
    }
    if (error == errc::unusable_certificate) {
        const std::string why = explain_certificates(*parsed);
        if (!why.empty()) return shown + " cannot be opened: " + why;
    }
    if (error == errc::name_not_found)
        return shown + " cannot be reached: there is no host " +
               in_quotes(parsed->host, longest_shown);
    return shown + " cannot be opened: " + error.message() + std::string(advice(error, *parsed));
}

}  // namespace eddy::transport
