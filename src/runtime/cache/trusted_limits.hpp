// What commands from a server's own file, or from the master that it follows, may measure: those
// that a redis-server has executed, which has fewer limits for its clients.
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
