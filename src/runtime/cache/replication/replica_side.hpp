// Replica side of PSYNC: connect, handshake, a full copy if need be, then the stream of commands,
// which are executed here; once more when the connection breaks.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/resp/request.hpp>

#include "base/problem.hpp"
#include "cache/replication/replication.hpp"
#include "io/tasks/backoff.hpp"
#include "runtime/cache/replication/master_side.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

/// Input from the master is untrusted. One loop's thread.
class replica_side {
public:
    /// A line of the master's before the stream; a longer one is an error.
    static constexpr std::size_t max_line = 4096;
    /// A replica that has more memory in use than its maxmemory so many times takes no more.
    static constexpr std::size_t most_over_memory = 2;

    /// Limits of the pause before a master is asked again whose copy was refused here: a copy costs
    /// it much, and the next one is the same until one of the two servers is changed.
    static constexpr duration first_copy_pause = std::chrono::seconds(2);
    static constexpr duration longest_copy_pause = std::chrono::seconds(60);

    /// `of` outlives it.
    explicit replica_side(cache_context& of) : context_(of) {}

    /// Replicates the master that the engine names, until it is cancelled.
    task<void> run();
    /// Wakes it: the master has changed, or the offset is to be acknowledged now.
    void wake() noexcept;

private:
    class link;

    task<void> replicate_once();
    task<bool> pause();
    task<outcome<>> replicate_over(link& on);
    task<void> acknowledge(link& on);
    std::uint64_t note_disk();

    eddy::cache::replication& links() { return eddy::cache::replication::of(context_.engine); }
    void log(std::string_view what);

    cache_context& context_;
    event woken_;
    event ack_wanted_;
    cancel_source* current_ = nullptr;  // of the link
    std::uint64_t generation_ = 0;      // of the engine's replication that the link is for
    std::string last_logged_;
    bool copy_refused_ = false;  // since the last attempt began
    backoff copy_pauses_{first_copy_pause, longest_copy_pause, entropy_seed()};
    /// An offset, and where the append-only file was then.
    struct mark {
        std::uint64_t offset;
        std::uint64_t position;
    };
    std::optional<mark> unsynced_;
    std::uint64_t synced_offset_ = 0;
};

}  // namespace eddy::runtime::cache
