// Commands to a cache by the control API: for the console's prompt, and for programs without a
// client of Redis.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "runtime/host/local_cache.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Limits of a reply that is shown as JSON.
inline constexpr std::size_t max_shown_reply = std::size_t{1} << 20;
inline constexpr std::size_t max_shown_elements = 10'000;

/// Runs a command about data (data_commands.hpp) on the cache's loop and awaits its reply: a JSON
/// value, or {"error": text} for one that the cache refuses. `words` has its name. Refuses (400)
/// other commands, (409) a cache that stops meanwhile, and (507) replies over the limits.
task<outcome<json>> run_cache_command(std::shared_ptr<runtime::local_cache> at,
                                      runtime::local_cache::login by,
                                      std::vector<std::string> words);

/// A reply of RESP2 as JSON: texts that are no UTF-8 are shown with U+FFFD. Refuses (507) what is
/// over the limits, and (500) what is no reply.
outcome<json> reply_as_json(std::string_view reply);

}  // namespace eddy::daemon
