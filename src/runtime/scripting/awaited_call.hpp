// Calls of a script whose end another coroutine awaits, such as that of a request.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>

#include "runtime/scripting/loop_script.hpp"
#include "script/coroutine_host.hpp"

#include <memory>

namespace eddy::runtime {

/// Runs a call that begin() has left to its end, among the tasks of its version, which may end it.
/// Fails if the awaiting coroutine is cancelled: the call is of no use then, and is ended.
task<result<script::call_end>> await_call(std::unique_ptr<script_call> call);

}  // namespace eddy::runtime
