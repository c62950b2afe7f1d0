// Pauses for test suites, of what writes and reads files and copies: rdb-key-save-delay and
// key-load-delay of Redis.
#pragma once

#include <eddy/io/task.hpp>

#include "cache/config/server_settings.hpp"

#include <cstdint>

namespace eddy::runtime::cache {

/// Waits as long as so many keys are to take, by the setting. That is read again and again, so that
/// CONFIG SET ends a wait; so does a cancellation. `by` must stay until the end.
task<void> delay_keys(const eddy::cache::server_settings& by,
                      std::int64_t eddy::cache::server_settings::* each_us, std::uint64_t keys);

}  // namespace eddy::runtime::cache
