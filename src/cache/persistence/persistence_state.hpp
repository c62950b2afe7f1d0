// State of an engine's files: saves, loading, the append-only file, changes on their way to it.
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

/// Of the dump file; persistence.hpp changes it. Times are of the steady clock.
struct save_state {
    save_host* host = nullptr;          ///< null: no dump file is written
    rdb::snapshot* snapshot = nullptr;  ///< the save on its way
    bool scheduled = false;             ///< one is to begin when that has ended
    bool is_background = true;          ///< the one on its way, or the last one
    bool succeeded = true;              ///< the last one, but for a failure in the foreground
    std::int64_t began_us = 0;
    std::int64_t tried_us = 0;     ///< the end of the last one in the background
    std::int64_t saved_us = 0;     ///< of the last one that succeeded, or the server's start
    std::int64_t saved_at_us = 0;  ///< the same, since 1970
    std::int64_t took_s = -1;
    std::uint64_t count = 0;
    std::uint64_t changes_at_begin = 0;
    std::uint64_t saved_changes = 0;  ///< of state.changes, so many are in the file
    std::uint64_t offset_at_begin = 0;
    std::uint64_t saved_offset = 0;  ///< in the stream of replication, as the file says
    std::uint64_t loaded_keys = 0;
    std::uint64_t loaded_expired = 0;
};

/// How far a start has come with its files, or a replica with its master's data; persistence.hpp
/// begins it.
struct load_progress {
    std::int64_t began_us = 0;       // of the steady clock
    std::int64_t began_at_us = 0;    // the same, since 1970
    std::uint64_t total_bytes = 0;   // 0: not known
    std::uint64_t loaded_bytes = 0;  // of them, understood
    std::uint64_t used_memory = 0;   // bytes that its writer had in use, as it says; 0: unknown
};

/// Part of engine_state. Null is what is not attached.
struct persistence_state {
    std::unique_ptr<rdb::snapshot> snapshot;  // while it is written or cleared up after
    save_state saves;
    load_progress load;
    byte_buffer reload_file;                   // of the last DEBUG RELOAD, for NOSAVE
    std::unique_ptr<propagation> propagating;  // changes as commands, for files and replicas
    std::unique_ptr<append_log> appending;     // the append-only file
    bool is_ending = false;        // a script that is cut off leaves nothing in files and replicas
    bool has_half_script = false;  // one was: no file is made of the data any more
};

}  // namespace eddy::cache
