// Served runtime: the frame of every type that serves streams. It opens the listeners, starts the
// loops, makes their workers and has clients accepted; it stops, counts, and applies changes.
//
// A type derives from it and says what is its own: how its options are read, what it opens before
// its listeners, its workers, and what they count. All members are called on the home loop.
#pragma once

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/serving/listeners.hpp"
#include "runtime/serving/serving_config.hpp"
#include "serving/acceptor.hpp"
#include "serving/journal.hpp"
#include "serving/loop_pool.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Constants of a type. Texts live as long as the program.
struct served_type {
    std::string_view what;           ///< for messages, such as "the site"
    std::string_view thread_prefix;  ///< of the names of its threads, such as "ht-"
    /// Handshakes end before a client is taken, also with one thread.
    bool listens_in_parts = false;
};

/// One loop's thread.
class served_runtime : public instance {
public:
    ~served_runtime() override;

    task<outcome<>> start() final;
    task<void> stop(duration drain) final;
    void end_drain() noexcept final;
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() final;
    outcome<> take_back(inherited_listeners& from) final;
    outcome<std::shared_ptr<passed_listeners>> share_listeners() final;
    task<void> end_accepting() final;
    void unshare_listeners() noexcept final;
    task<std::vector<passed_client>> hand_over_clients() final;
    void take_clients(std::vector<passed_client> from) final;
    void open() final;
    metrics count() const final;
    client_counts count_clients() const final;
    endpoint local() const final;
    std::string fault() const final;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) final;
    task<outcome<bool>> reread() final;

protected:
    using config_pointer = std::shared_ptr<const serving_config>;

    served_runtime(const served_type& constants, creation from);

    /// For read().
    template <class Config>
    static outcome<config_pointer> shared(outcome<Config> read) {
        if (!read) return std::unexpected(std::move(read.error()));
        return std::make_shared<const Config>(std::move(*read));
    }

    // --- Overrides of a type ------------------------------------------------------------------

    /// Its configuration, derived from serving_config.
    virtual outcome<config_pointer> read(const settings& chosen) const = 0;
    /// Opens what it needs before its listeners, by its configuration. On failure nothing is left.
    virtual outcome<> prepare() { return {}; }
    /// The same, as far as it can be known now, of an instance with another configuration.
    virtual task<outcome<>> check(config_pointer /*next*/, bool /*discards_data*/) {
        co_return outcome<>();
    }
    /// The factory of its workers; it may be used on all loops until they are made.
    virtual serving::loop_pool::factory worker_factory() = 0;
    /// After the workers are made, before clients are accepted, unless it calls open_to_clients().
    virtual task<outcome<>> begin() { co_return outcome<>(); }
    /// First step of a stop: clients are accepted and served.
    virtual task<void> begin_stop() { co_return; }
    /// Second step: no more clients are accepted. The time that it takes is part of the drain.
    virtual task<void> accepting_ended(duration /*drain*/) { co_return; }
    /// Third step, before the workers are destroyed: they have no clients any more. `has_started`
    /// is false when a start has failed.
    virtual task<void> clients_ended(bool /*has_started*/) { co_return; }
    /// Merges the counts of a worker that is about to be destroyed, besides counters.
    virtual void retire(const serving::loop_worker& /*last*/) {}
    /// After the workers are destroyed, also when a start has failed: ends what prepare() and
    /// begin() made.
    virtual task<void> end() { co_return; }
    /// Adds what it counts besides its workers' counters.
    virtual void add_counts(metrics& /*to*/) const {}
    /// Lack besides addresses that keeps it from its work, see instance::fault(). While it runs.
    virtual std::string lack() const { return {}; }
    /// Reads its files again, certificates aside. False when that needs a restart. On failure, and
    /// then, nothing has changed.
    virtual task<outcome<bool>> reread_files() { co_return true; }
    /// Applies live options of `common()`, which has them now, besides accept_rules.
    virtual void apply_live() {}
    /// Line for clients beyond the limit; empty: they are reset.
    virtual std::string_view refusal() const { return {}; }
    /// Checks accepted connections; null: none does.
    virtual serving::admission* connection_check() noexcept { return nullptr; }

    // --- Members of the frame ----------------------------------------------------------------

    bool is_running() const noexcept { return running_ != nullptr; }
    const std::string& name() const noexcept { return name_; }
    serving::journal& events() const noexcept { return events_; }
    const std::shared_ptr<host>& daemon() const noexcept { return host_; }
    /// Configuration of the last start, with live changes.
    const serving_config& common() const noexcept { return *config_; }
    const config_pointer& shared_config() const noexcept { return config_; }
    /// Options that it is made from, with live changes.
    settings& options() noexcept { return options_; }
    /// Counters of workers that have ended; a type may add to them.
    serving::counters& counted() noexcept { return counted_; }
    /// For an apply() of its own.
    void set_config(config_pointer now, settings of) noexcept {
        config_ = std::move(now);
        options_ = std::move(of);
    }

    // While it runs:
    serving::loop_pool& pool() const noexcept;
    serving::acceptor& acceptor() const noexcept;
    listeners& listening() const noexcept;
    /// Accepts clients from now on. Once a start.
    void open_to_clients();

    /// Calls f(serving::loop_worker&) for each worker. Members of theirs that any thread may call.
    template <class F>
    void for_each_worker(const F& f) const {
        if (!running_) return;
        if (pool().here() != nullptr) f(*pool().here());
        for (const auto& each : pool().others()) f(*each.its);
    }

    /// Awaits a task of each worker that serves clients, on its loop. The first failure ends it.
    task<outcome<>> on_each_worker(std::function<task<outcome<>>(serving::loop_worker&)> what);
    /// A change of all workers or none, as of a script: after prepare() of each has succeeded,
    /// adopt() of each; otherwise discard() of each. Refuses with 503 beside another one.
    task<outcome<>> on_each_worker_together(
        std::function<task<outcome<>>(serving::loop_worker&)> prepare,
        std::function<void(serving::loop_worker&)> adopt,
        std::function<void(serving::loop_worker&)> discard);

private:
    struct running;

    template <class F>
    void for_each_listener(const F& f) const {
        const listeners& of = listening();
        f(of.first.socket);
        if (of.secure) f(of.secure->socket);
        if (of.shared) f(of.shared->socket);
    }
    std::size_t listener_threads(const serving_config& of) const noexcept;
    task<outcome<>> serve();
    task<outcome<>> give_up(outcome<> why);
    task<void> end_workers();
    std::vector<endpoint> own_addresses() const;
    listener_addresses real_addresses() const;
    void accept_from(const std::array<bool, 3>& which);
    outcome<> reopen();

    const served_type type_;
    const std::string name_;
    settings options_;
    const std::shared_ptr<host> host_;
    serving::journal& events_;
    std::shared_ptr<inherited_listeners> inherited_;  // until it has started
    config_pointer config_;
    serving::counters counted_;
    bool is_held_;                      // until open()
    std::vector<passed_client> moved_;  // that wait for it
    bool is_changing_ = false;          // on_each_worker_together()

    // While it runs.
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime
