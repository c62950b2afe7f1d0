// Program of the daemon that takes this one's place: its check, arguments and environment, and the
// notification of the service manager.
#pragma once

#include "base/problem.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace eddy::daemon {

/// The path of a program that may take this daemon's place, without links. Refuses (400) what is no
/// executable file, and (403) one that users other than this one and root could replace: by its
/// owner or permissions, or those of a folder above it.
outcome<std::string> check_program(const std::string& path);

/// Arguments of this process, with `program` in place of its own.
std::vector<std::string> arguments_of_this_process(const std::string& program);
/// The environment that this process was started with, and the variable of the upgrade.
std::vector<std::string> environment_for_upgrade();

}  // namespace eddy::daemon
