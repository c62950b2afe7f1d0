// Lua source: streams that are what a script makes of each request.
#pragma once

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/source.hpp"
#include "serving/journal.hpp"

#include <memory>
#include <string_view>

namespace eddy::runtime::stream {

/// Refuses where scripts were left out of the build; start() refuses a script that does not load,
/// with the line. `name` and `daemon` are the runtime's. All that it is given outlives it. Its
/// close() must have ended before it dies.
outcome<std::unique_ptr<source>> make_lua_source(sessions& in, source::observer& owner,
                                                 const config& chosen, std::string_view name,
                                                 std::shared_ptr<host> daemon,
                                                 serving::journal& lines);
/// Loads the script as a trial, with the same errors.
outcome<> try_stream_script(const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_stream_script_in_slices(script_config from);
/// Fields of the table `self` of scripts; none in a build without them.
std::vector<std::string> stream_functions();

}  // namespace eddy::runtime::stream
