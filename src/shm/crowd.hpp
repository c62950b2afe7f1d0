// Choice of the handshake that a listener gives up at its limit, so that stalled clients cannot
// keep others out.
#pragma once

#include <cstddef>
#include <iterator>

namespace eddy::shm {

/// The oldest of `handshakes`, sorted oldest first, that belongs to the process with the most of
/// them. `process_of` yields the peer_process of an element. The end of an empty range.
template <class Handshakes, class ProcessOf>
auto most_crowding(Handshakes& handshakes, ProcessOf process_of) {
    auto chosen = std::end(handshakes);
    std::size_t most = 0;
    for (auto each = std::begin(handshakes); each != std::end(handshakes); ++each) {
        std::size_t count = 0;
        for (const auto& other : handshakes)
            count += process_of(other) == process_of(*each) ? 1 : 0;
        if (count <= most) continue;
        most = count;
        chosen = each;
    }
    return chosen;
}

}  // namespace eddy::shm
