// The connection to the server that this cache follows: introducing itself, all data if need be,
// then the stream, whose commands are executed here; and again when it breaks.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/replication/replication.hpp"
#include "runtime/cache/leading.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

/// One loop's thread.
class follower {
public:
    /// A line of the master's before the stream; a longer one is an error.
    static constexpr std::size_t max_line = 4096;
    /// A replica that has more memory in use than its maxmemory so many times takes no more.
    static constexpr std::size_t most_over_memory = 2;

    /// `of` outlives it.
    explicit follower(cache_context& of) : context_(of) {}

    /// Follows whom the engine is to follow, until it is cancelled.
    task<void> run();
    /// Another one is to be followed, or the offset is to be told now.
    void wake() noexcept;

private:
    class link;

    task<void> follow_once();
    task<void> acknowledge(link& on);
    std::uint64_t note_disk();

    eddy::cache::replication& links() {
        return eddy::cache::replication::of(context_.engine.internals());
    }
    void tell(std::string_view what);

    cache_context& context_;
    event woken_;
    event ack_wanted_;
    cancel_source* current_ = nullptr;  // of the link
    std::uint64_t followed_ = 0;        // the generation that it is for
    std::uint8_t database_ = 0;         // that the stream has selected where it ended
    std::string last_told_;
    /// An offset, and where the append-only file was then.
    struct mark {
        std::uint64_t offset;
        std::uint64_t position;
    };
    std::optional<mark> unsynced_;
    std::uint64_t synced_offset_ = 0;
};

}  // namespace eddy::runtime::cache
