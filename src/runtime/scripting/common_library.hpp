// Functions that the scripts of every type have, in the tables `self`, `self.timer` and
// `self.json`: logs, waits, timers and JSON. The table `self` has the names `eddy` and `socketley`,
// too. print() is a global.
#pragma once

#include "runtime/scripting/script_timers.hpp"
#include "script/library.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Bytes of a text of log() in the journal; the rest is cut off.
inline constexpr std::size_t max_script_log = 4096;

/// The libraries; what they are given outlives the host. `fields` are those of the table `self`,
/// `table_name` a further name of it, or null.
std::vector<script::library> common_libraries(serving::journal& lines, script_timers& timers,
                                              std::vector<script::library_constant> fields,
                                              const char* table_name);

/// Defines in Lua print(), which writes to the journal as log() does. Behind common_libraries().
std::string_view print_prelude() noexcept;

}  // namespace eddy::runtime
