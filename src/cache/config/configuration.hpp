// Configuration of an engine: its options, its users, its commands' names.
#pragma once

#include "cache/acl/acl.hpp"
#include "cache/engine/options.hpp"

#include <memory>

namespace eddy::cache {

class command_names;

/// Member `settings` of engine_state. CONFIG, ACL and the server change it.
struct configuration {
    explicit configuration(engine_options given);
    ~configuration();

    engine_options options;
    acl::users users{options.password};
    std::unique_ptr<const command_names> renamed;  // commands by other names
};

}  // namespace eddy::cache
