// Threads of a runtime: their option, and failures explained.
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace eddy::runtime {

option threads_option(std::string_view help) {
    return {.name = "threads",
            .kind = option_kind::integer,
            .value_name = "N",
            .default_value = "1",
            .help = help,
            .minimum = 1,
            .maximum = static_cast<std::int64_t>(serving::max_threads)};
}

outcome<> start_threads(serving::loop_pool& of, std::size_t threads, std::string thread_name,
                        std::string_view what) {
    const auto started = of.start_threads(threads, std::move(thread_name));
    if (started) return {};
    return refuse(503, fmt::format("{} threads for {} cannot be had: {}; give fewer --threads",
                                   threads, what, started.error().message()));
}

task<outcome<>> make_workers(serving::loop_pool& of, serving::loop_pool::factory make) {
    const auto made = co_await of.make_workers(std::move(make));
    if (made) co_return outcome<>();
    co_return refuse(503, "one of its threads has ended before it served; start it again");
}

}  // namespace eddy::runtime
