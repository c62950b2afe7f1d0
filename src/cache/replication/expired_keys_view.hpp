// Visibility of expired keys for code that repeats a master's commands.
#pragma once

#include "cache/engine/engine.hpp"
#include "cache/keyspace/environment.hpp"

namespace eddy::cache {

/// While it exists, the engine treats expired keys like others, as their master removes them. The
/// engine's thread.
class expired_keys_view {
public:
    explicit expired_keys_view(engine& of) noexcept;
    ~expired_keys_view() { env_.expired = before_; }
    expired_keys_view(const expired_keys_view&) = delete;
    expired_keys_view& operator=(const expired_keys_view&) = delete;

private:
    environment& env_;
    expired_keys before_;
};

}  // namespace eddy::cache
