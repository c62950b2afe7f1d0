// Secret arguments: passwords and arguments that may hold one. MONITOR and SLOWLOG leave them out.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace eddy::cache {

struct command_spec;

/// Replacement of a secret argument.
inline constexpr std::string_view redacted = "(redacted)";

/// Parameters whose values are passwords.
inline constexpr std::array<std::string_view, 4> password_parameters = {
    "requirepass", "masterauth", "tls-key-file-pass", "tls-client-key-file-pass"};

bool is_password_parameter(std::string_view name) noexcept;

/// True for a password or a master's user name: the value is kept in no log.
bool is_secret_parameter(std::string_view name) noexcept;

bool is_secret(const command_spec& what, std::span<const std::string_view> args,
               std::size_t i) noexcept;

}  // namespace eddy::cache
