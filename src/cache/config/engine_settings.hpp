// Engine settings that the server changes at run time.
#pragma once

#include "cache/engine/engine.hpp"

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {

class server_host;

/// Reference to the engine, which must outlive it; freely copied. The engine's thread.
class engine_settings {
public:
    explicit engine_settings(engine& of) noexcept : state_(of.internals()) {}

    /// Sets the server, which must outlive the engine's last command. INFO does not count its
    /// earlier traffic.
    void set_server(server_host& server) noexcept;
    /// Detaches the server.
    void drop_server() noexcept;
    /// As CONFIG SET with names and values: sets all, or none with the reason.
    std::expected<void, std::string> set(
        const std::vector<std::pair<std::string, std::string>>& parameters);
    void set_mode(access_mode mode) noexcept;

private:
    engine_state& state_;
};

}  // namespace eddy::cache
