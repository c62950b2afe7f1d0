// Waits for the loop's clock.
#include "script/time_library.hpp"

#include <eddy/io/loop.hpp>

namespace eddy::script {
namespace {

task<function_result> sleep_for(duration time) {
    const auto slept = co_await loop::current().sleep_for(time);
    if (!slept) co_return std::unexpected(slept.error().message());
    co_return values();
}

answer sleep(invocation& of) {
    using milliseconds = std::chrono::duration<double, std::milli>;
    const milliseconds time(of.number(1));
    if (!(time.count() >= 0 && time <= max_sleep)) return answer::misused();
    const auto length = std::chrono::duration_cast<duration>(time);
    of.sleeps(length);
    return sleep_for(length);
}

constexpr std::array<library_function, 1> rows = {{
    {.name = "sleep",
     .arguments = {{{.name = "milliseconds", .kind = argument_kind::number}}},
     .takes = "milliseconds, of a day at most",
     .help = "Waits for so many milliseconds.",
     .waits = true,
     .failure = on_failure::ends,
     .run = sleep},
}};

}  // namespace

library time_library() { return {.functions = rows}; }

}  // namespace eddy::script
