// Arguments that hold a password, or whatever may: neither MONITOR nor SLOWLOG shows them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace eddy::cache {

struct command_spec;

/// What stands in their place.
inline constexpr std::string_view redacted = "(redacted)";

/// Whether the parameter's value is a secret, or half of one: it is kept in no log.
bool is_secret_parameter(std::string_view name) noexcept;

bool is_secret(const command_spec& what, std::span<const std::string_view> args,
               std::size_t i) noexcept;

}  // namespace eddy::cache
