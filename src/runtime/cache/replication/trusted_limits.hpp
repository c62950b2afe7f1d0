// Parser limits for trusted input: commands from a server's own file, or from its master. A
// redis-server, which has fewer limits for its clients, may have executed them.
#pragma once

#include <eddy/wire/resp/request.hpp>

#include "cache/memory/entry.hpp"

namespace eddy::runtime::cache {

inline resp::request_limits limits_of_trusted() {
    resp::request_limits limits;
    limits.max_args = 1U << 26;
    limits.max_bulk = eddy::cache::largest_text;
    limits.max_request = 2U << 30;
    return limits;
}

}  // namespace eddy::runtime::cache
