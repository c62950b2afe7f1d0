// Lua source: streams that are what a script makes of each request.
#pragma once

#include "base/problem.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/source.hpp"
#include "serving/journal.hpp"

#include <chrono>
#include <memory>

namespace eddy::runtime::stream {

/// Failing streams write a line to the journal in each such time at most.
inline constexpr std::chrono::seconds script_log_interval{1};

/// Refuses a script that does not load, with the line, and any where scripts were left out of the
/// build. All that it is given outlives it. Its close() must have ended before it dies.
outcome<std::unique_ptr<source>> make_lua_source(sessions& in, source::observer& owner,
                                                 const config& chosen, serving::journal& lines);
/// Loads the script as a trial, with the same errors.
outcome<> try_script(const config& chosen);

}  // namespace eddy::runtime::stream
