// Stop timer: cancels the tasks of a scope that are left after a server's stop time.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timer.hpp>

namespace eddy::serving {

/// Must live while the scope is joined.
class stop_timer final : private timer {
public:
    stop_timer(scope& children, duration limit) noexcept : children_(children) {
        if (limit <= duration{})
            children_.cancel();
        else
            loop::current().arm(*this, loop::current().after(limit));
    }
    ~stop_timer() { loop::current().disarm(*this); }

private:
    void fire() noexcept override { children_.cancel(); }

    scope& children_;
};

}  // namespace eddy::serving
