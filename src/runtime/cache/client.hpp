// One client of a cache.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine.hpp"
#include "runtime/connections.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::cache {

/// Lives in the coroutine that serves it.
class client final : public connection {
public:
    client(connections& all, stream accepted, cancel_source& parent, eddy::cache::engine& engine)
        : connection(all, std::move(accepted), parent),
          session(engine, socket.peer().to_string(), socket.local().to_string()) {}

    eddy::cache::session session;
    /// While a command is incomplete; the others use the cache's parser in turn.
    std::unique_ptr<resp::request_parser> parser;
    /// Received bytes that are not executed yet: the part of a command, or what waits until the
    /// replies before it are sent.
    byte_buffer input;
    /// How many bytes the command at the start of `input` lacks at least.
    std::size_t wanted = 1;
};

}  // namespace eddy::runtime::cache
