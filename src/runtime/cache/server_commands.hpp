// Commands about the server, outside of the engine: ACL SAVE and LOAD, SHUTDOWN, CONFIG REWRITE,
// MIGRATE.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/server_host.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/host/host.hpp"
#include "runtime/options/settings.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::cache {

/// One for each start of a cache, on its loop's thread.
class server_commands final : public eddy::cache::server_host {
public:
    /// Choice of what is saved when the cache stops.
    using saving = eddy::cache::shutdown_request::saving;

    /// `chosen` are the options that the daemon keeps for the cache: CONFIG REWRITE changes them.
    /// All references outlive it; tasks run in `background`, which ends before it.
    server_commands(cache_context& of, scope& background, settings& chosen,
                    std::shared_ptr<host> above);
    /// The engine, which may live on, notifies it no longer.
    ~server_commands();
    server_commands(const server_commands&) = delete;
    server_commands& operator=(const server_commands&) = delete;

    eddy::cache::traffic moved() const noexcept override { return context_.traffic(); }
    const eddy::cache::server_settings& current_settings() const noexcept override {
        return context_.settings;
    }
    void change_settings(eddy::cache::server_settings now) override;
    void save_users(std::uint64_t session, std::string text) override;
    void load_users(std::uint64_t session) override;
    void keep_config(std::uint64_t session) override;
    void shut_down(std::uint64_t session, eddy::cache::shutdown_request how) override;
    void migrate(std::uint64_t session, std::unique_ptr<eddy::cache::migration> what) override;
    bool can_shut_down() const noexcept override { return !above_->is_alone(); }
    bool abort_shutdown() override;
    void limits_changed() noexcept override;
    void outputs_due() noexcept override { context_.outputs_due.set(); }
    void obstacle_ended() noexcept override { context_.progress.set(); }
    bool can_keep_config() const noexcept override { return !above_->is_alone(); }

    saving at_end() const noexcept { return at_end_; }
    /// SHUTDOWN has asked for the stop that is under way, whatever it loses.
    bool is_forced() const noexcept { return is_forced_; }
    /// The stop that SHUTDOWN has asked for was not possible: answers its client, and resumes
    /// writes that no other SHUTDOWN holds.
    void stop_refused() noexcept;

private:
    task<void> answered(std::uint64_t session, task<void> work);
    task<void> save_users_there(std::uint64_t session, std::string text);
    task<void> load_users_there(std::uint64_t session);
    task<void> keep_config_there(std::uint64_t session);
    task<void> shut_down_there(std::uint64_t session, eddy::cache::shutdown_request how,
                               std::uint64_t turn);
    task<std::string> save_before_end(eddy::cache::shutdown_request how, std::uint64_t turn,
                                      duration patience);
    void answer(std::uint64_t session, std::string_view fault);

    cache_context& context_;
    eddy::cache::engine& engine_;
    scope& background_;
    serving::journal& events_;
    settings& chosen_;
    std::shared_ptr<host> above_;
    saving at_end_ = saving::by_points;
    bool is_forced_ = false;
    std::uint64_t stopping_ = 0;       // the session whose SHUTDOWN has asked for a stop; 0: none
    std::uint64_t shutdowns_ = 0;      // asked for and not given up
    std::uint64_t shutdown_turn_ = 0;  // changes when the waiting ones are given up
    async_mutex users_file_;           // one writer at a time
};

/// Fills the engine's users from the ACL file, which must be there: at the start.
task<outcome<>> load_users(eddy::cache::engine& to, std::string path);

}  // namespace eddy::runtime::cache
