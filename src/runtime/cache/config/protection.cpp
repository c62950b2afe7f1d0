// Protected mode and TLS options of a cache. The texts that clients get are Redis's.
#include "runtime/cache/config/protection.hpp"

#include "base/text/text.hpp"
#include "cache/clients/engine_clients.hpp"
#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>

#include <new>
#include <ranges>
#include <utility>

namespace eddy::runtime::cache {
namespace {

using transport::scheme;

constexpr std::string_view rejected_text =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. If you want to connect from external computers to Redis you may adopt one of the "
    "following solutions: 1) Just disable protected mode sending the command 'CONFIG SET "
    "protected-mode no' from the loopback interface by connecting to Redis from the same host the "
    "server is running, however MAKE SURE Redis is not publicly accessible from internet if you do "
    "so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable "
    "the protected mode by editing the Redis configuration file, and setting the protected mode "
    "option to 'no', and then restarting the server. 3) If you started the server manually just "
    "for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication "
    "password for the default user. NOTE: You only need to do one of the above things in order for "
    "the server to start accepting connections from the outside.\r\n";

/// The cache's own names, which are Redis's.
constexpr tls_names own_names = {.on = "--tls-port",
                                 .cert = "--tls-cert-file",
                                 .key = "--tls-key-file",
                                 .ca = "--tls-ca-cert-file",
                                 .client_auth = "--tls-auth-clients",
                                 .no_client_auth = "--tls-auth-clients no"};

constexpr std::string_view old_protocol = "TLSv1.2";
constexpr std::string_view new_protocol = "TLSv1.3";

/// Redis's tls-protocols, each once and the older first.
outcome<std::string> read_protocols(std::string_view given) {
    bool has_old = false;
    bool has_new = false;
    for (const auto part : std::views::split(given, ' ')) {
        const std::string_view one(part);
        if (one.empty()) continue;
        bool& place = is_word(one, "tlsv1.2") ? has_old : has_new;
        if (&place == &has_new && !is_word(one, "tlsv1.3"))
            return refuse(400, fmt::format("--tls-protocols cannot have \"{}\": write TLSv1.2, "
                                           "TLSv1.3, or both with a space between",
                                           one));
        place = true;
    }
    if (has_old && has_new) return std::string("TLSv1.2 TLSv1.3");
    return std::string(has_old ? old_protocol : has_new ? new_protocol : "");
}

bool is_loopback(std::string_view host) {
    constexpr std::string_view mapped = "::ffff:";
    if (host.starts_with(mapped)) host.remove_prefix(mapped.size());
    return host == "::1" || host == "localhost" || host.starts_with("127.");
}

}  // namespace

transport::tls_parameters tls_parameters_of(const eddy::cache::tls_settings& chosen) {
    transport::tls_parameters made;
    made.cert = chosen.cert_file;
    made.key = chosen.key_file;
    made.ca = chosen.ca_cert_file.empty() ? chosen.ca_cert_dir : chosen.ca_cert_file;
    made.clients = chosen.auth_clients;
    if (chosen.protocols == new_protocol) made.min = "1.3";
    if (chosen.protocols == old_protocol) made.max = "1.2";
    made.ciphers = chosen.ciphers;
    made.ciphersuites = chosen.ciphersuites;
    if (!chosen.prefer_server_ciphers) made.prefer = "client";
    return made;
}

transport::address server_address(const eddy::cache::tls_settings& chosen, std::string host,
                                  std::uint16_t port) {
    transport::address made;
    made.host = std::move(host);
    made.port = port;
    if (!chosen.replication) return made;
    made.kind = scheme::tls;
    made.tls = tls_parameters_of(chosen);
    made.tls.verify = "chain";
    return made;
}

outcome<std::optional<transport::address>> choose_tls_address(const settings& chosen,
                                                              eddy::cache::tls_settings& into) {
    const auto text = [&](std::string_view name) {
        return chosen.has(name) ? chosen.text(name) : std::string();
    };
    const bool listens = chosen.has("tls-port");
    into.replication = chosen.text("tls-replication") == "yes";
    const auto plain = read_tls(chosen);
    if (!plain) return std::unexpected(plain.error());
    if (*plain) {
        for (const char* const name : {"tls-port", "tls-cert-file", "tls-key-file",
                                       "tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--tls and --{} exclude each other: --tls is for "
                                               "the main port, with --cert, --key, --ca and "
                                               "--client-auth; --tls-port is one beside it",
                                               name));
        }
    }
    if (!listens && !into.replication && !*plain) {
        for (const char* const name :
             {"tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-ca-cert-dir",
              "tls-auth-clients", "tls-protocols", "tls-ciphers", "tls-ciphersuites",
              "tls-prefer-server-ciphers"}) {
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --tls-port N", name));
        }
        return std::nullopt;
    }
    if (*plain) {
        into.cert_file = (*plain)->cert;
        into.key_file = (*plain)->key;
        into.ca_cert_file = (*plain)->ca;
        into.auth_clients = (*plain)->clients;
    } else {
        into.cert_file = text("tls-cert-file");
        into.key_file = text("tls-key-file");
        into.ca_cert_file = text("tls-ca-cert-file");
        into.ca_cert_dir = text("tls-ca-cert-dir");
        into.auth_clients = chosen.text("tls-auth-clients");
    }
    into.ciphers = text("tls-ciphers");
    into.ciphersuites = text("tls-ciphersuites");
    into.prefer_server_ciphers = chosen.text("tls-prefer-server-ciphers") == "yes";
    if (!into.ca_cert_file.empty() && !into.ca_cert_dir.empty())
        return refuse(400,
                      "--tls-ca-cert-file and --tls-ca-cert-dir exclude each other; give one of "
                      "them");
    transport::address where;
    where.kind = scheme::tls;
    where.tls = tls_parameters_of(into);
    if (auto good = check_tls_files(where.tls); !good) return std::unexpected(good.error());
    auto protocols = read_protocols(text("tls-protocols"));
    if (!protocols) return std::unexpected(protocols.error());
    into.protocols = std::move(*protocols);
    where.tls = tls_parameters_of(into);
    if (into.replication && where.tls.ca.empty())
        return refuse(400,
                      "--tls-replication yes needs the authority of the master's certificate: "
                      "add --tls-ca-cert-file FILE");
    if (into.cert_file.empty() && !into.key_file.empty())
        return refuse(400, "--tls-key-file has no certificate: add --tls-cert-file FILE");
    if (!listens) return std::nullopt;
    if (auto good = check_tls_listener(where.tls, into.auth_clients, own_names); !good)
        return std::unexpected(good.error());
    into.port = static_cast<std::uint16_t>(chosen.number("tls-port"));
    where.port = into.port;
    if (chosen.text("bind") != "*") where.host = chosen.text("bind");
    return where;
}

