// The look at doubtful streams.
#include "io/uring/end_watch.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "io/uring/uring_stream.hpp"

#include <chrono>
#include <new>

namespace eddy {
namespace {

constexpr std::chrono::milliseconds time_to_look{20};

}  // namespace

bool end_watch::add(uring_stream& doubtful) noexcept try {
    EDDY_ASSERT(doubtful.watched_at() == nowhere);
    streams_.push_back(&doubtful);
    doubtful.set_watched_at(static_cast<std::uint32_t>(streams_.size() - 1));
    loop& here = loop::current();
    if (!armed()) here.arm(*this, here.now() + time_to_look);
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void end_watch::remove(uring_stream& doubtful) noexcept {
    const std::uint32_t place = doubtful.watched_at();
    EDDY_ASSERT(place < streams_.size() && streams_[place] == &doubtful);
    streams_[place] = streams_.back();
    streams_[place]->set_watched_at(place);
    streams_.pop_back();
    doubtful.set_watched_at(nowhere);
    if (streams_.empty() && armed()) loop::current().disarm(*this);
}

void end_watch::fire() noexcept {
    // Looking resumes no coroutine: an end that is found comes as a completion.
    for (uring_stream* const each : streams_) {
        each->set_watched_at(nowhere);
        each->look_for_end();
    }
    streams_.clear();
}

}  // namespace eddy
