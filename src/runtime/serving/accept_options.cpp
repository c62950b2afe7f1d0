// Options of accepting: their rows, and reading.
#include "runtime/serving/accept_options.hpp"

#include <eddy/base/assert.hpp>

#include "base/files/socket_owner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace eddy::runtime {
namespace {

using transport::scheme;

/// The kernel's greatest time (MAX_TCP_KEEPIDLE).
constexpr std::int64_t longest_keepalive_ns = std::int64_t{32'767} * 1'000'000'000;

}  // namespace

option allow_users_option() {
    return {.name = "allow-users",
            .value_name = "LIST",
            .help =
                "users that may connect to the Unix socket, by name or number, such as "
                "www-data,1000; by default all that the permissions of its file admit, and "
                "for @NAME, which has no file, the daemon's user and root",
            .live = true};
}

option tcp_keepalive_option() {
    return {.name = "tcp-keepalive",
            .kind = option_kind::duration,
            .value_name = "TIME",
            .default_value = "5m",
            .help =
                "have the kernel probe a TCP peer that is silent for this time, three times, "
                "and close the connection if it never answers: after twice the time in all; 0 "
                "is never",
            .maximum = longest_keepalive_ns,
            .live = true};
}

option accept_proxy_option() {
    return {.name = "accept-proxy",
            .value_name = "NETWORK,...",
            .help =
                "proxies, by address or network, such as 10.0.0.7,10.1.0.0/16, unix for all of "
                "a Unix socket: each of their connections begins with a header of the PROXY "
                "protocol, version 1 or 2, and has the client's address from it; one without "
                "is closed",
            .live = true};
}

outcome<std::vector<network>> read_networks(std::string_view list, std::string_view flag) {
    std::vector<network> all;
    while (!list.empty()) {
        const std::string_view text = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), text.size() + 1));
        auto one = network::parse(text);
        if (!one)
            return refuse(400,
                          fmt::format("{}: \"{}\" is no network; write an address, such as "
                                      "10.0.0.7 or ::1, a network, such as 10.0.0.0/8, or unix",
                                      flag, text));
        all.push_back(*one);
    }
    return all;
}

outcome<std::vector<network>> read_proxies(const settings& chosen,
                                           const transport::address& where) {
    if (!chosen.has("accept-proxy")) return std::vector<network>();
    if (where.kind == scheme::handoff || where.kind == scheme::shm || where.kind == scheme::udp)
        return refuse(400,
                      fmt::format("--accept-proxy has no effect with --listen {}://; it is for "
                                  "TCP, TLS and Unix sockets",
                                  transport::to_string(where.kind)));
    return read_networks(chosen.text("accept-proxy"), "--accept-proxy");
}

outcome<std::vector<uid_t>> read_users(std::string_view list) {
    std::vector<uid_t> users;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), name.size() + 1));
        auto user = find_user(name, "--allow-users");
        if (!user) return std::unexpected(user.error());
        users.push_back(*user);
    }
    return users;
}

outcome<std::optional<std::vector<uid_t>>> read_allowed_users(const settings& chosen,
                                                              const transport::address& where) {
    const bool is_given = chosen.has("allow-users");
    if (where.kind == scheme::unix_socket) {
        if (!is_given && !where.path.starts_with('@')) return std::nullopt;
        auto users = is_given ? read_users(chosen.text("allow-users")) : std::vector<uid_t>();
        if (!users) return std::unexpected(users.error());
        return std::move(*users);
    }
    if (!is_given) return std::nullopt;
    const bool has_own_list = where.kind == scheme::handoff || where.kind == scheme::shm;
    return refuse(400, has_own_list
                           ? fmt::format("--allow-users has no effect with --listen {0}://; write "
                                         "--listen {0}://PATH?allow=NUMBER,...",
                                         transport::to_string(where.kind))
                           : std::string("--allow-users has no effect without a Unix socket; leave "
                                         "it out, or serve on one by --unix PATH"));
}

std::chrono::seconds read_tcp_keepalive(const settings& chosen) {
    return std::chrono::ceil<std::chrono::seconds>(
        std::chrono::nanoseconds(chosen.number("tcp-keepalive")));
}

outcome<serving::accept_rules> read_accept_rules(const settings& chosen,
                                                 const transport::address& where) {
    serving::accept_rules rules;
    auto users = read_allowed_users(chosen, where);
    if (!users) return std::unexpected(users.error());
    rules.users = std::move(*users);
    rules.keepalive = read_tcp_keepalive(chosen);
    EDDY_ASSERT(rules.keepalive >= std::chrono::seconds::zero());
    return rules;
}

}  // namespace eddy::runtime
