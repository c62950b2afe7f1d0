// Services of the server for commands: its settings, the ACL file, the daemon's stored options,
// other servers, shutdown.
#pragma once

#include "cache/config/server_settings.hpp"
#include "cache/engine/traffic.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cache {

class migration;

/// Arguments of SHUTDOWN.
struct shutdown_request {
    enum class saving : std::uint8_t {
        by_points,  ///< if there are save points
        always,
        never,
    };
    saving saves = saving::by_points;
    bool forced = false;   ///< also when the save fails
    bool at_once = false;  ///< without waiting for replicas
};

/// Services that the server provides to the engine. A function with a session's number is called
/// within a command whose session waits from then on, until answer() with that number, which must
/// not come before the next turn. The engine's thread.
class server_host {
public:
    /// Traffic since the runtime was created; monotonic.
    virtual traffic moved() const noexcept = 0;
    /// The settings now in effect.
    virtual const server_settings& current_settings() const noexcept = 0;
    /// Takes settings changed by CONFIG SET.
    virtual void change_settings(server_settings now) = 0;
    /// Writes the text in place of server_settings::acl_file.
    virtual void save_users(std::uint64_t session, std::string text) = 0;
    /// Reads that file, loads it with acl::load() and answers with the result.
    virtual void load_users(std::uint64_t session) = 0;
    /// Stores all changes by CONFIG SET for the next start.
    virtual void keep_config(std::uint64_t session) = 0;
    /// Saves as requested and stops the cache; answers only if it does not stop.
    virtual void shut_down(std::uint64_t session, shutdown_request how) = 0;
    /// Sends the keys to the other server and removes them here.
    virtual void migrate(std::uint64_t session, std::unique_ptr<migration> what) = 0;
    /// True if the host can stop the cache.
    virtual bool can_shut_down() const noexcept = 0;
    /// Aborts shutdowns that have not completed; false when there are none. Answers them later.
    virtual bool abort_shutdown() = 0;
    /// engine_options::max_text has changed.
    virtual void limits_changed() noexcept {}
    /// engine::outputs_due_us() has become earlier.
    virtual void outputs_due() noexcept {}
    /// An obstacle to the host's own work has ended: a late script, a snapshot, a pause of commands
    /// or writes, or a lack of data (replication::lacks_data()). CLIENT PAUSE may also end without
    /// this, at engine_state::paused_until_us.
    virtual void obstacle_ended() noexcept {}
    /// True if the host can store settings.
    virtual bool can_keep_config() const noexcept = 0;

protected:
    ~server_host() = default;
};

/// Settings of the engine's server, or defaults without one.
inline const server_settings& settings_of(const server_host* server) noexcept {
    static const server_settings usual;
    return server == nullptr ? usual : server->current_settings();
}

}  // namespace eddy::cache