eddy::cache::listening_place as_listening(const transport::address& where,
                                          const noted_listener& opened) {
    using by = eddy::cache::listening_place::by;
    if (!where.path.empty()) return {by::unix_socket, where.path, 0};
    return {where.kind == scheme::tls ? by::tls : by::tcp, where.host.empty() ? "*" : where.host,
            opened.socket.local().port()};
}

bool is_local(const endpoint& peer) { return peer.is_unix() || is_loopback(peer.host()); }

bool is_rejected(eddy::cache::engine& by, const eddy::cache::server_settings& with,
                 const endpoint& peer) {
    return with.protected_mode && eddy::cache::engine_clients(by).are_let_in() && !is_local(peer);
}

void note_protection(const transport::address& where, const eddy::cache::server_settings& with,
                     std::string_view password, serving::journal& events) {
    const bool is_open = where.kind != scheme::unix_socket && !is_loopback(where.host);
    if (!is_open || !with.protected_mode || !password.empty()) return;
    events.write(
        "protected mode: clients of other machines are refused until the default user has a "
        "password (CONFIG SET requirepass), or with --protected-mode no");
}

task<void> reject(std::unique_ptr<rejected_client> rejected) {
    try {
        rejected->enter(serving::activity::writing);
        if (!co_await rejected->socket.write_all(rejected_text)) co_return;
        if (rejected->socket.shutdown_write()) co_await serving::linger(*rejected);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted as refused
    }
}

}  // namespace eddy::runtime::cache
