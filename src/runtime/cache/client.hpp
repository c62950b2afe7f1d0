// One client of a cache.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine.hpp"
#include "runtime/connections.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::cache {

/// Lives in the coroutine that serves it.
class client final : public connection {
public:
    client(connections& all, stream accepted, cancel_source& parent, eddy::cache::engine& engine)
        : connection(all, std::move(accepted), parent), session(engine, *this) {}

    /// The engine's side, and how the engine reaches this one.
    struct own_session final : eddy::cache::session {
        own_session(eddy::cache::engine& engine, client& of)
            : eddy::cache::session(engine, of.socket.peer().to_string(),
                                   of.socket.local().to_string()),
              of_(of) {}
        void wake() noexcept override {
            if (of_.attention) of_.attention->something.set();
        }
        void close_now() noexcept override { of_.cancel.request(); }
        void feed_grew() noexcept override {
            if (of_.attention) of_.attention->feed.set();
        }
        buffers held() const noexcept override {
            return {of_.rest ? of_.rest->bytes.size() : 0, unsent};
        }

        /// Bytes of replies that the kernel does not take now. It lies where the engine's side
        /// would be padded: an idle client has a kibibyte.
        std::uint32_t unsent = 0;

    private:
        client& of_;
    };
    own_session session;

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

    /// Of a client that others send something to, or that waits for them: one task reads what
    /// comes, another one executes and sends. Made when that begins; it stays until the end.
    struct attentive {
        event something;  ///< input came, output came, or a wait has ended
        event room;       ///< the reader may go on
        event feed;       ///< there is more for a replica
        bool feeds = false;
        bool sending = false;
        bool at_end = false;  ///< nothing more will come
    };
    std::unique_ptr<attentive> attention;
};

}  // namespace eddy::runtime::cache
