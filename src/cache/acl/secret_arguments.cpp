// Table of the commands that take passwords.
#include "cache/acl/secret_arguments.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"

namespace eddy::cache {
namespace {

// HELLO [version [AUTH name password] [SETNAME name]]: also where the password is missing, as then
// it may have been given as the name.
bool is_secret_of_hello(std::span<const std::string_view> args, std::size_t i) noexcept {
    std::size_t option = 2;
    while (option < i) {
        const bool logs_in = is_word(args[option], "auth");
        const std::size_t next = option + (logs_in ? 3 : 2);
        if (i < next) return logs_in;
        option = next;
    }
    return false;
}

// MIGRATE with AUTH password or AUTH2 user password.
bool is_secret_of_migrate(std::span<const std::string_view> args, std::size_t i) noexcept {
    std::size_t option = 6;
    while (option < i) {
        if (is_word(args[option], "keys")) return false;
        const bool has_user = is_word(args[option], "auth2");
        const std::size_t next = option + (has_user ? 3 : is_word(args[option], "auth") ? 2 : 1);
        if (i < next) return true;
        option = next;
    }
    return false;
}

}  // namespace

bool is_password_parameter(std::string_view name) noexcept {
    for (const std::string_view each : password_parameters)
        if (is_word(name, each)) return true;
    return false;
}

bool is_secret_parameter(std::string_view name) noexcept {
    return is_password_parameter(name) || is_word(name, "masteruser");
}

bool is_secret(const command_spec& what, std::span<const std::string_view> args,
               std::size_t i) noexcept {
    if ((what.flags & command_flag::has_secrets) == 0) return false;
    if (what.name == "auth") return i > 0;
    if (what.name == "hello") return is_secret_of_hello(args, i);
    if (what.name == "migrate") return is_secret_of_migrate(args, i);
    if (what.name == "acl") return i > 1 && is_word(args[1], "setuser");
    EDDY_ASSERT(what.name == "config");
    // CONFIG SET: names and values in turn.
    return i > 2 && i % 2 == 1 && is_word(args[1], "set") && is_secret_parameter(args[i - 1]);
}

}  // namespace eddy::cache
