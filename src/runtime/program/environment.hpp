// Environment of a program: the daemon's own, but for variables about the daemon, with those of
// --env-file and --env.
#pragma once

#include "base/problem.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::program {

/// Bytes of an environment's file at most.
inline constexpr std::size_t max_environment_file = std::size_t{1} << 20;

/// "NAME=value" with a name of letters, digits and underscores. The refusal (400) begins with
/// `flag`, and has no value.
outcome<> check_variable(std::string_view text, std::string_view flag);

/// The variables of a file's text: a "NAME=value" a line, as Docker reads it. Empty lines and those
/// that begin with # are none, and quotes around a value are taken off, as systemd does.
outcome<std::vector<std::string>> read_variables(std::string_view text, std::string_view path);

/// This process's environment without what only concerns the daemon (EDDY_SOCKET and the like, and
/// systemd's NOTIFY_SOCKET, LISTEN_* and WATCHDOG_*), with `more` in the order given: the last of a
/// name counts.
std::vector<std::string> environment_of(const std::vector<std::string>& more);

/// "NAME=***" for a variable whose name says that it is a secret: with PASSWORD, PASSWD, SECRET,
/// TOKEN, KEY or CREDENTIAL in it, in any case.
std::string shown_variable(const std::string& variable);

}  // namespace eddy::runtime::program
