// What running runtimes may ask of the manager, from their own loops.
#pragma once

#include "runtime/host.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace eddy::daemon {

class manager;

/// For the instance `number` of the runtime `name`. Called on the control loop, which alone looks
/// at `of`; that is null once the manager is gone.
std::shared_ptr<runtime::supervisor> supervise(std::shared_ptr<manager*> of, std::string name,
                                               std::uint64_t number);

}  // namespace eddy::daemon
