// Writer of the dump file, as the engine sees it.
#pragma once

namespace eddy::cache {

/// Writer of snapshots to the disk.
class save_host {
public:
    /// Called within a command: engine_files::snapshot() is there to be written, from the next turn
    /// on.
    virtual void save_began() noexcept = 0;

protected:
    ~save_host() = default;
};

/// As in Redis, only a failed background save has writes refused, delays the next try and is
/// `rdb_last_bgsave_status`. A failed SAVE replies with an error, SHUTDOWN does not stop.
enum class save_kind : bool { background, foreground };

}  // namespace eddy::cache
