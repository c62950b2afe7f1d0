// Options of accepting: their rows, and reading.
#include "runtime/serving/accept_options.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>
#include <pwd.h>

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

outcome<uid_t> read_user(std::string_view name) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && end == name.data() + name.size() && number < UINT32_MAX)
        return number;
    const std::string text(name);
    passwd found{};
    passwd* result = nullptr;
    std::vector<char> room(16 * 1024);
    if (::getpwnam_r(text.c_str(), &found, room.data(), room.size(), &result) != 0 || !result)
        return refuse(400, fmt::format("--allow-users: this machine has no user \"{}\"", name));
    return found.pw_uid;
}

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

outcome<std::vector<uid_t>> read_users(std::string_view list) {
    std::vector<uid_t> users;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), name.size() + 1));
        auto user = read_user(name);
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
