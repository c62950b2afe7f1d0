// on_send(text): texts of `eddy send` and `eddy attach` that a script may change, drop or refuse.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/scripting/loop_script.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace eddy::runtime {

/// Texts whose on_send waits at a time, for each loop; further ones are refused.
inline constexpr std::size_t max_waiting_sends = 100;

/// Row of the callback.
inline constexpr script::callback send_callback{
    .name = "on_send", .arguments = "text", .results = 1};

/// Runs the callback, which the script defines: yields the text that goes; none if it is dropped.
/// Refuses with 500 when the script fails, with 503 beyond max_waiting_sends and when `what`, such
/// as "the client", stops meanwhile. `waiting` counts; the task may outlive the script.
task<outcome<std::optional<std::string>>> ask_on_send(loop_script& by, std::size_t callback,
                                                      std::string text,
                                                      std::shared_ptr<std::size_t> waiting,
                                                      std::string what);

}  // namespace eddy::runtime
