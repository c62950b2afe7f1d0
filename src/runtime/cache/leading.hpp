// The connections of those that follow this cache: all data to begin with, in pieces of one
// snapshot that all who wait share, then the stream.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/task.hpp>

#include "cache/replication/replication.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/client.hpp"
#include "runtime/journal.hpp"
#include "runtime/metrics.hpp"

#include <functional>

namespace eddy::runtime::cache {

/// The engine's loop's thread, but for what says otherwise.
class leader {
public:
    /// `of` outlives it.
    explicit leader(cache_context& of) : context_(of) {}

    /// Makes copies when replicas wait for one, until it is cancelled.
    task<void> make_copies();
    /// Sends a replica what is for it, until its connection ends; counts the bytes. The client's
    /// loop.
    task<void> feed(client& to, counters& counted);
    /// A replica has sent something: while it takes in its copy, that it is there. The client's
    /// loop.
    void heard(client& from);
    /// Looks after timeouts and pings, until it is cancelled.
    task<void> tend();

    /// There is something to look at.
    void wake() noexcept {
        copies_.set();
        tended_.set();
    }

private:
    task<void> make_copy();
    eddy::cache::replication::output next_output(client& to);
    bool note_sent(client& to, const eddy::cache::replication::output& sent);

    eddy::cache::replication& links() {
        return eddy::cache::replication::of(context_.engine.internals());
    }

    cache_context& context_;
    event copies_;
    event tended_;
};

/// For when the cache is about to stop: holds writes up from now on, and waits until those that
/// follow have acknowledged all there is, `limit` is over or it `is_given_up`. What they do not
/// have would be lost where one of them is promoted. Notes how many lack something.
task<void> await_replicas(eddy::cache::engine& of, journal& events, duration limit,
                          std::function<bool()> is_given_up = {});

}  // namespace eddy::runtime::cache
