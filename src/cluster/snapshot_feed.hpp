// Snapshots of a cluster, numbered and handed to waiters: the output side of every engine.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "cluster/membership.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace eddy::cluster {

using member_list = std::vector<std::shared_ptr<const member_info>>;

/// The newest snapshot, and what waits for another one. close() and drained() before the
/// destructor, once there were waiters. One loop's thread.
class snapshot_feed {
public:
    snapshot_feed();
    snapshot_feed(const snapshot_feed&) = delete;
    snapshot_feed& operator=(const snapshot_feed&) = delete;
    ~snapshot_feed();

    /// Publishes a snapshot with the next number, unless the newest one is equal: the same objects
    /// for members, and the same reason. `members` are by name, each name once. A reason that is
    /// not empty says why they are those known last.
    void show(member_list members, std::string stale_reason);

    /// As membership::current() and membership::changed().
    std::shared_ptr<const snapshot> current() const noexcept { return current_; }
    task<result<>> changed(std::uint64_t known);

    /// Ends what waits, and all later waits, with errc::closed.
    void close();
    /// Awaits the end of those waits. It cannot be cancelled.
    task<void> drained();

private:
    std::shared_ptr<const snapshot> current_;  // never null
    event shown_;                              // set only within show() and close()
    std::size_t waiters_ = 0;
    bool is_closed_ = false;
};

}  // namespace eddy::cluster
