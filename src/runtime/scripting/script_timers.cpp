// Timers of a script.
#include "runtime/scripting/script_timers.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime {

script_timers::entry::entry(script_timers& of, std::uint64_t id, duration time, bool repeats,
                            script::kept_function function)
    : of_(of),
      id_(id),
      time_(repeats ? std::max(time, least_interval) : time),
      repeats_(repeats),
      function_(std::make_shared<script::kept_function>(std::move(function))) {}

script_timers::entry::~entry() {
    if (armed()) loop::current().disarm(*this);
}

void script_timers::entry::arm() noexcept {
    EDDY_ASSERT(!armed());
    loop::current().arm(*this, loop::current().after(time_));
}

/// Perhaps the last call on this object.
void script_timers::entry::fire() noexcept {
    script_timers& of = of_;
    const std::uint64_t id = id_;
    const std::shared_ptr<script::kept_function> function = function_;
    try {
        if (!repeats_) {
            of.last_calls_.insert(id);
            of.all_.erase(id);
        }
        of.runner_.run(of, id, function);
    } catch (const std::bad_alloc&) {
        // The call is dropped; a repeated one is due again.
        if (const auto at = of.all_.find(id); at != of.all_.end() && !at->second->repeats())
            of.all_.erase(at);
        of.ended(id);
    }
}

std::uint64_t script_timers::add(duration time, bool repeats, script::kept_function function) {
    if (is_over_) return ++last_;
    if (count() >= most_) return 0;
    auto made = std::make_unique<entry>(*this, last_ + 1, time, repeats, std::move(function));
    entry& its = *made;
    EDDY_ASSERT(!all_.contains(last_ + 1));
    all_.emplace(++last_, std::move(made));
    its.arm();
    return last_;
}

void script_timers::ended(std::uint64_t id) noexcept {
    last_calls_.erase(id);
    const auto found = all_.find(id);
    if (found != all_.end() && found->second->repeats()) found->second->arm();
}

void script_timers::clear() noexcept {
    is_over_ = true;
    all_.clear();
}

}  // namespace eddy::runtime
