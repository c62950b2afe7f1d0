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

    /// What is left of the received bytes, when they ended within a command or when replies must be
    /// sent before the rest is executed. Nearly all clients have none nearly all the time.
    struct leftover {
        byte_buffer bytes;
        /// Knows how far the command at their start has come; without it that is parsed anew.
        std::unique_ptr<resp::request_parser> parser;
        /// How many bytes that command lacks at least.
        std::size_t wanted = 1;
    };
    std::unique_ptr<leftover> rest;
};

}  // namespace eddy::runtime::cache
