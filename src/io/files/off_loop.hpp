// Work that would block a loop, on the loop's threads for files.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>

#include "io/files/file_access.hpp"

#include <type_traits>
#include <utility>

namespace eddy {

/// Runs `call`, which returns a result, where it does not block the loop: on one of its threads for
/// files; on a simulated loop at once. Fails with errc::cancelled, and with errc::limit_reached
/// when loop_options::max_file_queue pieces of work wait. The loop's thread.
template <class Call>
task<std::invoke_result_t<Call>> off_loop(Call call) {
    loop& here = loop::current();
    if (here.kind() == io_backend_kind::sim) {
        const cancel_source* const stop = co_await current_source();
        if (stop && stop->requested()) co_return fail(errc::cancelled);
        co_return call();
    }
    co_return co_await run_blocking(file_access::threads(here), std::move(call));
}

}  // namespace eddy
