// Feed of replicas, as the workers that serve their connections use it.
#pragma once

#include <eddy/io/task.hpp>

#include "serving/counters.hpp"

namespace eddy::runtime::cache {

class client;

/// The client's loop.
class replica_feed {
public:
    /// Sends a replica what is for it, until its connection ends; counts the bytes.
    virtual task<void> feed(client& to, serving::counters& counted) = 0;
    /// Notes input of a replica: while it loads its copy, a sign of life.
    virtual void note_progress(client& from) = 0;

protected:
    ~replica_feed() = default;
};

}  // namespace eddy::runtime::cache
