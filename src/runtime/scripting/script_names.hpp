// Check of a script's names before it is loaded: callbacks that no type has, and functions that its
// type's tables do not have.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "script/script_check.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Fields of the table `self` of a type's scripts: "send", "json.encode". Not on a loop's behalf: a
/// state of Lua's is made for it.
std::vector<std::string> functions_of(const script_type& type);

/// Refuses a script (400) with names that are certain to be wrong; the text names the first one's
/// line. It may be no Lua. Any thread.
outcome<> check_script_names(const script_type& type, const script_file& from);

/// The same for a loop, which does not wait for a large one.
task<outcome<>> check_script_names_in_background(const script_type& type, const script_file& from);

// The same of a script with other names than those of a type, which `option` has named, such as
// "--hooks". `known` and `option` are in static storage.
outcome<> check_script_names(const script::script_names& known, std::string_view option,
                             const script_file& from);
task<outcome<>> check_script_names_in_background(const script::script_names& known,
                                                 std::string_view option, const script_file& from);

}  // namespace eddy::runtime
