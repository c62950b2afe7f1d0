// Pauses for test suites, of what writes and reads files and copies: rdb-key-save-delay and
// key-load-delay of Redis.
#pragma once

#include <eddy/io/task.hpp>

#include "cache/engine/engine.hpp"

#include <cstdint>

namespace eddy::runtime::cache {

/// Waits as long as so many keys are to take, by the option. That is read again and again, so that
/// CONFIG SET ends a wait; so does a cancellation. The engine must stay until the end.
task<void> delay_keys(const eddy::cache::engine& of,
                      std::int64_t eddy::cache::engine_options::* each_us, std::uint64_t keys);

}  // namespace eddy::runtime::cache
