// Supervised tasks: restart after a pause.
#include "runtime/cache/supervised.hpp"

#include <eddy/io/loop.hpp>

#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

constexpr duration pause = std::chrono::seconds(1);

void note(serving::counters& counted, serving::journal& events) noexcept {
    ++counted.errors;
    try {
        events.write("the cache lacks memory for its own work, and tries again in a second");
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

}  // namespace

task<void> supervised(std::function<task<void>()> make, serving::counters& counted,
                      serving::journal& events) {
    for (;;) {
        try {
            co_await make();
            co_return;
        } catch (const std::bad_alloc&) {
            note(counted, events);
        }
        if (!co_await loop::current().sleep_for(pause)) co_return;
    }
}

}  // namespace eddy::runtime::cache
