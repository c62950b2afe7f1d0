// Host of an instance: its requests to the parts that keep the runtimes, from its own loop.
#pragma once

#include "daemon/journal/message_feed.hpp"
#include "runtime/host/host.hpp"
#include "runtime/host/message_bus.hpp"
#include "runtime/host/registry.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace eddy::daemon {

struct runtime_parts;

/// Services that all hosts of a daemon share.
struct shared_services {
    std::shared_ptr<runtime::registry> runtimes;
    std::shared_ptr<runtime::message_bus> messages;
    runtime::control_access control = {};
};

/// Host of the instance `number` of the runtime `name`, whose received messages go to `messages`.
/// Called on the control loop, which alone reads `of`; that is null once these are gone.
std::shared_ptr<runtime::host> make_host(std::shared_ptr<runtime_parts*> of, shared_services with,
                                         std::shared_ptr<message_feed> messages, std::string name,
                                         std::uint64_t number);

}  // namespace eddy::daemon
