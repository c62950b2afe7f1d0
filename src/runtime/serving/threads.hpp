// Threads of a runtime that serves streams: --threads, and the start of its loop pool.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/options/option.hpp"
#include "serving/loop_pool.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// The option --threads N, 1 to serving::max_threads; 1 if it is not given. `help` must live as
/// long as the program.
option threads_option(std::string_view help);

/// As loop_pool::start_threads(). Fails with 503 when they cannot be had, with `what` they are for.
outcome<> start_threads(serving::loop_pool& of, std::size_t threads, std::string thread_name,
                        std::string_view what);
/// As loop_pool::make_workers(). Fails with 503.
task<outcome<>> make_workers(serving::loop_pool& of, serving::loop_pool::factory make);

}  // namespace eddy::runtime
