// The time of the moment, where the loop's time of the turn's start is too old.
#pragma once

#include <eddy/io/loop.hpp>

#include <chrono>

namespace eddy::runtime {

/// Costs a clock read, some 20 ns. On the simulator it is the virtual time.
inline time_point precise_now() noexcept {
    const loop& here = loop::current();
    return here.kind() == io_backend_kind::sim ? here.now() : std::chrono::steady_clock::now();
}

}  // namespace eddy::runtime
