// Children of a limited scope: each holds a permit until its frame is gone.
#include <eddy/io/limited_scope.hpp>

#include <eddy/io/when.hpp>

#include <utility>

namespace eddy {

limited_scope::limited_scope(scope& children, std::size_t limit)
    : children_(children), limit_(limit), places_(limit) {
    EDDY_PRECONDITION(limit > 0, "a limited_scope of no child: its limit is at least 1");
}

task<void> limited_scope::run(task<void> child, permit /*place*/) { co_await std::move(child); }

task<result<permit>> limited_scope::acquire(semaphore& places) {
    co_return co_await places.acquire();
}

task<result<>> limited_scope::spawn(task<void> child) {
    if (children_.source().requested()) co_return fail(errc::cancelled);
    permit place = places_.try_acquire();
    if (!place) {
        task<result<permit>> waiting = acquire(places_);
        cancel_source* const own = co_await current_source();
        if (own) waiting = std::move(waiting).under(*own);
        result<permit> got = co_await detail::also_under(std::move(waiting), children_.source());
        if (!got) co_return fail(got.error());
        place = std::move(*got);
    }
    children_.spawn(run(std::move(child), std::move(place)));
    co_return result<>();
}

}  // namespace eddy
