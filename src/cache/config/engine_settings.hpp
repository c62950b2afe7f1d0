// The engine's settings, as the server changes them while it runs.
#pragma once

#include "cache/engine/engine.hpp"

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {

class server_host;

/// A reference, to be copied freely, which the engine outlives. The engine's thread.
class engine_settings {
public:
    explicit engine_settings(engine& of) noexcept : state_(of.internals()) {}

    /// Its server from now on, which outlives the engine's last command. What the server has moved
    /// before does not count in INFO.
    void set_server(server_host& server) noexcept;
    /// The engine goes on without one.
    void drop_server() noexcept;
    /// As CONFIG SET: names and values, all of them, or none with the reason.
    std::expected<void, std::string> set(
        const std::vector<std::pair<std::string, std::string>>& parameters);
    void set_mode(access_mode mode) noexcept;

private:
    engine_state& state_;
};

}  // namespace eddy::cache
