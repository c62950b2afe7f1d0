// Moved clients on their way to the loops of a server: on none of them a client begins before all
// have arrived, so that what one of them does reaches each of the others.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include <memory>
#include <vector>

namespace eddy::serving {

/// Opens the gates of all loops when the last reference goes: each client on its way holds one, and
/// so does the pool while it sends them. Any thread.
class arriving_clients {
public:
    arriving_clients() = default;
    arriving_clients(const arriving_clients&) = delete;
    arriving_clients& operator=(const arriving_clients&) = delete;
    ~arriving_clients();

    /// The event of a loop that is set there once all have arrived. It is set for no coroutine
    /// where the loop ends before. Before the first client is sent.
    std::shared_ptr<event> gate_of(const executor& where);

private:
    class gate;
    std::vector<std::shared_ptr<gate>> gates_;
};

}  // namespace eddy::serving
