// Host of an instance: its requests to the manager, from its own loop.
#pragma once

#include "runtime/host.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace eddy::daemon {

class manager;

/// Host of the instance `number` of the runtime `name`. Called on the control loop, which alone
/// reads `of`; that is null once the manager is gone.
std::shared_ptr<runtime::host> make_host(std::shared_ptr<manager*> of, std::string name,
                                         std::uint64_t number);

}  // namespace eddy::daemon
