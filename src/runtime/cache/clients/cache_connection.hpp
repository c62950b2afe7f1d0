// Connection of a cache: a client's, or one that protected mode rejects.
#pragma once

#include "serving/connections.hpp"

#include <utility>

namespace eddy::runtime::cache {

/// Base of each connection among a cache worker's. One loop's thread.
class cache_connection : public serving::connection {
public:
    /// False of one that is rejected: only a client has a session to end before it is closed.
    bool is_client() const noexcept { return is_client_; }

protected:
    cache_connection(bool is_client, serving::connections& all, stream accepted,
                     cancel_source& parent, serving::connection_slot slot)
        : connection(all, std::move(accepted), parent, std::move(slot)), is_client_(is_client) {}
    ~cache_connection() = default;

private:
    const bool is_client_;
};

}  // namespace eddy::runtime::cache
