// Test server of an engine: keeps the settings that CONFIG SET changes, and does nothing else.
#pragma once

#include "cache/engine/engine_state.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/replication/migration.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace eddy::cache::testing {

/// Must outlive the engine's sessions.
class test_server : public server_host {
public:
    explicit test_server(engine& of, server_settings given = {}) : settings(std::move(given)) {
        of.internals().server = this;
    }
    test_server(const test_server&) = delete;
    test_server& operator=(const test_server&) = delete;
    virtual ~test_server() = default;

    traffic moved() const noexcept override { return {}; }
    const server_settings& current_settings() const noexcept override { return settings; }
    void change_settings(server_settings now) override { settings = std::move(now); }
    void save_users(std::uint64_t, std::string) override {}
    void load_users(std::uint64_t) override {}
    void keep_config(std::uint64_t) override {}
    void shut_down(std::uint64_t, shutdown_request) override {}
    void migrate(std::uint64_t, std::unique_ptr<migration>) override {}
    bool can_shut_down() const noexcept override { return false; }
    bool abort_shutdown() override { return false; }
    bool can_keep_config() const noexcept override { return false; }
    void obstacle_ended() noexcept override { ++obstacles_ended; }

    server_settings settings;
    int obstacles_ended = 0;
};

/// Settings of a server that keeps files.
inline server_settings with_folder() {
    server_settings made;
    made.dir = "/somewhere";
    return made;
}

}  // namespace eddy::cache::testing
