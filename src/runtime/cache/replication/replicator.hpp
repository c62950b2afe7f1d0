// Replication of a cache: its connections as a master and as a replica, with a task of its own for
// each part.
#pragma once

#include <eddy/io/task.hpp>

#include "cache/replication/replication.hpp"
#include "runtime/cache/replication/master_side.hpp"
#include "runtime/cache/replication/replica_side.hpp"

namespace eddy::runtime::cache {

/// Takes the engine's notifications of replicas and of its master. One loop's thread.
class replicator final : public eddy::cache::replication_host {
public:
    /// `of` outlives it.
    explicit replicator(cache_context& of) : context_(of), master_side_(of), replica_side_(of) {}

    /// Becomes a replica of the master in the settings, if they name one.
    void begin() {
        eddy::cache::replication& its = eddy::cache::replication::of(context_.engine);
        its.host = this;
        const eddy::cache::replica_settings& given = context_.settings.replica;
        if (!given.master_host.empty()) its.become_replica(given.master_host, given.master_port);
    }
    /// Its tasks: they run until they are cancelled, and can be begun anew after lack of memory.
    task<void> make_copies() { return master_side_.make_copies(); }
    task<void> tend() { return master_side_.tend(); }
    task<void> replicate() { return replica_side_.run(); }
    replica_feed& feed() noexcept { return master_side_; }

    void copy_wanted() noexcept override { master_side_.wake(); }
    void link_changed() noexcept override {
        replica_side_.wake();
        master_side_.wake();
    }
    void replicas_advanced() noexcept override { context_.progress.set(); }
    void log(std::string_view what) override { context_.events.write(what); }

private:
    cache_context& context_;
    master_side master_side_;
    replica_side replica_side_;
};

}  // namespace eddy::runtime::cache
