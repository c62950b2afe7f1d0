// Settings as the server changes them.
#include "cache/config/engine_settings.hpp"

#include "cache/config/config.hpp"
#include "cache/engine/engine_state.hpp"

namespace eddy::cache {

void engine_settings::set_server(server_host& server) noexcept {
    state_.server = &server;
    state_.forget_moved();
}

void engine_settings::drop_server() noexcept { state_.server = nullptr; }

std::expected<void, std::string> engine_settings::set(
    const std::vector<std::pair<std::string, std::string>>& parameters) {
    return set_parameters(state_, parameters);
}

void engine_settings::set_mode(access_mode mode) noexcept { state_.settings.options.mode = mode; }

}  // namespace eddy::cache
