// Run of an orchestration script: a file of Lua whose statements may wait, against a daemon.
#pragma once

#include "cli/control_client.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

struct script_run_options {
    std::string text;
    std::string name;                    ///< what errors call it
    std::vector<std::string> arguments;  ///< `...` of the script
    std::vector<std::string> modules;    ///< folders for require()
};

/// Takes what the script prints.
using script_output = std::function<void(std::string_view)>;

/// Runs it to its end on the client's loop. The error is one line. Blocks.
std::expected<void, std::string> run_script(control_client& daemon, script_run_options options,
                                            script_output out);

/// The same for a script that declares runtimes: yields what it passes to runtimes{}, as JSON, and
/// refuses its changes of runtimes.
std::expected<std::vector<std::string>, std::string> run_declarations(control_client& daemon,
                                                                      script_run_options options,
                                                                      script_output out);

/// The reason why a text is no script; one line that names the place.
std::expected<void, std::string> check_script(std::string_view text, std::string_view name);

}  // namespace eddy::cli
