// State of an engine's files: saves, loading, the append-only file, recorded changes.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include <cstdint>
#include <memory>

namespace eddy::cache {
namespace rdb {
class snapshot;
}

class append_log;
class propagation;
class save_host;

/// State of the dump file, changed by persistence.hpp. Times are of the steady clock.
struct save_state {
    save_host* host = nullptr;          ///< null: no dump file is written
    rdb::snapshot* snapshot = nullptr;  ///< the save in progress
    bool scheduled = false;             ///< another one is to begin after it
    bool is_background = true;          ///< the one in progress, or the last one
    bool succeeded = true;              ///< result of the last one, except failures in the
                                        ///< foreground
    std::int64_t began_us = 0;
    std::int64_t tried_us = 0;     ///< end of the last one in the background
    std::int64_t saved_us = 0;     ///< of the last successful one, or the server's start
    std::int64_t saved_at_us = 0;  ///< the same, since 1970
    std::int64_t took_s = -1;
    std::uint64_t count = 0;
    std::uint64_t changes_at_begin = 0;
    std::uint64_t saved_changes = 0;  ///< number of data.changes in the file
    std::uint64_t offset_at_begin = 0;
    std::uint64_t saved_offset = 0;  ///< replication offset in the file
    std::uint64_t loaded_keys = 0;
    std::uint64_t loaded_expired = 0;
};

/// Progress of loading files at the start, or a master's data on a replica; persistence.hpp resets
/// it.
struct load_progress {
    std::int64_t began_us = 0;       // of the steady clock
    std::int64_t began_at_us = 0;    // the same, since 1970
    std::uint64_t total_bytes = 0;   // 0: not known
    std::uint64_t loaded_bytes = 0;  // parsed ones
    std::uint64_t used_memory = 0;   // bytes that the writer had in use, by its own account; 0:
                                     // unknown
};

/// Member `persistence` of engine_state. Null members are not attached.
struct persistence_state {
    std::unique_ptr<rdb::snapshot> snapshot;  // while it is written or freed
    save_state saves;
    load_progress load;
    byte_buffer reload_file;                   // of the last DEBUG RELOAD, for NOSAVE
    std::unique_ptr<propagation> propagating;  // changes as commands, for files and replicas
    std::unique_ptr<append_log> appending;     // the append-only file
    bool is_ending = false;        // a script cut off from now on leaves nothing in files and
                                   // replicas
    bool has_half_script = false;  // one was cut off: no file is written any more
};

}  // namespace eddy::cache
