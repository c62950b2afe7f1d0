// maxmemory-clients: memory of all clients' buffers, and the closing of the largest clients above
// the limit.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstddef>

namespace eddy::cache {

/// There while there is a limit.
class client_memory {
public:
    /// Minimum of the limit; a lower one would close all clients.
    static constexpr std::size_t least_limit = 128 * 1024;
    /// All clients are checked when their buffers may have grown by this part of the limit.
    static constexpr std::size_t looks_per_limit = 16;

    explicit client_memory(std::size_t limit) noexcept : limit_(limit) {}

    /// Records growth of a client's buffers; above the limit the largest clients are closed.
    void grown(engine_state& s, std::size_t bytes) {
        grown_ += bytes;
        if (grown_ >= limit_ / looks_per_limit) [[unlikely]]
            look(s);
    }

private:
    void look(engine_state& s);

    std::size_t limit_;
    std::size_t grown_ = 0;
};

/// Makes or drops clients.memory as the options say.
void configure_client_memory(engine_state& s);

/// Records that a client's buffers have grown by so much. Not hot.
inline void note_client_memory(engine_state& s, std::size_t bytes) {
    if (s.clients.memory != nullptr) [[unlikely]]
        s.clients.memory->grown(s, bytes);
}

/// Everything that the client takes, as CLIENT LIST's tot-mem.
std::size_t client_bytes(const client_session& who) noexcept;

}  // namespace eddy::cache
