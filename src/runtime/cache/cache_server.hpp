// The cache runtime: RESP clients on one side, the engine on the other.
//
// Its loop is the engine's home. cache_server.cpp has the start and the counts, cache_admission.cpp
// the admission of clients, cache_restart.cpp restarts and changes that need none, cache_end.cpp
// the end. worker.hpp serves the clients, on this loop or, with --threads, on loops of their own.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "base/problem.hpp"
#include "cache/engine/engine.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/cache_upkeep.hpp"
#include "runtime/cache/clients/cache_worker.hpp"
#include "runtime/cache/config/options.hpp"
#include "runtime/cache/files/cache_files.hpp"
#include "runtime/cache/replication/replicator.hpp"
#include "runtime/cache/script_calls.hpp"
#include "runtime/cache/server_commands.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/serving/served_runtime.hpp"
#include "serving/acceptor.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

class cache_hooks;
struct hook_config;

/// One loop's thread.
class cache_server final : public served_runtime, serving::admission {
public:
    explicit cache_server(creation from);
    ~cache_server() override;

    void give_up_start() noexcept override;
    task<outcome<>> prepare_stop(duration patience) override;
    void resume() noexcept override;
    std::string lost() const override { return lost_; }
    task<outcome<std::uint64_t>> send(std::string message) override;
    task<outcome<>> reload_script() override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> hand_over(settings next, std::shared_ptr<handover> to,
                              duration patience) override;

private:
    /// Parts of a cache that exist from the beginning of a start to the end of a stop.
    struct run {
        run(eddy::cache::engine_options with, serving::journal& events, serving::counters& counted,
            settings& chosen, std::shared_ptr<host> above)
            : engine(std::move(with)),
              context(engine, events, counted),
              commands(context, background, chosen, std::move(above)) {}

        eddy::cache::engine engine;
        cache_context context;
        std::unique_ptr<cache_files> files;    // null without a folder
        std::optional<cancel_source> opening;  // while a start reads its files
        scope background;
        cache_upkeep upkeep{context, background};
        replicator replication{context};
        server_commands commands;
        std::unique_ptr<cache_hooks> hooks;               // null without --hooks
        std::shared_ptr<script_calls> scripts = nullptr;  // null until it has started
    };

    static constexpr std::string_view no_memory_text = "there is no memory";

    outcome<config_pointer> read(const settings& given) const override;
    outcome<> prepare() override;
    task<outcome<>> check(config_pointer next, bool discards_data) override;
    serving::loop_pool::factory worker_factory() override;
    task<outcome<>> begin() override;
    task<void> begin_stop() override;
    task<void> accepting_ended(duration drain) override;
    task<void> clients_ended(bool has_started) override;
    void retire(const serving::loop_worker& last) override;
    task<void> end() override;
    void add_counts(metrics& to) const override;
    std::string lack() const override {
        return run_ && run_->hooks ? run_->hooks->fault() : std::string();
    }
    task<outcome<bool>> reread_files() override;
    std::string_view refusal() const override { return cache_worker::refusal; }
    serving::admission* connection_check() noexcept override { return this; }

    const cache::config& chosen() const noexcept;
    void note_addresses();
    task<outcome<>> load_beside_clients();
    void begin_tasks();
    void serve_scripts();
    task<void> forget_keys();
    void admit(stream accepted, serving::served_listener& from) override;
    void reject(stream accepted);
    void reject_after_handshake(stream accepted, serving::served_listener& from);
    task<void> reject_later(stream accepted, serving::served_listener& from,
                            serving::handshake under_way);
    task<outcome<>> open_files();
    task<void> end_preparation();
    task<outcome<>> save_before_end(duration patience, std::uint64_t own);
    outcome<> finish_preparation(std::uint64_t own, outcome<> ready);
    outcome<> check_users_stay(const cache::config& next) const;
    bool has_new_files(const cache::config& next) const;
    bool finds_all(const cache::config& next) const;
    task<outcome<>> write_keys(const handover& to, duration patience, std::uint64_t own);
    task<outcome<>> try_hooks(const hook_config& chosen);
    outcome<> check_new_folder(const cache::config& next) const;
    void note_loss();
    void spawn_supervised(std::function<task<void>()> make);
    void watch_peer(const stream& accepted) const noexcept;

    std::shared_ptr<const handover> inherited_;  // until it has started
    histogram latency_;                          // of workers that have ended
    eddy::cache::statistics last_stats_;
    std::size_t last_max_memory_ = 0;
    std::uint64_t last_script_commands_ = 0;
    bool start_given_up_ = false;
    // State of prepare_stop().
    std::uint64_t preparation_ = 0;  // another one when it is given up
    bool is_preparing_ = false;
    bool is_prepared_ = false;
    bool is_handed_over_ = false;  // the next instance has all
    std::string lost_;             // by the last stop

    std::vector<cache_hooks*> trials_;  // under way, by try_hooks()

    std::unique_ptr<run> run_;  // from the beginning of a start to the end of a stop
};

}  // namespace eddy::runtime::cache
