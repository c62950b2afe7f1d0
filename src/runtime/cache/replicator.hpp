// Both sides of a cache's replication: those that follow it, and whom it follows. A task of its own
// for each part.
#pragma once

#include <eddy/io/task.hpp>

#include "cache/replication/replication.hpp"
#include "runtime/cache/following.hpp"
#include "runtime/cache/leading.hpp"

namespace eddy::runtime::cache {

/// Is told by the engine of those that follow, and whom to follow. One loop's thread.
class replicator final : public eddy::cache::replication_host {
public:
    /// `of` outlives it.
    explicit replicator(cache_context& of)
        : engine_(of.engine), events_(of.events), leading_(of), following_(of) {}

    /// Follows whom the options name.
    void begin() {
        eddy::cache::replication& its = eddy::cache::replication::of(engine_.internals());
        its.host = this;
        const eddy::cache::replication_options& options = engine_.options().replication;
        if (!options.master_host.empty())
            its.become_replica(options.master_host, options.master_port);
    }
    /// Its tasks: they run until they are cancelled, and can be begun anew after lack of memory.
    task<void> make_copies() { return leading_.make_copies(); }
    task<void> tend() { return leading_.tend(); }
    task<void> follow() { return following_.run(); }
    /// As leader::feed().
    task<void> feed(client& to, counters& counted) { return leading_.feed(to, counted); }
    /// As leader::heard().
    void heard(client& from) { leading_.heard(from); }

    void copy_wanted() noexcept override { leading_.wake(); }
    void link_changed() noexcept override {
        following_.wake();
        leading_.wake();
    }
    void tell(std::string_view what) override { events_.write(what); }

private:
    eddy::cache::engine& engine_;
    journal& events_;
    leader leading_;
    follower following_;
};

}  // namespace eddy::runtime::cache
