// Script of a cache before it is loaded: the check of its syntax and its names, and the functions
// that it finds beside Lua's libraries.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/scripting/script_options.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {

/// Bytes of the file of --hooks at most.
inline constexpr std::size_t max_hook_script_bytes = std::size_t{4} << 20;

/// The script's text behind the table `self`, also named `eddy` and `socketley`: log(), and the
/// name of the cache. Its lines keep their numbers.
std::string with_hook_functions(const std::string& text, std::string_view name);

/// Fields of that table; none in a build without scripts.
std::vector<std::string> hook_script_functions();

/// Reads the file of --hooks, and refuses it (400) where it cannot be read, is no Lua, or has names
/// that are certain to be wrong, with the text that scripts of other types get. It is not run. It
/// waits for the disk. Any thread. A build without scripts checks nothing.
outcome<> check_hook_file(const std::string& path);

/// The same of the names alone, for a loop, which does not wait for a large text.
task<outcome<>> check_hook_names(const script_file& from);

}  // namespace eddy::runtime::cache
