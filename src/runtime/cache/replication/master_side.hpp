// Master side of PSYNC: full copies, in pieces of one snapshot that all waiting replicas share,
// then the stream of changes.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/clients/replica_feed.hpp"
#include "serving/counters.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {

/// The engine's loop's thread, but for what says otherwise.
class master_side final : public replica_feed {
public:
    /// `of` outlives it.
    explicit master_side(cache_context& of) : context_(of) {}

    /// Makes copies when replicas wait for one, until it is cancelled.
    task<void> make_copies();
    task<void> feed(client& to, serving::counters& counted) override;
    void note_progress(client& from) override;
    /// Timeouts and pings, until it is cancelled.
    task<void> tend();

    /// Wakes both tasks: the state of a replica has changed.
    void wake() noexcept {
        copies_.set();
        tended_.set();
    }

private:
    task<void> make_copies_beside(scope& sending);
    task<void> make_copy(scope& sending);
    task<std::string> send_as_made(eddy::cache::rdb::snapshot& data, eddy::cache::full_copy& copy,
                                   std::uint64_t& bytes);
    task<std::string> write_whole(eddy::cache::rdb::snapshot& data,
                                  const eddy::cache::full_copy& copy, std::optional<file>& to,
                                  std::uint64_t& bytes);
    task<void> send_whole(std::shared_ptr<file> from, std::shared_ptr<eddy::cache::full_copy> copy,
                          std::uint64_t bytes);
    task<std::string_view> send_pieces(file& from, eddy::cache::full_copy& copy,
                                       std::uint64_t bytes);
    void note_fault(std::string_view fault);
    eddy::cache::replication::output next_output(client& to);
    bool note_sent(client& to, const eddy::cache::replication::output& sent);

    eddy::cache::replication& links() { return eddy::cache::replication::of(context_.engine); }

    cache_context& context_;
    event copies_;
    event tended_;
};

/// Wait before a stop: holds writes from now on, and ends when the replicas have acknowledged
/// everything, after `limit`, or when it `is_given_up`. What a replica lacks would be lost where it
/// is promoted. Writes to the journal how many lack something.
task<void> await_replicas(cache_context& of, duration limit,
                          std::function<bool()> is_given_up = {});

}  // namespace eddy::runtime::cache
